// Small files that claim much, or decompress to much: what is allocated for them stays within the limit.

package load_test

import (
	archive "archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/load"
)

// endless is a run of one byte without an end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// npyFile is an array of zeros.
func npyFile(descr, shape string, size int64) io.Reader {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	head := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(dict)))...)
	return io.MultiReader(bytes.NewReader(append(head, dict...)), io.LimitReader(endless(0), size))
}

// npzFile is an archive of compressed arrays.
func npzFile(t *testing.T, arrays map[string]io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	z := archive.NewWriter(&out)
	z.RegisterCompressor(archive.Deflate,
		func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for name, r := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// text is the array of zero-dimensional text that names a sparse format.
func textFile(s string) io.Reader {
	return io.MultiReader(npyFile(fmt.Sprintf("|S%d", len(s)), "()", 0), strings.NewReader(s))
}

func shapeFile(rows, cols int64) io.Reader {
	return io.MultiReader(npyFile("<i8", "(2,)", 0), bytes.NewReader(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(cols))))
}

// compressed returns the written bytes, compressed by gzip.
func compressed(t *testing.T, parts ...io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, io.MultiReader(parts...)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lines repeats a line n times.
func lines(line string, n int) io.Reader { return strings.NewReader(strings.Repeat(line, n)) }

func safetensorsFile(header string, size int64) io.Reader {
	return io.MultiReader(bytes.NewReader(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))), strings.NewReader(header), io.LimitReader(endless(0), size))
}

func TestMemory(t *testing.T) {
	const limit, n = 1 << 20, 16 << 20 // the files hold n elements
	big := fmt.Sprintf("(%d,)", n)
	tensors := make([]string, 64)
	for i := range tensors {
		tensors[i] = fmt.Sprintf(`"t%d":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}`, i, limit/8, i*limit/2, (i+1)*limit/2)
	}
	matrix := `{"__metadata__":{"format":"csr","version":"1","dtype":"f32","rows":"10","cols":"10","nnz":"5"},`
	empty := strings.Repeat(`"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`, 1)
	var header strings.Builder
	header.WriteString("{")
	for i := range 40000 {
		fmt.Fprintf(&header, empty, i)
	}
	for name, file := range map[string][]byte{
		"csr.npz, indices": npzFile(t, map[string]io.Reader{
			"format": textFile("csr"), "shape": shapeFile(10, 10), "indptr": npyFile("<i4", "(11,)", 44),
			"indices": npyFile("<i4", big, 4*n), "data": npyFile("<f4", "(1,)", 4)}),
		"csr.npz, data": npzFile(t, map[string]io.Reader{
			"format": textFile("csr"), "shape": shapeFile(10, 10), "indptr": npyFile("<i4", "(11,)", 44),
			"indices": npyFile("<i4", "(1,)", 4), "data": npyFile("|b1", big, n)}),
		"csr.npz, indptr": npzFile(t, map[string]io.Reader{
			"format": textFile("csr"), "shape": shapeFile(n, 10), "indptr": npyFile("|u1", fmt.Sprintf("(%d,)", n+1), n+1),
			"indices": npyFile("<i4", "(1,)", 4), "data": npyFile("<f4", "(1,)", 4)}),
		"csc.npz": npzFile(t, map[string]io.Reader{
			"format": textFile("csc"), "shape": shapeFile(10, n), "indptr": npyFile("|u1", fmt.Sprintf("(%d,)", n+1), n+1),
			"indices": npyFile("|u1", "(1,)", 1), "data": npyFile("<f4", "(1,)", 4)}),
		"coo.npz": npzFile(t, map[string]io.Reader{
			"format": textFile("coo"), "shape": shapeFile(10, 10), "row": npyFile("|u1", big, n),
			"col": npyFile("|u1", big, n), "data": npyFile("|b1", big, n)}),
		"a.npy.gz":       compressed(t, npyFile("|b1", fmt.Sprintf("(%d, 4)", n/4), n)),
		"pattern.mtx.gz": compressed(t, strings.NewReader(fmt.Sprintf("%%%%MatrixMarket matrix coordinate pattern general\n10 10 %d\n", n)), lines("1 1\n", n)),
		"array.mtx.gz": compressed(t,
			strings.NewReader(fmt.Sprintf("%%%%MatrixMarket matrix array real general\n%d 4\n", n/4)), lines("1\n", n)),
		"narrow.mtx.gz": compressed(t,
			strings.NewReader(fmt.Sprintf("%%%%MatrixMarket matrix array real general\n4 %d\n", n/4)), lines("1\n", n)),
		"a.smtx.gz":          compressed(t, strings.NewReader(fmt.Sprintf("%d, 10, 0\n", n)), lines("0 ", n+1)),
		"many.safetensors":   compressed(t, safetensorsFile(matrix+strings.Join(tensors, ",")+"}", limit/2*64)),
		"one.safetensors":    compressed(t, safetensorsFile(fmt.Sprintf(`{"w":{"dtype":"F16","shape":[16,%d],"data_offsets":[0,%d]}}`, n/16, 2*n), 2*n)),
		"header.safetensors": compressed(t, safetensorsFile(strings.TrimSuffix(header.String(), ",")+"}", 0)),
	} {
		path := write(t, strings.ReplaceAll(name, " ", ""), file)
		var err error
		took := formatstest.Allocated(func() {
			_, err = load.File(t.Context(), path, load.Options{Limits: formats.Limits{Bytes: limit}})
		})
		if err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: %v", name, err)
		}
		if took > 5*limit {
			t.Errorf("%s of %d bytes: %d bytes allocated at a limit of %d", name, len(file), took, limit)
		}
	}
}

// What is just within the limit is read, and what is allocated on the way has the same order.
func TestMemoryWithinLimit(t *testing.T) {
	const n = 1 << 20
	want := formats.CSRBytes(1, n)
	file := compressed(t, strings.NewReader(fmt.Sprintf("%%%%MatrixMarket matrix coordinate pattern general\n1 10 %d\n",
		n)), lines("1 2\n1 1\n", n/2))
	path := write(t, "a.mtx.gz", file)
	var a *formats.CSR[float32]
	var err error
	took := formatstest.Allocated(func() {
		a, err = load.File(t.Context(), path, load.Options{Limits: formats.Limits{Bytes: want}})
	})
	if err != nil || a.NNZ() != 2 {
		t.Fatal(err)
	}
	if took > 5*want { // some of it at the same time, and more under the race detector
		t.Errorf("%d bytes allocated for %d", took, want)
	}
	if _, err := load.File(t.Context(), path, load.Options{Limits: formats.Limits{Bytes: want - 1}}); err == nil {
		t.Error("read beyond the limit")
	}
}
