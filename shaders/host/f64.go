// Sums in f32 or f64, and those in f64: storing a row of them to C, and their epilogue in the arithmetic of
// shaders/include/f64.*.

package host

import (
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Real is the type that kernels compute in: f32, or f64 where elements are f64.
type Real interface{ float32 | float64 }

// Sums has the kernels' operations on sums of type S.
type Sums[S Real] struct {
	Add func(acc, x []S) // acc += x
	// Row writes a row of C from column col on, as Out and Out64 do; tmp is scratch as long as acc. For f64 alpha and
	// beta are those behind the parameters in block.
	Row func(o Out, block []byte, row, col int, acc, tmp []S)
}

// Single and Double are the sums of f32 and of f64.
var (
	Single = Sums[float32]{
		Add: func(acc, x []float32) { simd.Axpby(acc, x, 1, 1) },
		Row: func(o Out, _ []byte, row, col int, acc, tmp []float32) { o.Row(row, col, acc, tmp) },
	}
	Double = Sums[float64]{
		Add: func(acc, x []float64) { Axpby64(acc, x, 1, 1) },
		Row: func(o Out, block []byte, row, col int, acc, _ []float64) {
			double := Out64{C: o.C, Bias: o.Bias, Store: o.Store, LDC: o.LDC}
			double.Alpha, double.Beta = spec.Scalars(block)
			double.Row(row, col, acc)
		},
	}
)

// Out64 is Out for variants of F64: C, the bias, alpha and beta are float64.
type Out64 struct {
	C, Bias     []byte
	Store       uint32 // see spec.Problem.StoreWord
	LDC         uint32
	Alpha, Beta float64
}

// Row writes alpha·acc + beta·C, with the epilogue, to a row of C from column col on. C is not read where beta is 0.
func (o *Out64) Row(row, col int, acc []float64) {
	at := row*int(o.LDC) + col
	c := backend.View[float64](o.C)[at : at+len(acc)]
	Axpby64(c, acc, o.Alpha, o.Beta)
	_, e := spec.Stored(o.Store)
	Apply64(c, e, o.Bias, row, col)
}

// Axpby64 computes c[i] = alpha·x[i] + beta·c[i] for i < len(x). Where beta is 0, c is not read.
func Axpby64(c, x []float64, alpha, beta float64) {
	switch c = c[:len(x)]; {
	case beta == 0 && alpha == 1:
		copy(c, x)
	case beta == 0:
		for i, v := range x {
			c[i] = alpha * v
		}
	default:
		for i, v := range x {
			c[i] = alpha*v + beta*c[i]
		}
	}
}

// Apply64 is Apply for outputs and a bias of float64.
func Apply64(y []float64, e spec.Epilogue, bias []byte, row, col int) {
	addBias(y, e, backend.View[float64](bias), row, col)
	if e.Activation == spec.NoActivation {
		return
	}
	for j, x := range y {
		y[j] = activated64(x, e.Activation)
	}
}

// activated64 returns an activation of x. From a limit on, GELU and SiLU are 0 on the left and x on the right; ReLU is
// everywhere.
func activated64(x float64, a spec.Activation) float64 {
	limit := [...]float64{spec.ReLU: 0, spec.GELU: 10, spec.SiLU: 87}[a]
	switch {
	case x != x || x >= limit:
		return x
	case x <= -limit:
		return 0
	case a == spec.GELU:
		return x / (1 + exp64(-x*(1.5957691216057308+0.07135481627260025*(x*x))))
	}
	return x / (1 + exp64(-x))
}

// exp64 returns e^t for |t| < 90 as 2^n·e^r, |r| ≤ ln(2)/2.
func exp64(t float64) float64 {
	n := math.Floor(t*1.4426950408889634 + 0.5)
	r := t - n*0.693145751953125 - n*1.4286068203094172e-06
	y := 1.0 / 6227020800
	for _, c := range [...]float64{1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		y = y*r + c
	}
	return y * math.Float64frombits(uint64(int64(n)+1023)<<52)
}
