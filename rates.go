// What a device was measured to do.

package spmm

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
)

// Rates returns the device's measured rates. They are kept in the user's cache folder, or in $SPMM_CACHE; where there
// are none of this device and driver it is measured, which takes a fraction of a second.
func (d *Device) Rates(ctx context.Context) (Rates, error) { return d.rates(ctx, choose.RatesOf) }

// Remeasure measures the device again and keeps the better of each rate: whatever else a device does while it is
// measured lowers what is measured.
func (d *Device) Remeasure(ctx context.Context) (Rates, error) {
	return d.rates(ctx, choose.Remeasure)
}

func (d *Device) rates(ctx context.Context, measured func(context.Context, *device.Device) (*model.Rates,
	error)) (Rates, error) {
	one, err := d.alone("Rates")
	if err != nil {
		return Rates{}, err
	}
	r, err := measured(ctx, one)
	if err != nil {
		return Rates{}, err
	}
	out := r.Rates
	out.Copy, out.Matrix = slices.Clone(r.Copy), maps.Clone(r.Matrix)
	return out, nil
}

// Predict returns how long a multiplication with a is predicted to take on a device, in fast mode and in the fastest of
// the formats that the options allow: by which formats are chosen and rows are cut for several devices. Nothing is
// brought to the device, which is measured if it was not before.
func Predict(ctx context.Context, dev *Device, a formats.Encoded, o Options) (time.Duration, error) {
	d, w, err := o.on(dev, "Predict", false, a)
	if err != nil {
		return 0, err
	}
	return choose.Predict(ctx, d, w, w.Cols)
}

// Observe tells that a multiplication as Attainable has it took so long. If that beats Attainable, the device may have
// been busy when it was measured: it is measured again, once while it is open, and the better of each rate is kept. A
// rate that is still exceeded is raised to what the multiplication reached, for Attainable and Observe, until the
// device is closed; formats are chosen by measured rates. Observe returns what Attainable does after that. Reading a B
// that is too small to tell the rate of reading from cache takes no longer than `took` there.
func (p *Plan) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e ...Epilogue) (Bound, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Bound{}, err
	}
	return p.p.Observe(ctx, n, out, took, ep)
}
