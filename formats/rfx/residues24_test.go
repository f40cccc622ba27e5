package rfx_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
)

// Each entry is in its slot of the planes, with its place, or in the remainder: the matrix can be read back. Places of
// two slots ascend, and at most two entries of four columns are outside the remainder.
func TestSparse24(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 90).Draw(t, "rows"), rapid.IntRange(1, 700).Draw(t, "columns")
		dense := rapid.IntRange(1, 10).Draw(t, "tenths of entries")
		want := make([]int64, rows*cols)
		a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
		for i := range rows {
			for j := range cols {
				if rapid.IntRange(1, 10).Draw(t, "entry") > dense {
					continue
				}
				x := rapid.Int64Range(-100, 100).Draw(t, "value")
				a.ColIdx, a.Val, want[i*cols+j] = append(a.ColIdx, int32(j)), append(a.Val, float32(x)), x
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		ranges := rfx.Rows(a)
		for i := range rows {
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				want[i*cols+int(a.ColIdx[e])] = rfx.Quantise(a.Val[e], rfx.P15.L(ranges[i].E()))
			}
		}
		l := rfx.Planes{Rows: (rows + 255) &^ 255, Cols: (cols + 127) &^ 127}
		s := rfx.NewSparse24(a.RowPtr, a.ColIdx, l)
		planes, remainder := rfx.Pack24(s, a, ranges, rfx.P15, 2, func(q int64, i int) int8 {
			var d [2]int32
			rfx.Digits(d[:], q, 8)
			return int8(d[i])
		})
		if len(planes) != l.Rows*l.Cols+4*len(s.Words) || len(s.Words) != rfx.WordsOf(l.Rows, l.Cols) {
			t.Fatalf("%d bytes, and %d words of places", len(planes), len(s.Words))
		}
		got := readBack(t, s, planes, rows, cols)
		for e, at := range s.At {
			row, _ := slices.BinarySearch(a.RowPtr, int64(e)+1)
			if at&rfx.Remaining != 0 {
				n := int64(at &^ rfx.Remaining)
				if n < s.Remainder[row-1] || n >= s.Remainder[row] {
					t.Fatalf("entry %d of row %d is number %d of a remainder from %d to %d", e, row-1, n, s.Remainder[row-1],
						s.Remainder[row])
				}
				got[(row-1)*cols+int(a.ColIdx[e])] += remainder[n]
			}
		}
		if !slices.Equal(got, want) {
			t.Fatal("the entries are not those of the matrix")
		}
	})
}

// readBack reads the first rows and columns of planes of two digits, as the matrix instruction does.
func readBack(t *rapid.T, s *rfx.Sparse24, planes []byte, rows, cols int) []int64 {
	got := make([]int64, rows*cols)
	for row := range rows {
		for slot := range s.Cols / 2 {
			group := slot / 2
			// A block has 128 columns, a word 32, of lane 4·(row mod 8) + 2·(half of 64) + (row/8 mod 2) of a warp of 16 rows.
			lane := row%64/16*32 + row%8*4 + slot%32/16*2 + row/8%2
			word := s.Words[((slot/128*(s.Rows/64)+row/64)*128+lane)*4+slot/32%4]
			places := word >> (group % 8 * 4) & 15
			if places&3 >= places>>2 {
				t.Fatalf("row %d, group %d: places %d and %d", row, group, places&3, places>>2)
			}
			at := (slot/64*s.Rows+row/64*64)*64 + slot%64/16*1024 + row%64*16 + slot%16
			q := int64(int8(planes[at])) + 256*int64(int8(planes[s.Size()+at]))
			if col := 4*group + int(places>>(slot%2*2)&3); q != 0 {
				got[row*cols+col] += q
			}
		}
	}
	return got
}
