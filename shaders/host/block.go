// Blocks of dense products. Kernels that unpack many rows at once multiply with them.

package host

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
)

// A block's sizes: the rows and columns of its sums, and the values of k that are multiplied at a time. A core's caches
// hold them.
const (
	BlockRows  = 64
	BlockCols  = 128
	BlockDepth = 256

	transposedCols = 32 // columns, at most, whose sums lie column by column
)

// places has the numbers 0, 1, 2 and so on.
var places = func() (p [BlockDepth]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// Block is the sums of a block of a product, by rows in panels of simd.VectorRows. Sums are taken in the order of k.
type Block[T formats.Value] struct {
	loops Loops[T]
	n     int // columns
	lines int // of them, those whose sums lie row by row
	depth int // places of the right operand

	// The right operand: its first `lines` columns in b or, if that is nil, in f32 in wide; the others in f32 in
	// transposed.
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

// Right sets the next count rows of the right operand, at most BlockDepth: rows of b, ld elements apart. Block reads b
// until the next call.
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

// RightTransposed is Right for a column-major operand: its columns are ld elements apart in b.
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

// Add multiplies a panel of the left operand by the right one and adds the product to the sums of panel p. a has
// simd.VectorRows values for each of the first values of k.
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

// Row returns the sums of a row, which the caller may change, and scratch memory of the same length.
func (s *Block[T]) Row(r int) (sums, tmp []float32) {
	sums = s.rows[r*BlockCols:][:s.n]
	transposed := s.cols[r/simd.VectorRows][r%simd.VectorRows:]
	for j := range sums[min(s.n, s.lines):] {
		sums[s.lines+j] = transposed[simd.VectorRows*j]
	}
	return sums, s.line[:s.n]
}

// Left transposes count values of k of a panel of the left operand to vectors in dst. The panel has `lines` rows of a,
// at most simd.VectorRows, ld elements apart.
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
