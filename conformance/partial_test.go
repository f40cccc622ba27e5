// Runs that end early: what ran is kept, and says that it is not all.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/backend"
)

// losing is a device that is lost after some launches.
type losing struct {
	backend.Device
	left atomic.Int32
}

func (d *losing) Run(ctx context.Context, ls ...backend.Launch) (backend.Timing, error) {
	if d.left.Add(-1) < 0 {
		return backend.Timing{}, backend.ErrDeviceLost
	}
	return d.Device.Run(ctx, ls...)
}

// TestPartial: a run whose context is done, or whose device is lost, hands over the cases that have run. Their manifest
// verifies as what it is, and is not taken for more.
func TestPartial(t *testing.T) {
	dev := cpuGuard(t).Device
	o := Options{Filter: regexp.MustCompile(`^csr/f(16|32)/T1`)}
	whole, err := Run(t.Context(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	lost := &losing{Device: dev}
	lost.left.Store(50)
	canceled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		name     string
		ctx      context.Context
		dev      backend.Device
		progress func(done, all int, r *Result)
		want     error
	}{
		{"canceled", canceled, dev, func(done, all int, r *Result) {
			if done == 20 {
				cancel()
			}
		}, context.Canceled},
		{"lost", t.Context(), lost, nil, backend.ErrDeviceLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m *Manifest
			o := o
			o.Progress = c.progress
			o.Partial = func(x *Manifest) {
				if m != nil {
					t.Error("handed over twice")
				}
				m = x
			}
			if x, err := Run(c.ctx, c.dev, o); x != nil || !errors.Is(err, c.want) {
				t.Errorf("%v, %v", x, err)
			}
			if m == nil {
				t.Fatal("nothing was handed over")
			}
			verifyPartial(t, m, whole)
		})
	}
}

// verifyPartial verifies a manifest of some cases of another's, as it is and changed.
func verifyPartial(t *testing.T, m, whole *Manifest) {
	var text bytes.Buffer
	if err := m.Encode(&text); err != nil {
		t.Fatal(err)
	}
	read, err := Decode(&text)
	if err != nil || !cmp.Equal(m, read) {
		t.Fatalf("%v: it is read back as another", err)
	}
	if p := *m.Incomplete; p.Ran < 10 || p.Of != len(whole.Cases) || p.Ran >= p.Of {
		t.Errorf("%v, the whole run has %d", p, len(whole.Cases))
	}
	same := shared(m, whole)
	if n := same[MixedSign] + same[SameSign]; n != m.Incomplete.Ran || len(Compare(m, whole)) > 0 {
		t.Errorf("%v, %d are the same, others: %q", m.Incomplete, n, Compare(m, whole))
	}
	var v Verifier
	for _, c := range []tampering{
		{"as it is", func(*Manifest) {}, ""},
		{"taken for whole", func(m *Manifest) { m.Incomplete = nil }, "is missing"},
		{"of fewer", func(m *Manifest) { m.Incomplete.Of-- }, "it says that it has"},
		{"more ran", func(m *Manifest) { m.Incomplete.Ran++ }, "it says that it has"},
		{"a case removed", func(m *Manifest) { m.Cases = m.Cases[1:] }, "it says that it has"},
	} {
		x, part := *m, *m.Incomplete
		x.Cases, x.Incomplete = slices.Clone(m.Cases), &part
		c.change(&x)
		count(&x)
		if found := findings(v.Verify(seal(t, &x))); !c.found(found) {
			t.Errorf("%s: wrong: %q", c.name, found)
		}
	}
}

// TestNothingRan: where no case has run, there is nothing to hand over.
func TestNothingRan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := Options{Filter: regexp.MustCompile(`^csr/f32/T1`),
		Partial: func(m *Manifest) { t.Errorf("handed over: %v", m.Incomplete) }}
	if m, err := Run(ctx, cpuGuard(t).Device, o); m != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", m, err)
	}
}
