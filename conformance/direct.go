// Running a variant by its table, as package plan does, with every byte around it watched.

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// directRun is one multiplication by one variant.
type directRun struct {
	*runner
	t    *test
	p    *instance
	v    *spec.Variant
	prob spec.Problem
	args [][]byte // what the buffers hold before, in the kernel's order
	c    int      // which of them is C
	// fixed is set in reproducible mode, where B in fixed point stands behind B; q is its place.
	fixed *quantised
	q     int
	// after is the memory of C when it was last read back.
	after []byte
}

// direct multiplies, twice, and returns the outputs and the grid.
func (r *runner) direct(ctx context.Context, t *test, p *instance, v *spec.Variant) (*outputs, string, error) {
	x, l, err := r.newDirectRun(t, p, v)
	if err != nil {
		return nil, "", err
	}
	outs, err := x.run(ctx, l, 2)
	if err != nil {
		return nil, grid(l), err
	}
	return outs[0], grid(l), alike(outs[0], outs[1])
}

// newDirectRun makes a multiplication ready.
func (r *runner) newDirectRun(t *test, p *instance, v *spec.Variant) (*directRun, spec.Launch, error) {
	if r.spoil != nil {
		p = r.spoil(p)
	}
	c, err := compose(t, p, v, r.dev.Caps())
	if err != nil {
		return nil, spec.Launch{}, err
	}
	x := &directRun{runner: r, t: t, p: p, v: v, prob: c.problem, fixed: c.fixed}
	x.pack(c.encoded, c.launch)
	return x, c.launch, nil
}

// raw multiplies once and returns the memory of C.
func (r *runner) raw(ctx context.Context, t *test, p *instance, v *spec.Variant) ([]byte, error) {
	x, l, err := r.newDirectRun(t, p, v)
	if err != nil {
		return nil, err
	}
	_, err = x.run(ctx, l, 1)
	return x.after, err
}

// alike says where the outputs of two runs differ.
func alike(first, second *outputs) error {
	if err := second.differ(first); err != nil {
		return fmt.Errorf("a second run gave other bits: %w", err)
	}
	return nil
}

func grid(l spec.Launch) string {
	var s []string
	for _, p := range l.Passes {
		s = append(s, fmt.Sprintf("%d×%d×%d", p.Groups[0], p.Groups[1], p.Groups[2]))
	}
	return strings.Join(s, " then ")
}

// pack makes the contents of the buffers: NaN where nothing may be read.
func (x *directRun) pack(enc *spec.Packed, l spec.Launch) {
	for _, a := range enc.Arrays {
		x.args = append(x.args, a.Data)
	}
	in := x.t.prec.Storage()
	x.args = append(x.args, fill(in, x.p.b, x.prob.LDB, x.p.k))
	bias := x.args[len(x.args)-1] // where there is none: B
	if x.p.bias != nil {
		bias = fillBias(x.v.Sums(), x.p.bias, x.prob.Epilogue.BiasShift)
	}
	if x.fixed != nil {
		x.q = len(x.args)
		x.args = append(x.args, filled(x.fixed.bytes))
	}
	x.args = append(x.args, bias)
	x.c = len(x.args)
	x.args = append(x.args, fill(x.t.c, x.p.c, x.prob.LDC, x.p.m))
	if l.Workspace > 0 {
		x.args = append(x.args, filled(int(l.Workspace)))
	}
}

// fill returns rows of sentinel with the elements of d, if there is one, in their places.
func fill(t dtype.Type, d *formats.Dense[float64], ld, rows int) []byte {
	mem := filled(rows * ld * t.Size())
	if d != nil {
		for i := range d.Rows {
			for j := range d.Cols {
				put(t, mem, i*ld+j, pack(t, d.At(i, j)))
			}
		}
	}
	return mem
}

// fillBias returns the elements of a bias 1 << shift apart, with sentinel in between.
func fillBias(t dtype.Type, bias []float64, shift uint32) []byte {
	mem := filled(len(bias) << shift * t.Size())
	for i, v := range bias {
		put(t, mem, i<<shift, pack(t, v))
	}
	return mem
}

// run multiplies the given number of times, from the same memory, and returns the outputs of each.
func (x *directRun) run(ctx context.Context, l spec.Launch, times int) ([]*outputs, error) {
	bufs, err := x.alloc()
	defer func() {
		for _, b := range bufs {
			b.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	launches, err := x.launches(l, bufs)
	if err != nil {
		return nil, err
	}
	var outs []*outputs
	for i := range times {
		if i > 0 {
			err = x.restore(ctx, bufs)
		}
		if err != nil {
			return outs, err
		}
		out, err := x.once(ctx, launches, bufs)
		if err != nil {
			return outs, err
		}
		outs = append(outs, out)
	}
	return outs, x.untouched(ctx, bufs)
}

// alloc returns a buffer for each argument, with its contents; after an error, those that there are.
func (x *directRun) alloc() ([]backend.Buffer, error) {
	var bufs []backend.Buffer
	for _, a := range x.args {
		b, err := x.dev.holding(int64(max(4, len(a))), a)
		if err != nil {
			return bufs, err
		}
		bufs = append(bufs, b)
	}
	return bufs, nil
}

func (x *directRun) launches(l spec.Launch, bufs []backend.Buffer) ([]backend.Launch, error) {
	var launches []backend.Launch
	if x.fixed != nil {
		var err error
		if launches, err = x.passes(shaders.Quantise, x.fixed.launch, bufs[x.q-1:x.q+1]); err != nil {
			return nil, err
		}
	}
	own, err := x.passes(x.t.kernel.Program, l, bufs)
	return append(launches, own...), err
}

// passes loads what a launch of k runs.
func (r *runner) passes(k *spec.Program, l spec.Launch, args []backend.Buffer) ([]backend.Launch, error) {
	var launches []backend.Launch
	for _, p := range l.Passes {
		loaded, err := r.load(k, p.Variant)
		if err != nil {
			return nil, err
		}
		launches = append(launches, backend.Launch{Kernel: loaded, Groups: p.Groups, Args: args, Params: p.Params,
			Maps: p.Maps})
	}
	return launches, nil
}

// restore brings back the contents of the buffers that a launch may write.
func (x *directRun) restore(ctx context.Context, bufs []backend.Buffer) error {
	for i, a := range x.args {
		if x.reads(i) {
			continue
		}
		if err := bufs[i].Write(ctx, 0, a); err != nil {
			return err
		}
	}
	return nil
}

// reads reports whether argument i is only read. (Behind the kernel's arguments is a workspace, if anything.)
func (x *directRun) reads(i int) bool {
	return i < len(x.t.kernel.Args) && x.t.kernel.Args[i].ReadOnly && (x.fixed == nil || i != x.q)
}

// once launches, and returns C.
func (x *directRun) once(ctx context.Context, launches []backend.Launch, bufs []backend.Buffer) (*outputs, error) {
	if _, err := x.dev.Run(ctx, launches...); err != nil {
		return nil, err
	}
	x.after = make([]byte, len(x.args[x.c]))
	if len(x.after) > 0 {
		if err := bufs[x.c].Read(ctx, 0, x.after); err != nil {
			return nil, err
		}
	}
	if err := samePadding(x.t.c, x.p.n, x.prob.LDC, x.args[x.c], x.after); err != nil {
		return nil, err
	}
	return collect(x.t.c, x.p.m, x.p.n, x.prob.LDC, false, x.after), nil
}

// untouched says whether all that must not be written is as it was: arguments that are only read, memory behind
// buffers and between them. What was written there stays there, so the last run is soon enough to look.
func (x *directRun) untouched(ctx context.Context, bufs []backend.Buffer) error {
	if err := x.dev.intact(ctx); err != nil {
		return err
	}
	for i, before := range x.args {
		if !x.reads(i) || len(before) == 0 {
			continue
		}
		after := make([]byte, len(before))
		if err := bufs[i].Read(ctx, 0, after); err != nil {
			return err
		}
		if !bytes.Equal(before, after) {
			return fmt.Errorf("argument %s, which is only read, was written", x.t.kernel.Args[i].Name)
		}
	}
	return nil
}

// samePadding says where memory between lines of the given width, ld apart, has changed.
func samePadding(t dtype.Type, width, ld int, before, after []byte) error {
	for i := range len(before) / t.Size() {
		if i%ld >= width && get(t, before, i) != get(t, after, i) {
			return fmt.Errorf("padding behind line %d of C was written, at element %d", i/ld, i%ld)
		}
	}
	return nil
}
