// Narrowing float64, held against arithmetic in math/big.

package formats_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// kind says how numbers of a type are rounded: its significand's bits, and its exponents.
type kind struct {
	bits          uint
	least, normal float64 // the least subnormal and the least normal number
	limit         float64 // what rounds to infinity
}

var (
	kindF32  = kind{24, 0x1p-149, 0x1p-126, 0x1p128 - 0x1p103}
	kindBF16 = kind{8, 0x1p-133, 0x1p-126, 0x1p128 - 0x1p119}
	kindF16  = kind{11, 0x1p-24, 0x1p-14, 65520}
)

// round is x in that type, by another way than the package's: multiples of the last place, rounded by math.RoundToEven.
func (k kind) round(x float64) float64 {
	if x != x || math.IsInf(x, 0) || x == 0 {
		return x
	}
	if math.Abs(x) >= k.limit {
		return math.Inf(int(math.Copysign(1, x)))
	}
	_, exp := math.Frexp(x)
	place := math.Max(math.Ldexp(1, exp-int(k.bits)), k.least)
	return math.RoundToEven(x/place) * place
}

// loss is the kind of loss when x is rounded to y.
func (k kind) loss(x, y float64) formats.Loss {
	l := formats.Loss{Values: 1}
	switch {
	case x != x:
		l.NaNs++
		return l
	case x == y:
		return l
	case math.IsInf(y, 0):
		l.Overflowed++
		return l
	case y == 0:
		l.Zeroed++
	case math.Abs(y) < k.normal:
		l.Subnormal++
	default:
		l.Rounded++
	}
	e, _ := new(big.Rat).Quo(new(big.Rat).Sub(rat(y), rat(x)), rat(x)).Float64()
	l.MaxError = math.Abs(e)
	return l
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// wide draws numbers of all sizes, and those near a type's edges.
func wide(k kind) *rapid.Generator[float64] {
	edges := []float64{0, math.Copysign(0, -1), k.least, k.least / 2, math.Nextafter(k.least/2, 1), k.normal,
		math.Nextafter(k.normal, 0),
		k.limit, math.Nextafter(k.limit, 0), math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.NaN(), 1,
		1.0 / 3}
	return rapid.Custom(func(t *rapid.T) float64 {
		sign := rapid.SampledFrom([]float64{1, -1}).Draw(t, "sign")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return sign * rapid.SampledFrom(edges).Draw(t, "edge")
		case 1:
			return rapid.Float64().Draw(t, "any")
		}
		return sign * math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "significand"),
			rapid.IntRange(-160, 140).Draw(t, "exponent"))
	})
}

func TestNarrow(t *testing.T) {
	t.Run("f16", func(t *testing.T) { testNarrow(t, kindF16, half.F16.Float32) })
	t.Run("bf16", func(t *testing.T) { testNarrow(t, kindBF16, half.BF16.Float32) })
	t.Run("f32", func(t *testing.T) { testNarrow(t, kindF32, func(x float32) float32 { return x }) })
}

// Values are rounded once, and the loss is the sum of what each value lost.
func testNarrow[T formats.Value](t *testing.T, k kind, float func(T) float32) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(wide(k), 0, 40).Draw(t, "values")
		got, loss := formats.Narrow[T](in)
		var want formats.Loss
		for i, x := range in {
			y := k.round(x)
			if g := float64(float(got[i])); math.Float64bits(g) != math.Float64bits(y) && (g == g || y == y) {
				t.Fatalf("%v became %v, want %v", x, g, y)
			}
			want.Add(k.loss(x, y))
		}
		if e := math.Abs(loss.MaxError - want.MaxError); e > 1e-9*want.MaxError {
			t.Fatalf("largest error %v, want %v", loss.MaxError, want.MaxError)
		}
		loss.MaxError = want.MaxError
		if loss != want || loss.Exact() != (loss.Rounded+loss.Subnormal+loss.Zeroed+loss.Overflowed == 0) {
			t.Fatalf("%+v, want %+v", loss, want)
		}
	})
}

// Many values are shared out among cores; the counts are the same.
func TestNarrowMany(t *testing.T) {
	in := make([]float64, 300_001)
	for i := range in {
		in[i] = float64(i) / 4096
	}
	in[7], in[200_000], in[300_000] = 1e60, 1e-60, math.NaN()
	_, got := formats.Narrow[half.F16](in)
	var want formats.Loss
	for _, x := range in {
		_, l := formats.Narrow[half.F16]([]float64{x})
		want.Add(l)
	}
	if got != want || got.Overflowed != 1 || got.Zeroed != 1 || got.NaNs != 1 || got.Rounded == 0 {
		t.Errorf("%+v, one by one %+v", got, want)
	}
}

func ExampleNarrow() {
	values := []float64{0.5, 1.0 / 3, 1e300, 1e-300, 7}
	val, loss := formats.Narrow[float32](values)
	fmt.Println(val)
	fmt.Println(loss)
	// Output:
	// [0.5 0.33333334 +Inf 0 7]
	// 5 values: 1 rounded, 1 became 0, 1 became infinite (relative error up to 1)
}

func ExampleLoss_Exact() {
	_, loss := formats.Narrow[half.BF16]([]float64{0.25, 3, -128})
	fmt.Println(loss.Exact(), loss)
	// Output: true 3 values: all exact
}
