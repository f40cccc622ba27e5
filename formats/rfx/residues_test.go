package rfx_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats/rfx"
)

func bigOf(x rfx.Int128) *big.Int {
	t := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
	return t.Add(t, new(big.Int).SetUint64(x.Lo))
}

func TestModuli(t *testing.T) {
	for i, m := range rfx.Moduli {
		for _, n := range rfx.Moduli[:i] {
			if m >= n || new(big.Int).GCD(nil, nil, big.NewInt(int64(m)), big.NewInt(int64(n))).Int64() != 1 {
				t.Errorf("%d and %d: want coprime moduli in descending order", n, m)
			}
		}
	}
}

// Any sum of as many products as a number of moduli is for comes back from its residues, the largest ones of both signs
// included.
func TestResidues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		k := rapid.Int64Range(1, 1<<31).Draw(t, "k")
		n, err := rfx.ModuliFor(k, p)
		if err != nil {
			if p != rfx.P47 || k < 1<<30 {
				t.Fatal(err)
			}
			return
		}
		n = rapid.IntRange(n, len(rfx.Moduli)).Draw(t, "moduli")
		checkSum(t, rfx.NewResidues(n), rfx.Moduli[:n], p, k)
	})
}

// So it is with any moduli up to 256 that are pairwise coprime and whose product is large enough.
func TestAnyModuli(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrecision(t)
		k := rapid.Int64Range(1, 1<<31).Draw(t, "k")
		twice := new(big.Int).Mul(big.NewInt(p.Max()), big.NewInt(p.Max()))
		twice.Mul(twice, big.NewInt(2*k))
		moduli := anyModuli(t, twice)
		checkSum(t, rfx.ResiduesOf(moduli), moduli, p, k)
	})
}

// anyModuli draws pairwise coprime numbers up to 256 until their product is above least.
func anyModuli(t *rapid.T, least *big.Int) []int {
	var moduli []int
	product := big.NewInt(1)
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for _, m := range r.Perm(257) {
		x := big.NewInt(int64(m))
		if m < 2 || new(big.Int).GCD(nil, nil, x, product).Cmp(big.NewInt(1)) != 0 {
			continue
		}
		moduli = append(moduli, m)
		if product.Mul(product, x); product.Cmp(least) > 0 {
			return moduli
		}
	}
	t.Fatalf("coprime numbers up to 256 have the product %v, below %v", product, least)
	return nil
}

// checkSum draws a sum of k products, and holds what its residues give against it.
func checkSum(t *rapid.T, r *rfx.Residues, moduli []int, p rfx.P, k int64) {
	element := rapid.OneOf(rapid.Int64Range(-p.Max(), p.Max()), rapid.SampledFrom([]int64{-p.Max(), p.Max(), 0}))
	sums, want := make([]int64, len(moduli)), new(big.Int)
	terms := rapid.Int64Range(1, min(20, k)).Draw(t, "terms")
	for j := range terms {
		times := int64(1)
		if j == terms-1 { // the last product stands for all that are left
			times = k - j
		}
		a, b := element.Draw(t, "a"), element.Draw(t, "b")
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, product.Mul(product, big.NewInt(times)))
		for i := range sums {
			sums[i] += int64(r.A(a, i)) * int64(r.B(b, i)) * times
		}
	}
	if got := bigOf(r.Combine(sums)); got.Cmp(want) != 0 {
		t.Fatalf("with the moduli %v the sum is %v, want %v", moduli, got, want)
	}
}

// One modulus fewer than ModuliFor says cannot hold the largest sums.
func TestModuliFor(t *testing.T) {
	for _, p := range rfx.All {
		for _, k := range []int64{1, 2, 512, 4096, 8192, 65535, 1 << 20} {
			n, err := rfx.ModuliFor(k, p)
			if err != nil {
				t.Fatal(err)
			}
			largest := new(big.Int).Mul(big.NewInt(p.Max()), big.NewInt(p.Max()))
			largest.Mul(largest, big.NewInt(64*k))
			m := big.NewInt(31)
			for _, x := range rfx.Moduli[:n-1] {
				m.Mul(m, big.NewInt(int64(x)))
			}
			if m.Cmp(largest) > 0 {
				t.Errorf("p = %d, %d products: %d moduli are enough, not %d", p, k, n-1, n)
			}
			if m.Mul(m, big.NewInt(int64(rfx.Moduli[n-1]))); m.Cmp(largest) <= 0 {
				t.Errorf("p = %d, %d products: %d moduli are too few", p, k, n)
			}
		}
	}
	if _, err := rfx.ModuliFor(1<<62, rfx.P47); err == nil {
		t.Error("2^62 products at p = 47 are accepted")
	}
}

// The table's limbs and digit weights are what they are said to be.
func TestResidueTables(t *testing.T) {
	for _, p := range rfx.All {
		n, err := rfx.ModuliFor(1<<16-1, p)
		if err != nil {
			t.Fatal(err)
		}
		r, limbs := rfx.NewResidues(n), p.Limbs()
		words := r.Table(limbs)
		fractions := (n+1)/2*4 + 4
		if len(words) != fractions+(n+1)*limbs+1 {
			t.Fatalf("p = %d: a table of %d words", p, len(words))
		}
		checkFractions(t, p, n, words[:fractions])
		words = words[fractions:]
		number := func(i int) *big.Int {
			x := new(big.Int)
			for l := limbs - 1; l >= 0; l-- {
				x.Add(x.Lsh(x, rfx.LimbBits), big.NewInt(int64(words[i*limbs+l])))
			}
			return x
		}
		for i, m := range rfx.Moduli[:n] {
			if w := number(i); w.Mul(w, big.NewInt(int64(m))).Cmp(number(n)) != 0 {
				t.Errorf("p = %d: weight %d times its modulus is %v, want %v", p, i, w, number(n))
			}
		}
		weights := r.DigitWeights()
		rapid.Check(t, func(t *rapid.T) {
			q := rapid.Int64Range(-p.Max(), p.Max()).Draw(t, "q")
			d := make([]int32, 8)
			rfx.Digits(d, q, 8)
			for i, m := range rfx.Moduli[:n] {
				sum := int64(0)
				for j, x := range d {
					sum += int64(x) * int64(int8(weights[2*i+j/4]>>(8*(j%4))))
				}
				if (sum-int64(r.A(q, i)))%int64(m) != 0 {
					t.Fatalf("modulus %d: %d's digits give %d, want %d", m, q, sum, r.A(q, i))
				}
			}
		})
	}
}

// checkFractions: weighted by fractions, the residues of any sum add up to 2⁶⁴ times its fraction of the product, as far
// off as the table says at most.
func checkFractions(t *testing.T, p rfx.P, n int, words []uint32) {
	t.Helper()
	fraction := func(i int) (f uint64) {
		for j := range 4 {
			f |= uint64(words[i/2*4+j]>>(16*(i%2))&0xffff) << (16 * j)
		}
		return f
	}
	float := func(i int) float64 { return math.Float64frombits(uint64(words[i]) | uint64(words[i+1])<<32) }
	product := big.NewInt(1)
	for _, m := range rfx.Moduli[:n] {
		product.Mul(product, big.NewInt(int64(m)))
	}
	scaled, off := float(len(words)-4), float(len(words)-2)
	want, _ := new(big.Float).SetInt(product).Float64()
	if scaled != want*0x1p-64 || off >= 1<<11 {
		t.Errorf("p = %d: the product is %g, and weights are off by %g", p, scaled, off)
	}
	r := rfx.NewResidues(n)
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.Int64Range(-p.Max(), p.Max()).Draw(t, "q")
		var f uint64
		for i, m := range rfx.Moduli[:n] {
			f += fraction(i) * uint64((int(r.A(q, i))+m)%m)
		}
		// off − (f − 2⁶⁴·q/product) and the same with the other sign are positive.
		exact := new(big.Float).SetPrec(300).Quo(new(big.Float).SetPrec(300).SetInt(new(big.Int).Lsh(big.NewInt(q), 64)),
			new(big.Float).SetInt(product))
		d, _ := new(big.Float).Sub(new(big.Float).SetPrec(300).SetInt64(int64(f)), exact).Float64()
		if math.Abs(d) > off {
			t.Fatalf("p = %d: the fraction of %d is off by %g, more than %g", p, q, d, off)
		}
	})
}
