// Timing kernels.

package shadertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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

// BenchMultiply times the variants of formats that take, on every device, as subbenchmarks
// name/backend/format/variant/n=columns. What is asked for alone is made: a, and what it is packed as.
func BenchMultiply(b *testing.B, name string, a func() formats.Sparse, columns []int,
	take func(v *spec.Variant) bool, ks ...*spec.Format) {
	b.Helper()
	a = sync.OnceValue(a)
	EachBench(b, func(dev backend.Device) {
		for _, k := range ks {
			packed := packer{k: k, a: a, have: map[*spec.Variant]*spec.Packed{}}
			for _, v := range k.Variants {
				if !take(v) || !v.Met(dev.Caps()) {
					continue
				}
				for _, n := range columns {
					name := fmt.Sprintf("%s/%s/%s/%s/n=%d", name, dev.Info().Backend, k.Name, v.Name, n)
					b.Run(name, func(b *testing.B) { BenchPacked(b, dev, k, v, packed.of(b, v), n) })
				}
			}
		}
	})
}

// BenchVectors times formats by 4096×4096 matrices of f16 with several shares of zeros, in vectors of 8 rows.
func BenchVectors(b *testing.B, columns []int, ks ...*spec.Format) {
	for _, zeros := range []int{70, 80, 90, 95, 98} {
		BenchMultiply(b, fmt.Sprintf("zeros=%d", zeros), func() formats.Sparse {
			return Ones[half.F16](Alike(4096, 4096, 8, float64(100-zeros)/100), 4096)
		}, columns, OfF16, ks...)
	}
}

// packer packs a matrix once for all variants of a format that take the same.
type packer struct {
	k    *spec.Format
	a    func() formats.Sparse
	have map[*spec.Variant]*spec.Packed
}

func (p packer) of(b *testing.B, v *spec.Variant) *spec.Packed {
	for x, e := range p.have {
		if p.k.SamePacking(x, v) {
			return e
		}
	}
	e, err := p.k.Encode(p.a(), v)
	if err != nil {
		b.Fatalf("%s/%s: %v", p.k.Name, v.Name, err)
	}
	p.have[v] = e
	return e
}

// OfF16 takes variants for f16 whose matrices are not quantised.
func OfF16(v *spec.Variant) bool { return v.In == dtype.F16 && v.Quant == dtype.Invalid }

// BenchPacked times a variant of k: a packed matrix times n columns of random numbers, 20 times back to back for each
// of b.N, C being in f32. The metric us is the time of one multiplication, the device's where it tells, else the
// host's; GFLOP/s counts A's entries alone. Variants of f64 are not for it.
func BenchPacked(b *testing.B, dev backend.Device, k *spec.Format, v *spec.Variant, e *spec.Packed, n int) {
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatalf("%s/%s: %v", k.Name, v.Name, err)
		}
	}
	ldb := (n + 7) &^ 7
	l, err := k.LaunchSuited(v, e, spec.Problem{M: e.Rows, K: e.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1,
		Caps: dev.Caps()})
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
	dense := make([]float32, e.Cols*ldb)
	for i := range dense {
		dense[i] = r.Float32() - 0.5
	}
	arg(NewArray(v.In, dense).Data)
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
func Launches(b *testing.B, dev backend.Device, k *spec.Program, l spec.Launch,
	args ...backend.Buffer) []backend.Launch {
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
		launches = append(launches, backend.Launch{Kernel: kern, Groups: p.Groups, Args: args, Params: p.Params,
			Maps: p.Maps})
	}
	return launches
}
