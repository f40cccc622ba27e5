// Numbers of class T2: what real data look like, and what is hard on them.

package conformance

import (
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// general fills in random numbers, rounded to the problem's type.
func (p *instance) general() {
	for i := range p.m {
		draws := lineOf(p.seed, streamA, i)
		for e := p.a.RowPtr[i]; e < p.a.RowPtr[i+1]; e++ {
			k := int(p.a.ColIdx[e])
			x := p.any(draws.at(k)) * p.scaleA(i, k)
			if p.kind == cancel {
				x = math.Copysign(1+x/64, float64(e%2)-0.5)
			}
			p.a.Val[e] = p.element(x)
		}
	}
	for k := range p.k {
		draws, row := lineOf(p.seed, streamB, k), p.b.Line(k)
		for j := range row {
			x := p.any(draws.at(j)) * p.scaleB(k, j)
			if p.kind == cancel {
				x = 1 + x/64
			}
			row[j] = p.element(x)
		}
	}
	if p.c != nil {
		for i := range p.m {
			draws, row := lineOf(p.seed, streamC, i), p.c.Line(i)
			for j := range row {
				// Few bits, so that C is stored exactly in any type.
				row[j] = math.Round(64*p.any(draws.at(j))) / 64
			}
		}
	}
	p.generalBiases()
	if p.kind == wild {
		p.pollute()
	}
}

// hasSubnormal reports whether a kind of T2 has subnormal operands, which a device may take for zeros.
func hasSubnormal(kind string) bool { return kind == low || kind == lowB || kind == beside }

// The powers of two of the kinds low, lowB and beside: subnormal numbers, what they are multiplied by, and the others
// of their matrix; small ones of A and B, and large ones of B.
type scales struct{ low, by, others, smallA, smallB, large float64 }

func (p *instance) scales() scales {
	if p.typ == dtype.F16 {
		return scales{0x1p-16, 1, 1, 0x1p-12, 0x1p-12, 0x1p12}
	}
	return scales{0x1p-128, 0x1p60, 0x1p-60, 0x1p-60, 0x1p-30, 0x1p60}
}

// lowered is the scale of element k of line i where every third line is subnormal, and of the next half the elements.
func (s scales) lowered(i, k int) float64 {
	if i%3 == 0 || i%3 == 1 && k%2 == 0 {
		return s.low
	}
	return s.others
}

// scaleA is the factor of A's element in row i and column k.
func (p *instance) scaleA(i, k int) float64 {
	if !hasSubnormal(p.kind) {
		return 1
	}
	switch s := p.scales(); {
	case p.kind == low:
		return s.lowered(i, k)
	case p.kind == lowB:
		return s.by
	case i%2 == 0 && k%2 == 1:
		return 0
	default:
		return s.smallA
	}
}

// scaleB is the factor of B's element in row k and column j.
func (p *instance) scaleB(k, j int) float64 {
	if !hasSubnormal(p.kind) {
		return 1
	}
	switch s := p.scales(); {
	case p.kind == low:
		return s.by
	case p.kind == lowB:
		return s.lowered(j, k)
	case k%2 == 1:
		return s.large
	default:
		return s.smallB
	}
}

// any makes of a draw a number near 1 in magnitude, by integers and exact steps.
func (p *instance) any(z uint64) float64 {
	x := -2.0
	for s := 0; s < 64; s += 16 { // four uniform numbers: near enough to a normal distribution
		x += float64(z>>s&0xffff) / 0x10000
	}
	if p.typ == dtype.F64 { // with as many digits
		x += math.Ldexp(float64(mix(z+1)>>30), -52)
	}
	if p.kind == spans {
		x = math.Ldexp(x, int(mix(z)%17)-8)
	}
	return x
}

// element rounds x to the problem's type.
func (p *instance) element(x float64) float64 {
	switch p.typ {
	case dtype.F16:
		return float64(half.F16From(float32(x)).Float32())
	case dtype.BF16:
		return float64(half.BF16From(float32(x)).Float32())
	case dtype.F64:
		return x
	}
	return float64(float32(x))
}
