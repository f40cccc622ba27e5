package nm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/nm"
)

func Example() {
	a := &formats.CSR[float32]{
		Rows: 5, Cols: 7,
		RowPtr: []int64{0, 3, 5, 7, 8, 10},
		ColIdx: []int32{0, 3, 6, 0, 6, 1, 4, 4, 3, 5},
		Val:    []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	}
	m, err := nm.Encode(a, nm.Pattern{N: 1, M: 2, V: 2, W: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("values", m.Values)
	fmt.Printf("index  %04b\n", m.Index)
	fmt.Printf("mask   %08b\n", m.Mask)
	fmt.Printf("fill   %.2f\n", m.Stats().Fill)
	// Output:
	// values [1 4 2 0 0 0 3 5 6 0 0 0 7 8 0 0 0 0 9 0 10 0 0 0]
	// index  [0010 0001 0110]
	// mask   [11000111 00110001 00010100]
	// fill   0.42
}

func ExampleDetect() {
	a := dense(8, 64, func(i, j int) bool { return (i/4*7+j/16*5+j)%8 < 2 })
	p, err := nm.Detect(a, nm.Search{})
	fmt.Println(p, err)
	_, err = nm.Encode(a, nm.Pattern{N: 1, M: 8, V: 1, W: 1})
	fmt.Println(err)
	// Output:
	// 2:8 of 4×1 vectors <nil>
	// nm: row 0, group 0 (columns 0 to 7) has 2 entries, and 1:8 allows 1: not an N:M matrix
}

// dense returns a matrix with entries where has says, numbered from 1.
func dense(rows, cols int, has func(i, j int) bool) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for i := range rows {
		for j := range cols {
			if has(i, j) {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, float32(len(a.Val)+1))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// drawPattern makes any pattern, mostly of the usual ones.
func drawPattern(t *rapid.T) nm.Pattern {
	p := nm.Pattern{
		M: rapid.OneOf(rapid.SampledFrom([]int{2, 4, 8, 16, 32, 64}), rapid.IntRange(2, nm.MaxM)).Draw(t, "M"),
		V: rapid.OneOf(rapid.SampledFrom([]int{1, 8, 32}), rapid.IntRange(1, 40)).Draw(t, "V"),
		W: rapid.SampledFrom([]int{1, 1, 1, 2, 3, 16}).Draw(t, "W"),
	}
	p.N = rapid.IntRange(1, p.M).Draw(t, "N")
	return p
}

// draw makes a matrix that obeys p, with groups that are not full.
func draw[T formats.Value](t *rapid.T, p nm.Pattern) *formats.CSR[T] {
	a, err := nm.Prune(formatstest.Draw[T](t, formatstest.UpTo(70, 150)), p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func roundTrip[T formats.Value](t *rapid.T) {
	p := drawPattern(t)
	a := draw[T](t, p)
	m, err := nm.Encode(a, p)
	formatstest.Holds(t, a, m, err)
}

func TestRoundTrip(t *testing.T) {
	formatstest.EachType(t, roundTrip[half.F16], roundTrip[half.BF16], roundTrip[float32])
}

// TestArrays holds the arrays against the matrix, value by value, as the package comment describes them.
func TestArrays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t)
		a := draw[float32](t, p)
		entry := formatstest.Entries(a)
		m, err := nm.Encode(a, p)
		if err != nil {
			t.Fatal(err)
		}
		q := 0
		for 1<<q < p.M {
			q++
		}
		panels, slots := (a.Rows+p.V-1)/p.V, (a.Cols+p.M*p.W-1)/(p.M*p.W)*p.N
		indexWords, maskWords, columns := (slots*q+31)/32, (slots*p.W*p.V+31)/32, slots*p.W
		found := 0
		for panel := range panels {
			for k := range columns {
				s, place := k/p.W, 0
				for b := range q {
					at := s*q + b
					place |= int(m.Index[panel*indexWords+at/32]>>(at%32)&1) << b
				}
				col := (s/p.N*p.M+place)*p.W + k%p.W
				for r := range p.V {
					want, stored := entry[[2]int{panel*p.V + r, col}]
					at := k*p.V + r
					if got := m.Mask[panel*maskWords+at/32]>>(at%32)&1 != 0; got != stored {
						t.Fatalf("panel %d, column %d (%d), row %d: stored %v, want %v", panel, k, col, r, got, stored)
					}
					got := m.Values[(panel*columns+k)*p.V+r]
					if formatstest.Bits(got) != formatstest.Bits(want) {
						t.Fatalf("panel %d, column %d (%d), row %d: %v, want %v", panel, k, col, r, got, want)
					}
					if stored {
						found++
					}
				}
			}
		}
		if found != len(entry) || len(m.Values) != panels*columns*p.V {
			t.Fatalf("%d entries of %d in %d values", found, len(entry), len(m.Values))
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	full := dense(9, 20, func(i, j int) bool { return true })
	late := dense(9, 20, func(i, j int) bool { return i < 6 && j%4 < 2 || i == 7 && j >= 17 })
	bad := *full
	bad.ColIdx = slices.Clone(full.ColIdx)
	bad.ColIdx[0] = 20
	tests := []struct {
		name string
		a    *formats.CSR[float32]
		p    nm.Pattern
		want string
		is   error
	}{
		{"no N", full, nm.Pattern{N: 0, M: 4, V: 1, W: 1}, "pattern 0:4", nil},
		{"N above M", full, nm.Pattern{N: 5, M: 4, V: 1, W: 1}, "pattern 5:4", nil},
		{"M too large", full, nm.Pattern{N: 5, M: 65, V: 1, W: 1}, "pattern 5:65", nil},
		{"no V", full, nm.Pattern{N: 2, M: 4, V: 0, W: 1}, "0×1 units", nil},
		{"W too large", full, nm.Pattern{N: 2, M: 4, V: 1, W: 65}, "1×65 units", nil},
		{"column out of range", &bad, nm.Pattern{N: 2, M: 4, V: 1, W: 1}, "row 0", nil},
		{"first row", full, nm.Pattern{N: 2, M: 4, V: 1, W: 1}, "row 0, group 0 (columns 0 to 3) has 4 entries, and 2:4 allows 2", nm.ErrPattern},
		{"later row", late, nm.Pattern{N: 2, M: 4, V: 1, W: 1}, "row 7, group 4 (columns 16 to 19) has 3 entries",
			nm.ErrPattern},
		{"vectors", late, nm.Pattern{N: 2, M: 4, V: 4, W: 1}, "rows 4 to 7, group 4 (columns 16 to 19) have entries in 4 units, and 2:4 of 4×1 vectors allows 2", nm.ErrPattern},
		{"blocks", late, nm.Pattern{N: 1, M: 4, V: 4, W: 2}, "rows 0 to 3, group 0 (columns 0 to 7) have entries in 2 units, and 1:4 of 4×2 blocks", nm.ErrPattern},
		{"the last group", late, nm.Pattern{N: 2, M: 7, V: 1, W: 1}, "row 0, group 0 (columns 0 to 6) has 4", nm.ErrPattern},
		{"too many values", &formats.CSR[float32]{Rows: 1 << 17, Cols: 1 << 17, RowPtr: make([]int64, 1<<17+1)},
			nm.Pattern{N: 2, M: 4, V: 1, W: 1}, fmt.Sprintf("more than %d values", int64(formats.MaxSlots)), nm.ErrTooLarge},
		{"hardly any entries", &formats.CSR[float32]{Rows: 1 << 15, Cols: 1 << 15, RowPtr: make([]int64, 1<<15+1)},
			nm.Pattern{N: 2, M: 4, V: 1, W: 1}, " values", nm.ErrTooLarge},
		{"far too many values", &formats.CSR[float32]{Rows: 1, Cols: math.MaxInt32, RowPtr: make([]int64, 2)},
			nm.Pattern{N: 64, M: 64, V: 256, W: 64}, fmt.Sprintf("more than %d values", int64(formats.MaxSlots)),
			nm.ErrTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := nm.Encode(test.a, test.p)
			formatstest.Error(t, err, test.want)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v, want one that is %v", err, test.is)
			}
		})
	}
}

// TestFirstOffender: whatever the number of cores, it is the first.
func TestFirstOffender(t *testing.T) {
	a := dense(3000, 64, func(i, j int) bool { return j%4 < 2 || i >= 1234 && j >= 40 })
	_, err := nm.Encode(a, nm.Pattern{N: 2, M: 4, V: 1, W: 1})
	if err == nil || !strings.Contains(err.Error(), "row 1234, group 10 ") {
		t.Errorf("error %v", err)
	}
}

// random makes a matrix that obeys p with full groups.
func random(rows, cols int, p nm.Pattern, seed uint64) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for i := range rows {
		rng := rand.New(rand.NewPCG(uint64(i/p.V), seed))
		for lo := 0; lo < cols; lo += p.M * p.W {
			units := rng.Perm(p.M)[:p.N]
			slices.Sort(units)
			for _, u := range units {
				for w := range p.W {
					if c := lo + u*p.W + w; c < cols {
						a.ColIdx, a.Val = append(a.ColIdx, int32(c)), append(a.Val, half.F16From(1))
					}
				}
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func TestDetect(t *testing.T) {
	patterns := []nm.Pattern{
		{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 8, V: 1, W: 1}, {N: 1, M: 4, V: 1, W: 1}, {N: 2, M: 16, V: 1, W: 1},
		{N: 8, M: 32, V: 1, W: 1}, {N: 1, M: 10, V: 1, W: 1}, {N: 3, M: 64, V: 1, W: 1}, {N: 1, M: 2, V: 1, W: 1},
		{N: 2, M: 4, V: 8, W: 1}, {N: 4, M: 16, V: 32, W: 1}, {N: 2, M: 20, V: 64, W: 1}, {N: 4, M: 16, V: 128, W: 1},
		{N: 2, M: 4, V: 4, W: 4}, {N: 1, M: 4, V: 16, W: 16}, {N: 2, M: 8, V: 32, W: 8},
	}
	for _, p := range patterns {
		t.Run(p.String(), func(t *testing.T) {
			// Whole groups: a partial last one might show by a smaller N.
			a := random(512, 16*p.M*p.W, p, 1)
			got, err := nm.Detect(a, nm.Search{})
			if err != nil || got != p {
				t.Errorf("%v, %v", got, err)
			}
			if _, err := nm.Encode(a, got); err != nil {
				t.Error(err)
			}
			if tall, err := nm.Detect(a, nm.Search{LeastV: p.V}); err != nil || tall != p {
				t.Errorf("of at least %d rows: %v, %v", p.V, tall, err)
			}
			unit, err := nm.Detect(a, nm.Search{V: 1, W: 1})
			if err != nil || unit.N*p.M != p.N*unit.M || unit.V != 1 || unit.W != 1 {
				if p.M*p.W <= nm.MaxM {
					t.Errorf("of single entries: %v, %v", unit, err)
				}
			}
		})
	}
}

func TestDetectRefuses(t *testing.T) {
	for _, test := range []struct {
		name string
		a    *formats.CSR[float32]
	}{
		{"no entries", dense(64, 64, func(i, j int) bool { return false })},
		{"nothing", &formats.CSR[float32]{RowPtr: []int64{0}}},
		{"full", dense(64, 64, func(i, j int) bool { return true })},
		{"one full row", dense(64, 64, func(i, j int) bool { return i == 3 })},
		{"few entries of many places", dense(300, 300, func(i, j int) bool { return i == j })},
		{"bands", dense(64, 640, func(i, j int) bool { return j/64 == i/32 })},
	} {
		if p, err := nm.Detect(test.a, nm.Search{W: 1}); !errors.Is(err, nm.ErrPattern) {
			t.Errorf("%s: %v, %v", test.name, p, err)
		}
	}
	_, err := nm.Detect(dense(9, 300, func(i, j int) bool { return j%2 == 0 || i == 5 && j > 130 }),
		nm.Search{MinFill: 0.9})
	if err == nil || !strings.Contains(err.Error(), "(row 5 has 64 entries in columns 192 to 255)") {
		t.Errorf("error %v", err)
	}
	a := dense(4, 4, func(i, j int) bool { return j == 0 })
	if _, err := nm.Detect(a, nm.Search{V: nm.MaxV + 1}); err == nil || errors.Is(err, nm.ErrPattern) {
		t.Errorf("units too tall: %v", err)
	}
}

// TestDetectLeast: what is found is the cheapest of all patterns, by trying them all.
func TestDetectLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t)
		a := draw[half.F16](t, p)
		v, w := rapid.SampledFrom([]int{1, 4, 8, 32}).Draw(t, "searched V"), rapid.SampledFrom([]int{1, 2, 4}).Draw(t,
			"searched W")
		got, err := nm.Detect(a, nm.Search{V: v, W: w})
		best, bestCost := nm.Pattern{}, int64(math.MaxInt64)
		for m := 2; m <= nm.MaxM; m++ {
			for n := 1; n < m; n++ {
				try := nm.Pattern{N: n, M: m, V: v, W: w}
				x, err := nm.Encode(a, try)
				if err != nil {
					continue
				}
				slots := int64(len(x.Values))
				cost := 17*slots + slots/int64(v*w)*int64(try.Bits())
				if slots < int64((a.Rows+v-1)/v*v*a.Cols) && 2*a.NNZ() >= slots && cost < bestCost {
					best, bestCost = try, cost
				}
				break
			}
		}
		if got != best || (err == nil) != (best != nm.Pattern{}) {
			t.Fatalf("%v, %v, want %v", got, err, best)
		}
	})
}

// TestPrune: the N units of the largest sums stay, whole, and nothing else.
func TestPrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPattern(t)
		rows, cols := rapid.IntRange(0, 50).Draw(t, "rows"), rapid.IntRange(0, 130).Draw(t, "cols")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d := &formats.Dense[float32]{Rows: rows, Cols: cols, LD: cols, Data: make([]float32, rows*cols)}
		for i := range d.Data {
			d.Data[i] = float32(rng.IntN(9) - 4)
		}
		got, err := nm.PruneDense(d, p)
		if err != nil {
			t.Fatal(err)
		}
		want := dense(rows, cols, func(i, j int) bool {
			score := func(u int) (sum float64) { // of the unit at u in (i, j)'s group
				for r := i / p.V * p.V; r < min(rows, (i/p.V+1)*p.V); r++ {
					lo := (j/(p.M*p.W)*p.M + u) * p.W
					for c := lo; c < min(cols, lo+p.W); c++ {
						sum += math.Abs(float64(d.Data[r*cols+c]))
					}
				}
				return sum
			}
			mine, before := j%(p.M*p.W)/p.W, 0
			for u := range p.M {
				if s, own := score(u), score(mine); s > own || s == own && u < mine {
					before++
				}
			}
			return d.Data[i*cols+j] != 0 && before < p.N
		})
		for i := range want.Rows {
			for e := want.RowPtr[i]; e < want.RowPtr[i+1]; e++ {
				want.Val[e] = d.Data[i*cols+int(want.ColIdx[e])]
			}
		}
		if !got.Equal(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestPruneRefuses(t *testing.T) {
	if _, err := nm.Prune(dense(1, 1, func(i, j int) bool { return true }), nm.Pattern{}); err == nil {
		t.Error("an empty pattern is accepted")
	}
	if _, err := nm.PruneDense(&formats.Dense[float32]{Rows: 2, Cols: 2, LD: 1},
		nm.Pattern{N: 2, M: 4, V: 1, W: 1}); err == nil {
		t.Error("an invalid matrix is accepted")
	}
}

func TestStats(t *testing.T) {
	a := random(40, 64, nm.Pattern{N: 4, M: 16, V: 16, W: 1}, 3)
	m, err := nm.Encode(a, nm.Pattern{N: 4, M: 16, V: 16, W: 1})
	if err != nil {
		t.Fatal(err)
	}
	// 3 panels of 16 slots: 64 bits of places each, 256 values and bits of mask.
	want := formats.Stats{StoredBytes: 3 * (8 + 2*256 + 32), Slots: 768, Fill: 40.0 / 48, MACs: 768, Gathers: 48}
	if got := m.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestValidate spoils one thing at a time.
func TestValidate(t *testing.T) {
	type M = nm.Matrix[float32]
	valid := func() *M {
		return &M{
			Pattern: nm.Pattern{N: 2, M: 4, V: 2, W: 1}, Rows: 3, Cols: 6,
			Values: []float32{1, 0, 2, 3, 0, 4, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0},
			Index:  []uint32{0b0100_1000, 0b0100_0100},
			Mask:   []uint32{0b01_10_11_01, 0b00_00_00_01},
		}
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"no pattern", func(m *M) { m.N = 0 }, "pattern 0:4"},
		{"negative rows", func(m *M) { m.Rows = -1 }, "matrix of -1×6"},
		{"more rows", func(m *M) { m.Rows = 5 }, "16 values for 3 panels of 8: need 24"},
		{"many columns", func(m *M) { m.Cols = 1 << 26 }, "16 values for 2 panels of 67108864"},
		{"too many values", func(m *M) { m.Rows, m.Cols = math.MaxInt32, math.MaxInt32 }, "too large"},
		{"values missing", func(m *M) { m.Values = nil }, "0 values"},
		{"index missing", func(m *M) { m.Index = m.Index[:1] }, "1 index words for 2 panels of 1: need 2"},
		{"mask too long", func(m *M) { m.Mask = append(m.Mask, 0) }, "3 mask words"},
		{"index beyond the end", func(m *M) { m.Index[1] |= 1 << 8 }, "panel 1: bits after the last of 4 slots"},
		{"mask beyond the end", func(m *M) { m.Mask[0] |= 1 << 8 }, "panel 0: bits after"},
		{"places fall", func(m *M) { m.Index[0] = 0b0100_0010 }, "panel 0, group 0, slot 1 (place 0): not after"},
		{"place twice", func(m *M) { m.Index[0] = 0b0100_1010 }, "panel 0, group 0, slot 1 (place 2): not after"},
		{"no such place", func(m *M) { m.M = 3; m.Index[0] = 0b0100_1100 }, "slot 1 (place 3): a group has 3 units"},
		{"entry past the columns", func(m *M) { m.Index[0] = 0b1000_1000 }, "slot 3 (place 2): an entry in column 6 of 6"},
		{"entry below the rows", func(m *M) { m.Mask[1] = 0b00_00_10_01 }, "panel 1, group 0, slot 1 (place 1): an entry below the last of 3 rows"},
		{"value without mask", func(m *M) { m.Values[1] = 9 }, "panel 0, group 0, slot 0 (place 0): row 1 of column 0 is not stored"},
		{"other units kept", func(m *M) { m.Index[1] = 0b0100_1000 },
			"panel 1, group 0: 1 units hold entries, and the ones added to them"},
	})
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{2, 4, 2, 1, 3, 6, 0b0100_1000, 0, 0, 0, 0b0100_0100, 0, 0, 0, 0b01_10_11_01, 0, 0, 0, 1})
	f.Add([]byte{1, 3, 1, 2, 2, 7, 0b0001, 0, 0, 0, 0b0110})
	f.Fuzz(func(t *testing.T, b []byte) {
		next := formatstest.Bytes(b)
		p := nm.Pattern{N: next.Int(), M: next.Int(), V: next.Int(), W: next.Int()}
		m := &nm.Matrix[float32]{Pattern: p, Rows: next.Int(), Cols: next.Int()}
		s, err := m.Shape(m.Rows, m.Cols)
		if err != nil || s.Panels*s.Columns*m.V > 1<<16 {
			return
		}
		m.Index, m.Mask = next.Words(s.Panels*s.IndexWords), next.Words(s.Panels*s.MaskWords)
		for p := range s.Panels {
			for i := range s.Columns * m.V {
				m.Values = append(m.Values, float32(m.Mask[p*s.MaskWords+i/32]>>(i%32)&1))
			}
		}
		if m.Validate() != nil {
			return
		}
		again, err := nm.Encode(m.Decode(), m.Pattern)
		formatstest.Again(t, m, again, err)
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, p := range []nm.Pattern{{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 16, V: 64, W: 1}} {
		a := random(4096, 4096, p, 5)
		b.Run(fmt.Sprintf("4096x4096/%d:%d/v=%d", p.N, p.M, p.V), func(b *testing.B) {
			for b.Loop() {
				if _, err := nm.Encode(a, p); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("detect/4096x4096/%d:%d/v=%d", p.N, p.M, p.V), func(b *testing.B) {
			for b.Loop() {
				if _, err := nm.Detect(a, nm.Search{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Fit takes what Detect refuses where the matrix is small, and obeys takes; without n and m the format takes what
// kernels take: small matrices, and 2:4 that is filled a little.
func TestFit(t *testing.T) {
	diagonal := func(n int) *formats.CSR[float32] { return dense(n, n, func(i, j int) bool { return i == j }) }
	p24 := func(n int) *formats.CSR[float32] {
		return dense(n, n, func(i, j int) bool { return j%16 < 2 && i%16 != 5 })
	}
	for _, test := range []struct {
		name string
		a    *formats.CSR[float32]
		want string // what errors contain; "": none
	}{
		{"no rows", dense(0, 5, nil), ""},
		{"no columns", dense(5, 0, nil), ""},
		{"no entries", dense(9, 70, func(i, j int) bool { return false }), ""},
		{"full", dense(9, 70, func(i, j int) bool { return true }), ""},
		{"sparse", diagonal(300), ""},
		{"large and sparse", diagonal(600), "row 0 has 1 entries in columns 0 to 63"},
		{"large and empty", dense(600, 600, func(i, j int) bool { return false }),
			"nm: a matrix without entries fills no pattern"},
		{"2:16", p24(600), ""},
	} {
		e, err := nm.Format.Encode(test.a, nil)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) ||
			!errors.Is(err, nm.ErrPattern)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if err == nil && !formats.Convert[float32](e.Sparse()).Equal(test.a) {
			t.Errorf("%s: decoded to another matrix", test.name)
		}
	}
	only := nm.Pattern{N: 1, M: 3, V: 1, W: 1}
	takes := func(p nm.Pattern) bool { return p == only }
	if p, err := nm.Fit(p24(600), nm.Search{MinFill: 0.1}, takes); !errors.Is(err, nm.ErrPattern) {
		t.Errorf("%v is not what is taken, and no error: %v", p, err)
	}
	if p, err := nm.Fit(p24(64), nm.Search{V: 8}, takes); err != nil || p.V != 8 || p.N != p.M {
		t.Errorf("a small matrix: %v, %v", p, err)
	}
}

// Prune compares the magnitudes of float64 elements too.
func TestPruneFloat64(t *testing.T) {
	a := &formats.CSR[float64]{Rows: 1, Cols: 2, RowPtr: []int64{0, 2}, ColIdx: []int32{0, 1}, Val: []float64{1, -2}}
	p, err := nm.Prune(a, nm.Pattern{N: 1, M: 2, V: 1, W: 1})
	if err != nil {
		t.Fatal(err)
	}
	if p.NNZ() != 1 || p.Val[0] != -2 {
		t.Errorf("kept %v, want -2", p.Val)
	}
}
