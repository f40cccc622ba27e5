// spmmrun sample: products of two dense matrices at the entries of a sparse one.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// sampling has what the command line asks for.
type sampling struct {
	matrix, backend, precision, mode, p string
	k                                   int // elements of a row of X and Y
	kGiven                              bool
	x, y                                string // files; "": random
	scale                               bool
	seed                                uint64
	out, verify, report                 string
	warmup, repeats                     int
	force                               bool
	unfinished                          *temporaries
}

func newSample(unfinished *temporaries) *cobra.Command {
	q := &sampling{unfinished: unfinished, backend: "auto"}
	c := &cobra.Command{
		Use:   "sample [flags] MATRIX",
		Short: "Multiply two dense matrices at the entries of a sparse one (SDDMM), and check the answer",
		Long: `sample computes S = pattern ⊙ (X·Yᵀ), where the pattern is that of MATRIX, which is as for spmmrun: for each
entry (i, j) the dot product of row i of X and row j of Y. With --scale each is multiplied by the entry's value. X and Y
are random unless --x and --y name files.

--out FILE.mtx is the matrix with the results as its values, FILE.npy the results alone, by rows.

Exit codes: 0 right, 1 wrong answer, 2 usage or bad input, 3 backend unavailable or unable.`,
		Example: `  spmmrun sample -n 32 gen:rmat,scale=17,degree=16
  spmmrun sample --x X.npy --y Y.npy --scale -o S.mtx graph.mtx`,
		Args: oneMatrix,
		RunE: func(c *cobra.Command, args []string) error {
			q.matrix, q.kGiven = args[0], c.Flags().Changed("cols")
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			return q.run(c.Context(), c.OutOrStdout(), p)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	addBackend(c, deviceName{&q.backend}, "device to run on; auto takes the fastest")
	addPrecision(c, &q.precision)
	addChoice(c, &q.mode, "mode", "how sums are formed: as suits the device, or with the same bits on all", "fast", reproducible)
	addChoice(c, &q.p, "p", "bits that reproducible mode keeps of a row's largest element; auto takes as many as lose nothing, or 47", precisions...)
	addCount(c, &q.k, "cols", "n", 128, 1, "columns of X and Y")
	f.StringVar(&q.x, "x", "", "read X from `FILE.npy`")
	f.StringVar(&q.y, "y", "", "read Y from `FILE.npy`")
	f.BoolVar(&q.scale, "scale", false, "multiply each result by the entry's value")
	addSeed(c, &q.seed, "X and Y, and of ")
	f.StringVarP(&q.out, "out", "o", "", "write S to `FILE.mtx` or FILE.npy")
	addChoice(c, &q.verify, "verify", "how much of S to check", "sample", "full", "none")
	addCount(c, &q.warmup, "warmup", "", 3, 0, "runs before those that are timed")
	addCount(c, &q.repeats, "repeats", "", 20, 1, "runs that are timed")
	addForce(c, &q.force)
	addReport(c, &q.report)
	return c
}

// sampleReport is the report on a sampled product.
type sampleReport struct {
	runReport
	Matrix    matrixReport      `json:"matrix"`
	N         int               `json:"n"`
	Backend   string            `json:"backend"`
	Device    string            `json:"device"`
	Precision string            `json:"precision"`
	Mode      string            `json:"mode"`
	P         *reproducedReport `json:"reproduced,omitempty"`
	Time      timeReport        `json:"us"`
	Clock     string            `json:"clock"`
	GFLOPS    float64           `json:"gflops"`
	Verify    *verifyReport     `json:"verify,omitempty"`
}

func (q *sampling) run(ctx context.Context, stdout io.Writer, p *progress) error {
	if q.out != "" && !strings.HasSuffix(q.out, ".npy") && !strings.HasSuffix(q.out, ".mtx") {
		return fmt.Errorf("--out %s: want a file whose name ends in .mtx or .npy", q.out)
	}
	precision := typeOf(q.precision)
	if q.mode == reproducible && precision == dtype.F64 {
		return errors.New("--mode reproducible: takes f16, bf16 and f32, not f64")
	}
	dev, err := spmm.OpenFor(ctx, q.backend, precision)
	if err != nil {
		return err
	}
	defer dev.Close()
	out, err := newOutput(q.out, q.unfinished, q.force, q.matrix, q.x, q.y)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	read, err := openMatrix(ctx, q.matrix, q.seed, precision, p)
	if err != nil {
		return err
	}
	switch precision {
	case dtype.F16:
		return sampleAs[half.F16, float32](ctx, q, dev, read, out, stdout, p)
	case dtype.BF16:
		return sampleAs[half.BF16, float32](ctx, q, dev, read, out, stdout, p)
	case dtype.F64:
		return sampleAs[float64, float64](ctx, q, dev, read, out, stdout, p)
	}
	return sampleAs[float32, float32](ctx, q, dev, read, out, stdout, p)
}

// sampleAs samples with X and Y of type T, and results of type S.
func sampleAs[T formats.Value, S oracle.Number](ctx context.Context, q *sampling, dev *spmm.Device,
	read formats.Encoded, to *output, stdout io.Writer, p *progress) error {
	a := formats.Convert[S](byRows(read).Sparse())
	s := &sampledProduct[S]{a: a, scaled: q.scale, precision: typeOf(q.precision)}
	var err error
	if s.x, err = sampleOperand[T, S](ctx, q, "X", q.x, a.Rows, q.seed); err != nil {
		return err
	}
	if s.y, err = sampleOperand[T, S](ctx, q, "Y", q.y, a.Cols, q.seed+1); err != nil {
		return err
	}
	if s.x.Cols != s.y.Cols {
		return fmt.Errorf("X has %d columns and Y has %d", s.x.Cols, s.y.Cols)
	}
	r := &sampleReport{runReport: newRunReport(time.Now()), N: s.x.Cols, Backend: dev.Info().Backend,
		Device: dev.Info().Name, Precision: q.precision, Mode: q.mode,
		Matrix: matrixReport{Name: q.matrix, Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ()}}
	if err := sampleOn[T](ctx, q, dev, s, r, p); err != nil {
		return err
	}
	if q.verify != "none" {
		p.step("verifying", -1)
		if r.Verify, err = s.verify(ctx, q.verify, r.P); err != nil {
			return err
		}
	}
	p.end()
	if err := r.print(stdout, q.report); err != nil {
		return err
	}
	if v := r.Verify; v != nil && !v.OK {
		return fmt.Errorf("%w: %s", errWrong, v.worst)
	}
	return to.write(func(w io.Writer) error {
		if strings.HasSuffix(q.out, ".npy") {
			return npy.Write(w, &formats.Dense[S]{Rows: 1, Cols: len(s.s), LD: len(s.s), Data: s.s})
		}
		return mtx.Write(w, &formats.CSR[S]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: s.s})
	})
}

// sampleOperand reads or makes X or Y, and rounds its numbers to the operands' type.
func sampleOperand[T formats.Value, S oracle.Number](ctx context.Context, q *sampling, name, file string, rows int,
	seed uint64) (*formats.Dense[S], error) {
	if file == "" {
		return convertDense[S](convertDense[T](gen.Dense(rows, q.k, seed, gen.Values{}))), nil
	}
	d, err := loadDense[S](ctx, file)
	if err != nil {
		return nil, err
	}
	if d.Rows != rows || q.kGiven && d.Cols != q.k {
		n := "n"
		if q.kGiven {
			n = strconv.Itoa(q.k)
		}
		return nil, fmt.Errorf("%s: %s is %d×%d: want %d×%s for %s", file, name, d.Rows, d.Cols, rows, n, q.matrix)
	}
	return convertDense[S](convertDense[T](d)), nil
}

// sampleOn samples on a device, some times, and puts results into s and times into r.
func sampleOn[T formats.Value, S oracle.Number](ctx context.Context, q *sampling, dev *spmm.Device,
	s *sampledProduct[S], r *sampleReport, p *progress) error {
	o := spmm.Options{Precision: s.precision, Format: "csr"}
	if q.mode == reproducible {
		o.Mode, o.P = spmm.Reproducible, spmm.AutoP
		if n, err := strconv.Atoi(q.p); err == nil {
			o.P = n
		}
	}
	p.step("preparing", -1)
	plan, err := spmm.Prepare(ctx, dev, s.a, o)
	if err != nil {
		return err
	}
	defer plan.Close()
	x, err := uploaded(ctx, dev, convertDense[T](s.x))
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := uploaded(ctx, dev, convertDense[T](s.y))
	if err != nil {
		return err
	}
	defer y.Close()
	values := &formats.Dense[S]{Rows: 1, Cols: len(s.a.Val), LD: len(s.a.Val), Data: s.a.Val}
	to, err := uploaded(ctx, dev, values)
	if err != nil {
		return err
	}
	defer to.Close()
	var e spmm.SampleEpilogue
	if q.scale {
		scale, err := uploaded(ctx, dev, values)
		if err != nil {
			return err
		}
		defer scale.Close()
		e.Scale = scale
	}
	ts, err := timeRuns(&job{warmup: q.warmup, repeats: q.repeats}, p, func(times int) (all spmm.Timing, err error) {
		for range times {
			t, err := plan.Sample(ctx, x, y, to, e)
			if err != nil {
				return all, err
			}
			all.Device, all.Host = all.Device+t.Device, all.Host+t.Host
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	out := formats.NewDense[S](1, len(s.a.Val))
	if err := to.Download(ctx, out); err != nil {
		return err
	}
	s.s = out.Data
	if bits, lossless := plan.Reproduced(); bits != 0 {
		r.P = &reproducedReport{P: bits, CorrectlyRounded: lossless && !q.scale}
	}
	r.Time = timeReport{Min: us(ts.quantile(0)), Median: us(ts.quantile(0.5)), P90: us(ts.quantile(0.9))}
	if r.Clock = "device"; ts.host {
		r.Clock = "host"
	}
	r.GFLOPS = 2 * float64(len(s.s)) * float64(r.N) / max(r.Time.Median, 1e-3) / 1e3
	return nil
}

// uploaded returns a matrix on the device.
func uploaded[T formats.Value](ctx context.Context, dev *spmm.Device, d *formats.Dense[T]) (*spmm.Tensor[T], error) {
	t, err := spmm.NewTensor[T](dev, d.Rows, d.Cols, false)
	if err != nil {
		return nil, err
	}
	return t, t.Upload(ctx, d)
}

// print writes the report as a table or as JSON.
func (r *sampleReport) print(w io.Writer, form string) error {
	if form == "json" {
		return writeJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("matrix", "%s: %d×%d, %d entries", r.Matrix.title(), r.Matrix.Rows, r.Matrix.Cols, r.Matrix.NNZ)
	row("X, Y", "%d×%d, %d×%d, %s", r.Matrix.Rows, r.N, r.Matrix.Cols, r.N, r.Precision)
	row("device", "%s: %s", r.Backend, printable.String(r.Device))
	if r.P != nil {
		row("mode", "%s, %v", r.Mode, r.P)
	}
	row("time", "%s median (min %s, p90 %s, %s clock)", choose.Micros(r.Time.Median), choose.Micros(r.Time.Min),
		choose.Micros(r.Time.P90), r.Clock)
	row("rate", "%.3g GFLOP/s", r.GFLOPS)
	switch v := r.Verify; {
	case v == nil:
		row("verified", "nothing")
	case v.Bits:
		row("verified", "every bit of %d of %d results: %s", v.Checked, r.Matrix.NNZ, verdict(v.OK))
	default:
		row("verified", "%d of %d results, worst error %.2g of its bound: %s", v.Checked, r.Matrix.NNZ, v.MaxRatio,
			verdict(v.OK))
	}
	return t.Flush()
}
