// Propagation: tensors stay on the ranks' devices from step to step.

package dist_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// Graphs are normalised as defined, and ten steps have the same bits on any number of ranks.
func TestPropagate(t *testing.T) {
	dev := openCPU(t)
	a := graph(700, 6)
	n := a.Rows
	for how := dist.AsIs; how <= dist.Symmetric; how++ {
		var first *formats.Dense[float32]
		for _, ranks := range []int{1, 2, 5} {
			got := formats.NewDense[float32](n, 4)
			err := local.Run(ranks, func(c comm.Comm) error {
				var all *formats.CSR[float32]
				if c.Rank() == 0 {
					all = a
				}
				s, err := dist.FromRoot(c, all)
				if err == nil {
					s, err = dist.Balance(ctx, c, s)
				}
				if err == nil {
					s, err = dist.Normalise(c, s, how)
				}
				if err != nil {
					return err
				}
				if err := normalised(a, s, how); err != nil {
					return err
				}
				p, err := dist.Prepare(ctx, c, dev, s, dist.Options{})
				if err != nil {
					return err
				}
				defer p.Close()
				lo, hi := p.Shares().Range(c.Rank())
				start := rowsOf(outliers(n, 4, false), lo, hi)
				x0, x, y := upload(t, dev, start), upload(t, dev, start), upload(t, dev, start)
				for range 10 {
					if _, err := dist.Step(ctx, p, 0.1, x, x0, y); err != nil {
						return err
					}
					x, y = y, x
				}
				if err := x.Download(ctx, start); err != nil {
					return err
				}
				for i := range start.Rows {
					copy(got.Line(lo+i), start.Line(i))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			} else if !got.Equal(first) {
				t.Errorf("normalisation %d: other bits on %d ranks than on one", how, ranks)
			}
		}
	}
	err := local.Run(2, func(c comm.Comm) error {
		s := dist.Share[float32]{First: 5 * c.Rank(), A: must(gen.CSR("gen:uniform,rows=5,cols=9"))}
		_, err := dist.Normalise(c, s, dist.ByRows)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "10×9") {
		t.Errorf("a matrix that is not square: %v", err)
	}
}

// normalised compares a share with the definition.
func normalised(a *formats.CSR[float32], s dist.Share[float32], how dist.Normalisation) error {
	d := formats.NewDense[float32](a.Rows, a.Cols)
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			d.Set(i, int(a.ColIdx[e]), a.Val[e])
		}
	}
	degree := make([]float64, a.Rows)
	for i := range a.Rows {
		if how == dist.Symmetric {
			d.Set(i, i, d.At(i, i)+1)
		}
		for j := range a.Cols {
			degree[i] += math.Abs(float64(d.At(i, j)))
		}
	}
	entries := 0
	for i := range s.A.Rows {
		for e := s.A.RowPtr[i]; e < s.A.RowPtr[i+1]; e++ {
			row, j := s.First+i, int(s.A.ColIdx[e])
			want := float64(d.At(row, j))
			switch {
			case how == dist.ByRows && degree[row] > 0:
				want /= degree[row]
			case how == dist.Symmetric:
				want /= math.Sqrt(degree[row] * degree[j])
			}
			if got := float64(s.A.Val[e]); math.Abs(got-want) > 1e-6*math.Abs(want) {
				return fmt.Errorf("normalisation %d: entry (%d, %d) is %v, want %v", how, row, j, got, want)
			}
			entries++
		}
	}
	want := 0
	for i := s.First; i < s.First+s.A.Rows; i++ {
		for j := range a.Cols {
			if d.At(i, j) != 0 {
				want++
			}
		}
	}
	if entries != want {
		return fmt.Errorf("normalisation %d: %d entries, want %d", how, entries, want)
	}
	return nil
}
