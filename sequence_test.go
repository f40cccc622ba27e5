// Sequences and multiplications that are started: the same bits as one multiplication after the other, whatever the
// plans and the order of calls, and clear refusals. make test-race runs this with the race detector.

package spmm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// chain is plans of square matrices, and tensors of one shape that they multiply to and fro.
type chain struct {
	plans []*spmm.Plan
	x     []spmm.Operand // float32 row-major and column-major, f16, and bf16 column-major
	first []func() error // upload what each of x holds at the start
	bias  spmm.Operand
	steps []link
}

// link is one multiplication of a chain: x[to] = alpha·plans[plan]·x[from] + beta·x[to].
type link struct {
	plan, from, to int
	alpha, beta    float32
	epilogue       []spmm.Epilogue
}

// adder receives a chain's multiplications: a plan, at once, or a sequence.
type adder func(l link, p *spmm.Plan, b, c spmm.Operand) error

const chainSize, chainCols = 96, 20

// newChain prepares plans in several formats and modes, on either side, and draws multiplications with them whose
// staging differs.
func newChain(t *testing.T, dev *spmm.Device, seed uint64) *chain {
	t.Helper()
	r := rand.New(rand.NewPCG(11, seed))
	h := &chain{}
	for _, o := range []spmm.Options{
		{Format: "csr"}, {Format: "tiledcsr"}, {Format: "hrpb"}, {Format: "dense"}, {Mode: spmm.Reproducible, P: 23},
		{Mode: spmm.Reproducible, P: 15}, {Right: true}, {Right: true, Transpose: true, Mode: spmm.Reproducible, P: 23},
	} {
		n := chainSize
		if o.Right {
			n = chainCols
		}
		p, err := spmm.Prepare(ctx, dev, sparse[float32](r, n, n, 6), o)
		if errors.Is(err, spmm.ErrUnsupported) {
			continue // a format need not have a kernel everywhere
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		h.plans = append(h.plans, p)
	}
	addTensor[float32](t, h, dev, r, false)
	addTensor[float32](t, h, dev, r, true)
	addTensor[half.F16](t, h, dev, r, false)
	addTensor[half.BF16](t, h, dev, r, true)
	h.bias = newBias[half.F16](t, dev, r, false, chainCols, false).operand
	for range 24 {
		l := link{plan: r.IntN(len(h.plans)), from: r.IntN(4), alpha: 1. / 64, beta: float32(r.IntN(2)) / 4}
		l.to = (l.from + 1 + r.IntN(3)) % 4
		if r.IntN(3) == 0 {
			l.epilogue = []spmm.Epilogue{{ColBias: h.bias, Activation: spmm.ReLU}}
		}
		h.steps = append(h.steps, l)
	}
	return h
}

func addTensor[T formats.Value](t *testing.T, h *chain, dev *spmm.Device, r *rand.Rand, colMajor bool) {
	t.Helper()
	x := newTensor[T](t, dev, chainSize, chainCols, colMajor)
	t.Cleanup(func() { x.Close() })
	d := dense[T](r, chainSize, chainCols, 0, colMajor)
	h.x, h.first = append(h.x, x), append(h.first, func() error { return x.Upload(ctx, d) })
}

// reset makes the tensors what they were at the start.
func (h *chain) reset(t *testing.T) {
	t.Helper()
	for _, f := range h.first {
		must(t, f())
	}
}

// each gives the multiplications, in order, to f.
func (h *chain) each(t *testing.T, f adder) {
	t.Helper()
	for _, l := range h.steps {
		must(t, f(l, h.plans[l.plan], h.x[l.from], h.x[l.to]))
	}
}

func runNow(l link, p *spmm.Plan, b, c spmm.Operand) error {
	_, err := p.Run(ctx, float64(l.alpha), b, float64(l.beta), c, l.epilogue...)
	return err
}

func startNow(l link, p *spmm.Plan, b, c spmm.Operand) error {
	_, err := p.Start(ctx, float64(l.alpha), b, float64(l.beta), c, l.epilogue...)
	return err
}

func into(s *spmm.Sequence) adder {
	return func(l link, p *spmm.Plan, b, c spmm.Operand) error {
		return s.Add(p, float64(l.alpha), b, float64(l.beta), c, l.epilogue...)
	}
}

// contents downloads the tensors.
func (h *chain) contents(t *testing.T) (all [4]*formats.Dense[float32]) {
	t.Helper()
	for i, x := range h.x {
		var err error
		switch x := x.(type) {
		case *spmm.Tensor[float32]:
			all[i], err = download(x)
		case *spmm.Tensor[half.F16]:
			all[i], err = download(x)
		case *spmm.Tensor[half.BF16]:
			all[i], err = download(x)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func download[T formats.Value](x *spmm.Tensor[T]) (*formats.Dense[float32], error) {
	rows, cols := x.Dims()
	d := formats.NewDense[T](rows, cols)
	err := x.Download(ctx, d)
	return formats.ConvertDense[float32](d), err
}

func (h *chain) compare(t *testing.T, what string, want [4]*formats.Dense[float32]) {
	t.Helper()
	for i, got := range h.contents(t) {
		if err := differ(got, want[i]); err != nil {
			t.Fatalf("%s: tensor %d: %v", what, i, err)
		}
	}
}

// A sequence leaves the bits that its multiplications leave one by one, run after run.
func TestSequence(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for seed := range uint64(3) {
			h := newChain(t, dev, seed)
			s := dev.NewSequence()
			defer s.Close()
			if _, err := s.Run(ctx); err != nil {
				t.Fatalf("an empty sequence: %v", err)
			}
			h.each(t, into(s))
			var want [4][4]*formats.Dense[float32] // after each round
			h.reset(t)
			for i := range want {
				h.each(t, runNow)
				want[i] = h.contents(t)
			}
			h.reset(t)
			for i := range want {
				tm, err := s.Run(ctx)
				if err != nil || tm.Host <= 0 {
					t.Fatalf("run %d: %+v, %v", i, tm, err)
				}
				h.compare(t, "Run", want[i])
			}
			h.reset(t)
			h.each(t, startNow)
			h.compare(t, "one Start after the other", want[0])
			p, err := s.Start(ctx)
			if err != nil {
				t.Fatal(err)
			}
			must(t, second(s.Start(ctx)))
			h.each(t, runNow)
			h.compare(t, "Start, Start and Runs", want[3])
			for range 2 {
				if tm, err := p.Wait(ctx); err != nil || tm.Host <= 0 {
					t.Errorf("Wait: %+v, %v", tm, err)
				}
			}
			// Plans that multiply something larger get other buffers for staging; the sequence has its own.
			for _, p := range h.plans {
				rows, cols := p.Info().Rows, 300
				if rows == chainCols { // on the right
					rows, cols = cols, rows
				}
				b, c := dense[half.BF16](rand.New(rand.NewPCG(3, 4)), rows, cols, 0, true), formats.NewDense[half.F16](rows, cols)
				must(t, second(spmm.Multiply(ctx, p, 1, b, 0, c)))
			}
			h.reset(t)
			must(t, second(s.Run(ctx)))
			h.compare(t, "after larger multiplications", want[0])
			// More is added between runs.
			h.each(t, into(s))
			h.reset(t)
			must(t, second(s.Run(ctx)))
			h.compare(t, "a sequence of twice the length", want[1])
		}
	})
}

// A multiplication with few columns, then one with many: the buffer for staging that the first had is replaced.
func TestSequenceGrows(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(5, 6))
		a := sparse[float32](r, 80, 70, 5)
		p := prepare(t, dev, a, spmm.Options{Format: "csr"})
		s := dev.NewSequence()
		defer s.Close()
		var want, got []*formats.Dense[half.F16]
		var y []*spmm.Tensor[half.F16]
		for _, n := range []int{3, 40, 200} {
			b, c := dense[half.F16](r, 70, n, 0, true), dense[half.F16](r, 80, n, 0, true)
			u, err1 := spmm.NewTensor[half.F16](dev, 70, n, true)
			v, err2 := spmm.NewTensor[half.F16](dev, 80, n, true)
			must(t, errors.Join(err1, err2, u.Upload(ctx, b), v.Upload(ctx, c), s.Add(p, 2, u, 1, v)))
			out := *c
			out.Data = make([]half.F16, len(c.Data))
			y, got, want = append(y, v), append(got, &out), append(want, expected(2, a, b, 1, c))
		}
		must(t, second(s.Run(ctx)))
		for i := range y {
			must(t, y[i].Download(ctx, got[i]))
			same(t, got[i], want[i])
		}
	})
}

// Matrices and tensors in blocks are recorded block by block, and a closed sequence leaves no buffer behind.
func TestSequenceInBlocks(t *testing.T) {
	dev, counted := openSmall(t, 30_000)
	r := rand.New(rand.NewPCG(5, 13))
	a, b := sparse[float32](r, 700, 200, 3), dense[half.F16](r, 200, 100, 0, false)
	p := prepare(t, dev, a, spmm.Options{Format: "csr"})
	x, y, err := spmm.TensorsFor[half.F16, half.F16](p, 100) // both are staged
	if err != nil {
		t.Fatal(err)
	}
	before := counted.live
	s := dev.NewSequence()
	got, zero := formats.NewDense[half.F16](700, 100), formats.NewDense[half.F16](700, 100)
	want := expected(1, a, b, 2, expected(1, a, b, 0, zero))
	must(t, errors.Join(x.Upload(ctx, b), s.Add(p, 1, x, 0, y), s.Add(p, 1, x, 2, y)))
	for range 3 {
		must(t, second(s.Run(ctx)))
		must(t, y.Download(ctx, got))
		same(t, got, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if counted.live != before {
		t.Errorf("%d buffers of the sequence are left", counted.live-before)
	}
}

// New values of a matrix are those of the next run; values that are set after a Start do not reach what was started.
func TestSequenceValues(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(5, 7))
		a := sparse[float32](r, 50, 40, 5)
		p := prepare(t, dev, a, spmm.Options{})
		x, y := tensorsFor[float32, float32](t, p, 9)
		b, c, zero := dense[float32](r, 40, 9, 0, false), formats.NewDense[float32](50, 9), formats.NewDense[float32](50, 9)
		s := dev.NewSequence()
		defer s.Close()
		must(t, errors.Join(x.Upload(ctx, b), s.Add(p, 1, x, 0, y)))
		for round := range 4 {
			must(t, second(s.Start(ctx)))
			want := expected(1, a, b, 0, zero)
			for i := range a.Val {
				a.Val[i] = float32((i+round)%7) - 3
			}
			must(t, errors.Join(spmm.SetValues(ctx, p, a.Val), y.Download(ctx, c)))
			same(t, c, want)
		}
	})
}

// While the device multiplies, the host prepares another matrix; operands may be closed once Start has returned.
func TestStartThenPrepare(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(5, 8))
		a, b := sparse[float32](r, 60, 60, 4), dense[float32](r, 60, 7, 0, false)
		c, zero := formats.NewDense[float32](60, 7), formats.NewDense[float32](60, 7)
		for _, mode := range modes {
			p := prepare(t, dev, a, mode.options)
			x, y := tensorsFor[float32, float32](t, p, 7)
			must(t, x.Upload(ctx, b))
			pending, err := p.Start(ctx, 1, x, 0, y)
			if err != nil {
				t.Fatal(err)
			}
			next, err := spmm.Prepare(ctx, dev, a, mode.options)
			must(t, errors.Join(err, x.Close(), p.Close(), y.Download(ctx, c), y.Close()))
			same(t, c, expected(1, a, b, 0, zero))
			if _, err := pending.Wait(ctx); err != nil {
				t.Errorf("Wait, all operands closed: %v", err)
			}
			must(t, second(spmm.Multiply(ctx, next, 1, b, 0, c)))
			same(t, c, expected(1, a, b, 0, zero))
		}
	})
}

// What cannot be recorded or started is refused with the reason, and leaves the sequence as it was.
func TestSequenceRefuses(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		other := openCPU(t)
		r := rand.New(rand.NewPCG(5, 9))
		a, b := sparse[float32](r, 30, 20, 4), dense[float32](r, 20, 7, 0, false)
		prepare := func(dev *spmm.Device, o spmm.Options) (*spmm.Plan, *spmm.Tensor[float32], *spmm.Tensor[float32]) {
			p := prepare(t, dev, a, o)
			x, y := tensorsFor[float32, float32](t, p, 7)
			return p, x, y
		}
		p, x, y := prepare(dev, spmm.Options{})
		auto, _, _ := prepare(dev, spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP})
		foreign, u, v := prepare(other, spmm.Options{})
		_, w, gone := prepare(dev, spmm.Options{})
		gone.Close()
		must(t, x.Upload(ctx, b))
		s := dev.NewSequence()
		must(t, s.Add(p, 1, x, 0, y))
		for _, c := range []struct {
			what string
			err  error
			want string
		}{
			{"no plan", s.Add(nil, 1, x, 0, y), "the plan is missing"},
			{"no B", s.Add(p, 1, nil, 0, y), "missing"},
			{"another device's plan", s.Add(foreign, 1, u, 0, v), "in a sequence on"},
			{"another device's tensor", s.Add(p, 1, u, 0, y), "one device"},
			{"AutoP", s.Add(auto, 1, x, 0, y), "fixed P"},
			{"B and C alike", s.Add(p, 1, x, 0, x), "two matrices"},
			{"shapes", s.Add(p, 1, y, 0, x), "shapes do not fit"},
			{"a closed tensor", s.Add(p, 1, w, 0, gone), "after Close"},
			{"two epilogues", s.Add(p, 1, x, 0, y, spmm.Epilogue{}, spmm.Epilogue{}), "pilogue"},
			{"Start of shapes", second(p.Start(ctx, 1, y, 0, x)), "shapes do not fit"},
			{"Start of a closed tensor", second(p.Start(ctx, 1, x, 0, gone)), "after Close"},
		} {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "\n") {
				t.Errorf("%s: error %v, want one that says %q", c.what, c.err, c.want)
			}
		}
		done, cancel := context.WithCancel(ctx)
		cancel()
		for what, err := range map[string]error{
			"Run": second(s.Run(done)), "Start": second(s.Start(done)), "Plan.Start": second(p.Start(done, 1, x, 0, y)),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s with a cancelled context: %v", what, err)
			}
		}
		c := formats.NewDense[float32](30, 7)
		must(t, second(s.Run(ctx)))
		must(t, y.Download(ctx, c))
		same(t, c, expected(1, a, b, 0, formats.NewDense[float32](30, 7)))
	})
}

// Whatever a sequence uses is closed: it says so, and uses nothing that was freed.
func TestSequenceOfClosed(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(5, 10))
		a := sparse[float32](r, 30, 30, 4)
		for _, runs := range []int{0, 3} {
			for _, what := range []string{"B", "C", "plan", "sequence"} {
				p := prepare(t, dev, a, spmm.Options{Format: "csr"})
				x, y := tensorsFor[float32, float32](t, p, 7)
				s := dev.NewSequence()
				must(t, errors.Join(x.Upload(ctx, dense[float32](r, 30, 7, 0, false)), s.Add(p, 1, x, 0, y), s.Add(p, 1, x, 1, y)))
				var pending *spmm.Pending
				for range runs {
					var err error
					pending, err = s.Start(ctx)
					must(t, err)
				}
				shut := map[string]func() error{"B": x.Close, "C": y.Close, "plan": p.Close, "sequence": s.Close}[what]
				must(t, errors.Join(shut(), shut()))
				if pending != nil {
					if _, err := pending.Wait(ctx); err != nil {
						t.Errorf("%s closed after Start: %v", what, err)
					}
				}
				for call, err := range map[string]error{"Run": second(s.Run(ctx)), "Start": second(s.Start(ctx)),
					"Add": s.Add(p, 1, x, 0, y)} {
					if err == nil || !strings.Contains(err.Error(), "used after Close") {
						t.Errorf("%s with a closed %s: error %v", call, what, err)
					}
				}
				if err := errors.Join(s.Close(), s.Close()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Closing the device waits for what was started, which can still be asked for; then nothing runs.
func TestSequenceOfClosedDevice(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		h := newChain(t, dev, 9)
		h.reset(t)
		s := dev.NewSequence()
		h.each(t, into(s))
		must(t, second(s.Run(ctx)))
		p, err := s.Start(ctx)
		must(t, errors.Join(err, dev.Close()))
		if _, err := p.Wait(ctx); err != nil {
			t.Errorf("Wait after the device was closed: %v", err)
		}
		if _, err := s.Run(ctx); err == nil {
			t.Error("Run on a closed device: no error")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A repeated run allocates nothing, staging and epilogues included. (The CPU's kernels of some formats do.)
func TestSequenceAllocatesNothing(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		h := newChain(t, dev, 1)
		for i := range h.steps {
			h.steps[i].plan = 0
		}
		h.reset(t)
		s := dev.NewSequence()
		defer s.Close()
		h.each(t, into(s))
		run := func() {
			must(t, second(s.Run(ctx)))
		}
		for range 3 {
			run()
		}
		allocatesNothing(t, "a run", run)
	})
}

// Goroutines run, start, await and close sequences that share a plan, on one device.
func TestConcurrentSequences(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(5, 11))
	a := sparse[float32](r, 60, 60, 4)
	p := prepare(t, dev, a, spmm.Options{Format: "csr"})
	defer p.Close()
	var g errgroup.Group
	for i := range 6 {
		b := dense[float32](r, 60, 5+i, 0, false)
		zero := formats.NewDense[float32](60, 5+i)
		want := expected(1, a, expected(1, a, b, 0, zero), 0, zero)
		x, y := tensorsFor[float32, float32](t, p, 5+i)
		z, _ := tensorsFor[float32, float32](t, p, 5+i)
		g.Go(func() error {
			s := dev.NewSequence()
			err := errors.Join(x.Upload(ctx, b), s.Add(p, 1, x, 0, y), s.Add(p, 1, y, 0, z))
			got := formats.NewDense[float32](60, 5+i)
			for turn := 0; turn < 20 && err == nil; turn++ {
				var pending *spmm.Pending
				if pending, err = s.Start(ctx); err != nil {
					break
				}
				var both errgroup.Group
				both.Go(func() error { return second(pending.Wait(ctx)) })
				both.Go(func() error { return second(s.Run(ctx)) })
				err = errors.Join(both.Wait(), z.Download(ctx, got), differ(got, want))
			}
			return errors.Join(err, s.Close())
		})
	}
	must(t, g.Wait())
}

// A plan or a tensor that is closed under a running sequence: its calls end without an error, or say that it was
// closed.
func TestCloseUnderSequence(t *testing.T) {
	for _, what := range []string{"B", "C", "plan", "sequence", "device"} {
		dev := openCPU(t)
		r := rand.New(rand.NewPCG(5, 12))
		p := prepare(t, dev, sparse[float32](r, 200, 200, 4), spmm.Options{Format: "csr"})
		x, y := tensorsFor[float32, float32](t, p, 33)
		s := dev.NewSequence()
		must(t, errors.Join(x.Upload(ctx, dense[float32](r, 200, 33, 0, false)), s.Add(p, 1, x, 0, y), s.Add(p, 1, x, 0, y)))
		calls := []func() error{
			func() error { return second(s.Run(ctx)) },
			func() error {
				p, err := s.Start(ctx)
				if err != nil {
					return err
				}
				return second(p.Wait(ctx))
			},
		}
		shut := map[string]func() error{"B": x.Close, "C": y.Close, "plan": p.Close, "sequence": s.Close,
			"device": dev.Close}[what]
		if err := closeUnder(calls, 200, shut); err != nil {
			t.Errorf("%s closed: %v", what, err)
		}
	}
}
