// Epilogues: what a product may be asked to become as it is stored.

package oracle

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/dtype"
)

// Epilogue is that of a Problem.
type Epilogue = EpilogueOf[float32]

// EpilogueOf makes act(x + bias) of x = alpha·A·B + beta·C. The zero EpilogueOf does nothing.
type EpilogueOf[T Number] struct {
	// One of the biases may be given: RowBias has an element for each row of C, ColBias one for each column.
	RowBias, ColBias []T
	Activation       Activation
}

// Activation is a function of each output by itself.
type Activation int

// The activations.
const (
	NoActivation Activation = iota
	ReLU
	GELU // its form with tanh
	SiLU
)

// none reports whether nothing is asked for.
func (e EpilogueOf[T]) none() bool {
	return e.RowBias == nil && e.ColBias == nil && e.Activation == NoActivation
}

// bias returns what is added to element (i, j), 0 if there is no bias.
func (e EpilogueOf[T]) bias(i, j int) T {
	switch {
	case e.RowBias != nil:
		return e.RowBias[i]
	case e.ColBias != nil:
		return e.ColBias[j]
	}
	return 0
}

// of returns the activation of x by definition; that of −Inf is 0.
func (a Activation) of(x float64) float64 {
	switch {
	case a == NoActivation || math.IsNaN(x):
		return x
	case a == ReLU || math.IsInf(x, 0):
		return math.Max(x, 0)
	case a == GELU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x / (1 + math.Exp(-x))
}

// slope bounds the derivative of the activation, and error what its arithmetic adds, relative to its operand:
// docs/bound.md derives both.
func (a Activation) slope() float64 { return [...]float64{1, 1, 1.13, 1.1}[a] }
func (a Activation) error() float64 { return [...]float64{0, 0, 0x1p-20, 0x1p-20}[a] }

// apply returns the activation of x, which has its bias already, and the bound on its error, given that of x without.
func (e EpilogueOf[T]) apply(x, bound float64, compute dtype.Type) (float64, float64) {
	unit, least, adds := 0x1p-23, 0x1p-126, e.Activation.error()
	if compute == dtype.F64 {
		unit, least, adds = 0x1p-52, 0x1p-1022, adds*0x1p-28
	}
	if e.RowBias != nil || e.ColBias != nil {
		bound += unit*(math.Abs(x)+bound) + least
	}
	if e.Activation == NoActivation {
		return x, bound
	}
	return e.Activation.of(x), e.Activation.slope()*bound + adds*(math.Abs(x)+bound) + least
}

// check refuses biases that do not fit a C of rows×cols.
func (e EpilogueOf[T]) check(rows, cols int) error {
	switch {
	case e.RowBias != nil && e.ColBias != nil:
		return fmt.Errorf("a row bias and a column bias: one of them is possible")
	case e.RowBias != nil && len(e.RowBias) != rows:
		return fmt.Errorf("C is %d×%d, the row bias has %d elements", rows, cols, len(e.RowBias))
	case e.ColBias != nil && len(e.ColBias) != cols:
		return fmt.Errorf("C is %d×%d, the column bias has %d elements", rows, cols, len(e.ColBias))
	}
	return nil
}
