// The packing that staged.cu reads: a panel's vectors cut into lists by windows of B's rows, and dealt
// so that gathers from shared memory meet no bank conflict.

package cvse

import (
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	dealStep  = 16 // vectors of one instruction; lists are padded to a multiple
	dealBanks = 4  // rows of B that differ mod 4 lie in different banks
)

// windows is a cvse matrix cut by window. list (panel, w) is the vectors from ptr[panel·count+w] to
// ptr[panel·count+w+1]; local is their columns within the window.
type windows[T formats.Value] struct {
	count  int // windows
	ptr    []uint32
	local  []uint16
	values []T
	mask   []uint32
}

// checkWindows refuses matrices that are too wide for a variant with a constant WINDOW.
func checkWindows(v *spec.Variant, cols int) error {
	if v.Const("WINDOW") > 0 && cols > stagedMaxCols {
		return fmt.Errorf("kernel cvse/%s takes matrices of at most %d columns, not %d: %w", v.Name, stagedMaxCols, cols, backend.ErrUnsupported)
	}
	return nil
}

// arrangeWindows makes the arrays of a variant with a constant WINDOW.
func arrangeWindows[T formats.Value](m *cvse.Matrix[T], v *spec.Variant) (*spec.Encoded, error) {
	w, err := cut(m, int(v.Const("WINDOW")))
	if err != nil {
		return nil, err
	}
	e := &spec.Encoded{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Format: m,
		Arrays: []spec.Array{
			spec.NewArray("vecptr", w.ptr), spec.NewArray("colind", w.local), spec.NewArray("values", w.values),
			spec.NewArray("mask", w.mask), spec.NewArray("order", m.Order),
		},
	}
	perBlock, _ := cudaTile(v)
	e.Stats = formats.Stats{
		Slots: int64(len(w.values)), MACs: int64(len(w.values)),
		Gathers: int64(panel.Ceil(len(m.Order), perBlock)) * int64(m.Cols), Staged: true,
	}
	for _, x := range e.Arrays {
		e.Stats.StoredBytes += int64(len(x.Data))
	}
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return e, nil
}

// cut makes the lists, panels in parallel.
func cut[T formats.Value](m *cvse.Matrix[T], size int) (*windows[T], error) {
	panels := len(m.VecPtr) - 1
	w := &windows[T]{count: panel.Ceil(m.Cols, size)}
	w.ptr = make([]uint32, panels*w.count+1)
	for p := range panels {
		for _, c := range m.ColInd[m.VecPtr[p]:m.VecPtr[p+1]] {
			w.ptr[p*w.count+int(c)/size+1]++
		}
	}
	var total uint64
	for i, n := range w.ptr {
		total += (uint64(n) + dealStep - 1) / dealStep * dealStep
		if total*uint64(m.V) > 1<<32-1 {
			return nil, cvse.ErrTooLarge
		}
		w.ptr[i] = uint32(total)
	}
	w.local = make([]uint16, total)
	w.values = make([]T, int(total)*m.V)
	w.mask = make([]uint32, panel.Ceil(len(w.values), 32))
	var g errgroup.Group
	// Shares are whole panels, and lists are multiples of 16 vectors: no two touch a word of mask.
	share := panel.Ceil(panels, runtime.GOMAXPROCS(0))
	for first := 0; first < panels; first += share {
		g.Go(func() error {
			d := dealer{size: size}
			for p := first; p < min(first+share, panels); p++ {
				w.fill(m, p, &d)
			}
			return nil
		})
	}
	return w, g.Wait()
}

// fill writes the lists of panel p.
func (w *windows[T]) fill(m *cvse.Matrix[T], p int, d *dealer) {
	at, end := int(m.VecPtr[p]), int(m.VecPtr[p+1])
	for i := range w.count {
		first := at
		for at < end && int(m.ColInd[at])/d.size == i {
			at++
		}
		to, room := int(w.ptr[p*w.count+i]), int(w.ptr[p*w.count+i+1])
		for s, from := range d.deal(m.ColInd[first:at], room-to) {
			if from < 0 { // padding: no value, the column of the list's last vector
				w.local[to+s] = uint16(int(m.ColInd[at-1]) % d.size)
				continue
			}
			w.move(m, first+from, to+s, d.size)
		}
	}
}

// move copies vector from of m to place to. V is a power of two up to 32, so that a vector's mask bits
// lie in one word.
func (w *windows[T]) move(m *cvse.Matrix[T], from, to, size int) {
	v := m.V
	w.local[to] = uint16(int(m.ColInd[from]) % size)
	copy(w.values[to*v:(to+1)*v], m.Values[from*v:(from+1)*v])
	bits := m.Mask[from*v/32] >> (from * v % 32) & uint32(1<<v-1)
	w.mask[to*v/32] |= bits << (to * v % 32)
}

// dealer orders the vectors of lists. It keeps its memory from list to list.
type dealer struct {
	size  int
	hands [dealBanks][]int
	order []int
}

// deal returns, for each of room places, the index in cols of the vector that goes there, or -1. The
// four vectors that a quad of lanes reads at once (places i, i+2, i+4, i+6 of each 8) are taken from
// different residues of the column mod 4 as long as there are such.
func (d *dealer) deal(cols []uint32, room int) []int {
	d.order = d.order[:0]
	for range room {
		d.order = append(d.order, -1)
	}
	for r := range d.hands {
		d.hands[r] = d.hands[r][:0]
	}
	for i := len(cols) - 1; i >= 0; i-- {
		r := int(cols[i]) % d.size % dealBanks
		d.hands[r] = append(d.hands[r], i)
	}
	left := len(cols)
	for eight := 0; eight < room && left > 0; eight += 8 {
		for odd := range 2 {
			var used [dealBanks]bool
			for lane := 0; lane < 4 && left > 0; lane++ {
				h := d.fullest(&used)
				n := len(d.hands[h]) - 1
				d.order[eight+odd+2*lane] = d.hands[h][n]
				d.hands[h] = d.hands[h][:n]
				used[h] = true
				left--
			}
		}
	}
	return d.order
}

// fullest returns the fullest hand not used in this quad, or of all if the others are empty.
func (d *dealer) fullest(used *[dealBanks]bool) int {
	best, any := -1, 0
	for h := range d.hands {
		if len(d.hands[h]) > len(d.hands[any]) {
			any = h
		}
		if !used[h] && len(d.hands[h]) > 0 && (best < 0 || len(d.hands[h]) > len(d.hands[best])) {
			best = h
		}
	}
	if best < 0 {
		return any
	}
	return best
}
