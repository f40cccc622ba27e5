// Pruned weights on the CPU beside gonum's dense multiplication, which is what a Go program has for them.

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// gonumShapes are weights that are multiplied: rows, columns.
var gonumShapes = [][2]int{{1024, 1024}, {4096, 4096}, {4096, 11008}}

// besideGonum prints, for scattered zeros, how long gonum's blas32.Gemm takes on all cores, and auto, lanestream and dense in
// the precisions of -precisions. All take turns, csr too; what differs from the exact product by more than the conformance
// suite allows is an error.
func besideGonum(r *runner) error {
	ctx := context.Background()
	only, err := regexp.Compile(r.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var columns []int
	head := []string{"matrix", "zeros"}
	for _, n := range strings.Split(r.n, ",") {
		x, err := strconv.Atoi(n)
		if err != nil || x < 1 {
			return fmt.Errorf("-n %s: want numbers of columns", r.n)
		}
		columns, head = append(columns, x), append(head, "N="+n)
	}
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, precision := range strings.Split(r.precisions, ",") {
		prec, err := dtype.Parse(precision)
		if err != nil {
			return err
		}
		table(fmt.Sprintf("%v, %v, ms: gonum in f32 / auto / lanestream / csr / dense", dev.Info(), prec), head...)
		for _, s := range gonumShapes {
			if !only.MatchString(fmt.Sprintf("%d×%d", s[0], s[1])) {
				continue
			}
			for _, zeros := range []float64{0, 0.5, 0.6, 0.7, 0.8, 0.9} {
				if err := gonumRow(ctx, dev, s, zeros, prec, columns); err != nil {
					return fmt.Errorf("%d×%d, %g zeros: %w", s[0], s[1], zeros, err)
				}
			}
		}
		fmt.Println()
	}
	return nil
}

// gonumRow prints the line of one matrix.
func gonumRow(ctx context.Context, dev *spmm.Device, shape [2]int, zeros float64, prec dtype.Type, columns []int) error {
	a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%g", shape[0], shape[1], 1-zeros))
	if err != nil {
		return err
	}
	cells := []any{fmt.Sprintf("%d×%d", a.Rows, a.Cols), fmt.Sprintf("%.0f %%", 100*zeros)}
	for _, n := range columns {
		cell := ""
		switch prec.Storage() {
		case dtype.F16:
			cell, err = gonumCell[half.F16](ctx, dev, a, prec, n)
		case dtype.BF16:
			cell, err = gonumCell[half.BF16](ctx, dev, a, prec, n)
		default:
			cell, err = gonumCell[float32](ctx, dev, a, prec, n)
		}
		if err != nil {
			return fmt.Errorf("N=%d: %w", n, err)
		}
		cells = append(cells, cell)
	}
	row(cells...)
	return nil
}

// gonumCell measures one product.
func gonumCell[T formats.Value](ctx context.Context, dev *spmm.Device, a32 *formats.CSR[float32], prec dtype.Type, n int) (string, error) {
	a := formats.Convert[T](a32)
	b := formats.ConvertDense[T](gen.Dense(a.Cols, n, 1, gen.Values{}))
	entrants := []*entrant{gonumEntrant(a, b)}
	defer func() {
		for _, e := range entrants {
			e.close()
		}
	}()
	for _, format := range []string{"", "lanestream", "csr", "dense"} {
		var matrix formats.Encoded = a
		if format == "dense" {
			matrix = withZeros(a)
		}
		plan, err := spmm.Prepare(ctx, dev, matrix, spmm.Options{Format: format, Precision: prec, Cols: n})
		if err != nil {
			return "", err
		}
		e, err := compete[float32](ctx, plan, a, b, n)
		if err != nil {
			return "", fmt.Errorf("%s: %w", plan.Info().Format, err)
		}
		e.Format, e.auto = plan.Info().Format, format == ""
		entrants = append(entrants, e)
	}
	if err := measure(entrants); err != nil {
		return "", err
	}
	var times []string
	for _, e := range entrants {
		t := fmt.Sprintf("%.3g", e.us/1000)
		if e.auto {
			t = fmt.Sprintf("**%s** (%s)", t, e.Format)
		}
		times = append(times, t)
	}
	return strings.Join(times, " / "), nil
}

// gonumEntrant multiplies A, with its zeros, by gonum.
func gonumEntrant[T formats.Value](a *formats.CSR[T], b *formats.Dense[T]) *entrant {
	general := func(d *formats.Dense[float32]) blas32.General {
		return blas32.General{Rows: d.Rows, Cols: d.Cols, Stride: d.LD, Data: d.Data}
	}
	x, y := general(formats.ConvertDense[float32](withZeros(a))), general(formats.ConvertDense[float32](b))
	z := general(formats.NewDense[float32](a.Rows, b.Cols))
	return &entrant{close: func() {}, again: func(batch int) (time.Duration, error) {
		start := time.Now()
		for range batch {
			blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, x, y, 0, z)
		}
		return time.Since(start), nil
	}}
}

// compete multiplies with a plan, once to look whether it is right. The entrant closes the plan.
func compete[O oracle.Number, T formats.Value](ctx context.Context, plan *spmm.Plan, a *formats.CSR[T], b *formats.Dense[T], n int) (*entrant, error) {
	x, y, err := spmm.TensorsFor[T, O](plan, n)
	if err != nil {
		plan.Close()
		return nil, err
	}
	e := &entrant{close: func() { x.Close(); y.Close(); plan.Close() }}
	e.again = func(batch int) (time.Duration, error) {
		t, err := plan.Repeat(ctx, batch, 1, x, 0, y)
		return t.Best(), err
	}
	if err := x.Upload(ctx, b); err != nil {
		e.close()
		return nil, err
	}
	_, err = e.again(1)
	c := formats.NewDense[O](a.Rows, n)
	if err == nil {
		err = y.Download(ctx, c)
	}
	if err == nil {
		err = right(ctx, a, b, c, plan.Info().Precision)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// right tells whether a sample of C keeps the bound of the conformance suite.
func right[T formats.Value, O oracle.Number](ctx context.Context, a *formats.CSR[T], b *formats.Dense[T], c *formats.Dense[O], compute dtype.Type) error {
	const sample = 1000
	got, err := oracle.Check(ctx, oracle.ProblemOf[O]{
		A: formats.Convert[O](a), B: formats.ConvertDense[O](b), Alpha: 1, Compute: compute, Out: formats.TypeOf[O](),
	}, c, sample)
	if err == nil && !got.OK() {
		err = got.First
	}
	return err
}

// withZeros returns the matrix with its zeros.
func withZeros[T formats.Value](a *formats.CSR[T]) *formats.Dense[T] {
	d := formats.NewDense[T](a.Rows, a.Cols)
	for i := range a.Rows {
		for k := a.RowPtr[i]; k < a.RowPtr[i+1]; k++ {
			d.Set(i, int(a.ColIdx[k]), a.Val[k])
		}
	}
	return d
}
