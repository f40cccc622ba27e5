// Streams of twins, for twins.comp and twinwide.comp. A twin is two neighbouring columns of a row with one entry or
// two. It is one value of the stream, a word, which fills a register of the fragment. That takes half as many loads as
// single places, and a mask of half as many bits.
//
// The streams are layout Places of package formats/lanestream, for a matrix whose elements are twins. A step's mask has
// one word for each lane and 16 columns of twins. In each row of values the lanes' first chains come before all second
// chains. Two bits for each value say which halves are entries. The COO remainder has entries of the matrix itself. A
// step of the encoder has two words of mask for each lane. If segments of one word are wanted, because they take less
// shared memory, the second word is left empty and not stored.

package lanestream

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

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

// twinKind is the kernels for segments of up to a number of rows of values. A multiprocessor's shared memory (48 KB for
// all its workgroups on an H200) limits how many subgroups it has at a time.
type twinKind struct {
	segment uint32 // rows
	subs    uint32 // subgroups of a workgroup
}

// shortTwins is for densities up to 20 %, longTwins for up to 11 %. With 16 subgroups there are no registers for the
// sums of 32 columns: two workgroups compute them.
var shortTwins, longTwins = twinKind{segment: 6, subs: 16}, twinKind{segment: 7, subs: 12}

// room returns the rows of values of a subgroup in shared memory: two segments, and the rows that lanes read past the
// second one when it moves.
func (k twinKind) room() uint32 { return max(2*k.segment, k.segment+2*spec.Ceil(k.segment, 2)) }

// few returns the variant of twins.comp.
func (k twinKind) few(cols uint32) *spec.Variant {
	tiles := cols / 8
	all := k.subs * max(2*k.room(), lanestream.GroupRows*(cols+4)/tiles/32) // or sums
	v := k.variant("twins.comp", "twins.spv", cols, 32*k.subs, all*128, []spec.Const{
		{Name: "SUBS", ID: 1, Value: k.subs}, {Name: "TILES", ID: 2, Value: tiles}, {Name: "ROOM", ID: 3, Value: k.room()},
		{Name: "SEGMENT", ID: 4, Value: k.segment},
		{Name: "ROWS", ID: 5, Value: all}, spec.Define("STREAMS", k.subs),
	})
	v.Tile = columns(rows, cols)
	return lanesSizes(sizes{streams: k.subs, twins: k}).sized(v, twinsKind)
}

// wide returns the variant of twinwide.comp.
func (k twinKind) wide() *spec.Variant {
	const subs, cols = 4, 128
	all := max(2*2*k.room()+twinCols*cols*2/128, subs*16*(64+4)*4/128)
	v := k.variant("twinwide.comp", "twinwide.spv", cols, 32*subs, all*128, []spec.Const{
		{Name: "ROOM", ID: 1, Value: k.room()}, {Name: "SEGMENT", ID: 2, Value: k.segment}, {Name: "ROWS", ID: 3, Value: all},
		spec.Define("GROUPS", 2),
	})
	v.Tile = columns(2*rows, cols)
	return lanesSizes(sizes{groups: 2, twins: k}).sized(v, twinsWideKind)
}

func (k twinKind) variant(source, blob string, cols, local, shared uint32, consts []spec.Const) *spec.Variant {
	return spec.LanesVariant(fmt.Sprintf("vulkan_twins%d_n%d", k.segment, cols), local/32, shared, spec.Variant{
		Consts: append([]spec.Const{
			spec.Define("COLS", cols), spec.Define("TWINS", 1), spec.Define("MOST", k.segment),
			spec.Define("WARPS", 8), spec.Define("CLUSTER", 1), spec.Define("BLOCKS", 132), spec.Define("SHORT_SEGMENTS", 1),
		}, consts...),
		Unit: spec.Unit{Source: source, Blob: blob},
	})
}

// twins is the variants, of each kind the one with the fewest columns first.
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

// twinsFor returns the variant for a matrix and a problem. twins.comp takes only a B of less than 2^31 elements.
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

// twinOptions are the options of packing twins.
type twinOptions struct {
	splits int // of a group of rows
	words  int // of the mask, for each step of the encoder: 1 or 2
	steps  int // of a segment
	kind   twinKind
}

// twinOptionsFor returns the options for a matrix of these rows and this density, whose entries are spread evenly: its
// segments just fit the shared memory of a kind, or nearly. It reports false for more entries, with which twins cost
// more in bytes and shared memory than they save in instructions.
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

// sharing sets the splits: the subgroups of a workgroup, divided among the groups that it gets when every
// multiprocessor of a large GPU has one workgroup.
func (o twinOptions) sharing(rows int) twinOptions {
	const multiprocessors = 132
	each := max(1, spec.Ceil(spec.Ceil(rows, lanestream.GroupRows), multiprocessors))
	o.splits = max(1, int(o.kind.subs)/min(int(o.kind.subs), each))
	return o
}

// packTwins packs a matrix of this density, or returns nil if single places suit it better.
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
	const most = 16 // At most one of 16 entries is in the COO remainder, or the entries are not spread evenly.
	if most*e.Format.(*twinned).remainder > len(a.Val) {
		return nil, nil
	}
	return e, nil
}

// packTwinsWith packs a matrix with options.
func packTwinsWith(a *formats.CSR[half.F16], o twinOptions) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	t := gatherTwins(a, o.words)
	most := int(o.kind.segment)
	m, err := lanestream.Encode(t.numbers, lanestream.Options{
		Splits: o.splits, SegmentSteps: o.steps, Window: 2, RingRows: 3 * (most + 2*o.steps), // see lanestream.MaxSegmentRows
	})
	if err != nil {
		return nil, err
	}
	values, stored := t.valuesOf(m)
	remainderPtr, remainderCol, remainder := t.splitRemainder(m, o.words)
	index := slices.Concat(m.StreamPtr, m.SegmentRows, remainderPtr, remainderCol, stored)
	f := newTwinned(a, o, m.Shape())
	f.remainder = len(remainder)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Items: int64(m.Groups()), Format: f, Panel: rows,
		Arrays: []spec.Array{
			spec.NewArray("index", index), spec.NewArray("mask", twinMask(m, o.words)),
			spec.NewArray("values", append(backend.View[half.F16](backend.Bytes(values)), remainder...)),
		},
		Stats: formats.Stats{
			Slots: int64(2*len(values) + len(remainder)), MACs: int64(f.shape.Groups*f.shape.Segments*f.shape.SegmentSteps)*twinCols*rows + int64(len(remainder)),
			Gathers: int64(f.shape.Groups)*int64(a.Cols) + int64(len(remainder)), Staged: true,
		},
	}
	e.Stats.StoredBytes = e.Bytes() - 4*int64(len(stored)) // read only where B is not finite
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return e, nil
}

// twinsOf is a matrix of twins. The values of numbers are the twins' indices in values and has, plus 1.
type twinsOf struct {
	numbers *formats.CSR[float32]
	values  []uint32
	has     []uint8 // bit e: half e is an entry
}

// gatherTwins finds the twins of a matrix. If words is 1, it numbers their columns so that the second word of each step
// is empty.
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

// valuesOf returns the values in the order of the kernels, and two bits for each that say which halves are entries.
func (t *twinsOf) valuesOf(m *lanestream.Matrix[float32]) (values, stored []uint32) {
	slots := m.Slots()
	values, stored = make([]uint32, slots), make([]uint32, spec.Ceil(slots, 16))
	const some = 1 << 16 // values of a share of the work
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

// twinMask returns the mask in the order of the kernels: the first words of all lanes of a step, then the second ones.
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

// splitRemainder returns the COO remainder with single entries in place of twins.
func (t *twinsOf) splitRemainder(m *lanestream.Matrix[float32], words int) (ptr, cols []uint32, values []half.F16) {
	ptr = make([]uint32, m.Rows+1)
	for i := range m.Rows {
		at, numbers := m.Remainder(i)
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

// twinned is a matrix before it was packed as twins, and the options of packing it. It is kept so that the matrix can
// be packed again with new values. Files do not hold it.
type twinned struct {
	twinOptions
	shape      lanestream.Shape // of the streams
	remainder  int              // entries of the COO remainder
	rows, cols int
	pattern    []uint32 // a bit for each element, ⌈cols/32⌉ words a row
	values     []half.F16
}

func newTwinned(a *formats.CSR[half.F16], o twinOptions, s lanestream.Shape) *twinned {
	s.SegmentSteps *= o.words
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
