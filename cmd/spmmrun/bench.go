// spmmrun bench: how fast, compared with others and with the limit?

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/benchmark"
)

// errSlower is a case that became slower than --tolerance allows.
var errSlower = errors.New("slower than before")

// standardMatrices are measured where the command line names none: what graphs, meshes, pruned weights and matrices
// with a few heavy rows look like.
var standardMatrices = []string{
	"gen:uniform,rows=4096,density=0.01",
	"gen:uniform,rows=2048,density=0.1",
	"gen:powerlaw,rows=32768,density=0.0005",
	"gen:banded,rows=32768,nnz-per-row=16,band=64",
	"gen:stencil,side=32",
	"gen:vector,rows=4096,density=0.1,v=8",
}

// benchJob has what the command line asks for.
type benchJob struct {
	matrices                                   []string
	cols, backends, formats, precisions, modes string
	p                                          string // of reproducible mode
	spec, only                                 string
	right                                      bool                   // Y = X·Aᵀ
	given                                      func(flag string) bool // on the command line
	peers, load                                []string
	tolerance                                  float64
	plot, compare                              string
	seed                                       uint64
	old                                        *benchmark.Report
	benchTurns
	benchOutput
}

func newBench(unfinished *temporaries) *cobra.Command {
	j := &benchJob{benchOutput: benchOutput{unfinished: unfinished}}
	c := &cobra.Command{
		Use:   "bench [flags] [MATRIX...]",
		Short: "Measure products on devices, in formats and by other programs, side by side",
		Long: `bench measures every combination of MATRIX (a file or gen:…, as for spmmrun) and of the flags' lists of
columns, devices, formats, precisions and modes: -n 32,128,512. Without a MATRIX it measures a standard set.

All programs and formats that compute the same product take turns, so that clocks and other load affect all alike, until
each median is known to ±--interval with 95 % confidence, or --limit is reached. Every answer is first checked against
exact arithmetic.

Attainable is the roofline: by the device's measured rates, the largest of the times for moving A, B and C once, for
reading rows of B from cache, and for arithmetic; "bound by" names it. "Over best" is the time over the least of all
times for the product.

--peer PROGRAM also measures another program, which speaks the protocol of bench/peers/peer.hpp. That folder has peers
for cuSPARSE, cuBLAS and cuSPARSELt (cuda.cu) and for libraries of the CPU.

--spec reads all of this from a file, for several lists of matrices, and what the flags cannot say: ways to multiply,
such as a plan for other columns, quantised, or products that do not overlap, and target times, which the report shows
next to the measured ones. Flags and MATRIX replace its lists. In lists of formats, "packings" stands for each packing
that the device has a kernel for, "near" for those that are predicted to take at most twice as long as the fastest,
"rivals" for at most four times, FORMAT/VARIANT for one, and "tuned" for the one that run --tune takes. Specs are in
bench/specs; docs/bench.md says how to write one.

--compare reports for each case that OLD.json also has how much slower or faster it became. A case counts as slower if
the medians differ by more than --tolerance and a rank test (Mann-Whitney) gives chance less than 1 %.

--load prints, draws and compares a saved report in place of measuring. After an interrupt the results so far are
printed, drawn and saved.

Exit codes: 0 all is right, 1 a wrong answer, or slower than --tolerance allows, 2 usage or bad input, 3 a device is
not there.`,
		Example: `  spmmrun bench
  spmmrun bench --backend all --format auto,csr -n 32,128,512 --precision f32,f16 *.mtx
  spmmrun bench --save before.json a.mtx
  spmmrun bench --compare before.json --tolerance 3 a.mtx
  spmmrun bench --backend cuda:0,cuda:all -n 512 gen:stencil,side=100
  spmmrun bench --load before.json --load more.json --report md --plot both.svg
  spmmrun bench --spec bench/specs/pruned.json --peer bin/peers/cuda --save pruned.json`,
		RunE: func(c *cobra.Command, args []string) error {
			j.matrices, j.given = args, c.Flags().Changed
			if err := j.checkLoad(c, args); err != nil {
				return err
			}
			return j.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&j.backends, "backend", "auto",
		"devices, a list as in cpu,cuda:1; cuda:all, or cuda:0+1, is several as one; all is one of each backend")
	f.StringVar(&j.spec, "spec", "", "take what to measure from `SPEC.json`; other flags take the place of its lists")
	f.StringVar(&j.only, "only", "", "leave out matrices whose names this `REGEXP` does not match")
	f.StringVar(&j.formats, "format", "auto,csr", "formats, a list; all is each that there is, packings each kernel")
	f.StringVarP(&j.cols, "cols", "n", "128", "columns of B, a list")
	f.StringVar(
		&j.precisions, "precision", "f32",
		"precisions, a list of f32, tf32, f16, bf16 and f64, whose matrices have numbers of f32",
	)
	f.BoolVar(&j.right, "right", false,
		"Y = X·Aᵀ as networks compute it: X and Y row-major, X with --cols rows, Y in X's type")
	f.StringVar(&j.modes, "mode", benchmark.Fast, "modes, a list of fast and reproducible")
	f.StringVar(&j.p, "p", precisions[0], "bits that reproducible mode keeps, a list of "+orList(precisions))
	addPeers(c, &j.peers)
	j.benchTurns.add(c)
	addBenchReport(c, &j.report)
	f.StringArrayVar(&j.load, "load", nil, "take the report in `FILE.json` instead of measuring; may be repeated")
	addSave(c, &j.save)
	f.StringVar(&j.plot, "plot", "",
		"draw times, percent of attainable, the roofline and a performance profile to `FILE.svg`")
	f.StringVar(&j.compare, "compare", "", "compare with the report in `OLD.json`")
	f.Float64Var(&j.tolerance, "tolerance", 5, "percent that a case may be slower than in OLD.json")
	addSeed(c, &j.seed, "B, and of ")
	addForce(c, &j.force)
	c.AddCommand(
		newBenchFit(unfinished), newBenchChain(unfinished), newBenchValues(unfinished), newBenchSample(unfinished),
		newBenchCopies(unfinished), newBenchChoice(unfinished),
	)
	return c
}

func addPeers(c *cobra.Command, peers *[]string) {
	c.Flags().StringArrayVar(peers, "peer", nil,
		"a `PROGRAM` to measure, too; may be repeated; none leaves out those of a spec")
}

// checkLoad refuses what says how to measure where nothing is measured.
func (j *benchJob) checkLoad(c *cobra.Command, args []string) error {
	if len(j.load) == 0 {
		return nil
	}
	if len(args) > 0 {
		return fmt.Errorf("--load measures nothing: leave out %s", args[0])
	}
	for _, name := range []string{
		"backend", "format", "cols", "precision", "mode", "p", "peer", "interval", "limit", "seed", "spec", "only",
	} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--load measures nothing: leave out --%s", name)
		}
	}
	return nil
}

// loaded reads the reports of --load.
func (j *benchJob) loaded() (*benchmark.Report, error) {
	var all []*benchmark.Report
	for _, name := range j.load {
		r, err := readBench(name)
		if err != nil {
			return nil, fmt.Errorf("--load: %w", err)
		}
		all = append(all, r)
	}
	r, err := benchmark.Merge(all...)
	if err == nil && len(r.Results) == 0 {
		err = errors.New("no results")
	}
	if err != nil {
		return nil, fmt.Errorf("--load: %w", err)
	}
	return r, nil
}

// measured measures a sweep.
func (j *benchJob) measured(ctx context.Context, s *benchmark.Sweep, p *progress) (*benchmark.Report, error) {
	run := func(at func(done, total int64), known func(benchmark.Report)) (*benchmark.Report, error) {
		s.Progress, s.Measured = at, known
		return s.Run(ctx)
	}
	return measured(ctx, p, s.Total(), run)
}

// measured returns what run measures, which tells how far it is and what is known so far. Whatever an interrupt finds
// it at (packing a large matrix, a launch that never ends, a pipe that says nothing), what is known by then is
// returned while there is time to save it, and what measures is left behind.
func measured(
	ctx context.Context, p *progress, total int64,
	run func(progress func(done, total int64), known func(benchmark.Report)) (*benchmark.Report, error),
) (*benchmark.Report, error) {
	p.step("measuring", total)
	var (
		mu   sync.Mutex
		last benchmark.Report
		left bool
	)
	known := func(so benchmark.Report) {
		mu.Lock()
		defer mu.Unlock()
		last = so
	}
	progress := func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if !left {
			p.at(done, total)
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- recovered(func() error {
			r, err := run(progress, known)
			if r != nil {
				known(*r)
			}
			return err
		})
	}()
	err := inTime(ctx, done)
	mu.Lock()
	defer mu.Unlock()
	left = true
	p.end()
	last.Environment.Program, last.Environment.Command = version(), os.Args
	r := last
	return &r, err
}

// inTime returns what a job sends when it has ended, or the context's error if it goes on after the context has.
func inTime(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace / 3):
		return ctx.Err()
	}
}

// list has each of a list's words checked. Errors call the list name: a flag with its value, or a list of a
// spec.
func list[T comparable](name string, words []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, word := range words {
		x, err := parse(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if slices.Contains(out, x) {
			return nil, fmt.Errorf("%s: %v twice", name, x)
		}
		out = append(out, x)
	}
	return out, nil
}

// oneOf returns a parser that takes the words that are valid.
func oneOf(valid ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(valid, s) {
			return "", fmt.Errorf("%q: want %s", s, orList(valid))
		}
		return s, nil
	}
}

// sweep makes of the flags and the spec what is to be measured.
func (j *benchJob) sweep(ctx context.Context, p *progress) (*benchmark.Sweep, error) {
	if !(j.tolerance >= 0) || math.IsInf(j.tolerance, 0) {
		return nil, fmt.Errorf("--tolerance %g: want percent from 0", j.tolerance)
	}
	turns, err := j.turns()
	if err != nil {
		return nil, err
	}
	s := &benchmark.Sweep{Turns: turns, Peers: j.peers}
	verifySample(s, sampleProducts)
	if err := j.lists(ctx, s); err != nil {
		return nil, err
	}
	s.Open = func(ctx context.Context, name string) (*formats.CSR[float32], error) {
		return openBench(ctx, name, j.seed, p)
	}
	s.Fits = func(on []spmm.Info, a *formats.CSR[float32], n, size int) error {
		return newNeed(&job{devices: len(on)}, on[0], a.Rows, a.Cols, n, a.NNZ(), size).check()
	}
	return s, nil
}

// openBench reads or generates a matrix in f32.
func openBench(ctx context.Context, name string, seed uint64, p *progress) (*formats.CSR[float32], error) {
	a, err := openMatrix(ctx, name, seed, dtype.F32, &progress{w: p.w})
	if err != nil {
		return nil, err
	}
	return float32CSR(a), nil
}

func columnsOf(word string) (int, error) {
	n := 0
	err := count{&n, 1}.Set(word)
	return n, err
}

// placeOf takes a device, or a group: cuda:all, or devices with + between them.
func placeOf(word string) (string, error) {
	name := ""
	if benchmark.IsGroup(word) {
		return word, deviceNames{&name}.Set(strings.ReplaceAll(word, "+", ","))
	}
	err := deviceName{&name}.Set(word)
	return name, err
}

func precisionOf(word string) (dtype.Type, error) {
	if _, err := oneOf("f32", "tf32", "f16", "bf16", "f64")(word); err != nil {
		return 0, err
	}
	return dtype.Parse(word)
}

// allBackends names each backend that has a device.
func allBackends(ctx context.Context) []string {
	var names []string
	present, _ := spmm.Devices(ctx)
	for _, i := range present {
		if !slices.Contains(names, i.Backend) {
			names = append(names, i.Backend)
		}
	}
	return names
}

// verifySample has a sweep check a sample of each output, in reproducible mode of its rows. It takes about that number
// of exact products.
func verifySample(s *benchmark.Sweep, products float64) {
	s.Verify = func(ctx context.Context, p oracle.Problem, bits int, c *formats.Dense[float32]) error {
		return rightSample(ctx, p, products, bits, c)
	}
	s.Verify64 = func(ctx context.Context, p oracle.ProblemOf[float64], c *formats.Dense[float64]) error {
		return rightSample(ctx, p, products, 0, c)
	}
}

// rightSample checks a sample of an output.
func rightSample[S oracle.Number](
	ctx context.Context, p oracle.ProblemOf[S], products float64, bits int, c *formats.Dense[S],
) error {
	x := claim[S]{problem: p, c: c, sample: sampleSize(products, p.A.NNZ(), p.A.Rows, 1)}
	v, err := x.verify(ctx, bits)
	if err == nil && !v.OK {
		err = errors.New(v.worst)
	}
	return err
}

// run measures, prints, saves and compares.
func (j *benchJob) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	s, err := j.sweep(ctx, p)
	if err != nil {
		return err
	}
	if j.compare != "" {
		if j.old, err = readBench(j.compare); err != nil {
			return err
		}
	}
	inputs := slices.Concat([]string{j.compare, j.spec}, j.load)
	for _, of := range s.Products {
		inputs = append(inputs, of.Matrices...)
	}
	if err := j.begin(inputs...); err != nil {
		return err
	}
	drawn, err := newOutput(j.plot, j.unfinished, j.force, append(inputs, j.save)...)
	if err == nil {
		err = checkEnding(j.plot, ".svg")
	}
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	var r *benchmark.Report
	var failed error
	if len(j.load) > 0 {
		if r, err = j.loaded(); err != nil {
			return err
		}
	} else if r, failed = j.measured(ctx, s, p); len(r.Results) == 0 && failed != nil {
		return failed
	}
	if err := j.print(stdout, r); err != nil {
		return errors.Join(failed, err)
	}
	if err := j.saved.write(r.Write); err != nil {
		return errors.Join(failed, fmt.Errorf("--save: %w", err))
	}
	if err := drawn.write(r.Draw); err != nil {
		return errors.Join(failed, fmt.Errorf("--plot: %w", err))
	}
	if failed != nil {
		return failed
	}
	return j.judge(stdout, p, r)
}

// judge compares with the old report, and returns an error for what is wrong or slower. Where results go to a
// program, the comparison goes to stderr.
func (j *benchJob) judge(stdout io.Writer, p *progress, r *benchmark.Report) error {
	slower := 0
	if j.old != nil {
		c := benchmark.Compare(j.old, r)
		w := stdout
		if j.report != "table" {
			w = p.w
		} else {
			fmt.Fprintln(w)
		}
		if len(c.Changes)+len(c.Lost) == 0 {
			return fmt.Errorf("--compare %s: it has none of these cases", j.compare)
		}
		if err := c.Print(w, j.tolerance/100); err != nil {
			return err
		}
		slower = c.Regressions(j.tolerance / 100)
	}
	if err := right(r); err != nil {
		return err
	}
	if slower > 0 {
		return fmt.Errorf(
			"%w by more than %s %%, or lost: %d cases", errSlower, strconv.FormatFloat(j.tolerance, 'g', -1, 64),
			slower,
		)
	}
	return nil
}

func readBench(name string) (*benchmark.Report, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return benchmark.ReadReport(f, name)
}
