// Sampled products: dense times dense at the entries of the plan's matrix.

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/sddmm"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// Sampled is a sampled product: S = pattern ⊙ (X·Yᵀ), times Scale unless that is nil, and then with Softmax the softmax
// of each row of the matrix.
type Sampled struct {
	X, Y, S, Scale tensor.Operand
	Softmax        bool
}

// Sample computes s = pattern ⊙ (x·yᵀ), times scale if there is one, where the pattern is that of the matrix which the
// plan multiplies by, of R×C: x is R×n, y is C×n. s and scale have the entries' elements in the order of SetValues.
func (p *Plan) Sample(ctx context.Context, q Sampled) (api.Timing, error) {
	return p.RepeatSample(ctx, 1, q)
}

// RepeatSample is Sample a number of times back to back: it serves to measure.
func (p *Plan) RepeatSample(ctx context.Context, times int, q Sampled) (api.Timing, error) {
	var t backend.Timing
	err := p.sample(ctx, q, scanned(ctx), func(launches []backend.Launch) (err error) {
		t, err = p.dev.Run(ctx, slices.Repeat(launches, times)...)
		return err
	})
	return api.TimingOf(t), err
}

// StartSample is Sample without the wait.
func (p *Plan) StartSample(ctx context.Context, q Sampled) (started backend.Pending, err error) {
	err = p.sample(ctx, q, scanned(ctx), func(launches []backend.Launch) (err error) {
		started, err = p.dev.Start(ctx, launches...)
		return err
	})
	return started, err
}

// EnqueueSample is Sample in a stream of the program's. The first call of any of them copies the pattern, which waits.
func (p *Plan) EnqueueSample(stream uintptr, q Sampled) error {
	s, err := p.streamer()
	if err != nil {
		return err
	}
	compose := func(x *sddmm.Sampler, o sddmm.Operands) ([]backend.Launch, error) {
		if x.Scans() {
			return nil, fmt.Errorf("AutoP finds the precision of a sampled product on the host: prepare with a fixed P: %w",
				backend.ErrUnsupported)
		}
		return x.LaunchesIn(stream, o)
	}
	return p.sample(context.Background(), q, compose, func(launches []backend.Launch) error {
		return p.submit(s, stream, launches)
	})
}

// composer composes the launches of a sampled product.
type composer func(*sddmm.Sampler, sddmm.Operands) ([]backend.Launch, error)

// scanned finds the precision first that X and Y need, where it was not given.
func scanned(ctx context.Context) composer {
	return func(s *sddmm.Sampler, o sddmm.Operands) ([]backend.Launch, error) {
		if err := s.Scan(ctx, o); err != nil {
			return nil, err
		}
		return s.Launches(o)
	}
}

// sample has the launches of a sampled product composed and submitted.
func (p *Plan) sample(ctx context.Context, q Sampled, compose composer,
	submit func([]backend.Launch) error) error {
	o, err := q.operands()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o, err = p.sampled(ctx, o); err != nil {
		return err
	}
	if err := o.Use(); err != nil {
		return err
	}
	defer o.Release()
	p.lastSampled = true
	launches, err := compose(p.sampler, o)
	if err != nil {
		return err
	}
	return submit(launches)
}

// sampled checks the operands of a sampled product, makes the plan ready for it, and returns them as its sampler takes
// them. The plan is locked.
func (p *Plan) sampled(ctx context.Context, o sddmm.Operands) (sddmm.Operands, error) {
	i := p.Describe()
	switch {
	case p.closed.Load():
		return o, fmt.Errorf("the plan: %w", backend.ErrClosed)
	case ctx.Err() != nil:
		return o, ctx.Err()
	case p.given == nil:
		return o, fmt.Errorf("sampling at the entries of a quantised matrix, or of one in the host's memory: prepare another: %w",
			backend.ErrUnsupported)
	}
	if err := o.Check(p.dev, i.Rows, i.Cols, p.NNZ); err != nil {
		return o, err
	}
	if err := p.checkSoftmax(o.Softmax); err != nil {
		return o, err
	}
	if p.right != p.given.Reordered { // lines of the pattern are columns of A as the caller has it
		o.X, o.Y = o.Y, o.X
	}
	return o, p.makeSampler(ctx)
}

// checkSoftmax refuses the softmax of rows where it is not possible.
func (p *Plan) checkSoftmax(asked bool) error {
	_, isFast := p.exec.(*fast)
	switch {
	case asked && p.right != p.given.Reordered:
		return fmt.Errorf("the softmax of rows of a matrix whose entries were given by columns: prepare it as a CSR: %w",
			backend.ErrUnsupported)
	case asked && !isFast:
		return fmt.Errorf("softmax in reproducible mode: there is no right answer to the last bit: %w",
			backend.ErrUnsupported)
	}
	return nil
}

// operands returns the tensors of a sampled product.
func (q Sampled) operands() (o sddmm.Operands, err error) {
	o.Softmax = q.Softmax
	for _, t := range []struct {
		to   **tensor.Tensor
		from tensor.Operand
	}{{&o.X, q.X}, {&o.Y, q.Y}, {&o.Scale, q.Scale}, {&o.S, q.S}} {
		if *t.to, err = tensor.One(t.from); err != nil {
			return o, err
		}
	}
	return o, nil
}

// makeSampler brings the pattern to the device, when it is first needed.
func (p *Plan) makeSampler(ctx context.Context) error {
	if p.sampler != nil {
		return nil
	}
	m, bits := (*resident.Matrix)(nil), rfx.P(0)
	switch x := p.exec.(type) {
	case *fast:
		m = x.Matrix
	case *reproducible.Executor:
		bits = x.Asked()
	}
	lines, places, err := values.Pattern(ctx, m, p.given)
	if err != nil {
		return err
	}
	p.sampler, err = sddmm.New(ctx, p.dev, p.Precision, bits, lines, places)
	return err
}
