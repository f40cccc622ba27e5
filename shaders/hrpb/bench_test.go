package hrpb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is a graph of co-authors, or the files that SPMM_MATRICES lists, times 128 columns in f32 and tf32
// on every device; csr is the baseline. The metric us is the device's time where it tells, else the host's.
func BenchmarkMultiply(b *testing.B) {
	ctx := context.Background()
	files := filepath.SplitList(os.Getenv("SPMM_MATRICES"))
	if len(files) == 0 {
		files = []string{"../../testdata/matrices/ca-CondMat.mtx.gz"}
	}
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
		for _, file := range files {
			a, err := load.File(ctx, file, load.Options{})
			if err != nil {
				b.Fatal(err)
			}
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			for _, k := range []*spec.Format{csr.Format, hrpb.Format} {
				for _, v := range k.Variants {
					if v.In.Storage() == dtype.F32 && v.Met(dev.Caps()) {
						b.Run(fmt.Sprintf("%s/%s/%s", name, k.Name, v.Name), func(b *testing.B) { multiply(b, dev, k, v, a, 128) })
					}
				}
			}
		}
	}
}

func multiply(b *testing.B, dev backend.Device, k *spec.Format, v *spec.Variant, a *formats.CSR[float32], n int) {
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
	dense := make([]float32, a.Cols*n)
	for i := range dense {
		dense[i] = 1
	}
	arg(backend.Bytes(dense))
	arg(make([]byte, 4*a.Rows*n))
	arg(make([]byte, l.Workspace))
	// Several one after another, as a GPU's clock is coarse.
	const times = 16
	launches := slices.Repeat(shadertest.Launches(b, dev, k.Program, l, args...), times)
	var us float64
	for b.Loop() {
		t, err := dev.Run(ctx, launches...)
		must(err)
		us += float64(t.Best().Nanoseconds()) / 1e3 / times
	}
	us /= float64(b.N)
	b.ReportMetric(us, "us")
	b.ReportMetric(2*float64(a.NNZ())*float64(n)/us/1e3, "GFLOP/s")
}
