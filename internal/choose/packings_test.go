// Samples of a matrix packed once for all devices and numbers of columns.

package choose

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders/spec"
)

// packings are those of a matrix's sample: most of choosing is packing, and candidates of several devices share them.
type packings struct {
	w      *work.Work
	sample *work.Matrix
	all    []*packing
}

// packing holds the outcome of packing the sample for a candidate.
type packing struct {
	of    *Candidate
	data  *spec.Packed
	stats formats.Stats
	items int64
	err   error
}

func packingsOf(t *testing.T, a formats.Encoded, o work.Work, entries int64) *packings {
	t.Helper()
	w := resolve(t, a, o)
	s, err := w.A.SampledTo(entries)
	if err != nil {
		t.Fatal(err)
	}
	return &packings{w: w, sample: s}
}

// find returns the packing for a candidate, made for it or for one of the same packing.
func (p *packings) find(t *testing.T, c *Candidate) *packing {
	t.Helper()
	for _, x := range p.all {
		if of := x.of; of.Variant == c.Variant || c.Kernel.Measure == nil && of.Kernel == c.Kernel &&
			of.Variant.In == c.Variant.In && c.Kernel.SamePacking(of.Variant, c.Variant) {
			return x
		}
	}
	x := &packing{of: c}
	x.data, x.stats, x.items, x.err = c.measure(t.Context(), p.w.A, p.sample)
	if x.err != nil && !errors.As(x.err, new(work.CannotHold)) {
		t.Fatal(x.err)
	}
	p.all = append(p.all, x)
	return x
}

// predict sets what a candidate is predicted to take; Unlikely if it cannot hold the sample.
func (p *packings) predict(t *testing.T, c *Candidate, d *device.Device, pr *model.Predictor) {
	t.Helper()
	c.cost = Unlikely
	if x := p.find(t, c); x.err == nil {
		_, c.cost = c.predict(d, pr, x.data, x.stats, x.items)
	}
}

// candidates are those of a device that price looks at, those first that pack at once.
func (p *packings) candidates(t *testing.T, d *device.Device) []*Candidate {
	t.Helper()
	all, err := candidates(d, p.w)
	if err != nil {
		t.Fatal(err)
	}
	var quick, slow []*Candidate
	for _, c := range all {
		switch {
		case c.quick():
			quick = append(quick, c)
		case !c.hollow(p.w.A):
			slow = append(slow, c)
		}
	}
	return append(quick, slow...)
}

// predictor is that of the matrix for a number of columns.
func (p *packings) predictor(t *testing.T, d *device.Device, n int) *model.Predictor {
	t.Helper()
	pr, err := newPredictor(t.Context(), d, p.w.A.CSR(), &work.Work{Cols: n, Right: p.w.Right})
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

// chooser returns what chooses on a device for a number of columns. The sample is packed for candidates that may be the
// best alone.
func (p *packings) chooser(t *testing.T, d *device.Device) func(n int) *Candidate {
	t.Helper()
	cs, pr := p.candidates(t, d), p.predictor(t, d, 1)
	return func(n int) *Candidate {
		pr.N = n
		bounds := map[*Candidate]time.Duration{}
		for _, c := range cs {
			if !c.quick() {
				bounds[c] = c.atBest(d, pr, p.w)
			}
		}
		slices.SortStableFunc(cs, func(x, y *Candidate) int { return cmp.Compare(bounds[x], bounds[y]) })
		best := &Candidate{cost: Unlikely}
		for _, c := range cs {
			if bounds[c] > best.cost {
				continue
			}
			if p.predict(t, c, d, pr); c.cost < best.cost {
				best = c
			}
		}
		return best
	}
}
