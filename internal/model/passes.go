// Predicting the passes of kernel densecopy before and after a product.

package model

import (
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// transposeRate and passRate are the shares of a copy's bandwidth that the passes of densecopy reach: its kernel for
// the transpose of 16-bit elements on CUDA, and any other.
const transposeRate, passRate = 0.5, 0.25

// Passes predicts what densecopy takes for a B and a C that are column-major and that a variant does not take so: one
// pass transposes B, and one the C that the kernel writes. One column lies alike in both orders.
func (p *Predictor) Passes(v *spec.Variant) (t time.Duration) {
	if !p.Columns {
		return 0
	}
	k, from := p.Model.kind()
	pass := func(elements, size int64, share float64) {
		moved := elements * size // read and written
		t += micros(k.LaunchUS*scale(p.Rates.LaunchUS, from.LaunchUS)) + at(moved, share*p.Rates.stream(moved))
	}
	in, sums := int64(v.In.Storage().Size()), int64(v.Sums().Size())
	b, c := spec.Orders(func(b, c bool) bool { return v.TakesOrders(p.N, b, c) }, true, true)
	if !b {
		share := passRate
		if v.Code == backend.CodePTX && in == 2 {
			share = transposeRate
		}
		pass(int64(p.N)*int64(p.Cols), 2*in, share)
	}
	if !c && (p.N > 1 || v.Code == backend.CodeSPIRV || v.Code == backend.CodeWGSL) {
		pass(int64(p.N)*int64(p.Rows), in+sums, passRate)
	}
	return t
}
