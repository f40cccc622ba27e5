// Matrices that files hold in a format of their own, and dense ones among others.

package load_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/safetensors"
	"github.com/spmmrun/spmm/formats/tiledcsr"
)

// Every format comes back from a file as it was encoded, in every element type, and decodes to the
// matrix that was encoded; File gives its values in float32.
func TestOpen(t *testing.T) {
	for _, f := range load.Formats() {
		a := matrixFor(t, f, "gen:nm,rows=64,cols=96,n=2,m=4")
		for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			t.Run(fmt.Sprint(f.Name, " ", typ), func(t *testing.T) {
				want := formats.ConvertTo(a, typ)
				m, err := f.Encode(want, nil)
				if err != nil {
					t.Fatal(err)
				}
				var file bytes.Buffer
				if err := safetensors.WriteMatrix(&file, m); err != nil {
					t.Fatal(err)
				}
				path := write(t, "a.safetensors", file.Bytes())
				e, err := load.Open(t.Context(), path, load.Options{})
				if err != nil {
					t.Fatal(err)
				}
				rows, cols := e.Dims()
				if e.Format() != f.Name || e.Type() != typ || rows != a.Rows || cols != a.Cols || e.NNZ() != a.NNZ() {
					t.Errorf("%s of %v, %d×%d, %d entries", e.Format(), e.Type(), rows, cols, e.NNZ())
				}
				if !equal(e.Sparse(), want) {
					t.Error("the matrix is another one")
				}
				got, err := load.File(t.Context(), path, load.Options{})
				if err != nil || !equal(got, formats.ConvertTo(want, dtype.F32)) {
					t.Errorf("as float32 it is another one (%v)", err)
				}
			})
		}
	}
}

// matrixFor returns the matrix of a spec, or for a format that takes only matrices which store every element, one of
// the same size that does.
func matrixFor(t testing.TB, f formats.Format, spec string) *formats.CSR[float32] {
	t.Helper()
	a, err := gen.CSR(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Encode(a, nil); errors.Is(err, formats.ErrNotFull) {
		full := formats.NewDense[float32](a.Rows, a.Cols)
		for i := range full.Data {
			full.Data[i] = float32(i%17 - 8)
		}
		return full.Sparse().(*formats.CSR[float32])
	}
	return a
}

func equal(a, b formats.Sparse) bool {
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		b, ok := b.(*formats.CSR[half.F16])
		return ok && a.Equal(b)
	case *formats.CSR[half.BF16]:
		b, ok := b.(*formats.CSR[half.BF16])
		return ok && a.Equal(b)
	case *formats.CSR[float32]:
		b, ok := b.(*formats.CSR[float32])
		return ok && a.Equal(b)
	}
	return false
}

// tensors returns a file of two matrices and a vector.
func tensors(t *testing.T) []byte {
	t.Helper()
	f := &safetensors.File{}
	add := func(tensor safetensors.Tensor, shape ...int64) {
		tensor.Shape = shape
		f.Tensors = append(f.Tensors, tensor)
	}
	add(safetensors.NewTensor("q.weight", []half.BF16{half.BF16From(1), 0, 0, 0, half.BF16From(-2), 0}), 2, 3)
	add(safetensors.NewTensor("k.weight", []float64{0, 0.5, 0, 0}), 2, 2)
	add(safetensors.NewTensor("q.bias", []float32{1, 2}), 2)
	add(safetensors.NewTensor("huge", []float64{1e300}), 1, 1)
	var b bytes.Buffer
	if err := safetensors.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTensor(t *testing.T) {
	path := write(t, "model.safetensors", tensors(t))
	a, err := load.File(t.Context(), path+"#q.weight", load.Options{})
	want := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 1}, Val: []float32{1, -2}}
	if err != nil || !a.Equal(want) {
		t.Errorf("bf16: %v, %v", a, err)
	}
	a, err = load.File(t.Context(), path+"#k.weight", load.Options{})
	want = &formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: []int64{0, 1, 1}, ColIdx: []int32{1}, Val: []float32{0.5}}
	if err != nil || !a.Equal(want) {
		t.Errorf("f64: %v, %v", a, err)
	}
	for _, c := range []struct{ path, want string }{
		{path, "holds 3 matrices (huge, k.weight, q.weight): name one, as in FILE.safetensors#huge"},
		{path + "#v.weight", `holds no matrix "v.weight", only huge, k.weight, q.weight`},
		{path + "#q.bias", `holds no matrix "q.bias", only huge`},
		{path + "#huge", `tensor "huge", row 0, column 0: 1e+300 is beyond the range of float32`},
		{write(t, "none.safetensors", []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")), "holds neither a sparse matrix nor"},
	} {
		_, err := load.File(t.Context(), c.path, load.Options{})
		if msg := fmt.Sprint(err); !strings.HasPrefix(msg, c.path+":") || !strings.Contains(msg, c.want) || strings.Contains(msg, "\n") {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// What a file claims to hold is checked against what it holds.
func TestSpoiledMatrix(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=20,cols=30")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		spoil func(m *formats.Container)
		want  string
	}{
		{"another format", func(m *formats.Container) { m.Format = "dia" }, `unknown format "dia" (csr, cvse`},
		{"a later version", func(m *formats.Container) { m.Version = 99 }, "format cvse, version 99: this version"},
		{"rows", func(m *formats.Container) { m.Rows += 8 }, "vector pointers"},
		{"entries", func(m *formats.Container) { m.NNZ++ }, "entries, and the header says"},
		{"too many rows", func(m *formats.Container) { m.Rows = 2e9 }, "nearly all rows are empty"},
		{"no panels", func(m *formats.Container) { delete(m.Options, "v") }, "vector length 0"},
		{"an array missing", func(m *formats.Container) { m.Arrays = m.Arrays[1:] }, `no array "vecptr", which format cvse has`},
		{"an array of another type", func(m *formats.Container) { m.Arrays[0].Data = []int32{0} }, `array "vecptr" is a []int32, want a []uint32`},
		{"a column", func(m *formats.Container) {
			m.Arrays[1].Data.([]uint32)[0] = 30
		}, "the matrix has 30 columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := load.Format("cvse")
			if err != nil {
				t.Fatal(err)
			}
			e, err := f.Encode(a, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := formats.NewContainer(e)
			c.spoil(m)
			var file bytes.Buffer
			if err := safetensors.WriteContainer(&file, m); err != nil {
				t.Fatal(err)
			}
			path := write(t, "a.safetensors", file.Bytes())
			_, err = load.Open(t.Context(), path, load.Options{})
			if msg := fmt.Sprint(err); !strings.HasPrefix(msg, path+":") || !strings.Contains(msg, c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// FuzzOpen: what a file holds is refused in one line, or decodes to a valid matrix of the size it says.
func FuzzOpen(f *testing.F) {
	for _, format := range load.Formats() {
		e, err := format.Encode(matrixFor(f, format, "gen:nm,rows=24,cols=32,n=2,m=4"), nil)
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if err := safetensors.WriteMatrix(&b, e); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := safetensors.ReadMatrix(bytes.NewReader(data), safetensors.Options{Limits: formats.Limits{Rows: 1 << 20}})
		if err != nil {
			return
		}
		format, err := load.Format(m.Format)
		if err != nil {
			return
		}
		e, err := format.Open(m)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			return
		}
		got := e.Sparse()
		rows, cols := got.Dims()
		if err := got.Validate(); err != nil || rows != m.Rows || cols != m.Cols || got.NNZ() != m.NNZ ||
			got.Type() != m.Type {
			t.Errorf("%v: %d×%d of %v, %d entries, from %+v", err, rows, cols, got.Type(), got.NNZ(), m)
		}
	})
}

// Every format says which columns its panels fetch: all those that the rows of a panel have entries in.
func TestPanelCols(t *testing.T) {
	for _, f := range load.Formats() {
		a := matrixFor(t, f, "gen:nm,rows=75,cols=64,n=2,m=4,v=1")
		e, err := f.Encode(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, fetched := e.PanelRows(), make([]map[uint32]bool, a.Rows) // by the panel of each row
		for p := 0; p*rows < a.Rows; p++ {
			cols := e.PanelCols([]uint32{7}, p)
			if len(cols) == 0 || cols[0] != 7 {
				t.Fatalf("%s: the columns of panel %d are not appended", f.Name, p)
			}
			set := map[uint32]bool{}
			for _, c := range cols[1:] {
				set[c] = true
			}
			for i := p * rows; i < min(a.Rows, p*rows+rows); i++ {
				fetched[i] = set
			}
		}
		order := upTo(a.Rows)
		if m, ok := e.(*tiledcsr.Matrix[float32]); ok {
			order = m.RowIdx
		}
		for place, i := range order {
			if i >= uint32(a.Rows) {
				continue // no row
			}
			for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				if !fetched[place][uint32(c)] {
					t.Errorf("%s: row %d has an entry in column %d, which its panel does not fetch", f.Name, i, c)
				}
			}
		}
	}
}

func upTo(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}
