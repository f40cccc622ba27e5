// Numbers whose products and sums are exact, in any order and any width that a matrix unit has.

package conformance

import (
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// precision of an element type: bits of a significand, exponent of the least normal number.
type precision struct{ bits, least int }

var precisions = map[dtype.Type]precision{
	dtype.F16: {11, -14}, dtype.BF16: {8, -126}, dtype.F32: {24, -126}, dtype.TF32: {11, -126}, dtype.F64: {53, -1022},
}

// levels are the largest whole numbers up to which 8 bits hold all.
var levels = map[dtype.Type]int64{dtype.S8: 127, dtype.E4M3: 16}

// exact fills in numbers of the T1 classes, and of nonfinite, which is T1± with infinities and NaN
// put in.
//
// Operands are whole numbers, times a power of two for each row of A and each column of B (so that
// 2^g, the grid, differs from output to output), of magnitudes that keep Σ|a·b| ≤ 2^bits in units of
// the grid; |c| adds at most 2^22. doc.go says what that is good for.
func (p *instance) exact() {
	bits, scale, shift, addend := 23, 3, 0, int64(1)<<22
	largestA, largestB := int64(1)<<min(16, precisions[p.typ].bits), int64(128)
	if p.typ == dtype.F64 && p.kind != narrow && p.kind != over {
		bits, addend, largestA, largestB = 52, 1<<51, 1<<40, 1<<27
	}
	switch p.kind {
	case narrow:
		bits, scale, shift, addend = 17, 1, -3, 255
	case over:
		scale, addend = 0, 255
	}
	longest := int64(1)
	for i := range p.m {
		longest = max(longest, p.a.RowPtr[i+1]-p.a.RowPtr[i])
	}
	budget := int64(1) << bits
	mostB := max(1, min(largestB, budget/longest))
	scaleOf := func(stream, i int) int { return shift + int(below(int64(2*scale+1), p.seed, stream, i, 0)) - scale }
	powers := func(stream, n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = math.Ldexp(1, scaleOf(stream, i))
		}
		return list
	}
	rows, cols := powers(streamScaleA, p.m), powers(streamScaleB, p.n)
	// whole makes a whole number of at most that magnitude of a draw.
	whole := func(z uint64, most int64) float64 {
		x := 1 + int64(z>>1%uint64(most))
		if p.class != SameSign && z>>63 == 1 {
			x = -x
		}
		return float64(x)
	}
	for i := range p.m {
		draws := lineOf(p.seed, streamA, i)
		first, end := p.a.RowPtr[i], p.a.RowPtr[i+1]
		most := max(1, min(largestA, budget/(max(1, end-first)*mostB)))
		levelled := most >= 4 && p.quant != dtype.Invalid // each group of columns has a scale of its own
		if p.quant != dtype.Invalid {
			most = min(max(1, most/4), levels[p.quant])
		}
		for e := first; e < end; e++ {
			j := int(p.a.ColIdx[e])
			if p.kind == zeros && below(3, p.seed, streamStored, i, j) == 0 {
				p.a.Val[e] = p.zero(streamStored, i, j)
				continue
			}
			x := whole(draws.at(j), most) * rows[i]
			if levelled {
				x *= float64(int(1) << below(3, p.seed, streamScaleA, i, 1+j/formats.ScaleCols))
			}
			p.a.Val[e] = x
		}
	}
	for k := range p.k {
		draws, row := lineOf(p.seed, streamB, k), p.b.Line(k)
		for j := range row {
			row[j] = whole(draws.at(j), mostB) * cols[j]
			if p.kind == zeros && below(9, p.seed, streamB, j, k) == 0 {
				row[j] = p.zero(streamB, j, k)
			}
		}
	}
	if p.c != nil {
		ratio := math.Abs(p.alpha / p.beta)
		if p.class == SameSign {
			ratio *= sign(p.alpha) * sign(p.beta)
		}
		for i := range p.m {
			draws, row := lineOf(p.seed, streamC, i), p.c.Line(i)
			for j := range row {
				row[j] = whole(draws.at(j), addend) * rows[i] * cols[j] * ratio
			}
		}
	}
	p.exactBiases(scaleOf, shift+scale)
	if p.class == NonFinite && p.kind == wide {
		p.pollute()
	}
	p.scalars()
}

// zero is +0 or -0.
func (p *instance) zero(stream, i, j int) float64 {
	return math.Copysign(0, 0.5-float64(draw(p.seed, stream, i, j)>>63))
}

func sign(x float64) float64 { return math.Copysign(1, x) }

// pollute puts infinities and NaN into some places of A, B, C and the bias, and zeros into some of A, where
// they meet in every combination. Most of those in B are met by structural zeros alone.
func (p *instance) pollute() {
	specials := []float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Inf(1)}
	special := func(x *float64, chance int64, stream, i, j int) {
		if z := below(chance*int64(len(specials)), p.seed, stream, i, j); z < int64(len(specials)) {
			*x = specials[z]
		}
	}
	p.entries(func(e, i, j int) {
		if below(8, p.seed, streamStored, i, j) == 0 {
			p.a.Val[e] = p.zero(streamStored, i, j)
		}
		if p.quant != dtype.Invalid {
			return // it holds neither
		}
		special(&p.a.Val[e], 1+16*int64(1+p.k/8), streamSpecialA, i, j)
	})
	for i := range p.b.Data {
		special(&p.b.Data[i], 48, streamSpecialB, i, 0)
	}
	if p.c != nil {
		for i := range p.c.Data {
			special(&p.c.Data[i], 32, streamSpecialC, i, 0)
		}
	}
	for i := range p.bias {
		special(&p.bias[i], 16, streamSpecialBias, i, 0)
	}
}

// subnormal fills in numbers of which A's (kind inB: B's) are subnormal in the problem's type, in part
// or all. Results are normal. A device may take subnormal operands for zeros.
func (p *instance) subnormal() {
	prec := precisions[p.typ]
	unit := prec.least - prec.bits + 1 // the exponent of the least subnormal number
	most, back, mostBack := int64(1)<<prec.bits-1, 100, int64(8)
	switch p.typ {
	case dtype.F16:
		back = 6
	case dtype.F32, dtype.F64: // all operands are subnormal: others would span too far
		most, mostBack = 1023, 1
	}
	value := func(small bool, stream, i, j int) float64 {
		x, n, exp := draw(p.seed, stream, i, j), mostBack, back
		if small {
			n, exp = most, unit
		}
		v := math.Ldexp(float64(1+int64(x>>1%uint64(n))), exp)
		return math.Copysign(v, float64(int64(x)))
	}
	p.entries(func(e, i, j int) { p.a.Val[e] = value(p.kind != inB, streamA, i, j) })
	for k := range p.k {
		for j := range p.n {
			p.b.Set(k, j, value(p.kind == inB, streamB, k, j))
		}
	}
}

// flushed returns the problem with zeros for its subnormal operands.
func (p *instance) flushed() *instance {
	x, a, b := *p, *p.a, *p.b
	x.a, x.b = &a, &b
	least := math.Ldexp(1, precisions[p.typ].least)
	a.Val, b.Data = flush(a.Val, least), flush(b.Data, least)
	return &x
}

// flush returns x with all numbers below least set to 0.
func flush(x []float64, least float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		if v >= least || v <= -least {
			out[i] = v
		}
	}
	return out
}
