// Pruned weights on a GPU beside cuBLAS's dense multiplication and cuSPARSELt's 2:4: what auto takes, its time and the floor
// that it has to reach.

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// weights is a kind of pruned matrix, and the columns that it is multiplied by.
type weights struct {
	rows, cols int
	spec       string // without rows and cols
	n          []int
	us         []float64 // floors; 0: that of dense
	peer       string    // 24 where cuSPARSELt is a peer besides cuBLAS
}

// slowerThanDense is how much longer than cuBLAS auto may take wherever there is no other floor.
const slowerThanDense = 1.15

// prunedWeights are the cases with their floors, in µs on an H200.
func prunedWeights() []weights {
	ws := []weights{
		{28672, 8192, "uniform,density=0.5", []int{1, 8, 16, 32, 512, 2048}, []float64{88, 70, 71, 85}, ""},
		{28672, 8192, "uniform,density=0.4", []int{1, 8, 16, 32, 512, 2048}, []float64{73, 60, 62, 74}, ""},
		{28672, 8192, "uniform,density=0.3", []int{1, 8, 16, 32, 512, 2048}, []float64{57, 54, 59, 73}, ""},
		{28672, 8192, "uniform,density=0.2", []int{1, 8, 16, 32, 512, 2048}, []float64{41, 42, 47, 64}, ""},
		{28672, 8192, "uniform,density=0.1", []int{1, 8, 16, 32, 512}, []float64{25, 30, 36, 52}, ""},
		{4096, 4096, "uniform,density=0.1", []int{512, 2048}, []float64{30, 85}, ""},
		{4096, 4096, "uniform,density=0.05", []int{512, 2048}, []float64{28, 75}, ""},
		{4096, 4096, "uniform,density=0.02", []int{512, 2048}, []float64{24, 70}, ""},
		{4096, 4096, "vector,v=8,density=0.3", []int{512, 2048}, []float64{27, 93}, ""},
		{4096, 4096, "vector,v=8,density=0.2", []int{512, 2048}, []float64{24, 80}, ""},
		{4096, 4096, "vector,v=8,density=0.1", []int{512, 2048}, []float64{15, 50}, ""},
		{4096, 4096, "vector,v=8,density=0.05", []int{512, 2048}, []float64{12, 36}, ""},
		{4096, 4096, "vector,v=8,density=0.02", []int{512, 2048}, []float64{9, 26}, ""},
		{4096, 4096, "nm,n=2,m=4", []int{512, 2048, 8, 128}, []float64{22, 66}, "24"},
	}
	for _, size := range [][2]int{{12288, 4096}, {4096, 4096}, {11008, 4096}, {4096, 11008}} { // of a transformer's block
		for _, density := range []string{"0.5", "0.4", "0.3", "0.2", "0.1"} {
			ws = append(ws, weights{size[0], size[1], "uniform,density=" + density, []int{1, 8, 16, 32}, nil, ""})
		}
	}
	for _, density := range []string{"1", "0.8", "0.6"} {
		ws = append(ws,
			weights{4096, 4096, "uniform,density=" + density, []int{1, 8, 32, 64, 128, 192, 256, 512, 1000, 2048, 4096}, nil, ""},
			weights{28672, 8192, "uniform,density=" + density, []int{1, 8, 32, 64, 128, 192, 512, 2048, 4096}, nil, ""})
	}
	return ws
}

// matrix returns what gen makes of it.
func (w weights) matrix() string {
	return fmt.Sprintf("gen:%s,rows=%d,cols=%d", w.spec, w.rows, w.cols)
}

// floor is what case i has to reach, given cuBLAS's time; 0 if neither is known.
func (w weights) floor(i int, dense float64) float64 {
	if i < len(w.us) && w.us[i] > 0 {
		return w.us[i]
	}
	return slowerThanDense * dense
}

// pruned prints for each case what auto takes in f16, and the floor.
func pruned(r *runner) error {
	ctx := context.Background()
	only, err := regexp.Compile(r.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dev, err := spmm.Open(ctx, "cuda")
	if err != nil {
		return err
	}
	defer dev.Close()
	table(fmt.Sprintf("%v, f16, µs", dev.Info()), "matrix", "N", "cuBLAS", "cuSPARSELt", "auto", "taken", "floor", "")
	for _, w := range prunedWeights() {
		if !only.MatchString(w.matrix()) {
			continue
		}
		if err := w.print(ctx, r, dev); err != nil {
			return fmt.Errorf("%s: %w", w.matrix(), err)
		}
	}
	fmt.Println()
	return nil
}

// print prints the lines of a matrix.
func (w weights) print(ctx context.Context, r *runner, dev *spmm.Device) error {
	a32, err := gen.CSR(w.matrix())
	if err != nil {
		return err
	}
	a := formats.Convert[half.F16](a32)
	dense, err := r.peerTimes(args("gemm", w)...)
	if err != nil {
		return err
	}
	sparse := make([]float64, len(w.n))
	if w.peer != "" {
		if sparse, err = r.peerTimes(args(w.peer, w)...); err != nil {
			return err
		}
	}
	for i, n := range w.n {
		e, err := autoEntrant(ctx, dev, a, n)
		if err != nil { // the other lines are worth having
			fmt.Fprintf(os.Stderr, "bench: %s, N=%d: %v\n", w.matrix(), n, err)
			continue
		}
		err = measure([]*entrant{e})
		e.close()
		if err != nil {
			return err
		}
		cublas, cusparselt := at(dense, i), at(sparse, i)
		row(w.matrix(), n, cublas, cusparselt, e.us, e.Format+"/"+e.Variant, w.floor(i, cublas), met(e.us, w.floor(i, cublas)))
	}
	return nil
}

// args are those of peers.
func args(name string, w weights) []any {
	words := []any{name, w.rows, w.cols}
	for _, n := range w.n {
		words = append(words, n)
	}
	return words
}

// at returns element i, or 0 if nothing was measured.
func at(times []float64, i int) float64 {
	if i < len(times) {
		return times[i]
	}
	return 0
}

// autoEntrant multiplies by what auto takes for N columns; the output is checked.
func autoEntrant(ctx context.Context, dev *spmm.Device, a *formats.CSR[half.F16], n int) (*entrant, error) {
	started := time.Now()
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Precision: dtype.F16, Cols: n})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "N=%d prepared in %v\n", n, time.Since(started).Round(time.Millisecond))
	e, err := compete[float32](ctx, plan, a, formats.ConvertDense[half.F16](gen.Dense(a.Cols, n, 1, gen.Values{})), n)
	if err != nil {
		return nil, err
	}
	e.Format, e.Variant = plan.Info().Format, plan.Info().Variant
	return e, nil
}
