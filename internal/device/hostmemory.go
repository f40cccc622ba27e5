// Memory of the host that the device reads and writes by itself.

package device

import "github.com/spmmrun/spmm/backend"

// HostMemory returns memory of the host that the device copies by itself, or the program's where there is none.
func (d *Device) HostMemory(bytes int64) backend.HostMemory {
	if a, ok := d.Device.(backend.HostAllocator); ok && bytes > 0 {
		if m, err := a.AllocHost(bytes); err == nil {
			return m
		}
	}
	return NewOrdinary(bytes)
}

// ordinary is the program's own memory, where the device has no other.
type ordinary struct{ p []byte }

// NewOrdinary returns memory that may hold elements of any type.
func NewOrdinary(bytes int64) backend.HostMemory {
	return &ordinary{backend.Bytes(make([]uint64, (bytes+7)/8))[:bytes]}
}

func (o *ordinary) Bytes() []byte { return o.p }

func (o *ordinary) Close() error {
	o.p = nil
	return nil
}
