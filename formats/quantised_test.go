// Quantised matrices: what rounding loses, files, and what is refused.

package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
)

var kinds = []dtype.Type{dtype.S8, dtype.E4M3}

// drawn returns a matrix of some entries, whose values value draws.
func drawn(t *rapid.T, value func(r *rand.Rand) float32) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: rapid.IntRange(0, 5).Draw(t, "rows"), Cols: rapid.IntRange(0, 400).Draw(t, "cols"),
		RowPtr: []int64{0}}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for range a.Rows {
		for j := range a.Cols {
			if r.IntN(4) == 0 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, value(r))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// within draws numbers of a magnitude of at most so much, of many exponents.
func within(most float64) func(r *rand.Rand) float32 {
	return func(r *rand.Rand) float32 { return float32(most * math.Ldexp(2*r.Float64()-1, -r.IntN(12))) }
}

// TestQuantise: each value is within half a step of its group's, and the largest uses the whole range.
func TestQuantise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawn(t, within(1000))
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m, loss, err := formats.Quantise(a, kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		if loss.Values != a.NNZ() || loss.Overflowed+loss.NaNs+loss.Subnormal != 0 {
			t.Fatalf("lost %+v of %d values", loss, a.NNZ())
		}
		exact := true
		for i := range a.Rows {
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				x, scale := float64(a.Val[p]), float64(m.Scale(i, int(a.ColIdx[p])))
				y := scale * float64(formats.Level(kind, m.Q[p]))
				step := scale
				if kind == dtype.E4M3 {
					step = max(math.Abs(y)/8, scale*0x1p-9)
				}
				if math.Abs(x-y) > step/2*(1+1e-6) {
					t.Fatalf("%g became %g with scale %g", x, y, scale)
				}
				exact = exact && x == y
			}
		}
		if exact != loss.Exact() {
			t.Fatalf("exact is %v, but the loss %v", exact, loss)
		}
	})
}

// TestQuantiseExact: what 8 bits and a power of two hold is kept, whatever the power.
func TestQuantiseExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		exp := rapid.IntRange(-60, 60).Draw(t, "exponent")
		most := map[dtype.Type]int{dtype.S8: 127, dtype.E4M3: 16}[kind]
		a := drawn(t, func(r *rand.Rand) float32 { return float32(math.Ldexp(float64(r.IntN(2*most+1)-most), exp)) })
		m, loss, err := formats.Quantise(a, kind)
		if err != nil || !loss.Exact() {
			t.Fatal(loss, err)
		}
		if got := m.Sparse().(*formats.CSR[float32]); !same(got.Val, a.Val) {
			t.Fatalf("%v became %v", a.Val, got.Val)
		}
	})
}

func same(x, y []float32) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return len(x) == len(y)
}

func TestQuantiseRefuses(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 2, Cols: 300, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 290},
		Val: []float32{1, float32(math.NaN())}}
	if _, _, err := formats.Quantise(a, dtype.S8); err == nil ||
		!strings.Contains(err.Error(), "row 1, columns from 256 on: NaN") {
		t.Errorf("NaN: %v", err)
	}
	a.Val[1] = 1e38
	if _, _, err := formats.Quantise(a, dtype.E4M3); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("1e38: %v", err)
	}
	if _, _, err := formats.Quantise(a, dtype.F16); err == nil {
		t.Error("to f16: no error")
	}
	empty := &formats.CSR[float32]{Rows: 1 << 20, Cols: 1 << 16, RowPtr: make([]int64, 1<<20+1)}
	if _, _, err := formats.Quantise(empty, dtype.S8); !errors.Is(err, formats.ErrTooLarge) {
		t.Errorf("2^29 scales for no entries: %v", err)
	}
}

// TestQuantisedFile: a file holds a quantised matrix as it is.
func TestQuantisedFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _, err := formats.Quantise(drawn(t, within(3)), rapid.SampledFrom(kinds).Draw(t, "kind"))
		if err != nil {
			t.Fatal(err)
		}
		q := formatstest.Filed(t, formats.QuantisedFormat, m).(*formats.Quantised)
		if q.Kind != m.Kind || !bytes.Equal(q.Q, m.Q) || !same(q.Scales, m.Scales) ||
			fmt.Sprint(q.RowPtr, q.ColIdx) != fmt.Sprint(m.RowPtr, m.ColIdx) {
			t.Fatalf("%+v became %+v", m, q)
		}
	})
}

// TestNewQuantised: the scales of checkpoints, whatever block they serve.
func TestNewQuantised(t *testing.T) {
	const rows, cols = 130, 260
	q := make([]uint8, rows*cols)
	for i := range q {
		q[i] = uint8(i % 7)
	}
	for _, c := range []struct {
		rows, cols int
		of         func(i, j int) int
	}{
		{1, 1, func(i, j int) int { return 0 }},
		{rows, 1, func(i, j int) int { return i }},
		{rows, 3, func(i, j int) int { return 3*i + j/128 }},
		{2, 3, func(i, j int) int { return 3*(i/128) + j/128 }},
		{1, 3, func(i, j int) int { return j / 128 }},
	} {
		scales := make([]float32, c.rows*c.cols)
		for i := range scales {
			scales[i] = float32(1 + i)
		}
		m, err := formats.NewQuantised(dtype.S8, rows, cols, q, scales, c.rows, c.cols, false)
		if err != nil {
			t.Fatal(err)
		}
		d, values := formats.NewDense[float32](rows, cols), m.Float32().Val
		for i, p := 0, int64(0); i < rows; i++ {
			for ; p < m.RowPtr[i+1]; p++ {
				d.Set(i, int(m.ColIdx[p]), values[p])
			}
		}
		for i := range rows {
			for j := range cols {
				if want := scales[c.of(i, j)] * float32(q[i*cols+j]); d.At(i, j) != want {
					t.Fatalf("%d×%d scales: element %d,%d is %g, want %g", c.rows, c.cols, i, j, d.At(i, j), want)
				}
			}
		}
	}
	if _, err := formats.NewQuantised(dtype.S8, rows, cols, q, make([]float32, 4), 2, 2, false); err == nil {
		t.Error("2×2 scales: no error")
	}
	if m, err := formats.NewQuantised(dtype.E4M3, rows, cols, q, []float32{1}, 1, 1, true); err != nil ||
		m.NNZ() != rows*cols {
		t.Errorf("all: %v", err)
	}
}

func TestQuantisedValidate(t *testing.T) {
	valid := func() *formats.Quantised {
		return &formats.Quantised{
			Rows: 2, Cols: 300, Kind: dtype.S8, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{3, 299, 0}, Q: []uint8{1, 255, 0x7f},
			Scales: []float32{1, 0, 2, -1, 1, 1},
		}
	}
	formatstest.Finds(t, valid, []formatstest.Damage[*formats.Quantised]{
		{"kind", func(m *formats.Quantised) { m.Kind = dtype.F16 }, "values of f16"},
		{"column", func(m *formats.Quantised) { m.ColIdx[1] = 900 }, "outside"},
		{"values", func(m *formats.Quantised) { m.Q = m.Q[1:] }, "2 values for 3"},
		{"scales", func(m *formats.Quantised) { m.Scales = m.Scales[1:] }, "5 scales for 2 rows of 3"},
		{"infinite scale", func(m *formats.Quantised) { m.Scales[4] = float32(math.Inf(1)) }, "row 1, columns from 128 on"},
		{"small scale", func(m *formats.Quantised) { m.Scales[0] = 1e-40 }, "a scale of"},
		{"NaN", func(m *formats.Quantised) { m.Kind, m.Q[2] = dtype.E4M3, 0xff }, "entry 1 is NaN"},
	})
}

// FuzzQuantised: what a file's arrays may be, and pass, is a matrix.
func FuzzQuantised(f *testing.F) {
	f.Add(uint8(2), uint16(300), true, []byte{0, 2, 3}, []byte{3, 200, 0}, []byte{1, 2, 3}, []byte{0, 0, 128, 63})
	f.Fuzz(func(t *testing.T, rows uint8, cols uint16, float bool, ptr, idx, q, scales []byte) {
		m := &formats.Quantised{Rows: int(rows), Cols: int(cols), Kind: dtype.S8, Q: q}
		if float {
			m.Kind = dtype.E4M3
		}
		for _, p := range ptr {
			m.RowPtr = append(m.RowPtr, int64(int8(p)))
		}
		for _, c := range idx {
			m.ColIdx = append(m.ColIdx, int32(int8(c)))
		}
		for i := 0; i+4 <= len(scales); i += 4 {
			m.Scales = append(m.Scales, math.Float32frombits(uint32(scales[i])|uint32(scales[i+1])<<8|uint32(scales[i+2])<<16|uint32(scales[i+3])<<24))
		}
		if m.Validate() != nil {
			return
		}
		a := m.Float32()
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, x := range a.Val {
			if x-x != 0 {
				t.Fatalf("a value is %g", x)
			}
		}
	})
}
