// Predictions from stats alone, for a device whose rates are round numbers.

package plan

import (
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// round is a GPU of 10 units, 1 TB/s and 1 TFLOP/s, and a matrix of 1000×1000 by 64 columns on it.
func round() *predictor {
	return &predictor{
		ceil:   &Ceilings{Stream: []Rate{{1 << 20, 1e10}, {1 << 30, 1e12}}, Gather: 1e12, FMA: 1e12, Matrix: map[string]float64{"16×8×16 f16": 1e13}},
		habits: gpu, units: 10, rows: 1000, cols: 1000, longest: 50, nearby: 10000, n: 64,
	}
}

func scalar() *spec.Variant { return &spec.Variant{In: dtype.F32, Code: backend.CodeSPIRV} }

// The parts of a prediction, each worked out by hand.
func TestPredict(t *testing.T) {
	const us = time.Microsecond
	base := formats.Stats{Gathers: 10000, MACs: 10000} // of which all fetch a row of B that no near row shares
	// 3 µs launch; B and C, 512,000 B: 0.512; rows of B, 2·10,000·256 B: 5.12; 2·10,000·64 FLOP: 1.28
	plain := 3*us + 512*time.Nanosecond + 5120*time.Nanosecond + 1280*time.Nanosecond
	for _, c := range []struct {
		name  string
		items int64
		more  time.Duration
		with  func(p *predictor, v *spec.Variant, s *formats.Stats)
	}{
		{"plain", 100, 0, func(*predictor, *spec.Variant, *formats.Stats) {}},
		{"stored bytes", 100, 2 * us, func(_ *predictor, _ *spec.Variant, s *formats.Stats) { s.StoredBytes = 2e6 }},
		{"rows that near rows share", 100, -3328 * time.Nanosecond, func(p *predictor, _ *spec.Variant, _ *formats.Stats) { p.nearby = 0 }},
		{"staged ones are shared by nobody", 100, 0, func(p *predictor, _ *spec.Variant, s *formats.Stats) { p.nearby, s.Staged = 0, true }},
		{"half the arithmetic is reached", 100, 1280 * time.Nanosecond, func(_ *predictor, v *spec.Variant, _ *formats.Stats) { v.Cost.Reach = 0.5 }},
		{"whole tiles", 100, 6400 * time.Nanosecond, func(_ *predictor, v *spec.Variant, _ *formats.Stats) {
			v.Consts = []spec.Const{{Name: "COLS", Value: 128}}
		}},
		{"a start for each 80th piece, and the piece itself", 800, 11 * us, func(_ *predictor, v *spec.Variant, _ *formats.Stats) { v.Cost.Start = 1 }},
		{"steps of an average piece", 100, 100 * us, func(_ *predictor, v *spec.Variant, _ *formats.Stats) { v.Cost.Step = 1 }},
		{"steps of the longest", 100, 1000*us - 6400*time.Nanosecond, func(_ *predictor, v *spec.Variant, s *formats.Stats) { v.Cost.Step, s.Longest = 1, 1000 }},
		{"steps of the longest row, which the sample missed", 1000, 50*us - 6400*time.Nanosecond, func(_ *predictor, v *spec.Variant, s *formats.Stats) { v.Cost.Step, s.Longest = 1, 7 }},
		{"tensor cores", 100, -1152 * time.Nanosecond, func(_ *predictor, v *spec.Variant, _ *formats.Stats) {
			v.Need.Shapes = []backend.MatrixShape{{M: 16, N: 8, K: 16, A: dtype.F16}}
		}},
		{"tensor cores in a shape that was not measured", 100, -1152 * time.Nanosecond, func(_ *predictor, v *spec.Variant, _ *formats.Stats) {
			v.Need.Shapes = []backend.MatrixShape{{M: 8, N: 8, K: 8, A: dtype.F16}}
		}},
		{"the CPU starts at once and computes the columns there are", 100, -3*us - 2560*time.Nanosecond, func(p *predictor, v *spec.Variant, _ *formats.Stats) {
			p.habits, v.Code, v.Consts = cpu, backend.CodeGo, []spec.Const{{Name: "COLS", Value: 128}}
		}},
	} {
		p, v, s := round(), scalar(), base
		c.with(p, v, &s)
		b, got := p.time(v, s, c.items)
		if want := plain + c.more; got != want {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
		if got < b.Time() {
			t.Errorf("%s: %v is less than its bound, %v", c.name, got, b.Time())
		}
	}
}
