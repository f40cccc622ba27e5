package tiledcsr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/tiledcsr"
)

// The matrix of the package comment.
func Example() {
	a := &formats.CSR[float32]{
		Rows: 5, Cols: 6,
		RowPtr: []int64{0, 2, 4, 4, 5, 8},
		ColIdx: []int32{0, 2, 1, 4, 0, 1, 3, 4},
		Val:    []float32{1, 2, 3, 4, 8, 5, 6, 7},
	}
	m, err := tiledcsr.Encode(a, tiledcsr.Options{Height: 2, Complement: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for g := range tiledcsr.Groups(m.Rows, m.Height) {
		fmt.Println("rows", m.RowIdx[g*m.Height:][:m.Height], "tiles", m.TilePtr[g], "to", m.TilePtr[g+1])
	}
	for t := range m.Tiles() {
		fmt.Println("tile", t)
		fmt.Println("  columns", m.ColIdx[t*tiledcsr.TileCols:][:4], "…")
		fmt.Println("  values ", m.Values[t*tiledcsr.TileCols*m.Height:][:8], "…")
		fmt.Printf("  mask    %08b\n", m.Mask[t])
	}
	fmt.Printf("fill %.3f\n", m.Stats().Fill)
	// Output:
	// rows [1 4] tiles 0 to 1
	// rows [0 3] tiles 1 to 2
	// rows [2 4294967295] tiles 2 to 2
	// tile 0
	//   columns [1 3 4 4] …
	//   values  [3 5 0 6 4 7 0 0] …
	//   mask    00111011
	// tile 1
	//   columns [0 2 2 2] …
	//   values  [1 8 2 0 0 0 0 0] …
	//   mask    00000111
	// fill 0.125
}

var size = formatstest.UpTo(90, 70)

func drawOptions(t *rapid.T) tiledcsr.Options {
	return tiledcsr.Options{
		Height:     rapid.SampledFrom([]int{0, 2, 4, 8, 16, 32}).Draw(t, "height"),
		Keep:       rapid.Bool().Draw(t, "keep"),
		Threshold:  rapid.SampledFrom([]float64{0, -1, 0.3, 5}).Draw(t, "threshold"),
		Complement: rapid.SampledFrom([]int{0, -1, 5, 100}).Draw(t, "complement"),
		Bin:        rapid.SampledFrom([]int{0, 32, 1000}).Draw(t, "bin"),
	}
}

func TestRoundTrip(t *testing.T) {
	formatstest.RoundTrips(t, size, drawOptions, tiledcsr.Encode[half.F16], tiledcsr.Encode[half.BF16],
		tiledcsr.Encode[float32])
}

// TestDense holds the arrays against a dense matrix, slot by slot.
func TestDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Draw[float32](t, size)
		dense := formatstest.Entries(a)
		m, err := tiledcsr.Encode(a, drawOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for g := range len(m.TilePtr) - 1 {
			for q := int(m.TilePtr[g]) * 16; q < int(m.TilePtr[g+1])*16; q++ {
				pad := q > int(m.TilePtr[g])*16 && m.ColIdx[q] == m.ColIdx[q-1]
				for r := range m.Height {
					slot := q*m.Height + r
					row := m.RowIdx[g*m.Height+r]
					x, stored := dense[[2]int{int(row), int(m.ColIdx[q])}]
					stored = stored && !pad && row != tiledcsr.NoRow
					if got := m.Mask[slot/32]>>(slot%32)&1 == 1; got != stored {
						t.Fatalf("column %d row %d: stored %v, want %v", q, r, got, stored)
					}
					if !stored {
						x = 0
					} else {
						found++
					}
					if formatstest.Bits(m.Values[slot]) != formatstest.Bits(x) {
						t.Fatalf("column %d row %d: %v, want %v", q, r, m.Values[slot], x)
					}
				}
			}
		}
		if found != len(dense) {
			t.Fatalf("%d entries in the tiles, want %d", found, len(dense))
		}
	})
}

// rowsOf returns the groups as sets of rows, in no order.
func rowsOf[T formats.Value](m *tiledcsr.Matrix[T]) map[string]bool {
	sets := map[string]bool{}
	for g := range len(m.TilePtr) - 1 {
		sets[fmt.Sprint(m.RowIdx[g*m.Height:][:m.Height])] = true
	}
	return sets
}

// build makes a matrix of ones of the columns of each row.
func build(cols int, rows ...[]int32) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: len(rows), Cols: cols, RowPtr: []int64{0}}
	for _, r := range rows {
		for _, c := range r {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, 1)
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// TestShuffle: the ways in which rows come together.
func TestShuffle(t *testing.T) {
	span := func(lo, hi int32) (s []int32) {
		for c := lo; c < hi; c++ {
			s = append(s, c)
		}
		return s
	}
	tests := []struct {
		name string
		a    *formats.CSR[float32]
		o    tiledcsr.Options
		want []string
	}{
		// The sorted order is 0 1 2 3; 0 and 2 are alike, as are 1 and 3.
		{"similar", build(200, span(0, 60), append(span(0, 10), span(45, 80)...), append(span(0, 59), 72),
			append(span(0, 9), span(45, 82)...)),
			tiledcsr.Options{Height: 2, Complement: -1}, []string{"[0 2]", "[1 3]"}},
		// None is similar to another, and two pairs fit one tile of 16 columns.
		{"complementary", build(100, span(0, 11), span(20, 25), span(40, 51), span(60, 63)),
			tiledcsr.Options{Height: 2, Threshold: -1}, []string{"[0 1]", "[2 3]"}},
		// Neither kind matches: the bin row that shares most of its columns fills the slot.
		{"bin", build(200, span(10, 30), span(14, 50), span(24, 51), span(32, 60)),
			tiledcsr.Options{Height: 2, Threshold: -1, Complement: -1}, []string{"[0 1]", "[2 3]"}},
		// With a bin of two rows, the fourth row, which is like the first, is out of its reach.
		{"bin too short", build(100, []int32{1}, []int32{2}, []int32{3}, []int32{1, 4}),
			tiledcsr.Options{Height: 2, Threshold: -1, Complement: -1, Bin: 2}, []string{"[0 1]", "[2 3]"}},
		{"bin long enough", build(100, []int32{1}, []int32{2}, []int32{3}, []int32{1, 4}),
			tiledcsr.Options{Height: 2, Threshold: -1, Complement: -1, Bin: 3}, []string{"[0 3]", "[1 2]"}},
		{"kept", build(100, []int32{1}, []int32{2}, []int32{1}, []int32{2}),
			tiledcsr.Options{Height: 2, Keep: true}, []string{"[0 1]", "[2 3]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := tiledcsr.Encode(test.a, test.o)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{}
			for _, s := range test.want {
				want[s] = true
			}
			if d := cmp.Diff(want, rowsOf(m)); d != "" {
				t.Errorf("groups (-want +got):\n%s", d)
			}
		})
	}
}

// TestShuffleFindsVectors: rows that were alike in eights, and were mixed up, come together again.
func TestShuffleFindsVectors(t *testing.T) {
	a, err := gen.CSR("gen:vector,rows=4096,cols=1000,v=8,density=0.05,seed=3")
	if err != nil {
		t.Fatal(err)
	}
	mixed := &formats.CSR[float32]{Rows: a.Rows, Cols: a.Cols, RowPtr: []int64{0}}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(a.Rows) {
		mixed.ColIdx = append(mixed.ColIdx, a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]]...)
		mixed.Val = append(mixed.Val, a.Val[a.RowPtr[i]:a.RowPtr[i+1]]...)
		mixed.RowPtr = append(mixed.RowPtr, int64(len(mixed.Val)))
	}
	kept, err := tiledcsr.Encode(mixed, tiledcsr.Options{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	shuffled, err := tiledcsr.Encode(mixed, tiledcsr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	best, err := tiledcsr.Encode(a, tiledcsr.Options{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if x, y, z := kept.Tiles(), shuffled.Tiles(), best.Tiles(); 3*y > x || y > z+z/20 {
		t.Errorf("%d tiles mixed up, %d shuffled, %d at best", x, y, z)
	}
}

// TestAnyCores: the result does not depend on the number of cores, nor on the runs of other rows.
func TestAnyCores(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=5000,cols=700,nnz-per-row=9")
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first *tiledcsr.Matrix[float32]
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		m, err := tiledcsr.Encode(a, tiledcsr.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m
		}
		if !slices.Equal(m.RowIdx, first.RowIdx) || !slices.Equal(m.Mask, first.Mask) ||
			!slices.Equal(m.Values, first.Values) {
			t.Errorf("another result with %d cores", cores)
		}
	}
}

// TestWide: a matrix with the widest rows there may be takes no memory for its columns, and columns
// that the shuffle does not tell apart stay apart.
func TestWide(t *testing.T) {
	const last = math.MaxInt32 - 1
	a := build(math.MaxInt32, []int32{0, 1 << 20, last}, []int32{1 << 20, 1 << 21, last}, []int32{5})
	m, err := tiledcsr.Encode(a, tiledcsr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	formatstest.Decodes(t, a, m)
}

// TestContainer: a matrix that was written to a file and read again is the same.
func TestContainer(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=203,cols=300,nnz-per-row=7")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []formats.Sparse{formats.ConvertTo(a, dtype.F16), formats.ConvertTo(a, dtype.BF16), a} {
		want, err := tiledcsr.Format.Encode(a, map[string]int{"height": 16})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, formatstest.Filed(t, tiledcsr.Format, want)); d != "" {
			t.Errorf("written and read (-want +got):\n%s", d)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	good := build(2, []int32{1})
	bad := build(2, []int32{2})
	formatstest.Refuses(t, tiledcsr.Encode[float32], []formatstest.Refusal[tiledcsr.Options]{
		{"height not a power of two", good, tiledcsr.Options{Height: 6}, "groups of 6 rows"},
		{"height too large", good, tiledcsr.Options{Height: 64}, "groups of 64 rows"},
		{"negative height", good, tiledcsr.Options{Height: -8}, "groups of -8 rows"},
		{"bin smaller than a slot", good, tiledcsr.Options{Bin: 7}, "a bin of 7 rows: need 8"},
		{"negative bin", good, tiledcsr.Options{Bin: -1}, "a bin of -1 rows"},
		{"threshold", good, tiledcsr.Options{Threshold: math.NaN()}, "threshold NaN"},
		{"column out of range", bad, tiledcsr.Options{}, "row 0"},
	})
}

func TestStats(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 9, Cols: 3, RowPtr: []int64{0, 3, 3, 3, 3, 3, 3, 3, 3, 4},
		ColIdx: []int32{0, 1, 2, 1}, Val: make([]half.F16, 4)}
	m, err := tiledcsr.Encode(a, tiledcsr.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 16 row numbers, 3 pointers, 16 columns, 4 mask words; 128 values. Rows 0 and 8 are in one group.
	want := formats.Stats{StoredBytes: 4*39 + 2*128, Slots: 128, Fill: 4.0 / 128, MACs: 128, Gathers: 16, Longest: 16}
	if got := m.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// valid is a small matrix: group 0 is rows 1 and 3 with 17 columns, group 1 rows 0 and 2, group 2 row 4.
func valid() *tiledcsr.Matrix[float32] {
	m := &tiledcsr.Matrix[float32]{
		Height: 2, Rows: 5, Cols: 40,
		RowIdx:  []uint32{1, 3, 0, 2, 4, tiledcsr.NoRow},
		TilePtr: []uint32{0, 2, 3, 3},
		ColIdx:  make([]uint32, 48), Values: make([]float32, 96), Mask: make([]uint32, 3),
	}
	for q := range 16 {
		m.ColIdx[q], m.ColIdx[16+q], m.ColIdx[32+q] = uint32(q), 20, 7
		m.Values[2*q] = 1
	}
	m.ColIdx[32] = 3
	m.Values[32], m.Values[64], m.Values[67] = 5, 6, 7
	m.Mask = []uint32{0x55555555, 1, 1 | 1<<3}
	return m
}

// TestValidate spoils one thing at a time.
func TestValidate(t *testing.T) {
	type M = tiledcsr.Matrix[float32]
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"height", func(m *M) { m.Height = 3 }, "groups of 3 rows"},
		{"height beyond a word", func(m *M) { m.Height = math.MaxInt/2 + 1 },
			fmt.Sprintf("groups of %d rows", math.MaxInt/2+1)},
		{"negative rows", func(m *M) { m.Rows = -1 }, "matrix of -1×40"},
		{"more rows", func(m *M) { m.Rows = 7 }, "4 tile pointers for 4 groups"},
		{"one row more", func(m *M) { m.Rows = 6 }, "group 2, row 1: one row too few for a matrix of 6"},
		{"one group less", func(m *M) { m.Rows, m.TilePtr = 4, m.TilePtr[:3] }, "6 row numbers for 2 groups"},
		{"no pointers", func(m *M) { m.TilePtr = nil }, "0 tile pointers"},
		{"first pointer", func(m *M) { m.TilePtr[0] = 1 }, "group 0 starts at tile 1"},
		{"falling pointer", func(m *M) { m.TilePtr[2] = 1 }, "group 1 ends at tile 1, before its start 2"},
		{"pointer past the end", func(m *M) { m.TilePtr[3] = 1 << 31 }, "end at tile 2147483648 of 3"},
		{"light group first", func(m *M) { m.TilePtr[1] = 1 }, "group 0 (1 tiles) comes before group 1 (2)"},
		{"half a tile", func(m *M) { m.ColIdx = m.ColIdx[:40] }, "40 columns: need 16 a tile"},
		{"values missing", func(m *M) { m.Values = m.Values[1:] }, "95 values for 48 columns of 2"},
		{"mask missing", func(m *M) { m.Mask = nil }, "0 mask words"},
		{"row out of range", func(m *M) { m.RowIdx[3] = 5 }, "group 1, row 1: row 5 of a matrix of 5"},
		{"row twice", func(m *M) { m.RowIdx[2] = 1 }, "group 1, row 0: row 1 comes twice"},
		{"rows unsorted", func(m *M) { m.RowIdx[0], m.RowIdx[1] = 3, 1 }, "group 0, row 1: row 1 after row 3"},
		{"no row at all", func(m *M) { m.RowIdx[4] = tiledcsr.NoRow }, "group 2, row 0: a group without rows"},
		{"no row before a row", func(m *M) { m.RowIdx[2], m.RowIdx[3] = tiledcsr.NoRow, 4 }, "group 1, row 0: a group without rows"},
		{"column out of range", func(m *M) { m.ColIdx[32] = 40 }, "group 1, tile 2, place 0 (column 40): the matrix has 40 columns"},
		{"columns unsorted", func(m *M) { m.ColIdx[5] = 4 }, "group 0, tile 0, place 5 (column 4): not after column 4"},
		{"columns unsorted between tiles", func(m *M) { m.ColIdx[16] = 15 },
			"group 0, tile 1, place 0 (column 15): not after"},
		{"padding elsewhere", func(m *M) { m.ColIdx[40] = 8 }, "place 8 (column 8): no entry, and padding would repeat column 7"},
		{"value in padding", func(m *M) { m.Values[95] = 1 }, "place 15 (column 7): row 1 of the group is not stored"},
		{"value without mask", func(m *M) { m.Values[65] = 1 }, "place 0 (column 3): row 1 of the group is not stored"},
		{"entry after padding", func(m *M) { m.Mask[2] |= 1 << 30 }, "place 15 (column 7): an entry after padding"},
		{"only padding", func(m *M) { m.Mask[1], m.Values[32] = 0, 0 }, "tile 1, place 0 (column 20): no entry"},
		{"a tile of padding", func(m *M) {
			m.Mask[1], m.Values[32] = 0, 0
			for q := range 16 {
				m.ColIdx[16+q] = 15
			}
		}, "group 0 has 16 columns of padding"},
	})
}

// TestValidateMissingRow: an entry in a row that the matrix does not have.
func TestValidateMissingRow(t *testing.T) {
	m := &tiledcsr.Matrix[float32]{
		Height: 2, Rows: 1, Cols: 1, RowIdx: []uint32{0, tiledcsr.NoRow}, TilePtr: []uint32{0, 1},
		ColIdx: make([]uint32, 16), Values: make([]float32, 32), Mask: []uint32{2},
	}
	formatstest.Error(t, m.Validate(), "an entry in a row that does not exist")
}

// FuzzValidate: whatever passes can be decoded, and what was decoded encodes to the same entries.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{1, 5, 40, 3, 1, 3, 0, 2, 4, 255, 0, 1, 2, 2, 3, 7, 0, 1, 0, 0, 0, 4, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
		9, 9, 9, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		next := formatstest.Bytes(b)
		m := &tiledcsr.Matrix[float32]{Height: 1 << (next.Next() % 6), Rows: next.Int(), Cols: next.Int()}
		groups := next.Int()
		m.RowIdx = next.Each(groups * m.Height)
		for i, r := range m.RowIdx {
			if r == 255 {
				m.RowIdx[i] = tiledcsr.NoRow
			}
		}
		m.TilePtr = next.Each(groups + 1)
		m.ColIdx = next.Each(16 * int(m.TilePtr[groups]))
		slots := len(m.ColIdx) * m.Height
		m.Mask = next.Words(slots / 32)
		for i := range slots / 32 * 32 {
			m.Values = append(m.Values, float32(m.Mask[i/32]>>(i%32)&1))
		}
		if m.Validate() != nil {
			return
		}
		a := m.Decode()
		if err := a.Validate(); err != nil {
			t.Fatalf("decoded: %v", err)
		}
		if a.NNZ() != m.NNZ() {
			t.Fatalf("%d entries of %d decoded", a.NNZ(), m.NNZ())
		}
		again, err := tiledcsr.Encode(a, tiledcsr.Options{Height: m.Height})
		if err != nil {
			t.Fatal(err)
		}
		if !a.Equal(again.Decode()) {
			t.Fatal("decoded, encoded and decoded again: another matrix")
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, spec := range []string{
		"uniform,rows=4096,sparsity=0.5", "uniform,rows=4096,sparsity=0.9", "uniform,rows=65536,nnz-per-row=20",
		"powerlaw,rows=100000,nnz-per-row=8",
	} {
		a, err := gen.CSR("gen:" + spec)
		if err != nil {
			b.Fatal(err)
		}
		for _, keep := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/keep=%t", spec, keep), func(b *testing.B) {
				var m *tiledcsr.Matrix[float32]
				for b.Loop() {
					if m, err = tiledcsr.Encode(a, tiledcsr.Options{Keep: keep}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(100*m.Stats().Fill, "%fill")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(a.NNZ()), "ns/entry")
			})
		}
	}
}
