// Package values gives the entries of a matrix on a device new values.
//
// A Setter decides how an array of the matrix is written: directly, where it holds entries in their order, or by
// kernel values. It keeps the places of the entries, which it finds in any packing by packing numbers in place of
// values. Given keeps the order in which the caller gave the entries.
package values

import (
	"cmp"
	"context"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
	kernel "github.com/spmmrun/spmm/shaders/values"
)

// Setter brings new values to the places of a matrix's entries. It finds these when values are first set.
type Setter struct {
	m     *resident.Matrix
	spans []span // nil until found
	// staging holds values from the host, at most a buffer full at a time.
	staging backend.Buffer
	room    int64 // values in it

	kept [4]setting
	next int // which to replace next
}

// kind is how a span says where entries are.
type kind uint8

const (
	contiguous kind = iota // in a run of slots, in the order of the entries
	bitmap                 // in groups of slots, each with a bit map of the slots that hold an entry
	listed                 // in slots that are listed, or in a run of slots, in any order
)

// span is some slots of an array of the matrix, and which entries they hold: see package values of the kernels.
type span struct {
	kind    kind
	dst     backend.Buffer
	slots   int64          // contiguous: how many
	first   int64          // contiguous: the number of the first entry; listed: the first slot, if they are a run
	groups  backend.Buffer // bitmap: of each group the map, and where its numbers begin; listed: the slots, unless a run
	sources backend.Buffer // bitmap and listed: the numbers of the entries
	count   int64          // bitmap: groups
	base    int64          // bitmap: the first group
	entries int64          // listed: how many
	run     bool           // listed: the slots are a run
	full    int            // contiguous and bitmap: how far other slots are zero
}

// setting is the launches that bring the values of a tensor to their places.
type setting struct {
	values   *tensor.Tensor
	launches []backend.Launch
}

// Close frees what the setter holds on the device.
func (s *Setter) Close() error {
	var errs []error
	for _, p := range s.spans {
		for _, b := range []backend.Buffer{p.groups, p.sources} {
			if b != nil {
				errs = append(errs, b.Close())
			}
		}
	}
	if s.staging != nil {
		errs = append(errs, s.staging.Close())
	}
	*s = Setter{m: s.m}
	return cmp.Or(errs...)
}

// NewSetter returns the setter of a matrix.
func NewSetter(m *resident.Matrix) Setter { return Setter{m: m} }

// prepare finds the places of the entries, unless they are known.
func (s *Setter) prepare(ctx context.Context, g *Given) error {
	if s.spans != nil {
		return nil
	}
	spans, first := []span{}, int64(0)
	for i := range s.m.Parts {
		add, err := s.find(ctx, &s.m.Parts[i], first, g.numbers())
		spans = append(spans, add...)
		if err != nil {
			return cmp.Or(err, (&Setter{spans: spans}).Close())
		}
		first += s.m.Parts[i].Data.NNZ
	}
	s.spans = spans
	return nil
}

// find returns the spans of a part, whose first entry has number first. number is the result of given.numbers. After
// an error too, the spans are to be closed.
func (s *Setter) find(ctx context.Context, pt *resident.Part, first int64, number []uint32) ([]span, error) {
	if err := ctx.Err(); err != nil || pt.Data.NNZ == 0 {
		return nil, err
	}
	at, err := placesOf(s.m, pt)
	if err != nil {
		return nil, err
	}
	dst := pt.Buffers[at.array]
	if number == nil && at.inOrder(pt.Data.NNZ) {
		return []span{{kind: contiguous, dst: dst, slots: pt.Data.NNZ, first: first, full: at.full}}, nil
	}
	if at.entries == nil {
		at.entries = ascending(0, pt.Data.NNZ)
	}
	v, err := kernel.Variant(s.m.Device.Caps(), s.m.Operand, s.m.Operand)
	if err != nil {
		return nil, err
	}
	if kernel.Listed(v) {
		return s.list(ctx, dst, at, first, number)
	}
	return s.bitmaps(ctx, dst, at, first, number)
}

// givenNumber returns the number that was given to an entry of a part whose first has number first: e is its place
// among the part's, plus 1, and number what given.numbers returns.
func givenNumber(e uint32, first int64, number []uint32) uint32 {
	n := uint32(first) + e - 1
	if number == nil {
		return n
	}
	return number[n]
}

// list returns spans with lists of the places of entries, as few as the device binds.
func (s *Setter) list(ctx context.Context, dst backend.Buffer, at places, first int64, number []uint32) ([]span,
	error) {
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
	var spans []span
	most := int(min(s.m.Device.Limit()/4, int64(held)))
	for lo := 0; lo < held; lo += most {
		hi := min(lo+most, held)
		p, err := s.listed(ctx, dst, slots[lo:hi], sources[lo:hi])
		spans = append(spans, p)
		if err != nil {
			return spans, err
		}
	}
	return spans, nil
}

// listed returns a span of slots that hold the entries with these numbers.
func (s *Setter) listed(ctx context.Context, dst backend.Buffer, slots, numbers []uint32) (span, error) {
	p := span{kind: listed, dst: dst, entries: int64(len(numbers)), first: int64(slots[0])}
	p.run = int(slots[len(slots)-1]-slots[0]) == len(slots)-1
	var err error
	if p.sources, err = s.m.Device.NewWords(ctx, numbers, "numbers of the entries"); err == nil && !p.run {
		p.groups, err = s.m.Device.NewWords(ctx, slots, "places of the entries")
	}
	return p, err
}

// bitmaps returns spans with maps of the places of entries, as few as the device binds.
func (s *Setter) bitmaps(ctx context.Context, dst backend.Buffer, at places, first int64, number []uint32) ([]span,
	error) {
	var spans []span
	most := int(s.m.Device.Limit()/4) - kernel.GroupSlots // sources of a span
	groups := spec.Ceil(len(at.entries), kernel.GroupSlots)
	index, sources := make([]uint32, 0, 2*groups), make([]uint32, 0, min(len(number)+len(at.entries),
		most+kernel.GroupSlots))
	base := 0
	flush := func(end int) error {
		p := span{kind: bitmap, dst: dst, count: int64(end - base), base: int64(base), full: at.full}
		var err error
		if p.groups, err = s.m.Device.NewWords(ctx, index, "groups of slots"); err == nil {
			p.sources, err = s.m.Device.NewWords(ctx, sources, "places of the entries")
		}
		spans = append(spans, p)
		index, sources, base = index[:0], sources[:0], end
		return err
	}
	for g := range groups {
		if len(sources) > most {
			if err := flush(g); err != nil {
				return spans, err
			}
		}
		held, before := uint32(0), uint32(len(sources))
		for i, e := range at.entries[g*kernel.GroupSlots : min((g+1)*kernel.GroupSlots, len(at.entries))] {
			if e == 0 {
				continue
			}
			held |= 1 << i
			sources = append(sources, givenNumber(e, first, number))
		}
		index = append(index, held, before)
	}
	return spans, flush(groups)
}

// SetTensor makes the elements of a tensor the values, a number of times.
func (s *Setter) SetTensor(ctx context.Context, g *Given, v *tensor.Tensor, times int) (backend.Timing, error) {
	launches, err := s.SetLaunches(ctx, g, v)
	if err != nil || len(launches) == 0 {
		return backend.Timing{}, err
	}
	if times > 1 {
		launches = slices.Repeat(launches, times)
	}
	return s.m.Device.Run(ctx, launches...)
}

// SetLaunches returns the launches that make a tensor's elements the values. Those for the last tensors are kept.
func (s *Setter) SetLaunches(ctx context.Context, g *Given, v *tensor.Tensor) ([]backend.Launch, error) {
	if err := s.prepare(ctx, g); err != nil {
		return nil, err
	}
	for i := range s.kept {
		if s.kept[i].values == v {
			return s.kept[i].launches, nil
		}
	}
	var launches []backend.Launch
	for i := range v.RowBlocks() {
		for j := range v.ColBlocks() {
			lay := v.BlockLayout(i, j)
			op := kernel.Op{
				Src: v.Type, Lo: int64(i)*int64(v.RowBlock) + int64(j)*int64(v.ColBlock), Count: int64(lay.Rows) * int64(lay.Cols),
				Stride: 1,
				All:    v.RowBlocks()*v.ColBlocks() == 1, Loose: lay.Loose,
			}
			if lay.ColMajor == (v.Rows == 1) && op.Count > 1 { // elements begin lines
				op.Stride = lay.LD
			}
			add, err := s.launches(v.Block(i, j), op)
			if err != nil {
				return nil, err
			}
			launches = append(launches, add...)
		}
	}
	s.kept[s.next] = setting{v, launches}
	s.next = (s.next + 1) % len(s.kept)
	return launches, nil
}

// launches returns the launches that bring the values in src, those that op says, to their places.
func (s *Setter) launches(src backend.Buffer, op kernel.Op) (launches []backend.Launch, err error) {
	op.Dst = s.m.Operand
	v, err := kernel.Variant(s.m.Device.Caps(), op.Src, op.Dst)
	if err != nil {
		return nil, err
	}
	for _, p := range s.spans {
		args := []backend.Buffer{src, p.groups, p.sources, p.dst}
		switch {
		case p.kind == contiguous:
			if p.first >= op.Lo+op.Count || p.first+p.slots <= op.Lo {
				continue
			}
			args[1], args[2] = src, src // not read
		case p.run:
			args[1] = src
		}
		op.Slots, op.First, op.Groups, op.Base, op.Full = p.slots, p.first, p.count, p.base, p.full
		op.Entries, op.Run = p.entries, p.run
		l, err := kernel.Launch(v, op)
		if err != nil {
			return nil, err
		}
		add, err := launch.Passes(s.m.Device, kernel.Program, args, l.Passes)
		if err != nil {
			return nil, err
		}
		launches = append(launches, add...)
	}
	return launches, nil
}

// SetHost makes values of the host's the entries'. It converts them as packing does, and writes them to their places:
// directly where entries lie in their order, else by way of a buffer and the kernel.
func (s *Setter) SetHost(ctx context.Context, g *Given, v Host) error {
	if err := s.prepare(ctx, g); err != nil {
		return err
	}
	d, t := s.m.Device, s.m.Operand
	if !slices.ContainsFunc(s.spans, func(p span) bool { return p.kind != contiguous }) {
		for _, p := range s.spans {
			if err := writeValues(ctx, d, p.dst, t, v, int(p.first), int(p.slots)); err != nil {
				return err
			}
		}
		return nil
	}
	n, size := int64(v.Len()), int64(t.Size())
	if s.staging == nil {
		room := min(n, d.Limit()/size&^7)
		b, err := d.NewBuffer(room*size, "staging of new values")
		if err != nil {
			return err
		}
		s.staging, s.room = b, room
	}
	for lo := int64(0); lo < n; lo += s.room {
		count := min(s.room, n-lo)
		if err := writeValues(ctx, d, s.staging, t, v, int(lo), int(count)); err != nil {
			return err
		}
		launches, err := s.launches(s.staging, kernel.Op{Src: t, Lo: lo, Count: count, Stride: 1, All: count == n})
		if err != nil {
			return err
		}
		if _, err := d.Run(ctx, launches...); err != nil {
			return err
		}
	}
	return nil
}

// writeValues writes n values from number first on to the start of a buffer, as elements of type t. What lies behind
// them in the last word becomes zero.
func writeValues(ctx context.Context, d *device.Device, b backend.Buffer, t dtype.Type, v Host, first, n int) error {
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
