// Command bench measures spmmrun beside vendor libraries, in one run on one machine, and prints
// Markdown tables for NOTES.md.
//
//	make build && nvcc -O3 -arch=native -DLT -o peers bench/peers/peers.cu -lcublas -lcusparse -lcusparseLt
//	go run ./bench -spmmrun bin/spmmrun -peers ./peers -files 'FOLDER/*.mtx' cvse floors
//	go run ./bench -backends cpu -precisions f32,f16 -n 128 choice
//	go run ./bench -precisions f32,f16 -n 8,32,128,512 gonum
//	go run -tags cuda ./bench -backends cuda copy chain values
//	go run -tags cuda ./bench -peers ./peers pruned
//	go run -tags cuda ./bench -peers ./peers -n 1,8,64,512 dense
//	go run -tags cuda ./bench -peers ./peers -files 'FOLDER/*.mtx.gz' -precisions f32,tf32 -n 32,128,512 graphs
//
// and makes the device model that formats are predicted by on such a device:
//
//	go run ./bench -backends cpu -precisions f32,f16 -n 16,128,512 -data DATA -predict choice
//	go run ./bench fit DATA
//
// Every time is a median over batches of multiplications back to back, after warm-up, on random data;
// spmmrun verifies its output, and a wrong or missing result is printed as such.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	_ "github.com/spmmrun/spmm/backend/all"
)

// suites are the comparisons there are.
var suites = map[string]func(*runner) error{
	"cvse": cvse, "choice": choice, "floors": floors, "reproducible": reproducible, "copy": copies, "chain": chains, "values": newValues, "gonum": besideGonum, "pruned": pruned, "group": groups, "outofcore": outOfCore, "graphs": graphs, "dense": denseSuite,
	// parts of floors:
	"24": floor24, "vectors": floorVectors, "jigsaw": floorJigsaw, "vulkan": floorVulkan, "hrpb": floorHRPB, "auto": floorAuto,
}

func main() {
	var r runner
	flag.StringVar(&r.spmmrun, "spmmrun", "bin/spmmrun", "the command to measure")
	flag.StringVar(&r.peers, "peers", "", "the program of bench/peers; without it vendor libraries are left out")
	flag.StringVar(&r.backends, "backends", "cuda,vulkan", "backends to measure; lists of devices with + between them (group, outofcore)")
	flag.StringVar(&r.precisions, "precisions", "f32", "precisions to measure (choice, gonum, graphs)")
	flag.StringVar(&r.files, "files", "", "a pattern of matrix files to measure (choice: besides those built in; floors: those of bench/cutespmm.csv; graphs: or one gen:…; chain: in place of dwt_992; group: one gen:… in place of those built in)")
	flag.StringVar(&r.n, "n", "128", "columns of B (choice, dense, gonum, graphs, group, outofcore)")
	flag.StringVar(&r.data, "data", "", "file to append all measurements to, as lines of JSON (choice, graphs)")
	flag.BoolVar(&r.predict, "predict", false, "add to them what predictions are made from (choice)")
	flag.StringVar(&r.only, "only", "", "a regular expression of the matrices to take (choice, gonum, pruned, reproducible), or part of the sizes (dense)")
	flag.Float64Var(&r.gigabytes, "gigabytes", 1, "of A, of 10^9 bytes (outofcore)")
	flag.Float64Var(&r.memory, "memory", 0.25, "gigabytes that may be used of the device (outofcore)")
	install := false
	flag.BoolVar(&install, "install", false, "put the device model into the cache folder instead of printing it (fit)")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: bench [flags] SUITE…   (suites: %s)\n       bench [-install] fit DATA   (DATA as -data -predict choice writes it)\n", strings.Join(slices.Sorted(maps.Keys(suites)), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if flag.Arg(0) == "fit" {
		if err := fit(flag.Args()[1:], install, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "bench: fit:", err)
			os.Exit(1)
		}
		return
	}
	for _, name := range flag.Args() {
		suite, ok := suites[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "bench: no suite %q\n", name)
			os.Exit(2)
		}
		if err := suite(&r); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

type runner struct {
	spmmrun, peers, backends string
	precisions, files        string
	n, data, only            string
	predict                  bool
	gigabytes, memory        float64
}

// result is what spmmrun's JSON report says, as far as it is used here.
type result struct {
	Backend, Device, Driver, Format, Variant string
	Time                                     struct{ Median float64 } `json:"time_us"`
	AttainableUS                             float64                  `json:"attainable_us"`
	Verify                                   struct{ OK bool }
}

// run multiplies and returns the report.
func (r *runner) run(args ...string) (result, error) {
	var res result
	out, err := exec.Command(r.spmmrun, append([]string{"--report", "json"}, args...)...).Output()
	if err != nil {
		return res, fmt.Errorf("spmmrun %s: %w", strings.Join(args, " "), withStderr(err))
	}
	return res, json.Unmarshal(out, &res)
}

// peer runs the vendor library program and returns its time in microseconds, 0 if there is none.
func (r *runner) peer(args ...any) (float64, error) {
	times, err := r.peerTimes(args...)
	if err != nil || len(times) == 0 {
		return 0, err
	}
	return times[0], nil
}

// peerTimes is peer for several products, none if there is no program.
func (r *runner) peerTimes(args ...any) ([]float64, error) {
	if r.peers == "" {
		return nil, nil
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	out, err := exec.Command(r.peers, words...).Output()
	if err != nil {
		return nil, fmt.Errorf("peers %s: %w", strings.Join(words, " "), withStderr(err))
	}
	var times []float64
	for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
		var res struct{ US float64 }
		if err := lines.Decode(&res); err != nil {
			return nil, fmt.Errorf("peers %s: %w", words[0], err)
		}
		times = append(times, res.US)
	}
	return times, nil
}

func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// cell is a result in a table: its time, or why there is none.
func cell(res result, err error) string {
	switch {
	case err != nil:
		return "failed: " + err.Error()
	case !res.Verify.OK:
		return "wrong answer"
	}
	return fmt.Sprintf("%.1f (%s)", res.Time.Median, res.Variant)
}

// cvse is SSpMM's ground: vectors of 8 rows, f16 with f32 sums. The published kernels' times were taken
// on an H200 with the same method (driver 580, CUDA 13.0).
func cvse(r *runner) error {
	const m, k, n = 4096, 4096, 512
	published := map[string]string{"0.7": "115", "0.8": "79", "0.9": "42", "0.95": "23", "0.98": "12"}
	backends := strings.Split(r.backends, ",")
	fmt.Printf("%d×%d, N=%d, vectors of 8 rows, f16 → f32, µs\n\n", m, k, n)
	fmt.Printf("| zeros | cuBLAS | SSpMM's code (H200) | %s |\n", strings.Join(backends, " | "))
	fmt.Println("|" + strings.Repeat(" --- |", 3+len(backends)))
	for _, zeros := range slices.Sorted(maps.Keys(published)) {
		dense, err := r.peer("gemm", m, k, n)
		if err != nil {
			return err
		}
		row := []string{zeros, fmt.Sprintf("%.1f", dense), published[zeros]}
		for _, b := range backends {
			res, err := r.run("--backend", b, "--format", "cvse", "--precision", "f16", "-n", fmt.Sprint(n),
				fmt.Sprintf("gen:vector,rows=%d,cols=%d,v=8,sparsity=%s", m, k, zeros))
			row = append(row, cell(res, err))
		}
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
	fmt.Println()
	return nil
}
