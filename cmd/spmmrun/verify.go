// Checking C against exact arithmetic.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
)

// sampleProducts is about how many exact products --verify sample spends: a fraction of a second.
const sampleProducts = 5e6

// sampleSize is how many outputs of a product with that matrix take about `products` exact products, on each of some
// ranks.
func sampleSize(products float64, nnz int64, rows, ranks int) int64 {
	return 1 + int64(products/float64(ranks)/(1+float64(nnz)/float64(max(1, rows))))
}

// claim says that c is the answer to a problem, which is verified.
type claim[S oracle.Number] struct {
	problem oracle.ProblemOf[S]
	c       *formats.Dense[S]
	sample  int64 // about how many outputs are checked; 0: all
	numbers []int // of c's rows within the job's C, which are a sample if one is asked for; nil: c has all rows
	// unquantised, if it is not nil, is A before it was quantised.
	unquantised formats.Encoded
}

// row is the number within the job's C of row i.
func (x *claim[S]) row(i int) int {
	if x.numbers == nil {
		return i
	}
	return x.numbers[i]
}

// verify checks the outputs that the job asks for. The report is of all ranks.
func verify[T formats.Value, S oracle.Number](ctx context.Context, s setup, t task[T, S],
	c *formats.Dense[S]) (*verifyReport, error) {
	x, err := t.claim(c)
	if err := s.r.agree(err); err != nil {
		return nil, err
	}
	bits, _ := t.Reproduced()
	v, err := x.verify(ctx, bits)
	if err := s.r.agree(err); err != nil {
		return nil, err
	}
	v.Mode = s.job.verify
	return v, s.r.joinVerdicts(v)
}

// verify checks outputs: in reproducible mode, where bits is not 0, those of whole rows, each bit.
func (x *claim[S]) verify(ctx context.Context, bits int) (*verifyReport, error) {
	r, err := oracle.Check(ctx, x.problem, x.c, x.sample)
	if err != nil {
		return nil, err
	}
	v := &verifyReport{Checked: r.Checked, MaxRatio: finite(r.MaxRatio), OK: r.OK()}
	if one, is := any(x).(*claim[float32]); bits != 0 && is { // the mode defines what is right, however far from exact
		if v, err = verifyBits(ctx, one, bits); err != nil {
			return nil, err
		}
	} else if r.First != nil {
		r.First.Row = x.row(r.First.Row)
		v.worst = r.First.Error()
	}
	v.Distance = distanceReport{Checked: r.Checked, Worst: finite(r.Worst), Relative: finite(r.Relative)}
	if x.unquantised != nil {
		v.unquantised, err = x.distanceFrom(ctx, x.unquantised)
	}
	return v, err
}

// joinVerdicts makes a rank's verdict that of all.
func (r *ranks) joinVerdicts(v *verifyReport) error {
	if r.Size() == 1 {
		return nil
	}
	var wrong error
	if !v.OK {
		wrong = fmt.Errorf("%s (of rank %d's rows)", v.worst, r.Rank())
	}
	if err := comm.Agree(r, wrong, nil); err != nil {
		v.OK = false
		var other *comm.RankError
		if v.worst = err.Error(); errors.As(err, &other) {
			v.worst = other.Text
		}
	}
	counts := []int64{v.Checked, v.Distance.Checked}
	if err := r.AllReduce(counts, comm.Sum); err != nil {
		return err
	}
	v.Checked, v.Distance.Checked = counts[0], counts[1]
	most := []*float64{&v.MaxRatio, &v.Distance.Worst, &v.Distance.Relative}
	bits := make([]int64, len(most))
	for i, x := range most {
		bits[i] = int64(math.Float64bits(*x)) // in the order of the numbers, which are not negative
	}
	if err := r.AllReduce(bits, comm.Max); err != nil {
		return err
	}
	for i, x := range most {
		*x = math.Float64frombits(uint64(bits[i]))
	}
	return nil
}

// finite returns x, or the largest number in place of infinity and NaN, which JSON does not have.
func finite(x float64) float64 {
	if !(x <= math.MaxFloat64) {
		return math.MaxFloat64
	}
	return x
}
