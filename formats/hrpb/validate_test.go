// What Validate refuses, and that what it lets pass can be decoded.

package hrpb_test

import (
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
)

// TestValidate spoils one thing at a time of a matrix of two panels, the second of one row.
func TestValidate(t *testing.T) {
	type M = hrpb.Matrix[float32]
	a := small()
	a.Rows = 33
	for i := 16; i < 33; i++ {
		if i == 20 || i == 32 {
			a.ColIdx, a.Val = append(a.ColIdx, 5), append(a.Val, 6)
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	valid := func() *M {
		m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 4, PartBlocks: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"block columns", func(m *M) { m.BlockCols = 0 }, "blocks of 0 columns"},
		{"other block columns", func(m *M) { m.BlockCols = 8 }, "16 active columns for 4 blocks of 8"},
		{"part blocks", func(m *M) { m.PartBlocks = -1 }, "parts of -1 blocks"},
		{"team blocks", func(m *M) { m.TeamBlocks = -1 }, "teams from -1 on"},
		{"other team blocks", func(m *M) { m.TeamBlocks = 1; m.PartBlocks = 9; m.Parts = m.Parts[1:]; m.Splits = nil }, "part 0 is"},
		{"other part blocks", func(m *M) { m.PartBlocks = 0 }, "4 parts: need 3"},
		{"negative rows", func(m *M) { m.Rows = -1 }, "matrix of -1×9"},
		{"too few columns", func(m *M) { m.Cols = -1 }, "matrix of 33×-1"},
		{"more rows", func(m *M) { m.Rows = 49 }, "4 block pointers for 4 panels"},
		{"no block pointers", func(m *M) { m.BlockPtr = nil }, "0 block pointers"},
		{"first block pointer", func(m *M) { m.BlockPtr[0] = 1 }, "panel 0 starts at block 1"},
		{"falling block pointer", func(m *M) { m.BlockPtr[1] = 4 }, "panel 1 ends at block 3, before its start 4"},
		{"block pointer past the end", func(m *M) { m.BlockPtr[3] = 1 << 31 }, "panels end at block 2147483648 of 4"},
		{"no sizes", func(m *M) { m.SizePtr = nil }, "0 size pointers"},
		{"first size", func(m *M) { m.SizePtr[0] = 1 }, "block 0 starts at unit 1"},
		{"falling size", func(m *M) { m.SizePtr[1] = 7 }, "block 1 ends at unit 3, before its start 7"},
		{"size past the end", func(m *M) { m.SizePtr[4] = 99 }, "blocks end at unit 99 of 5"},
		{"packed missing", func(m *M) { m.Packed = m.Packed[1:] }, "no multiple of 16"},
		{"active missing", func(m *M) { m.Active = m.Active[1:] }, "15 active columns for 4 blocks"},
		{"no room for patterns", func(m *M) { m.SizePtr[2] = 2 }, "block 1 has 0 units"},
		{"a unit too many", func(m *M) { m.SizePtr[1], m.Packed[1] = 3, 0 },
			"block 0 has 3 units of 16 bytes: its 4 entries need 2"},
		{"an entry too many", func(m *M) { m.Packed[1] = 7 }, "block 0 has 2 units of 16 bytes: its 7 entries need 3"},
		{"rubbish at the end", func(m *M) { m.Packed[7] = 1 << 31 }, "block 0 does not end with zeros after its 4 entries"},
		{"column out of range", func(m *M) { m.Active[3] = 9 }, "panel 0, block 0, active column 3 (column 9): the matrix has 9 columns"},
		{"columns unsorted", func(m *M) { m.Active[1] = 0 }, "active column 1 (column 0): not after column 0"},
		{"columns unsorted across blocks", func(m *M) { m.Active[4] = 5 },
			"block 1, active column 0 (column 5): not after column 6"},
		{"padding elsewhere", func(m *M) { m.Active[7] = 7 }, "block 1, active column 3 (column 7): no entry, and padding would repeat column 8"},
		{"padding of a hole", func(m *M) { m.Packed[8], m.Active[5] = 1<<2, 7 }, "active column 0 (column 8): no entry, and padding would repeat column 6"},
		{"a block of padding", func(m *M) {
			m.Packed[8], m.Packed[10] = 0, 0
			copy(m.Active[4:], []uint32{6, 6, 6, 6})
		}, "block 1, active column 0 (column 6): a block of padding"},
		{"entry after padding", func(m *M) {
			m.Packed[8], m.Packed[11] = 1|1<<2, 1
			copy(m.Active[4:], []uint32{7, 7, 8, 8})
		}, "block 1, active column 2 (column 8): an entry after padding"},
		{"row that is not there", func(m *M) { m.Packed[16] = 1 << 4 }, "panel 2, block 3, active column 0 (column 5): an entry below the last of 33 rows"},
		{"row indices that are not asked for", func(m *M) { m.RowIdx = make([]uint32, 33) },
			"33 row indices in a matrix whose rows are in their order"},
		{"no such order", func(m *M) { m.Order = 2 }, "order 2: need 0 or 1"},
		{"too few row indices", func(m *M) { m.Order, m.RowIdx = 1, make([]uint32, 7) }, "7 row indices for 33 rows"},
		{"a row twice", func(m *M) { m.Order, m.RowIdx = 1, make([]uint32, 33) }, "row index 1 is 0: need each of 33 rows once"},
		{"a row that is not there", func(m *M) { m.Order, m.RowIdx = 1, upTo(33); m.RowIdx[4] = 33 }, "row index 4 is 33"},
		{"rows in another order", func(m *M) { m.Order, m.RowIdx = 1, upTo(33); slices.Reverse(m.RowIdx) }, ""},
		{"part of another panel", func(m *M) { m.Parts[0].Panel = 1 }, "part 0 is {Panel:1"},
		{"part missing", func(m *M) { m.Parts = m.Parts[1:] }, "3 parts: need 4"},
		{"split missing", func(m *M) { m.Splits = nil }, "0 split panels: need 1"},
		{"split slot", func(m *M) { m.Splits[0].Slot = 7 }, "split panel 0 is"},
	})
}

func upTo(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{4, 1, 16, 9, 1, 0, 2, 2, 0, 2, 3, 0, 1, 3, 6, 8, 8, 8, 8, 0x85, 2, 0x10, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		next := formatstest.Bytes(b)
		m := &hrpb.Matrix[half.F16]{BlockCols: next.Int(), PartBlocks: next.Int(), Rows: next.Int(), Cols: next.Int()}
		panels := next.Int()
		m.BlockPtr = next.Each(panels + 1)
		blocks := int(m.BlockPtr[panels])
		m.SizePtr = next.Each(blocks + 1)
		m.Active = next.Each(blocks * m.BlockCols)
		for range 4 * m.SizePtr[blocks] {
			m.Packed = append(m.Packed, next.Next()|next.Next()<<8)
		}
		if !slices.IsSorted(m.BlockPtr) {
			if m.Validate() == nil {
				t.Fatal("valid with falling block pointers")
			}
			return
		}
		m.Parts, m.Splits = hrpb.WorkList(m.BlockPtr, m.PartBlocks, 0)
		if next.Next() > 0 {
			m.Order, m.RowIdx = 1, next.Each(m.Rows)
		}
		if m.Validate() != nil {
			return
		}
		a := m.Decode()
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		if m.Order == 1 {
			a, m.Order, m.RowIdx = inPlaces(a, m), 0, nil
		}
		again, err := hrpb.Encode(a, hrpb.Options{BlockCols: m.BlockCols, PartBlocks: m.PartBlocks})
		if err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("decoded and encoded again (-want +got):\n%s", d)
		}
	})
}

// inPlaces returns a with its rows as m has them in places.
func inPlaces(a *formats.CSR[half.F16], m *hrpb.Matrix[half.F16]) *formats.CSR[half.F16] {
	out := &formats.CSR[half.F16]{Rows: a.Rows, Cols: a.Cols, RowPtr: []int64{0}}
	for place := range a.Rows {
		r := m.Row(place)
		lo, hi := a.RowPtr[r], a.RowPtr[r+1]
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:hi]...), append(out.Val, a.Val[lo:hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out
}
