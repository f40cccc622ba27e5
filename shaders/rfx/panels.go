// A in panels of V rows: what the variants on matrix units of 8-bit integers multiply from.

package rfx

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/formats/tiledcsr"
	"github.com/spmmrun/spmm/shaders/spec"
)

// byPanels are the variants for panels, in their own order and in tiledcsr's.
func byPanels() []*spec.Variant {
	var vs []*spec.Variant
	all := []*spec.Variant{cudaPanels(rfx.P15, 16, 2, 4), cudaPanels(rfx.P23, 32, 1, 4), cudaPanels(rfx.P31, 16, 1, 4)}
	for _, p := range []rfx.P{rfx.P15, rfx.P23, rfx.P31} {
		for _, c := range coops {
			all = append(all, c.variant(p))
		}
	}
	for _, v := range all {
		s := *v
		s.Name = strings.Replace(v.Name, "panels", "shuffled", 1)
		s.Consts = append(slices.Clone(v.Consts), spec.Define("SHUFFLE", 1))
		x := v.Packing.(sizes)
		x.shuffled = true
		x.sized(&s, shuffledKind, uint32(v.Tile.Cols))
		vs = append(vs, v, &s)
	}
	return vs
}

// cudaPanels is panel.cu for p: panels of 8 rows, an instruction of k = step, warps a workgroup, tiles of A that
// are brought ahead.
func cudaPanels(p rfx.P, step, warps, stages uint32) *spec.Variant {
	return sizes{p: p, v: 8}.sized(spec.PTX(fmt.Sprintf("cuda_panels_p%d", p), spec.Variant{
		Entry: "rfx", Local: spec.Line(32 * warps),
		Consts: []spec.Const{
			spec.Define("BITS", uint32(p)), spec.Define("V", 8), spec.Define("STEP", step), spec.Define("WARPS", warps),
			spec.Define("STAGES", stages), spec.Define("COLS", 64),
		},
		Need: spec.Need{Shapes: []backend.MatrixShape{spec.Shape(16, 8, step, dtype.S8)}},
		Unit: spec.Unit{Source: "panel.cu"}, Shape: warps,
	}), panelsKind, 64)
}

// mostVectors is the most vectors that a segment of a panel may have: every sum of products of digits fits 32 bits,
// whatever they are.
const mostVectors = 1<<15 - rfx.Tile

// packPanels encodes a in a variant's panels of v rows; panels of more than longest vectors are done in segments. The
// words of the array rows are, behind what pack puts first,
//
//	items   5 + v words  of each segment or panel, the longest first (with B in shared memory in the panels' order):
//	                     the word of its first vector's column, its first tile and how many there are, the first row
//	                     of part, the rows of part from one of its rows to the next (0 if it is a whole panel), and
//	                     the rows of C, noRow for those there are not
//	sums    3 words      of each row in segments: itself, its first row of part, its last one + 1
//	columns              of the vectors; then those of the entries, see appendColumns
//
// longest is a multiple of rfx.Tile, at most mostVectors; 0 leaves it to longestPanel.
func packPanels[T formats.Value](a *formats.CSR[T], variant *spec.Variant, longest int) (*spec.Packed, error) {
	p, v := PrecisionOf(variant), panelRows(variant)
	if kind(variant) == Stationary {
		if err := FitsStationary(variant, a.Cols, a.Type()); err != nil {
			return nil, err
		}
		longest = mostVectors // none is in segments
	}
	ranges := rfx.Rows(a)
	m, listRanges, order, err := panels(a, ranges, variant)
	if err != nil {
		return nil, err
	}
	if longest == 0 {
		longest = longestPanel(len(m.ColInd), len(m.VecPtr)-1)
	}
	digits, err := rfx.PackPanels(m, listRanges, p)
	if err != nil {
		return nil, err
	}
	words := rowWords(a.RowPtr, ranges)
	items, sums := splitPanels(m.VecPtr, order, v, longest)
	if kind(variant) == Stationary { // a warp's panels lie one behind the other
		slices.SortFunc(items, func(x, y item) int { return cmp.Compare(x.panel, y.panel) })
	}
	if int64(len(words))+int64(len(items)*(itemWords+v)+len(sums)+len(m.ColInd)) > math.MaxInt32 {
		return nil, fmt.Errorf("kernel rfx: %d vectors do not fit 31-bit offsets: %w", len(m.ColInd), backend.ErrUnsupported)
	}
	f := Split{
		P: p, Type: a.Type(), V: v, Items: uint32(len(items)),
		Split: spec.Split{Longest: uint32(longest), Rows: uint32(len(sums) / 3)},
	}
	if kind(variant) == Stationary {
		f.Longest, f.Rows = 0, 0
	}
	vectors := uint32(len(words) + len(items)*(itemWords+v) + len(sums))
	if kind(variant) == Stationary { // columns are loaded by fours
		sums = append(sums, make([]uint32, -vectors&3)...)
		vectors += -vectors & 3
	}
	for _, t := range items {
		words = append(words, vectors+t.first, t.first/rfx.Tile, (t.last-t.first)/rfx.Tile, t.part, t.of)
		for r := range v {
			words = append(words, order[t.panel*v+r])
		}
		f.Slots += pick(t.of > 0, uint32(v), 0)
	}
	words = append(append(words, sums...), m.ColInd...)
	read := 4*len(words) + len(digits) // entries themselves and their columns are not read where all are finite
	words, f.Columns = appendColumns(words, a.ColIdx)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Format: f,
		Arrays: []spec.Array{
			spec.NewArray("rows", words),
			spec.NewArray("ints", digits),
			spec.NewArray("values", a.Val),
		},
		Stats: formats.Stats{
			StoredBytes: int64(read), Slots: int64(len(m.Values)), MACs: int64(len(m.Values)), Gathers: int64(len(m.ColInd)),
		},
		Items: int64(len(items)),
	}
	for _, t := range items {
		e.Stats.Longest = max(e.Stats.Longest, int64(t.last-t.first))
	}
	if len(m.Values) > 0 {
		e.Stats.Fill = float64(a.NNZ()) / float64(len(m.Values))
	}
	return e, nil
}

// panels returns a in panels as a variant has them, the ranges of their rows, and which rows these are.
func panels[T formats.Value](a *formats.CSR[T], ranges []rfx.Range,
	variant *spec.Variant) (m *cvse.Matrix[T], listRanges []rfx.Range, order []uint32, err error) {
	if order, err = rowOrder(a, variant); err != nil {
		return nil, nil, nil, fmt.Errorf("kernel rfx: %w", err)
	}
	if kind(variant) == Shuffled {
		a, ranges = reordered(a, ranges, order)
	}
	if m, err = cvse.Encode(a, cvse.Options{V: panelRows(variant), Align: rfx.Tile}); err != nil {
		return nil, nil, nil, fmt.Errorf("kernel rfx: %w: %w", err, backend.ErrUnsupported)
	}
	for i := range len(m.VecPtr) - 1 {
		spreadBanks(m, int(m.VecPtr[i]), int(m.VecPtr[i+1]))
	}
	return m, ranges, order, nil
}

// Slots returns the entries whose digits kernel requantise is to write for a variant, in the order of its argument: for
// each tile of a panel, row and vector, the entry's number plus 1, or 0; for variants that take strips or pairs the
// bytes at which the entries' digits begin; for 2:4 residues rfx.Sparse24's places. It is nil for rows, dense residues
// and digits.
func Slots(a formats.Sparse, variant *spec.Variant) ([]uint32, error) {
	v := panelRows(variant)
	if k := kind(variant); k.ByRows() || k == Residues || k == Digits || a.NNZ() == 0 {
		return nil, nil
	}
	rows, cols := a.Dims()
	ptr, idx := a.Pattern()
	if kind(variant) == SparseResidues {
		return rfx.NewSparse24(ptr, idx, planesLayout(rows, cols)).At, nil
	}
	if kind(variant) == InStrips {
		return stripSlots(&formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx,
			Val: make([]float32, len(idx))}, variant)
	}
	if kind(variant) == InPairs {
		return slotsOfPairs(rows, cols, ptr, idx, variant)
	}
	numbers := make([]uint32, len(idx))
	for i := range numbers {
		numbers[i] = uint32(i) + 1
	}
	numbered := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx,
		Val: backend.View[float32](backend.Bytes(numbers))}
	m, _, _, err := panels(numbered, make([]rfx.Range, rows), variant)
	if err != nil {
		return nil, err
	}
	packed := backend.View[uint32](backend.Bytes(m.Values))
	slots := make([]uint32, len(packed))
	for i, e := range packed {
		vector, row := i/v, i%v
		slots[(vector/rfx.Tile*v+row)*rfx.Tile+vector%rfx.Tile] = e
	}
	return slots, nil
}

// rowOrder returns the rows of a as panels have them, noRow where there is none.
func rowOrder[T formats.Value](a *formats.CSR[T], variant *spec.Variant) ([]uint32, error) {
	v := panelRows(variant)
	if kind(variant) == Shuffled {
		m, err := tiledcsr.Encode(a, tiledcsr.Options{Height: v})
		if err != nil {
			return nil, err
		}
		return m.RowIdx, nil
	}
	order := make([]uint32, cvse.Panels(a.Rows, v)*v)
	for i := range order {
		order[i] = pick(i < a.Rows, uint32(i), noRow)
	}
	return order, nil
}

// reordered returns a's rows and their ranges in an order, empty ones for noRow.
func reordered[T formats.Value](a *formats.CSR[T], ranges []rfx.Range, order []uint32) (*formats.CSR[T], []rfx.Range) {
	out := &formats.CSR[T]{Rows: len(order), Cols: a.Cols, RowPtr: make([]int64, 1, len(order)+1)}
	outRanges := make([]rfx.Range, len(order))
	for i, row := range order {
		if row != noRow {
			lo, hi := a.RowPtr[row], a.RowPtr[row+1]
			out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:hi]...), append(out.Val, a.Val[lo:hi]...)
			outRanges[i] = ranges[row]
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out, outRanges
}

// spreadBanks puts a panel's vectors first to last in an order in which quarter q of each tile has columns that
// are q mod 4, as far as there are enough. m's mask is not touched.
func spreadBanks[T formats.Value](m *cvse.Matrix[T], first, last int) {
	const quarter = rfx.Tile / 4
	cols := slices.Clone(m.ColInd[first:last])
	values := slices.Clone(m.Values[first*m.V : last*m.V])
	var banks [4][]int
	for i, c := range cols {
		banks[c%4] = append(banks[c%4], i)
	}
	for at := first; at < last; at++ {
		q := (at - first) / quarter % 4
		if len(banks[q]) == 0 {
			for other := range banks {
				if len(banks[other]) > len(banks[q]) {
					q = other
				}
			}
		}
		i := banks[q][0]
		banks[q] = banks[q][1:]
		m.ColInd[at] = cols[i]
		copy(m.Values[at*m.V:][:m.V], values[i*m.V:])
	}
}

func pick[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}

// itemWords are an item's words besides its rows of C.
const itemWords = 5

// noRow stands for a row past the last.
const noRow = math.MaxUint32

// item is a panel or a segment of one: vectors first to last.
type item struct {
	panel       int
	first, last uint32
	part, of    uint32
}

// splitPanels cuts panels of more than longest vectors into segments. It returns all items, and the rows in segments.
func splitPanels(ptr, order []uint32, v, longest int) (items []item, sums []uint32) {
	part := uint32(0)
	for p := range len(ptr) - 1 {
		first, last := ptr[p], ptr[p+1]
		if int(last-first) <= longest {
			items = append(items, item{panel: p, first: first, last: last})
			continue
		}
		n := (last - first + uint32(longest) - 1) / uint32(longest)
		for i := range n {
			from := first + i*uint32(longest)
			items = append(items, item{p, from, min(from+uint32(longest), last), part + i, n})
		}
		for r := range uint32(v) {
			if row := order[p*v+int(r)]; row != noRow {
				sums = append(sums, row, part+r*n, part+(r+1)*n)
			}
		}
		part += uint32(v) * n
	}
	slices.SortStableFunc(items, func(x, y item) int { return cmp.Compare(y.last-y.first, x.last-x.first) })
	return items, sums
}

// longestPanel decides which panels are done in segments: see longestRow.
func longestPanel(vectors, panels int) int {
	const (
		least  = 1024
		enough = 4096
	)
	l := max(least, min(4*vectors/max(1, panels), vectors/enough))
	return min(mostVectors, (l+rfx.Tile-1)/rfx.Tile*rfx.Tile)
}
