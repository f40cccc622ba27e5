// Host memory that the device copies from and to by itself.

package spmm

import (
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Pinned is a dense matrix in page-locked memory of the host: Upload, Download and Multiply copy it as fast as the bus
// carries it, where other memory goes through blocks on the way. Use &p.Dense as any other matrix.
//
// The memory is not Go's. It stays until Close, whatever becomes of the device, and nothing may touch it, or slices of
// Data, after that.
type Pinned[T formats.Value] struct {
	formats.Dense[T]
	mem backend.HostMemory
}

// NewPinned allocates a rows × cols matrix in row- or column-major order, with the leading dimension that tensors have: a
// multiple of 8. Its contents are undefined. Page-locked memory is taken from what all programs have, and allocating it
// takes long: keep it for data that are copied again and again. On CUDA devices it is page-locked; on others it is
// ordinary memory, and all the same otherwise. What exceeds the host's memory is ErrOutOfMemory.
//
// On CUDA, page-locked memory that the program has made itself (cuMemHostAlloc, cuMemHostRegister) is as fast: Upload and
// Download look at the memory that they are given.
func NewPinned[T formats.Value](dev *Device, rows, cols int, colMajor bool) (*Pinned[T], error) {
	d, err := dev.alone("NewPinned")
	if err != nil {
		return nil, err
	}
	m, ld, err := tensor.AllocHost(d, tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T](), ColMajor: colMajor})
	if err != nil {
		return nil, err
	}
	p := &Pinned[T]{formats.Dense[T]{Rows: rows, Cols: cols, LD: ld, ColMajor: colMajor}, m}
	if b := m.Bytes(); len(b) > 0 {
		var t T
		p.Data = unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(t)))
	}
	return p, nil
}

// Close frees the memory. A second call does nothing.
func (p *Pinned[T]) Close() error {
	p.Dense = formats.Dense[T]{}
	return p.mem.Close()
}
