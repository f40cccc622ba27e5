// Sampled products of dense matrices (SDDMM).

package spmm

import (
	"context"
	"errors"

	"github.com/spmmrun/spmm/internal/plan"
)

// SampleEpilogue is applied to the results of Plan.Sample. The zero SampleEpilogue does nothing.
type SampleEpilogue struct {
	// Scale has a number for each entry, in the order of SetValues, that its result is multiplied by: with A's values, s
	// is A ⊙ (x·yᵀ). It is 1×NNZ or NNZ×1 and of any element type.
	Scale Operand
	// Softmax then replaces the results of each row of A by exp(s − max)/Σ exp(s − max) over the row's entries, as graph
	// attention does; docs/bound.md bounds its error. A row with an infinity or NaN among its results is undefined. It
	// is ErrUnsupported in reproducible mode, and where A's entries were given by columns: a *formats.CSC, or a CSR with
	// Options.Transpose.
	Softmax bool
}

// Sample computes s = pattern ⊙ (x·yᵀ) for tensors on the plan's device: for each entry (i, j) of A the dot product of
// row i of x and row j of y. A is the matrix that the plan multiplies by, M×K, with Options.Transpose the transposed
// one; x is M×n and y is K×n. With C = A·B, x = ∂C and y = B give the gradient with respect to A's values; with
// Options.Right, C = B·A, x = Bᵀ and y = ∂Cᵀ do. At most one SampleEpilogue may be given.
//
// s is 1×NNZ or NNZ×1 and has an element for each entry in the order of SetValues, so that values can be set from it
// without leaving the device. Tensors may have any element type, x and y any order. x and y are rounded to the plan's
// precision; sums are in float32 (in tf32 too, without rounding the operands), or in float64 with dtype.F64, and their
// order depends on n and the device alone. s must not be an operand.
//
// In reproducible mode the results have the same bits on every device: rows of x and of y are brought to fixed point,
// each row in its own units, and sums are rounded once, and again when they are scaled (docs/reproducible.md).
//
// The first call copies the entries' rows and columns to the device, 8 bytes an entry. Each tensor must be one block.
// AutoP, quantised matrices, matrices in the host's memory and several devices are ErrUnsupported. After an error, such
// as that of a cancelled context, the contents of s are undefined.
func (p *Plan) Sample(ctx context.Context, x, y, s Operand, e ...SampleEpilogue) (Timing, error) {
	q, err := sampled(x, y, s, e)
	if err != nil {
		return Timing{}, err
	}
	return p.p.Sample(ctx, q)
}

// StartSample is Sample without the wait, under the rules of Start. The first call waits for copies of the pattern.
func (p *Plan) StartSample(ctx context.Context, x, y, s Operand, e ...SampleEpilogue) (*Pending, error) {
	q, err := sampled(x, y, s, e)
	if err != nil {
		return nil, err
	}
	started, err := p.p.StartSample(ctx, q)
	if err != nil {
		return nil, err
	}
	return &Pending{started}, nil
}

// sampled describes a sampled product to package plan.
func sampled(x, y, s Operand, e []SampleEpilogue) (plan.Sampled, error) {
	q := plan.Sampled{X: tensorOf(x), Y: tensorOf(y), S: tensorOf(s)}
	if len(e) > 1 {
		return q, errors.New("at most one epilogue of a sampled product is possible")
	}
	for _, e := range e {
		q.Scale, q.Softmax = tensorOf(e.Scale), e.Softmax
	}
	return q, nil
}
