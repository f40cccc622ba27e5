// Patterns of matrices, and matrices of a pattern.

package shadertest

import (
	"math/rand/v2"
	"slices"

	"github.com/spmmrun/spmm/formats"
)

// Spread is a pattern of rows with the given numbers of entries, evenly spread over k columns.
func Spread(k int, lens ...int) [][]int32 {
	p := make([][]int32, len(lens))
	for i, n := range lens {
		for t := range n {
			p[i] = append(p[i], int32(t*k/n))
		}
	}
	return p
}

// Scattered is a pattern in which rows have each column with probability density.
func Scattered(rows, k int, density float64) [][]int32 {
	p := make([][]int32, rows)
	r := rand.New(rand.NewPCG(uint64(rows), uint64(k)))
	for i := range p {
		p[i] = draw(r, k, density)
	}
	return p
}

// Alike is a pattern whose rows are alike in groups; each group has each column with probability density.
func Alike(rows, k, alike int, density float64) [][]int32 {
	p := make([][]int32, rows)
	for i := range p {
		p[i] = draw(rand.New(rand.NewPCG(uint64(i/alike), uint64(alike))), k, density)
	}
	return p
}

// Uneven is a pattern whose rows have each column with a probability of their own: density times 0 to 2.
func Uneven(rows, k int, density float64) [][]int32 {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(k)))
	p := make([][]int32, rows)
	for i := range p {
		p[i] = draw(r, k, density*2*r.Float64())
	}
	return p
}

// draw returns some of k columns, each with probability density.
func draw(r *rand.Rand, k int, density float64) (cols []int32) {
	for j := range k {
		if r.Float64() < density {
			cols = append(cols, int32(j))
		}
	}
	return cols
}

// Ragged takes entries from a pattern: of its rows some forty are left empty, and one has all k columns.
func Ragged(p [][]int32, k int) [][]int32 {
	rows := len(p)
	for i := rows / 3; i < rows/3+40 && i < rows; i++ {
		p[i] = nil
	}
	p[rows/2] = Spread(k, k)[0]
	return p
}

// EveryLength is a pattern of 70 panels of 16 rows; panel n has a row of n entries among 80 columns.
func EveryLength() [][]int32 {
	var p [][]int32
	for n := range 70 {
		p = append(p, make([][]int32, 16)...)
		p[16*n+n%16] = Spread(80, n)[0]
	}
	return p
}

// Ones is a matrix of k columns with ones in the places of a pattern.
func Ones[T formats.Value](pattern [][]int32, k int) *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: len(pattern), Cols: k, RowPtr: []int64{0}}
	for _, cols := range pattern {
		a.ColIdx = append(a.ColIdx, cols...)
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	a.Val = make([]T, len(a.ColIdx))
	formats.ConvertSlice(a.Val, slices.Repeat([]float32{1}, len(a.Val)))
	return a
}
