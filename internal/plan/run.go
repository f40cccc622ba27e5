// Multiplication of tensors on the plan's device.

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Run computes c = alpha·A·b + beta·c, with an epilogue; b is K×N and c is M×N, in any type and order. With A on the
// right it is c = alpha·b·A + beta·c, b being N×K and c N×M. c is not read where beta is 0. The context is looked at
// between launches.
func (p *Plan) Run(ctx context.Context, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (api.Timing, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c, e)
}

// Repeat runs the same multiplication a number of times back to back, as a program that keeps the device
// busy does; it serves to measure. With a beta other than 0 each run adds to the last one's c.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (api.Timing, error) {
	if times < 1 {
		return api.Timing{}, fmt.Errorf("%d repetitions: at least 1 is possible", times)
	}
	q, err := p.product(alpha, b, beta, c, e, times)
	if err != nil {
		return api.Timing{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.run(ctx, q)
	return api.TimingOf(t), err
}

// run is Run with the plan locked.
func (p *Plan) run(ctx context.Context, q launch.Product) (backend.Timing, error) {
	if err := p.begin(ctx, q); err != nil {
		return backend.Timing{}, err
	}
	defer q.Release()
	m, w, err := p.settled(ctx, q)
	if err != nil || len(w.Launches) == 0 {
		return backend.Timing{}, err
	}
	if m.Stream != nil {
		return p.runStreamed(ctx, m, w, q.Times)
	}
	return p.dev.Run(ctx, w.Launches...)
}

// Start is Run without the wait. Where B decides the precision, that is waited for. The operands may be closed at
// once: buffers wait for the device before they are freed.
func (p *Plan) Start(ctx context.Context, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (backend.Pending, error) {
	return p.start(ctx, 1, alpha, b, beta, c, e)
}

// start is Start of the same multiplication a number of times.
func (p *Plan) start(ctx context.Context, times int, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) (backend.Pending, error) {
	q, err := p.product(alpha, b, beta, c, e, times)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.begin(ctx, q); err != nil {
		return nil, err
	}
	defer q.Release()
	if p.Panels > 0 {
		if err := q.Use(); err != nil {
			return nil, err
		}
		return begun(func() (backend.Timing, error) {
			defer q.Release()
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.run(ctx, q)
		}), nil
	}
	_, w, err := p.settled(ctx, q)
	if err != nil {
		return nil, err
	}
	return p.dev.Start(ctx, w.Launches...)
}

// begin checks a product, and keeps its tensors until release.
func (p *Plan) begin(ctx context.Context, q launch.Product) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.check(q); err != nil {
		return err
	}
	return q.Use()
}

// settled returns the launches of a product that has begun, once the executor is ready for it, and the matrix that they
// multiply with.
func (p *Plan) settled(ctx context.Context, q launch.Product) (*resident.Matrix, launch.RunList, error) {
	m, err := p.turn(ctx, p.launcher, q.B)
	if err != nil {
		return nil, launch.RunList{}, err
	}
	w, err := p.launches(m, q)
	return m, w, err
}

// turn returns the matrix at the precision that b needs, for a product that is not sampled.
func (p *Plan) turn(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) (*resident.Matrix, error) {
	p.lastSampled = false
	return p.exec.Prepare(ctx, l, b)
}

// launches returns the launches of a product that was checked, as they were composed the last time, if possible.
func (p *Plan) launches(m *resident.Matrix, q launch.Product) (launch.RunList, error) {
	if q.C.Rows == 0 || q.C.Cols == 0 {
		return launch.RunList{}, nil
	}
	if w, ok := p.launcher.Find(m, q); ok {
		return w, nil
	}
	w, err := p.compose(p.launcher, m, q)
	if err != nil {
		return launch.RunList{}, err
	}
	if m.Stream == nil { // else the panels are copied each time
		w.Launches = slices.Repeat(w.Launches, q.Times)
	}
	p.launcher.Keep(m, q, w)
	return w, nil
}

// compose returns the launches of a product that was checked, which share the buffers of a launcher.
func (p *Plan) compose(l *launch.Launcher, m *resident.Matrix, q launch.Product) (launch.RunList, error) {
	return l.Compose(m, q, func(w *launch.Composer) error {
		for j := range q.B.ColBlocks() {
			if err := p.exec.Columns(w, j); err != nil {
				return err
			}
		}
		return nil
	})
}
