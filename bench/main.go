// Command bench measures what spmmrun bench cannot, and prints Markdown tables for NOTES.md. Why each suite exists:
//
//	choice     every packing of every format, and whether what auto takes is the fastest; with -data the measurements that device models are fitted to
//	fit        makes a device model of these
//	graphs     the same for meshes and graphs, beside cuTeSpMM's published times and cuSPARSE, and with batches as sequences
//	pruned     floors of pruned weights: columns that a plan was not packed for, products that do not overlap, weights of 8 bits
//	group      several devices by each split, B lying where it is not needed, and the link between two of them
//	outofcore  a matrix that streams from the host's memory: larger ones than generators make in a reasonable time, and that their bits stay
//	chain      what a product costs the host: chains by Run and as sequences, and heap objects
//	copy       uploads and downloads beside the driver's own copies
//	values     new values for a prepared matrix, beside a copy of as many bytes
//
// It is run so:
//
//	go run ./bench -backends cpu -precisions f32,f16 -n 16,128,512 -data DATA -predict choice
//	go run ./bench fit DATA
//	go run -tags cuda ./bench -backends cuda copy chain values
//	nvcc -O3 -arch=native -DLT -o peers bench/peers/peers.cu -lcublas -lcusparse -lcusparseLt
//	go run -tags cuda ./bench -peers ./peers pruned
//	go run -tags cuda ./bench -peers ./peers -files 'FOLDER/*.mtx.gz' -precisions f32,tf32 -n 32,128,512 graphs
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

// suites are the comparisons there are, beside fit.
var suites = map[string]func(*runner) error{
	"choice": choice, "graphs": graphs, "pruned": pruned, "group": groups, "outofcore": outOfCore, "chain": chains, "copy": copies, "values": newValues,
}

func main() {
	var r runner
	flag.StringVar(&r.peers, "peers", "", "the program of bench/peers/peers.cu; without it vendor libraries are left out (graphs, pruned)")
	flag.StringVar(&r.backends, "backends", "cuda,vulkan", "backends to measure (graphs: the first); lists of devices with + between them (group, outofcore)")
	flag.StringVar(&r.precisions, "precisions", "f32", "precisions to measure (choice, graphs)")
	flag.StringVar(&r.files, "files", "", "a pattern of matrix files to measure (choice: besides those built in; graphs: or one gen:…; chain: in place of dwt_992; group: one gen:… in place of those built in)")
	flag.StringVar(&r.n, "n", "128", "columns of B (choice, graphs, group, outofcore)")
	flag.StringVar(&r.data, "data", "", "file to append all measurements to, as lines of JSON (choice, graphs)")
	flag.StringVar(&r.formats, "formats", "", "formats to measure beside what auto takes, or FORMAT/VARIANT (pruned); a regular expression of the latter (graphs)")
	flag.BoolVar(&r.recorded, "recorded", false, "run batches as sequences, which the device records (graphs, pruned)")
	flag.BoolVar(&r.predict, "predict", false, "add to them what predictions are made from (choice)")
	flag.StringVar(&r.only, "only", "", "a regular expression of the matrices to take (choice, pruned)")
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
	peers, backends   string
	precisions, files string
	n, data, only     string
	formats           string
	predict, recorded bool
	gigabytes, memory float64
}
