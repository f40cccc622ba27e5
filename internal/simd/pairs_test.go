// Pairs of rows at every level of instructions this machine has.

package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPairsF64 holds pairs of rows against sums of integers, which are exact: any order must give the same bits.
// Everything that the function must not let in is NaN.
func TestPairsF64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 20).Draw(t, "n/8")
		ldb, ldc := n+rapid.IntRange(0, 9).Draw(t, "padding of B"), n+rapid.IntRange(0, 9).Draw(t, "padding of C")
		height := rapid.IntRange(1, 9).Draw(t, "rows of B")
		lengths := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 12).Draw(t, "entries of each row")
		first, later := rapid.IntRange(0, 3).Draw(t, "first entry"), rapid.IntRange(0, 30).Draw(t, "entries of later rows")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := &Rows[float64, float64]{LDC: ldc, N: n, LDB: ldb, Ahead: rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "ahead")}
		p.B = make([]float64, height*ldb)
		for i := range p.B {
			if p.B[i] = math.NaN(); i%ldb < n {
				p.B[i] = float64(r.Int64N(1<<32) - 1<<31)
			}
		}
		p.Starts = []uint32{uint32(first)}
		for i, l := range lengths {
			p.Starts = append(p.Starts, p.Starts[i]+uint32(l))
		}
		for k := range int(p.Starts[len(lengths)]) + later {
			p.Cols = append(p.Cols, uint32(r.IntN(height)))
			for range 2 {
				p.Vals = append(p.Vals, float64(r.IntN(1<<16)-1<<15))
			}
			if k < first {
				p.Vals[2*k], p.Vals[2*k+1] = math.NaN(), math.NaN()
			}
		}
		const guard = 0.5
		want := make([]float64, 2*len(lengths)*ldc)
		for i := range want {
			if want[i] = guard; i%ldc < n {
				row, j, sum := i/ldc/2, i%ldc, int64(0)
				for k := p.Starts[row]; k < p.Starts[row+1]; k++ {
					sum += int64(p.Vals[2*int(k)+i/ldc%2]) * int64(p.B[int(p.Cols[k])*ldb+j])
				}
				want[i] = float64(sum)
			}
		}
		levels(func(name string) {
			p.C = make([]float64, len(want))
			for i := range p.C {
				p.C[i] = guard
			}
			PairsF64(p)
			for i, x := range p.C {
				if x != want[i] {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i/ldc, i%ldc, n, x, want[i])
				}
			}
		})
	})
}
