// Options that are wrong, or that a call cannot heed, are errors: of every call that takes options.

package spmm_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/load"
)

func TestOptions(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 1)), 5, 5, 2)
	f, err := load.Format("cvse")
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.Encode(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(spmm.Options) error{
		"Prepare":     func(o spmm.Options) error { return closed(spmm.Prepare(ctx, dev, a, o)) },
		"PrepareFile": func(o spmm.Options) error { return closed(spmm.Prepare(ctx, dev, e, o)) },
		"Encode":      func(o spmm.Options) error { return second(spmm.Encode(ctx, dev, a, o)) },
		"Compare":     func(o spmm.Options) error { return second(spmm.Compare(ctx, dev, a, o)) },
	}
	for _, test := range []struct {
		o    spmm.Options
		says string
		not  string // calls that take it
	}{
		{spmm.Options{}, "", "Prepare PrepareFile Encode Compare"},
		{spmm.Options{Format: "csr", Precision: dtype.F16, Cols: math.MaxInt32}, "", "Prepare PrepareFile Encode Compare"},
		{spmm.Options{Format: "dia"}, `Options.Format: unknown format "dia" (auto, csr`, ""},
		{spmm.Options{Precision: dtype.S8}, "Options.Precision: s8: want f16, bf16, tf32, f32 or f64", ""},
		{spmm.Options{Quantise: dtype.F16}, "Options.Quantise: f16: want s8 or e4m3", ""},
		{spmm.Options{Quantise: dtype.S8, Precision: dtype.F32}, "Options.Precision: f32: a quantised matrix", ""},
		{spmm.Options{Quantise: dtype.S8, Mode: spmm.Reproducible}, "Options.Mode: a quantised matrix", ""},
		{spmm.Options{Quantise: dtype.E4M3}, "Options.Quantise: Encode packs no quantised matrix",
			"Prepare PrepareFile Compare"},
		{spmm.Options{Cols: -1}, "Options.Cols: -1: want 1 to 2147483647, or 0", ""},
		{spmm.Options{Variant: "none"}, `kernel "none": for format auto and precision f32 this device runs csr/cpu`, ""},
		{spmm.Options{Variant: "none", Format: "csr"}, `kernel "none": for format csr and precision f32 this device runs csr/cpu`, ""},
		{spmm.Options{P: 23}, "Options.P: 23: P is for reproducible mode", ""},
		{spmm.Options{P: spmm.AutoP}, "Options.P: -1: P is for reproducible mode", ""},
		{spmm.Options{Mode: 7}, "Options.Mode: 7", ""},
		{spmm.Options{Mode: spmm.Reproducible, P: 24}, "Options.P: reproducible precision 24", ""},
		{spmm.Options{Mode: spmm.Reproducible, P: -2}, "Options.P: reproducible precision -2", ""},
		{spmm.Options{Mode: spmm.Reproducible, Tune: true}, "Options.Tune: tuning is for fast mode", ""},
		{spmm.Options{Mode: spmm.Reproducible, Format: "dia"}, `Options.Format: unknown format "dia"`, ""},
		{spmm.Options{Mode: spmm.Reproducible, Precision: dtype.S8}, "Options.Precision: s8", ""},
		{spmm.Options{Mode: spmm.Reproducible, Cols: -3}, "Options.Cols: -3", ""},
		{spmm.Options{Mode: spmm.Reproducible}, "Options.Mode: ", "Prepare PrepareFile"},
		{spmm.Options{Tune: true, Cols: 2}, "Options.Tune: ", "Prepare PrepareFile"},
	} {
		if err := test.o.Validate(); (err != nil) != (test.not == "" && test.o.Variant == "") {
			t.Errorf("Validate %+v: %v", test.o, err)
		}
		for name, call := range calls {
			err := call(test.o)
			switch {
			case strings.Contains(" "+test.not+" ", " "+name+" "):
				if err != nil {
					t.Errorf("%s %+v: %v", name, test.o, err)
				}
			case err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n"):
				t.Errorf("%s %+v: %v, want one line with %q", name, test.o, err, test.says)
			case test.o.Variant != "" != errors.Is(err, spmm.ErrUnsupported):
				t.Errorf("%s %+v: %v; only what another device may run is ErrUnsupported", name, test.o, err)
			}
		}
	}
}

// closed closes a plan.
func closed(p *spmm.Plan, err error) error {
	if err != nil {
		return err
	}
	return p.Close()
}
