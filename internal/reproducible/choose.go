// Choosing between rows and panels of rows.

package reproducible

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// MayTakeRows tells whether rows may be multiplied where panels of a kind are refused: where the work does not name
// panels, or where the panels that it names suit one precision and not another.
func (r *Executor) MayTakeRows(w *work.Work, kind kernel.Kind) bool {
	return kind != kernel.Rows && w.Variant == "" && (r.auto != nil || w.Format == "")
}

// Choose decides between rows and panels of rows, and says why. Products have the same bits whichever it is.
func (r *Executor) Choose(ctx context.Context, w *work.Work) (kind kernel.Kind, why string, err error) {
	d := r.dev
	named := kernel.KindOf(w.Format)
	kind = named
	if named == kernel.Rows {
		kind = kernel.Panels
	}
	v, err := variantFor(d.Caps(), r.bits, kind)
	if err != nil {
		return kind, "", err
	}
	rows, err := kernel.Variant(d.Caps(), r.bits, kernel.Rows)
	if err != nil {
		return kind, "", err
	}
	switch {
	case named == kernel.Rows || w.Variant == rows.Name:
		return kernel.Rows, "rows were requested", nil
	case v == rows && r.auto != nil:
		return kernel.Rows, "the device has no kernel for panels", nil
	case v == rows:
		return kernel.Rows, fmt.Sprintf("the device has no kernel for panels at p = %d", r.bits), nil
	case r.auto != nil && (r.mustCut() || w.Budget != nil):
		return kernel.Rows, "the matrix must be cut for any p", nil
	case (w.Format != "" || w.Variant == v.Name) && kind == kernel.Shuffled:
		return kind, "its rows are shuffled as in that format", nil
	case w.Format != "" || w.Variant == v.Name:
		return kind, "panels of rows go through matrix units", nil
	}
	times, err := r.predict(ctx, []*spec.Variant{rows, v}, w.Cols)
	if err != nil {
		return kind, "", err
	}
	if times[1] < times[0] {
		return kind, fmt.Sprintf("panels are predicted to take %s, and rows %s", choose.Short(times[1]),
			choose.Short(times[0])), nil
	}
	return kernel.Rows, fmt.Sprintf("rows are predicted to take %s, and panels %s", choose.Short(times[0]),
		choose.Short(times[1])), nil
}

// predict returns what multiplications by n columns are predicted to take in each variant, B being in fixed point,
// from a sample of the matrix. Every row of B is fetched anew for each entry or vector that meets it: a core's
// cache holds few in fixed point.
func (r *Executor) predict(ctx context.Context, vs []*spec.Variant, n int) ([]time.Duration, error) {
	d, m := r.dev, r.source
	rates, err := choose.RatesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	s := work.Sample(m)
	rows, cols := m.Dims()
	var times []time.Duration
	for _, v := range vs {
		e, err := shaders.Reproducible.Encode(s, v)
		if err != nil {
			return nil, err
		}
		stats, _ := work.Scale(e, s.NNZ(), m.NNZ())
		g, _ := choose.ModelOf(d).Gather(shaders.Reproducible.Name, v.Name)
		n := g.Width(v, n)
		w := inFixedPoint(model.NewWork(rows, cols, n, m.Type(), stats, stats.Gathers, dtype.F32), v, r.bits, cols, n,
			stats.Gathers)
		w.Gather = max(int64(g.Slower*float64(w.Gather)), stats.Gathers*int64(n)*int64(g.Bytes))
		b := rates.Bound(v, w)
		times = append(times, b.Memory+b.Gather+b.Compute)
	}
	return times, nil
}

// inFixedPoint adds to what a multiplication by n columns takes in a variant: B is written and read in fixed point,
// its rows are fetched so, and matrix units multiply every pair of digits.
func inFixedPoint(w model.Work, v *spec.Variant, bits rfx.P, k, n int, fetched int64) model.Work {
	row := 4 * int64(kernel.Layout(v, k, n).Row())
	w.Bytes += 2 * int64(k) * row
	w.Gather = fetched * row
	if len(v.Need.Shapes) > 0 {
		w.FLOPs *= int64(bits.Bytes() * bits.Bytes())
	}
	return w
}
