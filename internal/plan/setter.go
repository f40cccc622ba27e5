// Bringing new values to their places in a matrix on the device, by kernel values.

package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/values"
)

// setter knows the places of a matrix's entries. It is made when values are first set.
type setter struct {
	pieces []piece
	// staging holds values from the host, at most a buffer full at a time.
	staging backend.Buffer
	room    int64 // values in it

	kept [4]setting
	next int // which to replace next
}

// piece is a run of the slots of a part's array.
type piece struct {
	dst backend.Buffer
	// Slots hold the entries from number first on, in their order; or a map of some groups from base on says which do; or
	// the slots of a number of entries are listed, in groups, or, as a run, begin with first: see package values.
	slots, first int64
	groups       backend.Buffer
	sources      backend.Buffer
	count, base  int64
	entries      int64
	run          bool
	full         int
}

// setting is the launches that bring the values of a tensor to their places.
type setting struct {
	values   *tensor.Tensor
	launches []backend.Launch
}

func (s *setter) close() error {
	var errs []error
	for _, p := range s.pieces {
		for _, b := range []backend.Buffer{p.groups, p.sources} {
			if b != nil {
				errs = append(errs, b.Close())
			}
		}
	}
	if s.staging != nil {
		errs = append(errs, s.staging.Close())
	}
	return cmp.Or(errs...)
}

// settleSetter makes the setter if there is none yet.
func (m *resident) settleSetter(ctx context.Context, g *given) (*setter, error) {
	if m.setter != nil {
		return m.setter, nil
	}
	s, first := &setter{}, int64(0)
	for i := range m.parts {
		if err := m.addPieces(ctx, s, &m.parts[i], first, g.numbers()); err != nil {
			return nil, cmp.Or(err, s.close())
		}
		first += m.parts[i].enc.NNZ
	}
	m.setter = s
	return s, nil
}

// addPieces adds those of a part, whose first entry has number first. number is what given.numbers returns.
func (m *resident) addPieces(ctx context.Context, s *setter, pt *part, first int64, number []uint32) error {
	if err := ctx.Err(); err != nil || pt.enc.NNZ == 0 {
		return err
	}
	packed, ok := pt.enc.Format.(formats.Encoded)
	lead := 0
	if split, is := pt.enc.Format.(spec.Split); is {
		lead = split.Lead
	}
	if !ok && number == nil && lead == 0 {
		s.pieces = append(s.pieces, piece{dst: pt.bufs[m.ordered()], slots: pt.enc.NNZ, first: first, full: values.FullQuads})
		return nil
	}
	at := places{array: m.ordered(), full: values.FullQuads}
	if ok {
		var err error
		if at, err = m.places(packed, pt.enc.NNZ); err != nil {
			return err
		}
	} else {
		at.entries = make([]uint32, lead+int(pt.enc.NNZ))
		for i := range at.entries[lead:] {
			at.entries[lead+i] = uint32(i) + 1
		}
	}
	if number == nil && at.inOrder(pt.enc.NNZ) {
		s.pieces = append(s.pieces, piece{dst: pt.bufs[at.array], slots: pt.enc.NNZ, first: first, full: at.full})
		return nil
	}
	v, err := values.Variant(m.dev.Caps(), m.operand, m.operand)
	if err != nil {
		return err
	}
	if values.Listed(v) {
		return m.addListed(ctx, s, pt.bufs[at.array], at, first, number)
	}
	return m.addMapped(ctx, s, pt.bufs[at.array], at, first, number)
}

// ordered returns which array of a format that has no matrix of its own holds the values, in the order of the entries.
func (m *resident) ordered() int { return m.kern.Arg("values") }

// places tells where a packed array holds entries.
type places struct {
	array   int      // which
	entries []uint32 // of each slot the number of the entry that it holds, plus 1; 0: none
	full    int      // see package values
}

// inOrder tells whether the first n slots hold the entries in their order.
func (at *places) inOrder(n int64) bool {
	for i, e := range at.entries[:n] {
		if e != uint32(i)+1 {
			return false
		}
	}
	return true
}

// digits are the numbers that elements of 16 bits hold, 0 excepted.
const digits = 1<<16 - 1

// places finds the slots of a packed matrix of n entries: it packs the matrix with numbers in place of values, and with
// zeros, and looks where these differ. No format looks at values.
func (m *resident) places(packed formats.Encoded, n int64) (at places, err error) {
	zero, err := m.packWith(packed, n, func(int64) uint32 { return 0 })
	if err != nil {
		return at, err
	}
	half := m.operand.Size() == 2
	low, err := m.packWith(packed, n, func(i int64) uint32 {
		if half {
			i %= digits
		}
		return uint32(i) + 1
	})
	if err != nil {
		return at, err
	}
	at.array = slices.IndexFunc(low, func(a spec.Array) bool { return string(a.Data) != string(data(zero, a.Name)) })
	if at.array < 0 {
		return at, fmt.Errorf("format %s has the same arrays for all values", packed.Format())
	}
	name, found := low[at.array].Name, int64(0)
	if half {
		high, err := m.packWith(packed, n, func(i int64) uint32 { return uint32(i/digits) + 1 })
		if err != nil {
			return at, err
		}
		found = at.find16(backend.View[uint16](data(zero, name)), backend.View[uint16](data(low, name)), backend.View[uint16](data(high, name)))
	} else if m.operand == dtype.F64 {
		found = findWords(&at, backend.View[uint64](data(zero, name)), backend.View[uint64](data(low, name)))
	} else {
		found = findWords(&at, backend.View[uint32](data(zero, name)), backend.View[uint32](data(low, name)))
	}
	if found != n {
		return at, fmt.Errorf("format %s: %d of %d entries found in its arrays", packed.Format(), found, n)
	}
	return at, nil
}

// data returns the array of a name.
func data(arrays []spec.Array, name string) []byte {
	return arrays[slices.IndexFunc(arrays, func(a spec.Array) bool { return a.Name == name })].Data
}

// find16 sets entries and full, given the array with zeros in place of values, and with the low and high digits of the
// entries' numbers, each plus 1. It returns how many entries it found. findWords does so for numbers plus 1.
func (at *places) find16(zero, low, high []uint16) (found int64) {
	at.entries = make([]uint32, len(zero))
	for s, x := range low {
		if x != zero[s] {
			at.entries[s] = uint32(x) + uint32(high[s]-1)*digits
			found++
		}
	}
	at.full = fullness(at.entries, zero, 8, 2)
	return found
}

func findWords[E uint32 | uint64](at *places, zero, number []E) (found int64) {
	at.entries = make([]uint32, len(zero))
	for s, x := range number {
		if x != zero[s] {
			at.entries[s] = uint32(x)
			found++
		}
	}
	at.full = fullness(at.entries, zero, 4, 1)
	return found
}

// fullness tells how far slots beside those of entries are zero: see package values. quad and word are the slots of four
// words and of a word.
func fullness[E uint16 | uint32 | uint64](entries []uint32, zero []E, quad, word int) int {
	alone := func(together int) bool { // in runs of so many slots are only entries and zeros
		for s := 0; s < len(entries); s += together {
			held, other := uint32(0), E(0)
			for i := s; i < min(s+together, len(entries)); i++ {
				held |= entries[i]
				other |= zero[i]
			}
			if held != 0 && other != 0 {
				return false
			}
		}
		return true
	}
	switch {
	case alone(quad):
		return values.FullQuads
	case alone(word):
		return values.FullWords
	}
	return values.FullNone
}

// packWith returns the arrays of a packed matrix whose n entries have values of these bits.
func (m *resident) packWith(packed formats.Encoded, n int64, bits func(i int64) uint32) ([]spec.Array, error) {
	var err error
	switch m.operand {
	case dtype.F16:
		packed, err = withBits(packed, n, func(i int64) half.F16 { return half.F16(bits(i)) })
	case dtype.BF16:
		packed, err = withBits(packed, n, func(i int64) half.BF16 { return half.BF16(bits(i)) })
	case dtype.F64:
		packed, err = withBits(packed, n, func(i int64) float64 { return math.Float64frombits(uint64(bits(i))) })
	default:
		x := make([]uint32, n)
		for i := range x {
			x[i] = bits(int64(i))
		}
		packed, err = withValues(packed, backend.View[float32](backend.Bytes(x)))
	}
	if err != nil {
		return nil, err
	}
	if m.kern.Adopt == nil {
		return nil, fmt.Errorf("format %s takes no new values: %w", packed.Format(), backend.ErrUnsupported)
	}
	e, err := m.kern.Adopt(packed, m.variant)
	if err != nil {
		return nil, err
	}
	return e.Arrays, nil
}

func withBits[T formats.Value](packed formats.Encoded, n int64, bits func(i int64) T) (formats.Encoded, error) {
	x := make([]T, n)
	for i := range x {
		x[i] = bits(int64(i))
	}
	return withValues(packed, x)
}

func withValues[T formats.Value](packed formats.Encoded, x []T) (formats.Encoded, error) {
	m, ok := packed.(interface {
		WithValues([]T) formats.Encoded
	})
	if !ok {
		return nil, fmt.Errorf("format %s takes no new values: %w", packed.Format(), backend.ErrUnsupported)
	}
	return m.WithValues(x), nil
}

// givenNumber returns the number that was given to an entry of a part whose first has number first: e is its place among the
// part's, plus 1, and number what given.numbers returns.
func givenNumber(e uint32, first int64, number []uint32) uint32 {
	n := uint32(first) + e - 1
	if number == nil {
		return n
	}
	return number[n]
}

// addListed adds a piece with a list of the places of entries.
func (m *resident) addListed(ctx context.Context, s *setter, dst backend.Buffer, at places, first int64, number []uint32) error {
	held := 0
	for _, e := range at.entries {
		if e != 0 {
			held++
		}
	}
	slots, sources := make([]uint32, 0, held), make([]uint32, 0, held)
	for i, e := range at.entries {
		if e != 0 {
			slots, sources = append(slots, uint32(i)), append(sources, givenNumber(e, first, number))
		}
	}
	p := piece{dst: dst, entries: int64(len(sources)), first: int64(slots[0])}
	p.run = int(slots[len(slots)-1]-slots[0]) == len(slots)-1
	var err error
	if p.sources, err = m.dev.NewWords(ctx, sources, "numbers of the entries"); err == nil && !p.run {
		p.groups, err = m.dev.NewWords(ctx, slots, "places of the entries")
	}
	s.pieces = append(s.pieces, p) // closed with the others, also after an error
	return err
}

// addMapped adds pieces with maps of the places of entries, as few as the device binds.
func (m *resident) addMapped(ctx context.Context, s *setter, dst backend.Buffer, at places, first int64, number []uint32) error {
	most := int(m.dev.Limit()/4) - values.GroupSlots // sources of a piece
	groups := spec.Ceil(len(at.entries), values.GroupSlots)
	index, sources := make([]uint32, 0, 2*groups), make([]uint32, 0, min(len(number)+len(at.entries), most+values.GroupSlots))
	base := 0
	flush := func(end int) error {
		p := piece{dst: dst, count: int64(end - base), base: int64(base), full: at.full}
		var err error
		if p.groups, err = m.dev.NewWords(ctx, index, "groups of slots"); err == nil {
			p.sources, err = m.dev.NewWords(ctx, sources, "places of the entries")
		}
		s.pieces = append(s.pieces, p) // closed with the others, also after an error
		index, sources, base = index[:0], sources[:0], end
		return err
	}
	for g := range groups {
		if len(sources) > most {
			if err := flush(g); err != nil {
				return err
			}
		}
		held, before := uint32(0), uint32(len(sources))
		for i, e := range at.entries[g*values.GroupSlots : min((g+1)*values.GroupSlots, len(at.entries))] {
			if e == 0 {
				continue
			}
			held |= 1 << i
			sources = append(sources, givenNumber(e, first, number))
		}
		index = append(index, held, before)
	}
	return flush(groups)
}

// setTensor runs the kernel. The launches for the last tensors are kept.
func (f fast) setTensor(ctx context.Context, l *launcher, g *given, v *tensor.Tensor, times int) (backend.Timing, error) {
	launches, err := f.settings(ctx, l, g, v)
	if err != nil || len(launches) == 0 {
		return backend.Timing{}, err
	}
	if times > 1 {
		launches = slices.Repeat(launches, times)
	}
	return f.dev.Run(ctx, launches...)
}

// settings returns the launches that make a tensor's elements the values.
func (f fast) settings(ctx context.Context, l *launcher, g *given, v *tensor.Tensor) ([]backend.Launch, error) {
	s, err := f.settleSetter(ctx, g)
	if err != nil {
		return nil, err
	}
	for i := range s.kept {
		if s.kept[i].values == v {
			return s.kept[i].launches, nil
		}
	}
	w := &composer{l: l, m: f.resident}
	for i := range v.RowBlocks() {
		for j := range v.ColBlocks() {
			lay := v.BlockLayout(i, j)
			op := values.Op{
				Src: v.Type, Lo: int64(i)*int64(v.RowBlock) + int64(j)*int64(v.ColBlock), Count: int64(lay.Rows) * int64(lay.Cols), Stride: 1,
				All: v.RowBlocks()*v.ColBlocks() == 1, Loose: lay.Loose,
			}
			if lay.ColMajor == (v.Rows == 1) && op.Count > 1 { // elements begin lines
				op.Stride = lay.LD
			}
			if err := w.set(s, v.Block(i, j), op); err != nil {
				return nil, err
			}
		}
	}
	s.kept[s.next] = setting{v, w.launches}
	s.next = (s.next + 1) % len(s.kept)
	return w.launches, nil
}

// set adds the launches that bring the values in src, those that op says, to their places.
func (w *composer) set(s *setter, src backend.Buffer, op values.Op) error {
	op.Dst = w.m.operand
	v, err := values.Variant(w.l.dev.Caps(), op.Src, op.Dst)
	if err != nil {
		return err
	}
	for _, p := range s.pieces {
		if p.slots > 0 && (p.first >= op.Lo+op.Count || p.first+p.slots <= op.Lo) {
			continue
		}
		op.Slots, op.First, op.Groups, op.Base, op.Full = p.slots, p.first, p.count, p.base, p.full
		op.Entries, op.Run = p.entries, p.run
		l, err := values.Launch(v, op)
		if err != nil {
			return err
		}
		args := []backend.Buffer{src, p.groups, p.sources, p.dst}
		if p.slots > 0 {
			args[1], args[2] = src, src // not read
		} else if p.run {
			args[1] = src
		}
		if err := w.add(values.Program, args, l.Passes...); err != nil {
			return err
		}
	}
	return nil
}

// setHost converts values on the host, as packing does, and writes them to their places: where entries lie in their
// order as they are, else by way of a buffer and the kernel.
func (f fast) setHost(ctx context.Context, l *launcher, g *given, v Values) error {
	s, err := f.settleSetter(ctx, g)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.pieces, func(p piece) bool { return p.slots == 0 }) {
		for _, p := range s.pieces {
			if err := writeValues(ctx, f.dev, p.dst, f.operand, v, int(p.first), int(p.slots)); err != nil {
				return err
			}
		}
		return nil
	}
	n, size := int64(v.len()), int64(f.operand.Size())
	if s.staging == nil {
		s.room = min(n, f.dev.Limit()/size&^7)
		if s.staging, err = f.dev.NewBuffer(s.room*size, "staging of new values"); err != nil {
			s.staging = nil
			return err
		}
	}
	for lo := int64(0); lo < n; lo += s.room {
		count := min(s.room, n-lo)
		if err := writeValues(ctx, f.dev, s.staging, f.operand, v, int(lo), int(count)); err != nil {
			return err
		}
		w := &composer{l: l, m: f.resident}
		if err := w.set(s, s.staging, values.Op{Src: f.operand, Lo: lo, Count: count, Stride: 1, All: count == n}); err != nil {
			return err
		}
		if _, err := f.dev.Run(ctx, w.launches...); err != nil {
			return err
		}
	}
	return nil
}

// writeValues writes n values from number first on to the start of a buffer, as elements of type t. What lies behind them
// in the last word becomes zero.
func writeValues(ctx context.Context, d *device.Device, b backend.Buffer, t dtype.Type, v Values, first, n int) error {
	scratch, err := d.Borrow(ctx)
	if err != nil {
		return err
	}
	defer d.GiveBack(scratch)
	step := device.Chunk / t.Size()
	for at := 0; at < n; at += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		bytes := min(step, n-at) * t.Size()
		words := (bytes + 3) &^ 3
		if cap(scratch) < words {
			scratch = make([]byte, words)
		}
		buf := scratch[:words]
		clear(buf[bytes:])
		v.convert(buf[:bytes], t, first+at)
		if err := b.Write(ctx, int64(at)*int64(t.Size()), buf); err != nil {
			return err
		}
	}
	return nil
}
