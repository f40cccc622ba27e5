// Timing kernels.

package shadertest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// EachBench is Each for benchmarks: it calls f with an opened device of each driver that has one.
func EachBench(b *testing.B, f func(dev backend.Device)) {
	b.Helper()
	ctx := context.Background()
	for _, d := range backend.Drivers() {
		infos, err := d.Devices(ctx)
		if err != nil || len(infos) == 0 {
			continue
		}
		dev, err := d.Open(ctx, infos[0])
		if err != nil {
			b.Fatal(err)
		}
		f(dev)
		dev.Close()
	}
}

// Bench times a variant of k: a, of its element type, times n columns of random numbers, 20 times back to
// back for each of b.N, C being in f32. The metric us is the time of one multiplication, the device's
// where it tells, else the host's; GFLOP/s counts a's entries alone.
func Bench(b *testing.B, dev backend.Device, k *spec.Format, v *spec.Variant, a formats.Sparse, n int) {
	b.Helper()
	e, err := k.Encode(a, v)
	if err != nil {
		b.Fatalf("%s/%s: %v", k.Name, v.Name, err)
	}
	BenchPacked(b, dev, k, v, e, n)
}

// BenchPacked is Bench with a matrix that is packed. Variants of f64 are not for it.
func BenchPacked(b *testing.B, dev backend.Device, k *spec.Format, v *spec.Variant, e *spec.Packed, n int) {
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatalf("%s/%s: %v", k.Name, v.Name, err)
		}
	}
	ldb := (n + 7) &^ 7
	l, err := k.Launch(v, e, spec.Problem{M: e.Rows, K: e.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()})
	must(err)
	var args []backend.Buffer
	arg := func(data []byte) {
		buf, err := dev.Alloc(int64(len(data)))
		must(err)
		args = append(args, buf)
		must(buf.Write(ctx, 0, data))
	}
	defer func() {
		for _, x := range args {
			x.Close()
		}
	}()
	for _, x := range e.Arrays {
		arg(x.Data)
	}
	r := rand.New(rand.NewPCG(3, 4))
	dense := formats.NewDense[float32](e.Cols, ldb)
	for i := range dense.Data {
		dense.Data[i] = r.Float32() - 0.5
	}
	switch v.In.Storage() {
	case dtype.F16:
		arg(backend.Bytes(formats.ConvertDense[half.F16](dense).Data))
	case dtype.BF16:
		arg(backend.Bytes(formats.ConvertDense[half.BF16](dense).Data))
	default:
		arg(backend.Bytes(dense.Data))
	}
	arg(make([]byte, 16)) // no bias
	arg(make([]byte, 4*e.Rows*n))
	if l.Workspace > 0 {
		arg(make([]byte, l.Workspace))
	}
	launches := Launches(b, dev, k.Program, l, args...)
	const batch = 20
	var us float64
	launches = slices.Repeat(launches, batch)
	for b.Loop() {
		t, err := dev.Run(ctx, launches...)
		must(err)
		us += float64(t.Best().Nanoseconds()) / 1e3 / batch
	}
	b.ReportMetric(us/float64(b.N), "us")
	b.ReportMetric(2*float64(e.NNZ)*float64(n)*float64(b.N)/us/1e3, "GFLOP/s")
}

// Launches returns the passes of a launch of k for a device; the kernels live as long as the benchmark.
func Launches(b *testing.B, dev backend.Device, k *spec.Program, l spec.Launch, args ...backend.Buffer) []backend.Launch {
	b.Helper()
	var launches []backend.Launch
	for _, p := range l.Passes {
		bin, err := k.Binary(p.Variant)
		if err != nil {
			b.Fatal(err)
		}
		kern, err := dev.Load(bin)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { kern.Close() })
		launches = append(launches, backend.Launch{Kernel: kern, Groups: p.Groups, Args: args, Params: p.Params, Maps: p.Maps})
	}
	return launches
}
