// Chains of products, new values and copies: their reports have the form that those of products have.

package benchmark

import (
	"context"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// Task says what Chains, Values and Copies measure on.
type Task struct {
	Backends []string // devices as spmm.Open takes them
	Matrices []string // of chains, square ones
	Peers    []string // programs that sample too
	Most     int64    // bytes of the largest copy
	Turns
	// Open reads or generates a matrix.
	Open func(ctx context.Context, name string) (*formats.CSR[float32], error)
	// Progress is told how much of it is done.
	Progress func(done, total int64)
}

// timed is an entrant that a function times.
type timed struct {
	run      func(ctx context.Context, times int) (time.Duration, error) // how long all took
	clock    string
	complete func(r *Result) error // adds what there is to say; nil: nothing
	shut     []func() error
}

func (x *timed) again(ctx context.Context, times int) (time.Duration, string, error) {
	took, err := x.run(ctx, times)
	return took / time.Duration(times), x.clock, err
}

func (x *timed) quiet(context.Context) {}

func (x *timed) describe(_ context.Context, r *Result) error {
	if x.complete == nil {
		return nil
	}
	return x.complete(r)
}

func (x *timed) close() {
	for i := len(x.shut) - 1; i >= 0; i-- {
		_ = x.shut[i]()
	}
}

// byHost times by the host's clock.
func byHost(run func(ctx context.Context) error) *timed {
	return &timed{clock: "host", run: func(ctx context.Context, times int) (time.Duration, error) {
		start := time.Now()
		for range times {
			if err := run(ctx); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}}
}

// enterer returns the entrants of one of a task's steps at a place.
type enterer func(at *place, step int) ([]*contest, error)

// each measures the steps of a task on each device.
func (t *Task) each(ctx context.Context, steps int, enter enterer) (*Report, error) {
	r := begin(ctx)
	err := t.devices(ctx, r, steps, enter)
	r.end(ctx)
	return r, err
}

func (t *Task) devices(ctx context.Context, r *Report, steps int, enter enterer) error {
	places, err := openPlaces(ctx, t.Backends, false)
	defer func() { closeAll(places) }()
	if err != nil {
		return err
	}
	total, done := int64(len(places)*steps*units), int64(0)
	for _, at := range places {
		d, err := at.describe(ctx, false)
		if err != nil {
			return err
		}
		r.Environment.Devices = append(r.Environment.Devices, d)
		for step := range steps {
			all, err := enter(at, step)
			if err == nil {
				err = t.measure(ctx, all, func(part float64) { t.Progress(done+int64(part*units), total) })
			}
			for _, c := range all {
				c.drop()
			}
			r.Results = append(r.Results, results(all)...)
			if err != nil {
				return err
			}
			done += units
			t.Progress(done, total)
		}
	}
	return nil
}

// alone returns the device of a place that has one.
func (p *place) alone(what string) (*spmm.Device, error) {
	if len(p.devices) > 1 {
		return nil, severalError{p.name, what}
	}
	return p.devices[0], nil
}

// severalError is a place of several devices for what is of one.
type severalError struct{ place, what string }

func (e severalError) Error() string {
	return e.what + " are of one device: " + e.place + " is several"
}
