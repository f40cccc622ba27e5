// The work list: which panels, and parts of heavy ones, workgroups multiply, and how a launch adds up the sums of
// parts.

package panel

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Span is a panel: its vectors First to Last-1, counted over all, and Rows, what kernels know its rows by.
type Span struct{ First, Last, Rows uint32 }

// record is an item of the work list: vectors of a panel, and the slot of the workspace for their sums, spec.NoSlot if
// they go to C.
type record struct {
	Span
	slot uint32
}

// recordWords is a record in the array.
const recordWords = 4

// Work describes a work list, the array ArgWork, to a launch. It lists
//
//	records of panels and of parts of heavy panels;
//	where there are such, the panels as they are, for launches whose workspace would be too large;
//	the heavy panels, slot being their first part's, and one more whose slot is that after the last one's;
//	words of the format's own that say which rows panels are of.
//
// Parts of a panel have slots one after the other, of V rows of C each.
type Work struct {
	Parts  int // records of the first kind
	Panels int // of the second, or all, if no panel is heavy
	Heavy  int
	Slots  int
	Places int // words before those of the format's own
}

const (
	slack     = 4    // times the average of vectors: what has more of them may be heavy
	leastPart = 256  // vectors whose sums take as much memory traffic as fetching a sixteenth of their rows of B
	enough    = 1024 // parts that keep a large device busy
	maskWord  = 32   // vectors of a part are a multiple, but for the last one's
)

// limits returns above how many vectors a panel is heavy, and in parts of about how many it is cut.
func limits(panels []Span) (heavy int64, part uint32) {
	var vectors int64
	for _, s := range panels {
		vectors += int64(s.Last - s.First)
	}
	heavy = max(leastPart, slack*vectors/int64(max(1, len(panels))))
	return heavy, uint32(min(heavy, max(leastPart, vectors/enough)))
}

// Lists sets e's arrays and Work for variants that have a work list, and what else depends on it, given e's stats
// otherwise. Panels come in the order in which they are to be taken; rows are the words of the format's own. On the CPU
// no panel is heavy: cores share its columns.
func Lists[T formats.Value](e *spec.Packed, v *spec.Variant, panels []Span, rows, columns []uint32, values []T,
	mask []uint32) error {
	list, err := newWork(e, v, panels, rows)
	if err == nil {
		e.Arrays = arrays(list, columns, inOrder(values, ShapeOf(v).V, ShapeOf(v).Lanes), mask)
	}
	return err
}

// newWork makes the work list, and sets e's Work, Items and the stats that depend on it.
func newWork(e *spec.Packed, v *spec.Variant, panels []Span, rows []uint32) ([]uint32, error) {
	heavy, part := limits(panels)
	e.Stats.Longest, e.Stats.Cut = 0, 0
	switch v.Code {
	case backend.CodePTX:
		e.Stats.Cut = heavy // GPUs of other APIs are predicted to take panels whole: there csr is faster where some are heavy
	case backend.CodeGo:
		heavy = math.MaxUint32
	}
	w := Work{Panels: len(panels)}
	var parts, sums []record
	for _, s := range panels {
		if int64(s.Last-s.First) <= heavy {
			parts = append(parts, record{s, spec.NoSlot})
			e.Stats.Longest = max(e.Stats.Longest, int64(s.Last-s.First))
			continue
		}
		sums = append(sums, record{s, uint32(w.Slots)})
		for _, x := range s.cut(part) {
			parts = append(parts, record{x, uint32(w.Slots)})
			e.Stats.Longest = max(e.Stats.Longest, int64(x.Last-x.First))
			w.Slots++
		}
	}
	w.Parts, w.Heavy = len(parts), len(sums)
	e.Stats.Sums = int64(w.Slots * v.Tile.Panel)
	records := parts
	if w.Heavy > 0 {
		for _, s := range panels {
			records = append(records, record{s, spec.NoSlot})
		}
		records = append(append(records, sums...), record{slot: uint32(w.Slots)})
	}
	w.Places = recordWords * len(records)
	if uint64(w.Places)+uint64(len(rows)) > math.MaxUint32 {
		return nil, fmt.Errorf("%w for a list of panels", formats.ErrTooLarge)
	}
	e.Work, e.Items = w, int64(w.Parts)
	list := make([]uint32, 0, w.Places+len(rows))
	for _, r := range records {
		list = append(list, r.First, r.Last, r.Rows, r.slot)
	}
	return append(list, rows...), nil
}

// cut cuts a panel into as few parts of part vectors, or up to a mask word more, as there can be, all about as long.
func (s Span) cut(part uint32) (parts []Span) {
	n := spec.Ceil(s.Last-s.First, part)
	each := spec.Ceil(spec.Ceil(s.Last-s.First, n), maskWord) * maskWord
	for first := s.First; first < s.Last; first += min(each, s.Last-first) {
		parts = append(parts, Span{first, first + min(each, s.Last-first), s.Rows})
	}
	return parts
}

// mostWorkspace is how many bytes the sums of parts may take: where C has very many columns, panels need not be cut.
const mostWorkspace = 1 << 28

// Launch lays a problem out by a work list: its records, in the grid that lay returns for a number of them, and the
// sums of heavy panels. block makes a format's parameters.
func Launch(v *spec.Variant, e *spec.Packed, p spec.Problem, lay func(records int) ([3]uint32, error),
	block func(Params) []byte) (spec.Launch, error) {
	w := e.Work.(Work)
	l := spec.Launch{Workspace: int64(w.Slots) * int64(ShapeOf(v).V) * int64(sumsLD(p.N)) * 4}
	quads := int64(ShapeOf(v).V) * int64(sumsLD(p.N)/4)
	sums, err := spec.Fold(int64(w.Heavy), int(min(math.MaxInt32, spec.Ceil(quads, int64(v.Local[0])))))
	whole := w.Heavy > 0 && (err != nil || l.Workspace > mostWorkspace ||
		p.CheckBinding(v, "the workspace", l.Workspace) != nil)
	first := Params{Panels: uint32(w.Parts)}
	if whole {
		first, l.Workspace = Params{Panels: uint32(w.Panels), Start: uint32(w.Parts)}, 0
	}
	groups, err := lay(int(first.Panels))
	if err != nil {
		return l, err
	}
	l.Workspace = max(spec.NoWorkspace, l.Workspace)
	add := func(groups [3]uint32, own Params) {
		x := newParams(e, p, int(own.Panels), groups[0])
		x.Phase, x.Start = own.Phase, own.Start
		l.Passes = append(l.Passes, spec.Pass{Variant: v.For(p), Groups: groups, Params: block(x)})
	}
	add(groups, first)
	if w.Heavy > 0 && !whole {
		add(sums, Params{Phase: 1, Panels: uint32(w.Heavy), Start: uint32(w.Parts + w.Panels)})
	}
	return l, nil
}

// sumsLD is the leading dimension of a slot's rows.
func sumsLD(n int) int { return (n + 7) &^ 7 }
