// Multiplications with tensors over memory of the program's own, by the kernels of the machine's GPU.

//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/backend/cuda"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// program is one with CUDA memory and a stream of its own, in the primary context.
type program struct {
	t       *testing.T
	dev     *spmm.Device
	primary cu.CUContext
	stream  cu.Stream
}

func newProgram(t *testing.T) *program {
	t.Helper()
	p := &program{t: t}
	dev, err := spmm.Open(t.Context(), "cuda")
	p.must(err)
	t.Cleanup(func() { dev.Close() })
	first, err := cu.GetDevice(0)
	p.must(err)
	ctx, err := first.RetainPrimaryCtx()
	p.must(err)
	p.primary = ctx
	runtime.LockOSThread()
	p.must(cu.PushCurrentCtx(ctx))
	p.stream, err = cu.MakeStream(cu.NonBlocking)
	p.must(err)
	t.Cleanup(func() {
		p.must(p.stream.Destroy())
		_, err := cu.PopCurrentCtx()
		p.must(errors.Join(err, first.ReleasePrimaryCtx()))
		runtime.UnlockOSThread()
	})
	p.dev = dev
	return p
}

// in returns the program for a subtest, which has a thread of its own.
func (p *program) in(t *testing.T) *program {
	t.Helper()
	q := *p
	q.t = t
	runtime.LockOSThread()
	q.must(cu.PushCurrentCtx(p.primary))
	t.Cleanup(func() {
		_, err := cu.PopCurrentCtx()
		q.must(err)
		runtime.UnlockOSThread()
	})
	return &q
}

func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// place is where a tensor lies in an allocation of the program's.
type place struct {
	offset, pad int // bytes before it; elements between its lines
	cut         bool
	colMajor    bool
}

// over makes a tensor in an allocation that is filled with 0xff bytes, which are NaN. Where the place is cut, the
// allocation ends with the last element.
func over[T formats.Value](p *program, rows, cols int, at place) *spmm.Tensor[T] {
	p.t.Helper()
	lines, width := rows, cols
	if at.colMajor {
		lines, width = cols, rows
	}
	var t T
	size, ld := int(unsafe.Sizeof(t)), width+at.pad
	elements := lines * ld
	if at.cut {
		elements -= at.pad
	}
	bytes := int64(at.offset + (elements*size+3)&^3)
	ptr, err := cu.MemAlloc(bytes)
	p.must(err)
	p.t.Cleanup(func() { cu.MemFree(ptr) })
	p.must(cu.MemsetD8(ptr, 0xff, bytes))
	p.must(cu.Synchronize())
	x, err := spmm.TensorOver[T](p.dev, ptr.Uintptr()+uintptr(at.offset), rows, cols, ld, at.colMajor)
	p.must(err)
	return x
}

// Wherever B and C lie, the product is that of tensors of the library's own, for every format.
func TestTensorOver(t *testing.T) {
	if backendtest.Require(t, driver(t)) == nil {
		return
	}
	p := newProgram(t)
	p.must(p.dev.UseStream(t.Context(), cuda.StreamOf(p.stream)))
	r := rand.New(rand.NewPCG(8, 8))
	a, whole := &formats.CSR[half.F16]{Rows: 300, Cols: 250, RowPtr: make([]int64, 301)},
		formats.NewDense[half.F16](300, 250)
	for i := range a.Rows {
		for j := range a.Cols {
			if r.IntN(6) == 0 {
				whole.Set(i, j, half.F16From(float32(r.IntN(9)-4)))
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, whole.At(i, j))
			}
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	options := []spmm.Options{{Mode: spmm.Reproducible}, {Mode: spmm.Reproducible, P: spmm.AutoP}}
	for _, f := range spmm.Formats() {
		options = append(options, spmm.Options{Format: f}, spmm.Options{Format: f, Precision: dtype.F32},
			spmm.Options{Format: f, Right: true})
	}
	for _, o := range options {
		m := formats.Encoded(a)
		if o.Format == "dense" {
			m = whole
		}
		plan, err := spmm.Prepare(t.Context(), p.dev, m, o)
		if err != nil {
			t.Logf("%+v: %v", o, err) // nm: no pattern
			continue
		}
		for _, n := range []int{1, 13, 64, 136} {
			for _, b := range []place{{}, {pad: 8}, {pad: 8, cut: true}, {offset: 4}, {offset: 16, pad: 3},
				{pad: 5, colMajor: true}} {
				c := place{offset: 48 - b.offset, pad: b.pad, cut: b.cut, colMajor: !b.colMajor && n == 13}
				t.Run(fmt.Sprintf("%+v n=%d %+v", o, n, b), func(t *testing.T) {
					p := p.in(t)
					testOver[half.F16, float32](p, r, plan, o.Right, n, b, c)
					testOver[float32, half.F16](p, r, plan, o.Right, n, b, c)
				})
			}
		}
		p.must(plan.Close())
	}
}

func testOver[B, C formats.Value](p *program, r *rand.Rand, plan *spmm.Plan, right bool, n int, atB, atC place) {
	p.t.Helper()
	info, ctx := plan.Info(), p.t.Context()
	rowsB, colsB, rowsC, colsC := info.Cols, n, info.Rows, n
	if right {
		rowsB, colsB, rowsC, colsC = n, info.Rows, n, info.Cols
	}
	b, c := integers[B](r, rowsB, colsB), integers[C](r, rowsC, colsC)
	want, got := formats.NewDense[C](rowsC, colsC), formats.NewDense[C](rowsC, colsC)
	x, y := over[B](p, rowsB, colsB, atB), over[C](p, rowsC, colsC, atC)
	p.must(errors.Join(x.Upload(ctx, b), y.Upload(ctx, c)))
	copy(want.Data, c.Data)
	for _, beta := range []float64{0, 1} {
		_, err := spmm.Multiply(ctx, plan, 2, b, beta, want)
		p.must(err)
		_, err = plan.Run(ctx, 2, x, beta, y)
		p.must(errors.Join(err, y.Download(ctx, got)))
		if !got.Equal(want) {
			p.t.Fatalf("beta %v: the product differs", beta)
		}
	}
	p.must(errors.Join(x.Close(), y.Close()))
}

// integers makes a matrix of small integers, whose products and sums are exact.
func integers[T formats.Value](r *rand.Rand, rows, cols int) *formats.Dense[T] {
	d := formats.NewDense[float32](rows, cols)
	for i := range d.Data {
		d.Data[i] = float32(r.IntN(5) - 2)
	}
	return formats.ConvertDense[T](d)
}

// What the program submits to its stream after Start runs after the multiplication, without a wait in between.
func TestStartOnStream(t *testing.T) {
	if backendtest.Require(t, driver(t)) == nil {
		return
	}
	p, ctx := newProgram(t), t.Context()
	p.must(p.dev.UseStream(ctx, cuda.StreamOf(p.stream)))
	const n, cols = 4096, 256
	a := &formats.CSR[float32]{Rows: n, Cols: n, RowPtr: make([]int64, n+1)}
	for i := range n {
		for j := i % 37; j < n; j += 37 {
			a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	plan, err := spmm.Prepare(ctx, p.dev, a, spmm.Options{})
	p.must(err)
	defer plan.Close()
	b := integers[float32](rand.New(rand.NewPCG(1, 2)), n, cols)
	want := formats.NewDense[float32](n, cols)
	_, err = spmm.Multiply(ctx, plan, 1, b, 0, want)
	p.must(err)

	ptr, err := cu.MemAlloc(n * cols * 4)
	p.must(err)
	defer cu.MemFree(ptr)
	x, y := over[float32](p, n, cols, place{}), tensorAt(p, ptr, n, cols)
	p.must(x.Upload(ctx, b))
	host, err := spmm.NewPinned[float32](p.dev, n, cols, false)
	p.must(err)
	defer host.Close()
	for range 20 {
		clear(host.Data)
		p.must(cu.MemsetD8Async(ptr, 0xff, n*cols*4, p.stream))
		pending, err := plan.Start(ctx, 1, x, 0, y)
		p.must(err)
		p.must(cu.MemcpyDtoHAsync(unsafe.Pointer(&host.Data[0]), ptr, n*cols*4, p.stream))
		p.must(p.stream.Synchronize())
		if !host.Equal(want) {
			t.Fatal("a copy that was submitted after Start has not waited for the product")
		}
		_, err = pending.Wait(ctx)
		p.must(err)
	}
}

// A product and new values that are enqueued are in order with the program's work in the stream, wherever its tensors
// are moved, while another stream has products of the same plan.
func TestEnqueue(t *testing.T) {
	if backendtest.Require(t, driver(t)) == nil {
		return
	}
	p, ctx := newProgram(t), t.Context()
	for _, o := range []spmm.Options{
		{Format: "csr"}, {}, {Format: "hrpb"}, {Mode: spmm.Reproducible}, {Format: "csr", Right: true},
	} {
		a := &formats.CSR[float32]{Rows: 600, Cols: 600, RowPtr: make([]int64, 601)}
		for i := range a.Rows {
			for j := i % 7; j < a.Cols; j += 7 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
			}
			a.RowPtr[i+1] = int64(len(a.Val))
		}
		plan, err := spmm.Prepare(ctx, p.dev, a, o)
		p.must(err)
		const n = 600 // as Right needs
		b := integers[float32](rand.New(rand.NewPCG(1, 2)), n, n)
		want := formats.NewDense[float32](n, n)
		_, err = spmm.Multiply(ctx, plan, 1, b, 0, want)
		p.must(err)
		var at [3]cu.DevicePtr
		for i := range at {
			at[i], err = cu.MemAlloc(n * n * 4)
			p.must(err)
			defer cu.MemFree(at[i])
		}
		values, err := cu.MemAlloc(a.NNZ() * 4)
		p.must(err)
		defer cu.MemFree(values)
		x, y, v := tensorAt(p, at[0], n, n), tensorAt(p, at[1], n, n), tensorAt(p, values, 1, int(a.NNZ()))
		p.must(x.Upload(ctx, b))
		host, err := spmm.NewPinned[float32](p.dev, n, n, false)
		p.must(err)
		defer host.Close()
		p.must(plan.Ready(0, 1, x, 0, y))
		for i := range 40 {
			value := float32(i%3 + 1)
			p.must(cu.MemsetD32Async(values, uint(math.Float32bits(value)), a.NNZ(), p.stream))
			p.must(plan.EnqueueValues(cuda.StreamOf(p.stream), v))
			p.must(spmm.Move(y, at[1+i%2].Uintptr()))
			p.must(plan.Enqueue(cuda.StreamOf(p.stream), 1/float64(value), x, 0, y))
			p.must(cu.MemcpyDtoHAsync(unsafe.Pointer(&host.Data[0]), at[1+i%2], n*n*4, p.stream))
			p.must(p.stream.Synchronize())
			for j := range want.Data {
				if d := host.Data[j] - want.Data[j]; d > 1e-3 || d < -1e-3 {
					t.Fatalf("%+v, round %d, element %d: %v, want %v", o, i, j, host.Data[j], want.Data[j])
				}
			}
		}
		p.must(plan.Close())
	}
}

// Sampled products that are enqueued are in order with the program's work in the stream, staged or not, and memory of
// the program's is read.
func TestEnqueueSample(t *testing.T) {
	if backendtest.Require(t, driver(t)) == nil {
		return
	}
	p, ctx := newProgram(t), t.Context()
	for _, o := range []spmm.Options{{}, {Mode: spmm.Reproducible}, {Right: true}, {Precision: dtype.F16}} {
		for _, n := range []int{63, 64} { // rows 63 elements apart are staged
			a := &formats.CSR[float32]{Rows: 300, Cols: 300, RowPtr: make([]int64, 301)}
			for i := range a.Rows {
				for j := i % 7; j < a.Cols; j += 7 {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
				}
				a.RowPtr[i+1] = int64(len(a.Val))
			}
			plan, err := spmm.Prepare(ctx, p.dev, a, o)
			p.must(err)
			nnz := len(a.Val)
			var at [3]cu.DevicePtr
			for i, elems := range []int{300 * n, 300 * n, nnz} {
				at[i], err = cu.MemAlloc(int64(elems) * 4)
				p.must(err)
				defer cu.MemFree(at[i])
			}
			x, y, r := tensorAt(p, at[0], 300, n), tensorAt(p, at[1], 300, n), tensorAt(p, at[2], 1, nnz)
			got := make([]float32, nnz)
			fill := func(at cu.DevicePtr, x float32) {
				p.must(cu.MemsetD32Async(at, uint(math.Float32bits(x)), int64(300*n), p.stream))
			}
			for i := range 20 {
				fill(at[0], float32(i+1))
				fill(at[1], 2)
				p.must(plan.EnqueueSample(cuda.StreamOf(p.stream), x, y, r))
				fill(at[0], -1) // which the product must not see
				p.must(p.stream.Synchronize())
				p.must(spmm.ReadMemory(ctx, p.dev, at[2].Uintptr(), backend.Bytes(got)))
				for j, v := range got {
					if want := float32(2 * n * (i + 1)); v != want {
						t.Fatalf("%+v, n %d, round %d, entry %d: %v, want %v", o, n, i, j, v, want)
					}
				}
			}
			p.must(plan.Close())
		}
	}
}

func tensorAt(p *program, ptr cu.DevicePtr, rows, cols int) *spmm.Tensor[float32] {
	p.t.Helper()
	x, err := spmm.TensorOver[float32](p.dev, ptr.Uintptr(), rows, cols, cols, false)
	p.must(err)
	p.t.Cleanup(func() { x.Close() })
	return x
}
