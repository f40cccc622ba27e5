// Choosing between rows, panels of rows and strips.

package reproducible

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spmmrun/spmm/backend"
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

// Choose decides between rows, panels of rows and strips, and says why. Products have the same bits whichever it is.
func (r *Executor) Choose(ctx context.Context, w *work.Work) (kind kernel.Kind, why string, err error) {
	d := r.dev
	caps := d.Caps()
	rows, err := kernel.Variant(caps, r.bits, kernel.Rows)
	if err != nil {
		return kernel.Panels, "", err
	}
	named := kernel.KindOf(w.Format)
	strips, err := kernel.Variant(caps, r.bits, kernel.InStrips)
	if err != nil && named == kernel.InStrips {
		named = kernel.Panels
	}
	if kind = named; named == kernel.Rows || named == kernel.InStrips {
		kind = kernel.Panels
	}
	v, err := variantFor(caps, r.bits, kind)
	if err != nil {
		return kind, "", err
	}
	switch {
	case named == kernel.Rows || w.Variant == rows.Name:
		return kernel.Rows, "rows were requested", nil
	case r.auto != nil && (r.mustCut() || w.Budget != nil) && (v != rows || strips != nil):
		return kernel.Rows, "the matrix must be cut for any p", nil
	case named == kernel.InStrips || strips != nil && w.Variant == strips.Name:
		return kernel.InStrips, "strips of rows go through matrix units", nil
	case v == rows && (strips == nil || w.Format != ""):
		if r.auto != nil {
			return kernel.Rows, "the device has no kernel for panels", nil
		}
		return kernel.Rows, fmt.Sprintf("the device has no kernel for panels at p = %d", r.bits), nil
	case (w.Format != "" || w.Variant == v.Name) && kind == kernel.Shuffled:
		return kind, "its rows are shuffled as in that format", nil
	case w.Format != "" || w.Variant == v.Name:
		return kind, "panels of rows go through matrix units", nil
	}
	ways := []way{{kernel.Rows, "rows", rows, 0}}
	if v != rows {
		ways = append(ways, way{kind, "panels", v, 0})
	}
	if strips != nil {
		ways = append(ways, way{kernel.InStrips, "strips", strips, 0})
	}
	if ways, err = r.predict(ctx, ways, w.Cols); err != nil {
		return kind, "", err
	}
	slices.SortStableFunc(ways, func(x, y way) int { return cmp.Compare(x.time, y.time) })
	why = fmt.Sprintf("%s are predicted to take %s", ways[0].name, choose.Short(ways[0].time))
	for i, x := range ways[1:] {
		why += fmt.Sprintf("%s %s %s", []string{", and", ","}[min(i, 1)], x.name, choose.Short(x.time))
	}
	return ways[0].kind, why, nil
}

// way is a kind that a matrix may be packed in, its variant, and what a multiplication is predicted to take.
type way struct {
	kind kernel.Kind
	name string
	v    *spec.Variant
	time time.Duration
}

// predict completes the ways with what multiplications by n columns are predicted to take, B being in fixed point,
// from a sample of the matrix. It leaves out those that do not take the matrix. Every row of B is fetched anew for each
// entry or vector that meets it: a core's cache holds few in fixed point.
func (r *Executor) predict(ctx context.Context, ways []way, n int) (possible []way, err error) {
	d, m := r.dev, r.source
	rates, err := choose.RatesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	s := work.Sample(m)
	rows, cols := m.Dims()
	for _, x := range ways {
		e, err := shaders.Reproducible.Encode(s, x.v)
		if errors.Is(err, backend.ErrUnsupported) && x.kind == kernel.InStrips {
			continue
		}
		if err != nil {
			return nil, err
		}
		stats, _ := work.Scale(e, s.NNZ(), m.NNZ())
		g, _ := choose.ModelOf(d).Gather(shaders.Reproducible.Name, x.v.Name)
		n := g.Width(x.v, n)
		w := inFixedPoint(model.NewWork(rows, cols, n, m.Type(), stats, stats.Gathers, dtype.F32), x.v, r.bits, cols, n,
			stats.Gathers)
		w.Gather = max(int64(g.Slower*float64(w.Gather)), stats.Gathers*int64(n)*int64(g.Bytes))
		b := rates.Bound(x.v, w)
		x.time = b.Memory + b.Gather + b.Compute
		possible = append(possible, x)
	}
	return possible, nil
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
