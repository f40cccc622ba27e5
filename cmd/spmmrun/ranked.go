// A job's product on several ranks: each multiplies its rows of A, and checks them.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
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
		{j.right, "--right", "ranks share rows of B and C"},
		{j.tune, "--tune", "ranks take csr in fast mode, for C not to depend on how many there are; tune on one process, and name what it finds with --format"},
		{j.uses != 0, "--uses", "ranks take csr"},
		{quantised[j.quantise] != dtype.Invalid, "--quantise", "a scale is for 128 columns of the matrix, and a rank has those alone that it meets"},
		{j.precision == "f64", "--precision f64", "the C of ranks is of f32"},
	} {
		if f.set {
			return fmt.Errorf("%s is for one process (%s): start spmmrun without mpirun or srun", f.flag, f.why)
		}
	}
	return nil
}

// share is a rank's part of a product.
type share[T formats.Value] struct {
	*dist.Plan
	setup
	operands[T, float32] // A has this rank's rows, B those that the plan holds; of a row bias the elements of these rows

	via     comm.DeviceComm
	file    *formats.Dense[float32] // all of B, if it comes from a file; else nil
	last    dist.Timing             // of the last call of Repeat, for repeats products
	repeats int
}

// prepare shares out A, plans, and makes or reads this rank's rows of B.
func (s *share[T]) prepare(ctx context.Context, p *progress) (err error) {
	j, r := s.job, s.r
	if s.via, err = r.via(ctx, s.dev, j.exchange, p); err != nil {
		return err
	}
	p.step("sharing out A", -1)
	f16 := formats.TypeOf[T]() == dtype.F16
	if f16 && s.a.a != nil && s.a.typ != dtype.F16 {
		err = fitsF16(j.matrix, float32CSR(s.a.a).Val)
	}
	if err := r.agree(err); err != nil {
		return err
	}
	mine, err := shareOf[T](ctx, r, s.dev, s.a, j.transpose, j.cols)
	if err != nil {
		return err
	}
	all := []int64{int64(mine.A.Rows)}
	if err := r.AllReduce(all, comm.Sum); err != nil {
		return err
	}
	n := j.cols
	if j.bFile != "" {
		s.file, err = newB[float32](ctx, j, int(all[0]), mine.A.Cols, func(int) error { return nil }, p)
		if err == nil && f16 {
			err = fitsF16(j.bFile, s.file.Data)
		}
		if err := r.agree(err); err != nil {
			return err
		}
		n = s.file.Cols
	}
	s.epilogue, err = readEpilogue[float32](ctx, &j.epilogue, int(all[0]), n)
	if err := r.agree(err); err != nil {
		return err
	}
	o, err := j.sums(spmm.Options{Format: j.format, Precision: s.prec, Cols: n})
	if err := r.agree(err); err != nil {
		return err
	}
	p.step("encoding", -1)
	s.Plan, err = dist.Prepare(ctx, r, s.dev, mine, dist.Options{Multiply: o, Via: s.via})
	if err := r.agree(err); err != nil {
		return err
	}
	s.rows, s.bounds, s.csr = mine.A.Rows, s.Shares(), func() *formats.CSR[T] { return mine.A }
	return s.fill(n, p)
}

// fill makes this rank's rows of B and C, if there is memory for them, and keeps its part of the bias.
func (s *share[T]) fill(n int, p *progress) error {
	first, last := s.bounds.Range(s.r.Rank())
	lo, hi := s.Held().Range(s.r.Rank())
	c := 4 * float64(s.rows) * float64(n)
	b := float64(formats.TypeOf[T]().Size()) * float64(hi-lo) * float64(n)
	onHost := b + c // and C as it was
	if s.job.beta != 0 {
		onHost += c
	}
	if err := s.r.fits(s.job.matrix, s.dev, s.Plan, n, b+c, onHost); err != nil {
		return err
	}
	p.step("making B", -1)
	s.b = formats.ConvertDense[T](s.rowsOfB(n, lo, hi))
	if s.job.beta != 0 {
		s.c0 = gen.DenseRows(first, last, n, s.job.seed+1, gen.Values{})
	}
	if bias := s.epilogue.RowBias; bias != nil {
		s.epilogue.RowBias = bias[first:last]
	}
	return nil
}

// rowsOfB makes rows of B, or takes them from its file.
func (s *share[T]) rowsOfB(n, lo, hi int) *formats.Dense[float32] {
	if s.file == nil {
		return gen.DenseRows(lo, hi, n, s.job.seed, gen.Values{})
	}
	return pickDense(s.file, span(lo, hi))
}

func (s *share[T]) data() *operands[T, float32] { return &s.operands }

func (s *share[T]) tensors() (*spmm.Tensor[T], *spmm.Tensor[float32], error) {
	b, err := spmm.NewTensor[T](s.dev, s.b.Rows, s.b.Cols, false)
	if err != nil {
		return nil, nil, err
	}
	c, err := spmm.NewTensor[float32](s.dev, s.rows, s.b.Cols, false)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, c, nil
}

// Repeat is dist.Plan.Repeat, timed from when all ranks begin to when the last is done.
func (s *share[T]) Repeat(ctx context.Context, times int, alpha float64, b spmm.Operand, beta float64, c spmm.Operand,
	e ...spmm.Epilogue) (spmm.Timing, error) {
	if err := s.r.Barrier(); err != nil {
		return spmm.Timing{}, err
	}
	t, err := s.Plan.Repeat(ctx, times, alpha, b, beta, c, e...)
	if err != nil {
		return spmm.Timing{}, err
	}
	s.last, s.repeats = t, times
	took := []int64{int64(t.Host)}
	err = s.r.AllReduce(took, comm.Max)
	return spmm.Timing{Host: time.Duration(took[0])}, err
}

func (s *share[T]) measure(ctx context.Context, e spmm.Epilogue, c *formats.Dense[float32], p *progress) (timings,
	spmm.Timing, error) {
	return onDevices(ctx, s.setup, s, e, c, p)
}

// report describes what all ranks multiplied with. On others than rank 0 it lacks what that has collected.
func (s *share[T]) report(_ context.Context, _ spmm.Epilogue, ts timings, _ spmm.Timing, _ *progress) (*report, error) {
	mine := s.Info()
	all := []int64{mine.NNZ, mine.Stats.StoredBytes}
	if err := s.r.AllReduce(all, comm.Sum); err != nil {
		return nil, err
	}
	info := mine.PlanInfo
	info.Rows, info.NNZ, info.Stats.StoredBytes = s.bounds.Rows(), all[0], all[1]
	r := newReport(s.setup, &s.operands, info, ts, spmm.Bound{})
	if bits, lossless := s.Reproduced(); bits != 0 {
		r.Reproduced = &reproducedReport{P: bits, CorrectlyRounded: lossless && s.job.rounded()}
	}
	var err error
	r.Ranks, err = newRanksReport(s.r, s.dev.Info(), mine, s.last, s.repeats)
	return r, err
}

// claim is the product of this rank's rows, or of some, with the columns alone that these meet, from rows of B that are
// made or read again, whatever the exchange has brought. In reproducible mode B has one more row, with the largest
// elements of all of B's columns.
func (s *share[T]) claim(c *formats.Dense[float32]) (claim[float32], error) {
	j, a, n := s.job, formats.Convert[float32](s.csr()), s.b.Cols
	x := claim[float32]{numbers: span(0, a.Rows), problem: oracle.Problem{
		Alpha: float64(float32(j.alpha)), Beta: float64(float32(j.beta)), Epilogue: s.epilogue, Compute: s.Info().Precision,
		Out: dtype.F32,
	}}
	if j.verify == "sample" {
		x.numbers = sampleRows(a, n*s.r.Size())
		x.sample = sampleSize(sampleProducts, a.NNZ(), a.Rows, s.r.Size())
	}
	p := &x.problem
	p.A, p.C, x.c = pickRows(a, x.numbers), pickDense(s.c0, x.numbers), pickDense(c, x.numbers)
	p.Epilogue.RowBias = pick(p.Epilogue.RowBias, x.numbers)
	met := slices.Clone(p.A.ColIdx)
	slices.Sort(met)
	met = slices.Compact(met)
	for e, k := range p.A.ColIdx {
		at, _ := slices.BinarySearch(met, k)
		p.A.ColIdx[e] = int32(at)
	}
	p.A.Cols = len(met) + 1
	p.B = formats.NewDense[float32](p.A.Cols, n)
	for at, k := range met {
		row := formats.ConvertDense[T](s.rowsOfB(n, int(k), int(k)+1))
		formats.ConvertSlice(p.B.Line(at), row.Line(0))
	}
	first, _ := s.bounds.Range(s.r.Rank())
	for i := range x.numbers {
		x.numbers[i] += first
	}
	largest, err := largestOfColumns(s.r, s.b)
	copy(p.B.Line(len(met)), largest)
	return x, err
}

// Close frees the plan, and ends the exchange.
func (s *share[T]) Close() (err error) {
	if s.Plan != nil {
		err = s.Plan.Close()
	}
	if s.via != nil {
		err = errors.Join(err, s.via.Close())
	}
	return err
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
