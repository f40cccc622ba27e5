// Streams of twins, for twins.comp and twinwide.comp: values are words of two neighbouring columns of a row. One or
// both are entries. Each makes a register of the operand, so that half as many are taken as there are places, with half
// as many bits of a mask.
//
// It is layout Places of package formats/lanestream, of a matrix of twins. A step's mask is one word for each lane and
// 16 columns of twins, and in each row of values those of the lanes' first chains come before those of the second ones.
// Two bits for each value say which halves are entries. The COO remainder has entries of the matrix itself. Steps of
// the encoder have two words; where segments of one word are wanted, so that they take less shared memory, the second
// one is left empty and not stored.

package lanestream

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	twinCols  = 32           // columns of a word of the mask
	wordTwins = twinCols / 2 // twins of it
)

// twinKind is the kernels for segments up to a number of rows of values. A multiprocessor's shared memory (on an H200
// 48 KB for all its workgroups) limits the subgroups that it has at a time.
type twinKind struct {
	piece uint32 // rows
	subs  uint32 // subgroups of a workgroup
}

// The kinds for up to 20 % of entries, and up to 11. With 16 subgroups there are no registers for the sums of 32
// columns: these are done in two blocks.
var shortTwins, longTwins = twinKind{piece: 6, subs: 16}, twinKind{piece: 7, subs: 12}

// room is the rows of values that a subgroup has in shared memory: two segments, and what lanes read past the second
// one when it moves.
func (k twinKind) room() uint32 { return max(2*k.piece, k.piece+2*spec.Ceil(k.piece, 2)) }

// few is twins.comp.
func (k twinKind) few(cols uint32) *spec.Variant {
	tiles := cols / 8
	all := k.subs * max(2*k.room(), lanestream.GroupRows*(cols+4)/tiles/32) // or sums
	v := k.variant("twins.comp", "twins.spv", cols, 32*k.subs, all*128, []spec.Const{
		{Name: "SUBS", ID: 1, Value: k.subs}, {Name: "TILES", ID: 2, Value: tiles}, {Name: "ROOM", ID: 3, Value: k.room()},
		{Name: "PIECE", ID: 4, Value: k.piece},
		{Name: "ROWS", ID: 5, Value: all}, spec.Define("STREAMS", k.subs),
	})
	v.Tile = columns(rows, cols)
	return lanesSizes(sizes{streams: k.subs, twins: k}).sized(v, twinsKind)
}

// wide is twinwide.comp.
func (k twinKind) wide() *spec.Variant {
	const subs, cols = 4, 128
	all := max(2*2*k.room()+twinCols*cols*2/128, subs*16*(64+4)*4/128)
	v := k.variant("twinwide.comp", "twinwide.spv", cols, 32*subs, all*128, []spec.Const{
		{Name: "ROOM", ID: 1, Value: k.room()}, {Name: "PIECE", ID: 2, Value: k.piece}, {Name: "ROWS", ID: 3, Value: all},
		spec.Define("GROUPS", 2),
	})
	v.Tile = columns(2*rows, cols)
	return lanesSizes(sizes{groups: 2, twins: k}).sized(v, twinsWideKind)
}

func (k twinKind) variant(source, blob string, cols, local, shared uint32, consts []spec.Const) *spec.Variant {
	return spec.LanesVariant(fmt.Sprintf("vulkan_twins%d_n%d", k.piece, cols), local/32, shared, spec.Variant{
		Consts: append([]spec.Const{
			spec.Define("COLS", cols), spec.Define("TWINS", 1), spec.Define("MOST", k.piece),
			spec.Define("WARPS", 8), spec.Define("CLUSTER", 1), spec.Define("BLOCKS", 132), spec.Define("SHORT_PIECES", 1),
		}, consts...),
		Unit: spec.Unit{Source: source, Blob: blob},
	})
}

// twins is the variants, the narrowest of each kind first.
var twins = func() (vs []*spec.Variant) {
	for _, k := range []twinKind{shortTwins, longTwins} {
		for _, cols := range widths {
			if cols < 32 || k.subs < 16 {
				vs = append(vs, k.few(cols))
			}
		}
		vs = append(vs, k.wide())
	}
	return vs
}()

// twinsFor returns the variant for a matrix and a number of columns. twins.comp takes B's elements by numbers below
// 2^31.
func twinsFor(v *spec.Variant, f *twinned, p spec.Problem) *spec.Variant {
	n := p.N
	if int64(p.K)*int64(p.LDB) >= 1<<31 {
		n = math.MaxInt
	}
	for _, x := range twins {
		if sizesOf(x).twins != f.kind || x.Kind == twinsWideKind && n <= 32 {
			continue
		}
		if v = x; x.Tile.Cols >= n {
			break
		}
	}
	return v
}

// twinOptions say how twins are packed.
type twinOptions struct {
	parts int // of a group of rows
	words int // of the mask, for each step of the encoder: 1 or 2
	steps int // of a segment
	kind  twinKind
}

// twinOptionsFor returns the options that suit a matrix of these rows in which each element is an entry with this
// probability: segments that just fit in a kind's shared memory, or nearly so. With more entries twins take more bytes
// and shared memory than places save instructions.
func twinOptionsFor(rows int, density float64) (o twinOptions, ok bool) {
	mean := wordTwins * density * (2 - density) // rows of values that a word takes
	switch {
	case mean <= 1.65:
		o = twinOptions{words: 2, steps: 2, kind: longTwins}
	case mean <= 3.3:
		o = twinOptions{words: 2, steps: 1, kind: longTwins}
	case mean <= 5.8:
		o = twinOptions{words: 1, steps: 1, kind: shortTwins}
	default:
		return o, false
	}
	return o.sharing(rows), true
}

// sharing sets the parts, so that the subgroups of a workgroup share the groups that it gets where every multiprocessor
// of a large GPU has one.
func (o twinOptions) sharing(rows int) twinOptions {
	const multiprocessors = 132
	each := max(1, spec.Ceil(spec.Ceil(rows, lanestream.GroupRows), multiprocessors))
	o.parts = max(1, int(o.kind.subs)/min(int(o.kind.subs), each))
	return o
}

// packTwins packs a matrix of this density, or returns nil if places suit it better.
func packTwins(a *formats.CSR[half.F16], density float64) (*spec.Packed, error) {
	o, ok := twinOptionsFor(a.Rows, density)
	if !ok {
		return nil, nil
	}
	e, err := packTwinsWith(a, o)
	if errors.Is(err, formats.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	const most = 16 // one of 16 entries may be in the COO remainder; else parts of the matrix are denser
	if most*e.Format.(*twinned).rest > len(a.Val) {
		return nil, nil
	}
	return e, nil
}

// packTwinsWith packs a matrix.
func packTwinsWith(a *formats.CSR[half.F16], o twinOptions) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	t := gatherTwins(a, o.words)
	most := int(o.kind.piece)
	m, err := lanestream.Encode(t.numbers, lanestream.Options{
		Parts: o.parts, PieceSteps: o.steps, Window: 2, RingRows: 3 * (most + 2*o.steps), // see lanestream.MaxPieceRows
	})
	if err != nil {
		return nil, err
	}
	values, stored := t.valuesOf(m)
	restPtr, restCol, rest := t.splitRest(m, o.words)
	index := make([]uint32, 0, len(m.StreamPtr)+len(m.PieceRows)+len(restPtr)+len(restCol)+len(stored))
	for _, x := range [][]uint32{m.StreamPtr, m.PieceRows, restPtr, restCol, stored} {
		index = append(index, x...)
	}
	f := newTwinned(a, o, m.Shape())
	f.rest = len(rest)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Items: int64(m.Groups()), Format: f, Panel: rows,
		Arrays: []spec.Array{
			spec.NewArray("index", index), spec.NewArray("mask", twinMask(m, o.words)),
			spec.NewArray("values", append(backend.View[half.F16](backend.Bytes(values)), rest...)),
		},
		Stats: formats.Stats{
			Slots: int64(2*len(values) + len(rest)), MACs: int64(f.shape.Groups*f.shape.Pieces*f.shape.PieceSteps)*twinCols*rows + int64(len(rest)),
			Gathers: int64(f.shape.Groups)*int64(a.Cols) + int64(len(rest)), Staged: true,
		},
	}
	e.Stats.StoredBytes = e.Bytes() - 4*int64(len(stored)) // read only where B is not finite
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return e, nil
}

// twinsOf is a matrix of twins: the pattern, whose values are the numbers of twins plus 1, and what these are.
type twinsOf struct {
	numbers *formats.CSR[float32]
	values  []uint32
	has     []uint8 // bit e: half e is an entry
}

// gatherTwins finds the twins of a matrix. Where the encoder is to leave the second word of a step empty, their columns
// leave it out.
func gatherTwins(a *formats.CSR[half.F16], words int) twinsOf {
	p := &formats.CSR[float32]{Rows: a.Rows, Cols: spec.Ceil(a.Cols, twinCols) * 2 / words * wordTwins,
		RowPtr: pairPtr(a.RowPtr, a.ColIdx)}
	n := p.RowPtr[a.Rows]
	t := twinsOf{numbers: p, values: make([]uint32, n), has: make([]uint8, n)}
	p.ColIdx, p.Val = make([]int32, n), make([]float32, n)
	spec.Shares(a.Rows, rows, 0, func(first, last int) {
		for i := first; i < last; i++ {
			at, last := p.RowPtr[i]-1, int32(-1)
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				c := a.ColIdx[e]
				if c>>1 != last {
					last = c >> 1
					at++
					p.ColIdx[at], p.Val[at] = last, math.Float32frombits(uint32(at+1))
					if words == 1 {
						p.ColIdx[at] += last / wordTwins * wordTwins
					}
				}
				t.values[at] |= uint32(a.Val[e]) << (16 * (c & 1))
				t.has[at] |= 1 << (c & 1)
			}
		}
	})
	return t
}

// valuesOf returns the values in the order of the kernels, and which of their halves are entries.
func (t *twinsOf) valuesOf(m *lanestream.Matrix[float32]) (values, stored []uint32) {
	slots := m.Slots()
	values, stored = make([]uint32, slots), make([]uint32, spec.Ceil(slots, 16))
	const some = 1 << 16 // that are done at a time
	spec.Shares(slots, some, 0, func(first, last int) {
		for to := first; to < last; to++ {
			c := to % chains
			if x := math.Float32bits(m.Values[to-c+c%32*2+c/32]); x != 0 { // else a filler
				values[to] = t.values[x-1]
				stored[to/16] |= uint32(t.has[x-1]) << (2 * (to % 16))
			}
		}
	})
	return values, stored
}

// twinMask returns the mask, word after word.
func twinMask(m *lanestream.Matrix[float32], words int) []uint32 {
	const lanes = chains / 2
	mask := make([]uint32, len(m.Mask)/2*words)
	spec.Shares(len(m.Mask)/(2*lanes), 1, 0, func(n, _ int) {
		from, to := m.Mask[2*lanes*n:], mask[words*lanes*n:]
		for l := range lanes {
			for w := range words {
				to[w*lanes+l] = from[2*l+w]
			}
		}
	})
	return mask
}

// splitRest returns the remainder's entries, one by one.
func (t *twinsOf) splitRest(m *lanestream.Matrix[float32], words int) (ptr, cols []uint32, values []half.F16) {
	ptr = make([]uint32, m.Rows+1)
	for i := range m.Rows {
		at, numbers := m.Rest(i)
		for k, c := range at {
			if words == 1 {
				c -= c / (2 * wordTwins) * wordTwins
			}
			x := math.Float32bits(numbers[k]) - 1
			for e := range uint32(2) {
				if t.has[x]>>e&1 != 0 {
					cols, values = append(cols, 2*c+e), append(values, half.F16(t.values[x]>>(16*e)))
				}
			}
		}
		ptr[i+1] = uint32(len(cols))
	}
	return ptr, cols, values
}

// twinned is a matrix as it was before it was packed as twins, and how it was: what new values take. Files do not hold
// it.
type twinned struct {
	twinOptions
	shape      lanestream.Shape // of the streams
	rest       int              // entries of it
	rows, cols int
	pattern    []uint32 // a bit for each element, ⌈cols/32⌉ words a row
	values     []half.F16
}

func newTwinned(a *formats.CSR[half.F16], o twinOptions, s lanestream.Shape) *twinned {
	s.PieceSteps *= o.words
	f := &twinned{twinOptions: o, shape: s, rows: a.Rows, cols: a.Cols, values: a.Val}
	f.pattern = make([]uint32, a.Rows*f.stride())
	spec.Shares(a.Rows, rows, 0, func(first, last int) {
		for i := first; i < last; i++ {
			of := f.pattern[i*f.stride():]
			for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				of[c/32] |= 1 << (c % 32)
			}
		}
	})
	return f
}

func (f *twinned) stride() int { return spec.Ceil(f.cols, 32) }

// Shape returns the shape of the streams, whose steps are words of the mask.
func (f *twinned) Shape() lanestream.Shape { return f.shape }

// Format returns "twins", which is no format of files.
func (f *twinned) Format() string { return "twins" }

// Dims returns the matrix's size.
func (f *twinned) Dims() (rows, cols int) { return f.rows, f.cols }

// Type returns F16.
func (f *twinned) Type() dtype.Type { return dtype.F16 }

// NNZ returns the number of entries.
func (f *twinned) NNZ() (n int64) {
	for _, x := range f.pattern {
		n += int64(bits.OnesCount32(x))
	}
	return n
}

// Validate checks the arrays' sizes.
func (f *twinned) Validate() error {
	if len(f.pattern) != f.rows*f.stride() || int64(len(f.values)) != f.NNZ() {
		return fmt.Errorf("twins: %d words of a pattern and %d values for %d×%d", len(f.pattern), len(f.values), f.rows,
			f.cols)
	}
	return nil
}

// Sparse returns the matrix.
func (f *twinned) Sparse() formats.Sparse {
	a := &formats.CSR[half.F16]{Rows: f.rows, Cols: f.cols, RowPtr: make([]int64, f.rows+1),
		ColIdx: make([]int32, 0, len(f.values)), Val: f.values}
	for i := range f.rows {
		for w, x := range f.pattern[i*f.stride():][:f.stride()] {
			for ; x != 0; x &= x - 1 {
				a.ColIdx = append(a.ColIdx, int32(32*w+bits.TrailingZeros32(x)))
			}
		}
		a.RowPtr[i+1] = int64(len(a.ColIdx))
	}
	return a
}

// Fields names the arrays.
func (f *twinned) Fields() formats.Fields {
	return formats.Fields{Version: 1, Rows: &f.rows, Cols: &f.cols,
		Arrays: []formats.Field{formats.NewField("pattern", &f.pattern), formats.NewField("values", &f.values)}}
}

// PanelRows returns 64.
func (f *twinned) PanelRows() int { return rows }

// PanelCols appends all columns to dst, which a group's steps fetch.
func (f *twinned) PanelCols(dst []uint32, _ int) []uint32 {
	for c := range f.cols {
		dst = append(dst, uint32(c))
	}
	return dst
}

// WithValues returns the matrix with other values, by rows. It shares the pattern; so does WithoutValues.
func (f *twinned) WithValues(values []half.F16) formats.Encoded {
	g := *f
	g.values = values
	return &g
}

// WithoutValues returns what WithValues needs.
func (f *twinned) WithoutValues() formats.Encoded { return f.WithValues(nil) }

// adopt packs a matrix that is encoded already, or was packed with other values.
func adopt(m formats.Encoded, v *spec.Variant) (*spec.Packed, error) {
	f, ok := m.(*twinned)
	if !ok {
		return adoptStreams(m, v)
	}
	if !v.Need.Lanes {
		return nil, fmt.Errorf("kernel lanestream/%s takes no twins", v.Name)
	}
	return packTwinsWith(f.Sparse().(*formats.CSR[half.F16]), f.twinOptions)
}

// packTwinsPart packs some rows so that each is summed as within the whole matrix.
func packTwinsPart(a formats.Sparse, v *spec.Variant, whole *twinned) (*spec.Packed, error) {
	if err := v.Takes(a); err != nil {
		return nil, err
	}
	return packTwinsWith(a.(*formats.CSR[half.F16]), whole.twinOptions)
}
