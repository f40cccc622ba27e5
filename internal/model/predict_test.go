// Predictions from stats alone, for a device whose rates are round numbers.

package model_test

import (
	"testing"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// round is a GPU of 10 units, 1 TB/s and 1 TFLOP/s, and a matrix of 1000×1000 by 64 columns on it.
func round() *model.Predictor {
	return &model.Predictor{
		Product: model.Product{Rows: 1000, Cols: 1000, N: 64, Longest: 50, Nearby: 10000},
		Rates: &model.Rates{Rates: api.Rates{
			Copy:  []api.Bandwidth{{Bytes: 1 << 20, PerSecond: 1e10}, {Bytes: 1 << 30, PerSecond: 1e12}},
			Cache: 1e12, FMA: 1e12, Matrix: map[string]float64{"16×8×16 f16": 1e13},
		}},
		Model: &model.DeviceModel{
			Kind:  model.Kind{LaunchUS: 3, First: 2, Again: 0.7, Resident: 8},
			Costs: []model.Cost{{Variants: []string{"kernel/*"}}},
		},
		Units: 10,
	}
}

// TestLeast checks a bound worked out by hand, and that waiting and idle units do not add to it.
func TestLeast(t *testing.T) {
	p := round()
	p.Model.Costs[0].StepUS, p.Model.Costs[0].Busy, p.Model.Costs[0].Cut = 5, 7, 1
	// 3 µs launch; B, C and 40,000 B of A: 0.552; rows of B, 2·2,500·256 B: 1.28; 2·5,000·64 FLOP: 0.64
	want := 3*time.Microsecond + 552*time.Nanosecond + 1280*time.Nanosecond + 640*time.Nanosecond
	if got := p.Least("kernel", scalar(), 10000); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func scalar() *spec.Variant { return &spec.Variant{In: dtype.F32, Code: backend.CodeSPIRV} }

// stats are of 10,000 entries. Each fetches a row of B that no near row shares.
func stats() formats.Stats { return formats.Stats{Gathers: 10000, MACs: 10000} }

// The parts of a prediction, each worked out by hand.
func TestPredict(t *testing.T) {
	const us = time.Microsecond
	base := stats()
	// 3 µs launch; B and C, 512,000 B: 0.512; rows of B, 2·10,000·256 B: 5.12; 2·10,000·64 FLOP: 1.28
	plain := 3*us + 512*time.Nanosecond + 5120*time.Nanosecond + 1280*time.Nanosecond
	for _, c := range []struct {
		name  string
		items int64
		more  time.Duration
		with  func(p *model.Predictor, v *spec.Variant, s *formats.Stats)
	}{
		{"plain", 100, 0, func(*model.Predictor, *spec.Variant, *formats.Stats) {}},
		{"stored bytes", 100, 2 * us, func(_ *model.Predictor, _ *spec.Variant, s *formats.Stats) { s.StoredBytes = 2e6 }},
		{"rows that near rows share", 100, -2996 * time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) { p.Nearby = 1000 }},
		{"half of B's rows, which are all that is read of it", 100, -3290 * time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) { p.Nearby = 500 }},
		{"staged ones are shared by nobody", 100, 0, func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
			p.Nearby, s.Staged = 0, true
		}},
		{"half the arithmetic is reached", 100, 1280 * time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].Arithmetic = 0.5
			}},
		{"whole tiles", 100, 6400 * time.Nanosecond, func(_ *model.Predictor, v *spec.Variant, _ *formats.Stats) {
			v.Tile.Cols = 128
		}},
		{"work items for a quarter of the units, which take as long as for all", 5, 3 * 6400 * time.Nanosecond, func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
			p.Model.Costs[0].Busy = 2
		}},
		{"the same work items by columns", 5, 6400 * time.Nanosecond,
			func(p *model.Predictor, v *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].Busy, v.Tile.Cols = 2, 32
			}},
		{"work items for all units", 20, 0, func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
			p.Model.Costs[0].Busy = 2
		}},
		{"a start for each 80th work item, and the work item itself", 800, 11 * us,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StartUS = 1
			}},
		{"memory that moves while units compute", 100, -512 * time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].Streams = true
			}},
		{"memory that takes longer than computing", 100, 2*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].Streams, s.StoredBytes = true, 2e6
				p.Rates.Cache, p.Rates.FMA = 0, 0
			}},
		{"steps of an average work item, which two groups of lanes share", 100, 50 * us,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StepUS = 1
			}},
		{"steps of an average work item, all of whose lanes have columns", 100, 100 * us,
			func(p *model.Predictor, v *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StepUS, v.Tile.Cols = 1, 64
			}},
		{"steps of work items that are too short for several groups of lanes", 1250, 8 * us,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Longest = 1, 8
			}},
		{"partial sums, which are written and read, and a second launch", 100, 3*us + 512*time.Nanosecond,
			func(_ *model.Predictor, _ *spec.Variant, s *formats.Stats) { s.Sums = 1000 }},
		{"work items that are cut in two, and a second launch that adds two sums", 100, 604*us - 6400*time.Nanosecond, func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
			p.Model.Costs[0].StepUS, p.Model.Costs[0].Cut, s.Longest = 1, 600, 1000
		}},
		{"ten work items of one row", 100, 612*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Model.Costs[0].Cut, s.Longest = 1, 600, 6000
			}},
		{"launches that overlap, of work items that are cut in two", 100, 601*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Model.Costs[0].Cut, p.Model.Costs[0].Launch, s.Longest = 1, 600, 0.5, 1000
			}},
		{"work items that the stats say are cut", 100, 604*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, s.Cut, s.Longest = 1, 600, 1000
			}},
		{"work items that need not be cut", 100, 1000*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Model.Costs[0].Cut, s.Longest = 1, 1001, 1000
			}},
		{"steps of the longest", 100, 1000*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, s.Longest = 1, 1000
			}},
		{"steps of the longest row, which the sample missed", 1000, 50*us - 6400*time.Nanosecond,
			func(p *model.Predictor, _ *spec.Variant, s *formats.Stats) {
				p.Model.Costs[0].StepUS, s.Longest = 1, 7
			}},
		{"tensor cores", 100, -1152 * time.Nanosecond, func(_ *model.Predictor, v *spec.Variant, _ *formats.Stats) {
			v.Need.Shapes = []backend.MatrixShape{{M: 16, N: 8, K: 16, A: dtype.F16}}
		}},
		{"tensor cores in a shape that was not measured", 100, -1152 * time.Nanosecond,
			func(_ *model.Predictor, v *spec.Variant, _ *formats.Stats) {
				v.Need.Shapes = []backend.MatrixShape{{M: 8, N: 8, K: 8, A: dtype.F16}}
			}},
		{"a launch takes twice as long as where the model was measured", 100, 3 * us, func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
			p.Rates.LaunchUS, p.Model.Measured.LaunchUS = 5, 2.5
		}},
		{"latencies are half of those where the model was measured", 100, 25 * us,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Rates.LatencyUS, p.Model.Measured.LatencyUS = 1, 0.1, 0.2
			}},
		{"latencies that one of the two does not know", 100, 50 * us,
			func(p *model.Predictor, _ *spec.Variant, _ *formats.Stats) {
				p.Model.Costs[0].StepUS, p.Rates.LatencyUS = 1, 0.1
			}},
		{"the CPU starts at once and computes the columns there are", 100, -3*us - 2560*time.Nanosecond,
			func(p *model.Predictor, v *spec.Variant, _ *formats.Stats) {
				p.Model.Kind, v.Code, v.Tile.Cols = model.Kind{First: 1, Resident: 1}, backend.CodeGo, 128
			}},
	} {
		p, v, s := round(), scalar(), base
		c.with(p, v, &s)
		b, got := p.Time("kernel", v, s, c.items)
		if want := plain + c.more; got != want {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
		if got < b.Time() {
			t.Errorf("%s: %v is less than its bound, %v", c.name, got, b.Time())
		}
	}
}
