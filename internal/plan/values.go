// New values for the entries of a prepared matrix: its pattern, and so how it is packed, stay as they are.

package plan

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// SetValues makes the elements of a tensor of 1×NNZ or NNZ×1 the values of the matrix's entries, in the order in which
// these were given to New: of the CSR, of the CSC's arrays, of what Sparse returns for other formats. It waits for the
// multiplication in progress. After an error the values are undefined.
func (p *Plan) SetValues(ctx context.Context, v tensor.Operand) error {
	t, err := tensor.One(v)
	if err == nil {
		_, err = p.RepeatSetValues(ctx, 1, t)
	}
	return err
}

// RepeatSetValues is SetValues a number of times back to back: it serves to measure.
func (p *Plan) RepeatSetValues(ctx context.Context, times int, v *tensor.Tensor) (backend.Timing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.checkValues(ctx, v); err != nil {
		return backend.Timing{}, err
	}
	if err := v.Use(); err != nil {
		return backend.Timing{}, err
	}
	defer v.Release()
	return p.exec.SetTensor(ctx, p.given, v, times)
}

// SetHostValues is SetValues for values in the host's memory.
func (p *Plan) SetHostValues(ctx context.Context, v values.Host) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.mayChange(ctx); err != nil {
		return err
	}
	if n := v.Len(); int64(n) != p.NNZ {
		return fmt.Errorf("%d values for a matrix of %d entries", n, p.NNZ)
	}
	return p.exec.SetHost(ctx, p.given, v)
}

// checkValues refuses tensors that are no values of this matrix.
func (p *Plan) checkValues(ctx context.Context, v *tensor.Tensor) error {
	if err := p.mayChange(ctx); err != nil {
		return err
	}
	switch {
	case v == nil:
		return errors.New("the tensor of values is missing")
	case v.Device() != p.dev:
		return fmt.Errorf("values must be on the device of A, which is on %v", p.dev.Info())
	case v.Rows != 1 && v.Cols != 1 || int64(v.Rows)*int64(v.Cols) != p.NNZ:
		if p.NNZ == 0 && v.Rows*v.Cols == 0 {
			return nil
		}
		return fmt.Errorf("values of %d×%d for a matrix of %d entries: want 1×%d or %d×1", v.Rows, v.Cols, p.NNZ, p.NNZ,
			p.NNZ)
	}
	return v.Odd()
}

// mayChange refuses new values whatever they are.
func (p *Plan) mayChange(ctx context.Context) error {
	if p.closed.Load() {
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	if p.Quantised != dtype.Invalid {
		return fmt.Errorf("values of a quantised matrix cannot be replaced: quantise and prepare it again: %w",
			backend.ErrUnsupported)
	}
	if p.Panels > 0 {
		return fmt.Errorf("new values of a matrix that stays in the host's memory: prepare it again: %w",
			backend.ErrUnsupported)
	}
	if p.NNZ > math.MaxUint32 {
		return fmt.Errorf("a matrix of %d entries cannot take new values: at most %d can: %w", p.NNZ, int64(math.MaxUint32),
			backend.ErrUnsupported)
	}
	return ctx.Err()
}
