// The floors of each format: what it has to reach beside vendors' libraries and published code.

package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/formats/load"
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

// time is run's median in microseconds and the variant; what failed is said on stderr.
func (r *runner) time(backend, format, precision string, n int, matrix string) (float64, string) {
	res, err := r.run("--backend", backend, "--format", format, "--precision", precision, "-n", strconv.Itoa(n), matrix)
	if err == nil && !res.Verify.OK {
		err = fmt.Errorf("%s %s %s: wrong answer", backend, format, matrix)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 0, "failed"
	}
	return res.Time.Median, res.Format + "/" + res.Variant
}

// floor24 is 2:4: at least 0.9 of cuSPARSELt's speed.
func floor24(r *runner) error {
	table("2:4, 4096², f16 → f32, µs; floor at N=2048: 0.9× cuSPARSELt", "N", "cuBLAS", "cuSPARSELt (C in f16)", "spmm, CUDA", "floor")
	for _, n := range []int{8, 64, 512, 2048} {
		dense, err := r.peer("gemm", 4096, 4096, n)
		if err != nil {
			return err
		}
		lt, err := r.peer("24", 4096, 4096, n)
		if err != nil {
			return err
		}
		us, _ := r.time("cuda", "nm", "f16", n, "gen:nm,rows=4096,cols=4096,n=2,m=4")
		row(n, dense, lt, us, met(us, lt/0.9))
	}
	fmt.Println()
	return nil
}

// floorVectors is N:M of tall vectors: faster than dense cuBLAS.
func floorVectors(r *runner) error {
	const n = 512
	table(fmt.Sprintf("N:M of V×1 vectors, 4096², N=%d, f16 → f32, µs; floor: cuBLAS", n), "pattern", "V", "cuBLAS", "spmm, CUDA", "floor")
	dense, err := r.peer("gemm", 4096, 4096, n)
	if err != nil {
		return err
	}
	for _, p := range []struct{ n, m int }{{4, 16}, {2, 20}} {
		for _, v := range []int{16, 32, 64, 128} {
			us, _ := r.time("cuda", "nm", "f16", n, fmt.Sprintf("gen:nm,rows=4096,cols=4096,n=%d,m=%d,v=%d", p.n, p.m, v))
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
	dense, err := r.peer("gemm", 4096, 4096, n)
	if err != nil {
		return err
	}
	for _, zeros := range []string{"0.7", "0.8", "0.9", "0.95", "0.98"} {
		spec := "gen:vector,rows=4096,cols=4096,v=8,sparsity=" + zeros
		cvse, _ := r.time("cuda", "cvse", "f16", n, spec)
		jigsaw, _ := r.time("cuda", "jigsaw", "f16", n, spec)
		row(zeros, dense, cvse, jigsaw, met(jigsaw, cvse))
	}
	fmt.Println()
	return nil
}

// floorHRPB is hrpb beside cuTeSpMM's own code over matrices of a folder, and beside Acc-SpMM on NotreDame_www.
func floorHRPB(r *runner) error {
	return r.graphs("hrpb", "tf32", "cuTeSpMM's", func(cutespmm, cusparse float64) float64 { return cutespmm })
}

// floorAuto is the format that is chosen, in f32, beside the better of cuTeSpMM's code and cuSPARSE.
func floorAuto(r *runner) error {
	return r.graphs("auto", "f32", "the better of the two", func(cutespmm, cusparse float64) float64 {
		if cusparse > 0 {
			return min(cutespmm, cusparse)
		}
		return cutespmm
	})
}

// graphs measures a format on the files that there are published times of.
func (r *runner) graphs(format, precision, what string, floor func(cutespmm, cusparse float64) float64) error {
	const n = 128
	files, err := filepath.Glob(r.files)
	if err != nil || len(files) == 0 {
		fmt.Printf("No matrices (-files): %s is left out.\n\n", format)
		return err
	}
	cusparse, err := r.cusparse(files, n, "f32")
	if err != nil {
		return err
	}
	table(fmt.Sprintf("%s on graphs and meshes, %s, N=%d, CUDA, µs; floor: %s", format, precision, n, what),
		"matrix", "cuTeSpMM (tf32)", "cuSPARSE (f32)", "spmm", "its format", "floor")
	var mean geomean
	for i, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".mtx")
		theirs := cutespmmTime(name, n)
		if theirs == 0 {
			continue
		}
		limit := floor(theirs, cusparse[i])
		us, variant := r.time("cuda", format, precision, n, file)
		mean.add(limit, us)
		row(name, theirs, cusparse[i], us, variant, met(us, limit))
	}
	fmt.Printf("\nGeometric mean, theirs over ours: %v.\n\n", &mean)
	at := slices.IndexFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), "NotreDame_www") })
	if at >= 0 && format == "hrpb" {
		notreDame(r, files[at], cusparse[at])
	}
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

// notreDame is hrpb on one graph: Acc-SpMM's time, which was taken on an H200 likewise.
func notreDame(r *runner, file string, cusparse float64) {
	const n, published = 128, 141.7
	us, _ := r.time("cuda", "hrpb", "tf32", n, file)
	table(fmt.Sprintf("NotreDame_www, N=%d, CUDA, µs; floor: Acc-SpMM's", n), "cuSPARSE (f32)", "Acc-SpMM (tf32)", "hrpb, tf32", "floor")
	row(cusparse, published, us, met(us, published))
	fmt.Println()
}

// floorVulkan is Vulkan beside CUDA: at most twice the time.
func floorVulkan(r *runner) error {
	table("Vulkan beside CUDA, µs; floor: twice CUDA's time", "format", "precision", "matrix", "N", "CUDA", "Vulkan", "floor")
	for _, x := range []struct {
		format, precision, matrix string
		n                         int
	}{
		{"csr", "f32", "uniform,sparsity=0.98", 512},
		{"cvse", "f16", "vector,v=8,sparsity=0.7", 512},
		{"tiledcsr", "f16", "uniform,sparsity=0.95", 512},
		{"jigsaw", "f16", "vector,v=8,sparsity=0.9", 512},
		{"nm", "f16", "nm,n=2,m=4", 2048},
		{"nm", "f16", "nm,n=4,m=16,v=32", 512},
		{"nm", "f16", "nm,n=4,m=16,v=128", 512},
		{"hrpb", "tf32", "banded,band=64,density=0.3", 512},
	} {
		spec := "gen:" + strings.Replace(x.matrix, ",", ",rows=4096,cols=4096,", 1)
		cuda, _ := r.time("cuda", x.format, x.precision, x.n, spec)
		vulkan, _ := r.time("vulkan", x.format, x.precision, x.n, spec)
		row(x.format, x.precision, x.matrix, x.n, cuda, vulkan, met(vulkan, 2*cuda))
	}
	fmt.Println()
	return nil
}

// cusparse returns cuSPARSE's times for files, 0 where there is no program to measure it.
func (r *runner) cusparse(files []string, n int, precision string) ([]float64, error) {
	times := make([]float64, len(files))
	if r.peers == "" {
		return times, nil
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []any{"csr", n, precision}
	for i, file := range files {
		raw := filepath.Join(dir, strconv.Itoa(i))
		if err := writeCSR(raw, file); err != nil {
			return nil, err
		}
		args = append(args, raw)
	}
	times, err = r.peerTimes(args...)
	if err == nil && len(times) != len(files) {
		err = fmt.Errorf("peers csr: %d times for %d files", len(times), len(files))
	}
	return times, err
}

// writeCSR writes the pattern of a matrix file as peers reads it.
func writeCSR(to, file string) error {
	a, err := load.File(context.Background(), file, load.Options{})
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	starts := make([]int32, len(a.RowPtr))
	for i, x := range a.RowPtr {
		starts[i] = int32(x) // fewer than 2³¹: the files are small
	}
	w := bufio.NewWriter(f)
	for _, x := range []any{[]int64{int64(a.Rows), int64(a.Cols), int64(len(a.ColIdx))}, starts, a.ColIdx} {
		if err := binary.Write(w, binary.LittleEndian, x); err != nil {
			return err
		}
	}
	return w.Flush()
}
