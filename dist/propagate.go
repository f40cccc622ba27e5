// Propagation along the edges of a graph: personalised PageRank, and APPNP's (Gasteiger et al., ICLR 2019).

package dist

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// Normalisation is what is made of a graph's adjacency matrix A before it is propagated along. Degrees d are sums of the
// magnitudes of a row's values, in float64 in the order of the columns.
type Normalisation int

// The normalisations.
const (
	AsIs      Normalisation = iota // A
	ByRows                         // D⁻¹·A: each row's magnitudes add up to 1; empty rows stay
	Symmetric                      // D^-½·(A+I)·D^-½, D being of A+I, as graph networks have it: every vertex is its own neighbour
)

// Normalise returns the ranks' shares of a square matrix normalised. The values do not depend on how many ranks there are.
func Normalise(c comm.Comm, s Share[float32], how Normalisation) (Share[float32], error) {
	rows, err := s.bounds(c)
	if err != nil {
		return s, err
	}
	if s.A.Cols != rows.Rows() {
		return s, fmt.Errorf("dist: a matrix of %d×%d is no graph's: it must be square", rows.Rows(), s.A.Cols)
	}
	if how == AsIs {
		return s, nil
	}
	if how == Symmetric {
		s.A = withDiagonal(s.A, s.First)
	} else {
		s.A = &formats.CSR[float32]{Rows: s.A.Rows, Cols: s.A.Cols, RowPtr: s.A.RowPtr, ColIdx: s.A.ColIdx, Val: slices.Clone(s.A.Val)}
	}
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

// everywhere gathers a vector of which each rank has a part.
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

// withDiagonal returns rows of A+I, the first of which is row first of it.
func withDiagonal(a *formats.CSR[float32], first int) *formats.CSR[float32] {
	out := &formats.CSR[float32]{
		Rows: a.Rows, Cols: a.Cols, RowPtr: make([]int64, 1, a.Rows+1),
		ColIdx: make([]int32, 0, len(a.ColIdx)+a.Rows), Val: make([]float32, 0, len(a.Val)+a.Rows),
	}
	for i := range a.Rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		at, found := slices.BinarySearch(a.ColIdx[lo:hi], int32(first+i))
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:lo+int64(at)]...), append(out.Val, a.Val[lo:lo+int64(at)]...)
		own := float32(1)
		if found {
			own += a.Val[lo+int64(at)]
			at++
		}
		out.ColIdx, out.Val = append(out.ColIdx, int32(first+i)), append(out.Val, own)
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo+int64(at):hi]...), append(out.Val, a.Val[lo+int64(at):hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out
}

// Step computes y = (1−restart)·Â·x + restart·x0 for a plan of Â: one step of personalised PageRank or APPNP. All three are this
// rank's rows, without padding, and y becomes the next step's x: between steps nothing moves but the rows that ranks exchange.
func Step(ctx context.Context, p *Plan[float32], restart float32, x, x0, y *formats.Dense[float32]) (Timing, error) {
	if err := p.fits(x0, y); err != nil {
		return Timing{}, err
	}
	copy(y.Data, x0.Data[:x0.Rows*x0.Cols])
	return p.Run(ctx, 1-restart, x, restart, y)
}
