// Quantised weights in files, whole and broken.

package load_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/safetensors"
)

func written(t testing.TB, tensors ...safetensors.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := safetensors.Write(f, &safetensors.File{Tensors: tensors}); err != nil {
		t.Fatal(err)
	}
	return path
}

func shaped[E safetensors.Elem](name string, typ safetensors.Type, data []E, shape ...int64) safetensors.Tensor {
	x := safetensors.NewTensor(name, data)
	x.Type, x.Shape = typ, shape
	return x
}

// TestCheckpoint: 8-bit tensors are read with their scales.
func TestCheckpoint(t *testing.T) {
	e := func(x float64) uint8 { return uint8(half.E4M3From(x)) }
	for _, c := range []struct {
		name    string
		tensors []safetensors.Tensor
		kind    dtype.Type
		want    []float32 // entries
	}{
		{"int8, a scale for each row", []safetensors.Tensor{
			shaped("w", safetensors.I8, []int8{1, 0, -3, 127}, 2, 2), shaped("w_scale", safetensors.F32, []float32{0.5, 2}, 2,
				1),
		}, dtype.S8, []float32{0.5, -6, 254}},
		{"e4m3, one scale", []safetensors.Tensor{
			shaped("w", safetensors.F8E4M3, []uint8{e(448), e(-0.5), 0, e(1.5)}, 2, 2), shaped("w_scale_inv", safetensors.BF16, []half.BF16{half.BF16From(0.25)}),
		}, dtype.E4M3, []float32{112, -0.125, 0.375}},
		{"a vector of scales", []safetensors.Tensor{
			shaped("w", safetensors.I8, []int8{1, 2, 3, 4}, 2, 2),
			shaped("w.scale", safetensors.F16, []half.F16{half.F16From(1), half.F16From(3)}, 2),
		}, dtype.S8, []float32{1, 2, 9, 12}},
	} {
		a, err := load.Open(context.Background(), written(t, c.tensors...), load.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		q, ok := a.(*formats.Quantised)
		if !ok || q.Kind != c.kind {
			t.Fatalf("%s: is %s of %v", c.name, a.Format(), a.Type())
		}
		for i, x := range q.Float32().Val {
			if len(c.want) != len(q.Q) || x != c.want[i] {
				t.Errorf("%s: values %v, want %v", c.name, q.Float32().Val, c.want)
				break
			}
		}
	}
}

func TestCheckpointRefuses(t *testing.T) {
	w := shaped("w", safetensors.I8, []int8{1, 2, 3, 4}, 2, 2)
	for _, c := range []struct {
		want    string
		tensors []safetensors.Tensor
	}{
		{`tensor "w": has no scales: want a tensor w_scale`, []safetensors.Tensor{w}},
		{"scales of type I8", []safetensors.Tensor{w, shaped("w_scale", safetensors.I8, []int8{1}, 1)}},
		{"3×1 scales", []safetensors.Tensor{w, shaped("w_scale", safetensors.F32, []float32{1, 2, 3}, 3)}},
		{"scales of shape", []safetensors.Tensor{w, shaped("w_scale", safetensors.F32, []float32{1}, 1, 1, 1)}},
		{"a scale of 3e+38", []safetensors.Tensor{w, shaped("w_scale", safetensors.F32, []float32{1, 3e38}, 2)}},
		{"is NaN", []safetensors.Tensor{shaped("w", safetensors.F8E4M3, []uint8{0x7f}, 1, 1),
			shaped("w_scale", safetensors.F32, []float32{1}, 1)}},
	} {
		_, err := load.Open(context.Background(), written(t, c.tensors...), load.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
}

// TestQuantisedFile: what WriteMatrix wrote is read as it was.
func TestQuantisedFile(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 2, Cols: 200, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{5, 199, 7},
		Val: []float32{1.1, -2, 3}}
	for _, kind := range []dtype.Type{dtype.S8, dtype.E4M3} {
		q, _, err := formats.Quantise(a, kind)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "q.safetensors")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := safetensors.WriteMatrix(f, q); err != nil {
			t.Fatal(err)
		}
		f.Close()
		got, err := load.Open(context.Background(), path, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(q, got); d != "" {
			t.Error(d)
		}
	}
}
