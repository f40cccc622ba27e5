package lanestream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/lanestream"
)

func Example() {
	a := &formats.CSR[float32]{Rows: 64, Cols: 5, RowPtr: make([]int64, 65)}
	for i := range 64 { // row i: 100 + i, 0, 200 + i, in columns 0, 1 and 4
		a.ColIdx, a.Val = append(a.ColIdx, 0, 1, 4), append(a.Val, float32(100+i), 0, float32(200+i))
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	m, err := lanestream.Encode(a, lanestream.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("rows of values", m.StreamPtr[1], "in all, in a segment", m.SegmentRows[0])
	for _, lane := range []int{0, 1, 4} {
		fmt.Printf("lane %d: mask %010b, values", lane, m.Mask[2*lane:][:2])
		for j := range m.StreamPtr[1] {
			fmt.Print(" ", m.Values[64*int(j)+2*lane:][:2])
		}
		fmt.Println()
	}
	fmt.Println("in the COO remainder:", len(m.RemainderCol))
	// Output:
	// rows of values 8 in all, in a segment 3
	// lane 0: mask [1111000011110000111100001111 0000000000], values [100 200] [108 208] [116 216] [124 224] [132 232] [140 240] [148 248] [156 256]
	// lane 1: mask [101000001010000010100000101 0000000000], values [0 0] [0 0] [0 0] [0 0] [0 0] [0 0] [0 0] [0 0]
	// lane 4: mask [1111000011110000111100001111 0000000000], values [101 201] [109 209] [117 217] [125 225] [133 233] [141 241] [149 249] [157 257]
	// in the COO remainder: 0
}

var size = formatstest.Size{Rows: rapid.IntRange(0, 100), Cols: rapid.SampledFrom([]int{0, 1, 7, 63, 64, 65, 200, 700})}

func drawOptions(t *rapid.T) lanestream.Options {
	return lanestream.Options{
		Layout:       rapid.SampledFrom([]int{lanestream.Places, lanestream.Pairs, lanestream.ByDensity}).Draw(t, "layout"),
		Splits:       rapid.SampledFrom([]int{0, 1, 2, 3, 14, 16}).Draw(t, "splits"),
		SegmentSteps: rapid.SampledFrom([]int{0, 0, 1, 2, 4}).Draw(t, "steps"),
		Window:       rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "window"),
	}
}

func TestRoundTrip(t *testing.T) {
	formatstest.RoundTrips(t, size, drawOptions, lanestream.Encode[half.F16], lanestream.Encode[half.BF16],
		lanestream.Encode[float32])
}

// scattered makes a matrix whose entries are scattered, none of them zero.
func scattered(rows, cols int, density float64) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: rows, Cols: cols, RowPtr: make([]int64, 1, rows+1)}
	rng := rand.New(rand.NewPCG(1, 2))
	limit := uint32(density * math.MaxUint32)
	for range rows {
		for j := range cols {
			if rng.Uint32() <= limit {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, half.F16(rng.Uint32()&0x3bff|1))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// TestPadding bounds the fillers and the COO remainder of scattered matrices, which the layout is to keep few.
func TestPadding(t *testing.T) {
	for _, q := range []struct {
		layout                      int
		density, padding, remainder float64
	}{
		{lanestream.Places, 0.5, 0.04, 0.015}, {lanestream.Places, 0.4, 0.05, 0.012}, {lanestream.Places, 0.3, 0.07, 0.012},
		{lanestream.Places, 0.2, 0.10, 0.015},
		{lanestream.Places, 0.1, 0.15, 0.02}, {lanestream.Places, 1, 0.001, 0},
		{lanestream.Pairs, 0.25, 0.2, 0.2}, {lanestream.Pairs, 0.2, 0.2, 0.2}, {lanestream.Pairs, 0.1, 0.2, 0.2},
		{lanestream.Pairs, 0.05, 0.5, 0.2},
	} {
		a := scattered(128, 8192, q.density)
		m, err := lanestream.Encode(a, lanestream.Options{Layout: q.layout, Splits: 2})
		if err != nil {
			t.Fatal(err)
		}
		n := float64(a.NNZ())
		padding, remainder := float64(m.Slots())/n-1, float64(len(m.RemainderCol))/n
		t.Logf("density %.1f: segments of %d steps, window %d, %v rows: padding %.2f %%, remainder %.2f %%", q.density, m.SegmentSteps, m.Window, m.SegmentRows[:2], 100*padding, 100*remainder)
		if padding > q.padding || remainder > q.remainder {
			t.Errorf("density %.1f: %.2f %% of padding and %.2f %% in the COO remainder, want at most %.2f and %.2f", q.density, 100*padding, 100*remainder, 100*q.padding, 100*q.remainder)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	a := scattered(2048, 8192, 0.5)
	b.SetBytes(int64(len(a.Val)))
	for b.Loop() {
		if _, err := lanestream.Encode(a, lanestream.Options{Splits: 2}); err != nil {
			b.Fatal(err)
		}
	}
}

// M is the matrix that TestValidate and TestValidatePairs damage.
type M = lanestream.Matrix[half.F16]

// TestValidate: each array is held against the others, and the error says what is wrong.
func TestValidate(t *testing.T) {
	a := scattered(70, 300, 0.4)
	for i := range a.Val[:40] {
		a.Val[i] = 0
	}
	valid := func() *M {
		m, err := lanestream.Encode(a, lanestream.Options{Splits: 2, SegmentSteps: 4, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"splits", func(m *M) { m.Splits = 33 }, "33 splits"},
		{"steps", func(m *M) { m.SegmentSteps = 3 }, "segments of 3 steps"},
		{"window", func(m *M) { m.Window = 1 }, "window of 1"},
		{"rows", func(m *M) { m.Rows = -1 }, "a matrix of -1"},
		{"too many columns", func(m *M) { m.Cols = formats.MaxDim; m.Rows = formats.MaxDim }, "too large"},
		{"more rows", func(m *M) { m.Rows = 200 }, "stream pointers"},
		{"fewer columns", func(m *M) { m.Cols = 299 }, "in column 299"},
		{"pointers", func(m *M) { m.StreamPtr[1] = m.StreamPtr[2] + 1 }, "before its start"},
		{"first pointer", func(m *M) { m.StreamPtr[0] = 1 }, "starts at row 1"},
		{"rows of segments", func(m *M) { m.SegmentRows[1] = 99 }, "99 rows a segment"},
		{"no rows of segments", func(m *M) { m.SegmentRows = nil }, "0 numbers of rows a segment"},
		{"mask", func(m *M) { m.Mask = m.Mask[1:] }, "mask words"},
		{"a bit less", func(m *M) { m.Mask[0] &= m.Mask[0] - 1 }, "lanestream: "},
		{"bits all set", func(m *M) {
			for i := range m.Mask {
				m.Mask[i] = ^uint32(0)
			}
		}, "takes"},
		{"values", func(m *M) { m.Values = m.Values[1:] }, "values"},
		{"stored", func(m *M) { m.Stored = m.Stored[1:] }, "words say"},
		{"stored without value", func(m *M) { m.Stored[len(m.Stored)-1] = ^uint32(0) }, "has an entry in row"},
		{"value not stored", func(m *M) { clear(m.Stored) }, "no entry"},
	})
	formatstest.Finds(t, func() *M { return withRest(t) }, []formatstest.Damage[*M]{ // the other may have no COO remainder
		{"remainder in order", func(m *M) { m.RemainderCol[1] = m.RemainderCol[0] }, "the COO remainder of row"},
		{"remainder inside", func(m *M) { m.RemainderCol[len(m.RemainderCol)-1] = 300 }, "below 300"},
	})
}

// TestValidatePairs: the same for what layout Pairs has that Places has not.
func TestValidatePairs(t *testing.T) {
	a := scattered(70, 300, 0.15)
	valid := func() *M {
		m, err := lanestream.Encode(a, lanestream.Options{Layout: lanestream.Pairs, Splits: 2, SegmentSteps: 2, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*M]{
		{"layout", func(m *M) { m.Layout = lanestream.Places }, "mask words"},
		{"no layout", func(m *M) { m.Layout = 2 }, "layout 2"},
		{"mask", func(m *M) { m.Mask = m.Mask[1:] }, "mask words"},
		{"no bits", func(m *M) { clear(m.Mask) }, "words of chain 0 by the end of segment 0"},
		{"no columns", func(m *M) {
			for i := range m.Mask {
				if i%96 < 64 {
					m.Mask[i] = 0
				}
			}
		}, "ascending"},
		{"bits all set", func(m *M) {
			for i := range m.Mask {
				m.Mask[i] = ^uint32(0)
			}
		}, "ascending"},
		{"upper halves twice", func(m *M) { m.Mask[64] |= 0xff00ff00 }, "upper half"},
		{"upper halves never", func(m *M) {
			for i := range m.Mask {
				if i%96 >= 64 {
					m.Mask[i] &= 0x00ff00ff
				}
			}
		}, "belongs to no column"},
		{"fewer columns", func(m *M) { m.Cols = 290 }, "column 29"},
		{"stored", func(m *M) { clear(m.Stored) }, "no entry"},
	})
}

// withRest returns a matrix of 300 columns that has entries in the COO remainder: few in all, many in the last columns.
func withRest(t *testing.T) *lanestream.Matrix[half.F16] {
	a := scattered(64, 300, 0.05)
	for i := range a.Rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		for k := lo; k < hi; k++ {
			a.ColIdx[k] = int32(300 - (hi - k))
		}
	}
	m, err := lanestream.Encode(a, lanestream.Options{SegmentSteps: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Rows {
		if cols, _ := m.Remainder(i); len(cols) > 1 {
			return m
		}
	}
	t.Fatal("nothing in the COO remainder")
	return nil
}

func TestEncodeRefuses(t *testing.T) {
	a := scattered(3, 5, 0.5)
	for _, o := range []lanestream.Options{{Layout: 3}, {Layout: -1}, {RingRows: 17}, {RingRows: -1}, {Splits: -1},
		{Splits: 33}, {SegmentSteps: 3}, {Window: 4}} {
		if _, err := lanestream.Encode(a, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	wide := &formats.CSR[half.F16]{Rows: 1 << 20, Cols: formats.MaxDim, RowPtr: make([]int64, 1<<20+1)}
	if _, err := lanestream.Encode(wide, lanestream.Options{}); !errors.Is(err, lanestream.ErrTooLarge) {
		t.Errorf("a mask of 2^51 bits: %v", err)
	}
	empty := &formats.CSR[half.F16]{Rows: 1 << 17, Cols: 1 << 17, RowPtr: make([]int64, 1<<17+1)}
	if _, err := lanestream.Encode(empty, lanestream.Options{}); !errors.Is(err, lanestream.ErrTooLarge) {
		t.Errorf("a mask of 2^34 bits for no entries: %v", err)
	}
	a.ColIdx[0] = 7
	if _, err := lanestream.Encode(a, lanestream.Options{}); err == nil {
		t.Error("a column that is not there: no error")
	}
}

// The same matrix gives the same arrays on any number of cores.
func TestDeterministic(t *testing.T) {
	a := scattered(500, 700, 0.3)
	want, err := lanestream.Encode(a, lanestream.Options{Splits: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	got, err := lanestream.Encode(a, lanestream.Options{Splits: 3})
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// FuzzValidate: what passes can be decoded, and what is decoded is valid.
func FuzzValidate(f *testing.F) {
	a := scattered(3, 40, 0.3)
	m, err := lanestream.Encode(a, lanestream.Options{})
	if err != nil {
		f.Fatal(err)
	}
	pairs, err := lanestream.Encode(scattered(66, 100, 0.2), lanestream.Options{Layout: lanestream.Pairs, SegmentSteps: 1,
		Window: 2})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []*lanestream.Matrix[half.F16]{m, pairs} {
		f.Add(uint8(m.Rows), uint16(m.Cols), uint8(m.Layout), uint8(1), uint8(m.SegmentSteps), uint8(m.Window),
			bytesOf(m.StreamPtr), bytesOf(m.SegmentRows), bytesOf(m.Mask), bytesOf(m.Values), bytesOf(m.Stored),
			bytesOf(m.RemainderPtr), bytesOf(m.RemainderCol))
	}
	f.Fuzz(func(t *testing.T, rows uint8, cols uint16, layout, splits, steps, window uint8, ptr, segmentRows, mask, values,
		stored, remainderPtr, remainderCol []byte) {
		m := &lanestream.Matrix[half.F16]{
			Rows: int(rows), Cols: int(cols), Layout: int(layout), Splits: int(splits), SegmentSteps: int(steps),
			Window:    int(window),
			StreamPtr: numbers[uint32](ptr), SegmentRows: numbers[uint32](segmentRows), Mask: numbers[uint32](mask),
			Values: numbers[half.F16](values),
			Stored: numbers[uint32](stored), RemainderPtr: numbers[uint32](remainderPtr),
			RemainderCol: numbers[uint32](remainderCol),
		}
		if m.Validate() != nil {
			return
		}
		a := m.Decode()
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		if a.NNZ() != m.NNZ() {
			t.Fatalf("%d entries, of which %d are decoded", m.NNZ(), a.NNZ())
		}
	})
}

// bytesOf returns the bytes of numbers, numbers those of bytes.
func bytesOf[E uint32 | half.F16](x []E) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, x)
	return b.Bytes()
}

func numbers[E uint32 | half.F16](b []byte) []E {
	var e E
	x := make([]E, len(b)/binary.Size(e))
	binary.Decode(b, binary.LittleEndian, x)
	return x
}
