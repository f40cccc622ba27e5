// Fast mode gives the same bits each time: same device, same plan, a hundred runs, while the device is busy with
// other work.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// again is how often; software drivers of GPUs, which take a hundred times as long, do it less.
var again = map[bool]int{true: 100, false: 30}[os.Getenv("SPMM_SOFTVK") == ""]

// busy keeps a device at work with another matrix until the function that it returns is called.
func busy(t *testing.T, dev *spmm.Device) (stop func()) {
	t.Helper()
	p := recipe{class: General, typ: dtype.F32, m: 150, k: 200, n: 20, pattern: "skewed", alpha: 1, kind: normal,
		seed: 9}.build().single()
	plan, err := spmm.Prepare(t.Context(), dev, p.A, spmm.Options{Format: "csr"})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var done atomic.Bool
	runs := 0
	wait.Go(func() {
		c := formats.NewDense[float32](p.A.Rows, p.B.Cols)
		for ; !done.Load(); runs++ {
			if _, err := spmm.Multiply(context.Background(), plan, 1, p.B, 0, c); err != nil {
				t.Errorf("the load: %v", err)
				return
			}
		}
	})
	return func() {
		done.Store(true)
		wait.Wait()
		plan.Close()
		if runs == 0 {
			t.Error("there was no load")
		}
	}
}

// repeats multiplies so often with one plan and fails where a result is not the first. It reports whether the
// format takes the matrix.
func repeats[T formats.Value](t *testing.T, dev *spmm.Device, format string, p *instance) bool {
	t.Helper()
	ctx := t.Context()
	plan, err := spmm.Prepare(ctx, dev, formats.Convert[T](p.a), spmm.Options{Format: format, Cols: p.n})
	if errors.Is(err, spmm.ErrUnsupported) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	b, c, err := spmm.TensorsFor[T, float32](plan, p.n)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	defer c.Close()
	if err := b.Upload(ctx, formats.ConvertDense[T](p.b)); err != nil {
		t.Fatal(err)
	}
	var first []byte
	for i := range again {
		if _, err := plan.Run(ctx, 1, b, 0, c); err != nil {
			t.Fatal(err)
		}
		out := formats.NewDense[float32](p.m, p.n)
		if err := c.Download(ctx, out); err != nil {
			t.Fatal(err)
		}
		switch bits := backend.Bytes(out.Data); {
		case i == 0:
			first = bits
			if bytes.Count(bits, []byte{0}) == len(bits) {
				t.Fatal("the result is zero")
			}
		case !bytes.Equal(bits, first):
			t.Fatalf("run %d of %s gave other bits than the first", i+1, plan.Info().Variant)
		}
	}
	return true
}

func TestSameBits(t *testing.T) {
	// A row that is split, rows of very different lengths: sums whose order a careless kernel would change. The last is
	// for formats that want N of M.
	problems := []recipe{
		{class: General, m: 20, k: 5001, n: 20, pattern: "onerow", alpha: 1, kind: spans, seed: 1},
		{class: General, m: 200, k: 300, n: 40, pattern: "skewed", alpha: 1, kind: spans, seed: 1},
		{class: General, m: 64, k: 256, n: 40, pattern: "dense", alpha: 1, kind: spans, seed: 1},
	}
	devices(t, func(t *testing.T, dev backend.Device) {
		door := spmm.NewDevice(dev)
		defer busy(t, door)()
		// Another queue of the same device, whose work runs at the same time.
		other, err := spmm.Open(t.Context(), fmt.Sprintf("%s:%d", dev.Info().Backend, dev.Info().Index))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		defer busy(t, other)()
		for _, k := range multiplied(dev) {
			format := k.Name
			t.Run(format, func(t *testing.T) {
				taken := 0
				for _, r := range problems {
					r.typ = dtype.F16
					half := repeats[half.F16](t, door, format, r.build())
					r.typ = dtype.F32
					full := repeats[float32](t, door, format, r.build())
					taken += b2i(half) + b2i(full)
				}
				if taken < 2 {
					t.Errorf("%d of the matrices were taken", taken)
				}
			})
		}
	})
}
