// The main job on several ranks: each multiplies its rows of A, and checks them.

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// checkForRanks refuses what one process alone can do, and says why.
func (j *job) checkForRanks() error {
	for _, f := range []struct {
		set       bool
		flag, why string
	}{
		{isList(j.backend), "--backend " + j.backend, "each rank has a device"},
		{j.split != splits[0], "--split", "ranks share rows"},
		{j.memory != 0, "--memory", "use more ranks"},
		{j.tune, "--tune", "ranks take csr in fast mode, for C not to depend on how many there are; tune on one process, and name what it finds with --format"},
		{quantised[j.quantise] != dtype.Invalid, "--quantise", "a scale is for 128 columns of the matrix, and a rank has those alone that it meets"},
		{j.precision == "f64", "--precision f64", "the C of ranks is of f32"},
	} {
		if f.set {
			return fmt.Errorf("%s is for one process (%s): start spmmrun without mpirun or srun", f.flag, f.why)
		}
	}
	return nil
}

// runOnRanks does the job as one of several ranks. Options have been checked.
func (j *job) runOnRanks(ctx context.Context, stdout io.Writer, p *progress, r *ranks) error {
	out, err := r.output(func() (*output, error) { return newOutput(j.out, j.unfinished, j.force, j.matrix, j.bFile) })
	if err != nil {
		return err
	}
	dev, err := r.open(ctx, j.backend)
	if err := r.agree(err); err != nil {
		return err
	}
	defer dev.Close()
	start := time.Now()
	a, err := r.load(ctx, j.matrix, j.seed, p)
	if err != nil {
		return err
	}
	loaded := time.Since(start)
	prec := a.typ
	if j.precisionGiven {
		if prec, err = dtype.Parse(j.precision); err != nil {
			return r.agree(err)
		}
	}
	var result *result
	switch prec.Storage() {
	case dtype.F16:
		result, err = multiplyOnRanks[half.F16](ctx, j, r, dev, prec, a, out, p)
	case dtype.BF16:
		result, err = multiplyOnRanks[half.BF16](ctx, j, r, dev, prec, a, out, p)
	default:
		result, err = multiplyOnRanks[float32](ctx, j, r, dev, prec, a, out, p)
	}
	if err != nil {
		return err
	}
	p.end()
	if r.Rank() == 0 {
		result.report.LoadS = loaded.Seconds()
		err = result.report.print(stdout, j.report)
		if v := result.report.Verify; err == nil && v != nil && !v.OK {
			err = fmt.Errorf("%w: %s", errWrong, v.worst)
		}
	}
	return r.agree(err)
}

// shared is a rank's part of a job's data.
type shared[T formats.Value] struct {
	share dist.Share[T]
	plan  *dist.Plan
	dev   *spmm.Device
	b     *formats.Dense[T]       // this rank's rows
	c0    *formats.Dense[float32] // of this rank, nil if beta is 0
	file  *formats.Dense[float32] // all of B, if it comes from a file; else nil
	n     int                     // columns

	epilogue oracle.Epilogue // with the elements of a row bias that are this rank's
}

// multiplyOnRanks does the job with data of type T. The result is rank 0's.
func multiplyOnRanks[T formats.Value](ctx context.Context, j *job, r *ranks, dev *spmm.Device, prec dtype.Type,
	a rowsRead, out *output, p *progress) (*result, error) {
	via, err := r.via(ctx, dev, j.exchange, p)
	if err != nil {
		return nil, err
	}
	defer via.Close()
	q, err := newShared[T](ctx, j, r, dev, via, prec, a, p)
	if err != nil {
		return nil, err
	}
	defer q.plan.Close()
	c := formats.NewDense[float32](q.share.A.Rows, q.n)
	ts, last, err := q.measure(ctx, j, r, c, p)
	if err != nil {
		return nil, err
	}
	info := q.plan.Info()
	all := []int64{info.NNZ, info.Stats.StoredBytes}
	if err := r.AllReduce(all, comm.Sum); err != nil {
		return nil, err
	}
	described := info.PlanInfo
	described.Rows, described.NNZ, described.Stats.StoredBytes = q.plan.Shares().Rows(), all[0], all[1]
	res := &result{report: newReport(j, q.n, q.epilogue, dev.Info(), described, ts, spmm.Bound{})}
	if res.report.Ranks, err = newRanksReport(r, dev.Info(), info, last); err != nil {
		return nil, err
	}
	if bits, lossless := q.plan.Reproduced(); bits != 0 {
		res.report.Reproduced = &reproducedReport{P: bits, CorrectlyRounded: lossless && j.alpha == 1 && j.beta == 0}
	}
	if j.verify != "none" {
		p.step("verifying", -1)
		if res.report.Verify, err = q.verify(ctx, j, r, described.Precision, c); err != nil {
			return nil, err
		}
	}
	if v := res.report.Verify; v != nil && !v.OK {
		out = &output{} // what is wrong is not written
	}
	res.report.OutputSHA256, err = collectTo(r, q.plan.Shares(), c, out)
	return res, err
}

// collectTo brings rows of all ranks to rank 0, some at a time, which writes them to out if that is a file, and returns
// their SHA-256.
func collectTo(r *ranks, bounds dist.Bounds, mine *formats.Dense[float32], out *output) (string, error) {
	if r.Rank() != 0 {
		return "", dist.Collect(r, bounds, mine, nil)
	}
	h := sha256.New()
	to := func(w io.Writer) error {
		return writeArray(w, bounds.Rows(), mine.Cols, func(each func(*formats.Dense[float32]) error) error {
			return dist.Collect(r, bounds, mine, func(d *formats.Dense[float32]) error {
				h.Write(backend.Bytes(d.Data[:d.Rows*d.Cols]))
				return each(d)
			})
		})
	}
	var err error
	if out.f == nil {
		err = to(io.Discard)
	} else {
		err = out.write(to)
	}
	if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeArray writes an array as .npy, whose rows collect gives to a function. collect is called whatever fails: other
// ranks wait for it.
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

// newShared shares out A, plans, and makes or reads this rank's rows of B.
func newShared[T formats.Value](ctx context.Context, j *job, r *ranks, dev *spmm.Device, via comm.DeviceComm,
	prec dtype.Type, a rowsRead, p *progress) (*shared[T], error) {
	p.step("sharing out A", -1)
	f16 := formats.TypeOf[T]() == dtype.F16
	var err error
	if f16 && a.a != nil && a.typ != dtype.F16 {
		err = fitsF16(j.matrix, formats.Convert[float32](a.a).Val)
	}
	if err := r.agree(err); err != nil {
		return nil, err
	}
	q := &shared[T]{n: j.cols, dev: dev}
	if q.share, err = shareOf[T](ctx, r, dev, a, j.transpose, j.cols); err != nil {
		return nil, err
	}
	if j.bFile != "" {
		p.step("reading B", -1)
		q.file, err = newB[float32](ctx, j, q.share.A.Rows, q.share.A.Cols, func(int) error { return nil }, p)
		if err == nil && f16 {
			err = fitsF16(j.bFile, q.file.Data)
		}
		if err := r.agree(err); err != nil {
			return nil, err
		}
		q.n = q.file.Cols
	}
	o, err := j.sums(spmm.Options{Format: j.format, Precision: prec, Cols: q.n})
	if err != nil {
		return nil, r.agree(err)
	}
	if err := q.readEpilogue(ctx, j, r); err != nil {
		return nil, err
	}
	p.step("encoding", -1)
	q.plan, err = dist.Prepare(ctx, r, dev, q.share, dist.Options{Multiply: o, Via: via})
	if err := r.agree(err); err != nil {
		return nil, err
	}
	lo, hi := q.plan.Held().Range(r.Rank())
	c := 4 * float64(q.share.A.Rows) * float64(q.n)
	b := float64(formats.TypeOf[T]().Size()) * float64(hi-lo) * float64(q.n)
	onHost := b + c // and C as it was
	if j.beta != 0 {
		onHost += c
	}
	if err := r.fits(j.matrix, dev, q.plan, q.n, b+c, onHost); err != nil {
		return nil, errors.Join(err, q.plan.Close())
	}
	p.step("making B", -1)
	q.b = formats.ConvertDense[T](q.rowsOfB(j, lo, hi))
	if j.beta != 0 {
		lo, hi := q.plan.Shares().Range(r.Rank())
		q.c0 = gen.DenseRows(lo, hi, q.n, j.seed+1, gen.Values{})
	}
	return q, nil
}

// readEpilogue reads the bias, if there is one. A rank keeps the elements of its rows.
func (q *shared[T]) readEpilogue(ctx context.Context, j *job, r *ranks) error {
	rows := []int64{int64(q.share.A.Rows)}
	if err := r.AllReduce(rows, comm.Sum); err != nil {
		return err
	}
	e, err := readEpilogue[float32](ctx, &j.epilogue, int(rows[0]), q.n)
	if err := r.agree(err); err != nil {
		return err
	}
	if e.RowBias != nil {
		e.RowBias = e.RowBias[q.share.First:][:q.share.A.Rows]
	}
	q.epilogue = e
	return nil
}

// rowsOfB makes rows of B, or takes them from its file.
func (q *shared[T]) rowsOfB(j *job, lo, hi int) *formats.Dense[float32] {
	if q.file == nil {
		return gen.DenseRows(lo, hi, q.n, j.seed, gen.Values{})
	}
	out := formats.NewDense[float32](hi-lo, q.n)
	for i := range out.Rows {
		for k := range out.Cols {
			out.Set(i, k, q.file.At(lo+i, k))
		}
	}
	return out
}

// measure times the requested products, B and C being on the devices, each from when all ranks begin to when the last
// is done, and leaves C in c. It returns how this rank spent the last.
func (q *shared[T]) measure(ctx context.Context, j *job, r *ranks, c *formats.Dense[float32], p *progress) (timings,
	dist.Timing, error) {
	ts := timings{batch: 1, host: true}
	var last dist.Timing
	took := make([]int64, 0, j.repeats)
	b, err := tensorOf(ctx, q.dev, q.b)
	if err := r.agree(err); err != nil {
		return ts, last, err
	}
	defer b.Close()
	out, err := tensorOf(ctx, q.dev, c)
	if err := r.agree(err); err != nil {
		return ts, last, err
	}
	defer out.Close()
	e, closeBias, err := q.biasOnDevice(ctx)
	if err := r.agree(err); err != nil {
		return ts, last, err
	}
	defer closeBias()
	p.step("multiplying", int64(j.warmup+j.repeats))
	for i := range j.warmup + j.repeats {
		if q.c0 != nil {
			if err := out.Upload(ctx, q.c0); err != nil {
				return ts, last, err
			}
		}
		if err := r.Barrier(); err != nil {
			return ts, last, err
		}
		t, err := q.plan.Run(ctx, j.alpha, b, j.beta, out, e)
		if err != nil {
			return ts, last, err
		}
		if i >= j.warmup {
			took = append(took, int64(t.Host))
			last = t
		}
		p.add(1)
	}
	if err := out.Download(ctx, c); err != nil {
		return ts, last, err
	}
	ts.each, err = slowest(r, took)
	return ts, last, err
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

// biasOnDevice returns the epilogue as ranks take it: a row bias is a row-major column.
func (q *shared[T]) biasOnDevice(ctx context.Context) (spmm.Epilogue, func(), error) {
	if q.epilogue.RowBias == nil {
		return onDevice(ctx, q.dev, q.epilogue)
	}
	e, _, err := onDevice(ctx, q.dev, oracle.Epilogue{Activation: q.epilogue.Activation})
	if err != nil {
		return e, nil, err
	}
	bias, err := tensorOf(ctx, q.dev, &formats.Dense[float32]{Rows: len(q.epilogue.RowBias), Cols: 1, LD: 1,
		Data: q.epilogue.RowBias})
	e.RowBias = bias
	return e, func() { bias.Close() }, err
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

// verify checks this rank's outputs against exact arithmetic, with rows of B that are made or read again, whatever the
// exchange has brought. The report is of all ranks.
func (q *shared[T]) verify(ctx context.Context, j *job, r *ranks, compute dtype.Type,
	c *formats.Dense[float32]) (*verifyReport, error) {
	problem, got, numbers, err := q.sampled(j, r, compute, c)
	if err != nil {
		return nil, err
	}
	sample := int64(0)
	if j.verify == "sample" {
		sample = 1 + int64(sampleProducts/float64(r.Size())/(1+float64(problem.A.NNZ())/float64(max(1, problem.A.Rows))))
	}
	v := &verifyReport{Mode: j.verify, OK: true}
	check, err := oracle.Check(ctx, problem, got, sample)
	bits, _ := q.plan.Reproduced()
	if err == nil && bits != 0 {
		full := *j
		full.verify = "full" // of what was sampled
		v, err = verifyBits(ctx, &full, bits, problem, got)
	} else if err == nil {
		v.Checked, v.MaxRatio, v.OK = check.Checked, finite(check.MaxRatio), check.OK()
		if check.First != nil {
			check.First.Row = numbers[check.First.Row]
			v.worst = check.First.Error()
		}
	}
	if err := r.agree(err); err != nil {
		return nil, err
	}
	v.Mode, v.Distance = j.verify, distanceReport{Checked: check.Checked, Worst: finite(check.Worst),
		Relative: finite(check.Relative)}
	return v, q.joinVerdicts(r, v)
}

// joinVerdicts makes a rank's verdict that of all.
func (q *shared[T]) joinVerdicts(r *ranks, v *verifyReport) error {
	var wrong error
	if !v.OK {
		wrong = fmt.Errorf("%s (of rank %d's rows)", v.worst, r.Rank())
	}
	if err := comm.Agree(r, wrong, nil); err != nil {
		v.OK = false
		var other *comm.RankError
		if v.worst = err.Error(); errors.As(err, &other) {
			v.worst = other.Text
		}
	}
	counts := []int64{v.Checked, v.Distance.Checked}
	if err := r.AllReduce(counts, comm.Sum); err != nil {
		return err
	}
	v.Checked, v.Distance.Checked = counts[0], counts[1]
	most := []*float64{&v.MaxRatio, &v.Distance.Worst, &v.Distance.Relative}
	bits := make([]int64, len(most))
	for i, x := range most {
		bits[i] = int64(math.Float64bits(*x)) // in the order of the numbers, which are not negative
	}
	if err := r.AllReduce(bits, comm.Max); err != nil {
		return err
	}
	for i, x := range most {
		*x = math.Float64frombits(uint64(bits[i]))
	}
	return nil
}

// sampled returns the product of those of this rank's rows that are checked, with the columns that they meet alone, and
// the numbers of the rows within C. In reproducible mode B has one more row, with the largest elements of all of B's
// columns.
func (q *shared[T]) sampled(j *job, r *ranks, compute dtype.Type, c *formats.Dense[float32]) (oracle.Problem,
	*formats.Dense[float32], []int, error) {
	p := oracle.Problem{Alpha: float64(float32(j.alpha)), Beta: float64(float32(j.beta)), Epilogue: q.epilogue,
		Compute: compute, Out: dtype.F32}
	a := formats.Convert[float32](q.share.A)
	rows := make([]int, a.Rows)
	for i := range rows {
		rows[i] = i
	}
	if j.verify == "sample" {
		rows = sampleRows(a, q.n*r.Size())
	}
	p.A, p.C = pickRows(a, rows), pickDense(q.c0, rows)
	if p.Epilogue.RowBias != nil {
		p.Epilogue.RowBias = pick(p.Epilogue.RowBias, rows)
	}
	met := slices.Clone(p.A.ColIdx)
	slices.Sort(met)
	met = slices.Compact(met)
	for e, k := range p.A.ColIdx {
		at, _ := slices.BinarySearch(met, k)
		p.A.ColIdx[e] = int32(at)
	}
	p.A.Cols = len(met) + 1
	p.B = formats.NewDense[float32](p.A.Cols, q.n)
	for at, k := range met {
		row := formats.ConvertDense[T](q.rowsOfB(j, int(k), int(k)+1))
		formats.ConvertSlice(p.B.Line(at), row.Line(0))
	}
	numbers := make([]int, len(rows))
	first, _ := q.plan.Shares().Range(r.Rank())
	for i, row := range rows {
		numbers[i] = first + row
	}
	largest, err := largestOfColumns(r, q.b)
	copy(p.B.Line(len(met)), largest)
	return p, pickDense(c, rows), numbers, err
}

// largestOfColumns returns the largest finite magnitude of each column of a matrix whose rows are the ranks'.
func largestOfColumns[T formats.Value](r *ranks, mine *formats.Dense[T]) ([]float32, error) {
	most, row := make([]int64, mine.Cols), make([]float32, mine.Cols)
	for i := range mine.Rows {
		formats.ConvertSlice(row, mine.Line(i))
		for k, x := range row {
			if m := math.Abs(float64(x)); m <= math.MaxFloat32 {
				most[k] = max(most[k], int64(math.Float32bits(float32(m))))
			}
		}
	}
	err := r.AllReduce(most, comm.Max)
	for k, m := range most {
		row[k] = math.Float32frombits(uint32(m))
	}
	return row, err
}

// ranksReport is the report on several ranks.
type ranksReport struct {
	Size     int    `json:"size"`
	Launcher string `json:"launcher"`
	Library  string `json:"library"`
	// every rank receives all of B, not just the rows that its share of A meets
	Gathered bool   `json:"gathered"`
	Via      string `json:"via"`                // how rows travel
	WhyHost  string `json:"why_host,omitempty"` // why they do not by NCCL, between GPUs
	// Imbalance is the longest time that a rank computed over the mean.
	Imbalance float64      `json:"imbalance"`
	Received  int64        `json:"received_bytes"` // of B in each product, by all ranks from others
	Each      []rankReport `json:"each"`
}

// rankReport is one rank; times are of the last product.
type rankReport struct {
	Rank   int    `json:"rank"`
	Device string `json:"device"`
	Rows   int64  `json:"rows"`
	NNZ    int64  `json:"nnz"`
	// in rows that meet the rank's own rows of B alone, multiplied during the exchange
	InnerNNZ   int64   `json:"inner_nnz"`
	Sent       int64   `json:"sent_bytes"`
	Received   int64   `json:"received_bytes"`
	TotalUS    float64 `json:"total_us"`
	RangesUS   float64 `json:"ranges_us"`   // finding the ranges of B's columns, in reproducible mode
	PackUS     float64 `json:"pack_us"`     // copying rows that others need
	ExchangeUS float64 `json:"exchange_us"` // until all rows had come
	ComputeUS  float64 `json:"compute_us"`
	OverlapUS  float64 `json:"overlap_us"` // computing during the exchange
}

// newRanksReport collects what ranks report; on others than rank 0 it is nil.
func newRanksReport(r *ranks, dev spmm.Info, i dist.Info, t dist.Timing) (*ranksReport, error) {
	mine, err := json.Marshal(rankReport{
		Rank: r.Rank(), Device: fmt.Sprintf("%s:%d", dev.Backend, dev.Index), Rows: int64(i.Rows), NNZ: i.NNZ,
		InnerNNZ: i.Inner,
		Sent:     t.Sent, Received: t.Received, TotalUS: us(t.Host), RangesUS: us(t.Ranges), PackUS: us(t.Pack),
		ExchangeUS: us(t.Exchange), ComputeUS: us(t.Compute), OverlapUS: us(t.Overlap),
	})
	if err != nil {
		return nil, err
	}
	all, err := r.joined(mine)
	if err != nil || all == nil {
		return nil, err
	}
	library, _, _ := strings.Cut(r.library, ",")
	out := &ranksReport{Size: r.Size(), Launcher: r.launch.By, Library: library, Gathered: i.Gather, Via: i.Via,
		WhyHost: r.whyHost}
	sum, most := 0.0, 0.0
	for _, text := range all {
		var x rankReport
		if err := json.Unmarshal(text, &x); err != nil {
			return nil, err
		}
		sum, most, out.Received = sum+x.ComputeUS, max(most, x.ComputeUS), out.Received+x.Received
		out.Each = append(out.Each, x)
	}
	if sum > 0 {
		out.Imbalance = most / sum * float64(r.Size())
	}
	return out, nil
}

// rows prints the ranks in a table.
func (x *ranksReport) rows(row func(name, format string, args ...any)) {
	how := "the rows of B that each needs"
	if x.Gathered {
		how = "all of B"
	}
	row("ranks", "%d, started by %s (%s); they exchange %s, by way of %s", x.Size, x.Launcher, x.Library, how, x.Via)
	if x.WhyHost != "" {
		row("", "%s", printable.String(x.WhyHost))
	}
	moved := func(n int64) string {
		if n == 0 {
			return "0 B"
		}
		return byteSize(n)
	}
	row("received", "%s in each product; imbalance %.3g", moved(x.Received), x.Imbalance)
	for _, e := range x.Each {
		row(fmt.Sprintf("rank %d", e.Rank), "%s: %d rows, %d entries; computing %s, exchange of %s %s, %s of it at the same time",
			e.Device, e.Rows, e.NNZ, choose.Micros(e.ComputeUS), moved(e.Received), choose.Micros(e.ExchangeUS),
			choose.Micros(e.OverlapUS))
	}
}
