// A device's rates: measured once, and kept in the user's cache folder, the best of each that was seen.

package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/plan/model"
)

// Rates are what a device reached at most when it was measured.
type Rates = model.Rates

// Rates returns the device's measured rates: those in the cache folder if they are of this device and
// driver, else measured now, which takes a fraction of a second.
func (d *Device) Rates(ctx context.Context) (*model.Rates, error) {
	d.measure.Lock()
	defer d.measure.Unlock()
	if d.rates != nil {
		return d.rates, nil
	}
	c := readRates(d.Info())
	if c == nil {
		var err error
		if c, err = measure(ctx, d); err != nil {
			return nil, fmt.Errorf("measuring %v: %w", d.Info(), err)
		}
		d.keep(c)
	}
	d.rates = c
	return c, nil
}

// Remeasure measures the device again and keeps the better of each rate: what else a device does while it is measured
// lowers what is measured.
func (d *Device) Remeasure(ctx context.Context) (*model.Rates, error) {
	d.measure.Lock()
	defer d.measure.Unlock()
	r, err := measure(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("measuring %v: %w", d.Info(), err)
	}
	if d.rates != nil {
		r.Raise(d.rates)
	}
	d.keep(r)
	return r, nil
}

// keep makes rates the device's, the better of each of theirs and of those in the cache folder. The device's lock is
// held.
func (d *Device) keep(r *model.Rates) {
	if other := readRates(d.Info()); other != nil {
		r.Raise(other)
	}
	_ = saveJSON(ratesFile(d.Info()), r) // what cannot be kept is measured again
	d.rates = r
}

// Observe tells that a multiplication as Attainable has it took so long. If it beat its
// attainable time, the device was busy when it was measured: it is measured again, and rates that the multiplication
// still exceeds become what it reached. Observe returns the attainable time after that. A time of 0 tells nothing.
func (p *Plan) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e Epilogue) (Bound, error) {
	if err := p.checkResult(n, out); err != nil {
		return Bound{}, err
	}
	rates, err := p.dev.Rates(ctx)
	if err != nil {
		return Bound{}, err
	}
	v, w := p.work(n, out, e)
	if !rates.Exceeded(v, w, took) {
		return rates.Bound(v, w), nil
	}
	if rates, err = p.dev.Remeasure(ctx); err != nil {
		return Bound{}, err
	}
	if rates.Exceeded(v, w, took) {
		p.dev.measure.Lock()
		defer p.dev.measure.Unlock()
		rates = rates.Seen(v, w, took)
		p.dev.keep(rates)
	}
	return rates.Bound(v, w), nil
}

// ratesFile is the name of a device's file in the cache folder.
func ratesFile(i backend.Info) string { return "rates-" + deviceKey(i) + ".json" }

// readRates returns nil if there are none of this version and device.
func readRates(i backend.Info) *model.Rates {
	r := new(model.Rates)
	if !readJSON(ratesFile(i), r) || r.Version != model.RatesVersion || r.Device != i.Name || r.Driver != i.Driver {
		return nil
	}
	if err := r.Validate(); err != nil {
		_ = cache.Refuse(ratesFile(i), err)
		return nil
	}
	return r
}
