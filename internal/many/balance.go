// Where rows are cut for several devices: so that their parts are predicted to take as long.

package many

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// cutEven cuts the matrix's rows at multiples of step, for products in a format ("" is any). It begins with about as
// many entries as the devices' weights say, and shifts weights by what the parts are predicted to take, as long as that
// makes the slowest faster.
func (m divided) cutEven(ctx context.Context, devs []*device.Device, weights []float64, step int,
	format string) ([]int, error) {
	const rounds, near = 4, 1.02 // times the mean
	best := cutRows(m.A.CSR(), weights, step)
	if rows, _ := m.A.Dims(); len(devs) == 1 || rows <= step {
		return best, nil
	}
	w := *m.Work
	w.Format = format
	bounds, least := best, time.Duration(choose.Unlikely)
	weights = slices.Clone(weights)
	for range rounds {
		times, err := foretold(ctx, devs, bounds, &w)
		if err != nil {
			return best, err
		}
		slowest, sum := slices.Max(times), time.Duration(0)
		if slowest >= least { // no better, or not known
			break
		}
		best, least = bounds, slowest
		for _, t := range times {
			sum += t
		}
		mean := float64(sum) / float64(len(times))
		if float64(slowest) <= near*mean {
			break
		}
		total := 0.0
		for d, t := range times {
			weights[d] *= mean / float64(max(1, t))
			total += weights[d]
		}
		for d := range weights {
			weights[d] /= total
		}
		bounds = cutRows(m.A.CSR(), weights, step)
	}
	return best, nil
}

// foretold predicts what each device takes for its rows; at least Unlikely where no format of the work holds some.
func foretold(ctx context.Context, devs []*device.Device, bounds []int, w *work.Work) ([]time.Duration, error) {
	times := make([]time.Duration, len(devs))
	for d, dev := range devs {
		lo, hi := bounds[d], bounds[d+1]
		if lo == hi {
			continue
		}
		t, err := choose.Predict(ctx, dev, w.Of(w.A.Rows(lo, hi)), w.Cols)
		if work.Refusal(err) || errors.Is(err, formats.ErrTooLarge) {
			t, err = choose.Unlikely, nil
		}
		if err != nil {
			return nil, named(dev, err)
		}
		times[d] = t
	}
	return times, nil
}
