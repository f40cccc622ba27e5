// Predicting the candidates' times from samples, and how much of Prepare's time that may take.

package choose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// All candidates pack a small sample. Those within nearby times the best prediction, at most several, then pack a
// larger one, of no more than a share of the matrix. So choosing takes a fraction of the time of packing all of it.
const (
	nearby  = 1.5
	several = 3
	share   = 4
)

// price sets what a multiplication is predicted to cost with each candidate, from samples of the matrix packed for it.
// Those that cannot hold even that are Unlikely, and so are those that are not worth looking at for few uses.
func price(ctx context.Context, d *device.Device, cs []*Candidate, w *work.Work) error {
	pr, err := newPredictor(ctx, d, w.A.CSR(), w)
	if err != nil {
		return err
	}
	small, err := w.A.SampledTo(work.SmallSample)
	if err != nil {
		return err
	}
	start, best := time.Now(), Unlikely
	for _, c := range cs {
		c.cost = Unlikely
		if w.Format == "" && c.hollow(w.A) || spent(w.Uses, best, time.Since(start)) {
			continue
		}
		if err := c.price(ctx, d, pr, w.A, small); err != nil {
			return err
		}
		best = min(best, c.cost)
	}
	if small.NNZ() == w.A.NNZ() || w.Uses > 0 {
		return nil
	}
	return refine(ctx, d, pr, cs, w.A, small)
}

// spent tells whether looking at further candidates cannot pay: it has taken as long as all uses will.
func spent(uses int, best, took time.Duration) bool {
	return uses > 0 && best != Unlikely && float64(took) > float64(uses)*float64(best)
}

// refine predicts those that are near the best again, from a larger sample.
func refine(ctx context.Context, d *device.Device, pr *model.Predictor, cs []*Candidate, a, small *work.Matrix) error {
	s, err := a.SampledTo(min(work.LargeSample, a.NNZ()/share))
	if err != nil || s.NNZ() <= small.NNZ() {
		return err
	}
	order := slices.Clone(cs)
	sortByCost(order, 0)
	least := order[0].cost
	for i, c := range order {
		if i == several || c.cost == Unlikely || float64(c.cost) > nearby*float64(least) {
			break
		}
		if err := c.price(ctx, d, pr, a, s); err != nil {
			return err
		}
	}
	return nil
}

// price predicts a candidate from a sample. One that cannot hold it is Unlikely.
func (c *Candidate) price(ctx context.Context, d *device.Device, pr *model.Predictor, a, s *work.Matrix) error {
	enc, stats, items, err := c.measure(ctx, a, s)
	if errors.As(err, new(work.CannotHold)) {
		c.cost = Unlikely
		return nil
	}
	if err == nil {
		_, c.cost = c.predict(d, pr, enc, stats, items)
	}
	return err
}

// total is the time of packing the matrix and of all uses; for 0, an unknown number, that of one multiplication.
func (c *Candidate) total(uses int) time.Duration {
	if uses == 0 || c.cost == Unlikely {
		return c.cost
	}
	return time.Duration(min(float64(math.MaxInt64/2), float64(c.encode)+float64(uses)*float64(c.cost)))
}

// forUses says what the number of uses adds to the reason.
func forUses(c *Candidate, uses int) string {
	if uses == 0 {
		return ""
	}
	return fmt.Sprintf("; with packing, which is estimated to take %s, %d uses take %s", Short(c.encode), uses,
		Short(c.total(uses)))
}
