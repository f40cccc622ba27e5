// Multiplication of data that lies in the host's memory.

package plan

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Multiply computes c = alpha·A·b + beta·c, with an epilogue: it copies b (and c, unless beta is 0) to the device, runs
// and copies c back. The device's copies are kept for the next call with matrices of the same shape.
// Timing.Host includes the copies. After an error the contents of c are undefined.
func (p *Plan) Multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e launch.Epilogue) (api.Timing, error) {
	return p.multiply(ctx, alpha, b, beta, c, e, nil)
}

// multiply is Multiply that calls copied, if there is one, once b and c have been copied to the device, before
// anything is written to c.
func (p *Plan) multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e launch.Epilogue, copied func() error) (api.Timing, error) {
	start := time.Now()
	if p.right {
		b, c = b.Transposed(), c.Transposed()
	}
	if err := p.sides().CheckDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return api.Timing{}, err
	}
	q, err := p.product(alpha, nil, beta, nil, e, 1)
	if err != nil {
		return api.Timing{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	bs, cs, err := p.shapes(b.Cols, b.Type, b.ColMajor, c.Type, c.ColMajor)
	if err != nil {
		return api.Timing{}, err
	}
	bm, err := p.hostTensor(0, bs)
	if err != nil {
		return api.Timing{}, err
	}
	cm, err := p.hostTensor(1, cs)
	if err != nil {
		return api.Timing{}, err
	}
	if err := bm.Write(ctx, b.Host); err != nil {
		return api.Timing{}, err
	}
	if beta != 0 {
		if err := cm.Write(ctx, c.Host); err != nil {
			return api.Timing{}, err
		}
	}
	if copied != nil {
		if err := copied(); err != nil {
			return api.Timing{}, err
		}
	}
	q.B, q.C = bm, cm
	t, err := p.run(ctx, q)
	if err == nil {
		err = cm.Read(ctx, c.Host)
	}
	return api.Timing{Device: t.Device, Host: time.Since(start)}, err
}

// hostTensor returns the device's copy of B (0) or C (1), made anew if its shape changed.
func (p *Plan) hostTensor(i int, s tensor.Shape) (*tensor.Tensor, error) {
	s = s.Whole()
	if t := p.host[i]; t != nil {
		if t.Shape == s {
			return t, nil
		}
		p.launcher.Forget(t)
		p.host[i] = nil
		if err := t.Close(); err != nil {
			return nil, err
		}
	}
	t, err := tensor.New(p.dev, s)
	p.host[i] = t
	return t, err
}
