// Package access gives other packages of this module what the root's types hold. Package dist needs it. The root sets
// the functions when the program starts; their arguments are its types.
package access

import (
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

var (
	// Device returns what a *spmm.Device holds that is a device by itself.
	Device func(dev any) (*device.Device, error)
	// Tensor returns what an spmm.Operand of a device by itself holds, nil if there is none.
	Tensor func(operand any) *tensor.Tensor
	// Work returns the work that spmm.Options ask for, of a matrix as it is given.
	Work func(options any) (work.Work, error)
)
