// Sampled products of dense matrices (SDDMM).

package spmm

import "context"

// Sample computes s = pattern ⊙ (x·yᵀ) for tensors on the plan's device: for each entry (i, j) of A the dot product of
// row i of x and row j of y. A is the matrix that the plan multiplies by, M×K, with Options.Transpose the transposed
// one; x is M×n and y is K×n. With a scale, which may be nil, each result is multiplied by its element: scaled by A's
// values, s is A ⊙ (x·yᵀ). With C = A·B, x = ∂C and y = B give the gradient with respect to A's values; with
// Options.Right, C = B·A, x = Bᵀ and y = ∂Cᵀ do.
//
// s and scale are 1×NNZ or NNZ×1 and have an element for each entry in the order of SetValues, so that s can be set, or
// added to the values, without leaving the device. All may have any element type, x and y any order. x and y are rounded
// to the plan's precision; sums are in float32 (in tf32 too, without rounding the operands), or in float64 with
// dtype.F64, and their order depends on n and the device alone. s must not be an operand.
//
// In reproducible mode the results have the same bits on every device: rows of x and of y are brought to fixed point,
// each row in its own units, and sums are rounded once, and again when they are scaled (docs/reproducible.md).
//
// The first call copies the entries' rows and columns to the device, 8 bytes an entry. Each tensor must be one block.
// AutoP, quantised matrices, matrices in the host's memory and several devices are ErrUnsupported. After an error, such
// as that of a cancelled context, the contents of s are undefined.
func (p *Plan) Sample(ctx context.Context, x, y, scale, s Operand) (Timing, error) {
	return p.p.Sample(ctx, tensorOf(x), tensorOf(y), tensorOf(scale), tensorOf(s))
}

// StartSample is Sample without the wait, under the rules of Start. The first call waits for copies of the pattern.
func (p *Plan) StartSample(ctx context.Context, x, y, scale, s Operand) (*Pending, error) {
	started, err := p.p.StartSample(ctx, tensorOf(x), tensorOf(y), tensorOf(scale), tensorOf(s))
	if err != nil {
		return nil, err
	}
	return &Pending{started}, nil
}
