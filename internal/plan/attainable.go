// The least time that a device can take for a product.

package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Attainable returns the least time of a multiplication by n columns, C having elements of type out
// and not being read, with an epilogue.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type, e launch.Epilogue) (api.Bound, error) {
	if err := p.checkResult(n, out); err != nil {
		return api.Bound{}, err
	}
	rates, err := choose.Attainable(ctx, p.dev)
	if err != nil {
		return api.Bound{}, err
	}
	v, w, err := p.work(n, out, e)
	if err != nil {
		return api.Bound{}, err
	}
	return rates.Bound(v, w), nil
}

// Observe tells that a multiplication as Attainable has it took so long, and returns the attainable time after that:
// see choose.Observe.
func (p *Plan) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration,
	e launch.Epilogue) (api.Bound, error) {
	if err := p.checkResult(n, out); err != nil {
		return api.Bound{}, err
	}
	v, w, err := p.work(n, out, e)
	if err != nil {
		return api.Bound{}, err
	}
	rates, err := choose.Observe(ctx, p.dev, v, w, took)
	if err != nil {
		return api.Bound{}, err
	}
	b := rates.Bound(v, w)
	if took > 0 {
		// A small B can be in caches that are faster than the one which the rate is of.
		b.Gather = min(b.Gather, took)
	}
	return b, nil
}

// checkResult refuses what no C can have: n columns (rows, with A on the right) of type out.
func (p *Plan) checkResult(n int, out dtype.Type) error {
	if out != dtype.F16 && out != dtype.BF16 && out != dtype.F32 && out != dtype.F64 {
		return fmt.Errorf("C of %v: want f16, bf16, f32 or f64", out)
	}
	return tensor.CheckDim(n, p.what())
}

// work returns what a multiplication by n columns moves and computes, and the variant that does it.
func (p *Plan) work(n int, out dtype.Type, e launch.Epilogue) (*spec.Variant, model.Work, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, w := p.exec.Work(n, out)
	bias, _, err := e.Split()
	if bias != nil {
		w.Bytes += int64(bias.Rows) * int64(bias.Cols) * int64(bias.Type.Size())
	}
	return v, w, err
}
