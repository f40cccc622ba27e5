// New values for a group, and devices that fail while they are set.

package spmm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// New values give the bits of a plan that had them from the start.
func TestSeveralValues(t *testing.T) {
	dev, g := openCPU(t), openSeveral(t, "cpu,cpu,cpu")
	a := whole(uneven[float32](205, 170))
	other := a.Clone().(*formats.CSR[float32])
	for i := range other.Val {
		other.Val[i] = float32(i%5 - 2)
	}
	for _, o := range []spmm.Options{
		{Format: "csr"}, {Format: "cvse"}, {Format: "lanestream", Transpose: true}, {Format: "csr", Right: true}, {Mode: spmm.Reproducible}, {Mode: spmm.Reproducible, P: spmm.AutoP, Transpose: true},
	} {
		rows, cols := 205, 170
		if o.Transpose != o.Right {
			rows, cols = cols, rows
		}
		b, c, want := gen.Dense(cols, 24, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8}), formats.NewDense[float32](rows, 24), formats.NewDense[float32](rows, 24)
		if o.Right {
			b, c, want = b.Transpose(), c.Transpose(), want.Transpose()
		}
		one := prepare(t, dev, other, o)
		defer one.Close()
		must(t, second(spmm.Multiply(ctx, one, 1, b, 0, want)))
		for _, split := range splits {
			p, err := spmm.Prepare(ctx, g, a, splitBy(o, split))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for range 2 {
				must(t, second(spmm.Multiply(ctx, p, 1, b, 0, c)))
				if err := spmm.SetValues(ctx, p, other.Val); err != nil {
					t.Fatalf("%+v by %v: %v", o, split, err)
				}
			}
			if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); err != nil || !c.Equal(want) {
				t.Errorf("%+v by %v: another C, or %v", o, split, err)
			}
			if err := spmm.SetValues(ctx, p, other.Val[1:]); err == nil {
				t.Error("too few values")
			}
		}
	}
}

// A device that fails while it takes new values leaves a plan that refuses to multiply until values are set again.
func TestSeveralValuesTorn(t *testing.T) {
	cpu, err := spmm.OpenBackend(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	broken := &breaking{Device: cpu}
	g, err := spmm.Join(openCPU(t), spmm.NewDevice(broken))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	a := whole(uneven[float32](205, 170))
	b, c, want := gen.Dense(170, 24, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8}), formats.NewDense[float32](205, 24), formats.NewDense[float32](205, 24)
	for _, split := range splits {
		p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "cvse", Split: split})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		must(t, second(spmm.Multiply(ctx, p, 1, b, 0, want)))
		broken.fails = true
		if err := spmm.SetValues(ctx, p, a.Val); !errors.Is(err, errBreaks) {
			t.Fatalf("by %v: %v, want the device's error", split, err)
		}
		broken.fails = false
		if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); !errors.Is(err, errBreaks) || !strings.Contains(err.Error(), "set its values again") {
			t.Errorf("by %v: %v, want a refusal", split, err)
		}
		must(t, spmm.SetValues(ctx, p, a.Val))
		if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); err != nil || !c.Equal(want) {
			t.Errorf("by %v: another C, or %v", split, err)
		}
	}
}

var errBreaks = errors.New("it breaks")

// breaking is a device on which launches fail when they are to.
type breaking struct {
	backend.Device
	fails bool
}

func (d *breaking) Run(ctx context.Context, l ...backend.Launch) (backend.Timing, error) {
	if d.fails {
		return backend.Timing{}, errBreaks
	}
	return d.Device.Run(ctx, l...)
}
