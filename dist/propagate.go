// Propagation along the edges of a graph: personalised PageRank, and APPNP's (Gasteiger et al., ICLR 2019).

package dist

import (
	"context"
	"fmt"
	"math"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/rowcopy"
)

// Normalisation is how the adjacency matrix A of a graph is scaled for propagation. The degree d of a vertex is the sum
// of the magnitudes of its row's values, in float64 in the order of the columns. Entries at the same place are added
// first.
type Normalisation int

// The normalisations.
const (
	AsIs      Normalisation = iota // A
	ByRows                         // D⁻¹·A: each row's magnitudes add up to 1; empty rows stay
	Symmetric                      // D^-½·(A+I)·D^-½, D of A+I: every vertex is its own neighbour
)

// Normalise returns the ranks' shares of a normalised square matrix. The values do not depend on the number of ranks.
func Normalise(c comm.Comm, s Share[float32], how Normalisation) (Share[float32], error) {
	rows, err := s.bounds(c)
	if err != nil {
		return s, err
	}
	if err := comm.Agree(c, s.A.Validate(), nil); err != nil {
		return s, err
	}
	if s.A.Cols != rows.Rows() {
		return s, fmt.Errorf("dist: a matrix of %d×%d is no graph's: it must be square", rows.Rows(), s.A.Cols)
	}
	if how == AsIs {
		return s, nil
	}
	a, err := merged(s, how == Symmetric)
	if err := comm.Agree(c, err, nil); err != nil {
		return s, err
	}
	s.A = a
	degree := make([]float64, s.A.Rows)
	for i := range degree {
		for _, v := range s.A.Val[s.A.RowPtr[i]:s.A.RowPtr[i+1]] {
			degree[i] += math.Abs(float64(v))
		}
	}
	if how == ByRows {
		scale(s.A, func(i int, _ int32) float64 { return degree[i] })
		return s, nil
	}
	all, err := everywhere(c, rows, degree)
	if err != nil {
		return s, err
	}
	scale(s.A, func(i int, j int32) float64 { return math.Sqrt(degree[i]) * math.Sqrt(all[j]) })
	return s, nil
}

// merged returns a copy of a share whose rows are in the order of their columns, with I added if diagonal is set.
// Entries at one place are added.
func merged(s Share[float32], diagonal bool) (*formats.CSR[float32], error) {
	e := s.A.ToCOO()
	for i := range s.A.Rows {
		if diagonal {
			e.Row, e.Col, e.Val = append(e.Row, int32(i)), append(e.Col, int32(s.First+i)), append(e.Val, 1)
		}
	}
	return e.ToCSR(formats.SumDuplicates)
}

// scale divides each entry by what f says, unless that is 0.
func scale(a *formats.CSR[float32], f func(i int, j int32) float64) {
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			if d := f(i, a.ColIdx[e]); d != 0 {
				a.Val[e] = float32(float64(a.Val[e]) / d)
			}
		}
	}
}

// everywhere gathers a vector whose parts the ranks have.
func everywhere(c comm.Comm, rows Bounds, mine []float64) ([]float64, error) {
	bits, all := make([]int64, len(mine)), make([]int64, rows.Rows())
	for i, x := range mine {
		bits[i] = int64(math.Float64bits(x))
	}
	if err := c.AllGatherV(sizeOf[int64](), bytesOf(bits), bytesOf(all), rows.parts()); err != nil {
		return nil, err
	}
	out := make([]float64, len(all))
	for i, x := range all {
		out[i] = math.Float64frombits(uint64(x))
	}
	return out, nil
}

// Step computes y = (1−restart)·Â·x + restart·x0 for a plan of Â: one step of personalised PageRank or APPNP. x, x0 and
// y are this rank's rows on its device. y is the x of the next step, so that only the rows that ranks exchange leave
// the device.
func Step(ctx context.Context, p *Plan, restart float64, x, x0, y spmm.Operand) (Timing, error) {
	from, to := access.Tensor(x0), access.Tensor(y)
	if err := p.fitTensors(from, to); err != nil {
		return Timing{}, err
	}
	alpha := float64(1 - float32(restart)) // in float32, as the product takes it
	fill := func() (backend.Pending, error) {
		return rowcopy.Start(ctx, p.dev, to, from, rowcopy.Rows{Count: to.Rows})
	}
	return p.run(ctx, alpha, access.Tensor(x), restart, to, fill, nil)
}
