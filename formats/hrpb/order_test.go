// The order of rows.

package hrpb_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/load"
)

// shuffled returns a matrix with its rows in any order.
func shuffled(a *formats.CSR[float32], seed uint64) *formats.CSR[float32] {
	out := &formats.CSR[float32]{Rows: a.Rows, Cols: a.Cols, RowPtr: []int64{0}}
	for _, r := range rand.New(rand.NewPCG(seed, 0)).Perm(a.Rows) {
		lo, hi := a.RowPtr[r], a.RowPtr[r+1]
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:hi]...), append(out.Val, a.Val[lo:hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out
}

// TestOrder: rows that share columns come together, wherever they were; where there is nothing to gain they stay.
func TestOrder(t *testing.T) {
	tests := []struct {
		name, spec string
		shuffle    bool
		most       float64 // active columns for each entry
		stays      bool
	}{
		{"a mesh", "gen:stencil,side=16,points=27", false, 0.21, false},
		{"a mesh whose sides are no powers of 2", "gen:stencil,side=13,points=27", false, 0.22, false},
		{"a shuffled mesh", "gen:stencil,side=16,points=27", true, 0.28, false},
		{"a shuffled band", "gen:banded,rows=3000,band=8,density=0.7", true, 0.2, false},
		{"one dense row", "gen:onedense,rows=2000,nnz-per-row=4", false, 0.9, false},
		{"a diagonal", "gen:banded,rows=3000,band=0", false, 1, true},
		{"a dense matrix", "gen:uniform,rows=100,density=1", false, 0.07, true},
		{"a large random graph", "gen:uniform,rows=70000,cols=70000,nnz-per-row=16", false, 1, true},
		{"vectors", "gen:vector,rows=512,v=16,density=0.1", false, 0.063, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := load.File(context.Background(), test.spec, load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if test.shuffle {
				a = shuffled(a, 1)
			}
			natural, err := hrpb.Encode(a, hrpb.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := hrpb.Encode(a, hrpb.Options{Order: true})
			if err != nil {
				t.Fatal(err)
			}
			formatstest.Decodes(t, a, m)
			again, err := hrpb.Encode(a, hrpb.Options{Order: true})
			if d := diff.Diff(m, again); d != "" || err != nil {
				t.Errorf("encoded again: %v, %s", err, d)
			}
			share := float64(m.Stats().ActiveCols) / float64(a.NNZ())
			t.Logf("active columns for each entry: %.3f, in their order %.3f", share,
				float64(natural.Stats().ActiveCols)/float64(a.NNZ()))
			if share > test.most || test.stays != (len(m.RowIdx) == 0) {
				t.Errorf("%.3f active columns for each entry, want %.3f at most; in their order: %v", share, test.most, len(m.RowIdx) == 0)
			}
		})
	}
}

// TestOrderOfLarge: large matrices, where a graph's rows are matched by the most alike first, or a mesh's panels are
// sorted by where their rows lie, four by four; on any number of cores in the same order.
func TestOrderOfLarge(t *testing.T) {
	tests := []struct {
		spec   string
		most   float64 // active columns for each entry
		sorted bool
	}{
		{"gen:rmat,scale=16,degree=2", 0.76, false},
		{"gen:stencil,side=33,points=7", 0.47, true},
	}
	for _, test := range tests {
		t.Run(test.spec, func(t *testing.T) {
			a, err := load.File(context.Background(), test.spec, load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			encoded := func(cores int) *hrpb.Matrix[float32] {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
				m, err := hrpb.Encode(a, hrpb.Options{Order: true})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			m := encoded(1)
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			if !m.Decode().Equal(a) {
				t.Error("decoded differs")
			}
			if share := float64(m.Stats().ActiveCols) / float64(a.NNZ()); share > test.most {
				t.Errorf("%.3f active columns for each entry, want %.3f at most", share, test.most)
			}
			if !slices.Equal(encoded(5).RowIdx, m.RowIdx) {
				t.Error("another order on five cores than on one")
			}
			var middle []uint32
			for four := range slices.Chunk(m.RowIdx, 4*hrpb.PanelRows) {
				middle = append(middle, slices.Sorted(slices.Values(four))[len(four)/2])
			}
			if whole := middle[:len(m.RowIdx)/(4*hrpb.PanelRows)]; slices.IsSorted(whole) != test.sorted {
				t.Errorf("panels are sorted by where their rows lie: %v, want %v", !test.sorted, test.sorted)
			}
		})
	}
}

// TestOrderOfManyColumns: what ordering takes does not follow from a number of columns that hardly any entry is in.
func TestOrderOfManyColumns(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 40, Cols: formats.MaxDim, RowPtr: []int64{0}}
	for i := range a.Rows {
		a.ColIdx, a.Val = append(a.ColIdx, int32(i%3), int32(formats.MaxDim-1-i%3)), append(a.Val, 1, 2)
		a.RowPtr = append(a.RowPtr, a.NNZ())
	}
	var m *hrpb.Matrix[float32]
	n := formatstest.Allocated(func() {
		var err error
		if m, err = hrpb.Encode(a, hrpb.Options{Order: true}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1<<24 {
		t.Errorf("encoding %d entries allocates %d MB", a.NNZ(), n>>20)
	}
	if d := diff.Diff(a, m.Decode()); d != "" {
		t.Error(d)
	}
}
