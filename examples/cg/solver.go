// The iteration: the device multiplies, the host keeps the residuals orthonormal.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// solver holds the iteration's blocks. The residuals are residuals·sizes, their columns' norms those of sizes.
type solver struct {
	plan        *spmm.Plan
	in, product *spmm.Tensor[float64] // the directions and A times them, on the device

	x, residuals, directions, image *mat.Dense // rows × block
	sizes                           *mat.Dense // block × block
	start                           []float64  // norms of the right-hand sides

	iterations int
	worked     time.Duration // the device
}

// newSolver begins at X = 0, whose residuals are b.
func newSolver(ctx context.Context, plan *spmm.Plan, b *formats.Dense[float64]) (*solver, error) {
	s := &solver{plan: plan, x: mat.NewDense(b.Rows, b.Cols, nil), image: mat.NewDense(b.Rows, b.Cols, nil)}
	s.residuals = mat.NewDense(b.Rows, b.Cols, b.Layout(false, 0).Data)
	s.sizes = orthonormalise(s.residuals)
	s.directions = mat.DenseCopyOf(s.residuals)
	s.start = s.norms()
	var err error
	s.in, s.product, err = spmm.TensorsFor[float64, float64](plan, b.Cols)
	return s, err
}

func (s *solver) close() {
	s.in.Close()
	s.product.Close()
}

// solve iterates until each column's residual is within the tolerance.
func (s *solver) solve(ctx context.Context, tolerance float64, most int) error {
	for ; !s.converged(tolerance); s.iterations++ {
		if s.iterations == most {
			return fmt.Errorf("the residuals are not within %g of the right-hand sides in %d iterations", tolerance, most)
		}
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step is an iteration, in the paper's letters: X += S·ξ·σ, [W, ζ] = qr(W − A·S·ξ), S = W + S·ζᵀ, σ = ζ·σ, with ξ =
// (Sᵀ·A·S)⁻¹.
func (s *solver) step(ctx context.Context) error {
	if err := s.multiply(ctx); err != nil {
		return err
	}
	var energy, xi, move, image, along mat.Dense
	energy.Mul(s.directions.T(), s.image)
	if err := invert(&xi, &energy); err != nil {
		return err
	}
	move.Mul(&xi, s.sizes)
	along.Mul(s.directions, &move)
	s.x.Add(s.x, &along)
	image.Mul(s.image, &xi)
	s.residuals.Sub(s.residuals, &image)
	zeta := orthonormalise(s.residuals)
	var turned, sizes mat.Dense
	turned.Mul(s.directions, zeta.T())
	s.directions.Add(s.residuals, &turned)
	sizes.Mul(zeta, s.sizes)
	s.sizes = &sizes
	return nil
}

// multiply sets image to A times the directions.
func (s *solver) multiply(ctx context.Context) error {
	if err := s.in.Upload(ctx, view(s.directions)); err != nil {
		return err
	}
	t, err := s.plan.Run(ctx, 1, s.in, 0, s.product)
	if err != nil {
		return err
	}
	s.worked += t.Best()
	return s.product.Download(ctx, view(s.image))
}

// converged tells whether each column's residual is within the tolerance.
func (s *solver) converged(tolerance float64) bool {
	for k, x := range s.norms() {
		if !(x <= tolerance*s.start[k]) {
			return false
		}
	}
	return true
}

// norms returns the residuals' norms.
func (s *solver) norms() []float64 {
	_, n := s.sizes.Dims()
	out := make([]float64, n)
	for k := range out {
		out[k] = mat.Norm(s.sizes.ColView(k), 2)
	}
	return out
}

func (s *solver) solution() *formats.Dense[float64] { return view(s.x) }

// view is a matrix of gonum's as package spmm takes it, in the same memory.
func view(m *mat.Dense) *formats.Dense[float64] {
	r := m.RawMatrix()
	return &formats.Dense[float64]{Rows: r.Rows, Cols: r.Cols, LD: r.Stride, Data: r.Data}
}

// invert sets out to the inverse of a symmetric positive definite matrix.
func invert(out, a *mat.Dense) error {
	n, _ := a.Dims()
	whole := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			whole.SetSym(i, j, (a.At(i, j)+a.At(j, i))/2)
		}
	}
	var c mat.Cholesky
	if !c.Factorize(whole) {
		return errors.New("the matrix is not positive definite")
	}
	var inverse mat.SymDense
	if err := c.InverseTo(&inverse); err != nil {
		return err
	}
	out.CloneFrom(&inverse)
	return nil
}

// orthonormalise makes m the Q of its QR factorisation, and returns R.
func orthonormalise(m *mat.Dense) *mat.Dense {
	raw := m.RawMatrix()
	tau, best := make([]float64, raw.Cols), make([]float64, 1)
	lapack64.Geqrf(raw, tau, best, -1)
	work := make([]float64, int(best[0]))
	lapack64.Geqrf(raw, tau, work, len(work))
	r := mat.NewDense(raw.Cols, raw.Cols, nil)
	for i := range raw.Cols {
		copy(r.RawRowView(i)[i:], m.RawRowView(i)[i:])
	}
	orgqr(raw, tau)
	return r
}

// orgqr replaces Householder vectors by the orthonormal columns that they stand for.
func orgqr(a blas64.General, tau []float64) {
	best := make([]float64, 1)
	lapack64.Orgqr(a, tau, best, -1)
	work := make([]float64, int(best[0]))
	lapack64.Orgqr(a, tau, work, len(work))
}
