// Epilogues: a bias and an activation, applied where a product is stored.

package spmm

import (
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/internal/launch"
)

// Activation is a function of each element of C by itself; the zero value is none. Outputs of 0 may have either sign.
type Activation uint8

const (
	// ReLU is max(x, 0); NaN stays NaN.
	ReLU Activation = iota + 1
	// GELU is ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))). That of −Inf is 0.
	GELU
	// SiLU is x/(1 + exp(−x)), also called swish. That of −Inf is 0.
	SiLU
)

// String is the activation's name in lower case, "none" for the zero value.
func (a Activation) String() string { return launch.Activation(a).String() }

// ParseActivation returns the activation of a name: "none", "relu", "gelu" or "silu".
func ParseActivation(name string) (Activation, error) {
	for a := Activation(0); a <= SiLU; a++ {
		if a.String() == name {
			return a, nil
		}
	}
	return 0, fmt.Errorf("activation %q: want none, relu, gelu or silu", name)
}

// Epilogue adds a bias and an activation to a multiplication: C = act(alpha·A·B + beta·C + bias), in one pass over C.
// One of the biases may be given; it has any element type, and must not be C. The zero Epilogue does nothing.
//
// In reproducible mode a bias and ReLU have one right answer to the last bit (docs/reproducible.md says which); the
// other activations are refused there as ErrUnsupported.
type Epilogue struct {
	// RowBias is a column vector with as many elements as C has rows: element i is added to all of row i of C.
	RowBias Operand
	// ColBias is a row vector with as many elements as C has columns: element j is added to all of column j of C.
	ColBias Operand
	// Activation is applied last.
	Activation Activation
}

// epilogue returns the only one of e, none if there is none.
func epilogue(e []Epilogue) (launch.Epilogue, error) {
	switch len(e) {
	case 0:
		return launch.Epilogue{}, nil
	case 1:
		return launch.Epilogue{
			RowBias: tensorOf(e[0].RowBias), ColBias: tensorOf(e[0].ColBias), Activation: launch.Activation(e[0].Activation),
		}, nil
	}
	return launch.Epilogue{}, errors.New("at most one epilogue is possible")
}
