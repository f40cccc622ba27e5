package hrpb_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/load"
)

// small is the matrix in the package comment's diagram.
func small() *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: 16, Cols: 9, RowPtr: []int64{0, 2, 4}, ColIdx: []int32{0, 3, 6, 8, 1}, Val: []float32{1, 2, 3, 4, 5}}
	for len(a.RowPtr) < 17 {
		a.RowPtr = append(a.RowPtr, 5)
	}
	return a
}

func Example() {
	m, err := hrpb.Encode(small(), hrpb.Options{BlockCols: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("active  ", m.Active)
	b := m.Block(0)
	fmt.Printf("patterns %#x %#x\n", b.Pattern(0), b.Pattern(1))
	fmt.Println("values  ", b.Values())
	fmt.Println("sizeptr ", m.SizePtr)
	fmt.Println("blockptr", m.BlockPtr)
	s := m.Stats()
	fmt.Printf("alpha    %.3f, %v synergy, intensity %.0f\n", s.Alpha, s.Synergy(), s.Intensity)
	// Output:
	// active   [0 1 3 6 8 8 8 8]
	// patterns 0x285 0x10
	// values   [1 2 3 5 4]
	// sizeptr  [0 3]
	// blockptr [0 1]
	// alpha    0.039, low synergy, intensity 20
}

// draw makes any matrix: empty rows, full rows, stored zeros, no rows or columns at all.
func draw[T formats.Value](t *rapid.T, from func(float32) T) *formats.CSR[T] {
	a := &formats.CSR[T]{
		Rows:   rapid.IntRange(0, 70).Draw(t, "rows"),
		Cols:   rapid.IntRange(0, 60).Draw(t, "cols"),
		RowPtr: []int64{0}, ColIdx: []int32{}, Val: []T{},
	}
	density := rapid.SampledFrom([]float64{0, 0.02, 0.3, 1}).Draw(t, "density")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -2, 0.5, float32(math.Inf(1))}
	for range a.Rows {
		rowDensity := density
		switch rng.IntN(8) {
		case 0:
			rowDensity = 0
		case 1:
			rowDensity = 1
		}
		for j := range a.Cols {
			if rng.Float64() < rowDensity {
				a.ColIdx = append(a.ColIdx, int32(j))
				a.Val = append(a.Val, from(values[rng.IntN(len(values))]))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func drawOptions(t *rapid.T) hrpb.Options {
	return hrpb.Options{
		BlockCols:  rapid.SampledFrom([]int{0, 4, 8, 12, 16, 64}).Draw(t, "block"),
		PartBlocks: rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "part"),
		Workers:    rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "workers"),
		Order:      rapid.Bool().Draw(t, "order"),
	}
}

// bits shows a's values by their bits, so that -0 differs from 0.
func bits[T formats.Value](a *formats.CSR[T]) any {
	var v []string
	for _, x := range a.Val {
		switch x := any(x).(type) {
		case float32:
			v = append(v, fmt.Sprintf("%08x", math.Float32bits(x)))
		default:
			v = append(v, fmt.Sprintf("%04x", x))
		}
	}
	return struct {
		Rows, Cols int
		RowPtr     []int64
		ColIdx     []int32
		Val        []string
	}{a.Rows, a.Cols, a.RowPtr, a.ColIdx, v}
}

func roundTrip[T formats.Value](from func(float32) T) func(*rapid.T) {
	return func(t *rapid.T) {
		a := draw(t, from)
		m, err := hrpb.Encode(a, drawOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(bits(a), bits(m.Decode())); d != "" {
			t.Fatalf("encoded and decoded (-want +got):\n%s", d)
		}
		if m.NNZ() != a.NNZ() {
			t.Fatalf("NNZ %d, want %d", m.NNZ(), a.NNZ())
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Run("f16", rapid.MakeCheck(roundTrip(half.F16From)))
	t.Run("bf16", rapid.MakeCheck(roundTrip(half.BF16From)))
	t.Run("f32", rapid.MakeCheck(roundTrip(func(x float32) float32 { return x })))
}

// TestManyChunks encodes a matrix that several goroutines share, some panels of it empty.
func TestManyChunks(t *testing.T) {
	a := scattered(3000, 2000, 40)
	m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 8, Workers: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(a, m.Decode()); d != "" {
		t.Fatal("decoded differs")
	}
}

// scattered is a matrix whose rows have up to twice that many entries; one panel in seven is empty.
func scattered(rows, cols, entries int) *formats.CSR[float32] {
	rng := rand.New(rand.NewPCG(1, 2))
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for i := range rows {
		n := 0
		if i/hrpb.PanelRows%7 != 3 {
			n = rng.IntN(2*entries + 1)
		}
		var row []int32
		for range n {
			row = append(row, int32(rng.IntN(cols)))
		}
		slices.Sort(row)
		for _, c := range slices.Compact(row) {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, rng.Float32())
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// TestDense holds the bricks against the matrix, slot by slot.
func TestDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, func(x float32) float32 { return x })
		dense := make(map[[2]int]float32)
		for i := range a.Rows {
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				dense[[2]int{i, int(a.ColIdx[p])}] = a.Val[p]
			}
		}
		m, err := hrpb.Encode(a, drawOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for p := range len(m.BlockPtr) - 1 {
			for q := int(m.BlockPtr[p]); q < int(m.BlockPtr[p+1]); q++ {
				b := m.Block(q)
				values := b.Values()
				for i := range b.Bricks() {
					for bit := range 64 {
						if b.Pattern(i)>>bit&1 == 0 {
							continue
						}
						at := [2]int{m.Row(p*hrpb.PanelRows + bit/hrpb.BrickCols), int(b.Active[i*hrpb.BrickCols+bit%hrpb.BrickCols])}
						want, stored := dense[at]
						if !stored || values[0] != want {
							t.Fatalf("block %d brick %d bit %d: %v, want %v (stored %v)", q, i, bit, values[0], want, stored)
						}
						values = values[1:]
						found++
					}
				}
			}
		}
		if found != len(dense) {
			t.Fatalf("%d entries in the bricks, want %d", found, len(dense))
		}
	})
}

// TestParts: every block is in one part; parts of a panel are balanced; slots are dealt in order.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, func(x float32) float32 { return x })
		m, err := hrpb.Encode(a, drawOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		byPanel := slices.Clone(m.Parts)
		slices.SortFunc(byPanel, func(x, y hrpb.Part) int {
			return cmp.Or(cmp.Compare(x.Panel, y.Panel), cmp.Compare(x.First, y.First))
		})
		slots := 0
		for _, s := range m.Splits {
			var of []hrpb.Part
			for _, p := range byPanel {
				if p.Panel == s.Panel {
					of = append(of, p)
				}
			}
			for i, p := range of {
				if int(p.Slot) != int(s.Slot)+i || p.Last-p.First+1 < of[0].Last-of[0].First {
					t.Fatalf("split panel %+v: part %d is %+v", s, i, p)
				}
			}
			if len(of) < 2 {
				t.Fatalf("split panel %+v has %d parts", s, len(of))
			}
			slots += len(of)
		}
		if slots != m.Work().Slots {
			t.Fatalf("%d slots in use, want %d", slots, m.Work().Slots)
		}
		next := uint32(0)
		for _, p := range byPanel {
			if p.First != next || p.Last < p.First || m.PartBlocks > 0 && int(p.Last-p.First) > m.PartBlocks {
				t.Fatalf("part %+v after block %d, at most %d blocks", p, next, m.PartBlocks)
			}
			next = p.Last
		}
		if int(next) != len(m.SizePtr)-1 {
			t.Fatalf("parts end at block %d of %d", next, len(m.SizePtr)-1)
		}
	})
}

// TestWavePart has the paper's example (§5): a panel ten times the others needs no splitting when there
// are ten waves, and much when all panels run at once.
func TestWavePart(t *testing.T) {
	for _, test := range []struct{ panels, blocks, workers, want int }{
		{991, 1000, 100, 11}, // the paper: ten blocks need no splitting
		{991, 1000, 991, 2},
		{100, 700, 0, 0},
		{0, 0, 10, 0},
	} {
		if got := hrpb.WavePart(test.panels, test.blocks, test.workers); got != test.want {
			t.Errorf("WavePart(%d, %d, %d) is %d, want %d", test.panels, test.blocks, test.workers, got, test.want)
		}
	}
}

func TestTeams(t *testing.T) {
	// Panels of 1, 25, 0, 18, 30 and 1 active columns.
	a := &formats.CSR[float32]{Rows: 96, Cols: 40, RowPtr: []int64{0}}
	for i := range a.Rows {
		if i%16 == 5 {
			for c := range []int{1, 25, 0, 18, 30, 1}[i/16] {
				a.ColIdx, a.Val = append(a.ColIdx, int32(c)), append(a.Val, 1)
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 4, PartBlocks: 7})
	if err != nil {
		t.Fatal(err)
	}
	no := uint32(hrpb.NoSlot)
	for _, test := range []struct {
		team        int
		want        []hrpb.Part
		fours, twos int
	}{
		{0, []hrpb.Part{{0, 0, 1, no}, {1, 1, 8, no}, {2, 8, 8, no}, {3, 8, 13, no}, {4, 13, 17, 0}, {4, 17, 21, 1}, {5, 21, 22, no}}, 0, 0},
		{4, []hrpb.Part{{1, 1, 8, no}, {3, 8, 13, no}, {0, 0, 1, no}, {2, 8, 8, no}, {4, 13, 17, 0}, {4, 17, 21, 1}, {5, 21, 22, no}}, 0, 2},
		{3, []hrpb.Part{{1, 1, 8, no}, {3, 8, 13, no}, {4, 13, 17, 0}, {4, 17, 21, 1}, {0, 0, 1, no}, {2, 8, 8, no}, {5, 21, 22, no}}, 1, 3},
	} {
		m.TeamBlocks = test.team
		m.Parts, m.Splits = hrpb.WorkList(m.BlockPtr, m.PartBlocks, m.TeamBlocks)
		if d := diff.Diff(test.want, m.Parts); d != "" {
			t.Errorf("teams from %d blocks: parts (-want +got):\n%s", test.team, d)
		}
		if d := diff.Diff([]hrpb.Part{{4, 13, 21, 0}}, m.Splits); d != "" {
			t.Errorf("split panels (-want +got):\n%s", d)
		}
		want := hrpb.Work{Parts: 7, Splits: 1, Slots: 2, PartBlocks: 7, Fours: test.fours, Twos: test.twos}
		if got := m.Work(); got != want {
			t.Errorf("teams from %d blocks: %+v, want %+v", test.team, got, want)
		}
	}
}

func TestStats(t *testing.T) {
	m, err := hrpb.Encode(small(), hrpb.Options{BlockCols: 8})
	if err != nil {
		t.Fatal(err)
	}
	want := hrpb.Stats{
		// 8 columns, 2 sizes, 12 words of the block, a part of 4.
		Stats:  formats.Stats{StoredBytes: 4 * (8 + 2 + 12 + 4), Slots: 128, Fill: 5. / 128, MACs: 128, Gathers: 5},
		Bricks: 2, ActiveCols: 5, Alpha: 5. / 128, Intensity: 20, Heaviest: 1, Parts: 1,
	}
	if d := diff.Diff(want, m.Stats()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for alpha, want := range map[float64]string{0: "low", 0.12: "low", 0.125: "medium", 0.25: "high", 1: "high"} {
		if got := (hrpb.Stats{Alpha: alpha}).Synergy().String(); got != want {
			t.Errorf("synergy of %v is %s, want %s", alpha, got, want)
		}
	}
}

// TestSynergy holds the synergy of real matrices against what is known of them: a graph of co-authors,
// numbered without regard to the graph, is barely denser than one entry a column; a structure's
// stiffness matrix is in between. Where SPMM_NOTREDAME names a copy of SuiteSparse's NotreDame_www.mtx.gz,
// that of the web graph is checked too, of which the paper says "nearly 10 %" (§1).
func TestSynergy(t *testing.T) {
	files := map[string][2]float64{ // least and greatest alpha
		"../../testdata/matrices/ca-CondMat.mtx.gz": {0.0625, 0.066},
		"../../testdata/matrices/dwt_992.mtx.gz":    {0.125, 0.25},
	}
	if f := os.Getenv("SPMM_NOTREDAME"); f != "" {
		files[f] = [2]float64{0.09, 0.13}
	}
	for file, want := range files {
		a, err := load.File(context.Background(), file, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := hrpb.Encode(a, hrpb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := m.Stats()
		t.Logf("%s: alpha %.4f (%v), intensity %.0f, %d bricks, %.2f active columns an entry",
			file, s.Alpha, s.Synergy(), s.Intensity, s.Bricks, float64(s.ActiveCols)/float64(a.NNZ()))
		if s.Alpha < want[0] || s.Alpha > want[1] {
			t.Errorf("%s: alpha %v, want %v to %v", file, s.Alpha, want[0], want[1])
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	bad := small()
	bad.ColIdx[1] = 9
	tests := []struct {
		name string
		a    *formats.CSR[float32]
		o    hrpb.Options
		want string
	}{
		{"block of half a brick", small(), hrpb.Options{BlockCols: 6}, "blocks of 6 columns"},
		{"block too long", small(), hrpb.Options{BlockCols: 68}, "blocks of 68 columns"},
		{"negative block", small(), hrpb.Options{BlockCols: -4}, "blocks of -4 columns"},
		{"negative parts", small(), hrpb.Options{PartBlocks: -1}, "parts of -1 blocks"},
		{"negative workers", small(), hrpb.Options{Workers: -1}, "-1 workers"},
		{"column out of range", bad, hrpb.Options{}, "row 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := hrpb.Encode(test.a, test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestValidate spoils one thing at a time of a matrix of two panels, the second of one row.
func TestValidate(t *testing.T) {
	type M = hrpb.Matrix[float32]
	tests := []struct {
		name  string
		spoil func(m *M)
		want  string
	}{
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
		{"a unit too many", func(m *M) { m.SizePtr[1], m.Packed[1] = 3, 0 }, "block 0 has 3 units of 16 bytes: its 4 entries need 2"},
		{"an entry too many", func(m *M) { m.Packed[1] = 7 }, "block 0 has 2 units of 16 bytes: its 7 entries need 3"},
		{"rubbish at the end", func(m *M) { m.Packed[7] = 1 << 31 }, "block 0 does not end with zeros after its 4 entries"},
		{"column out of range", func(m *M) { m.Active[3] = 9 }, "panel 0, block 0, active column 3 (column 9): the matrix has 9 columns"},
		{"columns unsorted", func(m *M) { m.Active[1] = 0 }, "active column 1 (column 0): not after column 0"},
		{"columns unsorted across blocks", func(m *M) { m.Active[4] = 5 }, "block 1, active column 0 (column 5): not after column 6"},
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
		{"row indices that are not asked for", func(m *M) { m.RowIdx = make([]uint32, 33) }, "33 row indices in a matrix whose rows are in their order"},
		{"no such order", func(m *M) { m.Order = 2 }, "order 2: need 0 or 1"},
		{"too few row indices", func(m *M) { m.Order, m.RowIdx = 1, make([]uint32, 7) }, "7 row indices for 33 rows"},
		{"a row twice", func(m *M) { m.Order, m.RowIdx = 1, make([]uint32, 33) }, "row index 1 is 0: need each of 33 rows once"},
		{"a row that is not there", func(m *M) { m.Order, m.RowIdx = 1, upTo(33); m.RowIdx[4] = 33 }, "row index 4 is 33"},
		{"rows in another order", func(m *M) { m.Order, m.RowIdx = 1, upTo(33); slices.Reverse(m.RowIdx) }, ""},
		{"part of another panel", func(m *M) { m.Parts[0].Panel = 1 }, "part 0 is {Panel:1"},
		{"part missing", func(m *M) { m.Parts = m.Parts[1:] }, "3 parts: need 4"},
		{"split missing", func(m *M) { m.Splits = nil }, "0 split panels: need 1"},
		{"split slot", func(m *M) { m.Splits[0].Slot = 7 }, "split panel 0 is"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := small()
			a.Rows = 33
			for i := 16; i < 33; i++ {
				if i == 20 || i == 32 {
					a.ColIdx, a.Val = append(a.ColIdx, 5), append(a.Val, 6)
				}
				a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
			}
			m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 4, PartBlocks: 1})
			if err != nil {
				t.Fatal(err)
			}
			test.spoil(m)
			err = m.Validate()
			if test.want == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func upTo(n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = uint32(i)
	}
	return s
}

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
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(a, m.Decode()); d != "" {
				t.Error("decoded differs")
			}
			again, err := hrpb.Encode(a, hrpb.Options{Order: true})
			if d := diff.Diff(m, again); d != "" || err != nil {
				t.Errorf("encoded again: %v, %s", err, d)
			}
			share := float64(m.Stats().ActiveCols) / float64(a.NNZ())
			t.Logf("active columns for each entry: %.3f, in their order %.3f", share, float64(natural.Stats().ActiveCols)/float64(a.NNZ()))
			if share > test.most || test.stays != (len(m.RowIdx) == 0) {
				t.Errorf("%.3f active columns for each entry, want %.3f at most; in their order: %v", share, test.most, len(m.RowIdx) == 0)
			}
		})
	}
}

// TestVersions: files of version 1, which have no row indices, are still read.
// What ordering takes does not follow from a number of columns that hardly any entry is in.
func TestOrderOfManyColumns(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 40, Cols: formats.MaxDim, RowPtr: []int64{0}}
	for i := range a.Rows {
		a.ColIdx, a.Val = append(a.ColIdx, int32(i%3), int32(formats.MaxDim-1-i%3)), append(a.Val, 1, 2)
		a.RowPtr = append(a.RowPtr, a.NNZ())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := hrpb.Encode(a, hrpb.Options{Order: true})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<24 {
		t.Errorf("encoding %d entries allocates %d MB", a.NNZ(), n>>20)
	}
	if d := diff.Diff(a, m.Decode()); d != "" {
		t.Error(d)
	}
}

func TestVersions(t *testing.T) {
	a := shuffled(scattered(200, 90, 4), 2)
	without := func(c *formats.Container) {
		c.Arrays = slices.DeleteFunc(c.Arrays, func(x formats.Array) bool { return x.Name == "rowidx" })
	}
	tests := []struct {
		name  string
		order int
		spoil func(c *formats.Container)
		want  string
	}{
		{"version 2, another order", 1, func(c *formats.Container) {}, ""},
		{"version 2, the matrix's order", 0, func(c *formats.Container) {}, ""},
		{"version 1", 0, func(c *formats.Container) { c.Version = 1; delete(c.Options, "order"); without(c) }, ""},
		{"version 2 without row indices", 0, without, `no array "rowidx"`},
		{"version 0", 0, func(c *formats.Container) { c.Version = 0 }, "version 0"},
		{"version 3", 0, func(c *formats.Container) { c.Version = 3 }, "version 3"},
		{"no such order", 0, func(c *formats.Container) { c.Options["order"] = 5 }, "order 5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, err := hrpb.Format.Encode(a, map[string]int{"order": test.order})
			if err != nil {
				t.Fatal(err)
			}
			c := formats.NewContainer(e)
			test.spoil(c)
			got, err := hrpb.Format.Open(c)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(a, got.Sparse()); d != "" {
				t.Error("decoded differs")
			}
		})
	}
	if _, err := hrpb.Format.Encode(a, map[string]int{"order": 2}); err == nil {
		t.Error("order 2 is encoded")
	}
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{4, 1, 16, 9, 1, 0, 2, 2, 0, 2, 3, 0, 1, 3, 6, 8, 8, 8, 8, 0x85, 2, 0x10, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		at := func(i int) uint32 {
			if i < len(b) {
				return uint32(b[i])
			}
			return 0
		}
		m := &hrpb.Matrix[half.F16]{BlockCols: int(at(0)), PartBlocks: int(at(1)), Rows: int(at(2)), Cols: int(at(3))}
		n := 5
		words := func(k uint32) (w []uint32) {
			for range k {
				w = append(w, at(n))
				n++
			}
			return w
		}
		m.BlockPtr = words(at(4) + 1)
		if len(m.BlockPtr) == 0 {
			return
		}
		blocks := m.BlockPtr[len(m.BlockPtr)-1]
		m.SizePtr = words(blocks + 1)
		m.Active = words(blocks * uint32(m.BlockCols))
		for range 4 * m.SizePtr[blocks] {
			m.Packed = append(m.Packed, at(n)|at(n+1)<<8)
			n += 2
		}
		if !slices.IsSorted(m.BlockPtr) {
			if m.Validate() == nil {
				t.Fatal("valid with falling block pointers")
			}
			return
		}
		m.Parts, m.Splits = hrpb.WorkList(m.BlockPtr, m.PartBlocks, 0)
		if at(n) > 0 {
			n++
			m.Order, m.RowIdx = 1, words(uint32(max(0, m.Rows)))
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

func BenchmarkEncode(b *testing.B) {
	for _, entries := range []int{3, 40} {
		a := scattered(50000, 50000, entries)
		b.Run(fmt.Sprintf("50000x50000/row=%d", entries), func(b *testing.B) {
			for b.Loop() {
				if _, err := hrpb.Encode(a, hrpb.Options{Workers: 1000}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(a.NNZ()), "ns/entry")
		})
	}
}
