// X0 of spmmrun propagate: read from a file, or made.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// readX0 reads X0 on rank 0, if it comes from a file, and settles how many columns there are.
func (g *propagation) readX0(ctx context.Context, r *ranks, rows int) (*formats.Dense[float32], error) {
	if g.xFile == "" {
		return nil, nil
	}
	var x0 *formats.Dense[float32]
	var err error
	cols := []int64{0}
	if r.Rank() == 0 {
		if x0, err = loadDense[float32](ctx, g.xFile); err == nil {
			if cols[0] = int64(x0.Cols); x0.Rows != rows || x0.Cols == 0 || g.colsGiven && x0.Cols != g.cols {
				want := "n"
				if g.colsGiven {
					want = fmt.Sprint(g.cols)
				}
				err = fmt.Errorf("%s: X0 is %d×%d, and the graph has %d vertices: want X0 %d×%s", g.xFile, x0.Rows, x0.Cols, rows,
					rows, want)
			}
		}
		if err == nil && x0.ColMajor {
			x0 = x0.Layout(false, 0)
		}
	}
	if err := r.agree(err); err != nil {
		return nil, err
	}
	err = r.AllReduce(cols, comm.Max)
	g.cols = int(cols[0])
	return x0, err
}

// makeX0 makes rows lo to hi of X0 for a graph with that number of vertices.
func (g *propagation) makeX0(lo, hi, vertices int) *formats.Dense[float32] {
	if g.start == "random" {
		return gen.DenseRows(lo, hi, g.cols, g.seed, gen.Values{})
	}
	x := formats.NewDense[float32](hi-lo, g.cols)
	random := rand.New(rand.NewPCG(g.seed, 0))
	for k := range g.cols {
		if vertices == 0 {
			break
		}
		if at := random.IntN(vertices); at >= lo && at < hi {
			x.Set(at-lo, k, 1)
		}
	}
	return x
}
