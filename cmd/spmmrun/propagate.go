// spmmrun propagate

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/internal/printable"
)

// propagation is what the command line asks for.
type propagation struct {
	matrix, backend, format, mode, p string
	exchange                         string
	pGiven, colsGiven                bool
	cols, steps, every               int
	restart                          float32
	normalise, start                 string
	xFile, out, checkpoint, report   string
	seed                             uint64
	force                            bool
	unfinished                       *temporaries

	began time.Time
}

// normalisations are by the words that --normalise takes, the default first.
var normalisations = []string{"symmetric", "rows", "none"}

var normalisationOf = map[string]dist.Normalisation{"symmetric": dist.Symmetric, "rows": dist.ByRows, "none": dist.AsIs}

func newPropagate(unfinished *temporaries) *cobra.Command {
	g := &propagation{unfinished: unfinished, backend: "auto", restart: 0.1}
	c := &cobra.Command{
		Use:   "propagate [flags] MATRIX",
		Short: "Propagate vectors along the edges of a graph: personalised PageRank, APPNP",
		Long: `propagate computes --steps times

  X = (1-a)·Â·X + a·X0

for the adjacency matrix Â of a graph, normalised, and a matrix X0 that X begins with: personalised PageRank for
many sources at once, or the propagation of the graph network APPNP. It runs on one device, on several of this
machine, or on the ranks that mpirun or srun start, each with a share of the rows; X has the same bits on any
number of them: in --mode reproducible always, in --mode fast on devices of one kind. X stays on the devices;
ranks exchange only the rows of it that their shares meet, GPUs by NCCL where there is a libnccl.so.2
(SPMM_NCCL_LIBRARY names one).

With --checkpoint the state is kept in a folder every few steps and when all are done. The same command
goes on from there, on any number of ranks, and ends with the same bits; rank 0 reads and writes it.`,
		Example: `  spmmrun propagate --cols 64 --steps 10 gen:rmat,scale=16,values=ones
  spmmrun propagate --backend cuda:all --cols 64 --steps 10 gen:rmat,scale=22
  mpirun -n 4 spmmrun propagate --normalise rows --checkpoint state -o ranks.npy graph.mtx.gz`,
		Args: oneMatrix,
		RunE: func(c *cobra.Command, args []string) error {
			g.matrix, g.pGiven, g.colsGiven = args[0], c.Flags().Changed("p"), c.Flags().Changed("cols")
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			if isList(g.backend) {
				return withGroup(c.Context(), g.backend, func(ctx context.Context, r *ranks) error {
					mine := *g // each has the number of columns of its own
					if r.Rank() != 0 {
						return mine.run(ctx, io.Discard, newProgress(io.Discard), r)
					}
					return mine.run(ctx, c.OutOrStdout(), p, r)
				})
			}
			return withRanks(c.ErrOrStderr(), func(r *ranks) error { return g.run(c.Context(), c.OutOrStdout(), p, r) })
		},
	}
	f := c.Flags()
	f.SortFlags = false
	addBackend(c, deviceNames{&g.backend}, "device to run on; auto takes the fastest, and of several alike each rank of a machine another; cuda:all or a list like cuda:0,1 is several for one process")
	addChoice(c, &g.format, "format", "sparse format on the device; auto is csr in --mode fast, for the bits not to depend on the ranks", append([]string{"auto"}, spmm.Formats()...)...)
	addChoice(c, &g.mode, "mode", "how sums are formed: as suits the device, or with the same bits on all", "fast", reproducible)
	addChoice(c, &g.p, "p", "bits that reproducible mode keeps of a row's or column's largest element; auto takes as many as lose nothing, or 47", precisions...)
	addCount(c, &g.cols, "cols", "n", 64, 1, "columns of X")
	addCount(c, &g.steps, "steps", "", 10, 1, "steps")
	addNumber(c, &g.restart, "restart", 0.1, "a, the share of X0 in each step, from 0 to 1")
	addChoice(c, &g.normalise, "normalise", "D^-1/2·(A+I)·D^-1/2, or rows that add up to 1, or A as it is; by magnitudes", normalisations...)
	addChoice(c, &g.start, "start", "X0: a vertex at random for each column, which has a 1 there alone, or random numbers", "vertices", "random")
	f.StringVar(&g.xFile, "x", "", "read X0 from `FILE.npy`")
	addSeed(c, &g.seed, "X0, and of ")
	f.StringVarP(&g.out, "out", "o", "", "write X to `FILE.npy`")
	f.StringVar(&g.checkpoint, "checkpoint", "", "keep the state in folder `DIR`, and go on from what is there")
	addChoice(c, &g.exchange, "exchange", exchangeHelp, exchanges...)
	addCount(c, &g.every, "every", "", 10, 1, "steps between checkpoints")
	addForce(c, &g.force)
	addReport(c, &g.report)
	return c
}

// propagationReport is the result as --report json prints it.
type propagationReport struct {
	Run       runReport    `json:"run"`
	Matrix    matrixReport `json:"matrix"` // with the diagonal that --normalise symmetric adds
	Backend   string       `json:"backend"`
	Device    string       `json:"device"`
	Driver    string       `json:"driver"`
	Format    string       `json:"format"`
	Variant   string       `json:"variant"`
	Mode      string       `json:"mode"`
	P         int          `json:"p,omitempty"` // of the last step, in reproducible mode
	N         int          `json:"n"`
	Steps     int          `json:"steps"`
	Resumed   int          `json:"resumed_from"` // the step of the checkpoint that it went on from, 0 if there was none
	Restart   float32      `json:"restart"`
	Normalise string       `json:"normalise"`
	Start     string       `json:"start"`
	Seed      uint64       `json:"seed"`
	LoadS     float64      `json:"load_s"`
	Time      timeReport   `json:"time_us"` // of a step, from when it begins to when the last rank is done
	Change    float64      `json:"change"`  // the largest of an element in the last step
	Ranks     *ranksReport `json:"ranks,omitempty"`
	Output    string       `json:"output_sha256"`
}

// check refuses flags that are wrong, and returns the options of the product.
func (g *propagation) check() (spmm.Options, error) {
	if g.restart < 0 || g.restart > 1 {
		return spmm.Options{}, fmt.Errorf("--restart %g: want a number from 0 to 1", g.restart)
	}
	j := &job{mode: g.mode, p: g.p, pGiven: g.pGiven}
	o, err := j.sums(spmm.Options{Format: g.format, Precision: dtype.F32, Cols: g.cols})
	if err == nil {
		err = o.Validate()
	}
	return o, err
}

// startName is where X0 comes from.
func (g *propagation) startName() string {
	if g.xFile != "" {
		return g.xFile
	}
	return g.start
}

// state is a rank's part of a propagation.
type state struct {
	plan  *dist.Plan
	share dist.Share[float32]
	dev   *spmm.Device

	x, y, x0 *spmm.Tensor[float32]
	host     *formats.Dense[float32] // X0, until it is on the device; then what was downloaded last
	step     int
}

// place brings X0 to the device, and x, which is X0 if it is nil.
func (s *state) place(ctx context.Context, x *formats.Dense[float32]) error {
	var err error
	if s.x0, err = tensorOf(ctx, s.dev, s.host); err != nil {
		return err
	}
	if x == nil {
		x = s.host
	}
	if s.x, err = tensorOf(ctx, s.dev, x); err != nil {
		return err
	}
	s.y, err = spmm.NewTensor[float32](s.dev, s.host.Rows, s.host.Cols, false)
	return err
}

// download returns this rank's rows of a tensor, in memory that the next call uses too.
func (s *state) download(ctx context.Context, t *spmm.Tensor[float32]) (*formats.Dense[float32], error) {
	return s.host, t.Download(ctx, s.host)
}

// close frees what is on the device.
func (s *state) close() error {
	var errs []error
	for _, t := range []*spmm.Tensor[float32]{s.x, s.y, s.x0} {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(append(errs, s.plan.Close())...)
}

// run does the job as one of the ranks, of which there may be one.
func (g *propagation) run(ctx context.Context, stdout io.Writer, p *progress, r *ranks) error {
	g.began = time.Now()
	o, err := g.check()
	if err := r.agree(err); err != nil {
		return err
	}
	out, err := r.output(func() (*output, error) { return newOutput(g.out, g.unfinished, g.force, g.matrix, g.xFile) })
	if err != nil {
		return err
	}
	dev, err := r.open(ctx, g.backend)
	if err := r.agree(err); err != nil {
		return err
	}
	defer dev.Close()
	via, err := r.via(ctx, dev, g.exchange, p)
	if err != nil {
		return err
	}
	defer via.Close()
	s, err := g.begin(ctx, r, dev, via, o, p)
	if err != nil {
		return err
	}
	defer s.close()
	report := propagationReport{
		Run: newRunReport(g.began), Backend: dev.Info().Backend, Device: dev.Info().Name, Driver: dev.Info().Driver, Mode: g.mode,
		N: g.cols, Steps: g.steps, Restart: g.restart, Normalise: g.normalise, Start: g.startName(), Seed: g.seed, LoadS: time.Since(g.began).Seconds(),
	}
	var saved *checkpoints
	var x *formats.Dense[float32]
	if g.checkpoint != "" {
		if saved, x, err = g.resume(r, s); err != nil {
			return err
		}
		report.Resumed = s.step
	}
	if err := r.agree(s.place(ctx, x)); err != nil {
		return err
	}
	ts, last, err := g.propagate(ctx, r, s, saved, p)
	if err != nil {
		return err
	}
	if err := report.add(ctx, g.matrix, r, s, ts, last); err != nil {
		return err
	}
	p.step("writing", -1)
	if report.Output, err = s.write(ctx, r, out); err != nil {
		return r.agree(err)
	}
	p.end()
	if r.Rank() == 0 {
		err = report.print(stdout, g.report)
	}
	return r.agree(err)
}

// add adds what is known after the steps: what all ranks multiplied with, and how long it took.
func (p *propagationReport) add(ctx context.Context, matrix string, r *ranks, s *state, ts timings, last dist.Timing) (err error) {
	all := []int64{s.share.A.NNZ(), 0}
	if len(ts.each) > 0 {
		change, err := s.changed(ctx)
		if err := r.agree(err); err != nil {
			return err
		}
		all[1] = int64(math.Float64bits(change))
		p.Time = timeReport{Min: us(ts.quantile(0)), Median: us(ts.quantile(0.5)), P90: us(ts.quantile(0.9))}
	}
	if err := r.AllReduce(all[:1], comm.Sum); err != nil {
		return err
	}
	if err := r.AllReduce(all[1:], comm.Max); err != nil {
		return err
	}
	info := s.plan.Info()
	p.Matrix = matrixReport{Name: matrix, Rows: s.share.A.Cols, Cols: s.share.A.Cols, NNZ: all[0]}
	p.Change, p.Format, p.Variant = math.Float64frombits(uint64(all[1])), info.Format, info.Variant
	p.P, _ = s.plan.Reproduced()
	if r.Size() > 1 {
		p.Ranks, err = newRanksReport(r, s.dev.Info(), info, last)
	}
	return err
}

// begin loads and normalises the graph, plans, and makes X0.
func (g *propagation) begin(ctx context.Context, r *ranks, dev *spmm.Device, via comm.DeviceComm, o spmm.Options, p *progress) (*state, error) {
	read, err := r.load(ctx, g.matrix, g.seed, p)
	if err != nil {
		return nil, err
	}
	p.step("sharing out the graph", -1)
	s := &state{dev: dev}
	if s.share, err = shareOf[float32](ctx, r, dev, read, false, g.cols); err != nil {
		return nil, err
	}
	s.share, err = dist.Normalise(r, s.share, normalisationOf[g.normalise])
	if err := r.agree(named(g.matrix, err)); err != nil {
		return nil, err
	}
	x0, err := g.readX0(ctx, r, s.share.A.Cols)
	if err != nil {
		return nil, err
	}
	a := s.share.A
	p.step("encoding", -1)
	s.plan, err = dist.Prepare(ctx, r, dev, s.share, dist.Options{Multiply: o, Via: via})
	if err := r.agree(err); err != nil {
		return nil, err
	}
	x := 4 * float64(a.Rows) * float64(g.cols)
	if err := r.fits(g.matrix, dev, s.plan, g.cols, 3*x, 2*x); err != nil { // X, X0 and the next X; X and what it was
		return nil, errors.Join(err, s.plan.Close())
	}
	if g.xFile != "" {
		s.host, err = dist.Scatter(r, s.plan.Shares(), x0, g.cols)
	} else {
		lo, hi := s.plan.Shares().Range(r.Rank())
		s.host = g.makeX0(lo, hi, a.Cols)
	}
	if err != nil {
		return nil, errors.Join(err, s.plan.Close())
	}
	return s, nil
}

// named puts a matrix's name before an error.
func named(matrix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", matrix, err)
}

// readX0 reads X0 on rank 0, if it comes from a file, and settles how many columns there are.
func (g *propagation) readX0(ctx context.Context, r *ranks, rows int) (*formats.Dense[float32], error) {
	if g.xFile == "" {
		return nil, nil
	}
	var x0 *formats.Dense[float32]
	var err error
	cols := []int64{0}
	if r.Rank() == 0 {
		if x0, err = loadDense[float32](ctx, g.xFile); err == nil {
			if cols[0] = int64(x0.Cols); x0.Rows != rows || x0.Cols == 0 || g.colsGiven && x0.Cols != g.cols {
				want := "n"
				if g.colsGiven {
					want = fmt.Sprint(g.cols)
				}
				err = fmt.Errorf("%s: X0 is %d×%d, and the graph has %d vertices: want X0 %d×%s", g.xFile, x0.Rows, x0.Cols, rows, rows, want)
			}
		}
		if err == nil && x0.ColMajor {
			x0 = x0.Layout(false, 0)
		}
	}
	if err := r.agree(err); err != nil {
		return nil, err
	}
	err = r.AllReduce(cols, comm.Max)
	g.cols = int(cols[0])
	return x0, err
}

// makeX0 makes rows of X0 for a graph of so many vertices.
func (g *propagation) makeX0(lo, hi, vertices int) *formats.Dense[float32] {
	if g.start == "random" {
		return gen.DenseRows(lo, hi, g.cols, g.seed, gen.Values{})
	}
	x := formats.NewDense[float32](hi-lo, g.cols)
	random := rand.New(rand.NewPCG(g.seed, 0))
	for k := range g.cols {
		if vertices == 0 {
			break
		}
		if at := random.IntN(vertices); at >= lo && at < hi {
			x.Set(at-lo, k, 1)
		}
	}
	return x
}

// propagate does the steps that are left.
func (g *propagation) propagate(ctx context.Context, r *ranks, s *state, saved *checkpoints, p *progress) (timings, dist.Timing, error) {
	ts := timings{batch: 1, host: true}
	var last dist.Timing
	var took []int64
	p.step("propagating", int64(g.steps-s.step))
	for s.step < g.steps {
		t, err := dist.Step(ctx, s.plan, float64(g.restart), s.x, s.x0, s.y)
		if err != nil {
			return ts, last, err
		}
		s.x, s.y = s.y, s.x
		s.step++
		took, last = append(took, int64(t.Host)), t
		p.add(1)
		if saved != nil && (s.step%g.every == 0 || s.step == g.steps) {
			if err := saved.save(ctx, r, s); err != nil {
				return ts, last, err
			}
		}
	}
	each, err := slowest(r, took)
	ts.each = each
	return ts, last, err
}

// changed is the largest difference of elements between the last two steps; what is not a number counts as the largest there
// is.
func (s *state) changed(ctx context.Context) (float64, error) {
	before := formats.NewDense[float32](s.host.Rows, s.host.Cols)
	if err := s.y.Download(ctx, before); err != nil { // y is what x was
		return 0, err
	}
	x, err := s.download(ctx, s.x)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for i, v := range x.Data {
		if d := math.Abs(float64(v) - float64(before.Data[i])); !(d <= most) {
			most = finite(d)
		}
	}
	return most, nil
}

// write brings X to rank 0, which writes it to out if that is a file, and returns its SHA-256.
func (s *state) write(ctx context.Context, r *ranks, out *output) (string, error) {
	x, err := s.download(ctx, s.x)
	if err := r.agree(err); err != nil {
		return "", err
	}
	return collectTo(r, s.plan.Shares(), x, out)
}

// writeArray writes an array as .npy, whose rows collect gives to a function. collect is called whatever fails: other ranks wait
// for it.
func writeArray(w io.Writer, rows, cols int, collect func(each func(*formats.Dense[float32]) error) error) error {
	array, begun := npy.NewWriter[float32](w, rows, cols)
	err := collect(func(d *formats.Dense[float32]) error {
		if begun != nil {
			return begun
		}
		return array.WriteRows(d)
	})
	if err = cmp.Or(begun, err); err != nil {
		return err
	}
	return array.Close()
}

// print writes the report as a table or as JSON.
func (x *propagationReport) print(w io.Writer, form string) error {
	if form == "json" {
		return writeJSON(w, x)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("matrix", "%s: %d vertices, %d entries (%s), normalised: %s", x.Matrix.title(), x.Matrix.Rows, x.Matrix.NNZ, density(x.Matrix), x.Normalise)
	row("X", "%d×%d, X0: %s, seed %d; restart %g", x.Matrix.Rows, x.N, printable.String(x.Start), x.Seed, x.Restart)
	row("device", "%s: %s (%s)", x.Backend, printable.String(x.Device), printable.String(x.Driver))
	mode := x.Mode
	if x.P != 0 {
		mode += fmt.Sprintf(", p = %d", x.P)
	}
	row("plan", "format %s, kernel %s, mode %s", x.Format, x.Variant, mode)
	from := ""
	if x.Resumed > 0 {
		from = fmt.Sprintf(", from step %d on", x.Resumed)
	}
	row("steps", "%d%s; the last changed elements by at most %.3g", x.Steps, from, x.Change)
	if x.Time.Median > 0 {
		row("time", "%s median of a step (min %s, p90 %s)", micros(x.Time.Median), micros(x.Time.Min), micros(x.Time.P90))
	}
	if x.Ranks != nil {
		x.Ranks.rows(row)
	}
	row("output", "sha256 %s", x.Output)
	return t.Flush()
}
