// Probes: what a device's float matrix unit does with a sum, found out by products made for it. They describe;
// nothing in the suite depends on them.

package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Probe describes a float matrix unit with operands of one type, as measured through the first kernel variant that uses
// it.
type Probe struct {
	Type    string `json:"type"`
	Variant string `json:"variant"`
	// FractionBits is the largest j for which 1 + 2⁻ʲ − 1, summed in one instruction, is 2⁻ʲ in whatever order the terms
	// stand: the bits that a unit keeps of a term below the largest. -1: fewer than can be tested.
	FractionBits int `json:"fraction_bits"`
	// FusedTerms is the number of terms of an instruction that are aligned and added at once: a small term that is this
	// far from two large ones that cancel is not lost. 1: at most two; 0: nothing is ever lost.
	FusedTerms int `json:"fused_terms"`
	// Rounding is that of a sum inside an instruction, ChainRounding that from one to the next.
	Rounding      string `json:"rounding"`
	ChainRounding string `json:"chain_rounding"`
	// SubnormalInputs and SubnormalOutputs are kept or flushed to zero; other if neither. The latter is
	// empty where products of the type cannot be that small.
	SubnormalInputs  string `json:"subnormal_inputs"`
	SubnormalOutputs string `json:"subnormal_outputs,omitempty"`
	// NaN is the bits that a product gives for Inf − Inf. (It may be the kernel's, since kernels compute outputs again
	// that are not finite.)
	NaN string `json:"nan"`
	// ComplementAdder: the unit computes −1 + 24 + 32 wrongly (not as 55), because it complements negative addends without
	// adding the 1 that belongs to it (RDNA3).
	ComplementAdder bool `json:"complement_adder"`
}

// The ways to round that a probe tells apart.
const (
	nearestEven = "nearest even"
	nearestAway = "nearest away"
	towardZero  = "toward zero"
	roundDown   = "down"
	roundUp     = "up"
	unclear     = "other"
)

// probes describes the units of the device in a manifest. A probe that fails is noted; an error ends the run.
func (r *runner) probes(ctx context.Context, m *Manifest) error {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.TF32} {
		k, v := r.prober(typ)
		if v == nil {
			continue
		}
		p, err := r.probe(ctx, k, v)
		switch {
		case errors.Is(err, backend.ErrDeviceLost) || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case err != nil:
			m.ProbeErrors = append(m.ProbeErrors, fmt.Sprintf("%s/%s: %v", k.Name, v.Name, err))
		default:
			m.Probes = append(m.Probes, *p)
		}
	}
	return nil
}

// prober returns the first variant that multiplies numbers of a type on a matrix unit for that type.
func (r *runner) prober(typ dtype.Type) (*spec.Format, *spec.Variant) {
	for _, k := range r.kernels {
		for _, v := range k.Variants {
			if v.In != typ || len(v.Need.Shapes) == 0 || !v.Met(r.dev.Caps()) {
				continue
			}
			if a := v.Need.Shapes[0].A; a == typ {
				return k, v
			}
		}
	}
	return nil, nil
}

// A sum is the terms of an output, each a product of two numbers of the type; those of a later instruction
// stand chainAt places behind.
type sum []term

type term struct{ a, b float64 }

// chainAt is a multiple of every instruction's depth.
const chainAt = 64

// probe sums what tells the properties apart.
func (r *runner) probe(ctx context.Context, k *spec.Format, v *spec.Variant) (*Probe, error) {
	q := &prober{r: r, k: k, v: v, ctx: ctx}
	p := &Probe{Type: v.In.String(), Variant: k.Name + "/" + v.Name}
	p.FractionBits = q.fraction()
	p.FusedTerms = q.fused(p.FractionBits)
	p.Rounding = q.rounding(1)
	p.ChainRounding = q.rounding(chainAt)
	p.SubnormalInputs = q.subnormalInputs()
	if v.In != dtype.F16 {
		p.SubnormalOutputs = kept(q.sum(power(-120, -12)), math.Ldexp(1, -132))
	}
	p.NaN = fmt.Sprintf("0x%08x", math.Float32bits(float32(q.sum(sum{{math.Inf(1), 1}, {math.Inf(1), -1}}))))
	p.ComplementAdder = q.sum(sum{{-1, 1}, {1, 24}, {1, 32}}) != 55
	return p, q.err
}

// prober sums on the device. After an error sums are 0.
type prober struct {
	r   *runner
	k   *spec.Format
	v   *spec.Variant
	ctx context.Context
	err error
}

// power is the term 2^x·2^y.
func power(x, y int) sum { return sum{{math.Ldexp(1, x), math.Ldexp(1, y)}} }

// sum multiplies a row by a column.
func (q *prober) sum(s sum) float64 {
	if q.err != nil {
		return 0
	}
	// Eight rows alike make a panel full in every format.
	const rows, cols = 8, 8
	k := len(s)
	t := &test{target: target{kernel: q.k, prec: q.v.In}, layout: layout{c: dtype.F32, a: q.v.In.Storage(),
		b: q.v.In.Storage()}}
	t.recipe = recipe{class: General, typ: q.v.In, m: rows, k: k, n: cols, alpha: 1}
	p := &instance{recipe: t.recipe, b: formats.NewDense[float64](k, cols)}
	p.a = &formats.CSR[float64]{Rows: rows, Cols: k, RowPtr: []int64{0}}
	for range rows {
		for i, x := range s {
			p.a.ColIdx, p.a.Val = append(p.a.ColIdx, int32(i)), append(p.a.Val, float64(x.a))
		}
		p.a.RowPtr = append(p.a.RowPtr, int64(len(p.a.Val)))
	}
	for i, x := range s {
		for j := range cols {
			p.b.Set(i, j, float64(x.b))
		}
	}
	mem, err := q.r.raw(q.ctx, t, p, q.v)
	if q.err = err; err != nil {
		return 0
	}
	return unpack(dtype.F32, get(dtype.F32, mem, 0))
}

// fraction finds FractionBits. Products are scaled so that operands stay normal in every type.
func (q *prober) fraction() int {
	const big = 15
	bits := -1
	for j := big - 1; j <= mostFraction; j++ {
		one, less := power(big, 0), power(-14, big-j+14)
		minus := sum{{-one[0].a, 1}}
		for _, s := range []sum{concat(one, less, minus), concat(less, one, minus)} {
			if q.sum(s) != float64(math.Ldexp(1, big-j)) {
				return bits
			}
		}
		bits = j
	}
	return bits
}

func concat(ss ...sum) sum {
	var out sum
	for _, s := range ss {
		out = append(out, s...)
	}
	return out
}

// fused finds FusedTerms: 1 − 1 stands first, a term too small to be kept with them farther and farther behind, with
// stored zeros between.
func (q *prober) fused(fraction int) int {
	const big = 15
	if fraction == mostFraction {
		return 0
	}
	j := min(mostFraction, max(fraction, 14)+3)
	one := power(big, 0)
	less := power(-14, big-j+14)
	for at := 2; at < chainAt; at++ {
		s := append(concat(one, sum{{-one[0].a, 1}}), make(sum, at-2)...)
		if q.sum(append(s, less...)) != 0 {
			return at - b2i(at == 2)
		}
	}
	return chainAt
}

func b2i(x bool) int {
	if x {
		return 1
	}
	return 0
}

// mostFraction is the most FractionBits that can be determined with normal operands of every type.
const mostFraction = 43

// rounding finds how 1 + 2⁻²⁴ and 1 + 2⁻²³ + 2⁻²⁴, ties between two numbers of f32, and their negatives are
// rounded, the last term at places behind the first of its instruction.
func (q *prober) rounding(at int) string {
	outcome := [4]bool{}
	for i := range outcome {
		sign := math.Copysign(1, 0.5-float64(i%2))
		s := sum{{sign, 1}, {sign * math.Ldexp(1, -12), math.Ldexp(float64(i/2), -11)}}
		for len(s) < at {
			s = append(s, term{})
		}
		got := q.sum(append(s, term{sign * math.Ldexp(1, -12), math.Ldexp(1, -12)}))
		least := 1 + math.Ldexp(float64(i/2), -23)
		switch float64(got) * sign {
		case least:
		case least + math.Ldexp(1, -23):
			outcome[i] = true // away from zero
		default:
			return unclear
		}
	}
	ways := map[[4]bool]string{
		{false, false, true, true}: nearestEven, {true, true, true, true}: nearestAway, {}: towardZero,
		{false, true, false, true}: roundDown, {true, false, true, false}: roundUp,
	}
	if way, ok := ways[outcome]; ok {
		return way
	}
	return unclear
}

// subnormalInputs multiplies the least number of the type, in A and in B, by a power of two.
func (q *prober) subnormalInputs() string {
	prec, up := precisions[q.v.In], 8.0
	if q.v.In != dtype.F16 {
		up = 0x1p60 // so that the product is normal
	}
	least := math.Ldexp(1, prec.least-prec.bits+1)
	a, b := q.sum(sum{{least, up}}), q.sum(sum{{up, least}})
	if a != b {
		return unclear
	}
	return kept(a, up*least)
}

func kept(got float64, want float64) string {
	switch float64(got) {
	case want:
		return "kept"
	case 0:
		return "flushed"
	}
	return unclear
}
