// What every format would make of a matrix on a device.

package choose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// detailed are matrices that tell more than Stats.
type detailed interface{ Details() []formats.Detail }

// Compare packs the matrix in every way that the options allow, as a sample does not tell exactly what a
// format needs.
func Compare(ctx context.Context, d *device.Device, w *work.Work) ([]api.Packing, error) {
	if w.A.Kind() == dtype.Invalid {
		w = w.Decoded()
	}
	cs, err := candidates(d, w)
	if err != nil {
		return nil, err
	}
	pr, err := newPredictor(ctx, d, w.A.Encoded, w)
	if err != nil {
		return nil, err
	}
	var ps []api.Packing
	for _, c := range cs {
		p, err := c.packing(ctx, d, pr, w.A)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return append(ps, missing(ps, w)...), nil
}

// Rivals returns the ways to pack the matrix that are predicted to take at most `within` times as long as the fastest,
// as Choose predicts them, from samples. Nothing else is packed.
func Rivals(ctx context.Context, d *device.Device, w *work.Work, within float64) ([]api.Packing, error) {
	cs, err := candidates(d, w)
	if err != nil {
		return nil, err
	}
	if err := price(ctx, d, cs, w, within); err != nil {
		return nil, err
	}
	var ps []api.Packing
	for best := least(cs); len(cs) > 0; cs = cs[1:] {
		if c := cs[0]; c.cost != Unlikely && float64(c.cost) <= within*float64(best) {
			ps = append(ps, api.Packing{
				Format: c.Kernel.Name, Variant: c.Variant.Name, Precision: c.Variant.In, Kernel: c.runs.Kernel(),
				Stats: c.stats, Items: c.items, Bound: c.bound, Predicted: c.cost,
			})
		}
	}
	return ps, nil
}

// packing packs the matrix for the candidate, and predicts it. That the format cannot hold it is the Err of the result.
func (c *Candidate) packing(ctx context.Context, d *device.Device, pr *model.Predictor,
	a *work.Matrix) (api.Packing, error) {
	p := api.Packing{Format: c.Kernel.Name, Variant: c.Variant.Name, Precision: c.Variant.In}
	if c.Kernel.Measure != nil {
		var items int64
		if p.Stats, items, p.Err = c.measured(a.Encoded); p.Err == nil {
			p.Items = items
			p.Bound, p.Predicted = c.predict(d, pr, nil, p.Stats, items)
			p.Kernel = c.runs.Kernel()
		}
		return p, nil
	}
	e, err := c.Pack(ctx, a)
	if errors.As(err, new(work.CannotHold)) {
		p.Err = err
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Stats, p.Items, p.EncodeTime = e.Data.Stats, e.Data.Items, e.Took
	if e.Block > 0 {
		p.Stats, p.Items = work.Scale(e.Data, e.Data.NNZ, a.NNZ())
	}
	p.Bound, p.Predicted = c.predict(d, pr, e.Data, p.Stats, p.Items)
	p.Kernel = c.runs.Kernel()
	if f, ok := e.Data.Format.(formats.Encoded); ok {
		p.Options = formats.OptionsOf(f)
	}
	if f, ok := e.Data.Format.(detailed); ok {
		p.Details = f.Details()
	}
	return p, nil
}

// missing lists the formats that the device has no kernel for.
func missing(ps []api.Packing, w *work.Work) []api.Packing {
	var none []api.Packing
	for _, f := range work.Formats() {
		if w.Format == "" && !slices.ContainsFunc(ps, func(p api.Packing) bool { return p.Format == f }) {
			none = append(none, api.Packing{Format: f, Precision: w.Precision,
				Err: fmt.Errorf("no kernel for it on this device: %w", backend.ErrUnsupported)})
		}
	}
	return none
}
