// Multiplication of tensors on the plan's device.

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
)

// Run computes c = alpha·A·b + beta·c, with an epilogue; b is K×N and c is M×N, in any type and order. With A on the right it
// is c = alpha·b·A + beta·c, b being N×K and c N×M. c is not read where beta is 0. The context is looked at between launches.
func (p *Plan) Run(ctx context.Context, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (Timing, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c, e)
}

// Repeat runs the same multiplication a number of times back to back, as a program that keeps the device
// busy does; it serves to measure. With a beta other than 0 each run adds to the last one's c.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (Timing, error) {
	if times < 1 {
		return Timing{}, fmt.Errorf("%d repetitions: at least 1 is possible", times)
	}
	q, err := p.product(alpha, b, beta, c, e, times)
	if err != nil {
		return Timing{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.run(ctx, q)
	return timed(t), err
}

// run is Run with the plan locked.
func (p *Plan) run(ctx context.Context, q product) (backend.Timing, error) {
	if err := p.begin(ctx, q); err != nil {
		return backend.Timing{}, err
	}
	defer q.release()
	m, w, err := p.settled(ctx, q)
	if err != nil || len(w.launches) == 0 {
		return backend.Timing{}, err
	}
	if m.stream != nil {
		return p.runStreamed(ctx, m, w, q.times)
	}
	return p.dev.Run(ctx, w.launches...)
}

// Start is Run without the wait. Where B decides the precision, that is waited for. The operands may be closed at
// once: buffers wait for the device before they are freed.
func (p *Plan) Start(ctx context.Context, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (Pending, error) {
	w, err := p.Begin(ctx, alpha, b, beta, c, e)
	return Pending{one: w}, err
}

// Begin is Start for those who wait for the device itself.
func (p *Plan) Begin(ctx context.Context, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (backend.Pending, error) {
	return p.start(ctx, 1, alpha, b, beta, c, e)
}

// start is Start of the same multiplication a number of times.
func (p *Plan) start(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (backend.Pending, error) {
	q, err := p.product(alpha, b, beta, c, e, times)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.begin(ctx, q); err != nil {
		return nil, err
	}
	defer q.release()
	if p.Panels > 0 {
		return p.startStreamed(ctx, q)
	}
	_, w, err := p.settled(ctx, q)
	if err != nil {
		return nil, err
	}
	return p.dev.Start(ctx, w.launches...)
}

// begin checks a product, and keeps its tensors until release.
func (p *Plan) begin(ctx context.Context, q product) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.check(q); err != nil {
		return err
	}
	return q.use()
}

// settled returns the launches of a product that has begun, once the executor is ready for it, and the matrix that they
// multiply with.
func (p *Plan) settled(ctx context.Context, q product) (*resident, runList, error) {
	m, err := p.exec.settle(ctx, p.launcher, q.b)
	if err != nil {
		return nil, runList{}, err
	}
	w, err := p.launches(m, q)
	return m, w, err
}

// use keeps the product's tensors until release, all of them or none.
func (q product) use() error {
	if err := q.b.Use(); err != nil {
		return err
	}
	if err := q.c.Use(); err != nil {
		q.b.Release()
		return err
	}
	if q.bias == nil {
		return nil
	}
	err := q.bias.Use()
	if err != nil {
		q.b.Release()
		q.c.Release()
	}
	return err
}

func (q product) release() {
	q.b.Release()
	q.c.Release()
	if q.bias != nil {
		q.bias.Release()
	}
}

// launches returns the launches of a product that was checked, as they were composed the last time, if possible.
func (p *Plan) launches(m *resident, q product) (runList, error) {
	if q.c.Rows == 0 || q.c.Cols == 0 {
		return runList{}, nil
	}
	k := q.key(m)
	if w, ok := p.launcher.find(k); ok {
		return w, nil
	}
	launches, err := p.compose(p.launcher, m, q)
	if err != nil {
		return runList{}, err
	}
	w := runList{launches, p.launcher.marks}
	if m.stream == nil { // else the panels are copied each time
		w.launches = slices.Repeat(launches, q.times)
	}
	p.launcher.keep(k, w)
	return w, nil
}

// compose returns the launches of a product that was checked, which share the buffers of a launcher.
func (p *Plan) compose(l *launcher, m *resident, q product) ([]backend.Launch, error) {
	return l.compose(m, q, func(w *composer) error {
		for j := range q.b.ColBlocks() {
			if err := p.exec.columns(w, j); err != nil {
				return err
			}
		}
		return nil
	})
}

// check refuses operands that do not fit together.
func (p *Plan) check(q product) error {
	b, c := q.b, q.c
	switch {
	case p.closed.Load():
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	case b == nil || c == nil:
		return errors.New("B or C is missing")
	case b.Device() != p.dev || c.Device() != p.dev:
		return fmt.Errorf("A, B and C must be on one device, and A is on %v", p.dev.Info())
	case b == c:
		return errors.New("B and C must be two matrices: C is written while B is read")
	}
	if err := p.checkDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return err
	}
	if b.RowBlocks() > 1 || b.ColBlocks() != c.ColBlocks() || b.ColBlock != c.ColBlock || c.Rows > 0 && c.RowBlock != min(p.rowBlock, c.Rows) {
		if p.right {
			b, c = b.Transposed(), c.Transposed()
			return fmt.Errorf("B lies in blocks of %d×%d and C of %d×%d, but A of %d×%d on the right needs C in blocks of %d columns, B in whole rows, and the same rows in both (TensorsFor makes such)",
				b.RowBlock, b.ColBlock, c.RowBlock, c.ColBlock, p.Cols, p.Rows, p.rowBlock)
		}
		return fmt.Errorf("B lies in blocks of %d×%d and C of %d×%d, but A of %d×%d needs C in blocks of %d rows, B in whole columns, and the same columns in both (TensorsFor makes such)",
			b.RowBlock, b.ColBlock, c.RowBlock, c.ColBlock, p.Rows, p.Cols, p.rowBlock)
	}
	if b.Overlaps(c) {
		return errors.New("B and C lie in the same memory: C is written while B is read")
	}
	if err := p.checkBias(q); err != nil {
		return err
	}
	return p.exec.takes(q)
}
