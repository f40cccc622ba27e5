// Epilogues: a bias and an activation, which the kernel applies where it stores C.

package launch

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Activation is a function of each element of C by itself.
type Activation = spec.Activation

// Epilogue makes C = act(alpha·A·B + beta·C + bias) of a multiplication. One of the biases may be given: RowBias, M×1,
// whose element i is added to row i of C, or ColBias, 1×N, whose element j is added to column j.
type Epilogue struct {
	RowBias, ColBias tensor.Operand
	Activation       Activation
}

// NewEpilogue returns an epilogue with biases on a device by itself. A bias of nil is none.
func NewEpilogue(row, col *tensor.Tensor, a Activation) Epilogue {
	e := Epilogue{Activation: a}
	if row != nil {
		e.RowBias = row
	}
	if col != nil {
		e.ColBias = col
	}
	return e
}

// Split returns the bias on a device by itself, nil if there is none, and what kernels are told.
func (e Epilogue) Split() (*tensor.Tensor, spec.Epilogue, error) {
	s, bias := spec.Epilogue{Activation: e.Activation}, e.RowBias
	switch {
	case !e.Activation.Known():
		return nil, s, fmt.Errorf("unknown %v", e.Activation)
	case e.RowBias != nil && e.ColBias != nil:
		return nil, s, ErrTwoBiases
	case e.RowBias != nil:
		s.Bias = spec.RowBias
	case e.ColBias != nil:
		s.Bias, bias = spec.ColBias, e.ColBias
	}
	t, err := tensor.One(bias)
	return t, s, err
}

var ErrTwoBiases = errors.New("a row bias and a column bias: one of them is possible")

// biased is an epilogue with the buffer that holds its bias.
type biased struct {
	spec.Epilogue
	bias backend.Buffer // nil: none
}

// or returns the bias, or in its place, where there is none, a buffer that is only read.
func (e biased) or(read backend.Buffer) backend.Buffer {
	if e.bias == nil {
		return read
	}
	return e.bias
}

// Plain stores C as it is.
var Plain biased

// maxBiasShift is the largest shift that the parameter `store` of kernels can hold (spec.Problem.StoreWord).
const maxBiasShift = 15

// biasType is the type in which kernels take a bias: f64 where sums or what is stored are.
func (w *Composer) biasType() dtype.Type {
	if w.C.Type == dtype.F64 {
		return dtype.F64
	}
	return w.m.Variant.Sums()
}

// StageBias returns the epilogue for block (i, j) of C. Where the bias is of another type, or does not begin with the
// block, it adds the launch that copies the block's part of it.
func (w *Composer) StageBias(i, j int) (biased, error) {
	e := biased{Epilogue: w.Epilogue}
	if w.Bias == nil {
		return e, nil
	}
	c := w.C.BlockLayout(i, j)
	first, n := i*w.C.RowBlock, c.Rows
	if e.Bias == spec.ColBias {
		first, n = j*w.C.ColBlock, c.Cols
	}
	from, buf := w.Bias.BlockLayout(0, 0), w.Bias.Block(0, 0)
	apart := 1 // elements
	if from.Lines() > 1 {
		apart = from.LD
	}
	if to := w.biasType(); from.Type == to && first == 0 &&
		!from.Loose && apart <= 1<<maxBiasShift && bits.OnesCount(uint(apart)) == 1 {
		e.bias, e.BiasShift = buf, uint32(bits.TrailingZeros(uint(apart)))
		return e, nil
	}
	to := w.biasType()
	e.bias = w.l.bias.atLeast(int64(n) * int64(to.Size()))
	return e, w.copyVector(buf, from.Type, from.First+first*apart, apart, n, e.bias, to)
}
