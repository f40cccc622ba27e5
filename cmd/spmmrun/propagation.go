// Propagation: the steps of spmmrun propagate on the ranks of a job. There may be one rank.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/checkpoint"
)

// state is a rank's part of a propagation. X after the last step is x, and X before it y.
type state struct {
	dev      *spmm.Device
	share    dist.Share[float32]
	plan     *dist.Plan
	host     *formats.Dense[float32] // X0 at first; then what was downloaded last
	x, y, x0 *spmm.Tensor[float32]
	step     int
	saved    *checkpoint.Folder // nil: no checkpoints
}

// run does the job as one of the ranks.
func (g *propagation) run(ctx context.Context, stdout io.Writer, p *progress, r *ranks) error {
	start := time.Now()
	o, err := g.check()
	if err := r.agree(err); err != nil {
		return err
	}
	out, err := r.output(func() (*output, error) { return newOutput(g.out, g.unfinished, g.force, g.matrix, g.xFile) })
	if err != nil {
		return err
	}
	dev, err := r.open(ctx, g.backend, dtype.F32)
	if err := r.agree(err); err != nil {
		return err
	}
	defer dev.Close()
	via, err := r.via(ctx, dev, g.exchange, p)
	if err != nil {
		return err
	}
	defer via.Close()
	s := &state{dev: dev} // the device frees all that is on it
	if err := g.prepare(ctx, r, s, dist.Options{Multiply: o, Via: via}, p); err != nil {
		return err
	}
	defer s.plan.Close()
	loaded := time.Since(start)
	if err := g.place(ctx, r, s); err != nil {
		return err
	}
	report := newPropagationReport(g, start, loaded, dev.Info(), s.step)
	if err := g.propagate(ctx, r, s, &report, p); err != nil {
		return err
	}
	p.step("writing", -1)
	err = s.x.Download(ctx, s.host)
	if err := r.agree(err); err != nil {
		return err
	}
	var unwritten error
	if report.Output, unwritten, err = collectTo(r, s.plan.Shares(), s.host, out); err != nil {
		return err
	}
	p.end()
	if r.Rank() == 0 {
		err = report.print(stdout, g.report)
	}
	return r.agree(cmp.Or(err, unwritten))
}

// prepare loads and normalises the graph, plans, and makes this rank's rows of X0.
func (g *propagation) prepare(ctx context.Context, r *ranks, s *state, o dist.Options, p *progress) error {
	read, err := r.load(ctx, g.matrix, g.seed, p)
	if err != nil {
		return err
	}
	p.step("sharing out the graph", -1)
	if s.share, err = shareOf[float32](ctx, r, s.dev, read, false, g.cols); err != nil {
		return err
	}
	s.share, err = dist.Normalise(r, s.share, normalisationOf[g.normalise])
	if err := r.agree(named(g.matrix, err)); err != nil {
		return err
	}
	x0, err := g.readX0(ctx, r, s.share.A.Cols)
	if err != nil {
		return err
	}
	o.Multiply.Cols = g.cols
	p.step("encoding", -1)
	s.plan, err = dist.Prepare(ctx, r, s.dev, s.share, o)
	if err := r.agree(err); err != nil {
		return err
	}
	x := 4 * float64(s.share.A.Rows) * float64(g.cols)
	if err := r.fits(g.matrix, s.dev, s.plan, g.cols, 3*x, 2*x); err != nil { // x, x0 and y; host and another X
		return err
	}
	if g.xFile != "" {
		s.host, err = dist.Scatter(r, s.plan.Shares(), x0, g.cols)
		return err
	}
	lo, hi := s.plan.Shares().Range(r.Rank())
	s.host = g.makeX0(lo, hi, s.share.A.Cols)
	return nil
}

// place brings X0 to the device, and X, which is X0 or that of the checkpoint.
func (g *propagation) place(ctx context.Context, r *ranks, s *state) error {
	x := s.host
	if g.checkpoint != "" {
		saved, err := g.resume(r, s)
		if err != nil {
			return err
		}
		if saved != nil {
			x = saved
		}
	}
	var err error
	if s.x0, err = tensorOf(ctx, s.dev, s.host); err == nil {
		s.x, err = tensorOf(ctx, s.dev, x)
	}
	if err == nil {
		s.y, err = spmm.NewTensor[float32](s.dev, s.host.Rows, s.host.Cols, false)
	}
	return r.agree(err)
}

// propagate does the steps that are left, and reports them.
func (g *propagation) propagate(ctx context.Context, r *ranks, s *state, report *propagationReport, p *progress) error {
	var last dist.Timing
	var took []int64
	p.step("propagating", int64(g.steps-s.step))
	for s.step < g.steps {
		t, err := dist.Step(ctx, s.plan, float64(g.restart), s.x, s.x0, s.y)
		if err != nil {
			return err
		}
		s.x, s.y = s.y, s.x
		s.step++
		took, last = append(took, int64(t.Host)), t
		p.add(1)
		if s.saved != nil && (s.step%g.every == 0 || s.step == g.steps) {
			if err := s.save(ctx, r); err != nil {
				return err
			}
		}
	}
	each, err := slowest(r, took)
	if err != nil {
		return err
	}
	return report.add(ctx, r, s, timings{batch: 1, host: true, each: each}, last)
}

// changed is the largest change of an element in the last step; what is not a number counts as the largest there is.
func (s *state) changed(ctx context.Context) (float64, error) {
	before := formats.NewDense[float32](s.host.Rows, s.host.Cols)
	if err := errors.Join(s.y.Download(ctx, before), s.x.Download(ctx, s.host)); err != nil {
		return 0, err
	}
	most := 0.0
	for i, v := range s.host.Data {
		if d := math.Abs(float64(v) - float64(before.Data[i])); !(d <= most) {
			most = finite(d)
		}
	}
	return most, nil
}

// resume opens the folder of checkpoints, and returns this rank's rows of the X that it has, nil if it has none. Rank 0
// reads and writes it. Errors are agreed on.
func (g *propagation) resume(r *ranks, s *state) (*formats.Dense[float32], error) {
	job := checkpoint.Job{
		"vertices": fmt.Sprint(s.share.A.Cols), "--cols": fmt.Sprint(g.cols), "--restart": fmt.Sprint(g.restart),
		"--mode": g.mode, "--format": g.format, "--normalise": g.normalise,
	}
	if g.mode == reproducible {
		job["--p"] = g.p
	}
	sums := []int64{checkpoint.SumOfEntries(s.share.First, s.share.A), checkpoint.SumOfElements(s.share.First, s.host)}
	if err := r.AllReduce(sums, comm.Sum); err != nil {
		return nil, err
	}
	job["graph"], job["x0"] = fmt.Sprintf("%016x", uint64(sums[0])), fmt.Sprintf("%016x", uint64(sums[1]))
	s.saved = &checkpoint.Folder{Dir: g.checkpoint, Job: job, Rows: s.share.A.Cols, Cols: g.cols}
	var x *formats.Dense[float32]
	var err error
	if r.Rank() == 0 {
		if x, s.step, err = s.saved.Open(g.steps); err != nil {
			err = fmt.Errorf("--checkpoint %s: %w", g.checkpoint, err)
		}
	}
	if err := r.agree(err); err != nil {
		return nil, err
	}
	step := []int64{int64(s.step)}
	if err := r.AllReduce(step, comm.Max); err != nil || step[0] == 0 {
		return nil, err
	}
	s.step = int(step[0])
	return dist.Scatter(r, s.plan.Shares(), x, g.cols)
}

// save keeps X in the folder of checkpoints. Errors are agreed on.
func (s *state) save(ctx context.Context, r *ranks) error {
	if err := r.agree(s.x.Download(ctx, s.host)); err != nil {
		return err
	}
	collect := func(give func(*formats.Dense[float32]) error) error {
		return dist.Collect(r, s.plan.Shares(), s.host, give)
	}
	if r.Rank() != 0 {
		return r.agree(collect(nil))
	}
	err := s.saved.Save(s.step, collect)
	if err != nil {
		err = fmt.Errorf("--checkpoint %s: %w", s.saved.Dir, err)
	}
	return r.agree(err)
}

// named puts a matrix's name before an error.
func named(matrix string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", matrix, err)
}

// tensorOf returns a matrix as a tensor.
func tensorOf[T formats.Value](ctx context.Context, dev *spmm.Device, d *formats.Dense[T]) (*spmm.Tensor[T], error) {
	t, err := spmm.NewTensor[T](dev, d.Rows, d.Cols, false)
	if err != nil {
		return nil, err
	}
	if err := t.Upload(ctx, d); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// slowest returns how long each of the steps took on the rank that took longest.
func slowest(r comm.Comm, took []int64) ([]time.Duration, error) {
	if err := r.AllReduce(took, comm.Max); err != nil {
		return nil, err
	}
	var each []time.Duration
	for _, t := range took {
		each = append(each, time.Duration(t))
	}
	return each, nil
}
