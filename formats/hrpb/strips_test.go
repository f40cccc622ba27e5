// Strips hold the matrix that they are made of, and their work list covers it.

package hrpb_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
)

// TestStrips: what strips hold, by the bits of their vectors' words, are the matrix's entries; the parts of the work
// list are all vectors, each once, and slots are numbered one after the other.
func TestStrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 70).Draw(t, "rows"), rapid.IntRange(1, 300).Draw(t, "cols")
		a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
		for range rows {
			limit := rapid.SampledFrom([]int{0, 3, 20, cols}).Draw(t, "least distance")
			for c := range cols {
				if limit > 0 && rapid.IntRange(0, cols/limit).Draw(t, "skip") == 0 {
					a.ColIdx, a.Val = append(a.ColIdx, int32(c)), append(a.Val, float32(len(a.Val)%7)) // some are zero
				}
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 8, Order: true})
		if err != nil {
			t.Fatal(err)
		}
		const height = hrpb.StripRows
		s, err := m.Strips()
		if err != nil {
			t.Fatal(err)
		}
		coo := &formats.COO[float32]{Rows: rows, Cols: cols}
		covered, slot := make([]bool, len(s.Columns)), uint32(0)
		for _, p := range s.Parts {
			if p.First%4 != 0 || p.Last%4 != 0 || int(p.Last-p.First) > s.Longest {
				t.Fatalf("part %+v of at most %d vectors", p, s.Longest)
			}
			if p.Slot != hrpb.NoSlot {
				slot = max(slot, p.Slot+1)
			}
			for k := p.First; k < p.Last; k++ {
				if covered[k] {
					t.Fatalf("vector %d is in two parts", k)
				}
				covered[k] = true
				for r := range height {
					v := s.Values[int(k)*height+r]
					if s.Columns[k]>>(32-height+r)&1 == 0 {
						if v != 0 {
							t.Fatalf("vector %d: %v without a bit", k, v)
						}
						continue
					}
					coo.Row = append(coo.Row, int32(m.Row(int(p.Panel)*height+r)))
					coo.Col = append(coo.Col, int32(s.Columns[k]<<height>>height))
					coo.Val = append(coo.Val, v)
				}
			}
		}
		for k, is := range covered {
			if !is {
				t.Fatalf("vector %d is in no part", k)
			}
		}
		if int(slot) != s.Slots {
			t.Fatalf("%d slots, parts use %d", s.Slots, slot)
		}
		got, err := coo.ToCSR(formats.RefuseDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Equal(got) {
			t.Fatalf("strips hold %v, want %v", got, a)
		}
	})
}

// TestStripsRefuses: columns that words cannot number.
func TestStripsRefuses(t *testing.T) {
	m, err := hrpb.Encode(&formats.CSR[float32]{Rows: 1, Cols: 1<<28 + 1, RowPtr: []int64{0, 0}}, hrpb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Strips(); !errors.Is(err, hrpb.ErrTooLarge) {
		t.Errorf("2^28+1 columns: %v", err)
	}
}
