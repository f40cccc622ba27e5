// Packings of a matrix, each measured by itself, and the figures that predictions are made from: Fit makes device
// models of them.

package benchmark

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// Words of Products.Formats that stand for several formats and kernels.
const (
	Packings = "packings" // each way to pack the matrix that the device has a kernel for
	Near     = "near"     // those that are predicted to take at most twice as long as the fastest
	Rivals   = "rivals"   // those that auto predicts to take at most four times as long
)

// Tuned is the word of Products.Formats for auto with spmm.Options.Tune, which measures what is predicted to be near
// the fastest.
const Tuned = "tuned"

// Predicted is a predicted time of a product, and the figures that it was made from.
type Predicted struct {
	US        float64        `json:"us"`
	MemoryUS  float64        `json:"memory_us"`
	GatherUS  float64        `json:"gather_us"`
	ComputeUS float64        `json:"compute_us"`
	Product   *model.Product `json:"product,omitempty"` // with Sweep.Facts
	Stats     *formats.Stats `json:"stats,omitempty"`
	Items     int64          `json:"items,omitempty"`
}

// DeviceFacts are the figures of a device that predictions use.
type DeviceFacts struct {
	Code  string       `json:"code"`
	Units int          `json:"units"`
	Index int          `json:"index"`
	Rates *model.Rates `json:"rates"`
}

func newDeviceFacts(dev *spmm.Device, r spmm.Rates) *DeviceFacts {
	i := dev.Info()
	m := &model.Rates{Version: model.RatesVersion, Device: i.Name, Driver: i.Driver, Rates: r}
	return &DeviceFacts{Code: dev.Caps().Code.String(), Units: max(1, dev.Caps().Units), Index: i.Index, Rates: m}
}

// entered is a format that takes part, or one of its kernels, as in csr/cpu_f32.
type entered struct {
	name      string
	predicted *Predicted
}

// formats returns those of the product at a place, with the packings that words stand for.
func (r *round) formats(ctx context.Context, at *place) ([]entered, error) {
	var out []entered
	for _, f := range r.of.Formats {
		within, word := map[string]float64{Packings: math.Inf(1), Near: 2, Rivals: 4}[f]
		if !word {
			out = append(out, entered{name: f})
			continue
		}
		if at.several {
			return nil, fmt.Errorf("format %s: %s is several devices, want one", f, at.name)
		}
		find := r.packings
		if f == Rivals {
			find = r.rivals
		}
		ps, err := find(ctx, at.devices[0], within)
		if err != nil {
			return nil, err
		}
		for _, p := range ps {
			out = append(out, entered{p.Format + "/" + p.Variant, r.predicted(&p)})
		}
	}
	return out, nil
}

// packings are those of the matrix on a device that it can be packed by, and that are predicted to take at most
// `within` times as long as the fastest.
func (r *round) packings(ctx context.Context, dev *spmm.Device, within float64) ([]spmm.Packing, error) {
	a := formats.ConvertTo(r.a, r.prec.Storage())
	ps, err := spmm.Compare(ctx, dev, a, spmm.Options{Precision: r.prec, Cols: r.n})
	if err != nil {
		return nil, err
	}
	ps = slices.DeleteFunc(ps, func(p spmm.Packing) bool { return p.Err != nil })
	if len(ps) > 0 {
		least := slices.MinFunc(
			ps, func(x, y spmm.Packing) int { return cmp.Compare(x.Predicted, y.Predicted) },
		).Predicted
		ps = slices.DeleteFunc(ps, func(p spmm.Packing) bool { return float64(p.Predicted) > within*float64(least) })
	}
	return ps, nil
}

// rivals are those among which auto decides, as it predicts them.
func (r *round) rivals(ctx context.Context, dev *spmm.Device, within float64) ([]spmm.Packing, error) {
	d, err := access.Device(dev)
	if err != nil {
		return nil, err
	}
	w, err := work.Work{Precision: r.prec, Cols: r.n}.Resolve(formats.ConvertTo(r.a, r.prec.Storage()), work.Form{})
	if err != nil {
		return nil, err
	}
	return choose.Rivals(ctx, d, w, within)
}

// predicted returns the part of a packing that a report keeps.
func (r *round) predicted(p *spmm.Packing) *Predicted {
	out := &Predicted{
		US: micros(p.Predicted), MemoryUS: micros(p.Bound.Memory), GatherUS: micros(p.Bound.Gather),
		ComputeUS: micros(p.Bound.Compute),
	}
	if r.Facts {
		product := choose.NewProduct(formats.ConvertTo(r.a, r.prec.Storage()), r.n)
		out.Product, out.Stats, out.Items = &product, &p.Stats, p.Items
	}
	return out
}
