// The main job: multiply, time, verify, report.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm/mpi"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/npy"
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
	tune, transpose                  bool
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

// run does the job and prints the report.
func (j *job) run(ctx context.Context, stdout io.Writer, p *progress) error {
	defer p.end()
	j.start = time.Now()
	if err := j.check(); err != nil {
		return err
	}
	if _, several := mpi.Launcher(); several {
		if err := j.checkForRanks(); err != nil {
			return err
		}
		return withRanks(p.w, func(r *ranks) error { return j.runOnRanks(ctx, stdout, p, r) })
	}
	out, err := newOutput(j.out, j.unfinished, j.force, j.matrix, j.bFile, j.epilogue.biasFile)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	dev, err := spmm.OpenFor(ctx, j.backend, typeOf(j.precision))
	if err != nil {
		return err
	}
	defer dev.Close()
	j.devices = len(dev.Devices())
	r, err := j.product(ctx, dev, p)
	if err != nil {
		return err
	}
	p.end()
	if err := r.report.print(stdout, j.report); err != nil {
		return err
	}
	if v := r.report.Verify; v != nil && !v.OK {
		return fmt.Errorf("%w: %s", errWrong, v.worst)
	}
	if err := out.write(r.write); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// check refuses options that no matrix can make right.
func (j *job) check() error {
	o, err := j.sums(spmm.Options{Format: j.format, Variant: j.variant, Cols: j.cols, Tune: j.tune})
	for _, check := range []func() error{
		o.Validate,
		func() error { return j.epilogue.check(j.mode) },
		j.checkQuantise,
		j.checkForSeveral,
	} {
		if err == nil {
			err = check()
		}
	}
	return err
}

// product reads the matrix and multiplies.
func (j *job) product(ctx context.Context, dev *spmm.Device, p *progress) (*result, error) {
	if err := j.generatedFits(dev.Info()); err != nil {
		return nil, err
	}
	start := time.Now()
	a, err := openMatrix(ctx, j.matrix, j.seed, typeOf(j.precision), p)
	if err != nil {
		return nil, err
	}
	if err := j.transposable(a); err != nil {
		return nil, err
	}
	if j.transpose {
		p.step("transposing", -1)
		a = formats.Transpose(a)
	}
	a = byRows(a)
	loaded := time.Since(start)
	values, qr, prec, err := j.bring(a, p) // the precision that a file was made for, else f32
	if err != nil {
		return nil, err
	}
	if j.precisionGiven {
		if prec, err = dtype.Parse(j.precision); err != nil {
			return nil, err
		}
	}
	if err := j.checkScalars(prec); err != nil {
		return nil, err
	}
	var r *result
	switch prec.Storage() {
	case dtype.F16:
		r, err = multiply[half.F16, float32](ctx, j, dev, prec, a, values, qr, p)
	case dtype.BF16:
		r, err = multiply[half.BF16, float32](ctx, j, dev, prec, a, values, qr, p)
	case dtype.F64:
		r, err = multiply[float64, float64](ctx, j, dev, prec, a, nil, nil, p)
	default:
		r, err = multiply[float32, float32](ctx, j, dev, prec, a, nil, nil, p)
	}
	if err != nil {
		return nil, err
	}
	r.report.LoadS = loaded.Seconds()
	for _, s := range dev.Skipped() {
		r.report.Skipped = append(r.report.Skipped, absentEntry{s.Backend, oneLine(s.Err)})
	}
	return r, nil
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

// result holds what a job has found out.
type result struct {
	report report
	write  func(w io.Writer) error // C, as .npy
}

// newResult returns the result whose C is c.
func newResult[S oracle.Number](c *formats.Dense[S]) *result {
	return &result{write: func(w io.Writer) error { return npy.Write(w, c) }}
}

// operands are the data of a job, with A and B of T, and C, whose elements hold sums, of S: alpha·A·B + beta·C0, with
// an epilogue. With --transpose all that is said of A is of the transpose.
type operands[T formats.Value, S oracle.Number] struct {
	rows int // of A
	// a decodes A when it is first called: verifying needs that, a kernel that takes A as its file has it does not.
	a  func() *formats.CSR[T]
	b  *formats.Dense[T]
	c0 *formats.Dense[S] // nil if beta is 0
	// quantised is A if that has values of 8 bits, else nil; original is the matrix as it came.
	quantised *formats.Quantised
	original  formats.Encoded

	epilogue oracle.EpilogueOf[S]
}

// multiply does the job with data of type T and C of S.
func multiply[T formats.Value, S oracle.Number](ctx context.Context, j *job, dev *spmm.Device, prec dtype.Type,
	a formats.Encoded, values *formats.Quantised, qr *quantisedReport, p *progress) (*result, error) {
	q, err := newOperands[T, S](ctx, j, dev.Info(), a, values, p)
	if err != nil {
		return nil, err
	}
	m, o, err := preparing(j, prec, a, q, p)
	if err != nil {
		return nil, err
	}
	plan, err := spmm.Prepare(ctx, dev, m, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	c := formats.NewDense[S](q.rows, q.b.Cols)
	r := newResult(c)
	e, closeBias, err := onDevice(ctx, dev, q.epilogue)
	defer closeBias()
	if err != nil {
		return nil, err
	}
	info := plan.Info()
	measure := onDevices[T, S]
	if info.Columns > 0 && info.Columns < q.b.Cols {
		measure = fromHost[T, S]
	}
	times, last, err := measure(ctx, j, plan, q, e, c, p)
	if err != nil {
		return nil, err
	}
	p.step("measuring the device", -1)
	bound, err := plan.Observe(ctx, q.b.Cols, formats.TypeOf[S](), times.quantile(0.5), e)
	if err != nil {
		return nil, err
	}
	r.report = newReport(j, q.b.Cols, q.epilogue, dev.Info(), info, times, bound)
	if info.Split != spmm.AutoSplit {
		r.report.Group = newGroupReport(dev, plan, last)
	}
	bits, _ := plan.Reproduced()
	return r, conclude(ctx, j, r, multiplied{info, bits}, q, c, qr, p)
}

// conclude adds to the report what C is: verified, and its digest.
func conclude[T formats.Value, S oracle.Number](ctx context.Context, j *job, r *result, done multiplied,
	q *operands[T, S], c *formats.Dense[S], qr *quantisedReport, p *progress) (err error) {
	r.report.Reproduced, r.report.Quantised = reproduced(j, done, q), qr
	r.report.warn()
	if j.verify != "none" {
		p.step("verifying", -1)
		if r.report.Verify, err = verify(ctx, j, done, q, c); err != nil {
			return err
		}
	}
	if v := r.report.Verify; v != nil && qr != nil {
		qr.Distance = v.unquantised
	}
	digest := sha256.Sum256(backend.Bytes(c.Data))
	r.report.OutputSHA256 = hex.EncodeToString(digest[:])
	return nil
}

// preparing returns what is to be prepared, A as its file has it if that is of the right type, and how.
func preparing[T formats.Value, S oracle.Number](j *job, prec dtype.Type, a formats.Encoded, q *operands[T, S],
	p *progress) (formats.Encoded, spmm.Options, error) {
	what := "encoding"
	if j.tune {
		what = "measuring formats"
	}
	p.step(what, -1)
	o, err := j.sums(spmm.Options{
		Format: j.format, Variant: j.variant, Precision: prec, Cols: q.b.Cols, Tune: j.tune,
		Split: splitOf[j.split], Memory: int64(j.memory),
	})
	switch {
	case q.quantised != nil:
		return q.quantised, o, err
	case a.Format() != "csr" && a.Type() == prec.Storage():
		return a, o, err
	}
	return q.a(), o, err
}

// newOperands brings A into type T and makes or reads B.
func newOperands[T formats.Value, S oracle.Number](ctx context.Context, j *job, dev spmm.Info, a formats.Encoded,
	values *formats.Quantised, p *progress) (*operands[T, S], error) {
	rows, cols := a.Dims()
	fits := func(n int) error {
		return newNeed(j, dev, rows, cols, n, a.NNZ(), formats.TypeOf[T]().Size()).check()
	}
	b, err := newB[S](ctx, j, rows, cols, fits, p)
	if err != nil {
		return nil, err
	}
	if formats.TypeOf[T]() == dtype.F16 {
		err := fitsF16(j.bFile, convertDense[float32](b).Data)
		if a.Type() != dtype.F16 && values == nil {
			err = errors.Join(fitsF16(j.matrix, float32CSR(a).Val), err)
		}
		if err != nil {
			return nil, err
		}
	}
	q := &operands[T, S]{
		rows: rows, b: convertDense[T](b),
		a: sync.OnceValue(func() *formats.CSR[T] { return formats.Convert[T](a.Sparse()) }), quantised: values, original: a,
	}
	if values != nil {
		q.a = sync.OnceValue(func() *formats.CSR[T] { return levels[T](values) }) // whose pattern alone is looked at
	}
	if j.beta != 0 {
		q.c0 = convertDense[S](gen.Dense(rows, b.Cols, j.seed+1, gen.Values{}))
	}
	if q.epilogue, err = readEpilogue[S](ctx, &j.epilogue, rows, b.Cols); err != nil {
		return nil, err
	}
	return q, ctx.Err()
}

// newB makes or reads B for an A of rows×cols; fits returns an error if there is no memory for n columns of B.
func newB[S oracle.Number](ctx context.Context, j *job, rows, cols int, fits func(n int) error,
	p *progress) (*formats.Dense[S], error) {
	if j.bFile == "" {
		if err := fits(j.cols); err != nil {
			return nil, err
		}
		p.step("making B", -1)
		return convertDense[S](gen.Dense(cols, j.cols, j.seed, gen.Values{})), nil
	}
	p.step("reading B", -1)
	b, err := loadDense[S](ctx, j.bFile)
	if err != nil {
		return nil, err
	}
	want := "n"
	if j.colsGiven {
		want = fmt.Sprint(j.cols)
	}
	switch {
	case b.Rows != cols || j.colsGiven && b.Cols != j.cols:
		return nil, fmt.Errorf("%s: B is %d×%d, but %s is %d×%d: want B %d×%s", j.bFile, b.Rows, b.Cols, j.a(), rows, cols,
			cols, want)
	case b.Cols == 0:
		return nil, fmt.Errorf("%s: B has no columns", j.bFile)
	}
	return b, fits(b.Cols)
}

// a names the matrix that B is multiplied by.
func (j *job) a() string {
	if j.transpose {
		return "Aᵀ"
	}
	return "A"
}

// convertDense is formats.ConvertDense, but returns d itself if it has the type.
func convertDense[T, S formats.Value](d *formats.Dense[S]) *formats.Dense[T] {
	if same, ok := any(d).(*formats.Dense[T]); ok {
		return same
	}
	return formats.ConvertDense[T](d)
}

// fitsF16 refuses finite values that binary16 would make infinite.
func fitsF16(name string, values []float32) error {
	const least = 65520 // the smallest that rounds beyond the largest, 65504
	for _, x := range values {
		if (x >= least || x <= -least) && !math.IsInf(float64(x), 0) {
			return fmt.Errorf("%s: the value %g is beyond f16's range of ±65504: use --precision bf16, tf32 or f32", name, x)
		}
	}
	return nil
}

// onDevices times the requested number of multiplications on the devices, where the data stay, and leaves C in c. It
// returns how long one of the last repeat took.
func onDevices[T formats.Value, S oracle.Number](ctx context.Context, j *job, plan *spmm.Plan, q *operands[T, S],
	e spmm.Epilogue, c *formats.Dense[S], p *progress) (ts timings, last spmm.Timing, err error) {
	p.step("copying to the device", -1)
	b, y, err := spmm.TensorsFor[T, S](plan, q.b.Cols)
	if err != nil {
		return ts, last, err
	}
	defer b.Close()
	defer y.Close()
	if err := b.Upload(ctx, q.b); err != nil {
		return ts, last, err
	}
	begin := func() error {
		if q.c0 == nil {
			return nil
		}
		return y.Upload(ctx, q.c0)
	}
	if err := begin(); err != nil {
		return ts, last, err
	}
	ts, err = timeRuns(j, p, func(times int) (spmm.Timing, error) {
		t, err := plan.Repeat(ctx, times, j.alpha, b, j.beta, y, e)
		last = each(t, times)
		return t, err
	})
	if err != nil {
		return ts, last, err
	}
	if q.c0 != nil { // C has taken part in every run so far: once more from the start
		if err := begin(); err != nil {
			return ts, last, err
		}
		if _, err := plan.Run(ctx, j.alpha, b, j.beta, y, e); err != nil {
			return ts, last, err
		}
	}
	return ts, last, y.Download(ctx, c)
}

// fromHost is onDevices where there is memory for some columns at a time: B and C are in the host's memory, and the
// times include what it takes to bring them to the devices and back.
func fromHost[T formats.Value, S oracle.Number](ctx context.Context, j *job, plan *spmm.Plan, q *operands[T, S],
	e spmm.Epilogue, c *formats.Dense[S], p *progress) (ts timings, last spmm.Timing, err error) {
	ts, err = timeRuns(j, p, func(times int) (spmm.Timing, error) {
		start := time.Now()
		for range times {
			if q.c0 != nil {
				copy(c.Data, q.c0.Data)
			}
			if last, err = spmm.Multiply(ctx, plan, j.alpha, q.b, j.beta, c, e); err != nil {
				return spmm.Timing{}, err
			}
		}
		return spmm.Timing{Host: time.Since(start)}, nil
	})
	return ts, last, err
}

// each is the time of one of several multiplications.
func each(t spmm.Timing, times int) spmm.Timing {
	n := time.Duration(times)
	for d := range t.Each {
		t.Each[d].Device /= n
		t.Each[d].Host /= n
	}
	t.Device, t.Host = t.Device/n, t.Host/n
	t.Streamed.Bytes /= int64(times)
	t.Streamed.Copy /= n
	t.Streamed.Compute /= n
	return t
}

// timeRuns times the requested number of batches of multiplications.
func timeRuns(j *job, p *progress, repeat func(times int) (spmm.Timing, error)) (timings, error) {
	ts := timings{batch: 1}
	p.step("multiplying", int64(j.warmup+j.repeats))
	once, err := repeat(1) // also brings the kernel onto the device
	if err != nil {
		return ts, err
	}
	for i := range j.warmup + j.repeats {
		if i == j.warmup {
			ts.batch = batch(once.Best())
		}
		t, err := repeat(ts.batch)
		if err != nil {
			return ts, err
		}
		if i >= j.warmup {
			ts.add(t)
		} else {
			once = t
		}
		p.add(1)
	}
	return ts, nil
}

// batch returns how many multiplications that take so long are timed together: starting a launch costs
// a GPU a few microseconds, which a program that keeps it busy does not see.
func batch(one time.Duration) int {
	const least, most = 500 * time.Microsecond, 50
	return int(min(most, 1+least/max(one, 1)))
}

// timings are the times of the multiplications.
type timings struct {
	batch int             // multiplications timed together
	each  []time.Duration // of one
	host  bool            // some were taken with the host's clock
}

func (ts *timings) add(t spmm.Timing) {
	ts.each = append(ts.each, t.Best()/time.Duration(ts.batch))
	ts.host = ts.host || t.Device == 0
}

// quantile returns the time that a fraction q of the runs did not exceed.
func (ts *timings) quantile(q float64) time.Duration {
	s := slices.Sorted(slices.Values(ts.each))
	return s[int(math.Ceil(q*float64(len(s)-1)))]
}
