// Chains of conversions: whatever formats a matrix goes through, it stays the matrix that it was.

package load_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
)

// fuzzed makes a matrix of what a fuzzer says: its size, then an entry of four bytes each, row, column and value.
// Values have any bits; several for one place are added.
func fuzzed(data []byte) *formats.CSR[float32] {
	if len(data) < 2 {
		return &formats.CSR[float32]{RowPtr: []int64{0}}
	}
	a := &formats.COO[float32]{Rows: int(data[0]) % 80, Cols: int(data[1]) % 80}
	for e := data[2:]; len(e) >= 4 && a.Rows > 0 && a.Cols > 0; e = e[4:] {
		v := make([]float32, 1)
		formats.ConvertSlice(v, []float32{float32(int8(e[2])) * float32(e[3]) / 16})
		a.Row, a.Col, a.Val = append(a.Row, int32(int(e[0])%a.Rows)), append(a.Col, int32(int(e[1])%a.Cols)),
			append(a.Val, v[0])
	}
	csr, err := a.ToCSR(formats.SumDuplicates)
	if err != nil {
		panic(err)
	}
	return csr
}

func FuzzChain(f *testing.F) {
	for i := range load.Formats() {
		a := matrixFor(f, load.Formats()[i], "gen:nm,rows=24,cols=32,n=2,m=4")
		data := []byte{byte(a.Rows), byte(a.Cols)}
		for r := range a.Rows {
			for p := a.RowPtr[r]; p < a.RowPtr[r+1]; p++ {
				data = append(data, byte(r), byte(a.ColIdx[p]), byte(p)|1, 16)
			}
		}
		f.Add(data, uint8(i), []byte{byte(i), byte(i + 1), byte(i), 0x80, 0xff})
	}
	f.Fuzz(func(t *testing.T, data []byte, typ uint8, chain []byte) {
		want := formats.ConvertTo(fuzzed(data), []dtype.Type{dtype.F32, dtype.F16, dtype.BF16}[typ%3])
		list := load.Formats()
		now, path := formats.Encoded(want), want.Format()
		for _, step := range chain[:min(len(chain), 6)] {
			var next formats.Encoded
			var err error
			switch {
			case step >= 0xf0: // there and back, as it is transposed
				next = formats.Transpose(formats.Transpose(now.Sparse()).Sparse())
				path += ", transposed twice"
			case step >= 0x80: // as a file holds it
				c := formats.NewContainer(now)
				at := load.Formats()
				for i := range at {
					if at[i].Name == now.Format() {
						next, err = at[i].Open(c)
					}
				}
				path += ", in a container"
				if err == nil && next == nil {
					continue // a format that no file holds
				}
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			default:
				format := list[int(step)%len(list)]
				next, err = format.Encode(now.Sparse(), nil)
				if err != nil {
					if strings.Contains(err.Error(), "\n") {
						t.Fatalf("an error of several lines: %v", err)
					}
					continue // the format refuses such a matrix
				}
				path += ", " + format.Name
			}
			if err := next.Validate(); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if next.NNZ() != want.NNZ() || !equal(next.Sparse(), want) {
				t.Fatalf("%s: it is another matrix, of %d entries, not %d", path, next.NNZ(), want.NNZ())
			}
			now = next
		}
	})
}

// Whatever a file holds, and whatever its type: a matrix that is valid, or an error of one line.
func FuzzFile(f *testing.F) {
	_, fs := files(f)
	for _, name := range []string{"mtx", "smtx", "npz", "npy", "safetensors"} {
		f.Add(fs[name][:min(len(fs[name]), 1<<12)], false)
		f.Add(zip(fs[name][:min(len(fs[name]), 1<<12)]), true)
	}
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<40), false)
	limits := formats.Limits{Rows: 1e4, Cols: 1e4, NNZ: 1e4, Bytes: 1 << 20}
	f.Fuzz(func(t *testing.T, contents []byte, float64s bool) {
		e, err := load.Bytes(context.Background(), "a", contents, load.Options{Limits: limits, Float64: float64s})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			return
		}
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.Format(), err)
		}
		if s := e.Sparse(); s.NNZ() > 1e4 {
			t.Errorf("%d entries", s.NNZ())
		}
	})
}
