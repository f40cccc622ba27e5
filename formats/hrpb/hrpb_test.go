// Encoding and decoding: every matrix comes back, and bricks hold what they say.

package hrpb_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
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
