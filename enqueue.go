// Products in streams of the program, for CUDA graphs and for programs that keep the host free.

package spmm

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/tensor"
)

// OwnStream is the stream that a device has made for itself, for UseStream. 0 is CUDA's default stream.
const OwnStream = backend.OwnStream

// Enqueue computes what Run does in a CUDA stream of the program's, in order with its other work there, and returns
// when the launches are submitted: it records no events, waits for nothing, and allocates nothing the second time that
// a product is enqueued. stream is the handle of the stream (a CUstream), 0 the default stream. The stream must be of
// the context that the device is open on and live until its work is done.
//
// Work in two streams is in no order but the one that the program makes of it, by events for example: of products that
// write what others read, and of EnqueueValues and products. Each stream has its own workspace in a plan, so products
// of one plan may run in several streams at the same time. Run, Upload, Download, SetValues and Close wait for
// everything that was enqueued.
//
// Enqueue may be called while the stream captures a graph, at best after Ready or a first product, so that no kernel is
// loaded meanwhile. The graph then holds the addresses of the operands and of the plan's memory. Close of such a plan
// frees nothing: Close of the device does. Graphs of one plan that were captured in one stream share their workspace,
// so they must not run at the same time. While any stream captures, Prepare, Run, Upload, Download, SetValues and Close
// must not be called by any goroutine: they wait for the device, which ends a capture.
//
// ErrUnsupported: devices other than CUDA's, several devices, a matrix that is streamed from the host's memory. A plan
// with AutoP, which reads B's ranges back, is refused too.
func (p *Plan) Enqueue(stream uintptr, alpha float64, b Operand, beta float64, c Operand, e ...Epilogue) error {
	ep, err := epilogue(e)
	if err != nil {
		return err
	}
	return p.p.Enqueue(stream, alpha, tensorOf(b), beta, tensorOf(c), ep)
}

// Ready loads the kernels and allocates the workspace that Enqueue of this product needs in the stream, and multiplies
// nothing. It depends on the sizes, types and orders of b and c, not on their memory.
func (p *Plan) Ready(stream uintptr, alpha float64, b Operand, beta float64, c Operand, e ...Epilogue) error {
	ep, err := epilogue(e)
	if err != nil {
		return err
	}
	return p.p.Ready(stream, alpha, tensorOf(b), beta, tensorOf(c), ep)
}

// EnqueueValues is SetValues in a stream of the program's, as Enqueue is Run. The first call of either finds the places
// of the entries and waits for the device: call one before a graph is captured.
func (p *Plan) EnqueueValues(stream uintptr, values Operand) error {
	return p.p.EnqueueValues(stream, tensorOf(values))
}

// EnqueueSample is Sample in a stream of the program's, as Enqueue is Run. The first call of either copies the pattern
// to the device, and waits: call one before a graph is captured.
func (p *Plan) EnqueueSample(stream uintptr, x, y, s Operand, e ...SampleEpilogue) error {
	q, err := sampled(x, y, s, e)
	if err != nil {
		return err
	}
	return p.p.EnqueueSample(stream, q)
}

// Move points a tensor of TensorOver to other memory, of the same size, order and leading dimension, and waits for
// nothing: what was submitted keeps the old memory, later products use the other. A tensor whose memory was at a
// multiple of 16 stays at multiples of 16. It must not be called during another call that uses the tensor.
func Move(o Operand, ptr uintptr) error {
	t, err := tensor.One(tensorOf(o))
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("the tensor to move to %#x is missing", ptr)
	}
	return t.Move(ptr)
}
