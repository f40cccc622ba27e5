// Epilogues on the CPU, in the arithmetic of shaders/include/epilogue.*.

package host

import (
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Apply replaces a row's outputs, from column col on, by those of an epilogue. bias is the argument of that name.
func Apply(y []float32, e spec.Epilogue, bias []byte, row, col int) {
	addBias(y, e, backend.View[float32](bias), row, col)
	switch e.Activation {
	case spec.ReLU:
		for j, x := range y {
			y[j] = relu(x)
		}
	case spec.GELU:
		for j, x := range y {
			y[j] = gelu(x)
		}
	case spec.SiLU:
		for j, x := range y {
			y[j] = silu(x)
		}
	}
}

func addBias[S Real](y []S, e spec.Epilogue, bias []S, row, col int) {
	switch e.Bias {
	case spec.RowBias:
		x := bias[row<<e.BiasShift]
		for j := range y {
			y[j] += x
		}
	case spec.ColBias:
		for j := range y {
			y[j] += bias[(col+j)<<e.BiasShift]
		}
	}
}

// relu is 0 for what is negative, −0 too; NaN stays.
func relu(x float32) float32 {
	if bits := math.Float32bits(x); bits>>31 != 0 && bits&^(1<<31) <= 0x7f800000 {
		return 0
	}
	return x
}

// gelu and silu are, from a limit on, 0 on the left and x on the right.
func gelu(x float32) float32 {
	if !(x > -10 && x < 10) {
		return relu(x)
	}
	return x / (1 + exp(-x*(1.59576912+0.0713548163*(x*x))))
}

func silu(x float32) float32 {
	if !(x > -87 && x < 87) {
		return relu(x)
	}
	return x / (1 + exp(-x))
}

// exp returns e^t for |t| < 88 as 2^n·e^r, |r| ≤ ln(2)/2.
func exp(t float32) float32 {
	n := float32(math.Floor(float64(t*1.44269504 + 0.5)))
	r := t - n*0.693359375 + n*0.000212194440
	y := float32(1.0 / 5040)
	y = y*r + 1.0/720
	y = y*r + 1.0/120
	y = y*r + 1.0/24
	y = y*r + 1.0/6
	y = y*r + 0.5
	y = y*r + 1
	y = y*r + 1
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}
