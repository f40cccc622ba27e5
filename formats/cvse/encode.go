// From CSR to vectors and back.

package cvse

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowmerge"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// grain is the panels that a core takes at a time.
const grain = 16

// Options are the options of Encode.
type Options struct {
	V     int // vector length, 1 to MaxV
	Align int // panels are padded to a multiple of Align vectors; 0 means 1
}

// Encode packs a. It uses all cores and takes time proportional to the slots that it writes. The error wraps
// ErrTooLarge if these are more than formats.MaxSlots.
func Encode[T formats.Value](a *formats.CSR[T], o Options) (*Matrix[T], error) {
	if o.Align == 0 {
		o.Align = 1
	}
	if o.V < 1 || o.V > MaxV || o.Align < 1 || o.Align > 1<<16 {
		return nil, fmt.Errorf("cvse: vector length %d, alignment %d: need 1 to %d, 1 to 65536", o.V, o.Align, MaxV)
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	m := &Matrix[T]{V: o.V, Align: o.Align, Rows: a.Rows, Cols: a.Cols}
	found := make([]vectors, Panels(a.Rows, o.V))
	par.Each(len(found), grain, func(p int) { found[p] = find(a, p, o.V) })
	if err := m.placeVectors(found); err != nil {
		return nil, err
	}
	n := int(m.VecPtr[len(m.VecPtr)-1])
	m.ColInd = make([]uint32, n)
	m.Values = make([]T, n*m.V)
	m.Mask = make([]uint32, maskWords(n*m.V))
	par.Each(len(found), grain, func(p int) { m.fill(a, p, &found[p]) })
	m.Order = slots.HeaviestFirst(len(found), m.weight)
	return m, nil
}

// vectors are those of one panel: the column of each, and a bit for each of its rows that has an entry there.
type vectors struct{ cols, rows []uint32 }

// find returns the vectors of panel p of v rows.
func find[T formats.Value](a *formats.CSR[T], p, v int) (found vectors) {
	var w rowmerge.Walk
	for i := p * v; i < min(a.Rows, p*v+v); i++ {
		w.Add(a.RowPtr[i], a.RowPtr[i+1], a.ColIdx)
	}
	for w.Next(a.ColIdx) {
		found.cols, found.rows = append(found.cols, uint32(w.Col)), append(found.rows, w.Took)
	}
	return found
}

// placeVectors sets VecPtr.
func (m *Matrix[T]) placeVectors(found []vectors) error {
	m.VecPtr = make([]uint32, len(found)+1)
	var sum uint64
	align := uint64(m.Align)
	for p, v := range found {
		sum += (uint64(len(v.cols)) + align - 1) / align * align
		if sum*uint64(m.V) > formats.MaxSlots {
			return fmt.Errorf("%w: more than %d value slots by row %d of %d", ErrTooLarge, int64(formats.MaxSlots), p*m.V,
				m.Rows)
		}
		m.VecPtr[p+1] = uint32(sum)
	}
	return nil
}

// fill writes panel p's vectors and its padding.
func (m *Matrix[T]) fill(a *formats.CSR[T], p int, v *vectors) {
	q, end := int(m.VecPtr[p]), int(m.VecPtr[p+1])
	var next [MaxV]int64 // entry of each row
	copy(next[:], a.RowPtr[p*m.V:min(a.Rows, p*m.V+m.V)])
	copy(m.ColInd[q:end], v.cols)
	for _, rows := range v.rows {
		values := m.Values[q*m.V:][:m.V]
		for left := rows; left != 0; left &= left - 1 {
			r := bits.TrailingZeros32(left)
			values[r] = a.Val[next[r]]
			next[r]++
		}
		m.setMask(q, rows)
		q++
	}
	for ; q < end; q++ {
		m.ColInd[q] = v.cols[len(v.cols)-1]
	}
	*v = vectors{}
}

// setMask sets vector q's mask bits. Two panels may share a word.
func (m *Matrix[T]) setMask(q int, rows uint32) {
	at := q * m.V
	x := uint64(rows) << (at % 32)
	atomic.OrUint32(&m.Mask[at/32], uint32(x))
	if x>>32 != 0 {
		atomic.OrUint32(&m.Mask[at/32+1], uint32(x>>32))
	}
}

// weight returns how many vectors panel p has.
func (m *Matrix[T]) weight(p uint32) uint32 { return m.VecPtr[p+1] - m.VecPtr[p] }

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] { return m.entries().CSR() }

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// all other arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded { return m.with(nil) }

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := m.with(make([]T, int(m.VecPtr[len(m.VecPtr)-1])*m.V))
	out.entries().Set(values)
	return out
}

func (m *Matrix[T]) entries() entries.Of[T] {
	return entries.Of[T]{Rows: m.Rows, Cols: m.Cols, Panels: len(m.VecPtr) - 1, Grain: grain, Panel: m.panel}
}

// panel calls f for each stored entry of panel p: its row, its column and its value, by ascending column and then row.
func (m *Matrix[T]) panel(p int, f func(row, col int, v *T)) {
	for q := int(m.VecPtr[p]); q < int(m.VecPtr[p+1]); q++ {
		for w := m.vecMask(q); w != 0; w &= w - 1 {
			r := bits.TrailingZeros32(w)
			f(p*m.V+r, int(m.ColInd[q]), &m.Values[q*m.V+r])
		}
	}
}

// with returns the matrix with other slots.
func (m *Matrix[T]) with(values []T) *Matrix[T] {
	out := *m
	out.Values = values
	return &out
}
