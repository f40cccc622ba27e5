// Numbers of float64 through every kind of file, as they are.

package load_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/formats/safetensors"
)

func TestFloat64(t *testing.T) {
	want := &formats.CSR[float64]{
		Rows: 3, Cols: 4, RowPtr: []int64{0, 2, 2, 6}, ColIdx: []int32{0, 3, 0, 1, 2, 3},
		Val: []float64{1.0 / 3, -math.Pi * 1e300, 5e-324, 1<<53 + 2, math.MaxFloat64, 0.1},
	}
	dense := formats.NewDense[float64](3, 4)
	for i := range want.Rows {
		for p := want.RowPtr[i]; p < want.RowPtr[i+1]; p++ {
			dense.Set(i, int(want.ColIdx[p]), want.Val[p])
		}
	}
	for _, c := range []struct {
		name  string
		write func(w io.Writer) error
		f64   bool // without being asked for
	}{
		{"a.mtx", func(w io.Writer) error { return mtx.Write(w, want) }, false},
		{"a.npz", func(w io.Writer) error { return npy.WriteSparse(w, want) }, false},
		{"a.npy", func(w io.Writer) error { return npy.Write(w, dense) }, false},
		{"a.npy", func(w io.Writer) error { return npy.Write(w, dense.Layout(true, 0)) }, false},
		{"a.safetensors", func(w io.Writer) error { return safetensors.WriteMatrix(w, want) }, true},
		{"dense.safetensors", func(w io.Writer) error {
			x := safetensors.NewTensor("weight", dense.Data)
			x.Shape = []int64{3, 4}
			return safetensors.Write(w, &safetensors.File{Tensors: []safetensors.Tensor{x}})
		}, false},
	} {
		var file bytes.Buffer
		if err := c.write(&file); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		e, err := load.Bytes(context.Background(), c.name, file.Bytes(), load.Options{Float64: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, is := e.Sparse().(*formats.CSR[float64]); !is || !got.Equal(want) {
			t.Errorf("%s: %v of %v", c.name, e.Sparse(), e.Type())
		}
		e, err = load.Bytes(context.Background(), c.name, file.Bytes(), load.Options{})
		if narrow := err != nil || e.Type() == dtype.F32; narrow == c.f64 { // most values are beyond float32
			t.Errorf("%s without Float64: %v, %v", c.name, e, err)
		}
	}
	e, err := load.Open(context.Background(), "gen:uniform,rows=50,cols=40,density=0.2", load.Options{Float64: true})
	if err != nil || e.Type() != dtype.F64 {
		t.Errorf("a generated matrix: %v, %v", e, err)
	}

	e, err = load.Bytes(context.Background(), "a.smtx", []byte("2, 3, 2\n0 1 2\n2 1\n"), load.Options{Float64: true})
	if err != nil || e.Type() != dtype.F64 {
		t.Errorf("a pattern: %v, %v", e, err)
	}
}
