// Does the packing for lanes hold what the format does?

package nm

import (
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
)

// TestPackLanes: a panel's steps are of 16 columns; a step is by 16 rows, then lane, 8 values each: lane 4g + t has
// columns 4t to 4t + 3 in row g, then in row g + 8. What is left is zeros, and columns of the matrix.
func TestPackLanes(t *testing.T) {
	const rows, cols = 70, 203
	p := nm.Pattern{N: 3, M: 16, V: 32, W: 1}
	a := &formats.CSR[half.F16]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for i := range rows {
		for j := range cols {
			if (j+i/p.V)%16 < 3 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, half.F16(1+i*cols+j)) // any bits
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	m, err := nm.Encode(a, p)
	if err != nil {
		t.Fatal(err)
	}
	values, columns, err := packLanes(m)
	if err != nil {
		t.Fatal(err)
	}
	const panels, condensed, padded = 3, 39, 64 // 13 groups
	if len(values) != panels*padded*p.V || len(columns) != panels*padded {
		t.Fatalf("%d values, %d columns", len(values), len(columns))
	}
	at := func(i, j int) (x half.F16) {
		for q := a.RowPtr[i]; i < rows && q < a.RowPtr[i+1]; q++ {
			if int(a.ColIdx[q]) == j {
				x = a.Val[q]
			}
		}
		return x
	}
	for i, x := range values {
		panel, step, half16, lane, n := i/(padded*p.V), i/(16*p.V)%(padded/16), i/256%(p.V/16), i/8%32, i%8
		k, row := 16*step+4*(lane%4)+n%4, panel*p.V+16*half16+lane/4+8*(n/4)
		col := int(columns[panel*padded+k])
		if col >= cols {
			t.Fatalf("panel %d, condensed column %d: column %d", panel, k, col)
		}
		var want half.F16
		if k < condensed && row < rows {
			want = at(row, col)
		}
		if x != want {
			t.Fatalf("value %d, of row %d and condensed column %d (column %d), is %v, want %v", i, row, k, col, x, want)
		}
	}
}
