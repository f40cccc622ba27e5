// Fixed point at every level of instructions this machine has, against the definition in big arithmetic.

package simd

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
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

func TestScanColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(100, 300)).Draw(t, "n")
		rows := rapid.IntRange(0, 9).Draw(t, "rows")
		ld := n + rapid.IntRange(0, 9).Draw(t, "padding")
		x := someFloats(t, ld*rows)
		levels(func(name string) {
			largest, lowest, special := make([]int32, n+1), make([]int32, n+1), make([]int32, n+1)
			for j := range lowest {
				lowest[j] = NoLowest
			}
			half := rows / 2 // what is known already must stay
			ScanColumns(largest[:n], lowest[:n], special[:n], x, ld, half)
			ScanColumns(largest[:n], lowest[:n], special[:n], x[half*ld:], ld, rows-half)
			alone, wild := make([]int32, n+1), make([]int32, n+1)
			LargestColumns(alone[:n], wild[:n], x, ld, half)
			LargestColumns(alone[:n], wild[:n], x[half*ld:], ld, rows-half)
			if !slices.Equal(alone, largest) || !slices.Equal(wild, special) {
				t.Fatalf("%s: without lowest bits %x, %d; want %x, %d", name, alone, wild, largest, special)
			}
			for j := range n {
				wantLargest, wantLowest, wantSpecial := float32(0), NoLowest, int32(0)
				for i := range rows {
					v := x[i*ld+j]
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

func TestJoinRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a, b := make([]uint32, n), make([]uint32, n)
		for j := range n {
			a[j], b[j] = r.Uint32(), r.Uint32()
			if r.IntN(2) == 0 { // only some fields differ
				b[j] = a[j] ^ b[j]&(1<<10-1)<<(10*r.IntN(3))
			}
		}
		levels(func(name string) {
			dst := append(append([]uint32(nil), a...), 77)
			JoinRanges(dst[:n], b)
			for j := range n {
				for _, field := range []uint32{1<<10 - 1, (1<<10 - 1) << 10, 0xfff << 20} {
					if got, want := dst[j]&field, max(a[j]&field, b[j]&field); got != want {
						t.Fatalf("%s: %x and %x have the field %x, want %x", name, a[j], b[j], got, want)
					}
				}
			}
			if dst[n] != 77 {
				t.Fatalf("%s: wrote behind %d words", name, n)
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

// testQuantiseRows quantises some equal rows by Quantise16 or Quantise32.
func testQuantiseRows[T int16 | int32](t *testing.T, most int,
	run func(q []T, ldq int, x []float32, ldx, rows int, first, second []float32)) {
	testQuantise(t, most, func(x []float32, unit []float64) (out []int64) {
		n := len(x)
		ldq, ldx := n+1, n+2
		first, second := make([]float32, n), make([]float32, n)
		for j, u := range unit {
			e := math.Ilogb(u)
			first[j], second[j] = float32(math.Ldexp(1, min(e, 127))), float32(math.Ldexp(1, e-min(e, 127)))
		}
		const rows = 3
		q, all := make([]T, rows*ldq), make([]float32, rows*ldx)
		for i := range q {
			q[i] = 77
		}
		for i := range rows {
			copy(all[i*ldx:], x)
		}
		run(q, ldq, all, ldx, rows, first, second)
		for i := range rows {
			for j, v := range q[i*ldq:][:n] {
				if v != q[j] {
					t.Errorf("element %d of row %d is %d, and %d in row 0", j, i, v, q[j])
				}
			}
			if q[i*ldq+n] != 77 {
				t.Error("wrote behind the last element")
			}
		}
		for _, v := range q[:n] {
			out = append(out, int64(v))
		}
		return out
	})
}

func TestQuantise16(t *testing.T) { testQuantiseRows(t, 15, Quantise16) }
func TestQuantise32(t *testing.T) { testQuantiseRows(t, 31, Quantise32) }

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

// TestFoldSums adds as many sums as the longest row has, each as large as a chunk of a row can make it.
func TestFoldSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, chunks := rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(1, 256).Draw(t, "chunks")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		sums, want := make([][2][]float64, chunks), make([]big.Int, n)
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
			for _, chunk := range sums {
				for p, scale := range scales {
					FoldSums(high, low, chunk[p], scale)
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

func TestRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rows := rapid.IntRange(0, 40).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "rows")
		lds, ldy := n+rapid.IntRange(0, 3).Draw(t, "padding"), n+rapid.IntRange(0, 3).Draw(t, "padding of y")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		single, high, low := make([]float64, rows*lds), make([]float64, rows*lds), make([]float64, rows*lds)
		power := func() float64 { return math.Ldexp(1, r.IntN(300)-200) }
		q := Rounding{LDY: ldy, LDS: lds, Scale: math.Ldexp(1, r.IntN(17))}
		stream := rapid.Bool().Draw(t, "stream")
		if stream {
			q.LDY = (ldy + 7) &^ 7
			ldy = q.LDY
		}
		for range n {
			q.Unit = append(q.Unit, power())
		}
		for range rows {
			q.Rows = append(q.Rows, power())
		}
		for j := range high {
			single[j] = float64(someSum(r, 53))
			high[j], low[j] = float64(someSum(r, 53))*math.Ldexp(1, r.IntN(17)), float64(someSum(r, 53))
			switch r.IntN(4) {
			case 0: // a tie, or next to one
				high[j], low[j] = float64(r.IntN(1<<25)-1<<24)*(1<<28)+(1<<27), float64(r.IntN(3)-1)
			case 1: // what is left is below the last bit of the sum
				high[j], low[j] = float64(someSum(r, 20))*0x1p53, float64(r.IntN(7)-3)
			}
		}
		// rounded returns a sum in its units.
		rounded := func(i, j int) float32 {
			exact := new(big.Float).SetPrec(300).SetFloat64(q.High[i*lds+j])
			if q.Low != nil {
				exact.Mul(exact, new(big.Float).SetFloat64(q.Scale))
				exact.Add(exact, new(big.Float).SetFloat64(q.Low[i*lds+j]))
			}
			exact.SetMantExp(exact, math.Ilogb(q.Unit[j])+math.Ilogb(q.Rows[i]))
			y, _ := exact.Float32()
			return y + 0 // not −0
		}
		levels(func(name string) {
			for _, sums := range [][2][]float64{{single, nil}, {high, low}} {
				q.High, q.Low, q.Y, q.Stream = sums[0], sums[1], make([]float32, rows*ldy), stream
				for i := range q.Y {
					q.Y[i] = 77
				}
				q.Do()
				for at, got := range q.Y {
					want := float32(77)
					if at%ldy < n {
						want = rounded(at/ldy, at%ldy)
					}
					if math.Float32bits(got) != math.Float32bits(want) {
						t.Fatalf("%s: (%d, %d) of %d columns is %v, want %v", name, at/ldy, at%ldy, n, got, want)
					}
				}
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
	p, q, s, words, units := make([]int32, n), make([]int32, n), make([]int32, n), make([]uint32, n), make([]float32, n)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(n*b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
		})
	}
	run("scan", func() { ScanColumns(p, q, s, x, n, 1) })
	run("largest", func() { LargestColumns(p, s, x, n, 1) })
	run("join", func() { JoinRanges(words, words) })
	run("quantise32", func() { Quantise32(q, n, x, n, 1, units, units) })
	run("quantise48", func() { Quantise48(p, q, x, unit) })
	run("widen", func() { WidenInt32(sums, ints) })
	run("halve", func() { HalveInt32(low, high, ints) })
	run("fold", func() { FoldSums(high, low, sums, 1) })
	r := Rounding{Y: y, LDY: n, High: sums, LDS: n, Scale: 1, Unit: unit, Rows: []float64{1}}
	run("round", r.Do)
	pairs := r
	pairs.Low = low
	run("round pairs", pairs.Do)
}
