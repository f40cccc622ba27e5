// Memory and streams of others: programs that have their own CUDA context.

package spmm

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// PrepareForeign is Prepare for a matrix whose arrays lie in memory that is not Go's: of a C program, or of a mapped
// file. When the context ends Prepare returns at once, while the matrix is still read; PrepareForeign returns after the
// last read, which takes as long as to pack the matrix in one format.
func PrepareForeign(ctx context.Context, dev *Device, a formats.Encoded, o Options) (*Plan, error) {
	ctx, settle := work.Settled(ctx)
	defer settle()
	return Prepare(ctx, dev, a, o)
}

// TensorOver makes a tensor of memory on the device that somebody else allocated: with gorgonia.org/cu, in C, by
// PyTorch. ptr is its address (a CUdeviceptr), a multiple of 4, or of 2 for 16-bit elements that are only read; ld is
// the leading dimension, the elements from the start of a row (of a column, if colMajor) to the next. CUDA devices take
// such memory; the error of any other is ErrUnsupported.
//
// Nothing is copied where ptr is a multiple of 16, ld one of 8, and ld elements of the last row (column) are allocated
// too, which are read and may hold anything; row-major tensors of A's type as B and of float32 as C are then multiplied
// as they lie. Nor is a contiguous vector copied whose number of elements is a multiple of 8 and whose address is one
// of 16, where the kernel takes either order (see Options.Right). Any other tensor costs a pass over the data on the
// device, as NewTensor says. Elements between the rows (columns) are never written, except that a 16-bit C is written
// in words of 4 bytes: one that begins or ends inside a word has the other half read and written back.
//
// The memory must outlive the tensor, and whatever of it is in use by a call or a sequence. Close of the tensor waits
// for these and leaves the memory as it is; the library never frees it. It must be of the context that the device is
// open on: the device's primary context for one that Open returns, which is the context of CUDA's runtime and with it
// of most libraries; see cuda.OpenContext for any other. Memory that is not there, too small, of another device or
// context or the host's is an error. Memory that is freed too early is a fault on the device, ErrDeviceLost: then the
// process has lost CUDA.
//
// Work on the device goes to a stream of its own, so what the owner does with the memory must be ordered by waiting:
// for the owner's stream before a call of the library, and for the call, which returns when the device is done.
// UseStream makes that needless.
func TensorOver[T formats.Value](dev *Device, ptr uintptr, rows, cols, ld int, colMajor bool) (*Tensor[T], error) {
	d, err := dev.alone("TensorOver")
	if err != nil {
		return nil, err
	}
	t, err := tensor.Over(d, tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T](), ColMajor: colMajor}, ptr, ld)
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{t}, nil
}

// ReadMemory copies memory on the device that somebody else allocated, from address ptr on, a multiple of 4, to p: the
// arrays of a sparse matrix, for example. What writes the memory must be done before. Only CUDA devices take memory of
// others; the error of any other is ErrUnsupported.
func ReadMemory(ctx context.Context, dev *Device, ptr uintptr, p []byte) error {
	d, err := dev.alone("ReadMemory")
	if err != nil || len(p) == 0 {
		return err
	}
	i, ok := d.Device.(backend.Importer)
	if !ok {
		return fmt.Errorf("%v takes no memory of others, CUDA devices do: %w", d.Info(), backend.ErrUnsupported)
	}
	b, err := i.Import(ptr, int64(len(p)))
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Read(ctx, 0, p)
}

// UseStream has all that the device does from now on go to a CUDA stream of somebody else's, given by its handle (a
// CUstream), in order with its owner's work there: multiplications and copies see what was submitted to the stream
// before them, and what the owner submits after them sees their results. 0 is CUDA's default stream, as everywhere in
// CUDA, and OwnStream the device's own. What the device began before comes first, without a wait on the host. Only CUDA
// devices have streams; the error of any other is ErrUnsupported. The default stream of each thread is refused, because
// goroutines change threads: make a stream. Plan.Enqueue takes a stream for one product.
//
// The stream must be of the context that the device is open on (see TensorOver) and outlive its use, and not be
// capturing a graph. Run, Multiply, Upload and Download wait until the device has done their work, and with it all that
// was submitted to the stream before; Start returns once its work is submitted.
func (d *Device) UseStream(ctx context.Context, stream uintptr) error {
	one, err := d.alone("UseStream")
	if err != nil {
		return err
	}
	return one.UseStream(ctx, stream)
}
