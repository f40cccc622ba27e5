// A device's rates: measured once, and kept in the user's cache folder, the best of each that was measured.

package choose

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// RatesOf returns the device's measured rates: those in the cache folder if they are of this device and
// driver, else measured now, which takes a fraction of a second.
func RatesOf(ctx context.Context, d *device.Device) (*model.Rates, error) {
	d.Speed.Lock()
	defer d.Speed.Unlock()
	if d.Speed.Rates != nil {
		return d.Speed.Rates, nil
	}
	c := readRates(d.Info())
	if c == nil {
		var err error
		if c, err = measure(ctx, d); err != nil {
			return nil, fmt.Errorf("measuring %v: %w", d.Info(), err)
		}
		keepRates(d, c)
	}
	d.Speed.Rates = c
	return c, nil
}

// Remeasure measures the device again and keeps the better of each rate: what else a device does while it is measured
// lowers what is measured.
func Remeasure(ctx context.Context, d *device.Device) (*model.Rates, error) {
	d.Speed.Lock()
	defer d.Speed.Unlock()
	r, err := measure(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("measuring %v: %w", d.Info(), err)
	}
	if d.Speed.Rates != nil {
		r.Raise(d.Speed.Rates)
	}
	keepRates(d, r)
	return r, nil
}

// keepRates makes rates the device's, the better of each of theirs and of those in the cache folder. The device's lock
// is held.
func keepRates(d *device.Device, r *model.Rates) {
	if other := readRates(d.Info()); other != nil {
		r.Raise(other)
	}
	_ = device.SaveJSON(ratesFile(d.Info()), r) // what cannot be kept is measured again
	d.Speed.Rates = r
}

// Attainable returns the rates that bound what is attainable: those of RatesOf, or higher ones that multiplications
// were seen to reach. Formats are chosen by RatesOf alone: what a product reaches in a cache must not decide for others.
func Attainable(ctx context.Context, d *device.Device) (*model.Rates, error) {
	rates, err := RatesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	d.Speed.Lock()
	defer d.Speed.Unlock()
	if d.Speed.Seen == nil {
		return rates, nil
	}
	return rates.Best(d.Speed.Seen), nil
}

// Observe tells that work took a variant so long, 0 tells nothing. If that beats the bound which the rates give, the
// device may have been busy when it was measured: it is measured again, once while it is open. Attainable rates that
// are still exceeded become what the work reached, until the device is closed. Observe returns those after that.
func Observe(ctx context.Context, d *device.Device, v *spec.Variant, w model.Work,
	took time.Duration) (*model.Rates, error) {
	rates, err := Attainable(ctx, d)
	if err != nil || !rates.Exceeded(v, w, took) {
		return rates, err
	}
	d.Speed.Lock()
	again := !d.Speed.Again
	d.Speed.Again = true
	d.Speed.Unlock()
	if again {
		if _, err := Remeasure(ctx, d); err != nil {
			return nil, err
		}
		if rates, err = Attainable(ctx, d); err != nil || !rates.Exceeded(v, w, took) {
			return rates, err
		}
	}
	d.Speed.Lock()
	defer d.Speed.Unlock()
	d.Speed.Seen = rates.Best(d.Speed.Seen).Seen(v, w, took)
	return d.Speed.Seen, nil
}

// ratesFile is the name of a device's file in the cache folder.
func ratesFile(i backend.Info) string { return "rates-" + device.Key(i) + ".json" }

// readRates returns nil if there are none of this version and device.
func readRates(i backend.Info) *model.Rates {
	r := new(model.Rates)
	if !device.ReadJSON(ratesFile(i), r) || r.Version != model.RatesVersion || r.Device != i.Name || r.Driver != i.Driver {
		return nil
	}
	if err := r.Validate(); err != nil {
		_ = cache.Refuse(ratesFile(i), err)
		return nil
	}
	return r
}
