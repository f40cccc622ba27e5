//go:build cuda && cgo && linux && (amd64 || arm64)

// The queue of launches, in C memory, so that a run costs one call into C and no Go allocation.

package driver

/*
#include "queue.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
)

// Batch is how many launches go to the driver in one call.
const Batch = C.SPMM_BATCH

// What one launch may bring.
const (
	MaxArgs   = C.SPMM_MAX_ARGS
	MaxParams = C.SPMM_MAX_PARAMS // bytes
	MaxMaps   = C.SPMM_MAX_MAPS
	MapBytes  = C.SPMM_MAP_BYTES
)

// Queue submits launches to a stream: its own, unless it was given another. It is not safe for concurrent use.
type Queue struct {
	c   *C.spmm_queue
	own C.CUstream
}

// NewQueue makes a queue in a context, which must be current. Where it fails, Destroy still frees
// what was made.
func NewQueue(ctx cu.CUContext) (*Queue, error) {
	q := &Queue{c: (*C.spmm_queue)(C.calloc(1, C.sizeof_spmm_queue))}
	q.c.ctx = *(*C.CUcontext)(unsafe.Pointer(&ctx))
	err := check(C.spmm_queue_make(q.c))
	q.own = q.c.stream
	return q, err
}

// Destroy frees the queue; its context must be current.
func (q *Queue) Destroy() error {
	q.c.stream = q.own
	err := check(C.spmm_queue_destroy(q.c))
	C.free(unsafe.Pointer(q.c))
	q.c = nil
	return err
}

// Stream returns the queue's stream, for copies in order with its launches.
func (q *Queue) Stream() cu.Stream { return *(*cu.Stream)(unsafe.Pointer(&q.c.stream)) }

// The handles that stand for the default streams.
const (
	LegacyStream    = 1 // which waits for all others, and they for it
	PerThreadStream = 2
)

// SetStream has all that comes next go to another stream, which stays its owner's: OwnStream is the queue's own. On the
// device, it comes after the run of a clock, if there is one. A stream of another context is InvalidContext.
func (q *Queue) SetStream(handle uintptr, after Clock) error {
	s := q.own
	if handle != backend.OwnStream {
		s = streamOf(handle)
	}
	if handle > PerThreadStream && handle != backend.OwnStream {
		var ctx C.CUcontext
		if err := check(C.cuStreamGetCtx(s, &ctx)); err != nil {
			return err
		}
		if ctx != q.c.ctx {
			return InvalidContext
		}
	}
	if after.c != nil && s != q.c.stream {
		if err := check(C.spmm_clock_order(q.c, after.c, s)); err != nil {
			return err
		}
	}
	q.c.stream = s
	return nil
}

// streamOf is the stream of a handle. 0 is the default stream.
func streamOf(handle uintptr) C.CUstream {
	if handle == 0 {
		handle = LegacyStream
	}
	return *(*C.CUstream)(unsafe.Pointer(&handle))
}

// Enqueue submits the batch to a stream of the context, without events, and tells whether the stream captures a graph.
func (q *Queue) Enqueue(handle uintptr) (captured bool, err error) {
	var c C.int
	err = check(C.spmm_queue_enqueue(q.c, streamOf(handle), &c))
	return c != 0, err
}

// WaitAll waits until all streams of the context are idle.
func (q *Queue) WaitAll() error { return check(C.spmm_context_wait(q.c)) }

// Relax lets this thread allocate memory and load code although some stream captures a graph, until the function that it
// returns is called. The context must be current.
func Relax() func() {
	mode := C.CUstreamCaptureMode(C.CU_STREAM_CAPTURE_MODE_RELAXED)
	C.cuThreadExchangeStreamCaptureMode(&mode)
	return func() { C.cuThreadExchangeStreamCaptureMode(&mode) }
}

// Full reports whether the batch has to be submitted before another Add.
func (q *Queue) Full() bool { return q.c.n == Batch }

// Len is the number of launches in the batch.
func (q *Queue) Len() int { return int(q.c.n) }

// Add appends a launch to the batch: up to 64 bytes of params, up to 8 Args and 2 Maps to follow. One that overlaps
// may begin while the one before it still runs, and waits for it by itself.
func (q *Queue) Add(f cu.Function, grid, block [3]uint32, shared uint32, params []byte, overlap bool) {
	l := &q.c.launch[q.c.n]
	q.c.n++
	l.fn = function(f)
	for i := range grid {
		l.grid[i], l.block[i] = C.uint(grid[i]), C.uint(block[i])
	}
	l.shared = C.uint(shared)
	l.overlap = flag(overlap)
	l.args, l.maps, l.bad = 0, 0, C.CUDA_SUCCESS
	l.bytes = C.uint(copy((*[C.SPMM_MAX_PARAMS]byte)(unsafe.Pointer(&l.params))[:], params))
}

// Arg appends a pointer to the arguments of the launch added last.
func (q *Queue) Arg(p cu.DevicePtr) {
	l := &q.c.launch[q.c.n-1]
	l.arg[l.args] = C.CUdeviceptr(p)
	l.args++
}

// Map appends the tensor map of a matrix of 16-bit elements to the arguments of the launch added last. What the driver
// refuses to make one of is an error of Submit or AddTo.
func (q *Queue) Map(matrix cu.DevicePtr, rows, cols, pitch, tileRows, tileCols uint32) {
	C.spmm_queue_map(q.c, C.CUdeviceptr(matrix), C.uint(rows), C.uint(cols), C.uint(pitch), C.uint(tileRows),
		C.uint(tileCols))
}

// Clock is the events around the launches of a run.
type Clock struct{ c *C.spmm_clock }

// NewClock makes a clock for runs that are in flight together with others. The queue's context must be current. Where
// it fails, Destroy still frees what was made.
func NewClock() (Clock, error) {
	c := Clock{(*C.spmm_clock)(C.calloc(1, C.sizeof_spmm_clock))}
	return c, check(C.spmm_clock_make(c.c))
}

// Destroy frees the clock; the queue's context must be current.
func (c Clock) Destroy() error {
	err := check(C.spmm_clock_destroy(c.c))
	C.free(unsafe.Pointer(c.c))
	return err
}

// Elapsed is the device's time from before the first launch of the run to after its last one. All launches must have
// been awaited.
func (c Clock) Elapsed() time.Duration {
	return time.Duration(float64(c.c.ms) * float64(time.Millisecond))
}

// Clock returns the queue's own clock, of runs that are awaited before the next one is submitted.
func (q *Queue) Clock() Clock { return Clock{&q.c.own} }

// Submit hands the batch to the driver and returns. The first batch of a run starts the clock, the
// last one stops it. One that fails waits for all.
func (q *Queue) Submit(c Clock, first, last bool) error {
	return check(C.spmm_queue_submit(q.c, c.c, flag(first), flag(last)))
}

// Wait waits until everything of the run submitted last is done, or everything but its last batch, and calls
// carryOn every 20 ms: an error of it ends the wait, and is Wait's. With Wait(false) callers see to it that two batches
// are in flight at most.
func (q *Queue) Wait(all bool, carryOn func() error) error {
	r := C.spmm_queue_wait(q.c, flag(all), 1)
	for r == C.CUDA_ERROR_NOT_READY {
		if err := carryOn(); err != nil {
			return err
		}
		r = C.spmm_queue_wait(q.c, flag(all), 0)
	}
	return check(r)
}

// WaitFor waits likewise for the run of a clock.
func (q *Queue) WaitFor(c Clock, carryOn func() error) error {
	const look = 20 * time.Millisecond
	r := C.spmm_clock_wait(q.c, c.c, C.longlong(look), 1)
	for r == C.CUDA_ERROR_NOT_READY {
		if err := carryOn(); err != nil {
			return err
		}
		r = C.spmm_clock_wait(q.c, c.c, C.longlong(look), 0)
	}
	return check(r)
}

// Look tells whether the run of a clock is done: NotReady if it is not.
func (q *Queue) Look(c Clock) error { return check(C.spmm_clock_wait(q.c, c.c, 0, 1)) }

// Refused is the position in its batch of the launch that Submit failed at, -1 if it was no launch.
func (q *Queue) Refused() int {
	if q.c.failed == Batch {
		return -1
	}
	return int(q.c.failed)
}

// Reset forgets the launches added since the last Submit.
func (q *Queue) Reset() { q.c.n = 0 }

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
