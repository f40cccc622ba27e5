// Command bench measures what spmmrun bench does not: floors, whether the format that is chosen is the fastest, what moves and
// streams between devices, chains, new values; and prints Markdown tables for NOTES.md.
//
//	nvcc -O2 -std=c++17 -arch=native -DLT -o cuda bench/peers/cuda.cu -lcublas -lcusparse -lcusparseLt
//	go run -tags cuda ./bench -peer ./cuda -files 'FOLDER/*.mtx' floors
//	go run ./bench -backends cpu -precisions f32,f16 -n 128 choice
//	go run -tags cuda ./bench -backends cuda copy chain values
//	nvcc -O3 -arch=native -DLT -o peers bench/peers/peers.cu -lcublas -lcusparse -lcusparseLt
//	go run -tags cuda ./bench -peers ./peers pruned
//	go run -tags cuda ./bench -peers ./peers -n 1,8,64,512 dense
//	go run -tags cuda ./bench -peers ./peers -files 'FOLDER/*.mtx.gz' -precisions f32,tf32 -n 32,128,512 graphs
//
// and makes the device model that formats are predicted by on such a device:
//
//	go run ./bench -backends cpu -precisions f32,f16 -n 16,128,512 -data DATA -predict choice
//	go run ./bench fit DATA
//
// Every time is a median over batches of multiplications back to back, after warm-up, on random data.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	_ "github.com/spmmrun/spmm/backend/all"
)

// suites are the comparisons there are.
var suites = map[string]func(*runner) error{
	"choice": choice, "floors": floors, "copy": copies, "chain": chains, "values": newValues, "pruned": pruned, "group": groups, "outofcore": outOfCore, "graphs": graphs, "dense": denseSuite,
	// parts of floors:
	"24": floor24, "vectors": floorVectors, "jigsaw": floorJigsaw, "vulkan": floorVulkan, "hrpb": floorHRPB, "auto": floorAuto,
}

func main() {
	var r runner
	flag.StringVar(&r.peer, "peer", "", "the program of bench/peers/cuda.cu; without it vendor libraries are left out (floors)")
	flag.StringVar(&r.peers, "peers", "", "the program of bench/peers/peers.cu, likewise (dense, graphs, pruned)")
	flag.StringVar(&r.backends, "backends", "cuda,vulkan", "backends to measure; lists of devices with + between them (group, outofcore)")
	flag.StringVar(&r.precisions, "precisions", "f32", "precisions to measure (choice, graphs)")
	flag.StringVar(&r.files, "files", "", "a pattern of matrix files to measure (choice: besides those built in; floors: those of bench/cutespmm.csv; graphs: or one gen:…; chain: in place of dwt_992; group: one gen:… in place of those built in)")
	flag.StringVar(&r.n, "n", "128", "columns of B (choice, dense, graphs, group, outofcore)")
	flag.StringVar(&r.data, "data", "", "file to append all measurements to, as lines of JSON (choice, graphs)")
	flag.StringVar(&r.formats, "formats", "", "formats to measure beside what auto takes, or FORMAT/VARIANT (pruned); a regular expression of the latter (graphs)")
	flag.BoolVar(&r.recorded, "recorded", false, "run batches as sequences, which the device records (graphs)")
	flag.BoolVar(&r.predict, "predict", false, "add to them what predictions are made from (choice)")
	flag.StringVar(&r.only, "only", "", "a regular expression of the matrices to take (choice, pruned), or part of the sizes (dense)")
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
	peer, peers, backends string
	precisions, files     string
	n, data, only         string
	formats               string
	predict, recorded     bool
	gigabytes, memory     float64
}
