// The main job: multiply, time, verify, report.

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// job holds the command line's flags and arguments.
type job struct {
	matrix                           string
	backend, format, precision, mode string
	variant                          string // of the format: a kernel that is to multiply
	exchange                         string
	precisionGiven                   bool
	quantise                         string
	p                                string // of reproducible mode
	pGiven                           bool
	tune, transpose, right           bool
	uses                             int
	cols                             int
	colsGiven                        bool
	bFile, out                       string
	seed                             uint64
	alpha, beta                      float64
	epilogue                         epilogueFlags
	verify                           string
	warmup, repeats                  int
	report                           string
	force                            bool
	split                            string // of several devices
	memory                           size   // bytes that may be used of each; 0: all

	devices    int // that take part
	start      time.Time
	unfinished *temporaries
}

// run does the job and prints the report: in one process, or as one of the ranks that a launcher started.
func (j *job) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	j.start = time.Now()
	if err := j.check(); err != nil {
		return err
	}
	return withRanks(p.w, func(r *ranks) error { return j.runOn(ctx, r, stdout, p) })
}

// check refuses options that no matrix can make right.
func (j *job) check() error {
	o, err := j.sums(spmm.Options{Format: j.format, Variant: j.variant, Cols: j.cols, Tune: j.tune, Uses: j.uses})
	for _, check := range []func() error{
		o.Validate,
		func() error { return j.epilogue.check(j.mode) },
		j.checkQuantise,
		j.checkForSeveral,
		j.checkRight,
	} {
		if err == nil {
			err = check()
		}
	}
	if _, several := mpi.Launcher(); err == nil && several {
		err = j.checkForRanks()
	}
	return err
}

// runOn does the job as one of several ranks, or the only one.
func (j *job) runOn(ctx context.Context, r *ranks, stdout io.Writer, p *progress) error {
	out, err := r.output(func() (*output, error) {
		return newOutput(j.out, j.unfinished, j.force, j.matrix, j.bFile, j.epilogue.biasFile)
	})
	if err != nil {
		return err
	}
	dev, err := r.open(ctx, j.backend, typeOf(j.precision))
	if err := r.agree(err); err != nil {
		return err
	}
	defer dev.Close()
	j.devices = len(dev.Devices())
	report, unwritten, err := j.product(ctx, r, dev, out, p)
	if err != nil {
		return err
	}
	p.end()
	if r.Rank() == 0 {
		err = report.print(stdout, j.report)
	}
	if v := report.Verify; err == nil && v != nil && !v.OK {
		err = fmt.Errorf("%w: %s", errWrong, v.worst)
	}
	if err == nil {
		err = unwritten
	}
	return r.agree(err)
}

// product reads the matrix and multiplies. It returns the report, and why C could not be written.
func (j *job) product(ctx context.Context, r *ranks, dev *spmm.Device, out *output, p *progress) (*report, error,
	error) {
	a, err := j.read(ctx, r, dev, p)
	if err != nil {
		return nil, nil, err
	}
	prec := a.typ
	if j.precisionGiven {
		prec, err = dtype.Parse(j.precision)
	}
	if err == nil {
		err = j.checkScalars(prec)
	}
	if err := r.agree(err); err != nil {
		return nil, nil, err
	}
	x := setup{j, r, dev, prec, a, out}
	switch prec.Storage() {
	case dtype.F16:
		return multiply[half.F16, float32](ctx, x, p)
	case dtype.BF16:
		return multiply[half.BF16, float32](ctx, x, p)
	case dtype.F64:
		return multiply[float64, float64](ctx, x, p)
	}
	return multiply[float32, float32](ctx, x, p)
}

// checkScalars refuses what only f64 can hold.
func (j *job) checkScalars(prec dtype.Type) error {
	for _, x := range []struct {
		flag  string
		value float64
	}{{"alpha", j.alpha}, {"beta", j.beta}} {
		if prec != dtype.F64 && math.IsInf(float64(float32(x.value)), 0) {
			return fmt.Errorf("--%s: %g is beyond the range of float32: use --precision f64", x.flag, x.value)
		}
	}
	return nil
}

// setup has the findings of a job from before it multiplies.
type setup struct {
	job  *job
	r    *ranks
	dev  *spmm.Device
	prec dtype.Type
	a    matrixRead
	out  *output
}

// multiply does the job with data of type T and C of S. It returns the report, and why C could not be written.
func multiply[T formats.Value, S oracle.Number](ctx context.Context, x setup, p *progress) (*report, error, error) {
	t, err := newTask[T, S](ctx, x, p)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	q := t.data()
	e, closeBias, err := onDevice(ctx, x.dev, q.epilogue, x.r.Size() == 1)
	defer closeBias()
	if err := x.r.agree(err); err != nil {
		return nil, nil, err
	}
	c := formats.NewDense[S](q.rows, q.b.Cols)
	times, last, err := t.measure(ctx, e, c, p)
	if err != nil {
		return nil, nil, err
	}
	report, err := t.report(ctx, e, times, last, p)
	if err != nil {
		return nil, nil, err
	}
	report.warn()
	if x.job.verify != "none" {
		p.step("verifying", -1)
		if report.Verify, err = verify(ctx, x, t, c); err != nil {
			return nil, nil, err
		}
	}
	if v := report.Verify; v != nil {
		if !v.OK {
			x.out = &output{} // what is wrong is not written
		}
		if report.Quantised != nil {
			report.Quantised.Distance = v.unquantised
		}
	}
	var unwritten error
	report.OutputSHA256, unwritten, err = collectTo(x.r, q.bounds, c, x.out)
	return report, unwritten, err
}
