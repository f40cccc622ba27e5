package plan

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// A sparse matrix that is filled with zeros multiplies like any other: also with new values, and where B is not finite.
func TestFilled(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device.Device) {
		const m, k, n = 37, 50, 19
		r := rand.New(rand.NewPCG(3, 4))
		a := &formats.CSR[half.F16]{Rows: m, Cols: k, RowPtr: make([]int64, m+1)}
		for i := range m {
			for j := range k {
				if r.IntN(3) > 0 {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, half.F16From(float32(r.IntN(9)-4)))
				}
			}
			a.RowPtr[i+1] = int64(len(a.Val))
		}
		p, err := New(t.Context(), d, a, work.Work{Format: "dense"}, work.Form{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.Format != "dense" || p.NNZ != a.NNZ() {
			t.Errorf("%d entries in format %s", p.NNZ, p.Format)
		}
		b := make([]half.F16, k*n)
		for i := range b {
			b[i] = half.F16From(float32(r.IntN(9) - 4))
		}
		b[7*n+3], b[21*n+4] = half.F16From(float32(math.Inf(1))), half.F16From(float32(math.NaN()))
		check := func() {
			t.Helper()
			c := make([]float32, m*n)
			if _, err := p.Multiply(t.Context(), 1, tensor.Dense{Rows: k, Cols: n, Type: dtype.F16,
				Host: tensor.Host{Data: backend.Bytes(b),
					LD: n}}, 0, tensor.Dense{Rows: m, Cols: n, Type: dtype.F32, Host: tensor.Host{Data: backend.Bytes(c), LD: n}},
				launch.Epilogue{}); err != nil {
				t.Fatal(err)
			}
			for i := range m {
				for j := range n {
					var want float32
					for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
						want += a.Val[e].Float32() * b[int(a.ColIdx[e])*n+j].Float32()
					}
					if got := c[i*n+j]; got != want && (got == got || want == want) {
						t.Fatalf("C[%d,%d] is %v, want %v", i, j, got, want)
					}
				}
			}
		}
		check()
		for i := range a.Val {
			a.Val[i] = half.F16From(float32(r.IntN(9) - 4))
		}
		if err := p.SetHostValues(t.Context(), values.Host{Type: dtype.F16,
			Data: bytes.Clone(backend.Bytes(a.Val))}); err != nil {
			t.Fatal(err)
		}
		check()
	})
}
