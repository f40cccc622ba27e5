// Rows and their epilogue at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// element is a type that rows come in.
type element interface {
	half.F16 | half.BF16 | float32 | float64
}

func from[T element](x float32) T {
	var t T
	switch p := any(&t).(type) {
	case *half.F16:
		*p = half.F16From(x)
	case *half.BF16:
		*p = half.BF16From(x)
	case *float32:
		*p = x
	case *float64:
		*p = float64(x)
	}
	return t
}

func to[T element](t T) float64 {
	switch v := any(t).(type) {
	case half.F16:
		return float64(v.Float32())
	case half.BF16:
		return float64(v.Float32())
	case float64:
		return v
	}
	return float64(any(t).(float32))
}

// row calls the function under test for T, whose sums are S.
func row[T element, S float32 | float64](acc []S, vals []T, cols []uint32, b []T, ldb int) {
	if v, ok := any(vals).([]float64); ok {
		RowF64(any(acc).([]float64), v, cols, any(b).([]float64), ldb)
		return
	}
	rowNarrow(any(acc).([]float32), vals, cols, b, ldb)
}

func rowNarrow[T element](acc []float32, vals []T, cols []uint32, b []T, ldb int) {
	switch v := any(vals).(type) {
	case []half.F16:
		RowF16(acc, v, cols, any(b).([]half.F16), ldb)
	case []half.BF16:
		RowBF16(acc, v, cols, any(b).([]half.BF16), ldb)
	case []float32:
		RowF32(acc, v, cols, any(b).([]float32), ldb)
	}
}

// levels runs f for every instruction set that the machine has.
func levels(f func(name string)) {
	defer func(l int) { level = l }(level)
	for level >= 0 {
		f(fmt.Sprintf("level %d", level))
		level--
	}
}

// testRow holds the row function against sums in float64, on operands whose sums are exact: any
// order must give the same bits. Everything that the function must not touch or let in is NaN.
func testRow[T element, S float32 | float64](t *testing.T) {
	nan := from[T](float32(math.NaN()))
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 40).Draw(t, "n/8")
		nnz := rapid.IntRange(0, 40).Draw(t, "nnz")
		rows := rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb := n + rapid.IntRange(0, 9).Draw(t, "padding")
		shift := rapid.IntRange(0, 3).Draw(t, "misalignment")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))

		small := func() T { return from[T](float32(r.IntN(33) - 16)) }
		b := make([]T, shift+rows*ldb)
		for i := range b {
			b[i] = nan
		}
		b = b[shift:]
		vals, cols, want := make([]T, nnz+2), make([]uint32, nnz), make([]float64, n)
		vals[0], vals[nnz+1] = nan, nan
		vals = vals[1 : nnz+1]
		for i := range rows {
			for j := range n {
				b[i*ldb+j] = small()
			}
		}
		for k := range cols {
			vals[k], cols[k] = small(), uint32(r.IntN(rows))
			for j := range want {
				want[j] += to(vals[k]) * to(b[int(cols[k])*ldb+j])
			}
		}
		levels(func(name string) {
			guard := S(math.Inf(-1))
			acc := make([]S, n+2+shift)
			for i := range acc {
				acc[i] = guard
			}
			row(acc[shift+1:shift+1+n], vals, cols, b[:rows*ldb], ldb)
			if acc[shift] != guard || acc[shift+n+1] != guard {
				t.Fatalf("%s: wrote outside its %d columns", name, n)
			}
			for j, x := range acc[shift+1 : shift+1+n] {
				if float64(x) != want[j] {
					t.Fatalf("%s: column %d of %d is %v, want %v", name, j, n, x, want[j])
				}
			}
		})
	})
}

func TestRowF32(t *testing.T)  { testRow[float32, float32](t) }
func TestRowF16(t *testing.T)  { testRow[half.F16, float32](t) }
func TestRowBF16(t *testing.T) { testRow[half.BF16, float32](t) }
func TestRowF64(t *testing.T)  { testRow[float64, float64](t) }

// A NaN in one column of b reaches that column alone, and infinities come through.
func TestRowNonFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	levels(func(name string) {
		for n := Width; n <= 256; n += Width {
			b := make([]float32, 2*n)
			b[n/2], b[n+n-1] = float32(math.NaN()), inf
			acc := make([]float32, n)
			RowF32(acc, []float32{2, 1}, []uint32{0, 1}, b, n)
			for j, x := range acc {
				switch {
				case j == n/2 && x == x, j == n-1 && x != inf, j != n/2 && j != n-1 && x != 0:
					t.Fatalf("%s, %d columns: column %d is %v", name, n, j, x)
				}
			}
		}
	})
}

func TestAxpby(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		shift := rapid.IntRange(0, 3).Draw(t, "misalignment")
		alpha := float32(rapid.IntRange(-3, 3).Draw(t, "alpha"))
		beta := float32(rapid.IntRange(-3, 3).Draw(t, "beta"))
		levels(func(name string) {
			c, x := make([]float32, shift+n+1), make([]float32, shift+n)
			c[shift+n] = 77
			for i := range n {
				x[shift+i], c[shift+i] = float32(i%9-4), float32(i%7)
				if beta == 0 {
					c[shift+i] = float32(math.NaN())
				}
			}
			Axpby(c[shift:], x[shift:], alpha, beta)
			for i := range n {
				want := alpha * float32(i%9-4)
				if beta != 0 {
					want += beta * float32(i%7)
				}
				if c[shift+i] != want {
					t.Fatalf("%s: element %d is %v, want %v", name, i, c[shift+i], want)
				}
			}
			if c[shift+n] != 77 {
				t.Fatalf("%s: wrote past its %d elements", name, n)
			}
		})
	})
}

// The conversion in the Go form agrees with package half on every bit pattern.
func TestWidenAllHalves(t *testing.T) {
	for i := range 1 << 16 {
		if got, want := f16(half.F16(i)), half.F16(i).Float32(); got != want && (got == got || want == want) {
			t.Fatalf("binary16 %#04x is %v, want %v", i, got, want)
		}
	}
}

func ExampleRowF32() {
	b := []float32{ // two rows of eight columns
		1, 2, 3, 4, 5, 6, 7, 8,
		10, 20, 30, 40, 50, 60, 70, 80,
	}
	acc := make([]float32, 8)
	RowF32(acc, []float32{2, 1}, []uint32{0, 1}, b, 8)
	fmt.Println(acc)
	// Output: [12 24 36 48 60 72 84 96]
}
