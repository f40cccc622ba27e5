// What must hold of the problems themselves.

package conformance

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// recipes are those of all cases, each once.
func recipes() []recipe {
	seen := map[recipe]bool{}
	var rs []recipe
	for _, t := range list(shaders.Formats(), Full, func(string) bool { return true }) {
		if !seen[t.recipe] {
			seen[t.recipe] = true
			rs = append(rs, t.recipe)
		}
	}
	return rs
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range list(shaders.Formats(), Full, func(string) bool { return true }) {
		if seen[c.id()] {
			t.Errorf("two cases are named %s", c.id())
		}
		seen[c.id()] = true
	}
	if !seen["cvse/v8/f16/T1±/m29k60n33/vec8/beta-1/ldpad"] {
		t.Error("the case that the package's documentation names is not there")
	}
}

// exponents returns ⌊log₂|x|⌋ and the exponent of the lowest bit that is set; x is not 0.
func exponents(x float64) (high, low int) {
	if b := math.Float64bits(x); b>>52&0x7ff != 0 {
		high = int(b>>52&0x7ff) - 1023
		return high, high - 52 + bits.TrailingZeros64(b|1<<52)
	}
	f, e := math.Frexp(x)
	m := uint64(math.Abs(f) * (1 << 53))
	return e - 1, e - 53 + bits.TrailingZeros64(m)
}

// terms collects an output's terms.
type terms struct {
	sum       float64
	low, high int // the grid; the largest sum of two operands' exponents
	pos, neg  bool
}

func (s *terms) add(x float64, operands int) {
	if x == 0 {
		return
	}
	_, low := exponents(x)
	s.low, s.high = min(s.low, low), max(s.high, operands)
	s.sum += math.Abs(x)
	s.pos, s.neg = s.pos || x > 0, s.neg || x < 0
}

// TestExactProblems: the problems of T1 meet the conditions under which every order and width of
// summation gives the same bits (docs of the package), in outputs of every row.
func TestExactProblems(t *testing.T) {
	mixed := 0
	for _, r := range recipes() {
		if r.class != SameSign && r.class != MixedSign || r.seed > 1 || r.m*r.k > 1<<20 {
			continue
		}
		p := r.inputs()
		holds := precisions[r.typ]
		for _, list := range [][]float64{p.a.Val, p.b.Data} {
			if i := slices.IndexFunc(list, func(x float64) bool { return !operand(r.typ, holds, x) }); i >= 0 {
				t.Fatalf("%s: %g is not a normal number of type %v", r.name(), list[i], r.typ)
			}
		}
		for i := range p.m {
			for j := 0; j < p.n; j += 1 + p.n*len(p.a.Val)/100000 {
				s := p.terms(i, j)
				if s.low == math.MaxInt {
					continue
				}
				digits, least := 24, -126
				if r.typ == dtype.F64 {
					digits, least = 53, -1022
				}
				if s.sum > math.Ldexp(1, s.low+digits) || s.high > s.low+digits-1 || s.low < least {
					t.Fatalf("%s: C[%d,%d] has Σ %g and exponents up to %d on the grid 2^%d", r.name(), i, j, s.sum, s.high, s.low)
				}
				if s.pos && s.neg {
					mixed++
					if r.class == SameSign {
						t.Fatalf("%s: C[%d,%d] has terms of both signs", r.name(), i, j)
					}
				}
			}
		}
	}
	if mixed < 1000 {
		t.Errorf("only %d outputs have terms of both signs", mixed)
	}
}

// terms collects those of an output, in units in which alpha is 1.
func (p *instance) terms(i, j int) terms {
	s := terms{low: math.MaxInt, high: math.MinInt}
	for e := p.a.RowPtr[i]; e < p.a.RowPtr[i+1]; e++ {
		x, y := float64(p.a.Val[e]), float64(p.b.At(int(p.a.ColIdx[e]), j))
		if x*y != 0 {
			hx, _ := exponents(x)
			hy, _ := exponents(y)
			s.add(x*y, hx+hy)
		}
	}
	if p.c != nil {
		s.add(float64(p.beta)*float64(p.c.At(i, j))/float64(p.alpha), math.MinInt)
	}
	if p.bias != nil {
		s.add(float64(p.bias[[]int{i, j}[p.epilogue.Bias-spec.RowBias]])/float64(p.alpha), math.MinInt)
	}
	return s
}

// operand tells whether x is 0 or a normal number of a type, which has that precision.
func operand(typ dtype.Type, p precision, x float64) bool {
	if x == 0 {
		return true
	}
	high, low := exponents(x)
	return high >= p.least && high-low < p.bits && unpack(typ.Storage(), pack(typ.Storage(), x)) == x
}

// TestExpectedIsExact: outputs of T1 are numbers of f32 before they are rounded to C's type, and those
// of narrow problems are within f16's range but have too many bits for it, those of kind over are not.
func TestExpectedIsExact(t *testing.T) {
	for _, r := range recipes() {
		if r.class != MixedSign || r.seed > 1 || r.kind == wide && r.m > 70 {
			continue
		}
		p := problems.get(r)
		rounded, outside := 0, 0
		sums := make([]float64, p.n)
		for i := range p.m {
			clear(sums)
			for e := p.a.RowPtr[i]; e < p.a.RowPtr[i+1]; e++ {
				x, row := p.a.Val[e], p.b.Data[int(p.a.ColIdx[e])*p.b.LD:]
				for j := range sums {
					sums[j] += x * row[j]
				}
			}
			for j, s := range sums {
				s *= float64(p.alpha)
				if p.c != nil {
					s += float64(p.beta) * float64(p.c.At(i, j))
				}
				switch p.epilogue.Bias {
				case spec.RowBias:
					s += float64(p.bias[i])
				case spec.ColBias:
					s += float64(p.bias[j])
				}
				if p.epilogue.Activation == spec.ReLU {
					s = max(s, 0)
				}
				got := p.want[i*p.n+j]
				if float64(got) != s {
					t.Fatalf("%s: C[%d,%d] is expected to be %g, is %g", r.name(), i, j, got, s)
				}
				if h := unpack(dtype.F16, pack(dtype.F16, got)); math.IsInf(float64(h), 0) {
					outside++
				} else if h != got {
					rounded++
				}
			}
		}
		if r.kind == narrow && (rounded == 0 || outside > 0) || r.kind == over && outside == 0 {
			t.Errorf("%s: as f16, %d outputs are rounded and %d are infinite", r.name(), rounded, outside)
		}
	}
}

// TestNonFiniteProblems: they have outputs of every class, and structural zeros that meet infinities.
func TestNonFiniteProblems(t *testing.T) {
	for _, s := range nonFiniteShapes {
		r := recipe{class: NonFinite, typ: dtype.F16, m: s.m, k: s.k, n: s.n, pattern: s.pattern, alpha: 1, beta: s.beta,
			seed: 1}
		p := r.build()
		var nan, pos, neg, finite, untouched int
		for i, x := range p.want {
			switch x := float64(x); {
			case math.IsNaN(x):
				nan++
			case math.IsInf(x, 1):
				pos++
			case math.IsInf(x, -1):
				neg++
			default:
				finite++
				for k := range p.k {
					if b := float64(p.b.At(k, i%p.n)); math.IsNaN(b) || math.IsInf(b, 0) {
						untouched++
						break
					}
				}
			}
		}
		if min(nan, pos, neg, finite, untouched) == 0 && s.pattern != "dense" {
			t.Errorf("%s: %d NaN, %d and %d infinite, %d finite outputs, %d of these beside infinities", r.name(), nan, pos, neg, finite, untouched)
		}
	}
}

// TestSubnormalProblems: they have subnormal operands, normal outputs, and both answers differ.
func TestSubnormalProblems(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		out := dtype.F32
		if typ == dtype.F64 {
			out = dtype.F64
		}
		for _, s := range subnormalShapes {
			r := recipe{class: Subnormal, typ: typ, m: s.m, k: s.k, n: s.n, pattern: s.pattern, kind: s.kind, alpha: 1, seed: 1}
			p := r.build()
			least := math.Ldexp(1, precisions[typ].least)
			list := p.a.Val
			if s.kind == inB {
				list = p.b.Data
			}
			if !slices.ContainsFunc(list, func(x float64) bool { return math.Abs(x) < least }) {
				t.Errorf("%s: no operand is subnormal", r.name())
			}
			for _, x := range p.want {
				if x != 0 && math.Abs(x) < math.Ldexp(1, precisions[out].least) {
					t.Fatalf("%s: output %g is subnormal", r.name(), x)
				}
			}
			if d := p.expect(out); len(d) != 2 || d[0] == d[1] {
				t.Errorf("%s: digests %v", r.name(), d)
			}
		}
	}
}

// TestSubnormalGeneralProblems: of kinds low and lowB some operands are subnormal, of kind beside zeros of A meet large
// elements of B in rows whose sums are small, and no row's products are all below f32's normal numbers.
func TestSubnormalGeneralProblems(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		for _, kind := range []string{low, lowB, beside} {
			p := recipe{class: General, typ: typ, m: 67, k: 129, n: 33, pattern: "eighth", kind: kind, alpha: 1, seed: 1}.build()
			least, subnormal, zeros, small := math.Ldexp(1, precisions[typ].least), 0, 0, 0
			for _, x := range append(slices.Clone(p.a.Val), p.b.Data...) {
				if x != 0 && math.Abs(x) < least {
					subnormal++
				}
			}
			p.entries(func(e, i, j int) {
				if p.a.Val[e] == 0 && math.Abs(p.b.At(j, 0)) > 1 {
					zeros++
				}
			})
			for i := range p.m {
				if s := oracle.At(p.a, p.b, i, 0).Abs; s > 0 && s < 0x1p-126 {
					small++
				}
			}
			if typ != dtype.F64 && kind != beside && subnormal < 100 || kind == beside && zeros < 100 || small > 0 {
				t.Errorf("%v, %s: %d subnormal operands, %d zeros beside large elements, %d rows of small sums", typ, kind, subnormal, zeros, small)
			}
		}
	}
}

// TestHalvesProblems: among sums and biases of kind halves are ties that are rounded up and down, sums that a hair
// keeps from being ties, that cancel, that become a power of two, that are below 0, and with a large alpha sums that
// overflow.
func TestHalvesProblems(t *testing.T) {
	for _, s := range reproducibleEpilogueShapes {
		if s.kind != halves {
			continue
		}
		for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			r := recipe{class: Reproducible, typ: typ, m: s.m, k: s.k, n: s.n, pattern: s.pattern, alpha: s.alpha,
				epilogue: s.epilogue, kind: halves, p: 15, seed: 1}
			if r.alpha == 0 {
				r.alpha = 1
			}
			p := r.build()
			found := map[string]int{}
			for i := range p.m {
				for j := range p.n {
					bias := p.bias[[]int{i, j}[p.epilogue.Bias-spec.RowBias]]
					x, y := 0.0, float64(bias)
					for k := range p.k {
						x += float64(p.a.Val[i*p.k+k]) * float64(p.b.At(k, j)) * float64(p.alpha)
					}
					if float64(float32(x)) != x {
						t.Fatalf("%s: C[%d,%d] is %g before its bias, no number of float32", r.name(), i, j, x)
					}
					for what, is := range map[string]bool{
						"cancels": x+y == 0, "negative": x+y < 0, "overflows": math.IsInf(float64(float32(x+y)), 0),
						"carries": math.Float32bits(float32(x+y))<<9 == 0 && float64(float32(x+y)) != x+y,
					} {
						found[what] += b2i(is)
					}
					unit, _ := exponents(x)
					switch rest := math.Abs(y) / math.Ldexp(1, unit-24); { // bias in halves of the sum's last place
					case rest == 1:
						found["tie, "+map[bool]string{true: "up", false: "down"}[math.Abs(float64(float32(x+y))) > math.Abs(x+y)]]++
					case math.Abs(rest-1) < 0x1p-20:
						found["beside a tie"]++
					}
				}
			}
			wants := []string{"negative", "carries", "tie, up", "tie, down", "beside a tie"}
			if math.Abs(float64(r.alpha)) > 1 {
				wants = append(wants, "overflows")
			} else {
				wants = append(wants, "cancels")
			}
			for _, what := range wants {
				if found[what] == 0 {
					t.Errorf("%s: no output: %s (%v)", r.name(), what, found)
				}
			}
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		t        dtype.Type
		in, want uint64
	}{
		{dtype.F32, 0x80000000, 0}, {dtype.F32, 0xff800001, 0x7fc00000}, {dtype.F32, 0x7fffffff, 0x7fc00000},
		{dtype.F32, 0xff800000, 0xff800000}, {dtype.F32, 0x80000001, 0x80000001},
		{dtype.F16, 0x8000, 0}, {dtype.F16, 0xfc01, 0x7e00}, {dtype.F16, 0xfc00, 0xfc00}, {dtype.F16, 0x3c00, 0x3c00},
		{dtype.F64, 1 << 63, 0}, {dtype.F64, 0xfff<<52 | 1, 0x7ff8 << 48}, {dtype.F64, 0xfff << 52, 0xfff << 52},
		{dtype.BF16, 0x8000, 0}, {dtype.BF16, 0xff81, 0x7fc0}, {dtype.BF16, 0x7f80, 0x7f80},
	} {
		if got := canonical(c.t, c.in); got != c.want {
			t.Errorf("%v %#x becomes %#x, want %#x", c.t, c.in, got, c.want)
		}
	}
}

// TestSentinel: its words are NaN in every type, so that what reads it shows.
func TestSentinel(t *testing.T) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for i := range len(sentinel) / typ.Size() {
			if x := unpack(typ, get(typ, sentinel, i)); x == x {
				t.Fatalf("word %d of type %v is %g", i, typ, x)
			}
		}
	}
}
