// Epilogues: a bias and an activation, which the kernel applies where it stores C.

package plan

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
	RowBias, ColBias Operand
	Activation       Activation
}

// split returns the bias, nil if there is none, and what kernels are told.
func (e Epilogue) split() (*tensor.Tensor, spec.Epilogue, error) {
	s := spec.Epilogue{Activation: e.Activation}
	bias := e.RowBias
	switch {
	case !e.Activation.Known():
		return nil, s, fmt.Errorf("unknown %v", e.Activation)
	case e.RowBias != nil && e.ColBias != nil:
		return nil, s, errTwoBiases
	case e.RowBias != nil:
		s.Bias = spec.RowBias
	case e.ColBias != nil:
		bias, s.Bias = e.ColBias, spec.ColBias
	}
	t, err := OneTensor(bias)
	return t, s, err
}

var errTwoBiases = errors.New("a row bias and a column bias: one of them is possible")

// bytes is what reading the bias moves.
func (e Epilogue) bytes() int64 {
	n := int64(0)
	for _, t := range []Operand{e.RowBias, e.ColBias} {
		if t != nil {
			s := t.Described()
			n += int64(s.Rows) * int64(s.Cols) * int64(s.Type.Size())
		}
	}
	return n
}

// checkBias refuses a bias that does not fit C.
func (p *Plan) checkBias(q product) error {
	if q.bias == nil {
		return nil
	}
	c, t, rowwise := q.c, q.bias, q.epilogue.Bias == spec.RowBias
	if p.right { // as the caller has them
		c, t, rowwise = c.Transposed(), t.Transposed(), !rowwise
	}
	rows, cols, name := c.Rows, 1, "row bias"
	if !rowwise {
		rows, cols, name = 1, c.Cols, "column bias"
	}
	switch {
	case t.Device() != p.dev:
		return fmt.Errorf("the bias must be on the plan's device, %v", p.dev.Info())
	case t == c || t.Overlaps(c):
		return errors.New("the bias and C must be two matrices: C is written while the bias is read")
	case t.Rows != rows || t.Cols != cols:
		return fmt.Errorf("shapes do not fit: C is %d×%d, the %s is %d×%d; want %d×%d", c.Rows, c.Cols, name, t.Rows, t.Cols, rows, cols)
	case t.RowBlocks()*t.ColBlocks() > 1:
		return fmt.Errorf("the %s lies in %d blocks: it must be one (NewTensor makes such)", name, t.RowBlocks()*t.ColBlocks())
	}
	return nil
}

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

// plain stores C as it is.
var plain biased

// maxBiasShift is what the parameter `store` of kernels holds (spec.Problem.StoreWord).
const maxBiasShift = 15

// biasType is the type in which kernels take a bias: f64 where sums or what is stored are.
func (w *composer) biasType() dtype.Type {
	if w.c.Type == dtype.F64 {
		return dtype.F64
	}
	return w.m.variant.Sums()
}

// stageBias returns the epilogue for block (i, j) of C. Where the bias is of another type, or does not begin with the block,
// it adds the launch that copies the block's part of it.
func (w *composer) stageBias(i, j int) (biased, error) {
	e := biased{Epilogue: w.epilogue}
	if w.bias == nil {
		return e, nil
	}
	c := w.c.BlockLayout(i, j)
	first, n := i*w.c.RowBlock, c.Rows
	if e.Bias == spec.ColBias {
		first, n = j*w.c.ColBlock, c.Cols
	}
	from, buf := w.bias.BlockLayout(0, 0), w.bias.Block(0, 0)
	apart := 1 // elements
	if from.Lines() > 1 {
		apart = from.LD
	}
	if to := w.biasType(); from.Type == to && first == 0 && !from.Loose && apart <= 1<<maxBiasShift && bits.OnesCount(uint(apart)) == 1 {
		e.bias, e.BiasShift = buf, uint32(bits.TrailingZeros(uint(apart)))
		return e, nil
	}
	to := w.biasType()
	e.bias = w.l.bias.atLeast(int64(n) * int64(to.Size()))
	return e, w.copyVector(buf, from.Type, first, apart, n, e.bias, to)
}
