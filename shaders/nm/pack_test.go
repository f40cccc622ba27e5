package nm

import (
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

// TestPack24: every slot has a place of its own, value and metadata, where the packing's formulas say; all else is
// padding.
func TestPack24(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 301, Cols: 203, RowPtr: []int64{0}}
	for i := range a.Rows {
		for j := range a.Cols {
			if j/4%5 != 3 && (j%4 == i%4 || j%4 == (i+1+i/4%3)%4) {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, half.F16(1+i*203+j)) // any bits
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	m, err := nm.Encode(a, nm.Sparse24)
	if err != nil {
		t.Fatal(err)
	}
	for packing := uint32(warpPack); packing <= groupPack; packing++ {
		checkPack24(t, m, packing)
	}
	if _, _, err := pack24(&nm.Matrix[half.F16]{Pattern: nm.Pattern{N: 1, M: 4, V: 1, W: 1}}, warpPack, 0); err == nil {
		t.Error("1:4 is packed as 2:4")
	}
}

func checkPack24(t *testing.T, m *nm.Matrix[half.F16], packing uint32) {
	s, _ := m.Shape(m.Rows, m.Cols)
	values, places, err := pack24(m, packing, 0)
	if err != nil {
		t.Fatal(err)
	}
	used, bits := map[int]bool{}, map[[2]int]bool{}
	for row := range m.Rows {
		for slot := range s.Slots {
			to := orders24[packing].place(spec.Ceil(s.Slots, stageSlots), row, slot)
			if used[to.value] || bits[[2]int{to.word, to.shift}] {
				t.Fatalf("row %d, slot %d lies where another does", row, slot)
			}
			used[to.value], bits[[2]int{to.word, to.shift}] = true, true
			want := m.Index[row*s.IndexWords+slot/16] >> (slot % 16 * 2) & 3
			if got := places[to.word] >> to.shift & 3; got != want || values[to.value] != m.Values[row*s.Slots+slot] {
				t.Fatalf("row %d, slot %d: value %v at %d, want %v at %d", row, slot, values[to.value], got,
					m.Values[row*s.Slots+slot], want)
			}
		}
	}
	for i, x := range values {
		if x != 0 && !used[i] {
			t.Fatalf("value %d is neither a slot's nor 0", i)
		}
	}
	for i, w := range places {
		for pair := 0; pair < 32; pair += 4 {
			if first, second := w>>pair&3, w>>(pair+2)&3; first >= second {
				t.Fatalf("word %d: places %d, %d", i, first, second)
			}
		}
	}
}
