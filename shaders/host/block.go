// Blocks of dense products, by which the kernels multiply that unpack many rows at once.

package host

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
)

// A block's sizes: sums of so many rows and columns, and so many places of the sum at a time, which is what a core's caches
// hold.
const (
	BlockRows  = 64
	BlockCols  = 128
	BlockDepth = 256

	tileCols = 32 // of the right operand, side by side: a tile stays in the first-level cache
)

// places are the numbers of the places.
var places = func() (p [BlockDepth]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// Block is the sums of a block of a product, row by row in panels of simd.VectorRows. Sums are taken in the order of the
// places.
type Block[T formats.Value] struct {
	n, lines int // columns, and those whose sums lie row by row
	depth    int // places of the right operand
	right    [BlockDepth * BlockCols]float32
	tiles    [BlockCols/tileCols + 1]tile
	rows     [BlockRows * BlockCols]float32
	cols     [BlockRows / simd.VectorRows][tileCols * simd.VectorRows]float32
	line     [BlockDepth * simd.Width]float32
}

// tile is some columns of the right operand, from column at on, its rows ld apart.
type tile struct {
	at, cols int
	b        []float32
	ld       int
}

// Start sets all sums of n columns, at most BlockCols, to 0.
func (s *Block[T]) Start(n int) {
	s.n, s.lines = n, simd.InLines(Pad(n))
	clear(s.rows[:])
	clear(s.cols[:])
	at := 0
	for i := range s.tiles {
		t := &s.tiles[i]
		t.at, t.cols = at, min(tileCols, Pad(n)-at)
		if at < s.lines {
			t.cols = min(tileCols, s.lines-at)
		}
		t.b, t.ld = s.right[at*BlockDepth:][:t.cols*BlockDepth], t.cols
		at += t.cols
	}
}

// Right brings count places of the right operand, at most BlockDepth, which has rows of b, ld elements apart. It may be read
// until the next call.
func (s *Block[T]) Right(l Loops[T], b []T, ld, count int) {
	s.depth = count
	if f32, ok := any(b).([]float32); ok && ld <= tileCols { // one tile
		s.tiles[0].b, s.tiles[0].ld = f32, ld
		return
	}
	for _, t := range s.tiles {
		if t.cols > 0 {
			l.Lines(t.b, t.ld, b[t.at:], ld, count, t.cols)
		}
	}
}

// RightTurned is Right for an operand whose columns are lines of b, ld elements apart.
func (s *Block[T]) RightTurned(l Loops[T], b []T, ld, count int) {
	s.depth = count
	for _, t := range s.tiles {
		for i := 0; i < t.cols; i += simd.Width {
			lines := min(simd.Width, s.n-t.at-i)
			l.Lines(s.line[:], BlockDepth, b[(t.at+i)*ld:], ld, lines, count)
			if lines < simd.Width {
				clear(s.line[lines*BlockDepth:])
			}
			simd.Turn(t.b[i:], t.ld, s.line[:], BlockDepth, simd.Width, count)
		}
	}
}

// Add multiplies a panel of the left operand, vectors of simd.VectorRows values for the first places of the right one, and
// adds to the sums of panel p.
func (s *Block[T]) Add(p int, a []float32) {
	cols := places[:min(s.depth, len(a)/simd.VectorRows)]
	a = a[:len(cols)*simd.VectorRows]
	for _, t := range s.tiles {
		switch {
		case t.cols <= 0 || len(cols) == 0:
		case t.at >= s.lines:
			simd.TurnedF32(s.cols[p][:t.cols*simd.VectorRows], a, cols, t.b, t.ld, t.cols)
		default:
			for r := 0; r < simd.VectorRows; r += simd.PanelRows {
				simd.PanelF32(s.rows[(p*simd.VectorRows+r)*BlockCols+t.at:], BlockCols, a[r:], simd.VectorRows, cols, t.b, t.ld, t.cols)
			}
		}
	}
}

// Row returns the sums of a row, which may be changed, and memory for as many beside them.
func (s *Block[T]) Row(r int) (sums, tmp []float32) {
	sums = s.rows[r*BlockCols:][:s.n]
	turned := s.cols[r/simd.VectorRows][r%simd.VectorRows:]
	for j := range sums[min(s.n, s.lines):] {
		sums[s.lines+j] = turned[simd.VectorRows*j]
	}
	return sums, s.line[:s.n]
}

// Left brings count places of a panel of the left operand to vectors: lines of a, at most simd.VectorRows, ld elements apart.
func (s *Block[T]) Left(dst []float32, l Loops[T], a []T, ld, lines, count int) {
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
		l.Lines(s.line[:], BlockDepth, a[i*ld:], ld, n, count)
		simd.Turn(dst[i:], simd.VectorRows, s.line[:], BlockDepth, n, count)
	}
}
