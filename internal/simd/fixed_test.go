// Fixed point at every level of instructions this machine has, against the definition in big arithmetic.

package simd

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// someFloats draws n numbers of all kinds: normal, subnormal, zeros, infinities, NaN.
func someFloats(t *rapid.T, n int) []float32 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	special := []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x7fffff, 0x800000, 0x7f7fffff,
		0x3f800000}
	x := make([]float32, n)
	for i := range x {
		switch r.IntN(3) {
		case 0:
			x[i] = math.Float32frombits(special[r.IntN(len(special))])
		case 1:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = float32(r.NormFloat64())
		}
	}
	return x
}

func isFinite(x float32) bool { return x-x == 0 }

func TestScanRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rows := rapid.IntRange(0, 40).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "rows")
		x := someFloats(t, n*rows)
		levels(func(name string) {
			largest, lowest, special := make([]int32, n+1), make([]int32, n+1), make([]int32, n+1)
			for j := range lowest {
				lowest[j] = NoLowest
			}
			for i := range rows {
				ScanRange(largest, lowest, special, x[i*n:][:n])
			}
			for j := range n {
				wantLargest, wantLowest, wantSpecial := float32(0), NoLowest, int32(0)
				for i := range rows {
					v := x[i*n+j]
					if !isFinite(v) {
						wantSpecial = -1
						continue
					}
					wantLargest = max(wantLargest, float32(math.Abs(float64(v))))
					if v != 0 {
						f, e := math.Frexp(float64(v))
						wantLowest = min(wantLowest, e-53+bits.TrailingZeros64(uint64(int64(math.Ldexp(f, 53))))+LowestBias)
					}
				}
				if math.Float32frombits(uint32(largest[j])) != wantLargest || int(lowest[j]) != wantLowest ||
					special[j] != wantSpecial {
					t.Fatalf("%s: column %d of %d: %x, %d, %d; want %x, %d, %d", name, j, n,
						largest[j], lowest[j], special[j], math.Float32bits(wantLargest), wantLowest, wantSpecial)
				}
			}
			if largest[n] != 0 || lowest[n] != NoLowest || special[n] != 0 {
				t.Fatalf("%s: wrote behind %d columns", name, n)
			}
		})
	})
}

// testQuantise holds quantising to integers against rounding in float64, which has room for them.
func testQuantise(t *testing.T, most int, run func(x []float32, unit []float64) []int64) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "units"), 0))
		x, unit := someFloats(t, n), make([]float64, n)
		for j := range unit {
			_, e := math.Frexp(float64(x[j]))
			if !isFinite(x[j]) {
				e = 0
			}
			unit[j] = math.Ldexp(1, most-1-e-r.IntN(most+3)) // from full size down to less than a half
			if r.IntN(4) == 0 && isFinite(x[j]) {            // a tie
				unit[j] = 1
				x[j] = float32(r.IntN(1<<10)-1<<9) + 0.5
			}
		}
		levels(func(name string) {
			for j, q := range run(x, unit) {
				want := int64(0)
				if isFinite(x[j]) {
					want = int64(math.RoundToEven(float64(x[j]) * unit[j]))
				}
				if q != want {
					t.Fatalf("%s: element %d of %d: %v in units of 1/%v is %d, want %d", name, j, n, x[j], unit[j], q, want)
				}
			}
		})
	})
}

// quantised runs Quantise16 or Quantise32.
func quantised[T int16 | int32](t *testing.T, x []float32, unit []float64,
	run func([]T, []float32, []float64)) (out []int64) {
	q := make([]T, len(x)+1)
	q[len(x)] = 77
	run(q, x, unit)
	for _, v := range q[:len(x)] {
		out = append(out, int64(v))
	}
	if q[len(x)] != 77 {
		t.Error("wrote behind the last element")
	}
	return out
}

func TestQuantise16(t *testing.T) {
	testQuantise(t, 15, func(x []float32, unit []float64) []int64 { return quantised(t, x, unit, Quantise16) })
}

func TestQuantise32(t *testing.T) {
	testQuantise(t, 31, func(x []float32, unit []float64) []int64 { return quantised(t, x, unit, Quantise32) })
}

func TestQuantise48(t *testing.T) {
	testQuantise(t, 47, func(x []float32, unit []float64) (out []int64) {
		low, high := make([]int32, len(x)+1), make([]int32, len(x)+1)
		low[len(x)], high[len(x)] = 77, 77
		Quantise48(low, high, x, unit)
		for j := range x {
			if low[j] < -1<<23 || low[j] >= 1<<23 {
				t.Errorf("digit %d of 24 bits", low[j])
			}
			out = append(out, int64(high[j])<<24+int64(low[j]))
		}
		if low[len(x)] != 77 || high[len(x)] != 77 {
			t.Error("wrote behind the last element")
		}
		return out
	})
}

func TestRoundSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sums, unit := make([]int64, n), make([]float64, n)
		scale := math.Ldexp(1, r.IntN(300)-200)
		for j := range sums {
			sums[j] = (r.Int64N(1<<52) - 1<<51) >> r.IntN(52)
			unit[j] = math.Ldexp(1, r.IntN(300)-200)
		}
		levels(func(name string) {
			y := make([]float32, n+1)
			y[n] = 77
			if !RoundSums(y, sums, unit, scale) {
				t.Fatalf("%s: sums below 2⁵¹ are too large", name)
			}
			for j, s := range sums {
				want, _ := new(big.Float).SetMantExp(big.NewFloat(float64(s)), math.Ilogb(unit[j])+math.Ilogb(scale)).Float32()
				if want == 0 {
					want = 0 // not −0
				}
				if math.Float32bits(y[j]) != math.Float32bits(want) {
					t.Fatalf("%s: %d·%v·%v is %v, want %v", name, s, unit[j], scale, y[j], want)
				}
			}
			if y[n] != 77 {
				t.Fatalf("%s: wrote behind the last element", name)
			}
			for j := range sums { // one that is too large, anywhere
				for _, big := range []int64{1 << 51, -1<<51 - 1, math.MaxInt64, math.MinInt64} {
					old := sums[j]
					sums[j] = big
					if RoundSums(y, sums, unit, scale) {
						t.Fatalf("%s: %d at %d of %d passes", name, big, j, n)
					}
					sums[j] = old
				}
			}
		})
	})
}

func BenchmarkFixed(b *testing.B) {
	const n = 512
	x, unit, sums, y := make([]float32, n), make([]float64, n), make([]int64, n), make([]float32, n)
	for i := range x {
		x[i], unit[i], sums[i] = float32(rand.NormFloat64()), 1<<20, rand.Int64N(1<<40)
	}
	p, q, s := make([]int32, n), make([]int32, n), make([]int32, n)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(n*b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
		})
	}
	run("scan", func() { ScanRange(p, q, s, x) })
	run("quantise32", func() { Quantise32(q, x, unit) })
	run("quantise48", func() { Quantise48(p, q, x, unit) })
	run("round", func() { RoundSums(y, sums, unit, 1) })
}
