// Round trips, how entries are shared out, damaged arrays, and encoding's speed.

package sparse24r_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
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
	fmt.Println("columns of the remainder", m.Remainder.ColInd[:4], "of", len(m.Remainder.ColInd))
	fmt.Println("its first two vectors", m.Remainder.Values[:2], m.Remainder.Values[16:18])
	fmt.Println(m.NNZ(), "entries,", m.Remainder.NNZ(), "in the remainder")
	// Output:
	// pairs [1 2 0 4 0 5 6 7]
	// columns of the remainder [3 6 7 7] of 16
	// its first two vectors [3 0] [0 8]
	// 9 entries, 3 in the remainder
}

func roundTrip[T formats.Value](t *rapid.T) {
	a := formatstest.Draw[T](t, formatstest.UpTo(70, 40))
	m, err := sparse24r.Encode(a)
	formatstest.Holds(t, a, m, err)
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
}

func TestRoundTrip(t *testing.T) {
	formatstest.EachType(t, roundTrip[half.F16], roundTrip[half.BF16], roundTrip[float32])
}

func TestStats(t *testing.T) {
	m, err := sparse24r.Encode(small())
	if err != nil {
		t.Fatal(err)
	}
	want := formats.Stats{StoredBytes: 4*8 + 4*2 + 4*2 + 4*(2+16+8+1) + 4*256, Slots: 8 + 256, MACs: 8 + 256, Gathers: 8 +
		16, Longest: 16, Fill: 9.0 / 264}
	if got := m.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	if d := m.Details(); len(d) != 2 || d[0].Value != 3.0/9 || d[1].Value != 16 {
		t.Errorf("details %v", d)
	}
	if cols := m.PanelCols([]uint32{9}, 1); len(cols) != 1+4+16 ||
		!slices.Equal(cols[:8], []uint32{9, 0, 2, 4, 5, 3, 6, 7}) {
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
	type M = sparse24r.Matrix[float32]
	valid := func() *M {
		m, err := sparse24r.Encode(small())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"rows", func(m *M) { m.Rows = 3 }, "pairs of 2×8"},
		{"pattern", func(m *M) { m.Pairs.N = 1 }, "pairs of 1:4"},
		{"panel", func(m *M) { m.Remainder.V = 8 }, "8 rows a panel"},
		{"padding", func(m *M) { m.Remainder.Align = 1 }, "padded to 1 vectors"},
		{"places", func(m *M) { m.Pairs.Index[0] = 0 }, "sparse24r: pairs: nm: panel 0"},
		{"column", func(m *M) { m.Remainder.ColInd[15] = 8 }, "sparse24r: remainder: cvse: panel 0"},
		{"a free place", func(m *M) { m.Remainder.ColInd[0] = 5 }, "row 0, column 5 is in the remainder"},
		{"before pairs", func(m *M) { m.Remainder.ColInd[0] = 0 }, "row 0, column 0 is in the remainder"},
	})
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add(uint8(2), uint8(8), []byte{0, 4, 0x15, 0b0111, 0b1110, 3, 6, 7, 7}, []byte{1, 0, 2, 0, 2})
	f.Fuzz(func(t *testing.T, rows, cols uint8, b, remainder []byte) {
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
		for i := 0; i+3 < len(remainder); i += 4 { // damage: array, place, what to add
			arrays := [][]uint32{m.Pairs.Index, m.Pairs.Mask, m.Remainder.VecPtr, m.Remainder.ColInd, m.Remainder.Mask,
				m.Remainder.Order}
			if x := arrays[int(remainder[i])%len(arrays)]; len(x) > 0 {
				x[int(remainder[i+1])%len(x)] += uint32(remainder[i+2]) << (remainder[i+3] % 32)
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
	for _, density := range []float64{0.5, 0.1} {
		a32, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=4096,cols=4096,density=%v", density))
		if err != nil {
			b.Fatal(err)
		}
		a := formats.Convert[half.F16](a32)
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
