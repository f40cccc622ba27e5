// Package sddmm samples products of tensors at the entries of a pattern on their device.
//
// A Sampler keeps the rows and columns of the entries, and the staging buffers of operands that the kernel does not
// take as they lie, which kernel densecopy fills: a set for each stream of the program's, so that products in two
// streams run side by side. In reproducible mode its kernel is sddmmrfx.
package sddmm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/densecopy"
	kernel "github.com/spmmrun/spmm/shaders/sddmm"
	"github.com/spmmrun/spmm/shaders/sddmmrfx"
	"github.com/spmmrun/spmm/shaders/softmax"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Sampler is a pattern on a device.
type Sampler struct {
	dev        *device.Device
	v          *spec.Variant
	elem       dtype.Type // of X and Y as the kernel takes them
	p          rfx.P      // of reproducible mode; 0: fast mode
	auto       *auto      // nil: p was given
	entries    int64
	rows, cols backend.Buffer // of each entry
	spans      backend.Buffer // where the entries of each row are, for kernel softmax
	longs      softmax.Op     // how many of them are long

	own     *staging
	streams map[uintptr]*staging
}

// staging is the buffers that sampled products share.
type staging struct {
	x, y, scale, s launch.Shared
	ranges         launch.Shared // in reproducible mode: of X's rows and Y's
	keeps          bool          // buffers that are replaced are kept, for launches that may still run or be captured
	old            []backend.Buffer

	last [4]composed // the launches of the last products of a stream, which hold because buffers are kept
	next int
}

// composed is the launches of a sampled product.
type composed struct {
	Operands
	launches []backend.Launch
}

func newStaging(keeps bool) *staging {
	return &staging{
		x: launch.Shared{What: "staging of X"}, y: launch.Shared{What: "staging of Y"},
		scale: launch.Shared{What: "staging of the scale"}, s: launch.Shared{What: "staging of S"},
		ranges: launch.Shared{What: "ranges of the rows of X and Y"}, keeps: keeps,
	}
}

// make makes a buffer at least that large.
func (g *staging) make(d *device.Device, s *launch.Shared, bytes int64) error {
	if !g.keeps {
		return s.Make(d, bytes)
	}
	old, err := s.Replace(d, bytes)
	if old != nil {
		g.old = append(g.old, old)
	}
	return err
}

func (g *staging) close() error {
	var errs []error
	for _, b := range []*launch.Shared{&g.x, &g.y, &g.scale, &g.s, &g.ranges} {
		if b.Buffer != nil {
			errs = append(errs, b.Buffer.Close())
		}
	}
	for _, b := range g.old {
		errs = append(errs, b.Close())
	}
	return cmp.Or(errs...)
}

// in returns the staging of a stream.
func (s *Sampler) in(stream uintptr) *staging {
	g := s.streams[stream]
	if g == nil {
		g = newStaging(true)
		s.streams[stream] = g
	}
	return g
}

// New copies the rows and columns of the entries to a device, for X and Y of a type, in fast mode (p = 0) or in fixed
// point of a precision, or AutoP.
func New(ctx context.Context, d *device.Device, t dtype.Type, p rfx.P, rows, cols []uint32) (*Sampler, error) {
	v, err := variant(d, t, p)
	if err != nil {
		return nil, err
	}
	s := &Sampler{
		dev: d, v: v, elem: t.Storage(), p: p, entries: int64(len(rows)), own: newStaging(false),
		streams: map[uintptr]*staging{},
	}
	if p == work.AutoP {
		s.auto = &auto{}
	}
	if s.rows, err = d.NewWords(ctx, kernel.Padded(rows), "rows of the entries"); err != nil {
		return nil, err
	}
	if s.cols, err = d.NewWords(ctx, kernel.Padded(cols), "columns of the entries"); err != nil {
		return nil, cmp.Or(err, s.rows.Close())
	}
	spans, op := softmax.Spans(rows)
	s.longs = op
	if s.spans, err = d.NewWords(ctx, spans, "spans of the rows"); err != nil {
		return nil, cmp.Or(err, s.rows.Close(), s.cols.Close())
	}
	return s, nil
}

// variant returns the kernel's variant for a type and a mode.
func variant(d *device.Device, t dtype.Type, p rfx.P) (*spec.Variant, error) {
	if p != 0 {
		return sddmmrfx.Variant(d.Caps())
	}
	return kernel.Variant(d.Caps(), t)
}

// Close frees what the sampler holds on the device.
func (s *Sampler) Close() error {
	errs := []error{s.rows.Close(), s.cols.Close(), s.spans.Close(), s.own.close()}
	for _, g := range s.streams {
		errs = append(errs, g.close())
	}
	return cmp.Or(errs...)
}

// Operands are the tensors of a sampled product, each in one block: S = pattern ⊙ (X·Yᵀ), times Scale unless that is
// nil, and then with Softmax the softmax of each row. S and Scale are vectors with an element for each entry.
type Operands struct {
	X, Y, Scale, S *tensor.Tensor
	Softmax        bool
}

// Tensors returns those that there are.
func (o Operands) Tensors() []*tensor.Tensor {
	if o.Scale == nil {
		return []*tensor.Tensor{o.X, o.Y, o.S}
	}
	return []*tensor.Tensor{o.X, o.Y, o.S, o.Scale}
}

// Use keeps the tensors until Release, all of them or none.
func (o Operands) Use() error {
	for i, t := range o.Tensors() {
		if err := t.Use(); err != nil {
			for _, used := range o.Tensors()[:i] {
				used.Release()
			}
			return err
		}
	}
	return nil
}

// Release ends what Use began.
func (o Operands) Release() {
	for _, t := range o.Tensors() {
		t.Release()
	}
}

// Check refuses operands that do not fit together or a pattern of rows × cols with entries.
func (o Operands) Check(d *device.Device, rows, cols int, entries int64) error {
	for _, t := range o.Tensors() {
		switch {
		case t == nil:
			return errors.New("X, Y or S is missing")
		case t.Device() != d:
			return fmt.Errorf("X, Y, S and the scale must be on the device of A, which is on %v", d.Info())
		case t.RowBlocks()*t.ColBlocks() > 1:
			return fmt.Errorf("a tensor of %d×%d lies in %d blocks: sampling takes one (NewTensor makes such): %w", t.Rows,
				t.Cols, t.RowBlocks()*t.ColBlocks(), backend.ErrUnsupported)
		}
	}
	if o.X.Rows != rows || o.Y.Rows != cols || o.X.Cols != o.Y.Cols {
		return fmt.Errorf("shapes do not fit: A is %d×%d, X is %d×%d, Y is %d×%d; want X %d×n and Y %d×n", rows, cols,
			o.X.Rows, o.X.Cols, o.Y.Rows, o.Y.Cols, rows, cols)
	}
	for _, t := range o.Tensors()[2:] {
		if t.Rows != 1 && t.Cols != 1 && entries > 0 || int64(t.Rows)*int64(t.Cols) != entries {
			return fmt.Errorf("a vector of %d×%d for a matrix of %d entries: want 1×%d or %d×1", t.Rows, t.Cols, entries,
				entries, entries)
		}
	}
	if err := o.S.Odd(); err != nil {
		return err
	}
	for _, t := range []*tensor.Tensor{o.X, o.Y, o.Scale} {
		if t != nil && (t == o.S || t.Overlaps(o.S)) {
			return errors.New("S and another operand lie in the same memory: S is written while the others are read")
		}
	}
	return nil
}

// Direct refuses an X or Y that is staged. Without it, launches hold as long as the sampler and the tensors are open.
func (s *Sampler) Direct(o Operands) error {
	for _, t := range []*tensor.Tensor{o.X, o.Y} {
		if !s.takes(t.BlockLayout(0, 0)) {
			return fmt.Errorf("X and Y of a sequence must be row-major, of %v, and laid out as NewTensor does", s.elem)
		}
	}
	return nil
}

// takes tells whether the kernel takes X or Y as it lies.
func (s *Sampler) takes(l tensor.Layout) bool { return !l.Loose && !l.ColMajor && l.Type == s.elem }

// Launches returns the launches of a sampled product whose operands were checked and are used.
func (s *Sampler) Launches(o Operands) ([]backend.Launch, error) { return s.compose(o, s.own) }

// LaunchesIn returns those for a stream of the program's, which hold as long as the sampler and the tensors are open.
func (s *Sampler) LaunchesIn(stream uintptr, o Operands) ([]backend.Launch, error) {
	g := s.in(stream)
	for i := range g.last {
		if g.last[i].Operands == o {
			return g.last[i].launches, nil
		}
	}
	launches, err := s.compose(o, g)
	if err == nil {
		g.last[g.next] = composed{o, launches}
		g.next = (g.next + 1) % len(g.last)
	}
	return launches, err
}

func (s *Sampler) compose(o Operands, g *staging) ([]backend.Launch, error) {
	if s.entries == 0 {
		return nil, nil
	}
	c := composer{Sampler: s, staging: g}
	x, ldx := c.matrix(o.X, &g.x)
	y, ldy := c.matrix(o.Y, &g.y)
	scale := s.rows // not read
	if o.Scale != nil {
		scale = c.vector(o.Scale, &g.scale, true)
	}
	to := c.vector(o.S, &g.s, false)
	if c.err != nil {
		return nil, c.err
	}
	if s.p == 0 {
		c.fast(o, x, ldx, y, ldy, scale, to)
	} else {
		c.reproducible(o, c.entries, x, ldx, y, ldy, scale, to)
	}
	if o.Softmax {
		c.softmax(to)
	}
	if own := o.S.Block(0, 0); own != to {
		c.copy(to, own, densecopy.Op{Rows: int(s.entries), Cols: 1, Alpha: 1,
			Src: densecopy.Layout{Type: s.v.Sums(), LD: 1}, Dst: densecopy.Layout{Type: o.S.Type, LD: apart(o.S)}})
	}
	return c.launches, c.err
}

// composer collects launches until the first error.
type composer struct {
	*Sampler
	staging  *staging
	launches []backend.Launch
	err      error
}

// fast adds the launch of kernel sddmm.
func (c *composer) fast(o Operands, x backend.Buffer, ldx int, y backend.Buffer, ldy int, scale, to backend.Buffer) {
	l, err := kernel.Launch(c.v, kernel.Op{Entries: c.entries, K: o.X.Cols, LDX: ldx, LDY: ldy, Scaled: o.Scale != nil})
	if c.err = err; err == nil {
		c.add(kernel.Program, []backend.Buffer{c.rows, c.cols, x, y, scale, to}, l)
	}
}

// reproducible adds the launches of kernel sddmmrfx for entries of the pattern, none for the ranges alone.
func (c *composer) reproducible(o Operands, entries int64, x backend.Buffer, ldx int, y backend.Buffer, ldy int,
	scale, to backend.Buffer) {
	op := sddmmrfx.Op{Entries: entries, M: o.X.Rows, N: o.Y.Rows, K: o.X.Cols, Type: c.elem, LDX: ldx, LDY: ldy, P: c.p,
		Scaled: o.Scale != nil, Most: c.dev.Limit()}
	c.err = c.staging.make(c.dev, &c.staging.ranges, 4*op.Words(c.v))
	if errors.Is(c.err, backend.ErrOutOfMemory) { // without integers of rows
		op.Most = 0
		c.err = c.staging.make(c.dev, &c.staging.ranges, 4*op.Words(c.v))
	}
	if c.err != nil {
		return
	}
	l, err := sddmmrfx.Launch(c.v, op)
	if c.err = err; err == nil {
		c.add(sddmmrfx.Program, []backend.Buffer{c.rows, c.cols, x, y, scale, c.staging.ranges.Buffer, to}, l)
	}
}

// softmax adds the launches of kernel softmax.
func (c *composer) softmax(s backend.Buffer) {
	v, err := softmax.Variant(c.dev.Caps(), c.v.Sums())
	if err == nil {
		var l spec.Launch
		if l, err = softmax.Launch(v, c.longs); err == nil {
			c.add(softmax.Program, []backend.Buffer{c.spans, s}, l)
		}
	}
	c.err = cmp.Or(c.err, err)
}

// matrix returns the buffer in which the kernel finds X or Y, and the distance of its rows.
func (c *composer) matrix(t *tensor.Tensor, staged *launch.Shared) (backend.Buffer, int) {
	from := t.BlockLayout(0, 0)
	if c.takes(from) || c.err != nil {
		return t.Block(0, 0), from.LD
	}
	to := tensor.NewLayout(from.Rows, from.Cols, c.elem, false)
	c.err = c.staging.make(c.dev, staged, max(16, to.Size()))
	if c.err == nil && from.Rows > 0 && from.Cols > 0 {
		c.copy(t.Block(0, 0), staged.Buffer, densecopy.Op{Rows: from.Rows, Cols: from.Cols, Alpha: 1,
			Src: densecopy.Layout{Type: from.Type, LD: from.LD, First: from.First, ColMajor: from.ColMajor},
			Dst: densecopy.Layout{Type: to.Type, LD: to.LD}})
	}
	return staged.Buffer, to.LD
}

// vector returns the buffer in which the kernel finds a vector side by side, in the type of sums. It is filled if the
// vector is read.
func (c *composer) vector(t *tensor.Tensor, staged *launch.Shared, read bool) backend.Buffer {
	sums := c.v.Sums()
	if l := t.BlockLayout(0, 0); l.Type == sums && !l.Loose && apart(t) == 1 || c.err != nil {
		return t.Block(0, 0)
	}
	c.err = c.staging.make(c.dev, staged, tensor.Up(c.entries, tensor.Align)*int64(sums.Size()))
	if c.err == nil && read {
		c.copy(t.Block(0, 0), staged.Buffer, densecopy.Op{Rows: int(c.entries), Cols: 1, Alpha: 1,
			Src: densecopy.Layout{Type: t.Type, LD: apart(t), First: t.BlockLayout(0, 0).First},
			Dst: densecopy.Layout{Type: sums, LD: 1}})
	}
	return staged.Buffer
}

// apart is how many elements lie from one element of a vector to the next.
func apart(t *tensor.Tensor) int {
	if l := t.BlockLayout(0, 0); l.Lines() > 1 {
		return l.LD
	}
	return 1
}

// copy adds a launch of kernel densecopy.
func (c *composer) copy(src, dst backend.Buffer, op densecopy.Op) {
	v, err := densecopy.Variant(c.dev.Caps(), op.Src.Type, op.Dst.Type)
	if err == nil {
		var l spec.Launch
		if l, err = densecopy.Launch(v, op); err == nil {
			c.add(densecopy.Program, []backend.Buffer{src, src, dst}, l)
			return
		}
	}
	c.err = cmp.Or(c.err, err)
}

func (c *composer) add(k *spec.Program, args []backend.Buffer, l spec.Launch) {
	add, err := launch.Passes(c.dev, k, args, l.Passes)
	c.launches, c.err = append(c.launches, add...), cmp.Or(c.err, err)
}
