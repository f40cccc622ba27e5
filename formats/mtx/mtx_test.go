// Reading and writing Matrix Market: fields, symmetries, errors by line, limits, memory.

package mtx_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/mtx"
	"pgregory.net/rapid"
)

const banner = "%%MatrixMarket matrix "

// show writes a as "ROWS×COLS (i,j)=v …", from 0.
func show(a *formats.CSR[float32]) string {
	s := fmt.Sprintf("%d×%d", a.Rows, a.Cols)
	coo := a.ToCOO()
	for p, v := range coo.Val {
		s += fmt.Sprintf(" (%d,%d)=%v", coo.Row[p], coo.Col[p], v)
	}
	return s
}

func TestRead(t *testing.T) {
	for in, want := range map[string]string{
		"coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2e1\n1 3 0\n":                     "2×3 (0,0)=1.5 (0,2)=0 (1,2)=-20",
		"coordinate integer general\n%c\n\n  % indented\n2 3 1\n%c\n\n 2\t1  7 \n%c\n\n": "2×3 (1,0)=7",
		"coordinate pattern general\n2 3 2\n1 2\n2 3":                                    "2×3 (0,1)=1 (1,2)=1",
		"coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n":                                "3×3 (0,1)=1 (1,0)=1 (2,2)=1",
		"coordinate real symmetric\n3 3 2\n1 2 5\n1 3 6\n": "3×3 (0,1)=5 (0,2)=6 " +
			"(1,0)=5 (2,0)=6",
		"coordinate real skew-symmetric\n3 3 1\n3 1 5\n":        "3×3 (0,2)=-5 (2,0)=5",
		"coordinate real general\n1 2 3\n1 2 1\n1 1 2\n1 2 4\n": "1×2 (0,0)=2 (0,1)=5",
		"coordinate real general\r\n1 2 1\r\n1 2 1.25\r\n":      "1×2 (0,1)=1.25",
		"COORDINATE Real GENERAL  \n1 2 1\n1 2 1d2\n":           "1×2 (0,1)=100",
		"coordinate real general\n0 0 0\n":                      "0×0",
		"coordinate real general\n5 0 0":                        "5×0",
		"array real general\n2 3\n1\n0\n3\n4\n\n%c\n5\n-6\n": "2×3 (0,0)=1 (0,1)=3 (0,2)=5 " +
			"(1,1)=4 (1,2)=-6",
		"array integer symmetric\n2 2\n1\n2\n3\n": "2×2 (0,0)=1 (0,1)=2 " +
			"(1,0)=2 (1,1)=3",
		"array real skew-symmetric\n3 3\n1\n2\n3\n": "3×3 (0,1)=-1 (0,2)=-2 (1,0)=1 " +
			"(1,2)=-3 (2,0)=2 (2,1)=3",
		"array real general\n0 2000000000\n":                                             "0×2000000000",
		"coordinate real general\n1 1 1\n1 1 16777217\n":                                 "1×1 (0,0)=1.6777216e+07",
		"coordinate real general\n1 1 1\n1 1 1.00000005960464477539062500000000000001\n": "1×1 (0,0)=1", // as a double, a tie
		"coordinate real general\n1 1 1\n1 1 1.000000059604645\n":                        "1×1 (0,0)=1.0000001",
	} {
		for name, r := range map[string]io.Reader{
			"plain": strings.NewReader(banner + in), "by byte": iotest.OneByteReader(strings.NewReader(banner + in)),
			"gzip": bytes.NewReader(zip(banner + in)),
		} {
			a, err := mtx.Read(r, mtx.Options{})
			if err != nil {
				t.Errorf("%q %s: %v", in, name, err)
				continue
			}
			if err := a.Validate(); err != nil || show(a) != want {
				t.Errorf("%q %s: %s (%v), want %s", in, name, show(a), err, want)
			}
		}
	}
}

func zip(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.Bytes()
}

func TestReadErrors(t *testing.T) {
	const real = banner + "coordinate real general\n"
	for in, want := range map[string]string{
		"":                        "f:1: empty file",
		"1 1 1\n":                 "f:1: no Matrix Market file: the first line is not",
		"%%MatrixMarket matrix\n": "f:1: 2 words in the banner",
		"%%MatrixMarket vector coordinate real general\n": `f:1: object "vector" is not supported (only matrix)`,
		banner + "coord real general\n":                   `f:1: unknown format "coord" (coordinate or array)`,
		banner + "coordinate complex general\n": "f:1: complex matrices are not supported " +
			"(real, integer or pattern)",
		banner + "coordinate real hermitian\n":         "f:1: hermitian matrices are not supported",
		banner + "coordinate quaternion general\n":     `f:1: unknown field "quaternion"`,
		banner + "coordinate real odd\n":               `f:1: unknown symmetry "odd"`,
		banner + "array pattern general\n":             "f:1: an array cannot be a pattern",
		banner + "coordinate pattern skew-symmetric\n": "f:1: a pattern cannot be skew-symmetric",
		real: "f:1: ends before the size line",
		real + "%\n2 2\n": "f:3: 2 numbers in the size line, want " +
			"rows, columns and entries",
		real + "2 2 x\n":  `f:2: "x" in the size line is not a size`,
		real + "-2 2 1\n": `f:2: "-2" in the size line is not a size`,
		real + "2 2 99999999999999999999\n": `f:2: "99999999999999999999" in the ` +
			`size line is not a size`,
		real + "3000000000 2 1\n": "f:2: 3000000000 rows are beyond the " +
			"limit of 2147483647",
		real + "2000000000 2000000000 5\n": "f:2: 2000000000 rows for 5 entries: " +
			"nearly all rows are empty",
		real + "9 9 999999999999999\n": "f:2: 999999999999999 entries are beyond " +
			"the limit of 8589934592",
		real + "9 9 8000000000\n1 1 1\n":                            "f:3: ends after 1 of 8000000000 entries",
		real + "2 2 2\n1 1 1\n":                                     "f:3: ends after 1 of 2 entries",
		real + "2 2 1\n1 1 1\n\n2 2 5\n":                            `f:5: "2" after the 1 entries that line 2 announces`,
		real + "2 2 1\n0 1 1\n":                                     "f:3: row 0 is outside 1 to 2",
		real + "2 2 1\n1 3 1\n":                                     "f:3: column 3 is outside 1 to 2",
		real + "2 2 1\n-1 1 1\n":                                    "f:3: row -1 is outside 1 to 2",
		real + "2 2 1\n1 x 1\n":                                     `f:3: "x" is not a column number`,
		real + "2 2 1\n1.5 1 1\n":                                   `f:3: "1.5" is not a row number`,
		real + "2 2 1\n1\n":                                         "f:3: no column number",
		real + "2 2 1\n1 1\n":                                       "f:3: no value",
		real + "2 2 1\n1 1 NaN\n":                                   `f:3: "NaN" is not a finite number`,
		real + "2 2 1\n1 1 -inf\n":                                  `f:3: "-inf" is not a finite number`,
		real + "2 2 1\n1 1 1e39\n":                                  `f:3: "1e39" is beyond the range of float32`,
		real + "2 2 1\n1 1 1,5\n":                                   `f:3: "1" is not a finite number`,
		real + "2 2 1\n1 1 1 0\n":                                   `f:3: unexpected "0" after the entry`,
		banner + "coordinate pattern general\n2 2 1\n1 1 1\n":       `f:3: unexpected "1" after the entry`,
		banner + "coordinate integer general\n2 2 1\n1 1 1.0\n":     `f:3: "1.0" is not an integer`,
		banner + "coordinate real symmetric\n2 3 0\n":               "f:2: a symmetric matrix cannot be 2×3",
		banner + "coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n": "f:4: entry (2, 1) is on the other side of the diagonal",
		banner + "coordinate real skew-symmetric\n2 2 1\n2 2 1\n": "f:3: entry (2, 2) on the diagonal of a " +
			"skew-symmetric matrix",
		banner + "array real general\n2 2\n1\n2\n3\n":         "f:5: ends after 3 of 4 elements",
		banner + "array real general\n1 1\n1 2\n":             `f:3: unexpected "2" after the element`,
		banner + "array real general\n1 1\n1\n2\n":            `f:4: "2" after the 1 entries`,
		banner + "array real general\n1 1\nnan\n":             `f:3: "nan" is not a finite number`,
		real + "1 1 1\n" + strings.Repeat("1", 300000) + "\n": "f:3: line longer than",
		string(zip(real + "2 2 0\n")[:30]):                    "f:1: compressed data is cut off",
		string(zip(real + "2 2 0\n")[:5]):                     "f:1: compressed data is cut off",
		"\x1f\x8bxxxxxxxxxxxxxxxxxx":                          "f:1: gzip: invalid header",
	} {
		_, err := mtx.Read(strings.NewReader(in), mtx.Options{Name: "f"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", in, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	in := banner + "coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n"
	a, err := mtx.Read(strings.NewReader(in), mtx.Options{Pattern: func(i, j int) float32 { return float32(10*i + j) }})
	if err != nil || show(a) != "3×3 (0,1)=10 (1,0)=10 (2,2)=22" {
		t.Errorf("%v (%v)", a, err)
	}
	in = banner + "coordinate real general\n3 3 2\n2 1 5\n2 1 6\n"
	_, err = mtx.Read(strings.NewReader(in), mtx.Options{Name: "f", Duplicates: formats.RefuseDuplicates})
	if want := "f: row 1, column 0 (from 0): more than one entry"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = mtx.Read(strings.NewReader(in), mtx.Options{Name: "f", Limits: formats.Limits{NNZ: 1}})
	if want := "f:2: 2 entries are beyond the limit of 1"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A header that announces much makes no large allocation before data arrive.
func TestHugeHeaderAllocatesLittle(t *testing.T) {
	in := banner + "coordinate real general\n2000000000 2000000000 8000000000\n1 1 1\n"
	n := formatstest.Allocated(func() {
		if _, err := mtx.Read(strings.NewReader(in), mtx.Options{}); err == nil {
			t.Fatal("a cut file was read")
		}
	})
	if n > 4<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

// Reading allocates, and so needs at its peak, at most three times the bytes of the result.
func TestPeakMemory(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=100000,cols=100000,nnz-per-row=10")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := mtx.Write(&file, a); err != nil {
		t.Fatal(err)
	}
	n := formatstest.Allocated(func() {
		if a, err = mtx.Read(&file, mtx.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	if size := formats.CSRBytes(int64(a.Rows), a.NNZ()); n > 3*size {
		t.Errorf("%d bytes allocated for a matrix of %d", n, size)
	}
}

func TestWriteThenRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Uniform(t, 50, "")
		for p := range a.Val { // any finite float32
			for {
				a.Val[p] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
				if a.Val[p]-a.Val[p] == 0 {
					break
				}
			}
		}
		var file bytes.Buffer
		if err := mtx.Write(&file, a); err != nil {
			t.Fatal(err)
		}
		b, err := mtx.Read(&file, mtx.Options{})
		if err != nil || !b.Equal(a) {
			t.Fatalf("read back differently (%v)", err)
		}
	})
}

// 7.038531e-26 are the shortest digits of a float32, but read as a double they are a tie that rounds to
// its neighbour.
func TestWriteAvoidsDoubleRounding(t *testing.T) {
	want := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0},
		Val: []float32{math.Float32frombits(0x15ae43fd)}}
	var file bytes.Buffer
	if err := mtx.Write(&file, want); err != nil {
		t.Fatal(err)
	}
	text := file.String()
	if got, err := mtx.Read(&file, mtx.Options{}); err != nil || !got.Equal(want) {
		t.Errorf("%q reads as %v (%v)", text, got.Val, err)
	}
}

func TestWriteRefusesNaN(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 1, Cols: 2, RowPtr: []int64{0, 1}, ColIdx: []int32{1}, Val: []half.F16{0x7e00}}
	want := "row 1, column 2: NaN cannot be written to a Matrix Market file"
	if err := mtx.Write(io.Discard, a); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2e1\n1 3 0\n", "coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
		"array real skew-symmetric\n3 3\n1\n2\n3\n", "coordinate integer skew-symmetric\r\n%x\r\n3 3 1\r\n3 1 5\r\n",
	} {
		f.Add([]byte(banner + s))
	}
	f.Add(zip(banner + "array integer symmetric\n2 2\n1\n2\n3\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := mtx.Read(bytes.NewReader(in), mtx.Options{Limits: formats.Limits{Rows: 1e4, NNZ: 1e5}})
		if !formatstest.Read(t, a, err) {
			return
		}
		var file bytes.Buffer
		if err := mtx.Write(&file, a); err != nil {
			return // a sum of duplicates that overflowed
		}
		if b, err := mtx.Read(&file, mtx.Options{}); err != nil || !b.Equal(a) {
			t.Fatalf("read back differently (%v)", err)
		}
	})
}

func Example() {
	file := `%%MatrixMarket matrix coordinate real symmetric
% a comment
3 3 3
1 1 4
2 1 -1
3 3 0.5
`
	a, err := mtx.Read(strings.NewReader(file), mtx.Options{Name: "small.mtx"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mtx.Write(os.Stdout, a)
	// Output:
	// %%MatrixMarket matrix coordinate real general
	// 3 3 4
	// 1 1 4
	// 1 2 -1
	// 2 1 -1
	// 3 3 0.5
}

// benchmark reads text again and again; peak-x bounds the peak of memory over the result's bytes: it is
// everything allocated while reading.
func benchmark(b *testing.B, file []byte) {
	b.SetBytes(int64(len(file)))
	var before, after runtime.MemStats
	var size int64
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		a, err := mtx.Read(bytes.NewReader(file), mtx.Options{})
		if err != nil {
			b.Fatal(err)
		}
		size = formats.CSRBytes(int64(a.Rows), a.NNZ())
		n++
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n)/float64(size), "peak-x")
}

// Entries in column order, as collections store them, with up to 9 or 17 digits.
func BenchmarkRead(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=200000,cols=200000,nnz-per-row=10")
	if err != nil {
		b.Fatal(err)
	}
	t := a.Transpose()
	write := func(header string, entry func(w io.Writer, i, j int32, v float32)) []byte {
		var file bytes.Buffer
		fmt.Fprintf(&file, "%s%s\n%d %d %d\n", banner, header, a.Rows, a.Cols, a.NNZ())
		for j := range t.Rows {
			for p := t.RowPtr[j]; p < t.RowPtr[j+1]; p++ {
				entry(&file, t.ColIdx[p]+1, int32(j)+1, t.Val[p])
			}
		}
		return file.Bytes()
	}
	b.Run("pattern", func(b *testing.B) {
		benchmark(b, write("coordinate pattern general", func(w io.Writer, i, j int32, v float32) { fmt.Fprintln(w, i, j) }))
	})
	b.Run("real9", func(b *testing.B) {
		benchmark(b, write("coordinate real general", func(w io.Writer, i, j int32, v float32) { fmt.Fprintln(w, i, j, v) }))
	})
	b.Run("real17", func(b *testing.B) {
		benchmark(b, write("coordinate real general", func(w io.Writer, i, j int32, v float32) { fmt.Fprintf(w, "%d %d %.16e\n", i, j, float64(v)/3) }))
	})
}

func BenchmarkWrite(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=20000,cols=20000,nnz-per-row=10")
	if err != nil {
		b.Fatal(err)
	}
	var n counter
	mtx.Write(&n, a)
	b.SetBytes(int64(n))
	for b.Loop() {
		mtx.Write(io.Discard, a)
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
