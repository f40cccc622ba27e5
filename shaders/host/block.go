// Blocks of dense products, by which the kernels multiply that unpack many rows at once.

package host

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
)

// A block's sizes: the rows and columns of its sums, and the terms of a sum at a time, which a core's caches hold.
const (
	BlockRows  = 64
	BlockCols  = 128
	BlockDepth = 256

	transposedCols = 32 // columns, at most, whose sums lie column by column
)

// places are the numbers of the places.
var places = func() (p [BlockDepth]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// Block is the sums of a block of a product, row by row in panels of simd.VectorRows. Sums are taken in the order of
// the places.
type Block[T formats.Value] struct {
	loops Loops[T]
	n     int // columns
	lines int // of them, those whose sums lie row by row
	depth int // places of the right operand

	// The right operand's columns: those in lines, as they are or, if that is nil, in f32; and the others in f32.
	b                        []T
	wide                     []float32
	transposed               []float32
	ld, ldWide, ldTransposed int

	right [BlockDepth * BlockCols]float32
	rows  [BlockRows * BlockCols]float32
	cols  [BlockRows / simd.VectorRows][transposedCols * simd.VectorRows]float32
	line  [BlockDepth * simd.Width]float32
}

// Start sets all sums of n columns, at most BlockCols, to 0.
func (s *Block[T]) Start(l Loops[T], n int) {
	s.loops, s.n, s.lines = l, n, simd.InLines(Pad(n))
	clear(s.rows[:])
	clear(s.cols[:])
}

// Right takes count places of the right operand, at most BlockDepth: rows of b, ld elements apart, which are read until
// the next call.
func (s *Block[T]) Right(b []T, ld, count int) {
	s.depth, s.b, s.ld = count, b, ld
	others := Pad(s.n) - s.lines
	if others == 0 {
		return
	}
	if f32, ok := any(b).([]float32); ok {
		s.transposed, s.ldTransposed = f32[s.lines:], ld
		return
	}
	s.loops.Lines(s.right[:], others, b[s.lines:], ld, count, others)
	s.transposed, s.ldTransposed = s.right[:], others
}

// RightTransposed is Right for an operand whose columns are lines of b, ld elements apart.
func (s *Block[T]) RightTransposed(b []T, ld, count int) {
	n := Pad(s.n)
	for j := 0; j < n; j += simd.Width {
		lines := min(simd.Width, s.n-j)
		s.loops.Lines(s.line[:], BlockDepth, b[j*ld:], ld, lines, count)
		clear(s.line[lines*BlockDepth:])
		simd.Turn(s.right[j:], n, s.line[:], BlockDepth, simd.Width, count)
	}
	s.depth, s.b, s.wide, s.ldWide = count, nil, s.right[:], n
	s.transposed, s.ldTransposed = s.right[s.lines:], n
}

// Add multiplies a panel of the left operand, vectors of simd.VectorRows values for the first places of the right one,
// and adds to the sums of panel p.
func (s *Block[T]) Add(p int, a []float32) {
	cols := places[:min(s.depth, len(a)/simd.VectorRows)]
	a = a[:len(cols)*simd.VectorRows]
	for r := 0; r < simd.VectorRows && s.lines > 0 && len(cols) > 0; r += simd.PanelRows {
		acc := s.rows[(p*simd.VectorRows+r)*BlockCols:]
		if s.b == nil {
			simd.PanelF32(acc, BlockCols, a[r:], simd.VectorRows, cols, s.wide, s.ldWide, s.lines)
		} else {
			s.loops.Panel(acc, BlockCols, a[r:], simd.VectorRows, cols, s.b, s.ld, s.lines)
		}
	}
	if others := Pad(s.n) - s.lines; others > 0 {
		simd.TurnedF32(s.cols[p][:others*simd.VectorRows], a, cols, s.transposed, s.ldTransposed, others)
	}
}

// Row returns the sums of a row, which may be changed, and memory for as many more.
func (s *Block[T]) Row(r int) (sums, tmp []float32) {
	sums = s.rows[r*BlockCols:][:s.n]
	transposed := s.cols[r/simd.VectorRows][r%simd.VectorRows:]
	for j := range sums[min(s.n, s.lines):] {
		sums[s.lines+j] = transposed[simd.VectorRows*j]
	}
	return sums, s.line[:s.n]
}

// Left brings count places of a panel of the left operand to vectors: lines of a, at most simd.VectorRows, ld elements
// apart.
func (s *Block[T]) Left(dst []float32, a []T, ld, lines, count int) {
	if lines < simd.VectorRows {
		clear(dst[:count*simd.VectorRows])
	}
	f32, ok := any(a).([]float32)
	for i := 0; i < lines; i += simd.Width {
		n := min(simd.Width, lines-i)
		if ok {
			simd.Turn(dst[i:], simd.VectorRows, f32[i*ld:], ld, n, count)
			continue
		}
		s.loops.Lines(s.line[:], BlockDepth, a[i*ld:], ld, n, count)
		simd.Turn(dst[i:], simd.VectorRows, s.line[:], BlockDepth, n, count)
	}
}
