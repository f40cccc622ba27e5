// What predictions need to know of a matrix and a device, and the attainable time of a plan.

package choose

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// newPredictor measures the device if it has not been measured before. Where A is on the right, B and C count as
// row-major: then the product on the left, which is predicted, has them column-major.
func newPredictor(ctx context.Context, d *device.Device, a formats.Encoded, w *work.Work) (*model.Predictor, error) {
	rates, err := RatesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	return &model.Predictor{Product: NewProduct(a, w.Cols), Rates: rates, Model: ModelOf(d), Units: max(1, d.Caps().Units),
		Columns: w.Right}, nil
}

// NewProduct describes a multiplication of a by n columns, as predictions need it.
func NewProduct(a formats.Encoded, n int) model.Product {
	rows, cols := a.Dims()
	p := model.Product{Rows: rows, Cols: cols, N: n, Nearby: work.Distinct(a)}
	if s, ok := a.(formats.Sparse); ok { // else the stats of the packed matrix say it
		ptr, _ := s.Pattern()
		for i := range rows {
			p.Longest = max(p.Longest, ptr[i+1]-ptr[i])
		}
	}
	return p
}

// Predict predicts a multiplication by n columns on a device in fast mode, in the fastest format that the work allows.
// Reproducible mode takes longer by a factor that is about the same for all parts of a matrix.
func Predict(ctx context.Context, d *device.Device, w *work.Work, n int) (time.Duration, error) {
	x := *w
	x.Variant, x.Cols = "", max(1, n)
	cs, err := candidates(d, &x)
	if err != nil {
		return 0, err
	}
	if err := price(ctx, d, cs, &x, 1); err != nil {
		return 0, err
	}
	return least(cs), nil
}
