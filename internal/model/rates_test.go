// Rates of files that may hold anything, and the best of two measurements.

package model_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/internal/model"
)

func rates() *model.Rates {
	return &model.Rates{
		Version: model.RatesVersion,
		Rates: api.Rates{
			Copy:  []api.Bandwidth{{Bytes: 1 << 20, PerSecond: 1e12}, {Bytes: 1 << 22, PerSecond: 2e12}},
			Cache: 3e12, FMA: 4e13, Matrix: map[string]float64{"16×8×16 f16": 5e14},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := rates().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *model.Rates){
		"version":        func(r *model.Rates) { r.Version++ },
		"no copies":      func(r *model.Rates) { r.Copy = nil },
		"many copies":    func(r *model.Rates) { r.Copy = make([]api.Bandwidth, 1000) },
		"order":          func(r *model.Rates) { r.Copy[0], r.Copy[1] = r.Copy[1], r.Copy[0] },
		"equal sizes":    func(r *model.Rates) { r.Copy[0].Bytes = r.Copy[1].Bytes },
		"negative bytes": func(r *model.Rates) { r.Copy[0].Bytes = -1 },
		"no bytes":       func(r *model.Rates) { r.Copy[0].Bytes = 0 },
	} {
		r := rates()
		if spoil(r); r.Validate() == nil {
			t.Errorf("%s: accepted %+v", name, r)
		}
	}
	for _, x := range []float64{-1, math.NaN(), math.Inf(1), 1e300, 1e-300} {
		for name, spoil := range map[string]func(r *model.Rates){
			"launch":  func(r *model.Rates) { r.LaunchUS = x },
			"latency": func(r *model.Rates) { r.LatencyUS = x },
		} {
			r := rates()
			if spoil(r); r.Validate() == nil {
				t.Errorf("a %s of %v µs is accepted", name, x)
			}
		}
	}
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300} {
		for name, spoil := range map[string]func(r *model.Rates){
			"stream": func(r *model.Rates) { r.Copy[1].PerSecond = x },
			"gather": func(r *model.Rates) { r.Cache = x },
			"fma":    func(r *model.Rates) { r.FMA = x },
			"matrix": func(r *model.Rates) { r.Matrix["8×8×8 f16"] = x },
		} {
			r := rates()
			if spoil(r); r.Validate() == nil {
				t.Errorf("a %s of %v is accepted", name, x)
			}
		}
	}
}

// The best of each rate seen is kept, whichever measurement it is of.
func TestRaise(t *testing.T) {
	r, o := rates(), rates()
	r.Copy[1].PerSecond, r.FMA = 1e12, 1e13
	r.LaunchUS, o.LaunchUS, o.LatencyUS = 3, 2, 0.5
	o.Copy[0].PerSecond, o.Cache = 0.5e12, 1e12
	o.Matrix = map[string]float64{"16×8×16 f16": 4e14, "16×8×8 f16": 2e14}
	r.Raise(o)
	want := rates()
	want.Matrix["16×8×8 f16"] = 2e14
	want.LaunchUS, want.LatencyUS = 2, 0.5
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	r.Raise(&model.Rates{})
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("after nothing was measured: %s", diff)
	}
}
