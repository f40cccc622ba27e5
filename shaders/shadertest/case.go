// Multiplications with known answers.

package shadertest

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Case is a multiplication C = Alpha·A·B + Beta·C with an Epilogue. Its values are small integers, whose sums are the
// same in any order, or, if Real, any numbers. Nothing may be read or written in the padding of B
// and C: it is NaN, as is C where Beta is 0.
type Case struct {
	Name        string
	Pattern     [][]int32 // of A: the columns of each row, ascending
	K, N        int       // columns of A and of B
	LDB, LDC    int       // 0: the least
	Pad         int       // elements behind each of C's rows, at least
	BCol, CCol  bool      // B or C is column-major
	Alpha, Beta float64   // an Alpha of 0 means 1
	Epilogue    spec.Epilogue
	Real        bool
	Units       int  // said to be the device's, if positive: how work is shared out may depend on it
	Fold        bool // bends the grids, see Fold

	double    bool // elements and sums are of f64
	quantised bool // A has values that 8 bits hold exactly
}

// InOrders returns the cases and each with a column-major B, a column-major C, and both, as far as the variant takes
// these orders.
func InOrders(v *spec.Variant, cs []Case) []Case {
	all := slices.Clone(cs)
	for o := 1; o < 4; o++ {
		for _, q := range cs {
			if !v.TakesOrders(q.N, o != 2, o != 1) {
				continue
			}
			q.Name, q.BCol, q.CCol = fmt.Sprintf("%s, order %d", q.Name, o), o != 2, o != 1
			all = append(all, q)
		}
	}
	return all
}

// Basics are small products that most formats take. pattern returns one in which rows, alike in groups of `alike` where
// the format makes use of that, have each column with a probability.
func Basics(pattern func(rows, k, alike int, density float64) [][]int32) []Case {
	padded := pattern(29, 60, 8, 0.3)
	return []Case{
		{Name: "one number", Pattern: Spread(1, 1), K: 1, N: 1},
		{Name: "no entries", Pattern: make([][]int32, 5), K: 3, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 3, N: 9},
		{Name: "K=1", Pattern: pattern(37, 1, 1, 0.7), K: 1, N: 40, Alpha: 2},
		{Name: "one dense row", Pattern: Spread(999, 0, 0, 999, 0), K: 999, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "scattered", Pattern: pattern(40, 90, 1, 0.1), K: 90, N: 72, Alpha: 3},
		{Name: "padding", Pattern: padded, K: 60, N: 33, LDB: 64, LDC: 77, Beta: -1},
		{Name: "rows of C apart by whole quads", Pattern: padded, K: 60, N: 34, LDC: 40, Beta: 2},
		{Name: "inexact", Pattern: pattern(50, 300, 4, 0.2), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
}

// Columns is a case with each number of columns, which its name tells.
func Columns(q Case, numbers ...int) []Case {
	var cases []Case
	for _, n := range numbers {
		x := q
		x.Name, x.N = fmt.Sprintf("%s, %d columns", q.Name, n), n
		cases = append(cases, x)
	}
	return cases
}

// RunTwice is Run, and again, also as on devices with other numbers of units: the bits of C must be the same.
func (q Case) RunTwice(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, out dtype.Type,
	units ...int) {
	t.Helper()
	first := q.Run(t, dev, k, v, out)
	for _, q.Units = range append([]int{q.Units}, units...) {
		if !bytes.Equal(first, q.Run(t, dev, k, v, out)) {
			t.Errorf("%s, %d columns: a second run, as on %d units (0: the device's), gave other bits", q.Name, q.N,
				q.Units)
		}
	}
}

// Run multiplies with a variant whose output type is out, holds every element of C against the
// answer, and returns C.
func (q Case) Run(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, out dtype.Type) []byte {
	t.Helper()
	q.double = v.In == dtype.F64
	if !q.double {
		q.Alpha, q.Beta = float64(float32(q.Alpha)), float64(float32(q.Beta))
	}
	q.quantised = v.Quant != dtype.Invalid
	x := q.built(v.In.Storage(), out)
	x.p.Caps = dev.Caps()
	if q.Units > 0 {
		x.p.Caps.Units = q.Units
	}
	q.multiply(t, dev, k, v, x, func(l *spec.Launch) {
		if q.Fold {
			Fold(k.Program, l)
		}
	})
	x.check(t, q, v.In == dtype.TF32)
	return x.c
}

// built is a case in the element types of a variant.
type built struct {
	a    formats.Sparse
	b, c []byte
	bias []byte // nil: none
	p    spec.Problem
	want []float64 // of C, row after row; NaN where nothing may be written
	sum  []float64 // Σ|a·b|+|c| of each output, for the bound
}

// builtCases are those that several variants multiply, and keptBytes about what they take.
var (
	builtCases = map[string]*built{}
	keptBytes  int
)

// built returns the case in an element type, with a C of its own.
func (q Case) built(in, out dtype.Type) *built {
	const most = 256 << 20
	pattern := fnv.New64a()
	for _, cols := range q.Pattern {
		fmt.Fprint(pattern, len(cols), ":")
		pattern.Write(backend.Bytes(cols))
	}
	rest := q
	rest.Name, rest.Pattern = "", nil
	key := fmt.Sprintf("%v %v %+v %d rows %x", in, out, rest, len(q.Pattern), pattern.Sum64())
	kept := builtCases[key]
	if kept == nil {
		kept = build(q, in, out)
		if keptBytes += len(kept.b) + len(kept.c) + 16*len(kept.want); keptBytes > most {
			clear(builtCases)
			keptBytes = 0
		}
		builtCases[key] = kept
	}
	x := *kept
	x.c = bytes.Clone(kept.c)
	return &x
}

func build(q Case, in, out dtype.Type) *built {
	r := rand.New(rand.NewPCG(7, 9))
	if q.Alpha == 0 {
		q.Alpha = 1
	}
	q.LDB, q.LDC = max(q.LDB, (q.N+7)&^7), max(q.LDC, q.N+q.Pad)
	m := len(q.Pattern)
	x := &built{
		want: make([]float64, m*q.LDC), sum: make([]float64, m*q.LDC),
		p: spec.Problem{M: m, K: q.K, N: q.N, LDB: q.LDB, LDC: q.LDC, Out: out, Alpha: q.Alpha, Beta: q.Beta,
			Epilogue: q.Epilogue},
	}
	numbers := make([]float64, q.K*q.LDB)
	for i := range numbers {
		numbers[i] = math.NaN()
		if i%q.LDB < q.N {
			numbers[i] = q.number(r)
		}
	}
	b := NewArray(in, numbers)
	for i := range numbers {
		numbers[i] = b.At(i)
	}
	c := x.start(q, r)
	x.a, x.b = x.multiply(q, r, in, numbers), b.Data
	x.finish(q, r)
	x.c = NewArray(out, c).Data
	return x
}

// entry draws an element of A.
func (q *Case) entry(r *rand.Rand) float64 {
	if q.quantised && q.Real {
		return math.Copysign(math.Ldexp(float64(8+r.IntN(8)), -4-r.IntN(3)), float64(r.IntN(2))-0.5)
	}
	return q.number(r)
}

// number draws an element of B, C or the bias.
func (q *Case) number(r *rand.Rand) float64 {
	switch {
	case q.Real && q.double:
		return r.Float64()*2 - 1
	case q.Real:
		return float64(r.Float32()*2 - 1)
	}
	return float64(r.IntN(9) - 4)
}

// start draws C as it is before: NaN where it must not be read. It begins want and sum with beta·C.
func (x *built) start(q Case, r *rand.Rand) []float64 {
	c := make([]float64, len(x.want))
	for i := range c {
		c[i], x.want[i] = math.NaN(), math.NaN()
		if i%q.LDC >= q.N {
			continue
		}
		x.want[i] = 0
		if q.Beta != 0 {
			c[i] = float64(r.IntN(9) - 4)
			x.want[i] = q.Beta * c[i]
			x.sum[i] = math.Abs(x.want[i])
		}
	}
	return c
}

// multiply draws A and adds alpha·A·b to want and sum.
func (x *built) multiply(q Case, r *rand.Rand, in dtype.Type, b []float64) formats.Sparse {
	a := Ones[float64](q.Pattern, q.K)
	for i := range a.Val {
		a.Val[i] = q.entry(r)
	}
	vals := NewArray(in, a.Val)
	for i := range q.Pattern {
		want, sum := x.want[i*q.LDC:][:q.N], x.sum[i*q.LDC:][:q.N]
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			scaled := q.Alpha * vals.At(int(p))
			for j, y := range b[int(a.ColIdx[p])*q.LDB:][:q.N] {
				y *= scaled
				want[j] += y
				sum[j] += math.Abs(y)
			}
		}
	}
	return formats.ConvertTo(a, in)
}

// finish draws the bias, NaN between its elements, and applies the epilogue to what is wanted.
func (x *built) finish(q Case, r *rand.Rand) {
	if q.Epilogue.None() {
		return
	}
	bias := make([]float64, (max(x.p.M, q.N)+1)<<q.Epilogue.BiasShift)
	for i := range bias {
		bias[i] = math.NaN()
		if i%(1<<q.Epilogue.BiasShift) == 0 {
			bias[i] = q.number(r)
		}
	}
	if q.Epilogue.Bias != spec.NoBias {
		x.bias = NewArray(dtype.F32, bias).Data
		if q.double {
			x.bias = backend.Bytes(bias)
		}
	}
	for i := range x.want {
		row, col := i/q.LDC, i%q.LDC
		if col >= q.N {
			continue
		}
		switch q.Epilogue.Bias {
		case spec.RowBias:
			x.want[i] += bias[row<<q.Epilogue.BiasShift]
		case spec.ColBias:
			x.want[i] += bias[col<<q.Epilogue.BiasShift]
		}
		x.sum[i] += math.Abs(x.want[i]) // the error of an activation is relative to its argument
		x.want[i] = activated(q.Epilogue.Activation, x.want[i])
	}
}

// activated returns an activation of x.
func activated(a spec.Activation, x float64) float64 {
	switch a {
	case spec.ReLU:
		return max(x, 0)
	case spec.GELU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case spec.SiLU:
		return x / (1 + math.Exp(-x))
	}
	return x
}

// unitRoundoff is the relative error of a number that is rounded to a type.
var unitRoundoff = map[dtype.Type]float64{dtype.F16: 0x1p-11, dtype.BF16: 0x1p-8, dtype.F32: 0x1p-24,
	dtype.F64: 0x1p-52}

// check holds C against what is wanted: the same bits where sums are exact, else a bound that grows
// with the length of the sum.
func (x *built) check(t *testing.T, q Case, tf32 bool) {
	t.Helper()
	eps := 3e-7 * float64(q.K+1)
	if q.double {
		eps = 0x1p-49 * float64(q.K+1)
	}
	if tf32 {
		eps += 0x1p-10 // each operand keeps 11 bits
	}
	c, roundoff := Array{x.p.Out, x.c}, unitRoundoff[x.p.Out]
	for i, want := range x.want {
		got, bound := c.At(i), roundoff
		if q.Real || q.Epilogue.Activation > spec.ReLU {
			bound = bound*math.Abs(want) + eps*x.sum[i]
		} else {
			bound, want = 0, round(x.p.Out, want)
		}
		if want != want && got == got || want == want && !(math.Abs(got-want) <= bound) && got != want {
			t.Fatalf("C[%d,%d] is %v, want %v ± %v", i/x.p.LDC, i%x.p.LDC, got, want, bound)
		}
	}
}
