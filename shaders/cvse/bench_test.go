// How fast the kernels are on every device present.

package cvse_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is 4096×4096 in f16, of 8-row vectors, times 512 columns, on every device; csr is
// the baseline. The metric us is the device's time where it tells, else the host's.
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
		for _, zeros := range []int{70, 90, 98} {
			a := matrix(4096, 8, float64(100-zeros)/100)
			for _, k := range []*spec.Kernel{csr.Kernel, cvse.Kernel} {
				for _, v := range k.Variants {
					if v.In == dtype.F16 && v.Met(dev.Caps()) {
						b.Run(fmt.Sprintf("%s/%d/%s", k.Name, zeros, v.Name), func(b *testing.B) { multiply(b, dev, k, v, a, 512) })
					}
				}
			}
		}
	}
}

func matrix(n, v int, density float64) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: n, Cols: n, RowPtr: []int64{0}}
	for _, cols := range vectors(n, n, v, density) {
		for _, c := range cols {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, half.F16From(1))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func multiply(b *testing.B, dev backend.Device, k *spec.Kernel, v *spec.Variant, a *formats.CSR[half.F16], n int) {
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	e, err := k.Encode(a, v)
	must(err)
	p := spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: n, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()}
	l, err := k.Launch(v, e, p)
	must(err)
	bin, err := k.Binary(v)
	must(err)
	kern, err := dev.Load(bin)
	must(err)
	defer kern.Close()
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
	dense := make([]half.F16, a.Cols*n)
	for i := range dense {
		dense[i] = half.F16From(1)
	}
	arg(backend.Bytes(dense))
	arg(make([]byte, 4*a.Rows*n))
	if l.Workspace > 0 {
		arg(make([]byte, l.Workspace))
	}
	var us float64
	for b.Loop() {
		t, err := dev.Run(ctx, backend.Launch{Kernel: kern, Groups: l.Groups, Args: args, Params: l.Params})
		must(err)
		us += float64(t.Best().Nanoseconds()) / 1e3
	}
	b.ReportMetric(us/float64(b.N), "us")
	b.ReportMetric(2*float64(a.NNZ())*float64(n)*float64(b.N)/us/1e3, "GFLOP/s")
}
