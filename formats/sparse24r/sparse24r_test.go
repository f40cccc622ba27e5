// Round trips, how entries are shared out, damaged arrays, and encoding's speed.

package sparse24r_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/sparse24r"
)

// small is the package comment's matrix.
func small() *formats.CSR[float32] {
	return &formats.CSR[float32]{
		Rows: 2, Cols: 8, RowPtr: []int64{0, 4, 9},
		ColIdx: []int32{0, 1, 3, 5, 2, 4, 5, 6, 7}, Val: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9},
	}
}

func Example() {
	m, err := sparse24r.Encode(small())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pairs", m.Pairs.Values)
	fmt.Println("columns of the remainder", m.Rest.ColInd[:4], "of", len(m.Rest.ColInd))
	fmt.Println("its first two vectors", m.Rest.Values[:2], m.Rest.Values[16:18])
	fmt.Println(m.NNZ(), "entries,", m.Rest.NNZ(), "in the remainder")
	// Output:
	// pairs [1 2 0 4 0 5 6 7]
	// columns of the remainder [3 6 7 7] of 16
	// its first two vectors [3 0] [0 8]
	// 9 entries, 3 in the remainder
}

// draw makes any matrix: empty rows, full rows, stored zeros, no rows or columns at all.
func draw[T formats.Value](t *rapid.T, from func(float32) T) *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: rapid.IntRange(0, 70).Draw(t, "rows"), Cols: rapid.IntRange(0, 40).Draw(t, "cols"), RowPtr: []int64{0}, ColIdx: []int32{}, Val: []T{}}
	density := rapid.SampledFrom([]float64{0, 0.02, 0.3, 0.6, 1}).Draw(t, "density")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -2, 0.5, float32(math.Inf(1))}
	for range a.Rows {
		d := density
		switch rng.IntN(8) {
		case 0:
			d = 0
		case 1:
			d = 1
		}
		for j := range a.Cols {
			if rng.Float64() < d {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, from(values[rng.IntN(len(values))]))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// bits shows a matrix with its values by their bits, so that -0 differs from 0.
func bits[T formats.Value](a *formats.CSR[T]) string {
	return fmt.Sprintf("%d×%d %v %v %x %v", a.Rows, a.Cols, a.RowPtr, a.ColIdx, a.Val, signs(a.Val))
}

func signs[T formats.Value](v []T) (s []bool) {
	for _, x := range v {
		f, ok := any(x).(float32)
		s = append(s, ok && math.Signbit(float64(f)))
	}
	return s
}

func roundTrip[T formats.Value](from func(float32) T) func(*rapid.T) {
	return func(t *rapid.T) {
		a := draw(t, from)
		m, err := sparse24r.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		if got, want := bits(m.Decode()), bits(a); got != want {
			t.Fatalf("decoded as\n%s\nwant\n%s", got, want)
		}
		if m.NNZ() != a.NNZ() {
			t.Fatalf("NNZ %d, want %d", m.NNZ(), a.NNZ())
		}
		most := int64(0) // what 2:4 can hold
		for i := range a.Rows {
			groups := map[int32]int64{}
			for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				groups[c/4]++
			}
			for _, n := range groups {
				most += min(n, 2)
			}
		}
		if m.Pairs.NNZ() != most {
			t.Fatalf("%d entries in pairs, which could hold %d", m.Pairs.NNZ(), most)
		}
		b := &formats.CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: slices.Clone(a.Val)}
		slices.Reverse(b.Val)
		other := m.WithValues(b.Val)
		if err := other.Validate(); err != nil {
			t.Fatal(err)
		}
		if got, want := bits(other.(*sparse24r.Matrix[T]).Decode()), bits(b); got != want {
			t.Fatalf("with other values it is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Run("f16", rapid.MakeCheck(roundTrip(half.F16From)))
	t.Run("bf16", rapid.MakeCheck(roundTrip(half.BF16From)))
	t.Run("f32", rapid.MakeCheck(roundTrip(func(x float32) float32 { return x })))
}

func TestStats(t *testing.T) {
	m, err := sparse24r.Encode(small())
	if err != nil {
		t.Fatal(err)
	}
	want := formats.Stats{StoredBytes: 4*8 + 4*2 + 4*2 + 4*(2+16+8+1) + 4*256, Slots: 8 + 256, MACs: 8 + 256, Gathers: 8 + 16, Longest: 16, Fill: 9.0 / 264}
	if got := m.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if d := m.Details(); len(d) != 2 || d[0].Value != 3.0/9 || d[1].Value != 16 {
		t.Errorf("details %v", d)
	}
	if cols := m.PanelCols([]uint32{9}, 1); len(cols) != 1+4+16 || !slices.Equal(cols[:8], []uint32{9, 0, 2, 4, 5, 3, 6, 7}) {
		t.Errorf("row 1 fetches %d", cols)
	}
}

func TestEncodeRefuses(t *testing.T) {
	a := small()
	a.ColIdx[1] = 0
	if _, err := sparse24r.Encode(a); err == nil {
		t.Error("a matrix with two entries in one place is encoded")
	}
	huge := &formats.CSR[float32]{Rows: 1 << 20, Cols: 1 << 20, RowPtr: make([]int64, 1<<20+1)}
	if _, err := sparse24r.Encode(huge); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("2⁴⁰ places: error %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*sparse24r.Matrix[float32])
		want   string
	}{
		{"nothing", func(*sparse24r.Matrix[float32]) {}, ""},
		{"rows", func(m *sparse24r.Matrix[float32]) { m.Rows = 3 }, "parts of 2×8"},
		{"pattern", func(m *sparse24r.Matrix[float32]) { m.Pairs.N = 1 }, "pairs of 1:4"},
		{"panel", func(m *sparse24r.Matrix[float32]) { m.Rest.V = 8 }, "8 rows a panel"},
		{"padding", func(m *sparse24r.Matrix[float32]) { m.Rest.Align = 1 }, "padded to 1 vectors"},
		{"places", func(m *sparse24r.Matrix[float32]) { m.Pairs.Index[0] = 0 }, "sparse24r: pairs: nm: panel 0"},
		{"column", func(m *sparse24r.Matrix[float32]) { m.Rest.ColInd[15] = 8 }, "sparse24r: remainder: cvse: panel 0"},
		{"a free place", func(m *sparse24r.Matrix[float32]) { m.Rest.ColInd[0] = 5 }, "row 0, column 5 is in the remainder"},
		{"before pairs", func(m *sparse24r.Matrix[float32]) { m.Rest.ColInd[0] = 0 }, "row 0, column 0 is in the remainder"},
	} {
		m, err := sparse24r.Encode(small())
		if err != nil {
			t.Fatal(err)
		}
		c.damage(m)
		if err := m.Validate(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add(uint8(2), uint8(8), []byte{0, 4, 0x15, 0b0111, 0b1110, 3, 6, 7, 7}, []byte{1, 0, 2, 0, 2})
	f.Fuzz(func(t *testing.T, rows, cols uint8, b, rest []byte) {
		a := &formats.CSR[float32]{Rows: int(rows % 40), Cols: int(cols % 40), RowPtr: []int64{0}}
		for i := range a.Rows {
			for j := range a.Cols {
				if k := i*a.Cols + j; k/8 < len(b) && b[k/8]>>(k%8)&1 != 0 {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
				}
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		m, err := sparse24r.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+3 < len(rest); i += 4 { // damage: array, place, what to add
			arrays := [][]uint32{m.Pairs.Index, m.Pairs.Mask, m.Rest.VecPtr, m.Rest.ColInd, m.Rest.Mask, m.Rest.Order}
			if x := arrays[int(rest[i])%len(arrays)]; len(x) > 0 {
				x[int(rest[i+1])%len(x)] += uint32(rest[i+2]) << (rest[i+3] % 32)
			}
		}
		if m.Validate() != nil {
			return
		}
		again, err := sparse24r.Encode(m.Decode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("decoded and encoded again (-want +got):\n%s", d)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	const n = 4096
	for _, density := range []float64{0.5, 0.1} {
		a := &formats.CSR[half.F16]{Rows: n, Cols: n, RowPtr: []int64{0}}
		rng := rand.New(rand.NewPCG(1, 1))
		for range n {
			for j := range n {
				if rng.Float64() < density {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, half.F16From(1))
				}
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		b.Run(fmt.Sprintf("density=%v", density), func(b *testing.B) {
			b.SetBytes(2 * a.NNZ())
			for range b.N {
				if _, err := sparse24r.Encode(a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
