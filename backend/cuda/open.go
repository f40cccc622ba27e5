// Opening a device on a context that exists.

package cuda

import (
	"context"

	"github.com/spmmrun/spmm/backend"
)

// LegacyStream is a handle of CUDA's default stream, as 0 is, for UseStream (spmm.Device.UseStream). All other streams
// but non-blocking ones wait for it, and it for them.
const LegacyStream uintptr = 1

// OpenContext opens the device of a CUcontext, given by its handle, on that context, which stays its owner's and must
// outlive the device. Memory and streams of CUDA belong to a context: this is for programs that have made one of their
// own with cuCtxCreate. spmm.Open opens a device on the primary context, which CUDA's runtime uses, and with it cuBLAS,
// PyTorch and most libraries.
//
//	d, err := cuda.OpenContext(ctx, cuda.ContextOf(own)) // own is a cu.CUContext of gorgonia.org/cu
//	dev := spmm.NewDevice(d)
//
// Close of the device frees what it has made in the context. A handle that is no context's is not noticed.
func OpenContext(ctx context.Context, handle uintptr) (backend.Device, error) {
	return openContext(ctx, handle)
}
