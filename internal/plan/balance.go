// Where rows are cut for the devices of a group: so that their parts are predicted to take as long.

package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spmmrun/spmm/formats"
)

// cutEven cuts the matrix's rows at multiples of step, for products in a format ("" is any). It begins with about as many entries as the
// devices' weights say, and shifts weights by what the parts are predicted to take, as long as that makes the slowest faster.
func (m divided) cutEven(ctx context.Context, devs []*Device, weights []float64, step int, format string, o Options) ([]int, error) {
	const rounds, near = 4, 1.02 // times the mean
	best := cutRows(m.csr(), weights, step)
	if rows, _ := m.Dims(); len(devs) == 1 || rows <= step {
		return best, nil
	}
	o.Format, o.Variant = format, ""
	bounds, least := best, time.Duration(unlikely)
	weights = slices.Clone(weights)
	for range rounds {
		times, err := m.foretold(ctx, devs, bounds, o)
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
		bounds = cutRows(m.csr(), weights, step)
	}
	return best, nil
}

// Predict predicts what a multiplication with a matrix takes in fast mode, in the fastest format that the options allow.
func (d *Device) Predict(ctx context.Context, a formats.Encoded, o Options) (time.Duration, error) {
	m, err := newDivided(a, &o)
	if err == nil {
		err = o.validateAlone("Predict")
	}
	if err != nil {
		return 0, err
	}
	return foretell(ctx, d, m, o, o.cols())
}

// foretold predicts what each device takes for its rows; at least unlikely where no format of the options holds some.
func (m divided) foretold(ctx context.Context, devs []*Device, bounds []int, o Options) ([]time.Duration, error) {
	times := make([]time.Duration, len(devs))
	for d, dev := range devs {
		lo, hi := bounds[d], bounds[d+1]
		if lo == hi {
			continue
		}
		part := divided{source: newSource(m.csr().RowRange(lo, hi))}
		if m.quantised != nil {
			part.source = newQuantisedSource(m.quantised.RowRange(lo, hi))
		}
		t, err := foretell(ctx, dev, part, o, o.cols())
		if refusal(err) || errors.Is(err, formats.ErrTooLarge) {
			t, err = unlikely, nil
		}
		if err != nil {
			return nil, named(dev, err)
		}
		times[d] = t
	}
	return times, nil
}
