// Models over models, and corrections.

package model_test

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/model"
)

// What a model leaves out is taken from the one below, the scale of its times included.
func TestOver(t *testing.T) {
	base := &model.DeviceModel{
		Measured: model.Source{LatencyUS: 1},
		Kind:     model.Kind{First: 1, Resident: 1},
		Costs:    []model.Cost{{Variants: []string{"kernel/*"}, StartUS: 100}},
		Fixed:    []model.Gather{{Variants: []string{"kernel/*"}, Slower: 5}},
	}
	own := &model.DeviceModel{Costs: []model.Cost{{Variants: []string{"kernel/mine"}, StartUS: 10}}}
	p := round()
	p.Model, p.Rates.LatencyUS = own.Over(base), 2
	v := scalar()
	_, theirs := p.Time("kernel", v, stats(), 10)
	v.Name = "mine"
	_, mine := p.Time("kernel", v, stats(), 10)
	v.Name, p.Model = "", base
	if _, same := p.Time("kernel", v, stats(), 10); same != theirs {
		t.Errorf("%v, want %v as without a model over it", theirs, same)
	}
	// Of 10 items on 10 units: one start each for the share, and one of them all: 2·100 µs at twice the latency, 2·10.
	if diff := (theirs - mine).Microseconds(); diff != 2*200-2*10 {
		t.Errorf("the base's variant takes %v longer, want 380 µs", theirs-mine)
	}
	if g, known := own.Over(base).Gather("kernel", "x"); !known || g.Slower != 5 {
		t.Errorf("fetches %+v", g)
	}
}

// One multiplication alone changes little, many that agree nearly all, and none more than four times.
func TestLearn(t *testing.T) {
	m := model.For(backend.CodeGo, "").Over(nil)
	factor := func() float64 { return m.Correction("csr", "cpu_f32").Factor() }
	if factor() != 1 {
		t.Errorf("%v before anything was learnt", factor())
	}
	m.Learn("csr", "cpu_f32", 8)
	if f := factor(); math.Abs(f-2) > 1e-9 { // 8^(1/3)
		t.Errorf("%v after one, want 2", f)
	}
	m.Learn("csr", "cpu_f32", 0.5)
	if f := factor(); math.Abs(f-math.Sqrt2) > 1e-9 { // the mean is 2, and 2^(2/4)
		t.Errorf("%v after one more, want √2", f)
	}
	for range 1000 {
		m.Learn("csr", "cpu_f32", 1.5)
	}
	if f := factor(); math.Abs(f-1.5) > 0.02 {
		t.Errorf("%v after many, want 1.5", f)
	}
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1), 1e9} {
		if m.Learn("csr", "cpu_f32", x); math.Abs(factor()-1.5) > 0.02 {
			t.Errorf("%v after a ratio of %v", factor(), x)
		}
	}
	for range 1000 {
		m.Learn("csr", "cpu_f32", 1000)
	}
	if factor() != 4 {
		t.Errorf("%v, want no more than 4", factor())
	}
	if m.Correction("csr", "cpu_f16").Samples != 0 || model.For(backend.CodeGo, "").Correction("csr", "cpu_f32").Samples != 0 {
		t.Error("others learnt it too")
	}
}

// A correction multiplies what is predicted, down to the bound.
func TestCorrected(t *testing.T) {
	p := round()
	b, before := p.Time("kernel", scalar(), stats(), 100)
	for range 100 {
		p.Model.Learn("kernel", "", 2)
	}
	if _, after := p.Time("kernel", scalar(), stats(), 100); float64(after)/float64(before) < 1.9 || after > 2*before {
		t.Errorf("%v became %v, want about twice", before, after)
	}
	p.Model.Corrections = nil
	for range 100 {
		p.Model.Learn("kernel", "", 0.001)
	}
	if _, after := p.Time("kernel", scalar(), stats(), 100); after < b.Time() || after >= before {
		t.Errorf("%v became %v, of a bound of %v", before, after, b.Time())
	}
}
