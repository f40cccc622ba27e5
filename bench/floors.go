// The suite "floors": what each kernel must reach, in one run and beside the vendors' libraries.

package main

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/internal/benchmark"
)

// cuTeSpMM's own code at N=32, 128 and 512 (tf32, values 1) on an H200, driver 580, CUDA 13.0, medians of batches of 20, warm.
//
//go:embed cutespmm.csv
var cutespmm string

// floors measures all of them in one run.
func floors(r *runner) error {
	for _, f := range []func(*runner) error{floor24, floorVectors, floorJigsaw, floorVulkan, floorHRPB, floorAuto} {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// measured is what a sweep has found out, by case.
type measured map[benchmark.Case]*benchmark.Result

// sweep measures as spmmrun bench does, beside the peer of -peer if there is one.
func (r *runner) sweep(matrices []string, columns []int, precision dtype.Type, backends []string, names ...string) (measured, error) {
	s := benchmark.Sweep{
		Matrices: matrices, Columns: columns, Backends: backends, Formats: names, Precisions: []dtype.Type{precision}, Modes: []string{benchmark.Fast},
		Interval: 0.02, Limit: 300 * time.Millisecond,
		Open: func(ctx context.Context, name string) (*formats.CSR[float32], error) {
			return load.File(ctx, name, load.Options{})
		},
		Verify: func(ctx context.Context, p oracle.Problem, _ int, c *formats.Dense[float32]) error {
			const sample = 1000
			got, err := oracle.Check(ctx, p, c, sample)
			if err == nil && !got.OK() {
				err = got.First
			}
			return err
		},
		Fits:     func([]spmm.Info, *formats.CSR[float32], int, int) error { return nil },
		Progress: func(int64, int64) {},
	}
	if r.peer != "" {
		s.Peers = []string{r.peer}
	}
	report, err := s.Run(context.Background())
	if err != nil {
		return nil, err
	}
	m := measured{}
	for i := range report.Results {
		x := &report.Results[i]
		m[x.Case] = x
		if !x.Measured() && x.Chosen != "" {
			fmt.Fprintf(os.Stderr, "bench: %v: %s\n", x.Case, x.Error)
		}
	}
	return m, nil
}

// of is a case's time in µs and the kernel that was taken; 0 if there is none.
func (m measured) of(matrix string, n int, precision dtype.Type, backend, format string) (us float64, kernel string) {
	x := m[benchmark.Case{Matrix: matrix, N: n, Precision: precision.String(), Backend: backend, Format: format, Mode: benchmark.Fast}]
	if x == nil || !x.Measured() {
		return 0, "failed"
	}
	return x.Median, x.Chosen + "/" + x.Variant
}

// vendor is the time of the fastest of the peer's algorithms whose name begins so, 0 if there is none.
func (m measured) vendor(matrix string, n int, algorithm string) float64 {
	us := 0.0
	for c, x := range m {
		if c.Matrix == matrix && c.N == n && c.Backend == "nvidia" && strings.HasPrefix(c.Format, algorithm) && x.Measured() && (us == 0 || x.Median < us) {
			us = x.Median
		}
	}
	return us
}

// table prints the head of one.
func table(title string, columns ...string) {
	fmt.Printf("%s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

func row(cells ...any) {
	for _, c := range cells {
		if x, ok := c.(float64); ok {
			c = fmt.Sprintf("%.1f", x)
		}
		fmt.Printf("| %v ", c)
	}
	fmt.Println("|")
}

// met says whether a time is within a limit, and by how much. A time of 0 is none.
func met(us, limit float64) string {
	switch {
	case us == 0 || limit == 0:
		return "not measured"
	case us <= limit:
		return fmt.Sprintf("met, %.2f×", limit/us)
	}
	return fmt.Sprintf("missed, %.2f×", limit/us)
}

// floor24 is 2:4: at least 0.9 of cuSPARSELt's speed.
func floor24(r *runner) error {
	const matrix = "gen:nm,rows=4096,cols=4096,n=2,m=4"
	columns := []int{8, 64, 512, 2048}
	m, err := r.sweep([]string{matrix}, columns, dtype.F16, []string{"cuda"}, "nm")
	if err != nil {
		return err
	}
	table("2:4, 4096², f16 → f32, µs; floor at N=2048: 0.9× cuSPARSELt", "N", "cuBLAS", "cuSPARSELt (C in f16)", "spmm, CUDA", "floor")
	for _, n := range columns {
		us, _ := m.of(matrix, n, dtype.F16, "cuda", "nm")
		lt := m.vendor(matrix, n, "cusparselt")
		row(n, m.vendor(matrix, n, "cublas"), lt, us, met(us, lt/0.9))
	}
	fmt.Println()
	return nil
}

// floorVectors is N:M of tall vectors: faster than dense cuBLAS.
func floorVectors(r *runner) error {
	const n = 512
	table(fmt.Sprintf("N:M of V×1 vectors, 4096², N=%d, f16 → f32, µs; floor: cuBLAS", n), "pattern", "V", "cuBLAS", "spmm, CUDA", "floor")
	for _, p := range []struct{ n, m int }{{4, 16}, {2, 20}} {
		for _, v := range []int{16, 32, 64, 128} {
			matrix := fmt.Sprintf("gen:nm,rows=4096,cols=4096,n=%d,m=%d,v=%d", p.n, p.m, v)
			m, err := r.sweep([]string{matrix}, []int{n}, dtype.F16, []string{"cuda"}, "nm")
			if err != nil {
				return err
			}
			us, _ := m.of(matrix, n, dtype.F16, "cuda", "nm")
			dense := m.vendor(matrix, n, "cublas")
			row(fmt.Sprintf("%d:%d", p.n, p.m), v, dense, us, met(us, dense))
		}
	}
	fmt.Println()
	return nil
}

// floorJigsaw is jigsaw beside cvse on cvse's ground.
func floorJigsaw(r *runner) error {
	const n = 512
	table(fmt.Sprintf("jigsaw and cvse, vectors of 8 rows, 4096², N=%d, f16 → f32, CUDA, µs; floor: cvse", n), "zeros", "cuBLAS", "cvse", "jigsaw", "floor")
	for _, zeros := range []string{"0.7", "0.8", "0.9", "0.95", "0.98"} {
		matrix := "gen:vector,rows=4096,cols=4096,v=8,sparsity=" + zeros
		m, err := r.sweep([]string{matrix}, []int{n}, dtype.F16, []string{"cuda"}, "cvse", "jigsaw")
		if err != nil {
			return err
		}
		cvse, _ := m.of(matrix, n, dtype.F16, "cuda", "cvse")
		jigsaw, _ := m.of(matrix, n, dtype.F16, "cuda", "jigsaw")
		row(zeros, m.vendor(matrix, n, "cublas"), cvse, jigsaw, met(jigsaw, cvse))
	}
	fmt.Println()
	return nil
}

// floorHRPB is hrpb beside cuTeSpMM's own code over matrices of a folder, and beside Acc-SpMM on NotreDame_www.
func floorHRPB(r *runner) error {
	return r.graphs("hrpb", dtype.TF32, "cuTeSpMM's", func(cutespmm, cusparse float64) float64 { return cutespmm })
}

// floorAuto is the format that is chosen, in f32, beside the better of cuTeSpMM's code and cuSPARSE.
func floorAuto(r *runner) error {
	return r.graphs("auto", dtype.F32, "the better of the two", func(cutespmm, cusparse float64) float64 {
		if cusparse > 0 {
			return min(cutespmm, cusparse)
		}
		return cutespmm
	})
}

// accSpMM is the time of Acc-SpMM on NotreDame_www with 128 columns, taken on an H200 likewise.
const accSpMM = 141.7

// graphs measures a format on the files that there are published times of.
func (r *runner) graphs(format string, precision dtype.Type, what string, floor func(cutespmm, cusparse float64) float64) error {
	const n = 128
	files, err := filepath.Glob(r.files)
	if err != nil || len(files) == 0 {
		fmt.Printf("No matrices (-files): %s is left out.\n\n", format)
		return err
	}
	m, err := r.sweep(files, []int{n}, precision, []string{"cuda"}, format)
	if err != nil {
		return err
	}
	table(fmt.Sprintf("%s on graphs and meshes, %v, N=%d, CUDA, µs; floor: %s", format, precision, n, what),
		"matrix", "cuTeSpMM (tf32)", "cuSPARSE (f32)", "spmm", "its format", "floor")
	var mean geomean
	for _, file := range files {
		us, kernel := m.of(file, n, precision, "cuda", format)
		cusparse := m.vendor(file, n, "cusparse csr")
		name, theirs := graphName(file), cutespmmTime(graphName(file), n)
		if name == "NotreDame_www" && format == "hrpb" {
			row(name+" (floor: Acc-SpMM's)", theirs, cusparse, us, kernel, met(us, accSpMM))
		}
		if theirs == 0 {
			continue
		}
		limit := floor(theirs, cusparse)
		mean.add(limit, us)
		row(name, theirs, cusparse, us, kernel, met(us, limit))
	}
	fmt.Printf("\nGeometric mean, theirs over ours: %v.\n\n", &mean)
	return nil
}

// geomean is a geometric mean of ratios.
type geomean struct {
	logs  float64
	count int
}

// add takes part in the mean where both times are there.
func (g *geomean) add(theirs, ours float64) {
	if theirs > 0 && ours > 0 {
		g.logs += math.Log(theirs / ours)
		g.count++
	}
}

func (g *geomean) String() string {
	if g.count == 0 {
		return "not measured"
	}
	mean := math.Exp(g.logs / float64(g.count))
	return fmt.Sprintf("%.2f of %d (%s)", mean, g.count, met(1, mean))
}

// floorVulkan is Vulkan beside CUDA: at most twice the time.
func floorVulkan(r *runner) error {
	table("Vulkan beside CUDA, µs; floor: twice CUDA's time", "format", "precision", "matrix", "N", "CUDA", "Vulkan", "floor")
	for _, x := range []struct {
		format    string
		precision dtype.Type
		matrix    string
		n         int
	}{
		{"csr", dtype.F32, "uniform,sparsity=0.98", 512},
		{"cvse", dtype.F16, "vector,v=8,sparsity=0.7", 512},
		{"tiledcsr", dtype.F16, "uniform,sparsity=0.95", 512},
		{"jigsaw", dtype.F16, "vector,v=8,sparsity=0.9", 512},
		{"nm", dtype.F16, "nm,n=2,m=4", 2048},
		{"nm", dtype.F16, "nm,n=4,m=16,v=32", 512},
		{"nm", dtype.F16, "nm,n=4,m=16,v=128", 512},
		{"hrpb", dtype.TF32, "banded,band=64,density=0.3", 512},
	} {
		matrix := "gen:" + strings.Replace(x.matrix, ",", ",rows=4096,cols=4096,", 1)
		alone := *r
		alone.peer = ""
		m, err := alone.sweep([]string{matrix}, []int{x.n}, x.precision, []string{"cuda", "vulkan"}, x.format)
		if err != nil {
			return err
		}
		cuda, _ := m.of(matrix, x.n, x.precision, "cuda", x.format)
		vulkan, _ := m.of(matrix, x.n, x.precision, "vulkan", x.format)
		row(x.format, x.precision, x.matrix, x.n, cuda, vulkan, met(vulkan, 2*cuda))
	}
	fmt.Println()
	return nil
}
