// Files that NumPy and SciPy wrote, files of our own, and damaged ones.

package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/npy"
	"pgregory.net/rapid"
)

func open(t testing.TB, name string) *bytes.Reader {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b)
}

// The files of testdata were written by NumPy 1.24 and SciPy 1.10. Arrays are 3×4 with elements
// 4i+j-5, as floats half of that, unsigned 5 more, and as bool whether it is positive.
func TestReadNumPyFiles(t *testing.T) {
	n := func(i, j int) float32 { return float32(4*i + j - 5) }
	fraction := func(i, j int) float32 { return n(i, j) / 2 }
	unsigned := func(i, j int) float32 { return n(i, j) + 5 }
	tests := map[string]func(i, j int) float32{
		"f2": fraction, "f4": fraction, "f8": fraction, "f4_big": fraction, "f8_big": fraction, "f4_fortran": fraction,
		"version2": fraction,
		"i1":       n, "i2": n, "i4": n, "i8": n, "i2_big": n, "u1": unsigned, "u2": unsigned, "u4": unsigned, "u8": unsigned,
		"b1": func(i, j int) float32 {
			if n(i, j) > 0 {
				return 1
			}
			return 0
		},
	}
	for name, want := range tests {
		d, err := npy.Read(iotest.HalfReader(open(t, name+".npy")), npy.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := d.Validate(); err != nil || d.Rows != 3 || d.Cols != 4 || d.ColMajor != (name == "f4_fortran") {
			t.Errorf("%s: %d×%d, column-major %v (%v)", name, d.Rows, d.Cols, d.ColMajor, err)
			continue
		}
		for i := range 3 {
			for j := range 4 {
				if d.At(i, j) != want(i, j) {
					t.Errorf("%s: element (%d, %d) is %v, want %v", name, i, j, d.At(i, j), want(i, j))
				}
			}
		}
	}
	d, err := npy.Read(open(t, "vector.npy"), npy.Options{})
	if err != nil || d.Rows != 3 || d.Cols != 1 || d.At(2, 0) != 2 {
		t.Errorf("vector: %+v (%v)", d, err)
	}
}

func TestReadSciPyFiles(t *testing.T) {
	want := &formats.CSR[float32]{
		Rows: 3, Cols: 5, RowPtr: []int64{0, 2, 3, 5}, ColIdx: []int32{1, 3, 2, 0, 3}, Val: []float32{3, 1.5, 0, -2, 1e-3},
	}
	for _, name := range []string{"csr", "csr_stored", "csr_int64", "csr_unsorted", "csc", "coo"} {
		f := open(t, name+".npz")
		a, err := npy.ReadSparse(f, f.Size(), npy.Options{})
		if err != nil || a.Validate() != nil || !a.Equal(want) {
			t.Errorf("%s: %+v (%v)", name, a, err)
		}
		e, err := npy.OpenSparse(f, f.Size(), npy.Options{})
		if err != nil || formats.ByColumns(e) != (name == "csc") || !e.Sparse().(*formats.CSR[float32]).Equal(want) {
			t.Errorf("%s: opened as %T (%v)", name, e, err)
		}
		if at := formats.Transpose(e).(*formats.CSR[float32]); !at.Equal(want.Transpose()) {
			t.Errorf("%s: transposed, it is %+v", name, at)
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	const types = " (f2, f4, f8, i1 to i8, u1 to u8, b1)"
	dense := func(f *bytes.Reader) error {
		_, err := npy.Read(f, npy.Options{Name: "f"})
		return err
	}
	sparse := func(f *bytes.Reader) error {
		_, err := npy.ReadSparse(f, f.Size(), npy.Options{Name: "f"})
		return err
	}
	for _, tt := range []struct {
		name string
		read func(f *bytes.Reader) error
		want string
	}{
		{"complex.npy", dense, "f: complex arrays are not supported" + types},
		{"object.npy", dense, "f: object arrays are not supported" + types},
		{"struct.npy", dense, "f: structured arrays are not supported"},
		{"csr.npz", dense, "f: no .npy data: does not start with \\x93NUMPY"},
		{"bsr.npz", sparse, `f: sparse format "bsr" is not supported (csr, csc or coo)`},
		{"dense.npz", sparse, `f: no array "format": not written by scipy.sparse.save_npz`},
		{"f4.npy", sparse, "f: no .npz data: zip: not a valid zip file"},
	} {
		if err := tt.read(open(t, tt.name)); fmt.Sprint(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// file makes a .npy file of a dictionary and data.
func file(dict string, data any) []byte {
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(dict)))
	b.WriteString(dict)
	binary.Write(&b, binary.LittleEndian, data)
	return b.Bytes()
}

func TestReadErrors(t *testing.T) {
	good := file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", []float32{1, 2})
	dict := func(s string) []byte { return file(s, []float32{1, 2}) }
	for _, tt := range []struct {
		in   []byte
		want string
	}{
		{nil, "f: ends inside the header"},
		{good[:20], "f: ends inside the header"},
		{good[:len(good)-1], "f: ends inside the array of 2 elements"},
		{append(good[:len(good):len(good)], 0), "f: data after the array's end"},
		{[]byte("\x93NUMPY\x04\x00rest"), "f: version 4.0 of .npy is not supported (1.0 to 3.0)"},
		{[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "f: header of 4294967295 bytes, at most 65536 are supported"},
		{dict("x"), `f: header has "x" where { is expected`},
		{dict("{'descr': '<f4', 'shape': (1, 2)}"), "f: no fortran_order in the header"},
		{dict("{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 2)}"), `f: header has "0, 'shape': (1, …" where True or False is expected`},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2)}"), `f: header has "-2)}" where a size is expected`},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999999999999)}"), `f: header has "9999999999999999…" where a size is expected`},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2)}"), "f: array of 3 dimensions, want 2 (or 1, for one column)"},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"),
			"f: array of 0 dimensions, want 2 (or 1, for one column)"},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (3000000000, 1)}"), "f: 3000000000 rows are beyond the limit of 2147483647"},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 2000000000)}"), "f: 2000000000×2000000000 elements of 4 bytes are beyond the limit of 68719476736 bytes"},
		{dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'x': 1}"), `f: unknown key "x" in the header`},
		{dict("{'descr': 'float', 'fortran_order': False, 'shape': (1, 2)}"), `f: unknown element type "float"`},
		{dict("{'descr': '<f3', 'fortran_order': False, 'shape': (1, 2)}"), `f: element type "f3" is not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)`},
		{dict("{'descr': '<f16', 'fortran_order': False, 'shape': (1, 2)}"), `f: element type "f16" is not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)`},
		{dict("{'descr': '<U2', 'fortran_order': False, 'shape': (1, 2)}"), "f: text arrays are not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)"},
		{file("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2)}", []float64{1, -1e39}),
			"f: element 1: -1e+39 is beyond the range of float32"},
	} {
		_, err := npy.Read(bytes.NewReader(tt.in), npy.Options{Name: "f"})
		if fmt.Sprint(err) != tt.want {
			t.Errorf("%.80q: %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	d, err := npy.Read(bytes.NewReader(file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
		[]float64{nan, inf, 1.0 / 3})), npy.Options{})
	if err != nil || d.Data[0] == d.Data[0] || d.Data[1] != float32(inf) || d.Data[2] != 1.0/3 {
		t.Errorf("%v (%v)", d, err)
	}
	d, err = npy.Read(bytes.NewReader(file("{'descr': '<u8', 'fortran_order': False, 'shape': (2L,), }",
		[]uint64{math.MaxUint64, 1<<63 + 1<<39 + 1})), npy.Options{})
	if err != nil || d.Data[0] != 1<<64 || d.Data[1] != 1<<63+1<<40 {
		t.Errorf("%v (%v)", d, err)
	}
}

// Any type, order and shape reads as what was written; elements are drawn as integers that all hold.
func TestReadAllTypes(t *testing.T) {
	types := map[string]any{"f8": float64(0), "f4": float32(0), "i1": int8(0), "i2": int16(0), "i4": int32(0),
		"i8": int64(0),
		"u1": uint8(0), "u2": uint16(0), "u4": uint32(0), "u8": uint64(0)}
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 300).Draw(t, "rows"), rapid.IntRange(0, 300).Draw(t, "cols")
		name := rapid.SampledFrom([]string{"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}).Draw(t, "type")
		big, fortran := rapid.Bool().Draw(t, "big"), rapid.Bool().Draw(t, "fortran")
		want := gen.Dense(rows, cols, rapid.Uint64().Draw(t, "seed"),
			gen.Values{Kind: gen.Int, Lo: 0, Hi: 127}).Layout(fortran, 0)
		var order binary.ByteOrder = binary.LittleEndian
		mark, pythonBool := "<", "False"
		if big {
			order, mark = binary.BigEndian, ">"
		}
		if fortran {
			pythonBool = "True"
		}
		var b bytes.Buffer
		b.Write(file(fmt.Sprintf("{'descr': '%s%s', 'fortran_order': %s, 'shape': (%d, %d), }", mark, name, pythonBool, rows,
			cols), []byte{}))
		data := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(types[name])), len(want.Data), len(want.Data))
		for i, x := range want.Data {
			data.Index(i).Set(reflect.ValueOf(x).Convert(data.Type().Elem()))
		}
		binary.Write(&b, order, data.Interface())
		got, err := npy.Read(&b, npy.Options{})
		if err != nil || !got.Equal(want) || got.ColMajor != fortran {
			t.Fatalf("%s%s: read back differently (%v)", mark, name, err)
		}
	})
}

func checkRoundTrip[T formats.Value](t *rapid.T, want *formats.Dense[T]) {
	var b bytes.Buffer
	if err := npy.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(b.Bytes(), '\n')%64 != 63 {
		t.Fatal("the header's end is not aligned")
	}
	got, err := npy.Read(&b, npy.Options{})
	if err != nil || got.ColMajor != want.ColMajor || !formats.ConvertDense[T](got).Equal(want) {
		t.Fatalf("read back differently (%v)", err)
	}
}

func TestWriteThenRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 100).Draw(t, "rows"), rapid.IntRange(0, 100).Draw(t, "cols")
		d := gen.Dense(rows, cols, rapid.Uint64().Draw(t, "seed"), gen.Values{}).
			Layout(rapid.Bool().Draw(t, "colMajor"), rapid.IntRange(0, 120).Draw(t, "ld"))
		checkRoundTrip(t, d)
		checkRoundTrip(t, formats.ConvertDense[half.F16](d))
		checkRoundTrip(t, formats.ConvertDense[half.BF16](d))
	})
}

func TestSparseWriteThenRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Uniform(t, 90, "")
		var b bytes.Buffer
		if err := npy.WriteSparse(&b, a); err != nil {
			t.Fatal(err)
		}
		got, err := npy.ReadSparse(bytes.NewReader(b.Bytes()), int64(b.Len()), npy.Options{})
		if err != nil || !got.Equal(a) {
			t.Fatalf("read back differently (%v)", err)
		}
	})
}

// vector is a .npy file of one dimension.
func vector(descr string, n int, data any) []byte {
	return file(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", descr, n), data)
}

// npz makes an archive of a csr matrix, in which other members replace the usual ones; nil: left out.
func npz(replace map[string][]byte) []byte {
	members := map[string][]byte{
		"format":  file("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", []byte("csr")),
		"shape":   vector("<i8", 2, []int64{2, 3}),
		"indptr":  vector("<i4", 3, []int32{0, 2, 3}),
		"indices": vector("<i4", 3, []int32{0, 2, 1}),
		"data":    vector("<f4", 3, []float32{1, 2, 3}),
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range members {
		if r, ok := replace[name]; ok {
			data = r
		}
		if data != nil {
			w, _ := z.Create(name + ".npy")
			w.Write(data)
		}
	}
	z.Close()
	return b.Bytes()
}

func TestReadSparseErrors(t *testing.T) {
	for _, tt := range []struct {
		member string
		data   []byte
		want   string
	}{
		{"", nil, "<nil>"},
		{"data", vector("<f4", 5, []float32{1, 2, 3, 4, 5}), "<nil>"}, // longer than indptr says: SciPy allows it
		{"format", file("{'descr': '<U3', 'fortran_order': False, 'shape': (), }", []int32{'c', 's', 'r'}), "<nil>"},
		{"data", nil, `f: no array "data": not written by scipy.sparse.save_npz`},
		{"format", vector("<i4", 1, []int32{7}), "f: format.npy: is not a short text"},
		{"format", file("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", []byte("dia")),
			`f: sparse format "dia" is not supported (csr, csc or coo)`},
		{"shape", vector("<i8", 3, []int64{2, 3, 4}), "f: shape.npy: 3 elements, want 2"},
		{"shape", vector("<i8", 2, []int64{-2, 3}), "f: negative size -2×3"},
		{"shape", vector("<f8", 2, []float64{2, 3}), "f: shape.npy: element type f8, want an integer"},
		{"indptr", vector("<i4", 2, []int32{0, 2}), "f: indptr.npy: 2 elements, want 3"},
		{"indptr", vector("<i4", 3, []int32{0, 4, 3}), "f: row 1: ends at 3, before its start 4"},
		{"indptr", vector("<i4", 3, []int32{0, 2, 4}), "f: indptr ends at 4, but there are 3 indices and 3 values"},
		{"indptr", vector("<i4", 3, []int32{0, 2, -4}), "f: indptr ends at -4, but there are 3 indices and 3 values"},
		{"indices", vector("<i4", 3, []int32{0, 3, 1}), "f: row 0, position 1: column 3 is outside the 3 columns"},
		{"indices", vector("<i8", 3, []int64{0, 1 << 40, 1}), "f: indices.npy: element 1: index 1099511627776 is out of range"},
		{"indices", vector("<f4", 3, []float32{0, 2, 1}), "f: indices.npy: element type f4, want an integer"},
		{"indices", vector("<i4", 2, []int32{0, 2}), "f: indptr ends at 3, but there are 2 indices and 3 values"},
		{"data", vector("<c8", 3, make([]float32, 6)), "f: data.npy: complex arrays are not supported (f2, f4, f8, i1 to i8, u1 to u8, b1)"},
		{"data", vector("<f4", 3, []float32{1}), "f: data.npy: ends inside the array of 3 elements"},
		{"data", file("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }", []float32{1}), "f: data.npy: 1099511627776 elements are beyond the limit of 8589934592"},
		{"data", file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }", []float32{1, 2, 3}),
			"f: data.npy: 2 dimensions, want 1"},
	} {
		replace := map[string][]byte{}
		if tt.member != "" {
			replace[tt.member] = tt.data
		}
		b := npz(replace)
		if _, err := npy.ReadSparse(bytes.NewReader(b), int64(len(b)), npy.Options{Name: "f"}); fmt.Sprint(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.member, err, tt.want)
		}
	}
}

// A damaged member is found by its checksum.
func TestDamagedArchive(t *testing.T) {
	b := npz(nil)
	f, err := io.ReadAll(open(t, "csr_stored.npz"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(f, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)))
	f[at]++
	if _, err := npy.ReadSparse(bytes.NewReader(f), int64(len(f)),
		npy.Options{Name: "f"}); fmt.Sprint(err) != "f: data.npy: zip: checksum error" {
		t.Error(err)
	}
	if _, err := npy.ReadSparse(bytes.NewReader(b[:len(b)-30]), int64(len(b)-30), npy.Options{Name: "f"}); err == nil {
		t.Error("a cut archive was read")
	}
}

func TestHugeHeadersAllocateLittle(t *testing.T) {
	dense := file("{'descr': '<f4', 'fortran_order': False, 'shape': (100000, 100000), }", []float32{1})
	csc := npz(map[string][]byte{ // its columns are stored, its rows are not
		"format": file("{'descr': '|S3', 'fortran_order': False, 'shape': (), }", []byte("csc")),
		"shape":  vector("<i8", 2, []int64{2000000000, 2}),
	})
	n := formatstest.Allocated(func() {
		if _, err := npy.Read(bytes.NewReader(dense), npy.Options{}); err == nil {
			t.Error("a cut file was read")
		}
		_, err := npy.ReadSparse(bytes.NewReader(csc), int64(len(csc)), npy.Options{Name: "f"})
		if want := "f: 2000000000 rows for 3 entries: nearly all rows are empty"; fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
	if n > 2<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

// addFiles gives a fuzz target files of testdata.
func addFiles(f *testing.F, ext string, names ...string) {
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("testdata", name+ext))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func FuzzRead(f *testing.F) {
	addFiles(f, ".npy", "f2", "f4_big", "f4_fortran", "u8", "b1", "vector", "version2", "struct", "complex")
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := npy.Read(bytes.NewReader(in), npy.Options{})
		formatstest.Read(t, d, err)
	})
}

func FuzzReadSparse(f *testing.F) {
	addFiles(f, ".npz", "csr", "csr_stored", "csc", "coo", "bsr")
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := npy.ReadSparse(bytes.NewReader(in), int64(len(in)),
			npy.Options{Limits: formats.Limits{Rows: 1e5, Cols: 1e5, NNZ: 1e5}})
		formatstest.Read(t, a, err)
	})
}

// The arrays of an archive are fuzzed one by one, in an archive whose checksums are right.
func FuzzMembers(f *testing.F) {
	for _, name := range []string{"csr", "csr_unsorted", "csc", "coo", "bsr"} {
		z, err := zip.OpenReader(filepath.Join("testdata", name+".npz"))
		if err != nil {
			f.Fatal(err)
		}
		defer z.Close()
		member := func(names ...string) []byte {
			for _, name := range names {
				if m, err := z.Open(name + ".npy"); err == nil {
					b, err := io.ReadAll(m)
					if err != nil {
						f.Fatal(err)
					}
					return b
				}
			}
			f.Fatalf("%s: no %v", name, names)
			return nil
		}
		f.Add(member("format"), member("shape"), member("indptr", "col"), member("indices", "row"), member("data"))
	}
	f.Fuzz(func(t *testing.T, format, shape, ptr, idx, data []byte) {
		z := stored("format", format, "shape", shape, "indptr", ptr, "col", ptr, "indices", idx, "row", idx, "data", data)
		o := npy.Options{Limits: formats.Limits{Rows: 1e4, Cols: 1e4, NNZ: 1e4}}
		e, err := npy.OpenSparse(bytes.NewReader(z), int64(len(z)), o)
		if !formatstest.Read(t, e, err) {
			return
		}
		if err := e.Sparse().Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// stored is an archive of arrays that are not compressed: names and contents in turn.
func stored(members ...any) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, _ := z.CreateHeader(&zip.FileHeader{Name: members[i].(string) + ".npy", Method: zip.Store})
		w.Write(members[i+1].([]byte))
	}
	z.Close()
	return b.Bytes()
}

func Example() {
	d := &formats.Dense[half.F16]{Rows: 2, Cols: 2, LD: 2, Data: []half.F16{0x3c00, 0x4000, 0x4200, 0x4400}}
	var file bytes.Buffer
	if err := npy.Write(&file, d); err != nil {
		fmt.Println(err)
		return
	}
	back, err := npy.Read(&file, npy.Options{Name: "b.npy"})
	fmt.Println(back.Data, err)
	// Output: [1 2 3 4] <nil>
}

func BenchmarkRead(b *testing.B) {
	d := gen.Dense(1024, 1024, 1, gen.Values{})
	var f2, f4 bytes.Buffer
	npy.Write(&f2, formats.ConvertDense[half.F16](d))
	npy.Write(&f4, d)
	for name, file := range map[string][]byte{"f2": f2.Bytes(), "f4": f4.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if _, err := npy.Read(bytes.NewReader(file), npy.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What rounding float64 loses is counted, in either byte order; other types lose nothing.
func TestLoss(t *testing.T) {
	wide := []float64{1, 0.1, 1e-60}
	lost := formats.Loss{Values: 3, Rounded: 1, Zeroed: 1, MaxError: 1}
	big := make([]byte, 24)
	for i, x := range wide {
		binary.BigEndian.PutUint64(big[8*i:], math.Float64bits(x))
	}
	for _, c := range []struct {
		descr string
		data  any
		want  formats.Loss
	}{{"<f8", wide, lost}, {">f8", big, lost}, {"<f4", []float32{1, 0.1, 2}, formats.Loss{}},
		{"<i8", []int64{1, 2, 3}, formats.Loss{}}} {
		got := formats.Loss{Values: 99}
		if _, err := npy.Read(bytes.NewReader(vector(c.descr, 3, c.data)), npy.Options{Loss: &got}); err != nil ||
			got != c.want {
			t.Errorf("%s: %+v, want %+v (%v)", c.descr, got, c.want, err)
		}
		z := npz(map[string][]byte{"data": vector(c.descr, 3, c.data)})
		got = formats.Loss{Values: 99}
		if _, err := npy.ReadSparse(bytes.NewReader(z), int64(len(z)), npy.Options{Loss: &got}); err != nil || got != c.want {
			t.Errorf("%s in an archive: %+v, want %+v (%v)", c.descr, got, c.want, err)
		}
	}
}

// Rows that come one after the other make the file that Write makes of all.
func TestWriter(t *testing.T) {
	d := formats.NewDense[float32](7, 3)
	for i := range d.Data {
		d.Data[i] = float32(i) / 3
	}
	var want, got bytes.Buffer
	if err := npy.Write(&want, d); err != nil {
		t.Fatal(err)
	}
	w, err := npy.NewWriter[float32](&got, 7, 3)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(lo, hi int) *formats.Dense[float32] {
		return &formats.Dense[float32]{Rows: hi - lo, Cols: 3, LD: 3, Data: d.Data[3*lo : 3*hi]}
	}
	for _, r := range [][2]int{{0, 0}, {0, 5}, {5, 6}} {
		if err := w.WriteRows(rows(r[0], r[1])); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() == nil {
		t.Error("a row is missing, and it is no error")
	}
	if w.WriteRows(rows(5, 7)) == nil || w.WriteRows(formats.NewDense[float32](1, 2)) == nil {
		t.Error("rows that do not fit are not refused")
	}
	if err := w.WriteRows(rows(6, 7)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("another file than Write's; %v", err)
	}
}

// full accepts `room` bytes and no more.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	if f.room -= n; n < len(p) {
		return n, errFull
	}
	return n, nil
}

// Wherever writing an archive fails, there is one error, and after it nothing is written.
func TestWriteSparseFull(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=2000,cols=500,density=0.02")
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := npy.WriteSparse(&whole, a); err != nil {
		t.Fatal(err)
	}
	for room := 0; room < whole.Len(); room += whole.Len()/40 + 1 {
		if err := npy.WriteSparse(&full{room}, a); !errors.Is(err, errFull) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d of %d bytes fit: %v", room, whole.Len(), err)
		}
	}
}
