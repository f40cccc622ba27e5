// Round trips, arrays, damaged arrays, and encoding's speed.

package cvse_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
)

func Example() {
	a := &formats.CSR[float32]{
		Rows: 5, Cols: 6,
		RowPtr: []int64{0, 2, 4, 4, 4, 6},
		ColIdx: []int32{0, 2, 2, 5, 1, 4},
		Val:    []float32{1, 2, 3, 4, 5, 6},
	}
	m, err := cvse.Encode(a, cvse.Options{V: 2, Align: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("vecptr", m.VecPtr)
	fmt.Println("colind", m.ColInd)
	fmt.Println("values", m.Values)
	fmt.Printf("mask   %012b\n", m.Mask)
	fmt.Println("order ", m.Order)
	fmt.Printf("fill   %.2f\n", m.Stats().Fill)
	// Output:
	// vecptr [0 4 4 6]
	// colind [0 2 5 5 1 4]
	// values [1 0 2 3 0 4 0 0 5 0 6 0]
	// mask   [010100101101]
	// order  [0 2 1]
	// fill   0.50
}

var size = formatstest.UpTo(70, 40)

func drawOptions(t *rapid.T) cvse.Options {
	return cvse.Options{
		V:     rapid.OneOf(rapid.SampledFrom([]int{8, 16}), rapid.IntRange(1, cvse.MaxV)).Draw(t, "V"),
		Align: rapid.SampledFrom([]int{0, 1, 2, 8, 16, 3}).Draw(t, "align"),
	}
}

func TestRoundTrip(t *testing.T) {
	formatstest.RoundTrips(t, size, drawOptions, cvse.Encode[half.F16], cvse.Encode[half.BF16], cvse.Encode[float32])
}

// TestDense holds the arrays against a dense matrix, slot by slot.
func TestDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Draw[float32](t, size)
		dense := formatstest.Entries(a)
		v := rapid.IntRange(1, cvse.MaxV).Draw(t, "V")
		m, err := cvse.Encode(a, cvse.Options{V: v, Align: 4})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for p := range len(m.VecPtr) - 1 {
			for q := int(m.VecPtr[p]); q < int(m.VecPtr[p+1]); q++ {
				for r := range v {
					slot := q*v + r
					x, stored := dense[[2]int{p*v + r, int(m.ColInd[q])}]
					pad := q > int(m.VecPtr[p]) && m.ColInd[q] == m.ColInd[q-1]
					stored = stored && !pad
					if got := m.Mask[slot/32]>>(slot%32)&1 == 1; got != stored {
						t.Fatalf("vector %d row %d: stored %v, want %v", q, r, got, stored)
					}
					if stored {
						found++
					} else {
						x = 0
					}
					if formatstest.Bits(m.Values[slot]) != formatstest.Bits(x) {
						t.Fatalf("vector %d row %d: %v, want %v", q, r, m.Values[slot], x)
					}
				}
			}
		}
		if found != len(dense) {
			t.Fatalf("%d entries in the vectors, want %d", found, len(dense))
		}
	})
}

func TestEncodeRefuses(t *testing.T) {
	good, bad := formatstest.GoodAndBad()
	formatstest.Refuses(t, cvse.Encode[float32], []formatstest.Refusal[cvse.Options]{
		{"no vector length", good, cvse.Options{}, "vector length 0"},
		{"vector too long", good, cvse.Options{V: 33}, "vector length 33"},
		{"negative alignment", good, cvse.Options{V: 8, Align: -1}, "alignment -1"},
		{"column out of range", bad, cvse.Options{V: 8}, "row 0"},
	})
}

func TestStats(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 9, Cols: 3, RowPtr: []int64{0, 3, 3, 3, 3, 3, 3, 3, 3, 4},
		ColIdx: []int32{0, 1, 2, 1}, Val: make([]half.F16, 4)}
	m, err := cvse.Encode(a, cvse.Options{V: 8})
	if err != nil {
		t.Fatal(err)
	}
	// 3 pointers, 4 columns, 1 mask word, 2 panels in order; 32 values.
	want := formats.Stats{StoredBytes: 4*10 + 2*32, Slots: 32, Fill: 0.125, MACs: 32, Gathers: 4, Longest: 3}
	if got := m.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestValidate spoils one thing at a time.
func TestValidate(t *testing.T) {
	type M = cvse.Matrix[float32]
	valid := func() *M {
		return &M{
			V: 2, Align: 2, Rows: 5, Cols: 6,
			VecPtr: []uint32{0, 4, 4, 6},
			ColInd: []uint32{0, 2, 5, 5, 1, 4},
			Values: []float32{1, 0, 2, 3, 0, 4, 0, 0, 5, 0, 6, 0},
			Mask:   []uint32{0b01_01_00_10_11_01},
			Order:  []uint32{0, 2, 1},
		}
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"vector length", func(m *M) { m.V = 0 }, "vector length 0"},
		{"vector length beyond a word", func(m *M) { m.V = math.MaxInt }, "vector length"},
		{"alignment", func(m *M) { m.Align = 0 }, "alignment 0"},
		{"negative rows", func(m *M) { m.Rows = -1 }, "matrix of -1×6"},
		{"more rows", func(m *M) { m.Rows = 7 }, "4 vector pointers for 4 panels"},
		{"fewer rows", func(m *M) { m.Rows = 3 }, "4 vector pointers for 2 panels"},
		{"no pointers", func(m *M) { m.VecPtr = nil }, "0 vector pointers"},
		{"first pointer", func(m *M) { m.VecPtr[0] = 2 }, "panel 0 starts at vector 2"},
		{"falling pointer", func(m *M) { m.VecPtr[1] = 6 }, "panel 1 ends at vector 4, before"},
		{"unaligned pointer", func(m *M) { m.VecPtr[2] = 5 }, "panel 1 ends at vector 5, no multiple of 2"},
		{"pointer past the end", func(m *M) { m.VecPtr[3] = 1 << 31 }, "end at vector 2147483648 of 6"},
		{"values missing", func(m *M) { m.Values = m.Values[1:] }, "11 values for 6 vectors of 2"},
		{"mask missing", func(m *M) { m.Mask = nil }, "0 mask words"},
		{"mask beyond the end", func(m *M) { m.Mask[0] |= 1 << 12 }, "mask bits after the last"},
		{"column out of range", func(m *M) { m.ColInd[5] = 6 }, "panel 2, vector 5 (column 6): the matrix has 6 columns"},
		{"columns unsorted", func(m *M) { m.ColInd[1] = 0 }, "panel 0, vector 1 (column 0): not after column 0"},
		{"padding elsewhere", func(m *M) { m.ColInd[3] = 1 }, "panel 0, vector 3 (column 1): no entry, and padding"},
		{"value in padding", func(m *M) { m.Values[7] = 1 }, "panel 0, vector 3 (column 5): row 1 is not stored"},
		{"value without mask", func(m *M) { m.Values[1] = 1 }, "panel 0, vector 0 (column 0): row 1 is not stored"},
		{"row that is not there", func(m *M) { m.Mask[0] |= 1 << 9 }, "panel 2, vector 4 (column 1): an entry below"},
		{"only padding", func(m *M) { m.Mask[0] &^= 3 << 8; m.Values[8] = 0 }, "panel 2, vector 4 (column 1): no entry"},
		{"order too short", func(m *M) { m.Order = m.Order[:2] }, "an order of 2 panels"},
		{"order out of range", func(m *M) { m.Order[0] = 3 }, "order names panel 3 at 0"},
		{"order twice", func(m *M) { m.Order[1] = 0 }, "order has panel 0"},
		{"order not by weight", func(m *M) { m.Order[0], m.Order[1] = 2, 0 },
			"order has panel 2 (2 vectors) before panel 0 (4)"},
	})
}

// TestTooMuchPadding needs more vectors than the table above.
func TestTooMuchPadding(t *testing.T) {
	m := &cvse.Matrix[float32]{V: 1, Align: 2, Rows: 1, Cols: 1,
		VecPtr: []uint32{0, 4}, ColInd: make([]uint32, 4), Values: make([]float32, 4),
		Mask: []uint32{1}, Order: []uint32{0}}
	formatstest.Error(t, m.Validate(), "panel 0 has 3 vectors of padding")
}

// FuzzValidate: whatever passes can be decoded, and encodes to the same arrays again.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{2, 2, 5, 6, 3, 0, 4, 4, 6, 0, 2, 5, 5, 1, 4, 0b00101101, 0b0101, 0, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		next := formatstest.Bytes(b)
		m := &cvse.Matrix[float32]{V: next.Int(), Align: next.Int(), Rows: next.Int(), Cols: next.Int()}
		panels := next.Int()
		m.VecPtr = next.Each(panels + 1)
		m.ColInd = next.Each(int(m.VecPtr[panels]))
		slots := len(m.ColInd) * m.V
		m.Mask = next.Words((slots + 31) / 32)
		for i := range slots {
			m.Values = append(m.Values, float32(m.Mask[i/32]>>(i%32)&1))
		}
		m.Order = next.Each(panels)
		if m.Validate() != nil {
			return
		}
		again, err := cvse.Encode(m.Decode(), cvse.Options{V: m.V, Align: m.Align})
		formatstest.Again(t, m, again, err)
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, v := range []int{1, 8} { // scattered entries; whole vectors of 8
		a32, err := gen.CSR(fmt.Sprintf("gen:vector,rows=4096,cols=4096,sparsity=0.9,v=%d", v))
		if err != nil {
			b.Fatal(err)
		}
		a := formats.Convert[half.F16](a32)
		b.Run(fmt.Sprintf("4096x4096/zeros=90/vectors=%d", v), func(b *testing.B) {
			for b.Loop() {
				if _, err := cvse.Encode(a, cvse.Options{V: 8, Align: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
