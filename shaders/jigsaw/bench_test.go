// How fast the kernels are on every device present.

package jigsaw_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is 4096×4096 in f16, of 8-row vectors, times 512 columns, on every device; cvse is the
// baseline. The metric us is the time of one of 20 multiplications back to back, the device's where it
// tells, else the host's.
func BenchmarkMultiply(b *testing.B) {
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
		defer dev.Close()
		for _, zeros := range []int{70, 80, 90, 95, 98} {
			pattern := vectors(4096, 4096, 8, float64(100-zeros)/100)
			for _, k := range []*spec.Format{cvse.Format, jigsaw.Format} {
				for _, v := range k.Variants {
					if v.In == dtype.F16 && v.Met(dev.Caps()) {
						b.Run(fmt.Sprintf("%s/zeros=%d/%s", k.Name, zeros, v.Name), func(b *testing.B) { multiply(b, dev, k, v, pattern, 512) })
					}
				}
			}
		}
	}
}

func multiply(b *testing.B, dev backend.Device, k *spec.Format, v *spec.Variant, pattern [][]int32, n int) {
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	a := matrix(pattern, 4096)
	e, err := k.Encode(a, v)
	must(err)
	l, err := k.Launch(v, e, spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: n, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()})
	must(err)
	var args []backend.Buffer
	arg := func(data []byte) {
		buf, err := dev.Alloc(int64(len(data)))
		must(err)
		must(buf.Write(ctx, 0, data))
		args = append(args, buf)
	}
	defer func() {
		for _, x := range args {
			x.Close()
		}
	}()
	for _, x := range e.Arrays {
		arg(x.Data)
	}
	arg(backend.Bytes(slices.Repeat([]half.F16{half.F16From(1)}, a.Cols*n)))
	arg(make([]byte, 4*a.Rows*n))
	launches := slices.Repeat(shadertest.Launches(b, dev, k.Program, l, args...), 20)
	var us float64
	for b.Loop() {
		t, err := dev.Run(ctx, launches...)
		must(err)
		us += float64(t.Best().Nanoseconds()) / 1e3
	}
	us /= float64(b.N * len(launches))
	b.ReportMetric(us, "us")
	b.ReportMetric(2*float64(a.NNZ())*float64(n)/us/1e3, "GFLOP/s")
}
