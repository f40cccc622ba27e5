// Dense kernels for sparse matrices: where auto takes them, what that costs, and that zeros which are filled in stay
// zeros.

package choose

import (
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/work"
)

// With few zeros a dense kernel is predicted to be fastest, with many another, whatever the number of columns; the
// reason says so.
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
			cs, err := Choose(t.Context(), largeGPU(backend.CodePTX), resolve(t, x, work.Work{Cols: n}))
			if err != nil {
				t.Fatal(err)
			}
			if got := cs[0]; (got.Kernel.Name == "dense") != c.dense || !strings.Contains(got.Why, "predicted") {
				t.Errorf("%s, %d columns: picked %s because %s", c.matrix, n, got.name(), got.Why)
			}
		}
	}
}

// A matrix that would not fit memory as a dense one is not made one, whoever asks.
func TestDenseNeedsMemory(t *testing.T) {
	const size = 1 << 20 // 2 TiB
	a := &formats.CSR[half.F16]{Rows: size, Cols: size, RowPtr: make([]int64, size+1), ColIdx: make([]int32, size),
		Val: make([]half.F16, size)}
	for i := range size {
		a.RowPtr[i+1], a.ColIdx[i] = int64(i+1), int32(i)
	}
	d := largeGPU(backend.CodePTX)
	cs, err := Choose(t.Context(), d, resolve(t, a, work.Work{Cols: 8}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if c.Kernel.Name != "dense" {
			continue
		}
		if _, err := c.Pack(t.Context(), work.NewMatrix(a)); c.cost != Unlikely || !errors.As(err, new(work.CannotHold)) {
			t.Errorf("%s is predicted to take %v, and its error is %v", c.name(), c.cost, err)
		}
	}
	cs, err = Choose(t.Context(), d, resolve(t, a, work.Work{Cols: 8, Format: "dense"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		if _, err := c.Pack(t.Context(), work.NewMatrix(a)); !errors.Is(err, backend.ErrOutOfMemory) {
			t.Errorf("asked for, %s: %v", c.name(), err)
		}
	}
}
