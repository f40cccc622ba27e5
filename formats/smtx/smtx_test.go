// Reading and writing DLMC's files, and damaged ones.

package smtx_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/smtx"
	"pgregory.net/rapid"
)

func TestRead(t *testing.T) {
	want := &formats.CSR[float32]{Rows: 3, Cols: 5, RowPtr: []int64{0, 2, 2, 4}, ColIdx: []int32{0, 3, 1, 4},
		Val: []float32{1, 1, 1, 1}}
	for _, in := range []string{
		"3, 5, 4\n0 2 2 4\n0 3 1 4\n", "3 5 4\n0 2 2 4 \n0 3 1 4 ", "3,5,4\r\n0 2 2 4\r\n3 0 4 1\r\n",
		"3\n5\n4\n0\n2\n2\n4\n0\n3\n1\n4",
	} {
		a, err := smtx.Read(iotest.OneByteReader(strings.NewReader(in)), smtx.Options{})
		if err != nil || !a.Equal(want) || a.Validate() != nil {
			t.Errorf("%q: %+v (%v)", in, a, err)
		}
	}
	a, err := smtx.Read(strings.NewReader("0, 7, 0\n0\n\n"), smtx.Options{})
	if err != nil || a.Validate() != nil || a.Cols != 7 {
		t.Errorf("empty matrix: %+v (%v)", a, err)
	}
	a, err = smtx.Read(strings.NewReader("2 3 2 0 1 2 2 1"),
		smtx.Options{Value: func(i, j int) float32 { return float32(10*i + j) }})
	if err != nil || !slices.Equal(a.Val, []float32{2, 11}) {
		t.Errorf("values %v (%v)", a.Val, err)
	}
}

func TestReadErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "f:1: no header: want rows, columns and entries",
		"3, 5":                          "f:1: no header",
		"3, 5, x\n":                     `f:1: "x" is not an integer`,
		"3, -5, 1\n":                    "f:1: negative size 3×-5",
		"3, 5, -1\n":                    "f:1: negative number of entries -1",
		"2000000000, 5, 1\n":            "f:1: 2000000000 rows for 1 entries: nearly all rows are empty",
		"3, 5, 4\n0 2 2\n":              "f:3: ends before row pointer 4 of 4",
		"3, 5, 4\n1 2 2 4\n0 3 1 4\n":   "f:2: the first row pointer is 1, want 0",
		"3, 5, 4\n0 2 1 4\n0 3 1 4\n":   "f:2: row 1 ends at 1, before its start 2",
		"3, 5, 4\n0 2 5 4\n0 3 1 4\n":   "f:2: row 1 ends at 5, beyond the 4 entries",
		"3, 5, 4\n0 2 2 3\n0 3 1 4\n":   "f:2: row pointers end at 3, but there are 4 entries",
		"3, 5, 4\n0 2 2 4\n0 3 1\n":     "f:4: ends before column index 4 of 4",
		"3, 5, 4\n0 2 2 4\n0 5 1 4\n":   "f:3: column 5 is outside 0 to 4",
		"3, 5, 4\n0 2 2 4\n0 3 1 -4\n":  "f:3: column -4 is outside 0 to 4",
		"3, 5, 4\n0 2 2 4\n0 0 1 4\n":   "f: row 0, column 0 (from 0): more than one entry",
		"3, 5, 4\n0 2 2 4\n0 3 1 4 4\n": "f:3: 4 after the 4 column indices",
		"3, 5, 4\n0 2 2 4\n0 3 1.5 4\n": `f:3: "1.5" is not an integer`,
		"\x1f\x8b":                      "f:1: compressed data is cut off",
	} {
		_, err := smtx.Read(strings.NewReader(in), smtx.Options{Name: "f"})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestHugeHeaderAllocatesLittle(t *testing.T) {
	n := formatstest.Allocated(func() {
		if _, err := smtx.Read(strings.NewReader("100000000, 100000000, 8000000000\n0 1 2"), smtx.Options{}); err == nil {
			t.Fatal("a cut file was read")
		}
	})
	if n > 4<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestWriteThenRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Uniform(t, 60, ",values=ones")
		var file bytes.Buffer
		if err := smtx.Write(&file, a); err != nil {
			t.Fatal(err)
		}
		b, err := smtx.Read(&file, smtx.Options{})
		if err != nil || !b.Equal(a) {
			t.Fatalf("read back differently (%v)", err)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"3, 5, 4\n0 2 2 4\n0 3 1 4\n", "0 0 0 0", "1,1,1\n0,1\n0\n", "2 2 2\n0 2 2\n1 0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := smtx.Read(bytes.NewReader(in), smtx.Options{})
		formatstest.Read(t, a, err)
	})
}

func Example() {
	file := "2, 4, 3\n0 2 3\n0 3 1\n"
	a, err := smtx.Read(strings.NewReader(file), smtx.Options{Name: "small.smtx"})
	if err != nil {
		fmt.Println(err)
		return
	}
	smtx.Write(os.Stdout, a)
	// Output:
	// 2, 4, 3
	// 0 2 3
	// 0 3 1
}

func BenchmarkRead(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=4096,density=0.2")
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if err := smtx.Write(&file, a); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		if _, err := smtx.Read(bytes.NewReader(file.Bytes()), smtx.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
