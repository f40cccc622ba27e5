// What a device was measured to do.

package spmm

import (
	"context"
	"maps"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/plan"
)

// Rates are the best that a device reached when it was measured: the roofs of its roofline. Formats are chosen and
// attainable times worked out by them. A rate of 0 is not known.
type Rates struct {
	At     time.Time          // when they were measured last
	Fresh  bool               // by this process, rather than read from the cache folder
	Copy   []Bandwidth        // bytes read and written a second, by bytes in use, ascending
	Cache  float64            // bytes a second read from 1 MiB of data, which the cache of all units holds
	FMA    float64            // floating-point operations a second of f32 multiply-adds
	FMA64  float64            // the same of f64; 0 where there are no kernels for it
	Matrix map[string]float64 // the same of matrix units, by MMA shape and operand type, as in "16×8×16 f16"
	Launch time.Duration      // a launch of next to nothing, in a list of many
	// Latency is the time that a workgroup which is alone on the device takes for each step of reading from cache.
	Latency time.Duration
}

// Bandwidth is the bytes read and written a second by a copy that has that many bytes in use.
type Bandwidth struct {
	Bytes     int64
	PerSecond float64
}

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
	us := func(x float64) time.Duration { return time.Duration(x * float64(time.Microsecond)) }
	out := Rates{
		At: r.At, Fresh: r.Fresh, Cache: r.Gather, FMA: r.FMA, FMA64: r.FMA64, Matrix: maps.Clone(r.Matrix),
		Launch: us(r.LaunchUS), Latency: us(r.LatencyUS),
	}
	for _, s := range r.Stream {
		out.Copy = append(out.Copy, Bandwidth(s))
	}
	return out, nil
}

// Predict returns how long a multiplication with a is predicted to take on a device, in fast mode and in the fastest of
// the formats that the options allow: by which formats are chosen and rows are cut for several devices. Nothing is
// brought to the device, which is measured if it was not before.
func Predict(ctx context.Context, dev *Device, a formats.Encoded, o Options) (time.Duration, error) {
	d, opt, err := o.on(dev, "Predict", a)
	if err != nil {
		return 0, err
	}
	return plan.Predict(ctx, d, a, opt)
}

// Observe tells that a multiplication as Attainable has it took so long. If that beats Attainable, the device was busy
// when it was measured: it is measured again, the better of each rate is kept, and a rate that the multiplication still
// exceeds becomes what it reached. Observe returns what Attainable does after that.
func (p *Plan) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e ...Epilogue) (Bound, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Bound{}, err
	}
	return p.p.Observe(ctx, n, out, took, ep)
}
