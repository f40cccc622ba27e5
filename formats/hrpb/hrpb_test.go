// Encoding and decoding: every matrix comes back, and bricks hold what they say.

package hrpb_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
)

// small is the matrix in the package comment's diagram.
func small() *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: 16, Cols: 9, RowPtr: []int64{0, 2, 4}, ColIdx: []int32{0, 3, 6, 8, 1},
		Val: []float32{1, 2, 3, 4, 5}}
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

var size = formatstest.UpTo(70, 60)

func drawOptions(t *rapid.T) hrpb.Options {
	return hrpb.Options{
		BlockCols:  rapid.SampledFrom([]int{0, 4, 8, 12, 16, 64}).Draw(t, "block"),
		PartBlocks: rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "part"),
		Workers:    rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "workers"),
		Order:      rapid.Bool().Draw(t, "order"),
	}
}

func TestRoundTrip(t *testing.T) {
	formatstest.RoundTrips(t, size, drawOptions, hrpb.Encode[half.F16], hrpb.Encode[half.BF16], hrpb.Encode[float32])
}

// TestManyChunks encodes a matrix that several goroutines share, some panels of it empty.
func TestManyChunks(t *testing.T) {
	a := scattered(3000, 2000, 40)
	m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 8, Workers: 20})
	if err != nil {
		t.Fatal(err)
	}
	formatstest.Decodes(t, a, m)
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
		a := formatstest.Draw[float32](t, size)
		dense := formatstest.Entries(a)
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
						if !stored || formatstest.Bits(values[0]) != formatstest.Bits(want) {
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
	formatstest.Refuses(t, hrpb.Encode[float32], []formatstest.Refusal[hrpb.Options]{
		{"block of half a brick", small(), hrpb.Options{BlockCols: 6}, "blocks of 6 columns"},
		{"block too long", small(), hrpb.Options{BlockCols: 68}, "blocks of 68 columns"},
		{"negative block", small(), hrpb.Options{BlockCols: -4}, "blocks of -4 columns"},
		{"negative parts", small(), hrpb.Options{PartBlocks: -1}, "parts of -1 blocks"},
		{"negative workers", small(), hrpb.Options{Workers: -1}, "-1 workers"},
		{"column out of range", bad, hrpb.Options{}, "row 0"},
	})
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
