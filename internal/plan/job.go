// The launches of one problem: composed once, then kept.

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/spec"
)

// problem identifies a job.
type problem struct {
	b, c        *Matrix
	alpha, beta float32
	times       int   // in a row
	bits        rfx.P // in reproducible mode
}

// job is a problem with its launches.
type job struct {
	problem
	launches []backend.Launch
}

// keptJobs is how many problems a plan remembers.
const keptJobs = 8

// Run computes c = alpha·A·b + beta·c; b is K×N and c is M×N, in any type and order. c is not read
// where beta is 0. The context is looked at between launches.
func (p *Plan) Run(ctx context.Context, alpha float32, b *Matrix, beta float32, c *Matrix) (backend.Timing, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c)
}

// Repeat runs the same multiplication so many times back to back, as a program that keeps the device
// busy does; it serves to measure. With a beta other than 0 each run adds to the last one's c.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float32, b *Matrix, beta float32, c *Matrix) (backend.Timing, error) {
	if times < 1 {
		return backend.Timing{}, fmt.Errorf("%d repetitions", times)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run(ctx, problem{b: b, c: c, alpha: alpha, beta: beta, times: times})
}

// run is Run with the plan locked.
func (p *Plan) run(ctx context.Context, q problem) (backend.Timing, error) {
	if err := ctx.Err(); err != nil {
		return backend.Timing{}, err
	}
	if err := p.check(q); err != nil {
		return backend.Timing{}, err
	}
	if p.fixed != nil {
		if err := p.settle(ctx, q.b); err != nil {
			return backend.Timing{}, err
		}
		q.bits = p.fixed.bits
	}
	j := p.find(q)
	if j == nil {
		var err error
		if j, err = p.compose(q); err != nil {
			return backend.Timing{}, err
		}
		j.launches = slices.Repeat(j.launches, q.times)
		p.keep(j)
	}
	if len(j.launches) == 0 {
		return backend.Timing{}, nil
	}
	return p.dev.Run(ctx, j.launches...)
}

func (p *Plan) find(q problem) *job {
	for _, j := range p.jobs {
		if j.problem == q {
			return j
		}
	}
	return nil
}

// keep remembers a job in place of the one remembered longest.
func (p *Plan) keep(j *job) {
	if len(p.jobs) < keptJobs {
		p.jobs = append(p.jobs, j)
		return
	}
	p.jobs[p.next] = j
	p.next = (p.next + 1) % keptJobs
}

// forget drops the jobs that use a matrix, which is about to be closed.
func (p *Plan) forget(m *Matrix) {
	p.jobs = slices.DeleteFunc(p.jobs, func(j *job) bool { return j.b == m || j.c == m })
	p.next = 0
}

// check refuses problems that do not fit together.
func (p *Plan) check(q problem) error {
	b, c := q.b, q.c
	switch {
	case p.closed:
		return errClosed
	case b == nil || c == nil:
		return errors.New("B or C is missing")
	case b.blocks == nil || c.blocks == nil:
		return errClosed
	case b.dev != p.dev || c.dev != p.dev:
		return fmt.Errorf("A, B and C must be on one device, and A is on %v", p.dev.Info())
	case b == c:
		return errors.New("B and C must be two matrices: C is written while B is read")
	}
	if err := p.CheckDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return err
	}
	if b.rowBlocks() > 1 || b.colBlocks() != c.colBlocks() || b.ColBlock != c.ColBlock || c.Rows > 0 && c.RowBlock != min(p.rowBlock, c.Rows) {
		return fmt.Errorf("B lies in blocks of %d×%d and C of %d×%d, but A of %d×%d needs C in blocks of %d rows, B in whole columns, and the same columns in both (TensorsFor makes such)",
			b.RowBlock, b.ColBlock, c.RowBlock, c.ColBlock, p.Rows, p.Cols, p.rowBlock)
	}
	return nil
}

// CheckDims tells whether C = A·B is possible for B and C of these sizes.
func (p *Plan) CheckDims(bRows, bCols, cRows, cCols int) error {
	if bRows != p.Cols || cRows != p.Rows || bCols != cCols {
		return fmt.Errorf("shapes do not fit: A is %d×%d, B is %d×%d, C is %d×%d; want B %d×n and C %d×n",
			p.Rows, p.Cols, bRows, bCols, cRows, cCols, p.Cols, p.Rows)
	}
	return nil
}

// staged tells whether a B of this type and order goes through the dense kernel, direct whether C
// is what the kernel can write.
func (p *Plan) staged(t dtype.Type, colMajor bool) bool {
	return colMajor || t != p.Precision.Storage()
}

func (p *Plan) direct(t dtype.Type, colMajor bool) bool {
	return !colMajor && (t == dtype.F32 || slices.Contains(p.variant.Out, t))
}

// temps are the buffers that jobs share, each grown to the largest need so far.
type temps struct {
	b, c, work temp
	q          temp // B in fixed point
}

type temp struct {
	buf  backend.Buffer
	size int64
}

func (t *temps) close() {
	for _, x := range []*temp{&t.b, &t.c, &t.work, &t.q} {
		if x.buf != nil {
			x.buf.Close()
		}
		*x = temp{}
	}
}

// grow makes a shared buffer hold at least so many bytes. Jobs composed before may hold the buffer
// it replaces, so they are dropped.
func (p *Plan) grow(t *temp, bytes int64, what string) error {
	if t.size >= bytes {
		return nil
	}
	p.jobs, p.next = nil, 0
	if t.buf != nil {
		t.buf.Close()
		*t = temp{}
	}
	buf, err := p.dev.alloc(bytes, what)
	if err != nil {
		return err
	}
	*t = temp{buf, bytes}
	return nil
}

// composer builds the launches of a job.
type composer struct {
	p *Plan
	problem
	loaded   backend.Kernel
	launches []backend.Launch
}

// compose builds the job of a problem that was checked. Buffers that blocks share are sized first,
// since growing one would pull it from under launches that are already composed.
func (p *Plan) compose(q problem) (*job, error) {
	w := &composer{p: p, problem: q}
	if q.c.Rows == 0 || q.c.Cols == 0 {
		return &job{problem: q}, nil
	}
	var err error
	if w.loaded, err = p.dev.kernel(p.kern, p.variant); err != nil {
		return nil, err
	}
	if err := w.reserve(); err != nil {
		return nil, err
	}
	for j := range q.b.colBlocks() {
		if err := w.columns(j); err != nil {
			return nil, err
		}
	}
	return &job{q, w.launches}, nil
}

// source is the layout that the kernel reads block j of B in, target the one it writes block (i, j)
// of C in; each is the block's own, or that of a staging buffer.
func (w *composer) source(j int) (l layout, staged bool) {
	l = w.b.blockLayout(0, j)
	if w.p.staged(l.typ, l.colMajor) {
		return newLayout(l.rows, l.cols, w.p.Precision.Storage(), false), true
	}
	return l, false
}

func (w *composer) target(i, j int) (l layout, staged bool) {
	l = w.c.blockLayout(i, j)
	if !w.p.direct(l.typ, l.colMajor) {
		return newLayout(l.rows, l.cols, dtype.F32, false), true
	}
	return l, false
}

// reserve makes the shared buffers as large as the largest block needs them.
func (w *composer) reserve() error {
	var b, c, work, ints int64
	for j := range w.c.colBlocks() {
		if l, staged := w.source(j); staged {
			b = max(b, l.bytes(), 4)
		}
		if w.p.fixed != nil {
			ints = max(ints, w.quantised(j).Bytes())
		}
		for i := range w.p.parts {
			if l, staged := w.target(i, j); staged {
				c = max(c, l.bytes(), 4)
			}
			l, err := w.launch(i, j)
			if err != nil {
				return err
			}
			work = max(work, l.Workspace)
		}
	}
	t := &w.p.temps
	for _, x := range []struct {
		temp  *temp
		bytes int64
		what  string
	}{{&t.b, b, "staging of B"}, {&t.c, c, "staging of C"}, {&t.work, work, "workspace of the kernel"}, {&t.q, ints, "B in fixed point"}} {
		if err := w.p.grow(x.temp, x.bytes, x.what); err != nil {
			return err
		}
	}
	return nil
}

// bring returns where block j of B lies as the kernel takes it, and adds the launch that brings it there.
func (w *composer) bring(j int) (backend.Buffer, error) {
	from, staged := w.source(j)
	buf := w.b.blockAt(0, j)
	if !staged {
		return buf, nil
	}
	return w.p.temps.b.buf, w.dense(w.b.blockLayout(0, j), buf, from, w.p.temps.b.buf, 0)
}

// columns adds the launches of one block of columns.
func (w *composer) columns(j int) error {
	bbuf, err := w.bring(j)
	if err != nil {
		return err
	}
	if w.p.fixed != nil {
		if err := w.quantise(j, bbuf, true); err != nil {
			return err
		}
	}
	for i := range w.p.parts {
		cbuf := w.c.blockAt(i, j)
		to, staged := w.target(i, j)
		if !staged {
			if err := w.multiply(i, j, bbuf, cbuf); err != nil {
				return err
			}
			continue
		}
		beta := w.beta
		if w.p.fixed != nil { // the kernel adds: what dense computes is not the same everywhere
			if beta != 0 {
				if err := w.dense(w.c.blockLayout(i, j), cbuf, to, w.p.temps.c.buf, 0); err != nil {
					return err
				}
			}
			beta = 0
		}
		if err := w.multiply(i, j, bbuf, w.p.temps.c.buf); err != nil {
			return err
		}
		if err := w.dense(to, w.p.temps.c.buf, w.c.blockLayout(i, j), cbuf, beta); err != nil {
			return err
		}
	}
	return nil
}

// launch asks the kernel how part i of A times block j of B runs.
func (w *composer) launch(i, j int) (spec.Launch, error) {
	from, _ := w.source(j)
	to, staged := w.target(i, j)
	q := spec.Problem{
		M: to.rows, K: from.rows, N: to.cols, LDB: from.ld, LDC: to.ld,
		Out: to.typ, Alpha: w.alpha, Beta: w.beta, Caps: w.p.dev.Caps(),
	}
	if staged && w.p.fixed == nil {
		q.Beta = 0 // dense adds
	}
	return w.p.kern.Launch(w.p.variant, w.p.parts[i].enc, q)
}

// multiply adds the launches of part i of A times block j of B.
func (w *composer) multiply(i, j int, bbuf, cbuf backend.Buffer) error {
	l, err := w.launch(i, j)
	if err != nil {
		return err
	}
	args := append(slices.Clone(w.p.parts[i].bufs), bbuf)
	if w.p.fixed != nil {
		args = append(args, w.p.temps.q.buf)
	}
	args = append(args, cbuf)
	if l.Workspace > 0 {
		args = append(args, w.p.temps.work.buf)
	}
	if err := w.add(w.p.kern.Name, w.loaded, l.Groups, args, l.Params); err != nil || l.Then == nil {
		return err
	}
	then, err := w.p.dev.kernel(w.p.kern, l.Then)
	if err != nil {
		return err
	}
	return w.add(w.p.kern.Name, then, l.ThenGroups, args, l.ThenParams)
}

// dense adds the launch that brings src into dst's order and type: dst = src + beta·dst.
func (w *composer) dense(src layout, sbuf backend.Buffer, dst layout, dbuf backend.Buffer, beta float32) error {
	if src.rows == 0 || src.cols == 0 {
		return nil
	}
	v, err := dense.Variant(w.p.dev.Caps())
	if err != nil {
		return err
	}
	k, err := w.p.dev.kernel(dense.Kernel, v)
	if err != nil {
		return err
	}
	l, err := dense.Launch(v, dense.Op{
		Rows: src.rows, Cols: src.cols, Alpha: 1, Beta: beta,
		Src: dense.Layout{Type: src.typ, LD: src.ld, ColMajor: src.colMajor},
		Dst: dense.Layout{Type: dst.typ, LD: dst.ld, ColMajor: dst.colMajor},
	})
	if err != nil {
		return err
	}
	return w.add(dense.Kernel.Name, k, l.Groups, []backend.Buffer{sbuf, dbuf}, l.Params)
}

// add appends a launch that the device's grid can hold.
func (w *composer) add(name string, k backend.Kernel, groups [3]uint32, args []backend.Buffer, params []byte) error {
	most := w.p.dev.Caps().MaxGroups
	for i, g := range groups {
		if most[i] > 0 && g > most[i] {
			return fmt.Errorf("kernel %s needs a grid of %v workgroups, %v allows %v: %w", name, groups, w.p.dev.Info(), most, backend.ErrUnsupported)
		}
	}
	w.launches = append(w.launches, backend.Launch{Kernel: k, Groups: groups, Args: args, Params: params})
	return nil
}
