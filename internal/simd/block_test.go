// Blocks, and what brings operands to them, at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats/half"
)

// testTurned holds sums against float64's, on operands whose sums are exact. What must not matter is NaN.
func TestTurnedF32(t *testing.T) {
	nan := float32(math.NaN())
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 5).Draw(t, "n/8")
		nnz, rows := rapid.IntRange(0, 20).Draw(t, "nnz"), rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb := n + rapid.IntRange(0, 9).Draw(t, "padding of b")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b, a, cols := make([]float32, rows*ldb), make([]float32, nnz*VectorRows), make([]uint32, nnz)
		for i := range b {
			if b[i] = nan; i%ldb < n {
				b[i] = float32(r.IntN(33) - 16)
			}
		}
		start, want := make([]float32, VectorRows*n), make([]float64, VectorRows*n)
		for i := range start {
			start[i] = float32(r.IntN(33) - 16)
			want[i] = float64(start[i])
		}
		for k := range cols {
			cols[k] = uint32(r.IntN(rows))
			for i := range VectorRows {
				a[k*VectorRows+i] = float32(r.IntN(33) - 16)
				for j := range n {
					want[j*VectorRows+i] += float64(a[k*VectorRows+i]) * float64(b[int(cols[k])*ldb+j])
				}
			}
		}
		levels(func(name string) {
			acc := append(append([]float32{nan}, start...), nan)
			TurnedF32(acc[1:len(acc)-1], a, cols, b, ldb, n)
			for i, x := range acc[1 : len(acc)-1] {
				if float64(x) != want[i] {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i%VectorRows, i/VectorRows, n, x, want[i])
				}
			}
			if acc[0] == acc[0] || acc[len(acc)-1] == acc[len(acc)-1] {
				t.Fatalf("%s: wrote beside its sums", name)
			}
		})
	})
}

// TestTurn transposes lines, and leaves what lies between the results alone.
func TestTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines, n := rapid.IntRange(0, 35).Draw(t, "lines"), rapid.IntRange(0, 35).Draw(t, "n")
		lds, ldd := n+rapid.IntRange(0, 3).Draw(t, "padding"), lines+rapid.IntRange(0, 3).Draw(t, "padding of dst")
		src := make([]float32, lines*lds)
		for i := range src {
			src[i] = float32(i)
		}
		levels(func(name string) {
			dst := make([]float32, n*ldd)
			for i := range dst {
				dst[i] = -1
			}
			Turn(dst[:max(0, (n-1)*ldd+lines)], ldd, src[:max(0, (lines-1)*lds+n)], lds, lines, n)
			for k := range n {
				for i := range ldd {
					want := float32(-1)
					if i < lines {
						want = src[i*lds+k]
					}
					if dst[k*ldd+i] != want {
						t.Fatalf("%s: (%d, %d) of %d×%d is %v, want %v", name, k, i, n, lines, dst[k*ldd+i], want)
					}
				}
			}
		})
	})
}

func testWidenLines[T element](t *testing.T, widen func(dst []float32, ldd int, src []T, lds, lines, n int)) {
	rapid.Check(t, func(t *rapid.T) {
		lines, n := rapid.IntRange(0, 9).Draw(t, "lines"), rapid.IntRange(0, 35).Draw(t, "n")
		lds, ldd := n+rapid.IntRange(0, 3).Draw(t, "padding"), n+rapid.IntRange(0, 3).Draw(t, "padding of dst")
		src := make([]T, lines*lds)
		for i := range src {
			src[i] = from[T](float32(i % 200))
		}
		levels(func(name string) {
			dst := make([]float32, lines*ldd)
			for i := range dst {
				dst[i] = -1
			}
			widen(dst, ldd, src, lds, lines, n)
			for i := range lines {
				for j := range ldd {
					want := -1.0
					if j < n {
						want = to(src[i*lds+j])
					}
					if float64(dst[i*ldd+j]) != want {
						t.Fatalf("%s: (%d, %d) of %d×%d is %v, want %v", name, i, j, lines, n, dst[i*ldd+j], want)
					}
				}
			}
		})
	})
}

func TestWidenLines(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testWidenLines(t, WidenLinesF32) })
	t.Run("f16", func(t *testing.T) { testWidenLines(t, WidenLinesF16) })
	t.Run("bf16", func(t *testing.T) { testWidenLines(t, WidenLinesBF16) })
}

// TestExpandChains puts numbers at random places, and looks for each where it says. Mask words of other chains are
// full.
func TestExpandChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(0, 5).Draw(t, "steps")
		density := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "density")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ld := 40*steps + 10 + ChainPadding
		mask, values := make([]uint32, StepWords*steps), make([]float32, ChainsTaken*ld)
		for i := range mask {
			if mask[i] = 0; i%StepWords >= ChainsTaken {
				mask[i] = math.MaxUint32
			}
		}
		for i := range values {
			values[i] = float32(math.NaN())
		}
		want := make([]float32, steps*StepVectors*VectorRows)
		var first, end [ChainsTaken]int
		for c := range end {
			first[c] = r.IntN(10)
			end[c] = first[c]
			for s := range steps {
				for w := range 2 {
					for i := range 16 {
						if r.Float64() >= density {
							continue
						}
						mask[StepWords*s+2*(c/2)+w] |= 1 << (2*i + c%2)
						x := float32(1 + r.IntN(1000))
						values[c*ld+end[c]] = x
						end[c]++
						col, m := 16*w+8*(i>>1&1)+4*(c%2)+c/2%4, i>>2*2+i&1
						want[(StepVectors*s+col)*VectorRows+8*(c/8)+m] = x
					}
				}
			}
		}
		levels(func(name string) {
			next, dst := first, make([]float32, len(want)+1)
			for i := range dst {
				dst[i] = -1
			}
			ExpandChains(dst, mask, steps, values, ld, &next)
			for i, x := range want {
				if dst[i] != x {
					t.Fatalf("%s: row %d of column %d is %v, want %v", name, i%VectorRows, i/VectorRows, dst[i], x)
				}
			}
			if dst[len(want)] != -1 {
				t.Fatalf("%s: wrote past %d steps", name, steps)
			}
			if next != end && steps > 0 {
				t.Fatalf("%s: chains are at %v, want %v", name, next, end)
			}
		})
	})
}

func BenchmarkTurnedF32(b *testing.B) {
	const k = 256
	for _, n := range []int{8, 16, 24} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x, a, acc, cols := make([]float32, k*n), make([]float32, k*VectorRows), make([]float32, VectorRows*n),
				make([]uint32, k)
			for i := range cols {
				cols[i] = uint32(i)
			}
			for b.Loop() {
				TurnedF32(acc, a, cols, x, n, n)
			}
			b.ReportMetric(2*k*VectorRows*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

func BenchmarkExpandChains(b *testing.B) {
	const steps, ld = 8, 300
	levels(func(name string) {
		b.Run(name, func(b *testing.B) {
			mask, values, dst := make([]uint32, StepWords*steps), make([]float32, ChainsTaken*ld),
				make([]float32, steps*StepVectors*VectorRows)
			for i := range mask {
				mask[i] = rand.Uint32()
			}
			for b.Loop() {
				var next [ChainsTaken]int
				ExpandChains(dst, mask, steps, values, ld, &next)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(steps*StepVectors), "ns/vector")
		})
	})
}

func BenchmarkTurn(b *testing.B) {
	dst, src := make([]float32, 16*256), make([]float32, 16*256)
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		Turn(dst, 16, src, 256, 16, 256)
	}
}

func BenchmarkWidenLinesF16(b *testing.B) {
	dst, src := make([]float32, 32*256), make([]half.F16, 32*256)
	b.SetBytes(int64(2 * len(src)))
	for b.Loop() {
		WidenLinesF16(dst, 32, src, 32, 256, 32)
	}
}
