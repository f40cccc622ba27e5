// Epilogues: what a product may be asked to become as it is stored.

package oracle

import "fmt"

// Epilogue makes act(x + bias) of x = alpha·A·B + beta·C. The zero Epilogue does nothing.
type Epilogue struct {
	// One of the biases may be given: RowBias has an element for each row of C, ColBias one for each column.
	RowBias, ColBias []float32
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

// none tells whether nothing is asked for.
func (e Epilogue) none() bool {
	return e.RowBias == nil && e.ColBias == nil && e.Activation == NoActivation
}

// bias returns what is added to element (i, j), 0 if there is no bias.
func (e Epilogue) bias(i, j int) float32 {
	switch {
	case e.RowBias != nil:
		return e.RowBias[i]
	case e.ColBias != nil:
		return e.ColBias[j]
	}
	return 0
}

// check refuses biases that do not fit a C of rows×cols.
func (e Epilogue) check(rows, cols int) error {
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
