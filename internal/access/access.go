// Package access gives other packages of this module what the root's types hold: package dist, which multiplies with
// package plan itself, needs it. The root sets the functions when the program starts; their arguments are its types.
package access

import "github.com/spmmrun/spmm/internal/plan"

var (
	// Device returns what a *spmm.Device holds.
	Device func(dev any) (*plan.Device, error)
	// Tensor returns what an spmm.Operand holds, nil if there is none.
	Tensor func(operand any) *plan.Tensor
	// Options returns spmm.Options as package plan takes them, validated.
	Options func(options any) (plan.Options, error)
)
