// What predictions need to know of a matrix and a device, and the attainable time of a plan.

package plan

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Bound is the least time that each limit of a device allows.
type Bound = model.Bound

// newPredictor measures the device if it has not been measured before.
func newPredictor(ctx context.Context, d *Device, a formats.Encoded, n int) (*model.Predictor, error) {
	rates, err := d.Rates(ctx)
	if err != nil {
		return nil, err
	}
	return &model.Predictor{Product: NewProduct(a, n), Rates: rates, Model: d.model(), Units: max(1, d.Caps().Units)}, nil
}

// NewProduct is what predictions need to know of a multiplication of a by n columns.
func NewProduct(a formats.Encoded, n int) model.Product {
	rows, cols := a.Dims()
	p := model.Product{Rows: rows, Cols: cols, N: n, Nearby: distinct(a)}
	if s, ok := a.(formats.Sparse); ok { // else the stats of the packed matrix say it
		ptr, _ := s.Pattern()
		for i := range rows {
			p.Longest = max(p.Longest, ptr[i+1]-ptr[i])
		}
	}
	return p
}

// Attainable returns the least time of a multiplication by n columns, C having elements of type out
// and not being read, with an epilogue.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type, e Epilogue) (Bound, error) {
	if err := p.checkResult(n, out); err != nil {
		return Bound{}, err
	}
	rates, err := p.dev.Rates(ctx)
	if err != nil {
		return Bound{}, err
	}
	return rates.Bound(p.work(n, out, e)), nil
}

// checkResult refuses what no C can have: n columns (rows, with A on the right) of type out.
func (p *Plan) checkResult(n int, out dtype.Type) error {
	if out != dtype.F16 && out != dtype.BF16 && out != dtype.F32 && out != dtype.F64 {
		return fmt.Errorf("C of %v: want f16, bf16, f32 or f64", out)
	}
	return checkDim(n, p.what())
}

// work is what a multiplication by n columns moves and computes, and the variant that does it.
func (p *Plan) work(n int, out dtype.Type, e Epilogue) (*spec.Variant, model.Work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, w := p.exec.work(n, out)
	w.Bytes += e.bytes()
	return v, w
}
