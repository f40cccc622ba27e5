// Every type by its content, plain and compressed, from files and from a pipe; errors, limits, progress.

package load_test

import (
	archive "archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/formats/safetensors"
	"github.com/spmmrun/spmm/formats/smtx"
	"github.com/spmmrun/spmm/internal/memory"
)

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// files returns the same matrix, of entries 1, in every type.
func files(t testing.TB) (a *formats.CSR[float32], files map[string][]byte) {
	t.Helper()
	a, err := gen.CSR("gen:uniform,rows=70,cols=50,values=ones")
	if err != nil {
		t.Fatal(err)
	}
	dense := formats.NewDense[float32](a.Rows, a.Cols)
	for p, coo := 0, a.ToCOO(); p < len(coo.Val); p++ {
		dense.Set(int(coo.Row[p]), int(coo.Col[p]), 1)
	}
	files = map[string][]byte{}
	for name, write := range map[string]func(io.Writer) error{
		"mtx":  func(w io.Writer) error { return mtx.Write(w, a) },
		"smtx": func(w io.Writer) error { return smtx.Write(w, a) },
		"npz":  func(w io.Writer) error { return npy.WriteSparse(w, a) },
		"npy":  func(w io.Writer) error { return npy.Write(w, dense) },
		"safetensors": func(w io.Writer) error {
			return safetensors.WriteMatrix(w, a)
		},
		"cvse.safetensors": func(w io.Writer) error {
			m, err := cvse.Encode(formats.Convert[half.F16](a), cvse.Options{V: 8})
			if err != nil {
				return err
			}
			return safetensors.WriteMatrix(w, m)
		},
		"dense.safetensors": func(w io.Writer) error {
			t := safetensors.NewTensor("w", dense.Data)
			t.Shape = []int64{int64(a.Rows), int64(a.Cols)}
			return safetensors.Write(w, &safetensors.File{Metadata: map[string]string{"format": "pt"},
				Tensors: []safetensors.Tensor{t}})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	return a, files
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every type is recognised by its content, whatever the name, plain or compressed, from a file or
// standard input.
func TestFile(t *testing.T) {
	want, types := files(t)
	ones := &gen.Values{Kind: gen.Ones}
	for typ, b := range types {
		for name, data := range map[string][]byte{"a." + typ: b, "a." + typ + ".gz": zip(b), "other": b,
			"misnamed.txt": zip(b)} {
			path := write(t, name, data)
			a, err := load.File(t.Context(), path, load.Options{Pattern: ones})
			if err != nil || !a.Equal(want) {
				t.Errorf("%s as %s: %v", typ, name, err)
			}
			if a, err := fromStdin(t, path, load.Options{Pattern: ones}); err != nil || !a.Equal(want) {
				t.Errorf("%s as standard input: %v", typ, err)
			}
			if m, err := load.Bytes(t.Context(), name, data, load.Options{Pattern: ones}); err != nil ||
				!formats.Convert[float32](m.Sparse()).Equal(want) {
				t.Errorf("%s as bytes named %s: %v", typ, name, err)
			}
		}
	}
}

// fromStdin reads path through a pipe that stands for standard input.
func fromStdin(t *testing.T, path string, o load.Options) (*formats.CSR[float32], error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		w.Write(b)
		w.Close()
	}()
	stdin := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = stdin; r.Close() }()
	return load.File(t.Context(), "-", o)
}

func TestValuesOfPatterns(t *testing.T) {
	_, types := files(t)
	path := write(t, "a.smtx", types["smtx"])
	a, err := load.File(t.Context(), path, load.Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	pattern := write(t, "p.mtx", []byte("%%MatrixMarket matrix coordinate pattern general\n9 9 2\n1 2\n9 9\n"))
	ones, err := load.File(t.Context(), pattern, load.Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	normal, err := load.File(t.Context(), pattern, load.Options{Seed: 7, Pattern: &gen.Values{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string][2]float32{
		"smtx":                {a.Val[0], gen.Values{}.Entry(7, 0, int(a.ColIdx[0]))},
		"mtx":                 {ones.Val[1], 1},
		"mtx with a seed":     {normal.Val[1], gen.Values{}.Entry(7, 8, 8)},
		"mtx with a seed (0)": {normal.Val[0], gen.Values{}.Entry(7, 0, 1)},
	} {
		if tt[0] != tt[1] {
			t.Errorf("%s: value %v, want %v", name, tt[0], tt[1])
		}
	}
}

func TestSpec(t *testing.T) {
	a, err := load.File(t.Context(), "gen:uniform,rows=20,cols=30", load.Options{Seed: 3})
	want, err2 := gen.CSR("gen:uniform,rows=20,cols=30,seed=3")
	if err != nil || err2 != nil || !a.Equal(want) {
		t.Errorf("%v, %v", err, err2)
	}
	_, err = load.File(t.Context(), "gen:unifrom", load.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), `gen:unifrom: unknown kind "unifrom" (banded, `) {
		t.Error(err)
	}
	_, err = load.File(t.Context(), "gen:uniform,rows=2000000000", load.Options{Limits: formats.Limits{Rows: 1000}})
	if want := "gen:uniform: 2000000000 rows are beyond the limit of 1000"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestErrors(t *testing.T) {
	_, types := files(t)
	dir := t.TempDir()
	put := func(name string, b []byte) string { return write(t, name, b) }
	const known = " (Matrix Market .mtx, DLMC .smtx, SciPy .npz, NumPy .npy or .safetensors, plain or .gz)"
	tar := make([]byte, 512)
	copy(tar[257:], "ustar")
	cut := zip(bytes.Repeat(types["mtx"], 50)) // long enough to be cut behind the banner
	npz := zip(types["npz"])
	for _, tt := range []struct{ path, want string }{
		{filepath.Join(dir, "missing.mtx"), "no such file or directory"},
		{dir, "is a directory"},
		{put("empty.mtx", nil), "empty file"},
		{put("empty.mtx.gz", zip(nil)), "empty file"},
		{put("cut.mtx.gz", cut[:len(cut)/2]), "compressed data is cut off"},
		{put("cut.npz.gz", npz[:len(npz)/2]), "compressed data is cut off"},
		{put("cut.npy.gz", zip(types["npy"])[:150]), "ends inside the array of 3500 elements"},
		{put("short.gz", []byte("\x1f\x8b")), "compressed data is cut off"},
		{put("cut.npz", types["npz"][:len(types["npz"])/2]), "no .npz data: zip: not a valid zip file"},
		{put("text.txt", []byte("hello\n")), "unknown file type" + known},
		{put("hello.mtx", []byte("hello\n")), `no Matrix Market file: the first line is not "%%MatrixMarket`},
		{put("hello.smtx", []byte("hello\n")), `"hello" is not an integer`},
		{put("hello.npy", []byte("hello hello\n")), "no .npy data: does not start with"},
		{put("hello.npz", []byte("hello\n")), "no .npz data: zip: not a valid zip file"},
		{put("rows.npy", []byte("\x93NUMPY\x01\x00\x48\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2000000000, 0), }   \n")), "2000000000 rows for 0 entries"},
		{put("a.mtx.bz2", []byte("BZh91AY")), "is compressed by bzip2, which is not supported" + known},
		{put("a.h5", []byte("\x89HDF\r\n\x1a\n")), "is an HDF5 file, which is not supported" + known},
		{put("a.tar.gz", zip(tar)), "is a tar archive: unpack it and give the matrix file in it"},
		{put("complex.mtx", []byte("%%MatrixMarket matrix coordinate complex general\n")),
			"complex matrices are not supported"},
	} {
		_, err := load.File(t.Context(), tt.path, load.Options{})
		msg := fmt.Sprint(err)
		if !strings.HasPrefix(msg, tt.path+":") || !strings.Contains(msg, tt.want) || strings.Contains(msg, "\n") {
			t.Errorf("%s: %v, want %s", tt.path, err, tt.want)
		}
	}
	if _, err := fromStdin(t, os.DevNull, load.Options{}); fmt.Sprint(err) != "standard input: empty file" {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	_, types := files(t)
	for typ, b := range types {
		var done, total int64
		o := load.Options{Progress: func(d, n int64) {
			if d < done {
				t.Errorf("%s: progress goes back from %d to %d", typ, done, d)
			}
			done, total = d, n
		}}
		if _, err := load.File(t.Context(), write(t, "a."+typ, b), o); err != nil {
			t.Fatal(err)
		}
		if done == 0 || done > total || total != int64(len(b)) || typ != "npz" && done != total {
			t.Errorf("%s: %d of %d bytes read of %d", typ, done, total, len(b))
		}
	}
}

func TestCancelled(t *testing.T) {
	_, types := files(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for typ, b := range types {
		for _, data := range [][]byte{b, zip(b)} {
			if _, err := load.File(ctx, write(t, "a."+typ, data), load.Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", typ, err)
			}
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	big := bytes.Repeat([]byte("% a comment\n"), 1<<16)
	path := write(t, "long.mtx", append([]byte("%%MatrixMarket matrix coordinate real general\n"), big...))
	_, err := load.File(ctx, path, load.Options{Progress: func(done, total int64) { cancel() }})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), path+":") {
		t.Errorf("cancelled on the way: %v", err)
	}
}

func TestLimits(t *testing.T) {
	_, types := files(t)
	for typ, b := range types {
		_, err := load.File(t.Context(), write(t, "a."+typ, b), load.Options{Limits: formats.Limits{Rows: 69}})
		if err == nil || !strings.Contains(err.Error(), "70 rows are beyond the limit of 69") {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// What this machine has no memory for is refused before it is made.
func TestMoreThanMemory(t *testing.T) {
	const rows, bytesOfEntry = 100_000, 8
	spec := fmt.Sprintf("gen:uniform,rows=%d,cols=%d,nnz-per-row=%d", rows, formats.MaxDim,
		memory.Total()/bytesOfEntry/rows+1)
	_, err := load.File(t.Context(), spec, load.Options{})
	if memory.Total() > 0 && (err == nil || !strings.Contains(err.Error(), "beyond the limit of")) {
		t.Errorf("%s: %v", spec, err)
	}
	if errors.Is(err, formats.ErrMemory) && !strings.Contains(err.Error(), "of available memory allow") {
		t.Errorf("%s: %v does not say what the limit is", spec, err)
	}
}

func ExampleFile() {
	a, err := load.File(context.Background(), "gen:banded,rows=3,band=1,values=ones", load.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.RowPtr, a.ColIdx)
	_, err = load.File(context.Background(), "missing.mtx", load.Options{})
	fmt.Println(err)
	// Output:
	// [0 2 5 7] [0 1 0 1 2 1 2]
	// missing.mtx: no such file or directory
}

// Entries at the same place are added up and counted.
func TestMerged(t *testing.T) {
	general := "%%MatrixMarket matrix coordinate real general\n2 3 4\n1 1 1\n2 3 2\n1 1 3\n1 1 4\n"
	symmetric := "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 1 2\n2 1 3\n"
	coo := npz(t, "coo", 2, 3, map[string][]int32{"row": {0, 1, 0}, "col": {1, 2, 1}}, 3)
	csr := npz(t, "csr", 2, 3, map[string][]int32{"indptr": {0, 3, 3}, "indices": {2, 1, 2}}, 3)
	for _, test := range []struct {
		name string
		data []byte
		want int64
	}{
		{"general.mtx", []byte(general), 2},
		{"symmetric.mtx", []byte(symmetric), 2},
		{"none.mtx", []byte("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n"), 0},
		{"a.smtx", []byte("1, 2, 1\n0 1\n1\n"), 0},
		{"coo.npz", coo, 1},
		{"csr.npz", csr, 1},
	} {
		merged := int64(-1)
		if _, err := load.File(t.Context(), write(t, test.name, test.data), load.Options{Merged: &merged}); err != nil ||
			merged != test.want {
			t.Errorf("%s: %d entries were merged, want %d (%v)", test.name, merged, test.want, err)
		}
	}
}

// npz returns a SciPy archive whose n values are 1.
func npz(t *testing.T, format string, rows, cols int, arrays map[string][]int32, n int) []byte {
	t.Helper()
	var file bytes.Buffer
	z := archive.NewWriter(&file)
	member := func(name, descr, shape string, data any) {
		m, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
		fmt.Fprintf(m, "\x93NUMPY\x01\x00%c%c%s", len(head), 0, head)
		binary.Write(m, binary.LittleEndian, data)
	}
	member("format", "|S3", "()", []byte(format))
	member("shape", "<i4", "(2,)", []int32{int32(rows), int32(cols)})
	for name, array := range arrays {
		member(name, "<i4", fmt.Sprintf("(%d,)", len(array)), array)
	}
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	member("data", "<f4", fmt.Sprintf("(%d,)", n), ones)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// What rounding float64 loses is told of the files that have such data.
func TestLoss(t *testing.T) {
	head := "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }\n"
	var array bytes.Buffer
	fmt.Fprintf(&array, "\x93NUMPY\x01\x00%c%c%s", len(head), 0, head)
	binary.Write(&array, binary.LittleEndian, []float64{1, 0.1, 1e-60})
	var tensor bytes.Buffer
	x := safetensors.NewTensor("w", []float64{0.25, 1e-42, 3, 0.1})
	x.Shape = []int64{2, 2}
	if err := safetensors.Write(&tensor, &safetensors.File{Tensors: []safetensors.Tensor{x}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.npy", array.Bytes(), "3 values: 1 rounded, 1 became 0 (relative error up to 1)"},
		{"a.safetensors", tensor.Bytes(), "4 values: 1 rounded, 1 rounded to a subnormal number (relative error up to 0.00053)"},
		{"a.mtx", []byte("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 0.1\n"), "0 values: all exact"},
	} {
		loss := formats.Loss{Values: 99}
		if _, err := load.File(t.Context(), write(t, c.name, c.data), load.Options{Loss: &loss}); err != nil ||
			loss.String() != c.want {
			t.Errorf("%s: %v, want %s (%v)", c.name, loss, c.want, err)
		}
	}
}
