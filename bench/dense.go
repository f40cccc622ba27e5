// Dense weights on a GPU beside cuBLAS: what auto takes for any number of columns, and the floor.

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// denseSizes are rows and columns of weights: of a transformer's block, and of a large one's inner layer.
var denseSizes = [][2]int{{4096, 4096}, {11008, 4096}, {4096, 11008}, {12288, 4096}, {28672, 8192}}

// denseSuite prints a line for each size that -only takes and each of the columns -n.
func denseSuite(r *runner) error {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cuda")
	if err != nil {
		return err
	}
	defer dev.Close()
	table(fmt.Sprintf("%v, dense, f16, µs", dev.Info()), "matrix", "N", "cuBLAS", "dense", "of cuBLAS", "floor", "")
	for _, size := range denseSizes {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		if !strings.Contains(name, r.only) {
			continue
		}
		if err := r.denseSize(ctx, dev, size[0], size[1]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Println()
	return nil
}

func (r *runner) denseSize(ctx context.Context, dev *spmm.Device, rows, cols int) error {
	words := []any{"gemm", rows, cols}
	for _, n := range strings.Split(r.n, ",") {
		words = append(words, n)
	}
	peer, err := r.peerTimes(words...)
	if err != nil {
		return err
	}
	a := formats.ConvertDense[half.F16](gen.Dense(rows, cols, 1, gen.Values{}))
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		return err
	}
	defer plan.Close()
	for i, word := range words[3:] {
		n, err := strconv.Atoi(word.(string))
		if err != nil {
			return fmt.Errorf("-n: %w", err)
		}
		us, err := denseTime(ctx, plan, a, n)
		if err != nil {
			return fmt.Errorf("N=%d: %w", n, err)
		}
		cublas := at(peer, i)
		row(fmt.Sprintf("%d×%d", rows, cols), n, cublas, us, fmt.Sprintf("%.2f", us/cublas), slowerThanDense*cublas, met(us, slowerThanDense*cublas))
	}
	return nil
}

// denseTime is the time of a product in µs. Some rows of the output are checked.
func denseTime(ctx context.Context, plan *spmm.Plan, a *formats.Dense[half.F16], n int) (float64, error) {
	x, y, err := spmm.TensorsFor[half.F16, float32](plan, n)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	defer y.Close()
	b, c := formats.ConvertDense[half.F16](gen.Dense(a.Cols, n, 2, gen.Values{})), formats.NewDense[float32](a.Rows, n)
	if err := x.Upload(ctx, b); err != nil {
		return 0, err
	}
	if _, err := plan.Run(ctx, 1, x, 0, y); err != nil {
		return 0, err
	}
	if err := y.Download(ctx, c); err != nil {
		return 0, err
	}
	const sample = 32
	some, got := formats.NewDense[half.F16](sample, a.Cols), formats.NewDense[float32](sample, n)
	for i := range sample {
		from := i * (a.Rows - 1) / (sample - 1)
		copy(some.Line(i), a.Line(from))
		copy(got.Line(i), c.Line(from))
	}
	if err := right(ctx, some.Sparse().(*formats.CSR[half.F16]), b, got, plan.Info().Precision); err != nil {
		return 0, err
	}
	e := &entrant{}
	e.again = func(batch int) (time.Duration, error) {
		timing, err := plan.Repeat(ctx, batch, 1, x, 0, y)
		return timing.Best(), err
	}
	err = measure([]*entrant{e})
	return e.us, err
}
