// Products on several devices with tensors: what does not lie where the split needs it is brought there, and all
// devices multiply.

package many

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// tally adds up how long a multiplication takes on each device, and in all.
type tally struct {
	api.Timing
	adding sync.Mutex
}

func newTally(devices int) *tally {
	return &tally{Timing: api.Timing{Each: make([]backend.Timing, devices)}}
}

// sum sets what is said of all devices together.
func (t *tally) sum(start time.Time) {
	for _, x := range t.Each {
		t.Device = max(t.Device, x.Device)
	}
	if t.Streamed.Panels > 0 { // the device also waits
		t.Device = 0
	}
	t.Host = time.Since(start)
}

// stream adds what a product with a matrix that is not on the device took.
func (t *tally) stream(p *plan.Plan) {
	s := p.TakeStreamed()
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
func (t *tally) copy(ctx context.Context, dst, src *Tensor) error {
	start := time.Now()
	n, err := dst.copy(ctx, src)
	t.Moved += n
	t.Move += time.Since(start)
	return err
}

// Repeat runs the same multiplication of tensors on the plan's devices a number of times back to back. What does not
// lie where the split needs it is copied there before, and C back after, once. With a beta other than 0 each run adds
// to the last one's c.
func (g *Plan) Repeat(ctx context.Context, times int, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (api.Timing, error) {
	if times < 1 {
		return api.Timing{}, fmt.Errorf("%d repetitions: at least 1 is possible", times)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.repeat(ctx, times, alpha, b, beta, c, e)
}

// Start starts a product whose operands lie where the split needs them, on each device, and returns; any other is
// waited for.
func (g *Plan) Start(ctx context.Context, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (backend.Pending, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	bs, cs, err := g.operands(b, c)
	if err != nil {
		return nil, err
	}
	es, err := g.recordable(bs, cs, e)
	if err != nil || g.plans[0].Recordable() != nil {
		t, err := g.repeat(ctx, 1, alpha, b, beta, c, e)
		return &pending{done: t}, err
	}
	each, err := g.start(ctx, 1, alpha, bs, beta, cs, es)
	return &pending{each: each, devs: g.devs()}, err
}

// operands returns B and C as tensors on the plan's devices, of sizes that fit together, unless the plan cannot be
// multiplied with.
func (g *Plan) operands(b, c tensor.Operand) (bs, cs *Tensor, err error) {
	switch {
	case b == nil || c == nil:
		return nil, nil, errors.New("B or C is missing")
	case b == c:
		return nil, nil, errors.New("B and C must be two matrices: C is written while B is read")
	}
	if err := g.usable(); err != nil {
		return nil, nil, err
	}
	if bs, err = g.tensor(b); err != nil {
		return nil, nil, err
	}
	if cs, err = g.tensor(c); err != nil {
		return nil, nil, err
	}
	if n := g.columns(cs); g.most > 0 && n > g.most {
		return nil, nil, g.tooMany(n)
	}
	return bs, cs, g.checkTensors(bs, cs)
}

// columns is the number of C's columns as the plan sees them.
func (g *Plan) columns(c *Tensor) int {
	if g.all.Right {
		return c.Rows
	}
	return c.Cols
}

// repeat is Repeat with the plan locked.
func (g *Plan) repeat(ctx context.Context, times int, alpha float64, ob tensor.Operand, beta float64, oc tensor.Operand,
	e launch.Epilogue) (api.Timing, error) {
	start := time.Now()
	t := newTally(len(g.plans))
	err := g.multiplyTensors(ctx, times, alpha, ob, beta, oc, e, t)
	if err == nil {
		t.sum(start)
	}
	return t.Timing, err
}

func (g *Plan) multiplyTensors(ctx context.Context, times int, alpha float64, ob tensor.Operand, beta float64,
	oc tensor.Operand, e launch.Epilogue, t *tally) error {
	b, c, err := g.operands(ob, oc)
	if err != nil {
		return err
	}
	n := g.columns(c)
	lies, err := g.inPlace(roleB, n, b, b.Type, c.Type)
	if err != nil {
		return err
	}
	cs, err := g.bring(ctx, roleC, n, c, b.Type, c.Type, beta != 0, t)
	if err != nil {
		return err
	}
	es, err := g.epilogues(ctx, e, n, c.Type, t)
	if err != nil {
		return err
	}
	done := false
	if !lies && times == 1 {
		done, err = g.overlapped(ctx, n, alpha, b, beta, cs, es, t)
	}
	if !done && err == nil {
		var bs *Tensor
		if bs, err = g.bring(ctx, roleB, n, b, b.Type, c.Type, true, t); err == nil {
			err = g.run(ctx, times, alpha, bs, beta, cs, es, t.Each)
		}
	}
	if err != nil {
		return err
	}
	for _, p := range g.plans {
		t.stream(p)
	}
	if cs != c {
		return t.copy(ctx, c, cs)
	}
	return nil
}

// checkTensors refuses operands whose sizes do not fit together.
func (g *Plan) checkTensors(b, c *Tensor) error {
	sb, sc := b.Shape, c.Shape
	if g.all.Right {
		sb, sc = sb.Transposed(), sc.Transposed()
	}
	return g.all.CheckDims(sb.Rows, sb.Cols, sc.Rows, sc.Cols)
}

// epilogues returns each device's part of an epilogue.
func (g *Plan) epilogues(ctx context.Context, e launch.Epilogue, n int, c dtype.Type,
	t *tally) ([]launch.Epilogue, error) {
	out := make([]launch.Epilogue, len(g.plans))
	for d := range out {
		out[d].Activation = e.Activation
	}
	if e.RowBias != nil && e.ColBias != nil {
		return out, launch.ErrTwoBiases
	}
	for _, x := range []struct {
		bias tensor.Operand
		rows bool
		name string
	}{{e.RowBias, true, "row bias"}, {e.ColBias, false, "column bias"}} {
		bias, err := g.tensor(x.bias)
		if err != nil {
			return out, fmt.Errorf("the %s: %w", x.name, err)
		}
		if bias == nil {
			continue
		}
		r := roleColBias
		if x.rows != g.all.Right {
			r = roleRowBias
		}
		here, err := g.bring(ctx, r, n, bias, bias.Type, c, true, t)
		if err != nil {
			return out, fmt.Errorf("the %s: %w", x.name, err)
		}
		for d, p := range here.parts {
			if x.rows {
				out[d] = launch.NewEpilogue(p, nil, e.Activation)
			} else {
				out[d] = launch.NewEpilogue(nil, p, e.Activation)
			}
		}
	}
	return out, nil
}

// bring returns a tensor that lies where the split needs it: t itself if it does, else one that the plan keeps, into
// which t is copied if it is read. b and c are the types of B and C.
func (g *Plan) bring(ctx context.Context, r role, n int, t *Tensor, b, c dtype.Type, read bool,
	tm *tally) (*Tensor, error) {
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
func (g *Plan) inPlace(r role, n int, t *Tensor, b, c dtype.Type) (bool, error) {
	s, at := g.need(r, n)
	if t.Rows != s.Rows || t.Cols != s.Cols {
		return false, fmt.Errorf("shapes do not fit: it is %d×%d, want %d×%d", t.Rows, t.Cols, s.Rows, s.Cols)
	}
	if len(t.devs) != len(g.plans) || slices.ContainsFunc(g.plans, func(p *plan.Plan) bool {
		return !slices.Contains(t.devs, p.Device())
	}) {
		return false, errors.New("a tensor is on other devices")
	}
	return g.lies(r, t, g.boxes(s, at), b, c)
}

// lies tells whether a tensor has the boxes that are needed, in blocks that the kernels take.
func (g *Plan) lies(r role, t *Tensor, boxes []box, b, c dtype.Type) (bool, error) {
	if t.alone { // whose layout the plan looks at
		return true, nil
	}
	for d, p := range t.parts {
		if p == nil {
			if !idle(d, boxes) {
				return false, nil
			}
			continue
		}
		if p.Device() != g.plans[d].Device() || t.boxes[d] != boxes[d] {
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
func (g *Plan) forget(t *Tensor) {
	for d, p := range g.plans {
		if t.parts[d] != nil {
			p.Forget(t.parts[d])
		}
	}
}

// run starts the product on every device that has a part of it, and waits for all. Where the precision is found from B,
// a device is not started before that is known, so each has a goroutine.
func (g *Plan) run(ctx context.Context, times int, alpha float64, b *Tensor, beta float64, c *Tensor,
	es []launch.Epilogue, each []backend.Timing) error {
	wait := func(ctx context.Context, d int, w backend.Pending) (err error) {
		if each[d], err = w.Wait(ctx); err != nil {
			return named(g.plans[d].Device(), err)
		}
		return nil
	}
	if g.plans[0].Recordable() != nil {
		return together(ctx, len(g.plans), func(ctx context.Context, d int) error {
			w, err := g.startOn(ctx, d, times, alpha, b, beta, c, es[d])
			if err != nil {
				return err
			}
			return wait(ctx, d, w)
		})
	}
	begun, first := g.start(ctx, times, alpha, b, beta, c, es)
	for d, w := range begun {
		first = cmp.Or(first, wait(ctx, d, w))
	}
	return first
}

// start starts the product on every device that has a part of it. After an error it returns what has begun.
func (g *Plan) start(ctx context.Context, times int, alpha float64, b *Tensor, beta float64, c *Tensor,
	es []launch.Epilogue) ([]backend.Pending, error) {
	begun := make([]backend.Pending, 0, len(g.plans))
	for d := range g.plans {
		w, err := g.startOn(ctx, d, times, alpha, b, beta, c, es[d])
		if err != nil {
			return begun, err
		}
		begun = append(begun, w)
	}
	return begun, nil
}

func (g *Plan) startOn(ctx context.Context, d, times int, alpha float64, b *Tensor, beta float64, c *Tensor,
	e launch.Epilogue) (backend.Pending, error) {
	if b.parts[d] == nil || c.parts[d] == nil {
		return backend.Done(backend.Timing{}), nil
	}
	w, err := g.plans[d].StartRepeated(ctx, times, alpha, b.parts[d], beta, c.parts[d], e)
	if err != nil {
		return nil, named(g.plans[d].Device(), err)
	}
	return w, nil
}

// devs returns the devices that the plan is on.
func (g *Plan) devs() []*device.Device {
	var out []*device.Device
	for _, p := range g.plans {
		out = append(out, p.Device())
	}
	return out
}
