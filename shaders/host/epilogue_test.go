// Activations keep the bound of docs/bound.md.

package host_test

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Numbers of all magnitudes, closest where the functions bend.
func TestActivations(t *testing.T) {
	var xs []float32
	for b := uint32(0); b < 0x7f800000; b += 0x3fff {
		xs = append(xs, math.Float32frombits(b), -math.Float32frombits(b))
	}
	for x := float32(-100); x < 100; x += 1.0 / 512 {
		xs = append(xs, x)
	}
	for _, c := range []struct {
		activation spec.Activation
		of         func(x float64) float64
		bound      float64 // relative to x
	}{
		{spec.NoActivation, func(x float64) float64 { return x }, 0},
		{spec.ReLU, func(x float64) float64 { return max(x, 0) }, 0},
		{spec.GELU, func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
			0x1p-22},
		{spec.SiLU, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 0x1p-22},
	} {
		y := append([]float32(nil), xs...)
		host.Apply(y, spec.Epilogue{Activation: c.activation}, nil, 0, 0)
		for i, x := range xs {
			if want := c.of(float64(x)); !(math.Abs(float64(y[i])-want) <= c.bound*math.Abs(float64(x))+0x1p-126) {
				t.Fatalf("%v(%g) is %g, want %g", c.activation, x, y[i], want)
			}
		}
	}
}

// A bias is that of the row, or of each column; its elements may lie apart.
func TestBias(t *testing.T) {
	bias := make([]float32, 64)
	for i := range bias {
		bias[i] = float32(i)
	}
	for _, c := range []struct {
		e    spec.Epilogue
		want [3]float32
	}{
		{spec.Epilogue{}, [3]float32{-9, 0, 9}},
		{spec.Epilogue{Bias: spec.RowBias}, [3]float32{-4, 5, 14}},
		{spec.Epilogue{Bias: spec.ColBias}, [3]float32{-7, 3, 13}},
		{spec.Epilogue{Bias: spec.RowBias, BiasShift: 3}, [3]float32{31, 40, 49}},
		{spec.Epilogue{Bias: spec.ColBias, BiasShift: 2, Activation: spec.ReLU}, [3]float32{0, 12, 25}},
	} {
		y := []float32{-9, 0, 9}
		host.Apply(y, c.e, backend.Bytes(bias), 5, 2)
		if [3]float32(y) != c.want {
			t.Errorf("%+v: %v, want %v", c.e, y, c.want)
		}
	}
}
