// Predicting the passes of kernel densecopy before and after a product.

package model

import (
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// passRate is the share of a copy's bandwidth that a transposing pass of densecopy reaches: on an H200, the passes of
// 512 columns of a 4096×4096 matrix took 30 µs. Its kernel for elements of 16 bits on CUDA reaches all of it, and
// launches overlap: with 2 to 32, 512 and 2048 columns that pass added 2 to 3, 2 to 3 and 0 to 6 µs to products.
const passRate = 0.25

// leastPass is the least that the latter pass takes between two launches.
const leastPass = time.Microsecond

// Passes predicts what densecopy takes for a B and a C that are column-major and that a variant does not take so: one
// pass transposes B, and one the C that the kernel writes. One column lies alike in both orders.
func (p *Predictor) Passes(v *spec.Variant) (t time.Duration) {
	if !p.Columns {
		return 0
	}
	k, from := p.Model.kind()
	pass := func(moved int64) time.Duration { // bytes read and written
		return micros(k.LaunchUS*scale(p.Rates.LaunchUS, from.LaunchUS)) + at(moved, passRate*p.Rates.stream(moved))
	}
	in, sums := int64(v.In.Storage().Size()), int64(v.Sums().Size())
	b, c := spec.Orders(func(b, c bool) bool { return v.TakesOrders(p.N, b, c) }, true, true)
	switch moved := 2 * in * int64(p.N) * int64(p.Cols); {
	case b:
	case v.Code == backend.CodePTX && in == 2 && p.N > 1:
		t += micros(k.EarlyUS*scale(p.Rates.LaunchUS, from.LaunchUS)) +
			max(leastPass, at(moved, p.Rates.stream(moved)))
	default:
		t += pass(moved)
	}
	if !c && (p.N > 1 || v.Code == backend.CodeSPIRV || v.Code == backend.CodeWGSL) {
		t += pass((in + sums) * int64(p.N) * int64(p.Rows))
	}
	return t
}
