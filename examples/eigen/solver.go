// Subspace iteration: the device multiplies, the host keeps the block of vectors orthogonal.

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/gonum"
)

const (
	degree         = 10 // of the polynomial
	mostIterations = 200
)

// solver holds the matrix and two blocks of vectors on the device, whose Close frees them.
type solver struct {
	plan        *spmm.Plan
	x, y        *spmm.Tensor[float32]
	rows, block int // the vectors' length and number

	iterations, multiplications int
	worked                      time.Duration // the device
}

// pair is an eigenvalue and how far it and its vector are from being exact.
type pair struct{ value, residual float64 }

func newSolver(ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], wanted int) (*solver, error) {
	s := &solver{rows: a.Rows, block: min(a.Rows, wanted+max(6, wanted/2))} // more than are wanted converge faster
	var err error
	if s.plan, err = spmm.Prepare(ctx, dev, a, spmm.Options{Cols: s.block}); err != nil {
		return nil, err
	}
	s.x, s.y, err = spmm.TensorsFor[float32, float32](s.plan, s.block)
	return s, err
}

// solve returns the wanted pairs once the residuals of all are within the tolerance.
func (s *solver) solve(ctx context.Context, wanted int, tolerance float64) ([]pair, error) {
	vectors := gonum.ToMat(gen.Dense(s.rows, s.block, 1, gen.Values{}))
	bound := 0.0
	for range mostIterations {
		s.iterations++
		if bound > 0 {
			f, err := s.filter(ctx, vectors, bound)
			if err != nil {
				return nil, err
			}
			vectors = f
		}
		orthonormalise(vectors)
		found, ritz, err := s.project(ctx, vectors)
		if err != nil {
			return nil, err
		}
		vectors = ritz
		worst := slices.MaxFunc(found[:wanted], func(a, b pair) int { return cmp.Compare(a.residual, b.residual) })
		if worst.residual <= tolerance*math.Abs(found[0].value) {
			return found[:wanted], nil
		}
		// The least value in the block is where growth begins. What is far beyond must not drown all else: at 2.8 times the
		// bound the polynomial is 10⁷, and float32 has seven digits.
		bound = max(math.Abs(found[s.block-1].value), (math.Abs(found[0].value)+found[0].residual)/2.8)
	}
	return nil, fmt.Errorf("the %d largest eigenvalues have not converged in %d iterations", wanted, mostIterations)
}

// filter returns T(A/bound)·vectors for the Chebyshev polynomial T, which is small from −bound to bound and grows fast
// beyond. A multiplication with alpha and beta computes its recurrence T₊ = 2·A/bound·T − T₋: each overwrites the block
// of the step before the last. They are started one after another, and awaited together.
func (s *solver) filter(ctx context.Context, vectors *mat.Dense, bound float64) (*mat.Dense, error) {
	if err := upload(ctx, s.x, vectors); err != nil {
		return nil, err
	}
	last, next := s.x, s.y
	alpha, beta := 1/bound, 0.0
	var started []*spmm.Pending
	for range degree {
		p, err := s.plan.Start(ctx, alpha, last, beta, next)
		if err != nil {
			return nil, err
		}
		started = append(started, p)
		last, next = next, last
		alpha, beta = 2/bound, -1
	}
	for _, p := range started {
		t, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		s.count(t)
	}
	return s.download(ctx, last)
}

// project returns the Ritz pairs of A in the span of the orthonormal vectors, by falling magnitude of the values, and
// their vectors: those of the small matrix Qᵀ·A·Q.
func (s *solver) project(ctx context.Context, q *mat.Dense) ([]pair, *mat.Dense, error) {
	if err := upload(ctx, s.x, q); err != nil {
		return nil, nil, err
	}
	t, err := s.plan.Run(ctx, 1, s.x, 0, s.y)
	if err != nil {
		return nil, nil, err
	}
	s.count(t)
	aq, err := s.download(ctx, s.y)
	if err != nil {
		return nil, nil, err
	}
	var h mat.Dense
	h.Mul(q.T(), aq)
	small := mat.NewSymDense(s.block, nil)
	for i := range s.block {
		for j := i; j < s.block; j++ {
			small.SetSym(i, j, (h.At(i, j)+h.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(small, true) {
		return nil, nil, fmt.Errorf("gonum finds no eigenvalues of the projection of %d×%d", s.block, s.block)
	}
	var all, v, x, ax mat.Dense
	e.VectorsTo(&all)
	values := e.Values(nil)
	order := byMagnitude(values)
	v.ReuseAs(s.block, s.block)
	for to, from := range order {
		v.SetCol(to, mat.Col(nil, from, &all))
	}
	x.Mul(q, &v)
	ax.Mul(aq, &v)
	found := make([]pair, s.block)
	for j, from := range order {
		found[j].value = values[from]
		var r mat.VecDense
		r.AddScaledVec(ax.ColView(j), -values[from], x.ColView(j))
		found[j].residual = mat.Norm(&r, 2)
	}
	return found, &x, nil
}

func (s *solver) count(t spmm.Timing) {
	s.multiplications++
	s.worked += t.Best()
}

// upload copies a matrix to the device, rounded to float32.
func upload(ctx context.Context, t *spmm.Tensor[float32], m *mat.Dense) error {
	d, _, err := gonum.FromMat[float32](m)
	if err != nil {
		return err
	}
	return t.Upload(ctx, d)
}

func (s *solver) download(ctx context.Context, t *spmm.Tensor[float32]) (*mat.Dense, error) {
	d := formats.NewDense[float32](s.rows, s.block)
	if err := t.Download(ctx, d); err != nil {
		return nil, err
	}
	return gonum.ToMat(d), nil
}

// orthonormalise makes the columns of m orthonormal: the Q of its QR factorisation, of m's size.
func orthonormalise(m *mat.Dense) {
	a := m.RawMatrix()
	tau := make([]float64, min(a.Rows, a.Cols))
	work := make([]float64, 64*max(1, a.Cols))
	lapack64.Geqrf(a, tau, work, len(work))
	lapack64.Orgqr(a, tau, work, len(work))
}

// byMagnitude returns the positions of values by falling magnitude.
func byMagnitude(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(values[j]), math.Abs(values[i])) })
	return order
}
