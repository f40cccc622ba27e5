// Predicting the candidates' times from samples, and how much of Prepare's time that may take.

package choose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// All candidates pack a small sample. Those within nearby times the best prediction, at most several, then pack a
// larger one, of no more than a share of the matrix. So choosing takes a fraction of the time of packing all of it.
// Where next to nothing is to be done to pack it for the best, only those within nearQuick times its prediction do, and
// of a smaller share.
const (
	nearby, nearQuick   = 1.5, 1.1
	several             = 3
	share, shareOfQuick = 4, 16
	shareOfSmall        = 32
	leastSample         = 1 << 13 // entries
	firstFew            = 4       // candidates that are priced before further ones are ruled out
)

// price sets what a multiplication is predicted to cost with each candidate, from samples of the matrix packed for it.
// Those that cannot hold even that are Unlikely, and so are those that are not worth looking at: for few uses, or as
// even the best packing would take `within` times as long as another.
func price(ctx context.Context, d *device.Device, cs []*Candidate, w *work.Work, within float64) error {
	pr, err := newPredictor(ctx, d, w.A.CSR(), w)
	if err != nil {
		return err
	}
	small, err := w.A.SampledTo(smallSample(w.A.NNZ()))
	if err != nil {
		return err
	}
	var quick, slow []*Candidate // to pack
	for _, c := range cs {
		c.cost = Unlikely
		switch {
		case c.quick():
			quick = append(quick, c)
		case w.Format != "" || !c.hollow(w.A):
			slow = append(slow, c)
		}
	}
	if w.Uses > 0 {
		return priceFew(ctx, d, pr, slices.Concat(quick, slow), w, small)
	}
	large, err := w.A.Sampled()
	if err != nil {
		return err
	}
	if err := priceAll(ctx, d, pr, quick, w.A, large); err != nil {
		return err
	}
	slow, err = worthwhile(ctx, d, pr, quick, slow, w, small, within)
	if err != nil || small.NNZ() == w.A.NNZ() {
		return err
	}
	return refine(ctx, d, pr, slices.Concat(quick, slow), w.A, small)
}

// worthwhile prices those of the slow candidates whose best packing might take less than `within` times as long as the
// best of all, and returns them: of all that are left by the quick ones, first a few with the least bounds, and then
// those that are left by these.
func worthwhile(ctx context.Context, d *device.Device, pr *model.Predictor, quick, slow []*Candidate, w *work.Work,
	s *work.Matrix, within float64) (priced []*Candidate, err error) {
	bounds := map[*Candidate]time.Duration{}
	for _, c := range slow {
		bounds[c] = c.atBest(d, pr, w)
	}
	slow = slices.Clone(slow)
	slices.SortStableFunc(slow, func(x, y *Candidate) int { return cmp.Compare(bounds[x], bounds[y]) })
	best := least(quick)
	for _, most := range []int{firstFew, len(slow)} {
		if best != Unlikely && w.A.Kind() == dtype.Invalid {
			slow = slices.DeleteFunc(slow, func(c *Candidate) bool {
				if float64(bounds[c]) <= within*float64(best) {
					return false
				}
				c.over = bounds[c]
				return true
			})
		}
		now := slow[:min(most, len(slow))]
		if err := priceAll(ctx, d, pr, now, w.A, s); err != nil {
			return nil, err
		}
		priced, slow = append(priced, now...), slow[len(now):]
		best = min(best, least(priced))
	}
	return priced, nil
}

// smallSample is how many entries of nnz all candidates pack.
func smallSample(nnz int64) int64 { return min(work.SmallSample, max(leastSample, nnz/shareOfSmall)) }

// quick tells whether next to nothing is to be done to pack a matrix, or to tell what that gives.
func (c *Candidate) quick() bool { return c.Kernel.Measure != nil || c.Kernel.Name == "csr" }

// least is the cost of the best candidate.
func least(cs []*Candidate) time.Duration {
	best := Unlikely
	for _, c := range cs {
		best = min(best, c.cost)
	}
	return best
}

// atBest is less than any packing of the matrix for the candidate is predicted to take.
func (c *Candidate) atBest(d *device.Device, pr *model.Predictor, w *work.Work) time.Duration {
	t := Unlikely
	for _, v := range usable(c.Kernel, d.Caps(), w.Precision, w.A.Kind()) {
		t = min(t, pr.Least(c.Kernel.Name, v, w.A.NNZ())+pr.Passes(v))
	}
	return t
}

// priceFew prices one candidate after another until looking at further ones cannot pay.
func priceFew(ctx context.Context, d *device.Device, pr *model.Predictor, cs []*Candidate, w *work.Work,
	s *work.Matrix) error {
	start, best := time.Now(), Unlikely
	for _, c := range cs {
		if spent(w.Uses, best, time.Since(start)) {
			break
		}
		if err := c.price(ctx, d, pr, w.A, s); err != nil {
			return err
		}
		best = min(best, c.cost)
	}
	return nil
}

// priceAll prices candidates side by side.
func priceAll(ctx context.Context, d *device.Device, pr *model.Predictor, cs []*Candidate, a, s *work.Matrix) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, c := range cs {
		g.Go(func() error { return c.price(ctx, d, pr, a, s) })
	}
	return g.Wait()
}

// spent tells whether looking at further candidates cannot pay: it has taken as long as all uses will.
func spent(uses int, best, took time.Duration) bool {
	return uses > 0 && best != Unlikely && float64(took) > float64(uses)*float64(best)
}

// refine predicts those that are near the best again, from a larger sample; the quick ones had the largest at once.
func refine(ctx context.Context, d *device.Device, pr *model.Predictor, cs []*Candidate, a, small *work.Matrix) error {
	order := slices.Clone(cs)
	sortByCost(order, 0)
	within, of := nearby, int64(share)
	if order[0].quick() {
		within, of = nearQuick, shareOfQuick
	}
	n := 1
	for n < min(several, len(order)) && float64(order[n].cost) <= within*float64(order[0].cost) {
		n++
	}
	if n == 1 {
		return nil
	}
	s, err := a.SampledTo(min(work.LargeSample, a.NNZ()/of))
	if err != nil || s.NNZ() <= small.NNZ() {
		return err
	}
	return priceAll(ctx, d, pr, slices.DeleteFunc(order[:n], (*Candidate).quick), a, s)
}

// price predicts a candidate from a sample. One that cannot hold it is Unlikely.
func (c *Candidate) price(ctx context.Context, d *device.Device, pr *model.Predictor, a, s *work.Matrix) error {
	enc, stats, items, err := c.measure(ctx, a, s)
	if errors.As(err, new(work.CannotHold)) {
		c.cost = Unlikely
		return nil
	}
	if err == nil {
		c.stats, c.items = stats, items
		c.bound, c.cost = c.predict(d, pr, enc, stats, items)
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
