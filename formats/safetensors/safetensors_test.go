package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/safetensors"
)

// diff returns how two files differ, the order of their tensors aside.
func diff(x, y *safetensors.File) string {
	byName := cmpopts.SortSlices(func(x, y safetensors.Tensor) bool { return x.Name < y.Name })
	d := cmp.Diff(x, y, byName, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(safetensors.Tensor{}, "Data"))
	if d != "" {
		return d
	}
	data := map[string][]byte{}
	for _, t := range x.Tensors {
		data[t.Name] = t.Data
	}
	for _, t := range y.Tensors {
		if !bytes.Equal(data[t.Name], t.Data) {
			return "the elements of " + t.Name
		}
	}
	return ""
}

// file puts a header's length before it and data behind it.
func file(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// The layout byte by byte, as other programs write it.
func TestLayout(t *testing.T) {
	const header = `{"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"__metadata__":{"made by":"hand"},` +
		`"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"s":{"dtype":"BOOL","shape":[],"data_offsets":[11,12]},` +
		`"none":{"dtype":"I64","shape":[0,9],"data_offsets":[12,12]}}   `
	f, err := safetensors.Read(bytes.NewReader(file(header, "\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\x03\x01")),
		safetensors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &safetensors.File{
		Metadata: map[string]string{"made by": "hand"},
		Tensors: []safetensors.Tensor{
			{Info: safetensors.Info{Name: "a", Type: safetensors.F32, Shape: []int64{2, 1}},
				Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
			{Info: safetensors.Info{Name: "b", Type: safetensors.U8, Shape: []int64{3}}, Data: []byte{1, 2, 3}},
			{Info: safetensors.Info{Name: "s", Type: safetensors.Bool, Shape: []int64{}}, Data: []byte{1}},
			{Info: safetensors.Info{Name: "none", Type: safetensors.I64, Shape: []int64{0, 9}}},
		},
	}
	if d := diff(want, f); d != "" {
		t.Error(d)
	}
	if x, err := safetensors.Elements[float32](f.Tensors[0]); err != nil || len(x) != 2 || x[0] != 1 || x[1] != -2 {
		t.Errorf("elements %v, %v", x, err)
	}
	_, err = safetensors.Elements[int32](f.Tensors[0])
	if want := `tensor "a" has elements of type F32, want I32`; fmt.Sprint(err) != want {
		t.Error(err)
	}
}

func TestReadRefuses(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"x":{"dtype":"%s","shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "ends inside the header's length"},
		{"half a length", []byte("abc"), "ends inside the header's length"},
		{"a text", []byte("%%MatrixMarket matrix"), "no safetensors data: a header of"},
		{"a long header", file("", "")[:8:8], "the header is no JSON object"},
		{"a header that is not there", binary.LittleEndian.AppendUint64(nil, 99e6),
			"ends inside the header of 99000000 bytes"},
		{"one byte more than allowed", binary.LittleEndian.AppendUint64(nil, safetensors.MaxHeader+1), "a header of 100000001 bytes"},
		{"no object", file("[]", ""), "the header is no JSON object"},
		{"a space first", file(" {}", ""), "the header is no JSON object"},
		{"half an object", file(`{"x":`, ""), "the header ends inside its JSON object"},
		{"an open object", file(`{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, ""), "the header ends inside its JSON object"},
		{"no JSON", file(`{x}`, ""), "the header is no JSON: invalid character"},
		{"something behind it", file(`{}{}`, ""), "goes on behind its JSON object"},
		{"a number", file(`{"x":1}`, ""), `tensor "x": the header has number where it must not`},
		{"null", file(`{"x":null}`, ""), `tensor "x": want a dtype, a shape and two data_offsets`},
		{"three offsets", file(one("F32", "[1]", "[0,4,8]"), "1234"), "two data_offsets"},
		{"a text in the shape", file(one("F32", `["1"]`, "[0,4]"), "1234"), `tensor "x": the header has string as shape`},
		{"a fraction", file(one("F32", `[1.5]`, "[0,4]"), "1234"), `the header has number 1.5 as shape`},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`, ""), "the header has number"},
		{"twice", file(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, ""), `"x" twice`},
		{"unknown type", file(one("F4", "[1]", "[0,4]"), "1234"), `unknown element type "F4"`},
		{"negative size", file(one("F32", "[-1]", "[0,4]"), "1234"), "negative size in shape [-1]"},
		{"overflow", file(one("F32", "[4294967296,4294967296]", "[0,0]"), ""), "shape [4294967296 4294967296] overflows"},
		{"overflow to a sign", file(one("F64", "[1152921504606846976]", "[0,0]"), ""), "overflows"},
		{"too few bytes", file(one("F32", "[2]", "[0,4]"), "1234"), "4 bytes for shape [2] of F32, want 8"},
		{"backwards", file(one("F32", "[2]", "[8,0]"), "1234"), "data_offsets 8 to 0"},
		{"negative offset", file(one("F32", "[1]", "[-4,0]"), "1234"), "data_offsets -4 to 0"},
		{"a gap", file(one("U8", "[1]", "[1,2]"), "12"), "starts at byte 1, and no tensor has those from 0 on"},
		{"overlap", file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, "123"), `tensor "y": starts at byte 1, inside another`},
		{"cut off", file(one("U8", "[9000000000]", "[0,9000000000]"), "1234"), `ends inside tensor "x"`},
		{"beyond the limit", file(one("U8", "[90000000000]", "[0,90000000000]"), "1234"),
			`tensors of 90000000000 bytes are beyond the limit`},
		{"more behind", file(one("U8", "[1]", "[0,1]"), "12"), "goes on behind the last tensor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := safetensors.Read(bytes.NewReader(c.data), safetensors.Options{Name: "f"})
			if msg := fmt.Sprint(err); !strings.HasPrefix(msg, "f: ") || !strings.Contains(msg, c.want) || strings.Contains(msg, "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A Reader passes over what nobody reads, says what is to come, and does not read a tensor twice.
func TestReader(t *testing.T) {
	var b bytes.Buffer
	err := safetensors.Write(&b, &safetensors.File{Tensors: []safetensors.Tensor{
		safetensors.NewTensor("small", []uint8{1, 2, 3}), safetensors.NewTensor("large", make([]uint64, 3000)),
		safetensors.NewTensor("x", []int16{7}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	r, err := safetensors.NewReader(iotest.HalfReader(bytes.NewReader(whole)), safetensors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if left := r.Left(); len(left) != 3 || left[0].Name != "large" || left[1].Name != "x" {
		t.Errorf("tensors to come: %v", left)
	}
	for _, name := range []string{"large", "x", "small"} {
		i, err := r.Next()
		if err != nil || i.Name != name {
			t.Fatalf("%v, %v, want %s", i, err, name)
		}
	}
	if data, err := r.Data(); err != nil || string(data) != "\x01\x02\x03" {
		t.Errorf("%v, %v", data, err)
	}
	if _, err := r.Data(); fmt.Sprint(err) != `input: tensor "small" was read before` {
		t.Error(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	broken := errors.New("broken")
	if _, err = safetensors.Read(io.MultiReader(bytes.NewReader(whole[:500]), iotest.ErrReader(broken)), safetensors.Options{}); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
	r, err = safetensors.NewReader(bytes.NewReader(whole[:500]), safetensors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Next()
	if _, err := r.Next(); fmt.Sprint(err) != `input: ends inside tensor "large"` {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	x := safetensors.NewTensor("x", []float32{1})
	short, unknown, reserved := x, x, x
	short.Shape = []int64{2}
	unknown.Type = "F4"
	reserved.Name = "__metadata__"
	for want, ts := range map[string][]safetensors.Tensor{
		`tensor "x": the name is taken`:            {x, x},
		`tensor "x": 4 bytes for shape [2] of F32`: {short},
		`unknown element type "F4"`:                {unknown},
		`tensor "__metadata__": the name is taken`: {reserved},
	} {
		if err := safetensors.Write(io.Discard, &safetensors.File{Tensors: ts}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := safetensors.Write(brokenWriter{}, &safetensors.File{Tensors: []safetensors.Tensor{x}}); !errors.Is(err,
		os.ErrClosed) {
		t.Errorf("%v, want the writer's error", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// What is written is read back, tensors aligned to their elements.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &safetensors.File{Metadata: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zß"<\\.0-9]{0,9}`), 0, 6, rapid.ID).Draw(t, "names")
		for i, name := range names {
			n := rapid.SampledFrom([]int{0, 1, 5, 8, 70000}).Draw(t, "elements")
			var x safetensors.Tensor
			switch (i + rapid.IntRange(0, 4).Draw(t, "type")) % 5 {
			case 0:
				x = safetensors.NewTensor(name, make([]uint8, n))
			case 1:
				x = safetensors.NewTensor(name, make([]half.BF16, n))
			case 2:
				x = safetensors.NewTensor(name, make([]int32, n))
			case 3:
				x = safetensors.NewTensor(name, make([]float32, n))
			case 4:
				x = safetensors.NewTensor(name, make([]int64, n))
			}
			for j := range x.Data {
				x.Data[j] = byte(i + 7*j)
			}
			f.Tensors = append(f.Tensors, x)
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, f); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		got, err := safetensors.Read(&b, safetensors.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(f, got); d != "" {
			t.Fatal(d)
		}
		at := len(text)
		for i := len(got.Tensors) - 1; i >= 0; i-- {
			x := got.Tensors[i]
			if at -= len(x.Data); at%x.Type.Size() != 0 {
				t.Fatalf("tensor %q starts at byte %d of the file", x.Name, at)
			}
		}
	})
}

// Memory grows with what is read.
func TestLyingHeader(t *testing.T) {
	data := file(`{"x":{"dtype":"U8","shape":[60000000000],"data_offsets":[0,60000000000]}}`, strings.Repeat("x", 1<<20))
	n := formatstest.Allocated(func() {
		if _, err := safetensors.Read(bytes.NewReader(data), safetensors.Options{}); err == nil {
			t.Error("no error")
		}
	})
	if n > 16<<20 {
		t.Errorf("%d bytes allocated for a file of 1 MiB", n)
	}
}

func TestReadMatrixRefuses(t *testing.T) {
	for _, c := range []struct{ metadata, want string }{
		{`{}`, "holds no sparse matrix: its metadata lack one of format, version, rows, cols, nnz"},
		{`{"format":"pt"}`, "holds no sparse matrix"},
		{`{"format":"csr","version":"1","dtype":"f32","rows":"x","cols":"1","nnz":"0"}`, `rows "x" in the metadata is no number`},
		{`{"format":"csr","version":"1","dtype":"f32","rows":"1","cols":"-1","nnz":"0"}`, `cols "-1" in the metadata is no number`},
		{`{"format":"csr","version":"1","dtype":"tf32","rows":"1","cols":"1","nnz":"0"}`, `dtype "tf32" in the metadata is none of f16, bf16, f32, f64`},
		{`{"format":"csr","version":"1","dtype":"f32","rows":"4000000000","cols":"1","nnz":"0"}`, "4000000000 rows are beyond the limit"},
		{`{"format":"csr","version":"1","dtype":"f32","rows":"2000000000","cols":"1","nnz":"0"}`, "nearly all rows are empty"},
	} {
		_, err := safetensors.ReadMatrix(bytes.NewReader(file(`{"__metadata__":`+c.metadata+`}`, "")), safetensors.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.metadata, err, c.want)
		}
	}
}

// FuzzRead: whatever is read is written to a file that reads the same.
func FuzzRead(f *testing.F) {
	f.Add(file(`{"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"__metadata__":{"a":"b"}}`, "1234"))
	f.Add(file(`{"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"y":{"dtype":"I32","shape":[0],"data_offsets":[1,1]}}  `, "1"))
	f.Add(file(`{"__metadata__":{"format":"csr","version":"1","dtype":"f32","rows":"1","cols":"1","nnz":"0"},`+
		`"rowptr":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"colidx":{"dtype":"I32","shape":[0],"data_offsets":[16,16]},`+
		`"values":{"dtype":"F32","shape":[0],"data_offsets":[16,16]}}`, strings.Repeat("\x00", 16)))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := safetensors.Read(bytes.NewReader(data), safetensors.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, got); err != nil {
			t.Fatal(err)
		}
		again, err := safetensors.Read(&b, safetensors.Options{})
		if d := diff(got, again); err != nil || d != "" {
			t.Fatalf("written and read again: %v\n%s", err, d)
		}
		if m, err := safetensors.ReadMatrix(bytes.NewReader(data), safetensors.Options{}); err == nil {
			if e, err := formats.CSRFormat.Open(m); err == nil && e.Sparse().Validate() != nil {
				t.Error("opened, but not valid")
			}
		}
	})
}

func ExampleWriteMatrix() {
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 2}, Val: []float32{1, -2}}
	var file bytes.Buffer
	if err := safetensors.WriteMatrix(&file, a); err != nil {
		fmt.Println(err)
		return
	}
	m, err := safetensors.ReadMatrix(&file, safetensors.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, array := range m.Arrays {
		fmt.Printf("%s %T\n", array.Name, array.Data)
	}
	e, err := formats.CSRFormat.Open(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Format(), e.Type(), formats.Convert[float32](e.Sparse()).Val)
	// Output:
	// rowptr []int64
	// colidx []int32
	// values []float32
	// csr f32 [1 -2]
}

func BenchmarkRead(b *testing.B) {
	var f bytes.Buffer
	large := safetensors.NewTensor("x", make([]float32, 16<<20))
	if err := safetensors.Write(&f, &safetensors.File{Tensors: []safetensors.Tensor{large}}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(f.Len()))
	for b.Loop() {
		if _, err := safetensors.Read(bytes.NewReader(f.Bytes()), safetensors.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
