// Command cg solves A·X = B in float64 for a symmetric positive definite sparse A and several right-hand sides at once.
//
// It is the method of conjugate gradients for blocks of vectors, in the form that keeps the residuals orthonormal by QR
// factorisation, so that columns which converge early do no harm (A. Dubrulle, Retooling the method of block conjugate
// gradients, Electronic Transactions on Numerical Analysis 12, 2001: BCGrQ). Each iteration multiplies A by the block
// on the device; what is small gonum computes on the host. With a matrix of SuiteSparse's stiffness problems:
//
//	go run ./examples/cg -laplacian=false -shift 0 -matrix bcsstk18.mtx.gz
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/examples/internal/demo"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/load"
)

func main() { demo.Main(run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("cg")
	path := flags.String("matrix", "testdata/matrices/jagmesh7.mtx.gz", "`file` of a symmetric matrix")
	graph := flags.Bool("laplacian", true, "solve with L + shift·I, L being the Laplacian of the matrix's graph, in place of the matrix")
	shift := flags.Float64("shift", 0.01, "`number` to add to the diagonal")
	scaled := flags.Bool("scale", true, "scale rows and columns so that the diagonal is 1 (Jacobi's preconditioner)")
	sides := flags.Int("n", 8, "`number` of right-hand sides")
	tolerance := flags.Float64("tolerance", 1e-11, "`largest` |B − A·X| of a column over its |B|")
	most := flags.Int("iterations", 1000, "`number` of iterations at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	a, err := read(ctx, *path, *graph, *shift)
	if err != nil {
		return err
	}
	if *sides < 1 || *sides > a.Rows {
		return fmt.Errorf("%d right-hand sides for a matrix of %d rows", *sides, a.Rows)
	}
	b := formats.ConvertDense[float64](gen.Dense(a.Rows, *sides, 1, gen.Values{}))
	if *scaled {
		if err := scale(a, b); err != nil {
			return fmt.Errorf("%s: %w", *path, err)
		}
	}
	dev, err := spmm.OpenFor(ctx, *device, dtype.F64)
	if err != nil {
		return err
	}
	defer dev.Close()
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Cols: *sides})
	if err != nil {
		return err
	}
	defer plan.Close()
	s, err := newSolver(ctx, plan, b)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.solve(ctx, *tolerance, *most); err != nil {
		return fmt.Errorf("%s: %w", *path, err)
	}
	worst := residual(a, s.solution(), b) // of the scaled system
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	fmt.Fprintf(out, "matrix   %d×%d with %d entries, format %s, precision %v\n", a.Rows, a.Cols, len(a.Val),
		plan.Info().Format, plan.Info().Precision)
	bound, err := plan.Attainable(ctx, *sides, dtype.F64)
	if err != nil {
		return err
	}
	each := s.worked / time.Duration(max(1, s.iterations))
	fmt.Fprintf(out, "work     %d iterations by %d columns; a product took the device %v, %.0f %% of what is attainable there\n", s.iterations, *sides, each, 100*float64(bound.Time())/float64(max(1, each)))
	of := ""
	if *scaled {
		of = " of the scaled system"
	}
	fmt.Fprintf(out, "checked  |B − A·X|%s is at most %.1e of |B|\n", of, worst)
	if !(worst <= 2**tolerance) {
		return fmt.Errorf("%s: the residuals are not what the iteration took them for: %.1e is more than float64 allows", *path, *tolerance)
	}
	return nil
}

// read reads a symmetric matrix, or makes the Laplacian of its graph, and adds to the diagonal.
func read(ctx context.Context, path string, graph bool, shift float64) (*formats.CSR[float64], error) {
	e, err := load.Open(ctx, path, load.Options{Float64: true})
	if err != nil {
		return nil, err
	}
	a := formats.Convert[float64](e.Sparse())
	if a.Rows != a.Cols || !a.Equal(a.Transpose()) {
		return nil, fmt.Errorf("%s: the matrix is not symmetric", path)
	}
	entries := &formats.COO[float64]{Rows: a.Rows, Cols: a.Cols}
	add := func(i int, j int32, v float64) {
		entries.Row, entries.Col, entries.Val = append(entries.Row, int32(i)), append(entries.Col, j), append(entries.Val, v)
	}
	for i := range a.Rows {
		add(i, int32(i), shift)
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			switch j := a.ColIdx[p]; {
			case !graph:
				add(i, j, a.Val[p])
			case int(j) != i:
				add(i, j, -1)
				add(i, int32(i), 1)
			}
		}
	}
	return entries.ToCSR(formats.SumDuplicates)
}

// scale makes D·A·D of a, in which D has one over the square roots of the diagonal, and D·B of b. What solves the
// scaled system is D⁻¹ times what solves the other.
func scale(a *formats.CSR[float64], b *formats.Dense[float64]) error {
	d := make([]float64, a.Rows)
	for i := range d {
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			if int(a.ColIdx[p]) == i {
				d[i] = a.Val[p]
			}
		}
		if !(d[i] > 0) {
			return fmt.Errorf("the matrix is not positive definite: %g on its diagonal, in row %d", d[i], i)
		}
		d[i] = 1 / math.Sqrt(d[i])
	}
	for i := range a.Rows {
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			a.Val[p] *= d[i] * d[a.ColIdx[p]]
		}
		for k := range b.Cols {
			b.Set(i, k, b.At(i, k)*d[i])
		}
	}
	return nil
}

// residual returns the largest |b − a·x| of a column over |b|.
func residual(a *formats.CSR[float64], x, b *formats.Dense[float64]) float64 {
	worst := 0.0
	for k := range b.Cols {
		var distance, size float64
		for i := range a.Rows {
			sum := b.At(i, k)
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				sum -= a.Val[p] * x.At(int(a.ColIdx[p]), k)
			}
			distance, size = math.Hypot(distance, sum), math.Hypot(size, b.At(i, k))
		}
		worst = max(worst, distance/size)
	}
	return worst
}
