// Devices on which one call fails, for every call: the error says so, nothing stays allocated, no output is wrong, and
// the next call works. (SQLite tests so: https://www.sqlite.org/testing.html, section 3.)

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/rowcopy"
)

// faults counts the calls of all devices of a test, and lets one fail, or from that on all.
type faults struct {
	at   int  // the number of the call; 0: none
	lost bool // and all after it

	mu    sync.Mutex
	calls int
	hit   string // the call that failed
	live  int    // buffers, recordings and host memory
}

var errFault = errors.New("this call fails")

// call counts a call, and returns its error. Devices that lack memory, or do not compile a kernel, say so.
func (f *faults) call(name string, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	switch {
	case f.at == 0 || f.calls != f.at && (!f.lost || f.calls < f.at):
		return nil
	case f.lost:
		err = backend.ErrDeviceLost
	}
	if f.hit == "" {
		f.hit = name
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (f *faults) count(n int) {
	f.mu.Lock()
	f.live += n
	f.mu.Unlock()
}

// failing is a device whose calls are counted. It and its buffers have what some devices can do besides, so that the
// code for these is tried too.
type failing struct {
	backend.Device
	*faults
}

func (d *failing) Alloc(n int64) (backend.Buffer, error) {
	if err := d.call("Alloc", backend.ErrOutOfMemory); err != nil {
		return nil, err
	}
	b, err := d.Device.Alloc(n)
	if err != nil {
		return nil, err
	}
	d.count(1)
	return &failingBuffer{Buffer: b, faults: d.faults, close: sync.OnceFunc(func() { d.count(-1) })}, nil
}

func (d *failing) AllocHost(n int64) (backend.HostMemory, error) {
	if err := d.call("AllocHost", backend.ErrOutOfMemory); err != nil {
		return nil, err
	}
	d.count(1)
	return &hostMemory{make([]byte, n), sync.OnceFunc(func() { d.count(-1) })}, nil
}

type hostMemory struct {
	mem   []byte
	close func()
}

func (m *hostMemory) Bytes() []byte { return m.mem }
func (m *hostMemory) Close() error  { m.close(); return nil }

func (d *failing) Load(b backend.Binary) (backend.Kernel, error) {
	if err := d.call("Load", backend.ErrCompile); err != nil {
		return nil, err
	}
	return d.Device.Load(b)
}

// inner are the launches for the device that does the work.
func inner(ls []backend.Launch) []backend.Launch {
	out := make([]backend.Launch, len(ls))
	for i, l := range ls {
		args := make([]backend.Buffer, len(l.Args))
		for j, a := range l.Args {
			args[j] = a.(*failingBuffer).Buffer
		}
		l.Args = args
		out[i] = l
	}
	return out
}

func (d *failing) Run(ctx context.Context, ls ...backend.Launch) (backend.Timing, error) {
	if err := d.call("Run", errFault); err != nil {
		return backend.Timing{}, err
	}
	return d.Device.Run(ctx, inner(ls)...)
}

func (d *failing) Start(ctx context.Context, ls ...backend.Launch) (backend.Pending, error) {
	if err := d.call("Start", errFault); err != nil {
		return nil, err
	}
	p, err := d.Device.Start(ctx, inner(ls)...)
	return &failingPending{Pending: p, faults: d.faults}, err
}

// failingPending keeps to its first answer.
type failingPending struct {
	backend.Pending
	*faults
	mu     sync.Mutex
	err    error
	waited bool
}

func (p *failingPending) Wait(ctx context.Context) (backend.Timing, error) {
	t, err := p.Pending.Wait(ctx)
	if err != nil {
		return t, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		p.waited, p.err = true, p.call("Wait", errFault)
	}
	return t, p.err
}

func (d *failing) Record(ls ...backend.Launch) (backend.Recording, error) {
	if err := d.call("Record", backend.ErrOutOfMemory); err != nil {
		return nil, err
	}
	r, err := d.Device.Record(inner(ls)...)
	if err != nil {
		return nil, err
	}
	d.count(1)
	return &failingRecording{Recording: r, faults: d.faults, close: sync.OnceFunc(func() { d.count(-1) })}, nil
}

type failingRecording struct {
	backend.Recording
	*faults
	close func()
}

func (r *failingRecording) Run(ctx context.Context) (backend.Timing, error) {
	if err := r.call("Recording.Run", errFault); err != nil {
		return backend.Timing{}, err
	}
	return r.Recording.Run(ctx)
}

func (r *failingRecording) Start(ctx context.Context) (backend.Pending, error) {
	if err := r.call("Recording.Start", errFault); err != nil {
		return nil, err
	}
	p, err := r.Recording.Start(ctx)
	return &failingPending{Pending: p, faults: r.faults}, err
}

func (r *failingRecording) Close() error { r.close(); return r.Recording.Close() }

type failingBuffer struct {
	backend.Buffer
	*faults
	close func()
}

func (b *failingBuffer) Close() error { b.close(); return b.Buffer.Close() }

func (b *failingBuffer) Write(ctx context.Context, off int64, p []byte) error {
	if err := b.call("Write", errFault); err != nil {
		return err
	}
	return b.Buffer.Write(ctx, off, p)
}

func (b *failingBuffer) Read(ctx context.Context, off int64, p []byte) error {
	if err := b.call("Read", errFault); err != nil {
		return err
	}
	return b.Buffer.Read(ctx, off, p)
}

func (b *failingBuffer) WriteLines(ctx context.Context, l backend.Lines, p []byte) error {
	if err := b.call("WriteLines", errFault); err != nil {
		return err
	}
	return b.Buffer.(backend.LineCopier).WriteLines(ctx, l, p)
}

func (b *failingBuffer) ReadLines(ctx context.Context, l backend.Lines, p []byte) error {
	if err := b.call("ReadLines", errFault); err != nil {
		return err
	}
	return b.Buffer.(backend.LineCopier).ReadLines(ctx, l, p)
}

func (b *failingBuffer) WriteAside(ctx context.Context, off int64, p []byte) error {
	if err := b.call("WriteAside", errFault); err != nil {
		return err
	}
	return b.Buffer.Write(ctx, off, p)
}

func (b *failingBuffer) CanCopyFrom(backend.Buffer) bool { return true }

func (b *failingBuffer) CopyFrom(ctx context.Context, src backend.Buffer, l backend.PeerLines) error {
	if err := b.call("CopyFrom", errFault); err != nil {
		return err
	}
	line := make([]byte, l.Width)
	for i := range int64(l.Count) {
		if err := src.(*failingBuffer).Buffer.Read(ctx, l.SrcOff+i*l.SrcPitch, line); err != nil {
			return err
		}
		if err := b.Buffer.Write(ctx, l.Off+i*l.Pitch, line); err != nil {
			return err
		}
	}
	return nil
}

// scene is one run of a program on devices on which a call fails. Its data are whole numbers, so that outputs have one
// right answer.
type scene struct {
	*faults
	t    *testing.T
	devs []*spmm.Device
	outs []*formats.Dense[float32]
	open []io.Closer // what is closed at the scene's end, however that comes
}

// sceneOver ends a scene whose device is lost.
type sceneOver struct{}

// do makes a call. If it fails because of the fault, the error says so, and the call works the second time.
func (x *scene) do(what string, call func() error) {
	x.t.Helper()
	err := call()
	if err == nil {
		return
	}
	if x.hit == "" || strings.Contains(err.Error(), "\n") {
		x.t.Errorf("%s: %v", what, err)
		panic(sceneOver{})
	}
	if !errors.Is(err, errFault) && !errors.Is(err, backend.ErrOutOfMemory) && !errors.Is(err, backend.ErrCompile) &&
		!errors.Is(err, backend.ErrDeviceLost) {
		x.t.Errorf("%s: the error does not say what happened: %v", what, err)
	}
	if x.lost {
		if !errors.Is(err, backend.ErrDeviceLost) {
			x.t.Errorf("%s, the device is lost: %v", what, err)
		}
		panic(sceneOver{})
	}
	if err := call(); err != nil {
		x.t.Errorf("%s, again after it failed in %s: %v", what, x.hit, err)
		panic(sceneOver{})
	}
}

// operand is a matrix of whole numbers.
func operand(rows, cols int, seed uint64) *formats.Dense[float32] {
	return gen.Dense(rows, cols, seed, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
}

func (x *scene) keep(d *formats.Dense[float32]) { x.outs = append(x.outs, d.Layout(d.ColMajor, 0)) }

func (x *scene) prepare(a formats.Encoded, o spmm.Options) (p *spmm.Plan) {
	x.do("Prepare", func() (err error) { p, err = spmm.Prepare(ctx, x.devs[0], a, o); return err })
	x.open = append(x.open, p)
	return p
}

// multiply multiplies by 5 and by 9 columns of the host.
func (x *scene) multiply(p *spmm.Plan, b, c [2]int, right bool) {
	for _, n := range []int{5, 9} {
		if right {
			b[0], c[0] = n, n
		} else {
			b[1], c[1] = n, n
		}
		var out *formats.Dense[float32]
		x.do("Multiply", func() error {
			out = operand(c[0], c[1], 2)
			_, err := spmm.Multiply(ctx, p, 2, operand(b[0], b[1], 1), -1, out)
			return err
		})
		x.keep(out)
	}
}

func (x *scene) tensor(d *formats.Dense[float32]) (t *spmm.Tensor[float32]) {
	x.do("NewTensor", func() (err error) {
		t, err = spmm.NewTensor[float32](x.devs[0], d.Rows, d.Cols, d.ColMajor)
		return err
	})
	x.open = append(x.open, t)
	x.do("Upload", func() error { return t.Upload(ctx, d) })
	return t
}

func (x *scene) download(t *spmm.Tensor[float32]) {
	rows, cols := t.Dims()
	d := formats.NewDense[float32](rows, cols)
	x.do("Download", func() error { return t.Download(ctx, d) })
	x.keep(d)
}

const faultRows, faultCols = 70, 90

// faultMatrix has empty rows, long ones and a pattern that every format takes.
func faultMatrix(t testing.TB) *formats.CSR[float32] {
	a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=0.2,values=int:-4:4", faultRows, faultCols))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// programs are the scenes' programs.
func programs() map[string]func(*scene) {
	list := map[string]func(*scene){
		"right": func(x *scene) {
			p := x.prepare(faultMatrix(x.t), spmm.Options{Right: true})
			x.multiply(p, [2]int{0, faultRows}, [2]int{0, faultCols}, true)
		},
		"transposed": func(x *scene) {
			p := x.prepare(faultMatrix(x.t), spmm.Options{Transpose: true})
			x.multiply(p, [2]int{faultRows, 0}, [2]int{faultCols, 0}, false)
		},
		"f64": func(x *scene) {
			p := x.prepare(faultMatrix(x.t), spmm.Options{Precision: dtype.F64})
			x.multiply(p, [2]int{faultCols, 0}, [2]int{faultRows, 0}, false)
		},
		"quantised": func(x *scene) {
			p := x.prepare(formats.Convert[float32](faultMatrix(x.t)), spmm.Options{Quantise: dtype.S8, Precision: dtype.F16})
			x.multiply(p, [2]int{faultCols, 0}, [2]int{faultRows, 0}, false)
		},
		"tensors":  tensorScene,
		"sequence": sequenceScene,
		"rows":     rowsScene,
		"sampled":  func(x *scene) { sampleScene(x, spmm.Options{Format: "csr"}) },
		"sampled, in f16": func(x *scene) {
			sampleScene(x, spmm.Options{Precision: dtype.F16, Transpose: true})
		},
		"sampled reproducibly": func(x *scene) { sampleScene(x, spmm.Options{Mode: spmm.Reproducible}) },
		"columns of a group":   func(x *scene) { groupScene(x, faultMatrix(x.t), spmm.Options{Split: spmm.ByColumns}) },
		"rows of a group":      func(x *scene) { groupScene(x, faultMatrix(x.t), spmm.Options{Split: spmm.ByRows}) },
		"a group that chooses": func(x *scene) {
			groupScene(x, faultMatrix(x.t), spmm.Options{From: spmm.On(0)})
		},
		"streamed": func(x *scene) {
			groupScene(x, tall(x.t), spmm.Options{Split: spmm.ByRows, Memory: 120 << 10, Cols: 8})
		},
	}
	for _, format := range append([]string{""}, spmm.Formats()...) {
		list["format "+format] = func(x *scene) {
			var a formats.Encoded = faultMatrix(x.t)
			if format == "nm" || format == "sparse24r" || format == "jigsaw" {
				a = nmMatrix(x.t)
			}
			p := x.prepare(a, spmm.Options{Format: format})
			rows, cols := a.Dims()
			x.multiply(p, [2]int{cols, 0}, [2]int{rows, 0}, false)
			x.newValues(p, a.(*formats.CSR[float32]))
			x.multiply(p, [2]int{cols, 0}, [2]int{rows, 0}, false)
		}
	}
	for _, p := range []int{spmm.AutoP, 23, 47} {
		list[fmt.Sprint("reproducible ", p)] = func(x *scene) {
			p := x.prepare(faultMatrix(x.t), spmm.Options{Mode: spmm.Reproducible, P: p})
			x.multiply(p, [2]int{faultCols, 0}, [2]int{faultRows, 0}, false)
			x.newValues(p, faultMatrix(x.t))
			x.multiply(p, [2]int{faultCols, 0}, [2]int{faultRows, 0}, false)
		}
	}
	return list
}

// tall is a matrix whose half does not fit a device that is told to use little.
func tall(t testing.TB) *formats.CSR[float32] {
	a, err := gen.CSR("gen:uniform,rows=2000,cols=90,density=0.2,values=int:-4:4")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func nmMatrix(t testing.TB) *formats.CSR[float32] {
	a, err := gen.CSR("gen:nm,rows=64,cols=96,n=2,m=4,values=int:1:4")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newValues replaces a plan's values, by those of the host and of a tensor.
func (x *scene) newValues(p *spmm.Plan, a *formats.CSR[float32]) {
	v := make([]float32, len(a.Val))
	for i := range v {
		v[i] = float32(i%5 - 2)
	}
	x.do("SetValues", func() error { return spmm.SetValues(ctx, p, v) })
	t := x.tensor(&formats.Dense[float32]{Rows: 1, Cols: len(v), LD: len(v), Data: v})
	x.do("Plan.SetValues", func() error { return p.SetValues(ctx, t) })
}

// tensorScene multiplies tensors in both orders, with an epilogue, and starts to.
func tensorScene(x *scene) {
	p := x.prepare(faultMatrix(x.t), spmm.Options{})
	bias := x.tensor(operand(faultRows, 1, 3))
	e := spmm.Epilogue{RowBias: bias, Activation: spmm.ReLU}
	for _, colMajor := range []bool{false, true} {
		before := operand(faultRows, 7, 2).Layout(colMajor, 0)
		b, c := x.tensor(operand(faultCols, 7, 1).Layout(colMajor, 0)), x.tensor(before)
		x.do("Run", func() error {
			if err := c.Upload(ctx, before); err != nil {
				return err
			}
			_, err := p.Run(ctx, 1, b, 2, c, e)
			return err
		})
		x.download(c)
		x.do("Start", func() error {
			if err := c.Upload(ctx, before); err != nil {
				return err
			}
			s, err := p.Start(ctx, 3, b, 1, c, e)
			if err == nil {
				_, err = s.Wait(ctx)
			}
			return err
		})
		x.download(c)
	}
	x.do("TensorsFor", func() error {
		b, c, err := spmm.TensorsFor[float32, float32](p, 3)
		if err == nil {
			err = errors.Join(b.Close(), c.Close())
		}
		return err
	})
}

// sequenceScene records two multiplications and new values, and runs them twice.
func sequenceScene(x *scene) {
	a := faultMatrix(x.t)
	p := x.prepare(a, spmm.Options{Format: "tiledcsr"})
	q := x.prepare(a, spmm.Options{Transpose: true, Mode: spmm.Reproducible})
	b, c := x.tensor(operand(faultCols, 7, 1).Layout(true, 0)), x.tensor(operand(faultRows, 7, 2))
	v := x.tensor(operand(1, len(a.Val), 5))
	s := x.devs[0].NewSequence()
	x.open = append(x.open, s)
	x.do("Add", func() error { return s.Add(p, 1, b, 0, c) })
	x.do("AddValues", func() error { return s.AddValues(p, v) })
	x.do("Add", func() error { return s.Add(q, 1, c, 1, b) })
	start := func() error { return b.Upload(ctx, operand(faultCols, 7, 1).Layout(true, 0)) }
	x.do("Sequence.Run", func() error {
		err := start()
		if err == nil {
			err = p.SetValues(ctx, v)
		}
		if err == nil {
			_, err = s.Run(ctx)
		}
		return err
	})
	x.download(b)
	x.do("Sequence.Start", func() error {
		if err := start(); err != nil {
			return err
		}
		w, err := s.Start(ctx)
		if err == nil {
			_, err = w.Wait(ctx)
		}
		return err
	})
	x.download(b)
}

// sampleScene samples products twice, scaled, and with the softmax of rows where that is possible.
func sampleScene(x *scene, o spmm.Options) {
	a := faultMatrix(x.t)
	p := x.prepare(a, o)
	m, k := faultRows, faultCols
	if o.Transpose {
		m, k = k, m
	}
	b, c := x.tensor(operand(m, 6, 1)), x.tensor(operand(k, 6, 2))
	scale, s := x.tensor(operand(len(a.Val), 1, 3)), x.tensor(operand(len(a.Val), 1, 4))
	e := spmm.SampleEpilogue{Scale: scale, Softmax: o.Mode == spmm.Fast && !o.Transpose}
	x.do("Sample", func() error { _, err := p.Sample(ctx, b, c, s, e); return err })
	x.do("StartSample", func() error {
		w, err := p.StartSample(ctx, b, c, s, e)
		if err == nil {
			_, err = w.Wait(ctx)
		}
		return err
	})
	x.download(s)
}

// rowsScene copies rows, and looks at columns.
func rowsScene(x *scene) {
	src, dst := x.tensor(operand(30, 6, 1)), x.tensor(operand(40, 6, 2))
	dev, err := access.Device(x.devs[0])
	if err != nil {
		x.t.Fatal(err)
	}
	var l *rowcopy.List
	x.do("NewRowList", func() (err error) {
		l, err = rowcopy.NewList(ctx, dev, []int32{7, 3, 29})
		return err
	})
	x.open = append(x.open, l)
	x.do("CopyRows", func() error {
		p, err := rowcopy.Start(ctx, dev, access.Tensor(dst), access.Tensor(src), rowcopy.Rows{From: l, Dst: 2})
		if err == nil {
			_, err = p.Wait(ctx)
		}
		return err
	})
	x.download(dst)
	x.do("ColumnRanges", func() error { _, err := reproducible.ColumnRanges(ctx, dev, access.Tensor(src)); return err })
}

// groupScene multiplies on two devices, data of the host and tensors that must be moved.
func groupScene(x *scene, a *formats.CSR[float32], o spmm.Options) {
	g, err := spmm.Join(x.devs...)
	if err != nil {
		x.t.Fatal(err)
	}
	var p *spmm.Plan
	x.do("Group.Prepare", func() (err error) { p, err = spmm.Prepare(ctx, g, a, o); return err })
	x.open = append(x.open, p)
	b, before := operand(a.Cols, 8, 1), operand(a.Rows, 8, 2)
	var out *formats.Dense[float32]
	x.do("MultiplyGroup", func() error {
		out = before.Layout(false, 0)
		_, err := spmm.Multiply(ctx, p, 2, b, -1, out)
		return err
	})
	x.keep(out)
	tensor := func(d *formats.Dense[float32], at spmm.Placement) (t *spmm.Tensor[float32]) {
		x.do("NewGroupTensor", func() (err error) {
			t, err = spmm.NewTensorAt[float32](p, d.Rows, d.Cols, at)
			return err
		})
		x.open = append(x.open, t)
		return t
	}
	tb, tc, bias := tensor(b, spmm.On(0)), tensor(before, spmm.On(1)), tensor(operand(a.Rows, 1, 3), spmm.On(1))
	x.do("Plan.Run on several devices", func() error {
		for _, u := range []error{tb.Upload(ctx, b), tc.Upload(ctx, before), bias.Upload(ctx, operand(a.Rows, 1, 3))} {
			if u != nil {
				return u
			}
		}
		_, err := p.Run(ctx, 1, tb, 1, tc, spmm.Epilogue{RowBias: bias})
		return err
	})
	out = formats.NewDense[float32](a.Rows, 8)
	x.do("Download", func() error { return tc.Download(ctx, out) })
	x.keep(out)
	if o.Memory > 0 {
		return
	}
	x.do("SetGroupValues", func() error { return spmm.SetValues(ctx, p, operand(1, len(a.Val), 4).Data) })
	x.do("MultiplyGroup", func() error {
		out = before.Layout(false, 0)
		_, err := spmm.Multiply(ctx, p, 1, b, 0, out)
		return err
	})
	x.keep(out)
}

// play runs a program on two devices, with a fault, and returns how it went.
func play(t *testing.T, f *faults, program func(*scene)) *scene {
	t.Helper()
	driver, err := backend.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	x := &scene{faults: f, t: t}
	for range 2 {
		d, err := driver.Open(ctx, backend.Info{Backend: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		dev := spmm.NewDevice(&failing{d, f})
		defer dev.Close()
		x.devs = append(x.devs, dev)
	}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (sceneOver{}) {
				panic(r)
			}
		}()
		program(x)
	}()
	for _, c := range slices.Backward(x.open) {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if f.live != 0 {
		t.Errorf("%d buffers, recordings or blocks of host memory are left over", f.live)
	}
	return x
}

// TestFaults lets each call of a device fail, one run a call, by itself and with all after it. With -short, and without
// SPMM_ALL_FAULTS, some of them.
func TestFaults(t *testing.T) {
	for name, program := range programs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := play(t, &faults{}, program)
			if t.Failed() || whole.calls == 0 {
				t.Fatalf("%d calls", whole.calls)
			}
			step := 1
			if os.Getenv("SPMM_ALL_FAULTS") == "" {
				step = max(1, whole.calls/25)
			}
			for at := 1; at <= whole.calls && !t.Failed(); at += step {
				for _, lost := range []bool{false, true} {
					f := &faults{at: at, lost: lost}
					x := play(t, f, program)
					if t.Failed() {
						t.Fatalf("call %d of %d, %s, fails; lost %t", at, whole.calls, f.hit, lost)
					}
					if !lost && len(x.outs) != len(whole.outs) {
						t.Fatalf("call %d, %s, fails: %d outputs of %d", at, f.hit, len(x.outs), len(whole.outs))
					}
					for i, out := range x.outs {
						if !out.Equal(whole.outs[i]) {
							t.Fatalf("call %d, %s, fails, lost %t: output %d is wrong", at, f.hit, lost, i)
						}
					}
				}
			}
			t.Logf("%d calls", whole.calls)
		})
	}
}
