// spmmrun bench chain, values, sample, copies and fit.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/benchmark"
)

// benchTurns are the flags that say how well times are to be known.
type benchTurns struct {
	interval float64
	limit    time.Duration
}

func (t *benchTurns) add(c *cobra.Command) {
	f := c.Flags()
	f.Float64Var(&t.interval, "interval", 2, "percent that the median may be off, at 95 % confidence")
	f.DurationVar(&t.limit, "limit", 3*time.Second, "time for each that takes part, known well enough or not")
}

func (t *benchTurns) turns() (benchmark.Turns, error) {
	if !(t.interval > 0 && t.interval <= 100) {
		return benchmark.Turns{}, fmt.Errorf("--interval %g: want percent above 0, up to 100", t.interval)
	}
	if t.limit <= 0 {
		return benchmark.Turns{}, fmt.Errorf("--limit %v: want a time above 0, as in 3s", t.limit)
	}
	return benchmark.Turns{Interval: t.interval / 100, Limit: t.limit}, nil
}

// benchOutput is where a report goes.
type benchOutput struct {
	report, save string
	force        bool
	unfinished   *temporaries
	saved        *output
}

func addBenchReport(c *cobra.Command, report *string) {
	addChoice(c, report, "report", "how to print results", "table", "md", "csv", "json")
}

func addSave(c *cobra.Command, save *string) {
	c.Flags().StringVarP(save, "save", "o", "", "write the report to `FILE.json`, for --compare and --load")
}

// begin looks whether the report can be saved.
func (o *benchOutput) begin(inputs ...string) (err error) {
	if o.saved, err = newOutput(o.save, o.unfinished, o.force, inputs...); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

func (o *benchOutput) print(w io.Writer, r *benchmark.Report) error {
	switch o.report {
	case "json":
		return r.Write(w)
	case "csv":
		return r.CSV(w)
	case "md":
		return r.Markdown(w)
	}
	return r.Print(w)
}

// benchTask has what the command line asks for of chains, values and copies.
type benchTask struct {
	backends string
	matrices []string
	peers    []string
	most     size
	seed     uint64
	measure  func(context.Context, *benchmark.Task) (*benchmark.Report, error)
	benchTurns
	benchOutput
}

// command has the flags that all of these have.
func (j *benchTask) command(unfinished *temporaries, c *cobra.Command) *cobra.Command {
	j.unfinished = unfinished
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&j.backends, "backend", "auto", "devices, a list as in cpu,cuda:1; all is one of each backend")
	j.benchTurns.add(c)
	addBenchReport(c, &j.report)
	addSave(c, &j.save)
	addForce(c, &j.force)
	c.RunE = func(c *cobra.Command, args []string) error {
		j.matrices = args
		return j.run(c.Context(), c.OutOrStdout(), newProgress(c.ErrOrStderr()))
	}
	return c
}

const taskCodes = `

Exit codes: 0 all is right, 1 wrong answers or nothing that can be measured, 2 usage or bad input, 3 a device is not
there.`

func newBenchChain(unfinished *temporaries) *cobra.Command {
	j := &benchTask{measure: benchmark.Chains}
	return j.command(unfinished, &cobra.Command{
		Use:   "chain [flags] [MATRIX...]",
		Short: "Measure what products cost the host: chains of them, one by one and as a sequence",
		Long: `chain multiplies by each square MATRIX 16 times, each time what the time before left, by 32 columns: call
by call, as a sequence, and many chains in one list, which is the device's time alone and by its clock. The other
times are by the host's; heap objects are those that a chain makes. All must leave the same bits.` + taskCodes,
		Example: `  spmmrun bench chain --backend cuda,vulkan dwt_992.mtx.gz`,
	})
}

func newBenchValues(unfinished *temporaries) *cobra.Command {
	j := &benchTask{measure: benchmark.Values}
	return j.command(unfinished, &cobra.Command{
		Use:   "values [flags]",
		Short: "Measure new values for a prepared matrix, in each format, and a copy",
		Long: `values brings new values to a matrix of 4096×4096 that is packed in f16, in each format: of f16 and f32
from the device, and of the transposed matrix. Compare them with the copy on the device, which reads and writes as
many bytes as there are values of f16.` + taskCodes,
		Example: `  spmmrun bench values --backend cuda`,
		Args:    cobra.NoArgs,
	})
}

func newBenchSample(unfinished *temporaries) *cobra.Command {
	j := &benchTask{measure: benchmark.Samples}
	c := j.command(unfinished, &cobra.Command{
		Use:   "sample [flags] [MATRIX...]",
		Short: "Measure sampled products (SDDMM) at the entries of matrices, and the softmax of their rows",
		Long: `sample computes the dot products of rows of two dense matrices of 32 and 128 columns at the entries of each
MATRIX: in f32 and f16, in f32 with the softmax of each row, and in reproducible mode. The column pack has the time of
the first call, which brings the pattern to the device. --peer measures another program too, as for spmmrun bench:
cuda.cu of bench/peers for cuSPARSE, rode and sputnik of published.sh.` + taskCodes,
		Example: `  spmmrun bench sample --backend cuda gen:rmat,scale=17,degree=16
  spmmrun bench sample --backend cuda --peer bin/peers/cuda a.mtx`,
	})
	addPeers(c, &j.peers)
	return c
}

func newBenchCopies(unfinished *temporaries) *cobra.Command {
	j := &benchTask{measure: benchmark.Copies}
	c := j.command(unfinished, &cobra.Command{
		Use:   "copies [flags]",
		Short: "Measure copies between the host and a device, and the driver's own",
		Long: `copies uploads and downloads 64 KiB and more: of page-locked memory, of lines with padding in such, and of
ordinary memory. On CUDA plain is the driver's copy of page-locked memory, without the library. Of several devices, as
in cuda:all, it measures the link: copies from the first to the last.` + taskCodes,
		Example: `  spmmrun bench copies --backend cuda --most 1G
  spmmrun bench copies --backend cuda:all`,
		Args: cobra.NoArgs,
	})
	j.most = 1 << 30
	c.Flags().Var(&j.most, "most", "bytes of the largest copy, as in 1G")
	return c
}

func (j *benchTask) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	turns, err := j.turns()
	if err != nil {
		return err
	}
	t := &benchmark.Task{Matrices: j.matrices, Peers: j.peers, Most: int64(j.most), Turns: turns}
	if len(t.Matrices) == 0 {
		t.Matrices = []string{"gen:stencil,side=10"}
	}
	names := strings.Split(j.backends, ",")
	if j.backends == "all" {
		names = allBackends(ctx)
	}
	if t.Backends, err = list("--backend "+j.backends, names, placeOf); err != nil {
		return err
	}
	if err := j.begin(j.matrices...); err != nil {
		return err
	}
	t.Open = func(ctx context.Context, name string) (*formats.CSR[float32], error) {
		return openBench(ctx, name, j.seed, p)
	}
	run := func(at func(done, total int64), _ func(benchmark.Report)) (*benchmark.Report, error) {
		t.Progress = at
		return j.measure(ctx, t)
	}
	r, failed := measured(ctx, p, -1, run)
	if len(r.Results) == 0 && failed != nil {
		return failed
	}
	if err := j.print(stdout, r); err != nil {
		return errors.Join(failed, err)
	}
	if err := j.saved.write(r.Write); err != nil {
		return errors.Join(failed, fmt.Errorf("--save: %w", err))
	}
	if failed != nil {
		return failed
	}
	return right(r)
}

// right returns an error for a report of wrong answers, or of none.
func right(r *benchmark.Report) error {
	for i := range r.Results {
		if x := &r.Results[i]; x.Wrong {
			return fmt.Errorf("%w: %v", errWrong, x.Case)
		}
	}
	if !slices.ContainsFunc(r.Results, func(x benchmark.Result) bool { return x.Measured() }) {
		return fmt.Errorf("%v: %s", r.Results[0].Case, r.Results[0].Error)
	}
	return nil
}

func oneReport(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one report, not %d; see %s --help", len(args), c.CommandPath())
	}
	return nil
}

func newBenchFit(unfinished *temporaries) *cobra.Command {
	var install, force bool
	var to string
	c := &cobra.Command{
		Use:   "fit [flags] REPORT.json",
		Short: "Make a device model of what was measured, by which formats are chosen",
		Long: `fit reads a report that bench --spec bench/specs/choice.json has saved, and prints the model of its device:
for each kernel the costs that predict its times best. On stderr it tells by what factor predictions were off
before, and are now.

Exit codes: 0 there is a model, 2 usage, or a report that no model can be made of.`,
		Example: `  spmmrun bench --backend cuda --spec bench/specs/choice.json --save choice.json
  spmmrun bench fit --install choice.json`,
		Args: oneReport,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := readBench(args[0])
			if err != nil {
				return err
			}
			out, err := newOutput(to, unfinished, force, args...)
			if err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			m, err := benchmark.Fit(r, c.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if install {
				name, err := benchmark.Install(m, r)
				if err == nil {
					_, err = fmt.Fprintln(c.ErrOrStderr(), "written to", name)
				}
				return err
			}
			write := func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetIndent("", "  ")
				return e.Encode(m)
			}
			if to == "" {
				return write(c.OutOrStdout())
			}
			return out.write(write)
		},
	}
	c.Flags().BoolVar(&install, "install", false, "put the model into the cache folder, where the device finds it")
	addForce(c, &force)
	c.Flags().StringVarP(&to, "output", "o", "", "write the model to `FILE.json` instead of printing it")
	return c
}
