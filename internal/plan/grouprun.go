// Products of a group with tensors: what does not lie where the split needs it is brought there, and all devices multiply.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
)

// GroupTiming is how long a multiplication took on each device, and in all.
type GroupTiming struct {
	backend.Timing // Device is the slowest's
	Each           []backend.Timing
	Moved          int64         // bytes from one device to another
	Move           time.Duration // what that took
	Streamed       stream.Timing // of all devices together; Panels is the most of one

	adding *sync.Mutex
}

func newGroupTiming(devices int) GroupTiming {
	return GroupTiming{Each: make([]backend.Timing, devices), adding: new(sync.Mutex)}
}

// sum sets what is said of all devices together.
func (t *GroupTiming) sum(start time.Time) {
	for _, x := range t.Each {
		t.Device = max(t.Device, x.Device)
	}
	if t.Streamed.Panels > 0 { // the device also waits
		t.Device = 0
	}
	t.Host = time.Since(start)
}

// stream adds what a product with a matrix that is not on the device took.
func (t *GroupTiming) stream(p *Plan) {
	p.mu.Lock()
	s := p.streamed
	p.streamed = stream.Timing{}
	p.mu.Unlock()
	if s.Panels == 0 {
		return
	}
	t.adding.Lock()
	defer t.adding.Unlock()
	t.Streamed.Panels = max(t.Streamed.Panels, s.Panels)
	t.Streamed.Bytes += s.Bytes
	t.Streamed.Copy += s.Copy
	t.Streamed.Compute += s.Compute
}

// copy copies between tensors and counts it.
func (t *GroupTiming) copy(ctx context.Context, dst, src *GroupTensor) error {
	start := time.Now()
	n, err := dst.Copy(ctx, src)
	t.Moved += n
	t.Move += time.Since(start)
	return err
}

// GroupEpilogue is Epilogue for a group.
type GroupEpilogue struct {
	RowBias, ColBias *GroupTensor
	Activation       launch.Activation
}

// Run computes c = alpha·A·b + beta·c for tensors on the group's devices. What does not lie where the split needs it is copied
// there before, and C back after.
func (g *GroupPlan) Run(ctx context.Context, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, e GroupEpilogue) (GroupTiming, error) {
	return g.Repeat(ctx, 1, alpha, b, beta, c, e)
}

// Repeat runs the same multiplication a number of times back to back; copies between devices are made once. With a beta other
// than 0 each run adds to the last one's c.
func (g *GroupPlan) Repeat(ctx context.Context, times int, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, e GroupEpilogue) (GroupTiming, error) {
	start := time.Now()
	t := newGroupTiming(len(g.plans))
	switch {
	case times < 1:
		return t, fmt.Errorf("%d repetitions: at least 1 is possible", times)
	case b == nil || c == nil:
		return t, errors.New("B or C is missing")
	case b == c:
		return t, errors.New("B and C must be two matrices: C is written while B is read")
	}
	n := c.Cols
	if g.all.right {
		n = c.Rows
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return t, err
	}
	if g.most > 0 && n > g.most {
		return t, g.tooMany(n)
	}
	if err := g.checkTensors(b, c); err != nil {
		return t, err
	}
	lies, err := g.inPlace(roleB, n, b, b.Type, c.Type)
	if err != nil {
		return t, err
	}
	cs, err := g.bring(ctx, roleC, n, c, b.Type, c.Type, beta != 0, &t)
	if err != nil {
		return t, err
	}
	es, err := g.epilogues(ctx, e, n, c.Type, &t)
	if err != nil {
		return t, err
	}
	done := false
	if !lies && times == 1 {
		done, err = g.overlapped(ctx, n, alpha, b, beta, cs, es, &t)
	}
	if !done && err == nil {
		var bs *GroupTensor
		if bs, err = g.bring(ctx, roleB, n, b, b.Type, c.Type, true, &t); err == nil {
			err = g.run(ctx, times, alpha, bs, beta, cs, es, t.Each)
		}
	}
	if err != nil {
		return t, err
	}
	for _, p := range g.plans {
		t.stream(p)
	}
	if cs != c {
		err = t.copy(ctx, c, cs)
	}
	t.sum(start)
	return t, err
}

// checkTensors refuses operands whose sizes do not fit together.
func (g *GroupPlan) checkTensors(b, c *GroupTensor) error {
	sb, sc := b.Shape, c.Shape
	if g.all.right {
		sb, sc = sb.Transposed(), sc.Transposed()
	}
	return g.all.checkDims(sb.Rows, sb.Cols, sc.Rows, sc.Cols)
}

// epilogues returns each device's part of an epilogue.
func (g *GroupPlan) epilogues(ctx context.Context, e GroupEpilogue, n int, c dtype.Type, t *GroupTiming) ([]launch.Epilogue, error) {
	out := make([]launch.Epilogue, len(g.plans))
	for d := range out {
		out[d].Activation = e.Activation
	}
	if e.RowBias != nil && e.ColBias != nil {
		return out, launch.ErrTwoBiases
	}
	for _, x := range []struct {
		bias *GroupTensor
		rows bool
		name string
	}{{e.RowBias, true, "row bias"}, {e.ColBias, false, "column bias"}} {
		if x.bias == nil {
			continue
		}
		r := roleColBias
		if x.rows != g.all.right {
			r = roleRowBias
		}
		here, err := g.bring(ctx, r, n, x.bias, x.bias.Type, c, true, t)
		if err != nil {
			return out, fmt.Errorf("the %s: %w", x.name, err)
		}
		for d, p := range here.parts {
			if x.rows {
				out[d].RowBias = p
			} else {
				out[d].ColBias = p
			}
		}
	}
	return out, nil
}

// bring returns a tensor that lies where the split needs it: t itself if it does, else one that the plan keeps, into which t
// is copied if it is read. b and c are the types of B and C.
func (g *GroupPlan) bring(ctx context.Context, r role, n int, t *GroupTensor, b, c dtype.Type, read bool, tm *GroupTiming) (*GroupTensor, error) {
	if lies, err := g.inPlace(r, n, t, b, c); lies || err != nil {
		return t, err
	}
	h := g.held[r]
	if h == nil || h.Shape.Rows != t.Rows || h.Cols != t.Cols || h.Type != t.Type {
		if h != nil {
			g.held[r] = nil
			g.forget(h)
			if err := h.Close(); err != nil {
				return nil, err
			}
		}
		var err error
		if h, err = g.tensorFor(r, n, t.Type, b, c); err != nil {
			return nil, err
		}
		g.held[r] = h
	}
	if !read {
		return h, nil
	}
	return h, tm.copy(ctx, h, t)
}

// inPlace tells whether a tensor lies where the split needs it.
func (g *GroupPlan) inPlace(r role, n int, t *GroupTensor, b, c dtype.Type) (bool, error) {
	s, at := g.need(r, n)
	if t.Rows != s.Rows || t.Cols != s.Cols {
		return false, fmt.Errorf("shapes do not fit: it is %d×%d, want %d×%d", t.Rows, t.Cols, s.Rows, s.Cols)
	}
	if len(t.devs) != len(g.plans) || slices.ContainsFunc(g.plans, func(p *Plan) bool { return !slices.Contains(t.devs, p.dev) }) {
		return false, errors.New("a tensor is on the devices of another group")
	}
	return g.lies(r, t, g.boxes(s, at), b, c)
}

// lies tells whether a tensor has the boxes that are needed, in blocks that the kernels take.
func (g *GroupPlan) lies(r role, t *GroupTensor, boxes []box, b, c dtype.Type) (bool, error) {
	for d, p := range t.parts {
		if p == nil {
			if !g.idle(d, boxes) {
				return false, nil
			}
			continue
		}
		if p.Device() != g.plans[d].dev || t.boxes[d] != boxes[d] {
			return false, nil
		}
		s, err := g.shape(d, r, tensor.Shape{Rows: p.Rows, Cols: p.Cols, Type: p.Type}, b, c)
		if err != nil {
			return false, err
		}
		if p.Shape != s.Whole() {
			return false, nil
		}
	}
	return true, nil
}

// forget drops the launches with a tensor that is about to be closed.
func (g *GroupPlan) forget(t *GroupTensor) {
	for d, p := range g.plans {
		if t.parts[d] != nil {
			p.mu.Lock()
			p.launcher.Forget(t.parts[d])
			p.mu.Unlock()
		}
	}
}

// run starts the product on every device that has a part of it, and waits for all. Where the precision is found from B, a device
// is not started before that is known, so each has a goroutine.
func (g *GroupPlan) run(ctx context.Context, times int, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, es []launch.Epilogue, each []backend.Timing) error {
	one := func(ctx context.Context, d int) (backend.Pending, error) {
		p := g.plans[d]
		if b.parts[d] == nil || c.parts[d] == nil {
			return backend.Done(backend.Timing{}), nil
		}
		w, err := p.start(ctx, times, alpha, b.parts[d], beta, c.parts[d], es[d])
		if err != nil {
			return nil, named(p.dev, err)
		}
		return w, nil
	}
	wait := func(ctx context.Context, d int, w backend.Pending) (err error) {
		if each[d], err = w.Wait(ctx); err != nil {
			return named(g.plans[d].dev, err)
		}
		return nil
	}
	if g.plans[0].exec.Recordable() != nil {
		return together(ctx, len(g.plans), func(ctx context.Context, d int) error {
			w, err := one(ctx, d)
			if err != nil {
				return err
			}
			return wait(ctx, d, w)
		})
	}
	var first error
	begun := make([]backend.Pending, 0, len(g.plans))
	for d := range g.plans {
		w, err := one(ctx, d)
		if err != nil {
			first = err
			break
		}
		begun = append(begun, w)
	}
	for d, w := range begun {
		first = cmp.Or(first, wait(ctx, d, w))
	}
	return first
}
