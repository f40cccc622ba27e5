// Package oracle says what a sparse product must be, without any kernel's code: exact dot products, the
// error bound that every correct kernel keeps, and the class of a result that is not finite.
//
// The bound (T2): an output c of a row of n entries, summed in any order, any width that matrix units
// have, in σ partial sums, satisfies
//
//	|c − c*| ≤ γ(1+γ)·Σ|a||b|,  γ = 3·(n+σ)·2⁻²³
//
// with c* the exact dot product, subnormal a and b counted as the least normal number of their type, and 2⁻⁵² in place
// of 2⁻²³ where it is computed in f64. docs/bound.md derives it, and what alpha, beta and an epilogue add.
package oracle

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Number is the type that numbers are held in: float32, which f16 and bf16 ones convert to exactly (formats.Convert),
// or float64.
type Number interface{ float32 | float64 }

// Problem is one whose numbers float32 holds.
type Problem = ProblemOf[float32]

// ProblemOf is one multiplication to check: Alpha·A·B + Beta·C, with an epilogue. Leading dimensions and orders are
// free.
type ProblemOf[T Number] struct {
	A           *formats.CSR[T]
	B           *formats.Dense[T]
	C           *formats.Dense[T] // before; may be nil when Beta is 0
	Alpha, Beta float64           // numbers of float32, unless Compute is F64
	Epilogue    EpilogueOf[T]
	// how products were formed: TF32 cuts operands, F64 has sums in f64; otherwise exactly, with sums in f32
	Compute dtype.Type
	Out     dtype.Type // what outputs were rounded to
	Splits  int        // partial sums of a row, 0 or 1 for none
	// Quantised, if set, is the matrix to multiply with: A has its pattern, and values that are not looked at.
	Quantised *formats.Quantised
}

// Result is the outcome of a check.
type Result struct {
	Checked  int64
	MaxRatio float64 // largest error over its bound; a right answer keeps it at most 1
	Bad      int64   // outputs past their bound or of the wrong class
	First    *Wrong  // the first of them by row and column

	// Worst is the largest distance of a finite output from the exact one, and Relative the largest such distance over
	// |alpha|·Σ|a||b| + |beta·c| + |bias| of its output.
	Worst, Relative float64
}

// OK reports whether every checked output was right.
func (r Result) OK() bool { return r.Bad == 0 }

// Wrong is an output that cannot be right.
type Wrong struct {
	Row, Col  int
	Got, Want float64
	Bound     float64
}

func (w *Wrong) Error() string {
	return fmt.Sprintf("C[%d,%d] is %g, must be %g within %g", w.Row, w.Col, w.Got, w.Want, w.Bound)
}

// Check checks outputs got of p. sample bounds the number of outputs checked, spread evenly over the
// matrix in a fixed way; 0 checks all. Rows are shared out over the cores.
func Check[T Number](ctx context.Context, p ProblemOf[T], got *formats.Dense[T], sample int64) (Result, error) {
	rows, n := p.A.Rows, p.B.Cols
	if got.Rows != rows || got.Cols != n || p.B.Rows != p.A.Cols {
		return Result{}, fmt.Errorf("C is %d×%d, A is %d×%d, B is %d×%d", got.Rows, got.Cols, rows, p.A.Cols, p.B.Rows, n)
	}
	if p.Beta != 0 && (p.C == nil || p.C.Rows != rows || p.C.Cols != n) {
		return Result{}, fmt.Errorf("beta is %g but there is no C of %d×%d", p.Beta, rows, n)
	}
	if err := p.Epilogue.check(rows, n); err != nil {
		return Result{}, err
	}
	total := int64(rows) * int64(n)
	if sample <= 0 || sample > total {
		sample = total
	}
	var next atomic.Int64
	const share = 256
	workers := runtime.GOMAXPROCS(0)
	results := make([]Result, workers)
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for {
				from := next.Add(share) - share
				if from >= sample {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				for s := from; s < min(from+share, sample); s++ {
					at := place(s, sample, total)
					results[w].add(p.one(int(at/int64(n)), int(at%int64(n)), got))
				}
			}
		})
	}
	err := g.Wait()
	var r Result
	for _, x := range results {
		r.merge(x)
	}
	return r, err
}

// place spreads sample s of count over total places: one from each of count equal stretches, at a
// position within it that a hash decides, so that no stride of the matrix is favoured.
func place(s, count, total int64) int64 {
	lo, hi := mulDiv(s, total, count), mulDiv(s+1, total, count)
	z := uint64(s) * 0x9e3779b97f4a7c15
	z = (z ^ z>>31) * 0xd6e8feb86659fd93
	return lo + int64((z^z>>32)%uint64(hi-lo))
}

// mulDiv is a·b/c without overflow for the sizes of matrices: a ≤ c.
func mulDiv(a, b, c int64) int64 {
	return b/c*a + b%c*a/c
}

type verdict struct {
	ratio           float64
	worst, relative float64 // distances, as in Result
	wrong           *Wrong
}

func (r *Result) add(v verdict) {
	r.Checked++
	r.MaxRatio = math.Max(r.MaxRatio, v.ratio)
	r.Worst, r.Relative = math.Max(r.Worst, v.worst), math.Max(r.Relative, v.relative)
	if v.wrong != nil {
		r.Bad++
		r.keep(v.wrong)
	}
}

func (r *Result) keep(w *Wrong) {
	if r.First == nil || w.Row < r.First.Row || w.Row == r.First.Row && w.Col < r.First.Col {
		r.First = w
	}
}

func (r *Result) merge(x Result) {
	r.Checked += x.Checked
	r.MaxRatio = math.Max(r.MaxRatio, x.MaxRatio)
	r.Worst, r.Relative = math.Max(r.Worst, x.Worst), math.Max(r.Relative, x.Relative)
	r.Bad += x.Bad
	if x.First != nil {
		r.keep(x.First)
	}
}

// Dot is the exact product of a row of A and a column of B.
type Dot struct {
	Sum Accumulator // of the finite products, when all are
	Abs float64     // Σ|a||b|, rounded up by less than 2⁻³⁰ of it
	// the same with the least normal number in place of subnormal ones: what matrix units align products to
	Aligned float64
	Class   Class
	Entries int

	// Of a quantised row:
	Groups int     // of columns with a scale of their own that have entries
	Raw    float64 // Σ|q||b| without scales, rounded up
	Scale  float64 // the largest magnitude of a scale, at least 1
}

// Class is the kind of number of a result.
type Class uint8

// The classes, by the operands: NaN if any product is NaN or infinities of both signs meet.
const (
	Finite Class = iota
	PosInf
	NegInf
	NaN
)

// Of returns the class of a number.
func Of(x float64) Class {
	switch {
	case math.IsNaN(x):
		return NaN
	case math.IsInf(x, 1):
		return PosInf
	case math.IsInf(x, -1):
		return NegInf
	}
	return Finite
}

// join is the class of a sum of two numbers of these classes.
func (c Class) join(d Class) Class {
	switch {
	case c == Finite:
		return d
	case d == Finite || c == d:
		return c
	}
	return NaN
}

func (c Class) value() float64 {
	return [...]float64{0, math.Inf(1), math.Inf(-1), math.NaN()}[c]
}

// Value is the sum, or the infinity or NaN that it is instead.
func (d *Dot) Value() float64 {
	if d.Class != Finite {
		return d.Class.value()
	}
	return d.Sum.Float64()
}

// At returns the dot product of row i of a and column j of b. Aligned is as Abs.
func At[T Number](a *formats.CSR[T], b *formats.Dense[T], i, j int) *Dot { return at(a, b, i, j, 0) }

// at is At for operands of a type whose least normal number is least.
func at[T Number](a *formats.CSR[T], b *formats.Dense[T], i, j int, least float64) *Dot {
	d := &Dot{}
	for k := a.RowPtr[i]; k < a.RowPtr[i+1]; k++ {
		x, y := float64(a.Val[k]), float64(b.At(int(a.ColIdx[k]), j))
		t := x * y
		if x-x != 0 || y-y != 0 {
			d.Class = d.Class.join(Of(t))
		}
		if d.Class == Finite {
			d.Sum.AddProduct(x, y)
			d.Abs += math.Abs(t)
			d.Aligned += aligned(x, y, least)
		}
	}
	d.Entries = int(a.RowPtr[i+1] - a.RowPtr[i])
	d.Abs *= 1 + 0x1p-30
	d.Aligned *= 1 + 0x1p-30
	return d
}

// aligned is |x||y|, either being at least `least` if neither is 0.
func aligned(x, y, least float64) float64 {
	if x == 0 || y == 0 {
		return 0
	}
	return max(math.Abs(x), least) * max(math.Abs(y), least)
}

// Row returns the dot products of row i of a and all columns of b, as At does one by one. Most sums are exact in
// float64: those are added up side by side.
func Row[T Number](a *formats.CSR[T], b *formats.Dense[T], i int) []Dot {
	n := b.Cols
	_, wide := any(T(0)).(float64)
	dots, sums, abs, lost := make([]Dot, n), make([]float64, n), make([]float64, n), make([]float64, n)
	if b.ColMajor {
		for j := range dots {
			dots[j] = *At(a, b, i, j)
		}
		return dots
	}
	for k := a.RowPtr[i]; k < a.RowPtr[i+1]; k++ {
		x, line := float64(a.Val[k]), b.Line(int(a.ColIdx[k]))
		sums, abs, lost := sums[:len(line)], abs[:len(line)], lost[:len(line)]
		for j, y := range line {
			t := x * float64(y)
			before := sums[j]
			s := before + t
			part := s - before
			lost[j] += math.Abs((before - (s - part)) + (t - part)) // as in AddProduct; NaN where something is not finite
			sums[j] = s
			abs[j] += math.Abs(t)
		}
		if !wide {
			continue
		}
		for j, y := range line {
			if inexact(x, float64(y), x*float64(y)) {
				lost[j] = math.NaN()
			}
		}
	}
	for j := range dots {
		if lost[j] != 0 {
			dots[j] = *At(a, b, i, j)
			continue
		}
		sum := abs[j] * (1 + 0x1p-30)
		dots[j] = Dot{Sum: Accumulator{sum: sums[j]}, Abs: sum, Aligned: sum, Entries: int(a.RowPtr[i+1] - a.RowPtr[i])}
	}
	return dots
}

// inexact reports whether t is not surely the product of x and y, which is that of float32 numbers.
func inexact(x, y, t float64) bool {
	if float64(float32(x)) == x && float64(float32(y)) == y {
		return false
	}
	return !(math.FMA(x, y, -t) == 0 && (math.Abs(t) > 0x1p-900 || x == 0 || y == 0))
}

// AtQuantised is At for a quantised matrix. Its entries are the exact products of their scales and values, which two
// numbers of float32 hold together.
func AtQuantised[T Number](a *formats.Quantised, b *formats.Dense[T], i, j int, least float64) *Dot {
	d := &Dot{Scale: 1}
	last := -1
	for k := a.RowPtr[i]; k < a.RowPtr[i+1]; k++ {
		col := int(a.ColIdx[k])
		scale, q, y := float64(a.Scale(i, col)), float64(formats.Level(a.Kind, a.Q[k])), float64(b.At(col, j))
		x := scale * q // of 31 bits: exact
		hi := float64(float32(x))
		d.Entries++
		if group := col / formats.ScaleCols; group != last {
			last = group
			d.Groups++
		}
		t := x * y // less than 2⁻⁵³ of it off
		d.Class = d.Class.join(Of(t))
		if d.Class == Finite {
			d.Sum.AddProduct(hi, y)
			d.Sum.AddProduct(x-hi, y)
			d.Abs += math.Abs(t)
			d.Aligned += math.Abs(scale) * aligned(q, y, least)
			d.Raw += math.Abs(q * y)
			d.Scale = math.Max(d.Scale, math.Abs(scale))
		}
	}
	d.Abs *= 1 + 0x1p-30
	d.Aligned *= 1 + 0x1p-30
	return d
}

// dot is the exact product for output (i, j).
func (p *ProblemOf[T]) dot(i, j int) *Dot {
	least := p.Compute.LeastNormal()
	if p.Quantised != nil {
		return AtQuantised(p.Quantised, p.B, i, j, least)
	}
	return at(p.A, p.B, i, j, least)
}

// one judges output (i, j).
func (p *ProblemOf[T]) one(i, j int, got *formats.Dense[T]) verdict {
	d := p.dot(i, j)
	c := float64(got.At(i, j))
	old := 0.0
	if p.Beta != 0 {
		old = float64(p.C.At(i, j)) * p.Beta
	}
	class := d.Class
	if class != Finite {
		class = Of(class.value() * p.Alpha)
	}
	e, bias := p.Epilogue, float64(p.Epilogue.bias(i, j))
	class = class.join(Of(old)).join(Of(bias))
	if class != Finite {
		want := e.Activation.of(class.value())
		if Of(c) == Of(want) && (Of(want) != Finite || c == want) {
			return verdict{}
		}
		return verdict{ratio: math.Inf(1), wrong: &Wrong{i, j, c, want, 0}}
	}
	alpha := math.Abs(p.Alpha)
	want := math.FMA(p.Alpha, d.Sum.Float64(), old) + bias
	bound := alpha*(Bound(d.Entries, p.Splits+d.Groups, d.Aligned, p.Compute)+underflow(d)) +
		scaling(alpha*d.Abs, math.Abs(old), p)
	if p.Compute == dtype.F64 { // what is wanted is rounded itself: three times at most
		bound += 0x1p-51 * (alpha*d.Abs + math.Abs(old) + math.Abs(bias))
	}
	want, bound = e.apply(want, bound, p.Compute)
	bound += rounding(math.Abs(want)+bound, p.Out)
	if p.Compute == dtype.F64 && p.Out == dtype.F32 {
		bound += math.Max(math.Abs(want)*0x1p-24, 0x1p-150)
	}
	if overflows(math.Abs(want)+bound, p.Out) && math.IsInf(c, 0) && math.Signbit(c) == math.Signbit(want) {
		return verdict{}
	}
	// A step may overflow even where the sum does not: then C may be infinite or NaN, or what an activation makes of that.
	sums := dtype.F32
	if p.Compute == dtype.F64 {
		sums = dtype.F64
	}
	all := alpha*d.Abs + math.Abs(old) + math.Abs(bias)
	if (Of(c) != Finite || e.Activation != NoActivation && c == 0) &&
		(overflows(alpha*d.Abs, sums) || overflows(d.Raw, sums) || overflows(math.Abs(old), sums)) {
		return verdict{}
	}
	err := math.Abs(c - want)
	switch {
	case err == 0:
		return verdict{}
	case Of(err) != Finite: // c is an infinity or NaN, and must not be
		return verdict{ratio: err / bound, wrong: &Wrong{i, j, c, want, bound}}
	}
	v := verdict{ratio: err / bound, worst: err, relative: err / all}
	if err > bound {
		v.wrong = &Wrong{i, j, c, want, bound}
	}
	return v
}

// Bound is γ(1+γ)·aligned, of a Dot, with the operands' rounding when products are formed in tf32, and the underflow
// of as many products as there are entries.
func Bound(entries, splits int, aligned float64, compute dtype.Type) float64 {
	unit, least := 0x1p-23, 0x1p-126
	if compute == dtype.F64 {
		unit, least = 0x1p-52, 0x1p-1022
	}
	gamma := 3 * float64(entries+max(splits, 0)) * unit
	bound := gamma * (1 + gamma) * aligned
	if compute == dtype.TF32 {
		bound += 0x1p-9 * aligned // two operands cut to 11 bits: 2·2⁻¹⁰, and their product's cross term
	}
	return bound + float64(entries)*least
}

// underflow bounds what products without their scales lose where they may be flushed to zero: kernels form them of
// values that are smaller by 2⁻⁹ at most.
func underflow(d *Dot) float64 {
	if d.Groups == 0 {
		return 0
	}
	return float64(d.Entries) * 0x1p-117 * d.Scale
}

// scaling bounds the roundings of alpha·x + beta·c.
func scaling[T Number](x, old float64, p *ProblemOf[T]) float64 {
	switch {
	case p.Alpha == 1 && p.Beta == 0:
		return 0
	case p.Compute == dtype.F64:
		return 0x1p-51 * (x + old) * (1 + 0x1p-20)
	}
	return 0x1p-22 * (x + old) * (1 + 0x1p-20)
}

// rounding bounds the error of rounding a number of magnitude up to x to the type of C.
func rounding(x float64, t dtype.Type) float64 {
	switch t {
	case dtype.F16:
		return math.Max(x*0x1p-11, 0x1p-25)
	case dtype.BF16:
		return math.Max(x*0x1p-8, 0x1p-134)
	case dtype.F64:
		return x * 0x1p-52
	}
	return 0
}

// overflows reports whether a number of magnitude up to x may round to an infinity of the type of C.
func overflows(x float64, t dtype.Type) bool {
	switch t {
	case dtype.F16:
		return x >= 65520
	case dtype.BF16:
		return x >= 0x1.ffp127
	case dtype.F64:
		return math.IsInf(x, 1)
	}
	return x > math.MaxFloat32
}
