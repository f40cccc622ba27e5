// Numbers of class T2: what real data look like, and what is hard on them.

package conformance

import (
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// general fills in random numbers, rounded to the problem's type.
func (p *instance) general() {
	p.entries(func(e, i, j int) {
		x := p.any(streamA, i, j)
		if p.kind == cancel {
			x = math.Copysign(1+x/64, float64(e%2)-0.5)
		}
		p.a.Val[e] = p.element(x)
	})
	for k := range p.k {
		for j := range p.n {
			x := p.any(streamB, k, j)
			if p.kind == cancel {
				x = 1 + x/64
			}
			p.b.Set(k, j, p.element(x))
		}
	}
	if p.c != nil {
		for i := range p.m {
			for j := range p.n {
				// Few bits, so that C is stored exactly in any type.
				p.c.Set(i, j, math.Round(64*p.any(streamC, i, j))/64)
			}
		}
	}
	p.generalBiases()
	if p.kind == wild {
		p.pollute()
	}
}

// any returns a number near 1 in magnitude, made of integers and exact steps.
func (p *instance) any(stream, i, j int) float64 {
	z := draw(p.seed, stream, i, j)
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
