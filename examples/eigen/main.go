// Command eigen finds the largest eigenvalues, in magnitude, of a symmetric sparse matrix, with their vectors.
//
// It is subspace iteration accelerated by Chebyshev polynomials (Y. Saad, Numerical Methods for Large Eigenvalue
// Problems, 2nd edition, chapters 5 and 7). The multiplications, which are nearly all of the work, are the device's:
// the polynomial of A times a block of vectors stays there from the first to the last. What is small, the block's QR
// factorisation and the eigenvalues of its projection, gonum computes on the host in float64.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/examples/internal/demo"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gonum"
	"github.com/spmmrun/spmm/formats/load"
)

func main() { demo.Main(run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	flags, device := demo.Flags("eigen")
	path := flags.String("matrix", "testdata/matrices/ca-CondMat.mtx.gz", "`file` of a symmetric matrix")
	wanted := flags.Int("k", 6, "`number` of eigenvalues")
	tolerance := flags.Float64("tolerance", 1e-5, "`largest` |A·x − λ·x| over the largest |λ|")
	dense := flags.Int("dense", 1500, "`rows` up to which gonum's dense EigenSym checks the eigenvalues")
	if err := flags.Parse(args); err != nil {
		return err
	}
	a, err := load.File(ctx, *path, load.Options{})
	if err != nil {
		return err
	}
	if t := a.Transpose(); a.Rows != a.Cols || !a.Equal(t) {
		return fmt.Errorf("%s: the matrix is not symmetric", *path)
	}
	if *wanted < 1 || *wanted > a.Rows {
		return fmt.Errorf("%d eigenvalues of a matrix of %d rows", *wanted, a.Rows)
	}
	dev, err := spmm.Open(ctx, *device)
	if err != nil {
		return err
	}
	defer dev.Close()
	s, err := newSolver(ctx, dev, a, *wanted)
	if err != nil {
		return err
	}
	found, err := s.solve(ctx, *wanted, *tolerance)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "device   %v\n", dev.Info())
	fmt.Fprintf(out, "matrix   %d×%d with %d entries, format %s\n", a.Rows, a.Cols, len(a.Val), s.plan.Info().Format)
	fmt.Fprintf(out, "work     %d multiplications by %d columns in %d iterations: the device worked %v\n", s.multiplications, s.block, s.iterations, s.worked)
	for i, p := range found {
		fmt.Fprintf(out, "%7d  λ = %+.6f, |A·x − λ·x| = %.1e\n", i+1, p.value, p.residual)
	}
	if a.Rows <= *dense {
		return check(out, a, found, *tolerance)
	}
	return nil
}

// check compares with all eigenvalues of the matrix, as gonum finds them.
func check(out io.Writer, a *formats.CSR[float32], found []pair, tolerance float64) error {
	whole := mat.NewSymDense(a.Rows, nil)
	gonum.View(a).DoNonZero(func(i, j int, v float64) { whole.SetSym(i, j, v) })
	var e mat.EigenSym
	if !e.Factorize(whole, false) {
		return errors.New("gonum finds no eigenvalues")
	}
	values := e.Values(nil)
	order := byMagnitude(values)
	worst, largest := 0.0, math.Abs(values[order[0]])
	for i, p := range found {
		worst = max(worst, math.Abs(p.value-values[order[i]]))
	}
	fmt.Fprintf(out, "checked  against gonum's EigenSym: at most %.1e apart\n", worst)
	if !(worst <= tolerance*largest) {
		return errors.New("the eigenvalues are wrong")
	}
	return nil
}
