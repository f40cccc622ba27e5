// The reproducible product (T3): what RFX-p must give, to the last bit. See docs/reproducible.md and
// package rfx, whose code is not used here: elements are brought to integers by float64 arithmetic that
// is exact, and sums are rounded by way of float64.

package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/formats"
)

// precisions are the p that RFX-p is defined for.
var precisions = []int{15, 23, 31, 47}

// block is the columns whose integers are held at a time.
const block = 128

// Reproducible returns the RFX-p product of p, in float32 whatever Out is, and Compute left out of
// account. Rows are shared out over the cores.
func Reproducible(ctx context.Context, p Problem, precision int) (*formats.Dense[float32], error) {
	if !slices.Contains(precisions, precision) {
		return nil, fmt.Errorf("reproducible precision %d is not one of %v", precision, precisions)
	}
	if p.B.Rows != p.A.Cols {
		return nil, fmt.Errorf("A is %d×%d, B is %d×%d", p.A.Rows, p.A.Cols, p.B.Rows, p.B.Cols)
	}
	if p.Beta != 0 && (p.C == nil || p.C.Rows != p.A.Rows || p.C.Cols != p.B.Cols) {
		return nil, fmt.Errorf("beta is %g but there is no C of %d×%d", p.Beta, p.A.Rows, p.B.Cols)
	}
	if err := p.Epilogue.check(p.A.Rows, p.B.Cols); err != nil {
		return nil, err
	}
	if act := p.Epilogue.Activation; act != NoActivation && act != ReLU {
		return nil, errors.New("reproducible mode has no activation but ReLU")
	}
	f := &fixed{Problem: p, precision: precision, out: formats.NewDense[float32](p.A.Rows, p.B.Cols)}
	if err := f.rows(ctx); err != nil {
		return nil, err
	}
	for first := 0; first < p.B.Cols; first += block {
		if err := f.columns(ctx, first, min(block, p.B.Cols-first)); err != nil {
			return nil, err
		}
	}
	return f.out, nil
}

// Precision returns the least p at which the product of a and b loses no bit of any element, and true;
// the largest and false if there is none.
func Precision(a *formats.CSR[float32], b *formats.Dense[float32]) (p int, lossless bool) {
	var vectors [][]float32
	for i := range a.Rows {
		vectors = append(vectors, a.Val[a.RowPtr[i]:a.RowPtr[i+1]])
	}
	for j := range b.Cols {
		vectors = append(vectors, column(b, j))
	}
	for _, p = range precisions {
		if !slices.ContainsFunc(vectors, func(v []float32) bool { return loses(v, p) }) {
			return p, true
		}
	}
	return p, false
}

func column(b *formats.Dense[float32], j int) []float32 {
	v := make([]float32, b.Rows)
	for k := range v {
		v[k] = b.At(k, j)
	}
	return v
}

// scale returns the exponent L of a vector's unit, and whether an element is not finite.
func scale(v []float32, precision int) (l int, wild bool) {
	largest := 0.0
	for _, x := range v {
		if Of(float64(x)) != Finite {
			wild = true
		} else {
			largest = math.Max(largest, math.Abs(float64(x)))
		}
	}
	frac, e := math.Frexp(largest) // largest = 2·frac·2^(e−1); 0 if there is none
	if largest == 0 || 2*frac <= 2039.0/1024 {
		e--
	}
	return e - (precision - 1), wild
}

// units returns x·2^−l, exactly; 0 for an x that is not finite.
func units(x float32, l int) float64 {
	if Of(float64(x)) != Finite {
		return 0
	}
	return math.Ldexp(float64(x), -l)
}

func loses(v []float32, precision int) bool {
	l, _ := scale(v, precision)
	return slices.ContainsFunc(v, func(x float32) bool { u := units(x, l); return u != math.Trunc(u) })
}

// quantise writes the integers of v, stride apart.
func quantise(q []int64, stride int, v []float32, l int) {
	for i, x := range v {
		q[i*stride] = int64(math.RoundToEven(units(x, l)))
	}
}

// fixed is a product under way.
type fixed struct {
	Problem
	precision int
	out       *formats.Dense[float32]

	qa    []int64 // of A's entries
	la    []int
	wildA []bool

	first, n int     // the block of columns
	qb       []int64 // row k of B at k·n
	lb       []int
	wildB    []bool
}

// rows brings A to integers.
func (f *fixed) rows(ctx context.Context) error {
	f.qa, f.la, f.wildA = make([]int64, len(f.A.Val)), make([]int, f.A.Rows), make([]bool, f.A.Rows)
	return each(ctx, f.A.Rows, func(i int) {
		lo, hi := f.A.RowPtr[i], f.A.RowPtr[i+1]
		f.la[i], f.wildA[i] = scale(f.A.Val[lo:hi], f.precision)
		quantise(f.qa[lo:hi], 1, f.A.Val[lo:hi], f.la[i])
	})
}

// columns brings n columns of B from the first to integers and multiplies.
func (f *fixed) columns(ctx context.Context, first, n int) error {
	f.first, f.n = first, n
	f.qb, f.lb, f.wildB = make([]int64, f.B.Rows*n), make([]int, n), make([]bool, n)
	err := each(ctx, n, func(j int) {
		v := column(f.B, first+j)
		f.lb[j], f.wildB[j] = scale(v, f.precision)
		if len(v) > 0 {
			quantise(f.qb[j:], n, v, f.lb[j])
		}
	})
	if err != nil {
		return err
	}
	return each(ctx, f.A.Rows, f.row)
}

// row multiplies row i of A.
func (f *fixed) row(i int) {
	var sums [block]wide
	lo, hi := f.A.RowPtr[i], f.A.RowPtr[i+1]
	// A product is below 2^(2·precision): as many as that leaves room for are summed in 64 bits.
	for room := int64(1) << max(0, 62-2*f.precision); lo < hi; lo = min(lo+room, hi) {
		var part [block]int64
		last := min(lo+room, hi)
		for e := lo; e < last; e++ {
			a, b := f.qa[e], f.qb[int(f.A.ColIdx[e])*f.n:][:f.n]
			if room == 1 {
				for j, y := range b {
					sums[j].addProduct(a, y)
				}
				continue
			}
			for j, y := range b {
				part[j] += a * y
			}
		}
		for j := range f.n {
			sums[j].add(part[j])
		}
	}
	for j := range f.n {
		r := sums[j].float32(f.la[i] + f.lb[j])
		if f.wildA[i] || f.wildB[j] {
			if c := At(f.A, f.B, i, f.first+j).Class; c != Finite {
				r = canonical(c.value())
			}
		}
		f.out.Set(i, f.first+j, f.finished(f.scaled(r, i, f.first+j), i, f.first+j))
	}
}

// canonical makes every NaN the one with the bits 0x7fc00000, and every zero +0.
func canonical(x float64) float32 {
	switch f := float32(x); {
	case f != f:
		return math.Float32frombits(0x7fc00000)
	case f == 0:
		return 0
	default:
		return f
	}
}

// scaled returns alpha·r + beta·c, rounded once.
func (f *fixed) scaled(r float32, i, j int) float32 {
	x, y := float64(f.Alpha)*float64(r), 0.0 // exact
	if f.Beta != 0 {
		y = float64(f.Beta) * float64(f.C.At(i, j))
	}
	return sum(x, y)
}

// finished returns r as the epilogue leaves it: the bias is added, rounded once, and then ReLU makes +0 of what is not
// above 0.
func (f *fixed) finished(r float32, i, j int) float32 {
	if f.Epilogue.none() {
		return r
	}
	r = sum(float64(r), float64(f.Epilogue.bias(i, j)))
	if f.Epilogue.Activation == ReLU && r <= 0 {
		return 0
	}
	return r
}

// sum returns x + y rounded once to float32.
func sum(x, y float64) float32 {
	s := x + y
	if Of(s) != Finite {
		return canonical(s)
	}
	// What s lacks of x + y, exactly.
	x1 := s - y
	lack := (x - x1) + (y - (s - x1))
	return canonical(odd(s, lack))
}

// odd returns s, the sum of two numbers rounded to nearest, rounded to odd instead: where something is
// lacking and s's last bit is 0, it is the neighbour on the other side of the exact sum. Rounding that
// to the fewer bits of float32 gives what rounding the exact sum gives.
func odd(s, lack float64) float64 {
	if lack == 0 || math.Float64bits(s)&1 == 1 {
		return s
	}
	return math.Nextafter(s, math.Copysign(math.Inf(1), lack))
}

// wide is a signed 128-bit integer.
type wide struct{ hi, lo uint64 }

func (w *wide) add(x int64) { w.add128(uint64(x>>63), uint64(x)) }

func (w *wide) add128(hi, lo uint64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
}

// addProduct adds x·y.
func (w *wide) addProduct(x, y int64) {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	w.add128(hi-uint64(x>>63)&uint64(y)-uint64(y>>63)&uint64(x), lo)
}

// float32 returns w·2^scale rounded to nearest even.
func (w wide) float32(scale int) float32 {
	sign := 1.0
	if w.hi>>63 != 0 {
		sign = -1
		w = wide{^w.hi, ^w.lo}
		w.add128(0, 1)
	}
	// Keep 53 bits, the last of them 1 if any below is: rounded to odd, as in func odd.
	if n := bits.Len64(w.hi); n > 0 {
		lost := w.lo & (1<<n - 1)
		w.lo = w.lo>>n | w.hi<<(64-n)
		if lost != 0 {
			w.lo |= 1
		}
		scale += n
	}
	if n := bits.Len64(w.lo) - 53; n > 0 {
		lost := w.lo & (1<<n - 1)
		w.lo >>= n
		if lost != 0 {
			w.lo |= 1
		}
		scale += n
	}
	return canonical(sign * math.Ldexp(float64(w.lo), scale))
}

// each calls f for 0 to n−1 on all cores.
func each(ctx context.Context, n int, f func(i int)) error {
	const share = 8
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for {
				from := int(next.Add(share)) - share
				if from >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				for i := from; i < min(from+share, n); i++ {
					f(i)
				}
			}
		})
	}
	return g.Wait()
}
