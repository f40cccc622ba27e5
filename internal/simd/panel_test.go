// Panels and widening at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats/half"
)

// panelOf calls the function under test for T.
func panelOf[T element, S float32 | float64](acc []S, lda int, vals []S, v int, cols []uint32, b []T, ldb, n int) {
	if b, ok := any(b).([]float64); ok {
		PanelF64(any(acc).([]float64), lda, any(vals).([]float64), v, cols, b, ldb, n)
		return
	}
	panelNarrow(any(acc).([]float32), lda, any(vals).([]float32), v, cols, b, ldb, n)
}

func panelNarrow[T element](acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int) {
	switch b := any(b).(type) {
	case []half.F16:
		PanelF16(acc, lda, vals, v, cols, b, ldb, n)
	case []half.BF16:
		PanelBF16(acc, lda, vals, v, cols, b, ldb, n)
	case []float32:
		PanelF32(acc, lda, vals, v, cols, b, ldb, n)
	}
}

// testPanel holds the panel function against sums in float64, on operands whose sums are exact.
// Everything that the function must not touch or let in is NaN.
func testPanel[T element, S float32 | float64](t *testing.T) {
	nanS := S(math.NaN())
	nan := from[T](float32(math.NaN()))
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 14).Draw(t, "n/8")
		nnz := rapid.IntRange(0, 20).Draw(t, "nnz")
		v := rapid.SampledFrom([]int{8, 16, 9}).Draw(t, "v")
		rows := rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb := n + rapid.IntRange(0, 9).Draw(t, "padding of b")
		lda := n + rapid.IntRange(0, 9).Draw(t, "padding of acc")
		shift := rapid.IntRange(0, 3).Draw(t, "misalignment")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		small := func() S { return S(r.IntN(33) - 16) }

		b := make([]T, shift+rows*ldb)
		for i := range b {
			b[i] = nan
		}
		b = b[shift:]
		for i := range rows {
			for j := range n {
				b[i*ldb+j] = from[T](float32(small()))
			}
		}
		cols, vals := make([]uint32, nnz), make([]S, max(0, (nnz-1)*v+PanelRows))
		for i := range vals {
			vals[i] = nanS
		}
		start := make([]S, PanelRows*lda)
		for i := range start {
			start[i] = small()
		}
		want := make([]float64, len(start))
		for i, x := range start {
			want[i] = float64(x)
		}
		for k := range cols {
			cols[k] = uint32(r.IntN(rows))
			for i := range PanelRows {
				vals[k*v+i] = small()
				for j := range n {
					want[i*lda+j] += float64(vals[k*v+i]) * to(b[int(cols[k])*ldb+j])
				}
			}
		}
		levels(func(name string) {
			acc := append([]S{nanS}, start...)
			panelOf(acc[1:], lda, vals, v, cols, b, ldb, n)
			for i, x := range acc[1:] {
				if float64(x) != want[i] {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i/lda, i%lda, n, x, want[i])
				}
			}
		})
	})
}

func TestPanelF32(t *testing.T)  { testPanel[float32, float32](t) }
func TestPanelF16(t *testing.T)  { testPanel[half.F16, float32](t) }
func TestPanelBF16(t *testing.T) { testPanel[half.BF16, float32](t) }
func TestPanelF64(t *testing.T)  { testPanel[float64, float64](t) }

// TestWiden converts every 16-bit number there is.
func TestWiden(t *testing.T) {
	f16s, bf16s := make([]half.F16, 1<<16+5), make([]half.BF16, 1<<16+5)
	for i := range f16s {
		f16s[i], bf16s[i] = half.F16(i), half.BF16(i)
	}
	same := func(a, b float32) bool {
		return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b)) || a != a && b != b
	}
	levels(func(name string) {
		got := make([]float32, len(f16s))
		WidenF16(got, f16s)
		for i, x := range got {
			if !same(x, f16s[i].Float32()) {
				t.Fatalf("%s: binary16 %04x is %v, want %v", name, uint16(f16s[i]), x, f16s[i].Float32())
			}
		}
		WidenBF16(got, bf16s)
		for i, x := range got {
			if !same(x, bf16s[i].Float32()) {
				t.Fatalf("%s: bfloat16 %04x is %v, want %v", name, uint16(bf16s[i]), x, bf16s[i].Float32())
			}
		}
	})
}

func TestPanelRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a panel wider than its sums did not panic")
		}
	}()
	PanelF32(make([]float32, 64), 8, make([]float32, 8), 8, make([]uint32, 1), make([]float32, 16), 16, 16)
}

func BenchmarkPanelF16(b *testing.B) {
	const nnz, v = 256, 8
	for _, rows := range []int{64, 4096, 1 << 17} {
		for _, n := range []int{8, 32, 128, 512} {
			if rows*n > 1<<25 {
				continue
			}
			b.Run(fmt.Sprintf("rows=%d/n=%d", rows, n), func(b *testing.B) {
				x, acc, vals := make([]half.F16, rows*n), make([]float32, v*n), make([]float32, nnz*v)
				cols := make([]uint32, 1<<16)
				for i := range cols {
					cols[i] = uint32(rand.IntN(rows))
				}
				b.SetBytes(int64(nnz * n * 2))
				i := 0
				for b.Loop() {
					PanelF16(acc, n, vals, v, cols[i:i+nnz], x, n, n)
					i = (i + nnz) % len(cols)
				}
				b.ReportMetric(2*nnz*v*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// TestFinite puts each special number at each place.
func TestFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	levels(func(name string) {
		for n := range 20 {
			x := make([]float32, n)
			for i := range x {
				x[i] = -math.MaxFloat32
			}
			if !Finite(x) {
				t.Fatalf("%s: %d finite numbers are not", name, n)
			}
			for i := range x {
				for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
					x[i] = bad
					if Finite(x) {
						t.Fatalf("%s: %v at %d of %d is finite", name, bad, i, n)
					}
				}
				x[i] = 0
			}
		}
	})
}
