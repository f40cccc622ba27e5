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
func panelOf[T element](acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int) {
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
func testPanel[T element](t *testing.T) {
	nan32 := float32(math.NaN())
	nan := from[T](nan32)
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 14).Draw(t, "n/8")
		nnz := rapid.IntRange(0, 20).Draw(t, "nnz")
		v := rapid.SampledFrom([]int{8, 16, 9}).Draw(t, "v")
		rows := rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb := n + rapid.IntRange(0, 9).Draw(t, "padding of b")
		lda := n + rapid.IntRange(0, 9).Draw(t, "padding of acc")
		shift := rapid.IntRange(0, 3).Draw(t, "misalignment")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		small := func() float32 { return float32(r.IntN(33) - 16) }

		b := make([]T, shift+rows*ldb)
		for i := range b {
			b[i] = nan
		}
		b = b[shift:]
		for i := range rows {
			for j := range n {
				b[i*ldb+j] = from[T](small())
			}
		}
		cols, vals := make([]uint32, nnz), make([]float32, max(0, (nnz-1)*v+PanelRows))
		for i := range vals {
			vals[i] = nan32
		}
		start := make([]float32, PanelRows*lda)
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
			acc := append([]float32{nan32}, start...)
			panelOf(acc[1:], lda, vals, v, cols, b, ldb, n)
			for i, x := range acc[1:] {
				if float64(x) != want[i] {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i/lda, i%lda, n, x, want[i])
				}
			}
		})
	})
}

func TestPanelF32(t *testing.T)  { testPanel[float32](t) }
func TestPanelF16(t *testing.T)  { testPanel[half.F16](t) }
func TestPanelBF16(t *testing.T) { testPanel[half.BF16](t) }

// Panels of integers, whose sums are exact up to 2⁵³.
func TestPanelInt32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 14).Draw(t, "n/8")
		nnz := rapid.IntRange(0, 64).Draw(t, "nnz")
		rows := rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb, lda := n+rapid.IntRange(0, 9).Draw(t, "padding of b"), n+rapid.IntRange(0, 9).Draw(t, "padding of acc")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		integer := func(most int64) int64 { return r.Int64N(2*most+1) - most }
		b := make([]int32, rows*ldb)
		for i := range b {
			b[i] = int32(integer(math.MaxInt32))
		}
		cols, vals := make([]uint32, nnz), new([PanelRows * PanelEntries]float64)
		for i := range vals {
			vals[i] = math.NaN()
		}
		start := make([]int64, PanelRows*lda)
		for i := range start {
			start[i] = integer(1 << 50)
		}
		want := append([]int64(nil), start...)
		for k := range cols {
			cols[k] = uint32(r.IntN(rows))
			for i := range PanelRows {
				x := integer(1 << 15)
				vals[i*PanelEntries+k] = float64(x)
				for j := range n {
					want[i*lda+j] += x * int64(b[int(cols[k])*ldb+j])
				}
			}
		}
		levels(func(name string) {
			acc := make([]float64, len(start))
			for i, x := range start {
				acc[i] = float64(x)
			}
			PanelInt32(acc, lda, vals, cols, b, ldb, n)
			for i, x := range acc {
				if x != float64(want[i]) {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i/lda, i%lda, n, x, want[i])
				}
			}
		})
	})
}

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
