// What programs that use package backend, or exchange tensors with others, need of tensors and devices.

package spmm

import (
	"cmp"
	"errors"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/access"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

func init() {
	access.Device = func(dev any) (*device.Device, error) { return dev.(*Device).alone("dist.Prepare") }
	access.Work = func(options any) (work.Work, error) {
		w, _, err := options.(Options).alone("dist.Prepare")
		return w, err
	}
	access.Tensor = func(operand any) *tensor.Tensor {
		if operand == nil {
			return nil
		}
		one, _ := tensor.One(tensorOf(operand.(Operand)))
		return one
	}
}

// Memory returns the buffer that a row-major tensor of one device in one block lies in, and the bytes from the start of
// a row to the next: for programs that use package backend, or exchange it with other devices. It is valid until Close
// of the tensor.
func (t *Tensor[T]) Memory() (b backend.Buffer, pitch int, err error) {
	one, err := tensor.One(tensorOf(t))
	if one == nil {
		return nil, 0, cmp.Or(err, errors.New("the tensor is missing"))
	}
	return one.Memory()
}

// Backend returns the device as package backend has it; of several, the first. It stays the Device's: closing it is
// Close's.
func (d *Device) Backend() backend.Device { return d.first().Device }
