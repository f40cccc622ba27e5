// A plan as one of several that multiply together: see package many.

package plan

import (
	"context"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// Bring makes the plan of a matrix that is packed, in fast mode, which it brings onto the device.
func Bring(ctx context.Context, d *device.Device, w *work.Work, e *work.Packed, why string) (*Plan, error) {
	packed := func(context.Context) (*work.Packed, error) { return e, nil }
	return build(ctx, d, w, way{why: why, pack: packed, executor: newFast})
}

// MultiplyTogether is Multiply that calls copied once b and c have been copied to the device, before anything is
// written to c.
func (p *Plan) MultiplyTogether(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e launch.Epilogue, copied func() error) (api.Timing, error) {
	return p.multiply(ctx, alpha, b, beta, c, e, copied)
}

// StartRepeated is Start of the same multiplication a number of times.
func (p *Plan) StartRepeated(ctx context.Context, times int, alpha float64, b tensor.Operand, beta float64,
	c tensor.Operand, e launch.Epilogue) (backend.Pending, error) {
	return p.start(ctx, times, alpha, b, beta, c, e)
}

// Recordable tells why a product cannot be recorded before B is known, if it cannot.
func (p *Plan) Recordable() error { return p.exec.Recordable() }

// MayChange refuses new values whatever they are.
func (p *Plan) MayChange(ctx context.Context) error { return p.mayChange(ctx) }

// TakeStreamed returns how the time of the last product was spent, if the matrix is not on the device, once.
func (p *Plan) TakeStreamed() api.Streamed {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.streamed
	p.streamed = api.Streamed{}
	return t
}

// Forget drops the launches with a tensor that is about to be closed.
func (p *Plan) Forget(t *tensor.Tensor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launcher.Forget(t)
}

// DropLast removes the step that was appended last.
func (s *Sequence) DropLast() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = s.steps[:len(s.steps)-1]
	return s.forget()
}
