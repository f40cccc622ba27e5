// Checking C against exact arithmetic.

package main

import (
	"context"
	"math"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
)

// sampleProducts is about how many exact products --verify sample spends: a fraction of a second.
const sampleProducts = 5e6

// multiplied describes the multiplication that is verified.
type multiplied struct {
	info spmm.PlanInfo
	bits int // of reproducible mode, else 0
}

// verify checks the outputs that the job asks for.
func verify[T formats.Value, S oracle.Number](ctx context.Context, j *job, done multiplied, q *operands[T, S],
	c *formats.Dense[S]) (*verifyReport, error) {
	sample := int64(0) // all
	if j.verify == "sample" {
		sample = 1 + int64(sampleProducts/(1+float64(q.a().NNZ())/float64(max(1, q.rows))))
	}
	problem := oracle.ProblemOf[S]{
		Quantised: q.quantised, A: formats.Convert[S](q.a()), B: convertDense[S](q.b), C: q.c0,
		Alpha: float64(S(j.alpha)), Beta: float64(S(j.beta)), Epilogue: q.epilogue, Compute: done.info.Precision,
		Out: formats.TypeOf[S](),
	}
	r, err := oracle.Check(ctx, problem, c, sample)
	if err != nil {
		return nil, err
	}
	distance := distanceReport{Checked: r.Checked, Worst: finite(r.Worst), Relative: finite(r.Relative)}
	if p := done.bits; p != 0 { // right is then what the mode defines, however far from the exact product
		// there is no such mode for f64
		v, err := verifyBits(ctx, j, p, any(problem).(oracle.Problem), any(c).(*formats.Dense[float32]))
		if err == nil {
			v.Distance = distance
		}
		return v, err
	}
	v := &verifyReport{Mode: j.verify, Checked: r.Checked, MaxRatio: finite(r.MaxRatio), OK: r.OK(), Distance: distance}
	if q.quantised != nil && q.quantised != q.original {
		if v.unquantised, err = distanceFrom(ctx, problem, q.original, c, sample); err != nil {
			return nil, err
		}
	}
	if r.First != nil {
		v.worst = r.First.Error()
	}
	return v, nil
}

// finite returns x, or the largest number in place of infinity and NaN, which JSON does not have.
func finite(x float64) float64 {
	if !(x <= math.MaxFloat64) {
		return math.MaxFloat64
	}
	return x
}
