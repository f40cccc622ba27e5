// Products on any number of ranks, which are goroutines here, have the bits of one process.

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/cache/cachetest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { cachetest.Main(func() int { return run(m) }) }

// run runs the tests, or what the test is started for as a rank.
var run = (*testing.M).Run

var ctx = context.Background()

// graph is a matrix whose row lengths and columns follow a power law; a few rows and columns have most of the entries.
func graph(n, each int) *formats.CSR[float32] {
	r := rand.New(rand.NewPCG(7, 9))
	coo := &formats.COO[float32]{Rows: n, Cols: n}
	skew := func() int32 { return int32(float64(n) * math.Pow(r.Float64(), 4)) }
	for range n * each {
		coo.Row, coo.Col, coo.Val = append(coo.Row, skew()), append(coo.Col, skew()), append(coo.Val, r.Float32()-0.5)
	}
	return must(coo.ToCSR(formats.SumDuplicates))
}

// stencil has the five points of a grid with side columns.
func stencil(side int) *formats.CSR[float32] {
	n := side * side
	a := &formats.CSR[float32]{Rows: n, Cols: n, RowPtr: make([]int64, n+1)}
	for i := range n {
		for _, j := range []int{i - side, i - 1, i, i + 1, i + side} {
			if j >= 0 && j < n {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, float32(1+(i+j)%7)/8)
			}
		}
		a.RowPtr[i+1] = a.NNZ()
	}
	return a
}

// outliers is a B whose rows differ widely in size; a few have each column's largest element by far, and two are not
// finite.
func outliers(rows, cols int, wild bool) *formats.Dense[float32] {
	b := gen.Dense(rows, cols, 3, gen.Values{})
	for i := range rows {
		f := float32(math.Ldexp(1, i*7%24-20))
		if i%409 == 408 {
			f *= 1024
		}
		for j := range cols {
			b.Set(i, j, b.At(i, j)*f)
		}
	}
	if wild && rows > 5 {
		b.Set(rows/3, 0, float32(math.Inf(1)))
		b.Set(rows/2, min(1, cols-1), float32(math.NaN()))
	}
	return b
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func openCPU(t testing.TB) *spmm.Device {
	t.Helper()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// alone is the product in one process without this package.
func alone[T formats.Value](t testing.TB, dev *spmm.Device, o spmm.Options, a *formats.CSR[T], alpha float64,
	b *formats.Dense[T], beta float64, c *formats.Dense[float32]) *formats.Dense[float32] {
	t.Helper()
	if o.Mode != spmm.Reproducible && o.Format == "" {
		o.Format = "csr"
	}
	p, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out := c.Layout(false, 0)
	if _, err := spmm.Multiply(ctx, p, alpha, b, beta, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// job is a product to be done by ranks.
type job[T formats.Value] struct {
	a           *formats.CSR[T]
	b           *formats.Dense[T]
	c           *formats.Dense[float32]
	alpha, beta float64
	o           dist.Options
	uneven      bool // shares and B are cut at odd places
	infos       []dist.Info
	timings     []dist.Timing
	bits        int
	lossless    bool
}

// on does the job on that many ranks, and returns all of C.
func (q *job[T]) on(dev *spmm.Device, ranks int) (*formats.Dense[float32], error) {
	out := q.c.Layout(false, 0)
	q.infos, q.timings = make([]dist.Info, ranks), make([]dist.Timing, ranks)
	err := local.Run(ranks, func(c comm.Comm) error {
		s, err := q.share(c)
		if err != nil {
			return err
		}
		o := q.o
		if q.uneven && q.a.Cols != q.a.Rows {
			o.B = dist.Even(q.a.Cols, ranks)
			for r := 1; r < ranks; r++ {
				o.B[r] = o.B[r] / 2
			}
		}
		p, err := dist.Prepare(ctx, c, dev, s, o)
		if err != nil {
			return err
		}
		defer p.Close()
		lo, hi := p.Held().Range(c.Rank())
		first, last := p.Shares().Range(c.Rank())
		for range 2 { // the second time with buffers that are there
			mine := rowsOf(q.c, first, last)
			if q.timings[c.Rank()], err = dist.Multiply(ctx, p, q.alpha, rowsOf(q.b, lo, hi), q.beta, mine); err != nil {
				return err
			}
			for i := range mine.Rows {
				copy(out.Line(first+i), mine.Line(i))
			}
		}
		q.infos[c.Rank()] = p.Info()
		if c.Rank() == 0 {
			q.bits, q.lossless = p.Reproduced()
		}
		return nil
	})
	return out, err
}

// asAlone does the job on that many ranks, and holds C against that of one process.
func (q *job[T]) asAlone(t *testing.T, rt *rapid.T, dev *spmm.Device, ranks int) {
	got, err := q.on(dev, ranks)
	if err != nil {
		rt.Fatal(err)
	}
	if !got.Equal(alone(t, dev, q.o.Multiply, q.a, 1, q.b, q.beta, q.c)) {
		rt.Fatal("other bits than in one process")
	}
}

// share gives rank 0 all rows and has them balanced, or cuts them at odd places, with empty ranges.
func (q *job[T]) share(c comm.Comm) (dist.Share[T], error) {
	if q.uneven {
		lo, hi := q.a.Rows*c.Rank()*c.Rank()/c.Size()/c.Size(), q.a.Rows*(c.Rank()+1)*(c.Rank()+1)/c.Size()/c.Size()
		if c.Rank() == 1 { // rank 0's rows are none, rank 1 has them too
			lo = 0
		} else if c.Rank() == 0 && c.Size() > 1 {
			hi = 0
		}
		return dist.Share[T]{First: lo, A: q.a.Range(lo, hi)}, nil
	}
	var a *formats.CSR[T]
	if c.Rank() == 0 {
		a = q.a
	}
	s, err := dist.FromRoot(c, a)
	if err != nil {
		return s, err
	}
	return dist.Balance(ctx, c, s)
}

func rowsOf[T formats.Value](d *formats.Dense[T], lo, hi int) *formats.Dense[T] {
	out := formats.NewDense[T](hi-lo, d.Cols)
	for i := range out.Rows {
		copy(out.Line(i), d.Line(lo+i))
	}
	return out
}

var modes = map[string]spmm.Options{
	"fast":              {},
	"reproducible":      {Mode: spmm.Reproducible},
	"reproducible auto": {Mode: spmm.Reproducible, P: spmm.AutoP},
}

// The same bits on 1 to 7 ranks, in all modes, whatever is exchanged and however.
func TestSameBits(t *testing.T) {
	dev := openCPU(t)
	for name, a := range map[string]*formats.CSR[float32]{
		"graph": graph(1500, 9), "stencil": stencil(40), "wide": must(gen.CSR("gen:uniform,rows=90,cols=2000,density=0.02")),
		"tall": must(gen.CSR("gen:powerlaw,rows=2000,cols=70,nnz-per-row=5")), "diagonal": must(gen.CSR("gen:diagonal,rows=300")),
		"no entries": must(gen.CSR("gen:uniform,rows=50,density=0")),
		"three rows": must(gen.CSR("gen:uniform,rows=3,cols=40,density=0.5")),
	} {
		for mode, o := range modes {
			const n = 5
			b, c := outliers(a.Cols, n, true), gen.Dense(a.Rows, n, 4, gen.Values{})
			want := alone(t, dev, o, a, 0.5, b, 0.25, c)
			for _, ranks := range []int{1, 2, 3, 7} {
				for _, how := range []dist.Exchange{dist.Auto, dist.Rows, dist.Gather} {
					for _, uneven := range []bool{false, true} {
						q := &job[float32]{a: a, b: b, c: c, alpha: 0.5, beta: 0.25, o: dist.Options{Multiply: o, Exchange: how},
							uneven: uneven}
						got, err := q.on(dev, ranks)
						if err != nil {
							t.Fatalf("%s, %s, %d ranks, %v: %v", name, mode, ranks, how, err)
						}
						if !got.Equal(want) {
							t.Errorf("%s, %s, %d ranks, %v, uneven %t: other bits than in one process", name, mode, ranks, how, uneven)
						}
					}
				}
			}
		}
	}
}

// Any matrix, on any number of ranks, in f16 too.
func TestRandom(t *testing.T) {
	dev := openCPU(t)
	rapid.Check(t, func(rt *rapid.T) {
		m, k := rapid.IntRange(0, 60).Draw(rt, "m"), rapid.IntRange(0, 60).Draw(rt, "k")
		if rapid.Bool().Draw(rt, "square") {
			k = m
		}
		a := formats.Convert[half.F16](must(gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%v,seed=%d", m, k,
			rapid.SampledFrom([]float64{0, 0.02, 0.2, 1}).Draw(rt, "density"), rapid.IntRange(0, 99).Draw(rt, "seed")))))
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		b, c := formats.ConvertDense[half.F16](gen.Dense(k, n, 1, gen.Values{})), gen.Dense(m, n, 2, gen.Values{})
		q := &job[half.F16]{
			a: a, b: b, c: c, alpha: 1, beta: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "beta"),
			o: dist.Options{Exchange: rapid.SampledFrom([]dist.Exchange{dist.Auto, dist.Rows, dist.Gather}).Draw(rt,
				"exchange")},
			uneven: rapid.Bool().Draw(rt, "uneven"),
		}
		q.o.Multiply = modes[rapid.SampledFrom([]string{"fast", "reproducible", "reproducible auto"}).Draw(rt, "mode")]
		q.asAlone(t, rt, dev, rapid.IntRange(1, 6).Draw(rt, "ranks"))
	})
}

// Only the rows that are met cross, those that need none are multiplied meanwhile, and ranks have about the same work.
func TestExchange(t *testing.T) {
	dev := openCPU(t)
	const side, n, ranks = 48, 3, 4
	a := stencil(side)
	q := &job[float32]{a: a, b: outliers(a.Cols, n, false), c: formats.NewDense[float32](a.Rows, n), alpha: 1}
	if _, err := q.on(dev, ranks); err != nil {
		t.Fatal(err)
	}
	for r, i := range q.infos {
		neighbours := int64(2)
		if r == 0 || r == ranks-1 {
			neighbours = 1
		}
		if i.Gather || i.Halo != neighbours*side || i.Sent != neighbours*side {
			t.Errorf("rank %d of a stencil receives %d rows and sends %d (all: %t), want %d", r, i.Halo, i.Sent, i.Gather,
				neighbours*side)
		}
		if float64(i.Inner) < 0.8*float64(i.NNZ) {
			t.Errorf("rank %d: %d of %d entries are multiplied during the exchange", r, i.Inner, i.NNZ)
		}
		if mean := float64(a.NNZ()) / ranks; math.Abs(float64(i.NNZ)-mean) > 0.02*mean {
			t.Errorf("rank %d has %d of %d entries", r, i.NNZ, a.NNZ())
		}
		if tm := q.timings[r]; tm.Received != i.Halo*n*4 || tm.Sent != i.Sent*n*4 || tm.Host <= 0 || tm.Compute <= 0 {
			t.Errorf("rank %d: %+v", r, tm)
		}
	}
	q = &job[float32]{a: must(gen.CSR("gen:uniform,rows=400,density=0.2")), b: outliers(400, n, false),
		c: formats.NewDense[float32](400, n), alpha: 1}
	if _, err := q.on(dev, ranks); err != nil {
		t.Fatal(err)
	}
	for r, i := range q.infos {
		if !i.Gather || i.Halo != int64(400-i.Rows) {
			t.Errorf("rank %d meets nearly all rows, and receives %d (all: %t)", r, i.Halo, i.Gather)
		}
	}
}

// Ranks get entries in proportion to their speeds, and the bits do not depend on that.
func TestBalanceBySpeed(t *testing.T) {
	a := graph(3000, 9)
	speeds := []float64{1e9, 3e9, 1e8, 2e9}
	sum := 6.1e9
	err := local.Run(len(speeds), func(c comm.Comm) error {
		var all *formats.CSR[float32]
		if c.Rank() == 2 {
			all = a
		}
		s, err := dist.FromRoot(c, all)
		if err == nil {
			s, err = dist.BalanceBySpeed(ctx, c, s, speeds[c.Rank()])
		}
		if err != nil {
			return err
		}
		got, want := float64(s.A.NNZ())+float64(s.A.Rows), speeds[c.Rank()]/sum*float64(a.NNZ()+3000)
		if math.Abs(got-want) > 0.03*float64(a.NNZ()) || !s.A.Equal(a.Range(s.First, s.First+s.A.Rows)) {
			return fmt.Errorf("%g entries and rows, want about %g", got, want)
		}
		if _, err := dist.BalanceBySpeed(ctx, c, s, speeds[c.Rank()]-1e9); err == nil {
			return errors.New("a speed of 0 is taken")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// AutoP is found from all rows and columns, not from a rank's.
func TestAutoP(t *testing.T) {
	dev := openCPU(t)
	a := must(gen.CSR("gen:uniform,rows=40,cols=40,density=0.3,values=int"))
	for _, tt := range []struct {
		row  int
		x    float32
		want int
	}{{39, 0, 15}, {39, 0x1p-16, 23}, {0, 0x1p-25, 31}, {20, 1e-30, 47}} {
		b := gen.Dense(40, 4, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
		if tt.x != 0 {
			b.Set(tt.row, 2, tt.x)
		}
		q := &job[float32]{a: a, b: b, c: formats.NewDense[float32](40, 4), alpha: 1,
			o: dist.Options{Multiply: modes["reproducible auto"]}}
		if _, err := q.on(dev, 3); err != nil {
			t.Fatal(err)
		}
		if q.bits != tt.want || q.lossless != (tt.want < 47) {
			t.Errorf("%g in row %d: p = %d, lossless %t, want %d", tt.x, tt.row, q.bits, q.lossless, tt.want)
		}
	}
}

// What one rank is refused is an error on all, and none waits for another.
func TestRefusals(t *testing.T) {
	dev := openCPU(t)
	a := must(gen.CSR("gen:diagonal,rows=10"))
	whole := func(c comm.Comm) dist.Share[float32] {
		b := dist.Even(10, c.Size())
		lo, hi := b.Range(c.Rank())
		return dist.Share[float32]{First: lo, A: a.Range(lo, hi)}
	}
	prepare := func(c comm.Comm, s dist.Share[float32], o dist.Options) error {
		_, err := dist.Prepare(ctx, c, dev, s, o)
		return err
	}
	for name, tt := range map[string]struct {
		f    func(c comm.Comm) error
		want string
	}{
		"a share is missing": {func(c comm.Comm) error {
			s := whole(c)
			if c.Rank() == 1 {
				s.A = nil
			}
			return prepare(c, s, dist.Options{})
		}, "has no matrix"},
		"a gap": {func(c comm.Comm) error {
			s := whole(c)
			s.First += c.Rank()
			return prepare(c, s, dist.Options{})
		}, "begins with row"},
		"other columns": {func(c comm.Comm) error {
			s := whole(c)
			s.A.Cols += c.Rank()
			return prepare(c, s, dist.Options{})
		}, "columns"},
		"an invalid share": {func(c comm.Comm) error {
			s := whole(c)
			if c.Rank() == 2 {
				s.A.ColIdx = slices.Clone(s.A.ColIdx)
				s.A.ColIdx[0] = 99
			}
			return prepare(c, s, dist.Options{})
		}, "column 99"},
		"transposed": {func(c comm.Comm) error {
			return prepare(c, whole(c), dist.Options{Multiply: spmm.Options{Transpose: true}})
		}, "Transpose"},
		"another type": {func(c comm.Comm) error {
			return prepare(c, whole(c), dist.Options{Multiply: spmm.Options{Precision: dtype.F16}})
		}, "convert it"},
		"unknown format": {func(c comm.Comm) error {
			return prepare(c, whole(c), dist.Options{Multiply: spmm.Options{Format: "x"}})
		}, "unknown format"},
		"an unknown way": {func(c comm.Comm) error { return prepare(c, whole(c), dist.Options{Exchange: 9}) }, "exchange 9"},
		"bounds of B": {func(c comm.Comm) error { return prepare(c, whole(c), dist.Options{B: dist.Bounds{0, 5, 5, 9}}) },
			"not those of 10 rows"},
		"two matrices": {func(c comm.Comm) error { _, err := dist.FromRoot(c, a); return err }, "3 ranks have the matrix"},
		"B of other size": {func(c comm.Comm) error {
			p, err := dist.Prepare(ctx, c, dev, whole(c), dist.Options{})
			if err != nil {
				return err
			}
			_, err = dist.Multiply(ctx, p, 1, formats.NewDense[float32](10, 2), 0, formats.NewDense[float32](10, 2))
			return err
		}, "the plan takes B of"},
	} {
		errs := make([]error, 3)
		err := local.Run(3, func(c comm.Comm) error {
			errs[c.Rank()] = tt.f(c)
			return errs[c.Rank()]
		})
		for r, e := range errs {
			if e == nil || !strings.Contains(e.Error(), tt.want) || errors.Is(e, comm.ErrAborted) {
				t.Errorf("%s: rank %d: %v, want %q", name, r, e, tt.want)
			}
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func ExamplePrepare() {
	a := must(gen.CSR("gen:banded,rows=1000,band=2"))
	dev := must(spmm.Open(ctx, "cpu"))
	defer dev.Close()
	err := local.Run(2, func(c comm.Comm) error { // mpi.Init returns a Comm of processes
		bounds := dist.Even(a.Rows, c.Size())
		lo, hi := bounds.Range(c.Rank())
		p, err := dist.Prepare(ctx, c, dev, dist.Share[float32]{First: lo, A: a.Range(lo, hi)}, dist.Options{})
		if err != nil {
			return err
		}
		defer p.Close()
		b, x := formats.NewDense[float32](hi-lo, 8), formats.NewDense[float32](hi-lo, 8)
		t, err := dist.Multiply(ctx, p, 1, b, 0, x)
		if c.Rank() == 0 {
			fmt.Println(t.Received, "bytes of B received")
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 64 bytes of B received
	// <nil>
}

// upload returns a matrix on the device.
func upload[T formats.Value](t testing.TB, dev *spmm.Device, d *formats.Dense[T]) *spmm.Tensor[T] {
	x := must(spmm.NewTensor[T](dev, d.Rows, d.Cols, false))
	t.Cleanup(func() { x.Close() })
	if err := x.Upload(ctx, d); err != nil {
		panic(err)
	}
	return x
}

// counting is a device that counts the bytes which are allocated.
type counting struct {
	backend.Device
	bytes atomic.Int64
}

func (d *counting) Alloc(n int64) (backend.Buffer, error) {
	d.bytes.Add(n)
	return d.Device.Alloc(n)
}

// Products allocate on the device what a plan says that they take, but for small things.
func TestMemory(t *testing.T) {
	const n, ranks = 40, 2
	a := graph(3000, 9)
	for name, o := range map[string]dist.Options{
		"fast": {}, "reproducible": {Multiply: modes["reproducible"]}, "AutoP": {Multiply: modes["reproducible auto"]},
		"gathered": {Exchange: dist.Gather},
	} {
		err := local.Run(ranks, func(c comm.Comm) error {
			cpu, err := spmm.OpenBackend(ctx, "cpu")
			if err != nil {
				return err
			}
			device := &counting{Device: cpu}
			dev := spmm.NewDevice(device)
			defer dev.Close()
			lo, hi := dist.Even(a.Rows, ranks).Range(c.Rank())
			p, err := dist.Prepare(ctx, c, dev, dist.Share[float32]{First: lo, A: a.Range(lo, hi)}, o)
			if err != nil {
				return err
			}
			defer p.Close()
			b, err := spmm.NewTensor[float32](dev, hi-lo, n, false)
			if err != nil {
				return err
			}
			defer b.Close()
			y, err := spmm.NewTensor[float32](dev, hi-lo, n, false)
			if err != nil {
				return err
			}
			defer y.Close()
			if err := b.Upload(ctx, gen.DenseRows(lo, hi, n, 1, gen.Values{})); err != nil {
				return err
			}
			before := device.bytes.Load()
			if _, err := p.Run(ctx, 1, b, 0, y); err != nil {
				return err
			}
			took := device.bytes.Load() - before
			if o.Multiply.P == spmm.AutoP {
				took -= p.Info().Stats.StoredBytes // A is encoded when the precision is known
			}
			if want, _ := p.Memory(n); took < want/2 || took > want+want/8+1<<16 {
				return fmt.Errorf("products take %d bytes, and %d are said", took, want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
