// The packing that panel_staged.cuh reads: a panel's columns cut into lists by windows of B's rows, and arranged
// so that gathers from shared memory meet no bank conflict.

package panel

import (
	"fmt"
	"math"
	"runtime"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	stepVectors = 16 // vectors of one instruction; lists are padded to a multiple
	bankCount   = 4  // rows of B that differ mod 4 lie in different banks
)

// StagedMaxCols bounds the columns of A for staged kernels, whose blocks keep the offsets of their lists in
// shared memory.
const StagedMaxCols = 1 << 16

// Staged is panel_staged.cuh, the function entry of staged.cu: windows of `window` rows of B, stages of them in
// shared memory; warps of `panels` panels, of 8 rows, and depth steps each.
func Staged(entry string, t dtype.Type, window, warps, panels, stages, depth uint32) *spec.Variant {
	const feeders, v = 4, 8
	x := CUDA(entry, "staged.cu", fmt.Sprintf("cuda_v%d_window%d_%v", v, window, t), t, warps+feeders, []spec.Const{
		spec.Define("V", v), spec.Define("ALIGN", stepVectors), spec.Define("WINDOW", window), spec.Define("WARPS", warps),
		spec.Define("PRODUCERS", feeders),
		spec.Define("PANELS", panels), spec.Define("STAGES", stages), spec.Define("DEPTH", depth), spec.Define("COLS", 64),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	const pitch = 160
	lists := 4 * warps * panels * (StagedMaxCols/window + 1)
	x.Shared = stages*window*pitch + warps*panels*depth*(16*v*2+32) + lists
	x.Need.Shared = x.Shared + 256 // the barriers
	of := Packing{V: v, Align: stepVectors, Window: int(window)}
	return Shape{Packing: of, Warps: int(warps), Panels: int(panels)}.sized(x, stagedKind, 64)
}

// StagedTile returns the panels and the columns of C that a block of a staged kernel computes.
func StagedTile(v *spec.Variant) (panels, cols int) {
	s := ShapeOf(v)
	return s.Panels * s.Warps, v.Tile.Cols
}

// errTooLarge: more value slots than 32-bit indices reach, once lists are padded.
var errTooLarge = fmt.Errorf("%w to be cut by windows", formats.ErrTooLarge)

// Matrix holds the arrays of a format that a staged kernel needs. Panel p has columns Ptr[p] to Ptr[p+1]. Those without
// a bit in Mask are padding.
type Matrix[T formats.Value] struct {
	V      int // a power of two
	Cols   int // of the matrix
	Ptr    []uint32
	ColIdx []uint32
	Values []T
	Mask   []uint32
}

// mask returns the mask bits of a column. They lie in one word.
func (m *Matrix[T]) mask(q int) uint32 {
	return m.Mask[q*m.V/32] >> (q * m.V % 32) & uint32(1<<m.V-1)
}

// end returns the end of panel p's columns that are no padding.
func (m *Matrix[T]) end(p int) int {
	q := int(m.Ptr[p+1])
	for q > int(m.Ptr[p]) && m.mask(q-1) == 0 {
		q--
	}
	return q
}

// windows is a matrix cut by window. list (panel, w) is the columns from ptr[panel·count+w] to
// ptr[panel·count+w+1]; local is their numbers within the window.
type windows[T formats.Value] struct {
	count  int // windows
	ptr    []uint32
	local  []uint16
	values []T
	mask   []uint32
}

// CheckStaged refuses matrices that are too wide for a staged variant.
func CheckStaged(v *spec.Variant, cols int) error {
	if cols > StagedMaxCols && !InStreams(v) {
		return fmt.Errorf("variant %s takes matrices of at most %d columns, not %d: %w", v.Name, StagedMaxCols, cols,
			backend.ErrUnsupported)
	}
	return nil
}

// Arrays sets the arrays, Work and the stats of e that a staged variant reads: rows are the words of the format's own
// that say which rows panels are of.
func Arrays[T formats.Value](e *spec.Packed, m Matrix[T], rows []uint32, v *spec.Variant) error {
	if InStreams(v) {
		return streamArrays(e, m, rows, v)
	}
	of := ShapeOf(v)
	w, err := cut(&m, of.Window, of.Lanes)
	if err != nil {
		return err
	}
	if err := setArrays(e, len(m.Ptr)-1, w.ptr, rows, w.local, inOrder(w.values, m.V, of.Lanes), w.mask); err != nil {
		return err
	}
	perBlock, _ := StagedTile(v)
	e.Stats = formats.Stats{
		Slots: int64(len(w.values)), MACs: int64(len(w.values)),
		Gathers: int64(spec.Ceil(len(m.Ptr)-1, perBlock)) * int64(m.Cols), Staged: true,
	}
	for p := range len(m.Ptr) - 1 {
		e.Stats.Longest = max(e.Stats.Longest, int64(w.ptr[(p+1)*w.count]-w.ptr[p*w.count]))
	}
	e.Stats.StoredBytes = e.Bytes()
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return nil
}

// setArrays sets the arrays of e for variants that have B in shared memory: the first is pointers, and behind them the
// words that say which rows panels are of.
func setArrays[C uint16 | uint32, T formats.Value](e *spec.Packed, panels int, ptr, rows []uint32, columns []C,
	values []T, mask []uint32) error {
	if uint64(len(ptr))+uint64(len(rows)) > math.MaxUint32 {
		return errTooLarge
	}
	e.Work = Work{Parts: panels, Panels: panels, Places: len(ptr)}
	e.Arrays = arrays(append(ptr, rows...), columns, values, mask)
	return nil
}

// arrays names a packed matrix's arrays.
func arrays[C uint16 | uint32, T formats.Value](work []uint32, columns []C, values []T, mask []uint32) []spec.Array {
	return []spec.Array{
		spec.NewArray(Args[ArgWork].Name, work), spec.NewArray(Args[ArgCols].Name, columns),
		spec.NewArray(Args[ArgValues].Name, values), spec.NewArray(Args[ArgMask].Name, mask),
	}
}

// cut makes the lists, panels in parallel.
func cut[T formats.Value](m *Matrix[T], size int, lanes bool) (*windows[T], error) {
	panels := len(m.Ptr) - 1
	w := &windows[T]{count: spec.Ceil(m.Cols, size)}
	w.ptr = make([]uint32, panels*w.count+1)
	for p := range panels {
		for q := int(m.Ptr[p]); q < m.end(p); q++ {
			w.ptr[p*w.count+int(m.ColIdx[q])/size+1]++
		}
	}
	var total uint64
	for i, n := range w.ptr {
		total += (uint64(n) + stepVectors - 1) / stepVectors * stepVectors
		if total*uint64(m.V) > 1<<32-1 {
			return nil, errTooLarge
		}
		w.ptr[i] = uint32(total)
	}
	w.local = make([]uint16, total)
	w.values = make([]T, int(total)*m.V)
	w.mask = make([]uint32, spec.Ceil(len(w.values), 32))
	// Shares are whole panels, and lists are multiples of 16 vectors: no two touch a word of mask.
	spec.Shares(panels, spec.Ceil(panels, runtime.GOMAXPROCS(0)), 0, func(first, last int) {
		d := bankOrder{size: size, lanes: lanes}
		for p := first; p < last; p++ {
			w.fill(m, p, &d)
		}
	})
	return w, nil
}

// fill writes the lists of panel p.
func (w *windows[T]) fill(m *Matrix[T], p int, d *bankOrder) {
	at, end := int(m.Ptr[p]), m.end(p)
	for i := range w.count {
		first := at
		for at < end && int(m.ColIdx[at])/d.size == i {
			at++
		}
		to, room := int(w.ptr[p*w.count+i]), int(w.ptr[p*w.count+i+1])
		for s, from := range d.arrange(m.ColIdx[first:at], room-to) {
			if from < 0 { // padding: no value, the column of the list's last vector
				w.local[to+s] = uint16(int(m.ColIdx[at-1]) % d.size)
				continue
			}
			w.move(m, first+from, to+s, d.size)
		}
	}
}

// move copies vector from of m to place to. V is a power of two up to 32, so that a vector's mask bits
// lie in one word.
func (w *windows[T]) move(m *Matrix[T], from, to, size int) {
	v := m.V
	w.local[to] = uint16(int(m.ColIdx[from]) % size)
	copy(w.values[to*v:(to+1)*v], m.Values[from*v:(from+1)*v])
	w.mask[to*v/32] |= m.mask(from) << (to * v % 32)
}

// bankOrder arranges the vectors of lists by the banks of shared memory that their rows of B lie in. It keeps its
// memory from list to list.
type bankOrder struct {
	size  int
	lanes bool // for kernels that make operands lane by lane
	banks [bankCount][]int
	order []int
}

// place returns where the vector goes that a lane of a quad reads in its turn, counted over all steps.
func (d *bankOrder) place(turn, lane int) int {
	if d.lanes { // lane l has places 4l to 4l+3 of a step
		return turn/4*stepVectors + 4*lane + turn%4
	}
	return turn/2*8 + turn%2 + 2*lane
}

// arrange returns, for each of room places, the index in cols of the vector that goes there, or -1. The
// four vectors that a quad of lanes reads at once are taken from different residues of the column mod 4 as long
// as there are such.
func (d *bankOrder) arrange(cols []uint32, room int) []int {
	d.order = d.order[:0]
	for range room {
		d.order = append(d.order, -1)
	}
	for r := range d.banks {
		d.banks[r] = d.banks[r][:0]
	}
	for i := len(cols) - 1; i >= 0; i-- {
		r := int(cols[i]) % d.size % bankCount
		d.banks[r] = append(d.banks[r], i)
	}
	left := len(cols)
	for turn := 0; left > 0; turn++ {
		var used [bankCount]bool
		for lane := 0; lane < 4 && left > 0; lane++ {
			h := d.fullest(&used)
			n := len(d.banks[h]) - 1
			d.order[d.place(turn, lane)] = d.banks[h][n]
			d.banks[h] = d.banks[h][:n]
			used[h] = true
			left--
		}
	}
	return d.order
}

// fullest returns the fullest bank not used in this quad, or of all if the others are empty.
func (d *bankOrder) fullest(used *[bankCount]bool) int {
	best, any := -1, 0
	for h := range d.banks {
		if len(d.banks[h]) > len(d.banks[any]) {
			any = h
		}
		if !used[h] && len(d.banks[h]) > 0 && (best < 0 || len(d.banks[h]) > len(d.banks[best])) {
			best = h
		}
	}
	if best < 0 {
		return any
	}
	return best
}
