// What programs that use package backend, or exchange tensors with others, need of tensors and devices.

package spmm

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/plan"
)

func init() {
	access.Device = func(dev any) (*plan.Device, error) { return dev.(*Device).device() }
	access.Options = func(options any) (plan.Options, error) { return options.(Options).plan() }
	access.Tensor = func(operand any) *plan.Tensor {
		if operand == nil {
			return nil
		}
		return tensorOf(operand.(Operand))
	}
}

// Memory returns the buffer that a row-major tensor in one block lies in, and the bytes from the start of a row to the next:
// for programs that use package backend, or exchange it with other devices. It is valid until Close of the tensor.
func (t *Tensor[T]) Memory() (b backend.Buffer, pitch int, err error) { return t.t.Memory() }

// Backend returns the device as package backend has it. It stays the Device's: closing it is Close's.
func (d *Device) Backend() backend.Device { return d.d.Device }
