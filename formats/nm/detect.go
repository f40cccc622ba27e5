// Finding the pattern that a matrix obeys.

package nm

import (
	"container/heap"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Search limits the patterns that Detect tries.
type Search struct {
	V, W    int     // the unit; 0: any power of two up to 128 rows and 32 columns
	LeastV  int     // least V where V is 0: V doubles from here; 0 means 1
	MinFill float64 // least part of the slots that entries fill; 0 means DefaultFill
}

// DefaultFill is the meaning of 0 in Search.MinFill. Matrices from N:M training and pruning fill nearly all slots.
const DefaultFill = 0.5

const (
	mostV = 128
	mostW = 32
)

// Detect returns the pattern that condenses a to the fewest bytes, among all N < M ≤ MaxM with fewer slots than a's
// panels have places. For a matrix that was pruned to N:M this is its N, M and unit (or larger units that it happens to
// obey). The error wraps ErrPattern if the matrix obeys no pattern. a must be valid.
func Detect[T formats.Value](a *formats.CSR[T], s Search) (Pattern, error) {
	if s.MinFill == 0 {
		s.MinFill = DefaultFill
	}
	if s.V < 0 || s.V > MaxV || s.LeastV < 0 || s.LeastV > mostV || s.W < 0 || s.W > MaxW {
		return Pattern{}, fmt.Errorf("nm: units of %d (from %d) × %d: need at most %d×%d", s.V, s.LeastV, s.W, MaxV, MaxW)
	}
	none := func() error {
		row, group, n := densest(a)
		if n == 0 {
			return fmt.Errorf("nm: a matrix without entries fills no pattern: %w", ErrPattern)
		}
		return fmt.Errorf("nm: no pattern with M up to %d fits this matrix such that entries fill %.0f %% of its slots (row %d has %d entries in columns %d to %d): %w",
			MaxM, 100*s.MinFill, row, n, group*MaxM, min(a.Cols, group*MaxM+MaxM)-1, ErrPattern)
	}
	nnz := a.NNZ()
	area := int64(a.Rows) * int64(a.Cols)
	if area == 0 || float64(nnz) < s.MinFill*float64(area)/MaxM {
		return Pattern{}, none()
	}
	var q queue
	var t T
	for _, g := range grids(a, s) {
		for m := 2; m <= MaxM; m++ {
			c := &candidate{grid: g, size: int64(unsafe.Sizeof(t))}
			// Fewer slots than dense panels have, and filled enough.
			c.most = min(int64(g.panels)*int64(g.v)*int64(a.Cols)-1, int64(float64(nnz)/s.MinFill))
			c.Pattern = Pattern{N: 1, M: m, V: g.v, W: g.w}
			for c.count() && c.slots() < nnz {
				c.N++
			}
			if c.count() {
				q = append(q, c)
			}
		}
	}
	heap.Init(&q)
	// The cheapest candidate is looked at further, which may make it dearer, until one has been seen whole.
	for len(q) > 0 {
		c := q[0]
		if c.seen == c.panels {
			return c.Pattern, nil
		}
		c.look()
		if c.count() {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
	return Pattern{}, none()
}

// A matrix of up to smallArea places is encoded however little entries fill the slots.
const (
	smallArea = 1 << 18
	smallFill = 1e-9
	wholeM    = 32 // units of a group where groups are kept whole
)

// Fit returns the pattern in which to encode a: the one that Detect finds among those that takes accepts (nil: all).
// For a small matrix it returns a pattern in any case, even if entries fill few of the slots; if the matrix obeys none,
// the pattern keeps all units of its groups. For any other matrix that obeys no accepted pattern the error wraps
// ErrPattern. a must be valid.
func Fit[T formats.Value](a *formats.CSR[T], s Search, takes func(Pattern) bool) (Pattern, error) {
	small := int64(a.Rows)*int64(a.Cols) <= smallArea
	if small {
		s.MinFill = smallFill
	}
	p, err := Detect(a, s)
	switch {
	case err == nil && (takes == nil || takes(p)):
		return p, nil
	case small && (err == nil || errors.Is(err, ErrPattern)):
		return Pattern{N: wholeM, M: wholeM, V: max(1, s.V, s.LeastV), W: max(1, s.W)}, nil
	case err == nil:
		err = fmt.Errorf("nm: the matrix obeys %v, which the kernel does not take: %w", p, ErrPattern)
	}
	return Pattern{}, err
}

// Sparse24 is the pattern that sparse tensor cores multiply, at twice the rate of dense ones. So it pays for a matrix
// that fills sparseFill of its slots or more: 2:16 still gains.
var Sparse24 = Pattern{N: 2, M: 4, V: 1, W: 1}

const sparseFill = 0.2

// Fills24 returns an error that wraps ErrPattern if a has too few entries for the slots of 2:4. It does not look at
// their positions.
func Fills24(a formats.Sparse) error {
	rows, cols := a.Dims()
	if int64(rows)*int64(cols) <= smallArea {
		return nil
	}
	if slots := int64(rows) * int64(slots.Ceil(cols, 4)) * 2; float64(a.NNZ()) < sparseFill*float64(slots) {
		return fmt.Errorf("nm: %d entries fill less than %.0f %% of the slots of 2:4: %w", a.NNZ(), 100*sparseFill, ErrPattern)
	}
	return nil
}

// densest returns the row and the group of MaxM columns with the most entries, the first of equals.
func densest[T formats.Value](a *formats.CSR[T]) (row, group, n int) {
	for i := range a.Rows {
		cols := a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]]
		for len(cols) > 0 {
			g, k := int(cols[0])/MaxM, 0
			for k < len(cols) && int(cols[k])/MaxM == g {
				k++
			}
			if k > n {
				row, group, n = i, g, k
			}
			cols = cols[k:]
		}
	}
	return row, group, n
}

// grid is the units of a matrix that hold entries: a bit each, panel after panel.
type grid struct {
	v, w   int
	panels int
	units  int // of a panel
	words  int // of a panel; one more than its units need, so that a group may be read across
	bits   []uint64
}

func newGrid(v, w, panels, units int) *grid {
	g := &grid{v: v, w: w, panels: panels, units: units, words: units/64 + 2}
	g.bits = make([]uint64, panels*g.words)
	return g
}

// grids returns one for each unit searched for.
func grids[T formats.Value](a *formats.CSR[T], s Search) []*grid {
	v := max(1, s.V, s.LeastV)
	if s.V > 0 {
		v = s.V
	}
	g := newGrid(v, 1, slots.Ceil(a.Rows, v), a.Cols)
	par.Range(g.panels, max(1, 1<<16/g.words), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			panel := g.bits[p*g.words:]
			for _, c := range a.ColIdx[a.RowPtr[p*g.v]:a.RowPtr[min(a.Rows, p*g.v+g.v)]] {
				panel[c/64] |= 1 << (c % 64)
			}
		}
	})
	var all []*grid
	for {
		if s.W > 0 {
			all = append(all, g.wider(s.W))
		} else {
			for w := 1; w <= mostW && w/2 < g.units; w *= 2 {
				all = append(all, g.wider(w))
			}
		}
		if s.V > 0 || 2*g.v > mostV || g.panels <= 1 {
			return all
		}
		g = g.taller()
	}
}

// taller returns the grid of units of twice the rows.
func (g *grid) taller() *grid {
	t := newGrid(2*g.v, g.w, slots.Ceil(g.panels, 2), g.units)
	par.Range(t.panels, max(1, 1<<16/g.words), func(lo, hi int) {
		for p := 2 * lo; p < min(2*hi, g.panels); p++ {
			to := t.bits[p/2*t.words:]
			for i, x := range g.bits[p*g.words:][:g.words] {
				to[i] |= x
			}
		}
	})
	return t
}

// wider returns the grid of units of w columns, from one of single columns.
func (g *grid) wider(w int) *grid {
	if w == 1 {
		return g
	}
	t := newGrid(g.v, w, g.panels, slots.Ceil(g.units, w))
	par.Range(t.panels, max(1, 1<<16/g.words), func(lo, hi int) {
		for p := lo; p < hi; p++ {
			to := t.bits[p*t.words:]
			for i, x := range g.bits[p*g.words:][:g.words] {
				for ; x != 0; x &= x - 1 {
					u := (64*i + bits.TrailingZeros64(x)) / w
					to[u/64] |= 1 << (u % 64)
				}
			}
		}
	})
	return t
}

// candidate is a pattern with the least N that suits the panels seen so far.
type candidate struct {
	Pattern
	*grid
	seen int
	most int64 // slots that do
	size int64 // bytes of a value
	cost int64 // bits of the condensed matrix
}

func (c *candidate) slots() int64 {
	return int64(c.panels) * int64(slots.Ceil(c.units, c.M)) * int64(c.N) * int64(c.V*c.W)
}

// count sets the cost; it reports false for a pattern that does not do.
func (c *candidate) count() bool {
	slots := c.slots()
	c.cost = slots*(8*c.size+1) + slots/int64(c.V*c.W)*int64(c.Bits())
	return c.N < c.M && slots <= c.most
}

// look sees as many panels again as were seen, or up to the first that needs a larger N.
func (c *candidate) look() {
	mask := uint64(1)<<(c.M-1)<<1 - 1
	for end := min(c.panels, 2*c.seen+16); c.seen < end; c.seen++ {
		panel := c.bits[c.seen*c.words:][:c.words]
		n := 0
		for u := 0; u < c.units; u += c.M {
			x := panel[u/64]>>(u%64) | panel[u/64+1]<<1<<(63-u%64)
			n = max(n, bits.OnesCount64(x&mask))
		}
		if n > c.N {
			c.N = n
			c.seen++
			return
		}
	}
}

// queue is a heap of candidates, the cheapest first; of equals the one with the least M.
type queue []*candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].cost < q[j].cost || q[i].cost == q[j].cost && q[i].M < q[j].M
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*candidate)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
