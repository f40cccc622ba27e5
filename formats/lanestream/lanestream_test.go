package lanestream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
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
	fmt.Println("rows of values", m.StreamPtr[1], "of which a piece has", m.PieceRows[0])
	for _, lane := range []int{0, 1, 4} {
		fmt.Printf("lane %d: mask %010b, values", lane, m.Mask[2*lane:][:2])
		for j := range m.StreamPtr[1] {
			fmt.Print(" ", m.Values[64*int(j)+2*lane:][:2])
		}
		fmt.Println()
	}
	fmt.Println("in the rest:", len(m.RestCol))
	// Output:
	// rows of values 8 of which a piece has 3
	// lane 0: mask [1111000011110000111100001111 0000000000], values [100 200] [108 208] [116 216] [124 224] [132 232] [140 240] [148 248] [156 256]
	// lane 1: mask [101000001010000010100000101 0000000000], values [0 0] [0 0] [0 0] [0 0] [0 0] [0 0] [0 0] [0 0]
	// lane 4: mask [1111000011110000111100001111 0000000000], values [101 201] [109 209] [117 217] [125 225] [133 233] [141 241] [149 249] [157 257]
	// in the rest: 0
}

// draw makes any matrix: empty rows, full rows, stored zeros, no rows or columns at all.
func draw[T formats.Value](t *rapid.T, from func(float32) T) *formats.CSR[T] {
	a := &formats.CSR[T]{
		Rows:   rapid.IntRange(0, 100).Draw(t, "rows"),
		Cols:   rapid.SampledFrom([]int{0, 1, 7, 63, 64, 65, 200, 700}).Draw(t, "cols"),
		RowPtr: []int64{0}, ColIdx: []int32{}, Val: []T{},
	}
	density := rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.3, 0.5, 0.9, 1}).Draw(t, "density")
	odd := rapid.SampledFrom([]int{3, 30, 1000}).Draw(t, "one odd row in")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -2, 0.5, float32(math.Inf(1)), float32(math.NaN())}
	for range a.Rows {
		rowDensity := density
		switch rng.IntN(odd) {
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

func drawOptions(t *rapid.T) lanestream.Options {
	return lanestream.Options{
		Layout:     rapid.SampledFrom([]int{lanestream.Places, lanestream.Pairs, lanestream.ByDensity}).Draw(t, "layout"),
		Parts:      rapid.SampledFrom([]int{0, 1, 2, 3, 14, 16}).Draw(t, "parts"),
		PieceSteps: rapid.SampledFrom([]int{0, 0, 1, 2, 4}).Draw(t, "steps"),
		Window:     rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "window"),
	}
}

// bits shows a's values by their bits, so that -0 differs from 0 and a NaN is itself.
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
		m, err := lanestream.Encode(a, drawOptions(t))
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

// TestPadding holds the fillers and the rest of scattered matrices to what the layout is for.
func TestPadding(t *testing.T) {
	for _, q := range []struct {
		layout                 int
		density, padding, rest float64
	}{
		{lanestream.Places, 0.5, 0.04, 0.015}, {lanestream.Places, 0.4, 0.05, 0.012}, {lanestream.Places, 0.3, 0.07, 0.012}, {lanestream.Places, 0.2, 0.10, 0.015},
		{lanestream.Places, 0.1, 0.15, 0.02}, {lanestream.Places, 1, 0.001, 0},
		{lanestream.Pairs, 0.25, 0.2, 0.2}, {lanestream.Pairs, 0.2, 0.2, 0.2}, {lanestream.Pairs, 0.1, 0.2, 0.2}, {lanestream.Pairs, 0.05, 0.5, 0.2},
	} {
		a := scattered(128, 8192, q.density)
		m, err := lanestream.Encode(a, lanestream.Options{Layout: q.layout, Parts: 2})
		if err != nil {
			t.Fatal(err)
		}
		n := float64(a.NNZ())
		padding, rest := float64(m.Slots())/n-1, float64(len(m.RestCol))/n
		t.Logf("density %.1f: pieces of %d steps, window %d, %v rows: padding %.2f %%, rest %.2f %%", q.density, m.PieceSteps, m.Window, m.PieceRows[:2], 100*padding, 100*rest)
		if padding > q.padding || rest > q.rest {
			t.Errorf("density %.1f: %.2f %% of padding and %.2f %% in the rest, want at most %.2f and %.2f", q.density, 100*padding, 100*rest, 100*q.padding, 100*q.rest)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	a := scattered(2048, 8192, 0.5)
	b.SetBytes(int64(len(a.Val)))
	for b.Loop() {
		if _, err := lanestream.Encode(a, lanestream.Options{Parts: 2}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestValidate: each array is held against the others, and the error says what is wrong.
func TestValidate(t *testing.T) {
	a := scattered(70, 300, 0.4)
	for i := range a.Val[:40] {
		a.Val[i] = 0
	}
	for _, q := range []struct {
		name   string
		change func(m *lanestream.Matrix[half.F16])
		want   string
	}{
		{"parts", func(m *lanestream.Matrix[half.F16]) { m.Parts = 33 }, "33 parts"},
		{"steps", func(m *lanestream.Matrix[half.F16]) { m.PieceSteps = 3 }, "pieces of 3 steps"},
		{"window", func(m *lanestream.Matrix[half.F16]) { m.Window = 1 }, "window of 1"},
		{"rows", func(m *lanestream.Matrix[half.F16]) { m.Rows = -1 }, "a matrix of -1"},
		{"too many columns", func(m *lanestream.Matrix[half.F16]) { m.Cols = formats.MaxDim; m.Rows = formats.MaxDim }, "too large"},
		{"more rows", func(m *lanestream.Matrix[half.F16]) { m.Rows = 200 }, "stream pointers"},
		{"fewer columns", func(m *lanestream.Matrix[half.F16]) { m.Cols = 299 }, "in column 299"},
		{"pointers", func(m *lanestream.Matrix[half.F16]) { m.StreamPtr[1] = m.StreamPtr[2] + 1 }, "before its start"},
		{"first pointer", func(m *lanestream.Matrix[half.F16]) { m.StreamPtr[0] = 1 }, "starts at 1"},
		{"rows of pieces", func(m *lanestream.Matrix[half.F16]) { m.PieceRows[1] = 99 }, "99 rows a piece"},
		{"no rows of pieces", func(m *lanestream.Matrix[half.F16]) { m.PieceRows = nil }, "0 numbers of rows a piece"},
		{"mask", func(m *lanestream.Matrix[half.F16]) { m.Mask = m.Mask[1:] }, "mask words"},
		{"a bit less", func(m *lanestream.Matrix[half.F16]) { m.Mask[0] &= m.Mask[0] - 1 }, "lanestream: "},
		{"bits all set", func(m *lanestream.Matrix[half.F16]) {
			for i := range m.Mask {
				m.Mask[i] = ^uint32(0)
			}
		}, "takes"},
		{"values", func(m *lanestream.Matrix[half.F16]) { m.Values = m.Values[1:] }, "values"},
		{"stored", func(m *lanestream.Matrix[half.F16]) { m.Stored = m.Stored[1:] }, "words say"},
		{"stored without value", func(m *lanestream.Matrix[half.F16]) { m.Stored[len(m.Stored)-1] = ^uint32(0) }, "has an entry in row"},
		{"value not stored", func(m *lanestream.Matrix[half.F16]) { clear(m.Stored) }, "no entry"},
		{"rest in order", func(m *lanestream.Matrix[half.F16]) { m.RestCol[1] = m.RestCol[0] }, "the rest of row"},
		{"rest inside", func(m *lanestream.Matrix[half.F16]) { m.RestCol[len(m.RestCol)-1] = 300 }, "below 300"},
	} {
		m, err := lanestream.Encode(a, lanestream.Options{Parts: 2, PieceSteps: 4, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(q.name, "rest") { // which this matrix may not have: a row of it
			m = withRest(t)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		q.change(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %v, want an error with %q", q.name, err, q.want)
		}
	}
}

// TestValidatePairs: the same for what layout Pairs has that Places has not.
func TestValidatePairs(t *testing.T) {
	a := scattered(70, 300, 0.15)
	for _, q := range []struct {
		name   string
		change func(m *lanestream.Matrix[half.F16])
		want   string
	}{
		{"layout", func(m *lanestream.Matrix[half.F16]) { m.Layout = lanestream.Places }, "mask words"},
		{"no layout", func(m *lanestream.Matrix[half.F16]) { m.Layout = 2 }, "layout 2"},
		{"mask", func(m *lanestream.Matrix[half.F16]) { m.Mask = m.Mask[1:] }, "mask words"},
		{"no bits", func(m *lanestream.Matrix[half.F16]) { clear(m.Mask) }, "words of chain 0 by the end of piece 0"},
		{"no columns", func(m *lanestream.Matrix[half.F16]) {
			for i := range m.Mask {
				if i%96 < 64 {
					m.Mask[i] = 0
				}
			}
		}, "ascending"},
		{"bits all set", func(m *lanestream.Matrix[half.F16]) {
			for i := range m.Mask {
				m.Mask[i] = ^uint32(0)
			}
		}, "ascending"},
		{"upper halves twice", func(m *lanestream.Matrix[half.F16]) { m.Mask[64] |= 0xff00ff00 }, "upper half"},
		{"upper halves never", func(m *lanestream.Matrix[half.F16]) {
			for i := range m.Mask {
				if i%96 >= 64 {
					m.Mask[i] &= 0x00ff00ff
				}
			}
		}, "belongs to no column"},
		{"fewer columns", func(m *lanestream.Matrix[half.F16]) { m.Cols = 290 }, "column 29"},
		{"stored", func(m *lanestream.Matrix[half.F16]) { clear(m.Stored) }, "no entry"},
	} {
		m, err := lanestream.Encode(a, lanestream.Options{Layout: lanestream.Pairs, Parts: 2, PieceSteps: 2, Window: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		q.change(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), q.want) {
			t.Errorf("%s: %v, want an error with %q", q.name, err, q.want)
		}
	}
}

// withRest returns a matrix of 300 columns that has entries in the rest: few in all, many in the last columns.
func withRest(t *testing.T) *lanestream.Matrix[half.F16] {
	a := scattered(64, 300, 0.05)
	for i := range a.Rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		for k := lo; k < hi; k++ {
			a.ColIdx[k] = int32(300 - (hi - k))
		}
	}
	m, err := lanestream.Encode(a, lanestream.Options{PieceSteps: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Rows {
		if cols, _ := m.Rest(i); len(cols) > 1 {
			return m
		}
	}
	t.Fatal("nothing in the rest")
	return nil
}

func TestEncodeRefuses(t *testing.T) {
	a := scattered(3, 5, 0.5)
	for _, o := range []lanestream.Options{{Layout: 3}, {Layout: -1}, {RingRows: 17}, {RingRows: -1}, {Parts: -1}, {Parts: 33}, {PieceSteps: 3}, {Window: 4}} {
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
	want, err := lanestream.Encode(a, lanestream.Options{Parts: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	got, err := lanestream.Encode(a, lanestream.Options{Parts: 3})
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
	pairs, err := lanestream.Encode(scattered(66, 100, 0.2), lanestream.Options{Layout: lanestream.Pairs, PieceSteps: 1, Window: 2})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []*lanestream.Matrix[half.F16]{m, pairs} {
		f.Add(uint8(m.Rows), uint16(m.Cols), uint8(m.Layout), uint8(1), uint8(m.PieceSteps), uint8(m.Window), bytesOf(m.StreamPtr), bytesOf(m.PieceRows), bytesOf(m.Mask), bytesOf(m.Values), bytesOf(m.Stored), bytesOf(m.RestPtr), bytesOf(m.RestCol))
	}
	f.Fuzz(func(t *testing.T, rows uint8, cols uint16, layout, parts, steps, window uint8, ptr, pieceRows, mask, values, stored, restPtr, restCol []byte) {
		m := &lanestream.Matrix[half.F16]{
			Rows: int(rows), Cols: int(cols), Layout: int(layout), Parts: int(parts), PieceSteps: int(steps), Window: int(window),
			StreamPtr: numbers[uint32](ptr), PieceRows: numbers[uint32](pieceRows), Mask: numbers[uint32](mask), Values: numbers[half.F16](values),
			Stored: numbers[uint32](stored), RestPtr: numbers[uint32](restPtr), RestCol: numbers[uint32](restCol),
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
