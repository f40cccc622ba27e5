// Digests of matrices whose rows several ranks hold.

package checkpoint

import (
	"math"

	"github.com/spmmrun/spmm/formats"
)

// SumOfEntries adds up hashes of the entries of some rows of a matrix, from row first on. The sum over all rows does
// not depend on how they are shared out.
func SumOfEntries(first int, a *formats.CSR[float32]) (sum int64) {
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			sum += hash(first+i, int(a.ColIdx[e]), a.Val[e])
		}
	}
	return sum
}

// SumOfElements is SumOfEntries for rows of a dense matrix.
func SumOfElements(first int, d *formats.Dense[float32]) (sum int64) {
	for i := range d.Rows {
		for j, x := range d.Line(i) {
			sum += hash(first+i, j, x)
		}
	}
	return sum
}

// hash is of an element and its place: SplitMix64's output function (Steele et al., OOPSLA 2014), twice.
func hash(row, col int, x float32) int64 {
	z := (uint64(row)<<32|uint64(col))*0x9e3779b97f4a7c15 + uint64(math.Float32bits(x))
	for range 2 {
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return int64(z)
}
