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

// guarded returns room for n numbers, and a function that says whether what lies behind them was written.
func guarded[T float32 | float64](n int) (room []T, written func() bool) {
	all := make([]T, n+1)
	all[n] = 77
	return all[:n], func() bool { return all[n] != 77 }
}

func TestWidenIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		narrow, wide := make([]int16, n), make([]int32, n)
		for i := range n {
			narrow[i], wide[i] = int16(r.Uint32()), int32(r.Uint32())
			switch r.IntN(8) {
			case 0:
				narrow[i], wide[i] = math.MinInt16, math.MinInt32
			case 1:
				narrow[i], wide[i] = math.MaxInt16, 2039<<20
			}
		}
		levels(func(name string) {
			dst, written := guarded[float64](n)
			WidenInt16(dst, narrow)
			for i, x := range dst {
				if x != float64(narrow[i]) {
					t.Fatalf("%s: %d of 16 bits is %v", name, narrow[i], x)
				}
			}
			WidenInt32(dst, wide)
			for i, x := range dst {
				if x != float64(wide[i]) {
					t.Fatalf("%s: %d of 32 bits is %v", name, wide[i], x)
				}
			}
			low, lowWritten := guarded[float64](n)
			high, highWritten := guarded[float64](n)
			for i, x := range wide {
				wide[i] = min(x, math.MaxInt32-1<<15)
			}
			HalveInt32(low, high, wide)
			for i, x := range wide {
				l, h := low[i], high[i]
				if l < -1<<15 || l >= 1<<15 || h < -1<<15 || h >= 1<<15 || h*(1<<16)+l != float64(x) {
					t.Fatalf("%s: the halves of %d are %v and %v", name, x, l, h)
				}
			}
			if written() || lowWritten() || highWritten() {
				t.Fatalf("%s: wrote behind %d numbers", name, n)
			}
		})
	})
}

// someSum draws an integer at most 2^most in magnitude, of any size, the largest more often.
func someSum(r *rand.Rand, most int) int64 {
	limit := int64(1) << most
	switch r.IntN(6) {
	case 0:
		return limit
	case 1:
		return -limit
	}
	return (r.Int64N(2*limit) - limit) >> r.IntN(most)
}

// TestFoldSums adds as many sums as the longest row has, each as large as a piece of a row can make it.
func TestFoldSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, pieces := rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(1, 256).Draw(t, "pieces")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sums, want := make([][2][]float64, pieces), make([]big.Int, n)
		scales := [2]float64{1, 0x1p24}
		for i := range sums {
			for p, scale := range scales {
				sums[i][p] = make([]float64, n)
				for j := range n {
					s := someSum(r, 53)
					sums[i][p][j] = float64(s)
					want[j].Add(&want[j], new(big.Int).Mul(big.NewInt(s), big.NewInt(int64(scale))))
				}
			}
		}
		levels(func(name string) {
			high, highWritten := guarded[float64](n)
			low, lowWritten := guarded[float64](n)
			for _, piece := range sums {
				for p, scale := range scales {
					FoldSums(high, low, piece[p], scale)
				}
			}
			for j := range n {
				h, _ := big.NewFloat(high[j]).Int(nil)
				l, _ := big.NewFloat(low[j]).Int(nil)
				if got := h.Add(h, l); got.Cmp(&want[j]) != 0 || math.Abs(low[j]) > 512*FoldUnit/2 ||
					math.Mod(high[j], FoldUnit) != 0 {
					t.Fatalf("%s: sum %d is %v + %v, want %v", name, j, high[j], low[j], &want[j])
				}
			}
			if highWritten() || lowWritten() {
				t.Fatalf("%s: wrote behind the last sum", name)
			}
		})
	})
}

func TestRoundSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		single, high, low, unit := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		row, scale := math.Ldexp(1, r.IntN(300)-200), math.Ldexp(1, r.IntN(17))
		for j := range n {
			single[j] = float64(someSum(r, 53))
			high[j], low[j] = float64(someSum(r, 53))*math.Ldexp(1, r.IntN(17)), float64(someSum(r, 53))
			unit[j] = math.Ldexp(1, r.IntN(300)-200)
			switch r.IntN(4) {
			case 0: // a tie, or next to one
				high[j], low[j] = float64(r.IntN(1<<25)-1<<24)*(1<<28)+(1<<27), float64(r.IntN(3)-1)
			case 1: // what is left is below the last bit of the sum
				high[j], low[j] = float64(someSum(r, 20))*0x1p53, float64(r.IntN(7)-3)
			}
		}
		// rounded returns a sum in its units.
		rounded := func(h, l, unit float64) float32 {
			exact := new(big.Float).SetPrec(300).SetFloat64(h)
			exact.Mul(exact, new(big.Float).SetFloat64(scale))
			exact.Add(exact, new(big.Float).SetFloat64(l))
			exact.SetMantExp(exact, math.Ilogb(unit)+math.Ilogb(row))
			y, _ := exact.Float32()
			return y + 0 // not −0
		}
		levels(func(name string) {
			y, written := guarded[float32](n)
			check := func(high, low []float64) {
				RoundSums(y, high, low, scale, unit, row)
				for j, got := range y {
					l := 0.0
					if low != nil {
						l = low[j]
					}
					if want := rounded(high[j], l, unit[j]); math.Float32bits(got) != math.Float32bits(want) {
						t.Fatalf("%s: (%v·%v + %v)·%v·%v is %v, want %v", name, high[j], scale, l, unit[j], row, got, want)
					}
				}
			}
			check(single, nil)
			check(high, low)
			if written() {
				t.Fatalf("%s: wrote behind the last element", name)
			}
		})
	})
}

func BenchmarkFixed(b *testing.B) {
	const n = 512
	x, unit, y := make([]float32, n), make([]float64, n), make([]float32, n)
	high, low, sums, ints := make([]float64, n), make([]float64, n), make([]float64, n), make([]int32, n)
	for i := range x {
		x[i], unit[i], sums[i] = float32(rand.NormFloat64()), 1<<20, float64(rand.Int64N(1<<40))
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
	run("widen", func() { WidenInt32(sums, ints) })
	run("halve", func() { HalveInt32(low, high, ints) })
	run("fold", func() { FoldSums(high, low, sums, 1) })
	run("round", func() { RoundSums(y, sums, nil, 1, unit, 1) })
	run("round pairs", func() { RoundSums(y, sums, low, 1, unit, 1) })
}
