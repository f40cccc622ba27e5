// Dense kernels for sparse matrices: where auto takes them, what that costs, and that zeros which are filled in stay
// zeros.

package plan

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/device"
)

// With few zeros a dense kernel is predicted to be fastest, with many another, whatever the number of columns; the reason
// says so.
func TestDenseIsChosen(t *testing.T) {
	for _, c := range []struct {
		matrix string
		cols   []int
		dense  bool
	}{
		{"gen:uniform,rows=1024,cols=2048,density=1", []int{8, 32, 512}, true},
		{"gen:uniform,rows=1024,cols=2048,density=0.85", []int{128, 4096}, true},
		{"gen:uniform,rows=4096,cols=4096,density=0.005", []int{1, 128}, false},
		{"gen:powerlaw,rows=40000,nnz-per-row=8", []int{8}, false},
	} {
		a, err := gen.CSR(c.matrix)
		if err != nil {
			t.Fatal(err)
		}
		x := formats.ConvertTo(a, dtype.F16)
		for _, n := range c.cols {
			cs, err := choose(t.Context(), largeGPU(backend.CodePTX), newSource(x), Options{Cols: n})
			if err != nil {
				t.Fatal(err)
			}
			if got := cs[0]; (got.kernel.Name == "dense") != c.dense || !strings.Contains(got.why, "predicted") {
				t.Errorf("%s, %d columns: picked %s because %s", c.matrix, n, got.name(), got.why)
			}
		}
	}
}

// A matrix that would not fit memory as a dense one is not made one, whoever asks.
func TestDenseNeedsMemory(t *testing.T) {
	const size = 1 << 20 // 2 TiB
	a := &formats.CSR[half.F16]{Rows: size, Cols: size, RowPtr: make([]int64, size+1), ColIdx: make([]int32, size), Val: make([]half.F16, size)}
	for i := range size {
		a.RowPtr[i+1], a.ColIdx[i] = int64(i+1), int32(i)
	}
	d := largeGPU(backend.CodePTX)
	cs, err := choose(t.Context(), d, newSource(a), Options{Cols: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if c.kernel.Name != "dense" {
			continue
		}
		if _, err := c.encode(t.Context(), newSource(a)); c.cost != unlikely || !errors.As(err, new(cannotHold)) {
			t.Errorf("%s is predicted to take %v, and its error is %v", c.name(), c.cost, err)
		}
	}
	cs, err = choose(t.Context(), d, newSource(a), Options{Cols: 8, Format: "dense"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if _, err := c.encode(t.Context(), newSource(a)); !errors.Is(err, backend.ErrOutOfMemory) {
			t.Errorf("asked for, %s: %v", c.name(), err)
		}
	}
}

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
		p, err := New(t.Context(), d, a, Options{Format: "dense"})
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
			if _, err := p.Multiply(t.Context(), 1, Dense{k, n, dtype.F16, Host{Data: backend.Bytes(b), LD: n}}, 0, Dense{m, n, dtype.F32, Host{Data: backend.Bytes(c), LD: n}}, Epilogue{}); err != nil {
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
		if err := p.SetHostValues(t.Context(), Values{dtype.F16, bytes.Clone(backend.Bytes(a.Val))}); err != nil {
			t.Fatal(err)
		}
		check()
	})
}
