package rfx_test

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/rfx"
	"pgregory.net/rapid"
)

// Sums of slices of the columns, added in any order, in 64 bits too where they fit, are rounded to what Dot defines.
func TestSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		m, k, slices := rapid.IntRange(0, 5).Draw(t, "m"), rapid.IntRange(1, 9).Draw(t, "k"), rapid.IntRange(1, 3).Draw(t, "slices")
		p := rapid.SampledFrom(rfx.All[:]).Draw(t, "p")
		element := rapid.OneOf(rapid.Float32Range(-2, 2), rapid.Float32(), rapid.SampledFrom([]float32{0, 1, math.MaxFloat32, 1e-45,
			float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}))
		whole := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
		parts := make([]*formats.CSR[float32], slices)
		for s := range parts {
			parts[s] = &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
		}
		for range m {
			for j := range k {
				if !rapid.Bool().Draw(t, "entry") {
					continue
				}
				v := element.Draw(t, "a")
				for _, a := range []*formats.CSR[float32]{whole, parts[rapid.IntRange(0, slices-1).Draw(t, "slice")]} {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, v)
				}
			}
			for _, a := range append(parts, whole) {
				a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
			}
		}
		b := gen.Dense(k, n, 1, gen.Values{})
		for i := range b.Data {
			b.Data[i] = element.Draw(t, "b")
		}
		rows, cols := rfx.Rows(whole), rfx.Cols(b)
		total := make([]rfx.Sum, m*n)
		var fixed rfx.Fixed // of one use after the other
		for s := slices - 1; s >= 0; s-- {
			sums := make([]rfx.Sum, m*n)
			rfx.NewSlice(parts[s], rows, p).Multiply(sums, b, cols, &fixed)
			for i, x := range sums {
				if p.Narrow(int64(k)) {
					x = rfx.Unpack64(x.Pack64())
				}
				total[i] = x.Add(total[i])
			}
		}
		rfx.RoundSums(rows, cols, p, func(i, j int) rfx.Sum { return total[i*n+j] }, func(i, j int, y float32) {
			var x, z []float32
			for e := whole.RowPtr[i]; e < whole.RowPtr[i+1]; e++ {
				x, z = append(x, whole.Val[e]), append(z, b.At(int(whole.ColIdx[e]), j))
			}
			if want := rfx.Dot(p, rows[i], cols[j], x, z); math.Float32bits(y) != math.Float32bits(want) {
				t.Fatalf("p = %d, output (%d, %d) is %g, want %g", p, i, j, y, want)
			}
		})
	})
}

// 64 bits are taken as long as no sum of so many of the largest products reaches 2⁶².
func TestNarrow(t *testing.T) {
	for _, p := range rfx.All {
		square := float64(p.Max()) * float64(p.Max())
		for _, entries := range []int64{0, 1, 1 << 10, 1 << 16, 66115, 66116, 1 << 31} {
			want := p <= rfx.P23 && float64(entries)*square < 1<<62
			if got := p.Narrow(entries); got != want {
				t.Errorf("p = %d, %d entries: %t, want %t", p, entries, got, want)
			}
		}
	}
	// The largest sums, and every class, survive.
	last := int64(1)<<62 - 1
	for _, x := range []int64{0, 1, -1, last, -last} {
		s := rfx.Sum(rfx.Int(x))
		if got := rfx.Unpack64(s.Pack64()); got != s {
			t.Errorf("%d comes back as %v", x, got)
		}
	}
}

// Rows longer than accumulators of 64 bits hold, with the largest integers.
func TestLongSlices(t *testing.T) {
	const k = 70_001
	a := &formats.CSR[float32]{Rows: 1, Cols: k, RowPtr: []int64{0, k}}
	b := gen.Dense(k, 2, 1, gen.Values{})
	for j := range k {
		a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1.99)
		b.Set(j, 0, -1.99)
	}
	rows, cols := rfx.Rows(a), rfx.Cols(b)
	for _, p := range rfx.All {
		sums := make([]rfx.Sum, 2)
		rfx.NewSlice(a, rows, p).Multiply(sums, b, cols, new(rfx.Fixed))
		rfx.RoundSums(rows, cols, p, func(_, j int) rfx.Sum { return sums[j] }, func(_, j int, y float32) {
			col := make([]float32, k)
			for i := range col {
				col[i] = b.At(i, j)
			}
			if want := rfx.Dot(p, rows[0], cols[j], a.Val, col); y != want {
				t.Errorf("p = %d: %g, want %g", p, y, want)
			}
		})
	}
}
