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
	x := p.magnitudes()
	rows, cols := x.powers(streamScaleA, p.m), x.powers(streamScaleB, p.n)
	p.exactA(x, rows)
	for k := range p.k {
		draws, row := lineOf(p.seed, streamB, k), p.b.Line(k)
		for j := range row {
			row[j] = p.number(draws.at(j), x.mostB) * cols[j]
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
				row[j] = p.number(draws.at(j), x.addend) * rows[i] * cols[j] * ratio
			}
		}
	}
	p.exactBiases(x.scaleOf, x.shift+x.scale)
	if p.class == NonFinite && p.kind == wide {
		p.pollute()
	}
	p.scalars()
}

// magnitudes is how large the numbers of an exact instance may be: whole numbers, times 2^(shift-scale) to
// 2^(shift+scale).
type magnitudes struct {
	seed         uint64
	scale, shift int
	budget       int64 // of Σ|a·b|, in units of the grid
	mostA, mostB int64
	addend       int64 // of |c|, likewise
}

func (p *instance) magnitudes() magnitudes {
	bits, x := 23, magnitudes{seed: p.seed, scale: 3, addend: 1 << 22, mostA: 1 << min(16, precisions[p.typ].bits),
		mostB: 128}
	if p.typ == dtype.F64 && p.kind != narrow && p.kind != over {
		bits, x.addend, x.mostA, x.mostB = 52, 1<<51, 1<<40, 1<<27
	}
	switch p.kind {
	case narrow:
		bits, x.scale, x.shift, x.addend = 17, 1, -3, 255
	case over:
		x.scale, x.addend = 0, 255
	}
	longest := int64(1)
	for i := range p.m {
		longest = max(longest, p.a.RowPtr[i+1]-p.a.RowPtr[i])
	}
	x.budget = int64(1) << bits
	x.mostB = max(1, min(x.mostB, x.budget/longest))
	return x
}

// scaleOf is the exponent of line i's power of two.
func (x magnitudes) scaleOf(stream, i int) int {
	return x.shift + int(below(int64(2*x.scale+1), x.seed, stream, i, 0)) - x.scale
}

func (x magnitudes) powers(stream, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = math.Ldexp(1, x.scaleOf(stream, i))
	}
	return list
}

// number makes a whole number of at most that magnitude of a draw.
func (p *instance) number(z uint64, most int64) float64 {
	x := 1 + int64(z>>1%uint64(most))
	if p.class != SameSign && z>>63 == 1 {
		x = -x
	}
	return float64(x)
}

// exactA fills in A's values, those of row i times rows[i].
func (p *instance) exactA(x magnitudes, rows []float64) {
	for i := range p.m {
		draws := lineOf(p.seed, streamA, i)
		first, end := p.a.RowPtr[i], p.a.RowPtr[i+1]
		most := max(1, min(x.mostA, x.budget/(max(1, end-first)*x.mostB)))
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
			v := p.number(draws.at(j), most) * rows[i]
			if levelled {
				v *= float64(int(1) << below(3, p.seed, streamScaleA, i, 1+j/formats.ScaleCols))
			}
			p.a.Val[e] = v
		}
	}
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

// subnormal fills in numbers; A's (kind inB: B's) are subnormal in the problem's type, in part or all. Results are
// normal. A device may take subnormal operands for zeros.
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
