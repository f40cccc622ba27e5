// Biases and activations of problems.

package conformance

import (
	"math"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Epilogues of shapes.
var (
	noBias  = spec.Epilogue{}
	rowBias = spec.Epilogue{Bias: spec.RowBias}
	colBias = spec.Epilogue{Bias: spec.ColBias}
)

// withReLU returns the epilogue with ReLU.
func withReLU(e spec.Epilogue) spec.Epilogue {
	e.Activation = spec.ReLU
	return e
}

// newBias makes room for the bias of the epilogue, if it has one.
func (p *instance) newBias() {
	switch p.epilogue.Bias {
	case spec.RowBias:
		p.bias = make([]float32, p.m)
	case spec.ColBias:
		p.bias = make([]float32, p.n)
	}
}

// finish is the epilogue as package oracle has it.
func (p *instance) finish() oracle.Epilogue {
	e := oracle.Epilogue{Activation: map[spec.Activation]oracle.Activation{
		spec.NoActivation: oracle.NoActivation, spec.ReLU: oracle.ReLU, spec.GELU: oracle.GELU, spec.SiLU: oracle.SiLU,
	}[p.epilogue.Activation]}
	switch p.epilogue.Bias {
	case spec.RowBias:
		e.RowBias = p.bias
	case spec.ColBias:
		e.ColBias = p.bias
	}
	return e
}

// biases fills in a bias of class T3: numbers of the problem's type, about as large as the sums; of kind tiny subnormal
// ones, of kind wild also infinities and NaN, of kind halves what makes sums of 24 bits hard to round.
func (p *instance) biases() {
	p.newBias()
	for i := range p.bias {
		x := p.element(math.Sqrt(float64(p.k)) * p.any(streamBias, i, 0))
		z := draw(p.seed, streamSpecialBias, i, 0)
		switch p.kind {
		case tiny:
			x = math.Float32frombits(uint32(z)&(1<<31) | uint32(z)&0x7fffff>>(z>>32%24)) // of all lengths
		case wild, odd:
			specials := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0, float32(math.Copysign(0, -1)), 0x1p-149}
			if p.kind == odd {
				specials = specials[3:]
			}
			if z%3 == 0 {
				x = specials[z>>8%uint64(len(specials))]
			}
		case halves:
			x = half24[z%uint64(len(half24))] * float32(math.Abs(float64(p.alpha)))
			switch {
			case i == 8: // in a column of least sums
				x = 0x1p23 * float32(math.Abs(float64(p.alpha)))
			case z>>8%4 == 0:
				x = largest24[z>>16%uint64(len(largest24))]
			}
			if z>>63 == 1 {
				x = -x
			}
		}
		p.bias[i] = x
	}
}

// half24 is what is added to whole numbers of 24 bits: half a unit and its neighbours in float32, more units and a half, a
// quarter (below 2^23 half a unit), the least number, and what cancels them or carries to the next binade.
var half24 = []float32{
	0.5, 0.5, 0x1.000002p-1, 0x1.fffffep-2, 1.5, 2.5, 0.25, 0x1.000002p-2, 0x1.fffffep-3, 0x1p-149, 0x1p23, 0x1p24 - 1, 0x1p24, 0x1p47,
}

// largest24 is the largest number of float32, the one below, and numbers beside which 24 bits are nothing.
var largest24 = []float32{math.MaxFloat32, 0x1.fffffcp127, 0x1p127, 0x1p100, 0x1p-149}
