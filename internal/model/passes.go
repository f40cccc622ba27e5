// Predicting the passes of kernel densecopy before and after a product.

package model

import (
	"time"

	"github.com/spmmrun/spmm/shaders/spec"
)

// passRate is the share of a copy's bandwidth that a transposing pass of densecopy reaches: on an H200, the passes of
// 512 columns of a 4096×4096 matrix took 30 µs.
const passRate = 0.25

// Passes predicts what densecopy takes for a B and a C that are column-major: nothing if the variant takes them so.
// Else one pass transposes B, and one the C that the kernel writes.
func (p *Predictor) Passes(v *spec.Variant) time.Duration {
	if !p.Columns || v.AnyOrder {
		return 0
	}
	k, from := p.Model.kind()
	launches := micros(2 * k.LaunchUS * scale(p.Rates.LaunchUS, from.LaunchUS))
	in, sums := int64(v.In.Storage().Size()), int64(v.Sums().Size())
	moved := 2 * int64(p.N) * (int64(p.Cols)*in + int64(p.Rows)*sums) // read and written
	return launches + at(moved, passRate*p.Rates.stream(moved))
}
