package rfx_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
)

// anyFloat draws finite float32 numbers of all exponents, subnormal ones and zeros too.
func anyFloat(t *rapid.T, name string) float32 {
	x := math.Float32frombits(rapid.Uint32().Draw(t, name))
	if !rfx.IsFinite(x) {
		return 1
	}
	return x
}

// anyPrecision draws one.
func anyPrecision(t *rapid.T) rfx.P { return rapid.SampledFrom(rfx.All[:]).Draw(t, "p") }

// exact is x with room for every operation of these tests.
func exact(x float64) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(x) }

func exactInt(x int64) *big.Float { return new(big.Float).SetPrec(2000).SetInt64(x) }

// scaled returns x·2^e.
func scaled(x *big.Float, e int) *big.Float {
	return new(big.Float).SetPrec(2000).SetMantExp(x, e)
}

// rne rounds to the nearest integer, ties to even, by the definition.
func rne(x *big.Float) *big.Int {
	floor, _ := x.Int(nil) // towards zero
	if x.Sign() < 0 && !x.IsInt() {
		floor.Sub(floor, big.NewInt(1))
	}
	rest := new(big.Float).SetPrec(2000).Sub(x, new(big.Float).SetPrec(2000).SetInt(floor))
	if c := rest.Cmp(exact(0.5)); c > 0 || c == 0 && floor.Bit(0) == 1 {
		floor.Add(floor, big.NewInt(1))
	}
	return floor
}

// float32Of rounds to the nearest float32; zero is +0.
func float32Of(x *big.Float) float32 {
	f, _ := x.Float32()
	if f == 0 {
		return 0
	}
	return f
}

func same(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }

// checkE holds E against its definition.
func checkE(t *testing.T, x float32) {
	t.Helper()
	e := rfx.E(x)
	fits := func(e int) bool {
		return exact(math.Abs(float64(x))).Cmp(scaled(exact(2039.0/1024), e)) <= 0
	}
	if !fits(e) || fits(e-1) {
		t.Fatalf("E(%g) is %d", x, e)
	}
}

// checkMax holds the quantised x, alone in its row, against P.Max, and its digits against their sizes.
func checkMax(t *testing.T, x float32) {
	t.Helper()
	for _, p := range rfx.All {
		q := rfx.Quantise(x, p.L(rfx.E(x)))
		if q > p.Max() || -q > p.Max() {
			t.Fatalf("p=%d: q(%g) is %d, above %d", p, x, q, p.Max())
		}
		for _, cut := range []struct{ bits, n int }{{8, p.Bytes()}, {24, (p.Bytes() + 2) / 3}} {
			d := make([]int32, cut.n)
			rfx.Digits(d, q, cut.bits)
			for i, x := range d {
				if x < -1<<(cut.bits-1) || x >= 1<<(cut.bits-1) {
					t.Fatalf("p=%d: digit %d of %d in base 2^%d is %d", p, i, q, cut.bits, x)
				}
			}
		}
	}
}

// Every f16 and bf16 as the largest element, and float32 of every exponent around the limit 2039/1024.
func TestLargestElements(t *testing.T) {
	for h := range 1 << 16 {
		for _, x := range []float32{half.F16(h).Float32(), half.BF16(h).Float32()} {
			if rfx.IsFinite(x) && x != 0 {
				checkE(t, x)
				checkMax(t, x)
			}
		}
	}
	for e := -149; e <= 127; e++ {
		for _, m := range []float64{1, 1 + 0x1p-23, 2039.0 / 1024, 2039.0/1024 + 0x1p-23, 2039.0/1024 - 0x1p-23,
			2 - 0x1p-23} {
			if x := float32(math.Ldexp(m, e)); rfx.IsFinite(x) {
				checkE(t, x)
				checkMax(t, -x)
			}
		}
	}
}

func TestQuantise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, p := anyFloat(t, "x"), anyPrecision(t)
		least := rfx.RangeOf(x).E()
		e := min(128, least+rapid.SampledFrom([]int{0, 1, 5, 13, 14, 15, 22, 23, 24, 30, 31, 38, 46, 47, 70, 300}).Draw(t,
			"above"))
		want := rne(scaled(exact(float64(x)), -p.L(e)))
		if got := rfx.Quantise(x, p.L(e)); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("q(%g) with p=%d, E=%d is %d, want %v", x, p, e, got, want)
		}
	})
}

func TestRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Uint32(), 1, 6).Draw(t, "bits")
		if rapid.Bool().Draw(t, "narrow") { // of like exponents and few bits, so that something is lossless
			for i := range xs {
				xs[i] = xs[i]&0x87ff0000 | 0x38000000
			}
		}
		var r rfx.Range
		wild, largest := false, -1000
		for _, b := range xs {
			x := math.Float32frombits(b)
			r = rfx.RangeOf(x).Join(r)
			wild = wild || !rfx.IsFinite(x)
			if rfx.IsFinite(x) && x != 0 {
				largest = max(largest, rfx.E(x))
			}
		}
		if r.NonFinite() != wild || r.Zero() != (largest == -1000) || !r.Zero() && r.E() != largest {
			t.Fatalf("range of %x: %x", xs, uint32(r))
		}
		for _, p := range rfx.All {
			lossless := true
			for _, b := range xs {
				if x := math.Float32frombits(b); rfx.IsFinite(x) && !r.Zero() {
					back := scaled(exactInt(rfx.Quantise(x, p.L(r.E()))), p.L(r.E()))
					lossless = lossless && back.Cmp(exact(float64(x))) == 0
				}
			}
			if r.Lossless(p) != lossless {
				t.Fatalf("range of %x at p=%d: Lossless is %t", xs, p, !lossless)
			}
		}
	})
}

func TestAuto(t *testing.T) {
	ranges := func(xs ...float32) []rfx.Range {
		var r rfx.Range
		for _, x := range xs {
			r = r.Join(rfx.RangeOf(x))
		}
		return []rfx.Range{0, r}
	}
	for _, c := range []struct {
		name     string
		a, b     []rfx.Range
		p        rfx.P
		lossless bool
	}{
		{"nothing", nil, nil, rfx.P15, true},
		{"zeros", ranges(0), ranges(), rfx.P15, true},
		{"bits 0 to 14 of the row", ranges(1, 0x1p-14), ranges(1), rfx.P15, true},
		{"bits 0 to 15 of the row", ranges(1, 0x1p-15), ranges(1), rfx.P23, true},
		{"a column of 31 bits", ranges(1), ranges(-3, 0x1p-28), rfx.P31, true}, // E is 2
		{"an infinity does not count", ranges(1, float32(math.Inf(1))), ranges(1), rfx.P15, true},
		{"all of f16", ranges(65504, 0x1p-24), ranges(1), rfx.P47, true},
		{"more than 47 bits", ranges(1, 0x1p-47), ranges(1), rfx.P47, false},
	} {
		if p, lossless := rfx.Auto(c.a, c.b); p != c.p || lossless != c.lossless {
			t.Errorf("%s: p=%d, %t", c.name, p, lossless)
		}
	}
}

func TestInt128(t *testing.T) {
	toBig := func(x rfx.Int128) *big.Int {
		b := big.NewInt(x.Hi)
		return b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(x.Lo))
	}
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		q := rapid.Int64Range(-p.Max(), p.Max())
		var sum rfx.Int128
		want := new(big.Int)
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			x, y := q.Draw(t, "x"), q.Draw(t, "y")
			sum = sum.AddProduct(x, y)
			want.Add(want, new(big.Int).Mul(big.NewInt(x), big.NewInt(y)))
		}
		if toBig(sum).Cmp(want) != 0 {
			t.Fatalf("sum is %v, want %v", toBig(sum), want)
		}
		if toBig(sum.Neg()).Cmp(want.Neg(want)) != 0 {
			t.Fatalf("negated it is %v, want %v", toBig(sum.Neg()), want)
		}
	})
}

// Round, against package big: sums of every length, scales over the whole range, ties of every kind.
func TestRound(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, x rfx.Int128, scale int) {
		b := big.NewInt(x.Hi)
		b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(x.Lo))
		want := float32Of(scaled(new(big.Float).SetPrec(2000).SetInt(b), scale))
		if got := x.Round(scale); !same(got, want) {
			t.Fatalf("%v·2^%d rounds to %g (%x), want %g (%x)", b, scale, got, math.Float32bits(got), want,
				math.Float32bits(want))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rfx.Int128{Hi: rapid.Int64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		if n := rapid.IntRange(0, 126).Draw(t, "shift"); n >= 64 {
			x = rfx.Int128{Hi: x.Hi >> 63, Lo: uint64(x.Hi >> (n - 64))}
		} else {
			x = rfx.Int128{Hi: x.Hi >> n >> 1, Lo: x.Lo>>n | uint64(x.Hi)<<1<<(63-n)}
		}
		check(t, x, rapid.IntRange(-400, 240).Draw(t, "scale"))
	})
	for at := range 126 { // a leading bit, a tie or its neighbours
		for _, low := range []int64{0, 1, -1, 3, 4, 5} {
			x := rfx.Int(1).Shl(uint(at)).Add(rfx.Int(low).Shl(uint(max(0, at-25))))
			for _, y := range []rfx.Int128{x, x.Add(rfx.Int(1)), x.Add(rfx.Int(-1))} {
				for _, scale := range []int{0, -at, -149 - at, -150 - at, -130 - at, -173, -174, -175, 127 - at, 126 - at, 104, 228,
					-390} {
					check(t, y, scale)
					check(t, y.Neg(), scale)
				}
			}
		}
	}
}

// Whatever digits the operands are cut into, the products' sums along diagonals give the same integer.
func TestDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		bits := rapid.SampledFrom([]int{6, 8, 11, 12, 16, 24}).Draw(t, "bits")
		n := (int(p) + bits) / bits
		q := rapid.Int64Range(-p.Max(), p.Max())
		acc := make([]int64, 2*n-1)
		var want rfx.Int128
		for range rapid.IntRange(0, 9).Draw(t, "entries") {
			x, y := q.Draw(t, "x"), q.Draw(t, "y")
			want = want.AddProduct(x, y)
			dx, dy := make([]int32, n), make([]int32, n)
			rfx.Digits(dx, x, bits)
			rfx.Digits(dy, y, bits)
			for i := range n {
				if limit := int32(1) << (bits - 1); dx[i] > limit || dx[i] < -limit {
					t.Fatalf("digit %d of %d in base 2^%d is %d", i, x, bits, dx[i])
				}
				for j := range n {
					acc[i+j] += int64(dx[i]) * int64(dy[j])
				}
			}
		}
		if got := rfx.Combine(acc, bits); got != want {
			t.Fatalf("combined %v, want %v", got, want)
		}
	})
}

// Digits of panels, where the package's comment says, make the entries' integers again.
func TestPackPanels(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=37,cols=90,density=0.2,seed=4")
	if err != nil {
		t.Fatal(err)
	}
	a.Val[3], a.Val[5] = float32(math.Inf(1)), float32(math.NaN())
	rows := rfx.Rows(a)
	for _, p := range rfx.All {
		for _, v := range []int{8, 16} {
			m, err := cvse.Encode(a, cvse.Options{V: v, Align: rfx.Tile})
			if err != nil {
				t.Fatal(err)
			}
			b, err := rfx.PackPanels(m, rows, p)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) != len(m.Values)*p.Bytes() {
				t.Fatalf("%d bytes for %d slots", len(b), len(m.Values))
			}
			for at, x := range m.Values {
				vector, r := at/v, at%v
				panel := slices.IndexFunc(m.VecPtr, func(end uint32) bool { return int(end) > vector }) - 1
				var got, want int64
				for d := range p.Bytes() {
					got += int64(int8(b[(vector/rfx.Tile*p.Bytes()+d)*v*rfx.Tile+r*rfx.Tile+vector%rfx.Tile])) << (8 * d)
				}
				if row := panel*v + r; row < a.Rows && rfx.IsFinite(x) {
					want = rfx.Quantise(x, p.L(rows[row].E()))
				}
				if got != want {
					t.Fatalf("p=%d: row %d of vector %d, %g, is %d, want %d", p, r, vector, x, got, want)
				}
			}
		}
	}
	m, _ := cvse.Encode(a, cvse.Options{V: 8, Align: 16})
	if _, err := rfx.PackPanels(m, rows, rfx.P23); err == nil {
		t.Error("panels that are not whole tiles are accepted")
	}
}

// That many products of the largest digits fit the accumulator, and one more entry may not.
func TestMaxTerms(t *testing.T) {
	for _, c := range []struct{ bits, n, acc int }{{8, 2, 32}, {8, 3, 32}, {8, 4, 32}, {8, 6, 32}, {12, 4, 32},
		{24, 2, 64}, {16, 2, 64}} {
		terms := rfx.MaxTerms(c.bits, c.n, c.acc)
		entry := new(big.Int).Mul(big.NewInt(int64(c.n)), new(big.Int).Lsh(big.NewInt(1), uint(2*(c.bits-1))))
		limit := new(big.Int).Lsh(big.NewInt(1), uint(c.acc-1))
		if sum := new(big.Int).Mul(entry, big.NewInt(terms)); sum.Cmp(limit) >= 0 {
			t.Errorf("%+v: %d entries overflow", c, terms)
		} else if sum.Add(sum, entry).Cmp(limit) < 0 {
			t.Errorf("%+v: more than %d entries fit", c, terms)
		}
	}
}

// Dot against the formula in package big, and in another order; where it is lossless it is the correctly
// rounded dot product.
func TestDot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		n := rapid.IntRange(0, 8).Draw(t, "n")
		a, b := make([]float32, n), make([]float32, n)
		var row, col rfx.Range
		short := rapid.Bool().Draw(t, "short")
		for k := range n {
			a[k], b[k] = anyFloat(t, "a"), anyFloat(t, "b")
			if short {
				a[k] = float32(rapid.IntRange(-2000, 2000).Draw(t, "a")) * 0x1p-130
				b[k] = float32(rapid.IntRange(-2000, 2000).Draw(t, "b")) * 0x1p-10
			}
			row, col = row.Join(rfx.RangeOf(a[k])), col.Join(rfx.RangeOf(b[k]))
		}
		sum, dot := new(big.Float).SetPrec(2000), new(big.Float).SetPrec(2000)
		la, lb := p.L(row.E()), p.L(col.E())
		for k := range n {
			qa, qb := rne(scaled(exact(float64(a[k])), -la)), rne(scaled(exact(float64(b[k])), -lb))
			sum.Add(sum, new(big.Float).SetPrec(2000).SetInt(qa.Mul(qa, qb)))
			dot.Add(dot, new(big.Float).SetPrec(2000).Mul(exact(float64(a[k])), exact(float64(b[k]))))
		}
		got := rfx.Dot(p, row, col, a, b)
		if want := float32Of(scaled(sum, la+lb)); !same(got, want) {
			t.Fatalf("p=%d: %g, want %g", p, got, want)
		}
		if _, ok := rfx.Auto([]rfx.Range{row}, []rfx.Range{col}); row.Lossless(p) && col.Lossless(p) {
			if want := float32Of(dot); !ok || !same(got, want) {
				t.Fatalf("p=%d is lossless: %g, want %g", p, got, want)
			}
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { a[i], a[j], b[i], b[j] = a[j], a[i], b[j], b[i] })
		if again := rfx.Dot(p, row, col, a, b); !same(got, again) {
			t.Fatalf("in another order: %g, before %g", again, got)
		}
	})
}

// The bound of docs/reproducible.md: half a unit of each row's and column's element, times the others, and
// the one rounding.
func TestErrorBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		n := rapid.IntRange(1, 8).Draw(t, "n")
		spread := rapid.IntRange(0, 60).Draw(t, "spread")
		a, b := make([]float32, n), make([]float32, n)
		var row, col rfx.Range
		for k := range n {
			number := func(name string) float32 {
				return float32(math.Ldexp(rapid.Float64Range(-1, 1).Draw(t, name), -rapid.IntRange(0, spread).Draw(t, "e")))
			}
			a[k], b[k] = number("a"), number("b")
			row, col = row.Join(rfx.RangeOf(a[k])), col.Join(rfx.RangeOf(b[k]))
		}
		la, lb := p.L(row.E()), p.L(col.E())
		dot := new(big.Float).SetPrec(2000)
		bound := scaled(exactInt(int64(n)), la+lb-2)
		for k := range n {
			x, y := exact(float64(a[k])), exact(float64(b[k]))
			bound.Add(bound, scaled(new(big.Float).Abs(y), la-1))
			bound.Add(bound, scaled(new(big.Float).Abs(x), lb-1))
			dot.Add(dot, x.Mul(x, y))
		}
		got := rfx.Dot(p, row, col, a, b)
		above := math.Nextafter32(float32(math.Abs(float64(got))), inf)
		bound.Add(bound, exact((float64(above)-math.Abs(float64(got)))/2))
		if dot.Sub(dot, exact(float64(got))); dot.Abs(dot).Cmp(bound) > 0 {
			t.Fatalf("p=%d: %v · %v is %g, off by %g, more than %g", p, a, b, got, dot, bound)
		}
	})
}

var inf, nan = float32(math.Inf(1)), float32(math.NaN())

func TestDotNonFinite(t *testing.T) {
	for _, c := range []struct {
		a, b []float32
		want float32
	}{
		{[]float32{1, inf}, []float32{5, 1}, inf},
		{[]float32{1, inf}, []float32{5, -0x1p-149}, -inf},
		{[]float32{1, 0x1p-140}, []float32{inf, 1e30}, inf},
		{[]float32{1, inf}, []float32{inf, -1}, nan},
		{[]float32{0, 1}, []float32{inf, 1}, nan},
		{[]float32{1, nan}, []float32{1, 0}, nan},
		{[]float32{math.MaxFloat32, math.MaxFloat32}, []float32{2, -2}, 0}, // not inf−inf
		{[]float32{math.MaxFloat32, 1}, []float32{2, -2}, inf},
		{[]float32{float32(math.Copysign(0, -1))}, []float32{1}, 0},
		{nil, nil, 0},
	} {
		row, col := rfx.Range(0), rfx.Range(0)
		for k := range c.a {
			row, col = row.Join(rfx.RangeOf(c.a[k])), col.Join(rfx.RangeOf(c.b[k]))
		}
		for _, p := range rfx.All {
			if got := rfx.Dot(p, row, col, c.a, c.b); !same(got, c.want) &&
				(c.want == c.want || math.Float32bits(got) != 0x7fc00000) {
				t.Errorf("p=%d: %v · %v is %v, want %v", p, c.a, c.b, got, c.want)
			}
		}
	}
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alpha, r, beta, c := anyFloat(t, "alpha"), anyFloat(t, "r"), anyFloat(t, "beta"), anyFloat(t, "c")
		if rapid.Bool().Draw(t, "near") { // beta·c about as large as alpha·r, or an ulp's half of it
			alpha, beta = 1, float32(rapid.SampledFrom([]int{1, -1, 3}).Draw(t, "sign"))
			e := rapid.SampledFrom([]int{0, 1, 23, 24, 25, 26, 48, 60, 77, 78, 79, 80, 100}).Draw(t, "e")
			r, c = float32(math.Ldexp(float64(r), -e/2)), float32(math.Ldexp(float64(r), -e))
		}
		sum := new(big.Float).SetPrec(2000).Mul(exact(float64(alpha)), exact(float64(r)))
		sum.Add(sum, new(big.Float).SetPrec(2000).Mul(exact(float64(beta)), exact(float64(c))))
		if got, want := rfx.Scale(alpha, r, beta, c), float32Of(sum); !same(got, want) {
			t.Fatalf("%g·%g + %g·%g is %g, want %g", alpha, r, beta, c, got, want)
		}
	})
	for _, c := range []struct{ alpha, r, beta, c, want float32 }{
		{1, 3, 0, nan, 3},
		{1, inf, 1, -inf, nan},
		{-1, inf, 1, 1, -inf},
		{0, inf, 1, 1, nan},
		{1, 1, 1, nan, nan},
		{2, math.MaxFloat32, -1, math.MaxFloat32, math.MaxFloat32},
	} {
		got := rfx.Scale(c.alpha, c.r, c.beta, c.c)
		if !same(got, c.want) && (c.want == c.want || math.Float32bits(got) != 0x7fc00000) {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestRowsAndCols(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 3, Cols: 2, RowPtr: []int64{0, 2, 2, 3}, ColIdx: []int32{0, 1, 1},
		Val: []half.F16{half.F16From(3), half.F16From(-0.25), half.F16From(inf)}}
	rows := rfx.Rows(a)
	want := []rfx.Range{rfx.RangeOf(3).Join(rfx.RangeOf(0.25)), 0, rfx.RangeOf(inf)}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("rows are %v, want %v", rows, want)
	}
	b := &formats.Dense[half.BF16]{Rows: 2, Cols: 2, LD: 3, Data: []half.BF16{0x3f80, 0, 0x7fc0, 0x4000, 0x7f80}}
	cols := rfx.Cols(b)
	if want := []rfx.Range{rfx.RangeOf(1).Join(rfx.RangeOf(2)), rfx.RangeOf(inf)}; fmt.Sprint(cols) != fmt.Sprint(want) {
		t.Errorf("columns are %v, want %v", cols, want)
	}
}

func TestPack(t *testing.T) {
	n := 1500 // entries of a row: more than are converted at a time
	a := &formats.CSR[float32]{Rows: 4, Cols: n, RowPtr: []int64{0, 1, 1, int64(n) + 1, int64(n) + 2}}
	for i := range n + 2 {
		a.ColIdx, a.Val = append(a.ColIdx, int32(i)), append(a.Val, float32(math.Sin(float64(i+1))*0x1p-20))
	}
	a.Val[7] = inf
	rows := rfx.Rows(a)
	for _, p := range rfx.All {
		out := rfx.Pack(a, rows, p)
		if len(out) != (n+2+3)/4*4*p.Size() {
			t.Fatalf("p=%d: %d bytes", p, len(out))
		}
		one := make([]byte, 8)
		for i, x := range a.Val {
			row := map[bool]int{true: 2, false: 0}[i > 0]
			if i == n+1 {
				row = 3
			}
			q := int64(0)
			if rfx.IsFinite(x) {
				q = rfx.Quantise(x, p.L(rows[row].E()))
			}
			p.Put(one, q)
			if got := out[i*p.Size():][:p.Size()]; string(got) != string(one[:p.Size()]) {
				t.Fatalf("p=%d: entry %d, %g, is %x, want %x", p, i, x, got, one[:p.Size()])
			}
		}
	}
	want := map[rfx.P]string{rfx.P15: "feff", rfx.P23: "feffffff", rfx.P31: "feffffff", rfx.P47: "feffffff00000000"}
	for p, w := range want {
		b := make([]byte, p.Size())
		if p.Put(b, -2); fmt.Sprintf("%x", b) != w {
			t.Errorf("p=%d: -2 is %x, want %s", p, b, w)
		}
	}
}

func TestCheck(t *testing.T) {
	for p := range rfx.P(64) {
		ok := p == 15 || p == 23 || p == 31 || p == 47
		if (p.Check() == nil) != ok {
			t.Errorf("p=%d: %v", p, p.Check())
		}
	}
}

func ExampleDot() {
	a, b := []float32{1e8, 1, -1e8}, []float32{1, 3, 1}
	var row, col rfx.Range
	for k := range a {
		row, col = row.Join(rfx.RangeOf(a[k])), col.Join(rfx.RangeOf(b[k]))
	}
	p, lossless := rfx.Auto([]rfx.Range{row}, []rfx.Range{col})
	fmt.Println("in float32:", a[0]*b[0]+a[1]*b[1]+a[2]*b[2])
	fmt.Println("p = 15:    ", rfx.Dot(rfx.P15, row, col, a, b))
	fmt.Println("p =", p, lossless, rfx.Dot(p, row, col, a, b))
	// Output:
	// in float32: 0
	// p = 15:     0
	// p = 31 true 3
}

// Elements counted as rounded to 0 are those that quantising makes 0.
func TestToZero(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	a := &formats.CSR[float32]{Rows: 40, Cols: 50, RowPtr: []int64{0}}
	for range a.Rows {
		for j := range a.Cols {
			x := float32(math.Ldexp(r.NormFloat64(), -r.IntN(40)))
			switch r.IntN(20) {
			case 0:
				x = 0
			case 1:
				x = float32(math.Inf(1))
			case 2:
				x = float32(math.Ldexp(1, -r.IntN(40))) // half units among them
			}
			a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, x)
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	// its columns are a's rows
	b := &formats.Dense[float32]{Rows: a.Cols, Cols: a.Rows, LD: a.Cols, ColMajor: true, Data: a.Val}
	ranges := rfx.Rows(a)
	for _, p := range rfx.All {
		want := int64(0)
		for i := range a.Rows {
			for _, x := range a.Val[a.RowPtr[i]:a.RowPtr[i+1]] {
				if rfx.IsFinite(x) && x != 0 && rfx.Quantise(x, p.L(ranges[i].E())) == 0 {
					want++
				}
			}
		}
		if rows, cols := rfx.RowsToZero(a, ranges, p), rfx.ColsToZero(b, ranges, p); rows != want || cols != want {
			t.Errorf("p = %d: %d by rows and %d by columns, want %d", p, rows, cols, want)
		}
		if want == 0 && p < rfx.P31 {
			t.Errorf("p = %d: nothing to see", p)
		}
	}
}
