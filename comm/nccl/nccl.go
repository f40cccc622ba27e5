// The library, and a communicator of it.

//go:build cgo && linux

package nccl

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/comm"
)

// library is the process's NCCL.
var library struct {
	sync.Mutex
	path string // once opened
}

// text is the length of buffers for messages.
const text = 4096

// open opens the library and returns its version.
func open() (string, error) {
	library.Lock()
	defer library.Unlock()
	if library.path == "" {
		path := os.Getenv("SPMM_NCCL_LIBRARY")
		if path == "" {
			path = "libnccl.so.2"
		}
		name := C.CString(path)
		defer C.free(unsafe.Pointer(name))
		var failed bool
		why := message(func(p *C.char, n C.int) { failed = C.sn_open(name, p, n) != 0 })
		if failed {
			return "", fmt.Errorf("comm/nccl: %w: NCCL cannot be opened: install it (Debian: libnccl2; pip: nvidia-nccl-cu12), or set SPMM_NCCL_LIBRARY to a libnccl.so.2, such as site-packages/nvidia/nccl/lib/libnccl.so.2: %s",
				comm.ErrUnavailable, why)
		}
		library.path = path
	}
	v := int(C.sn_version())
	return fmt.Sprintf("NCCL %d.%d.%d", v/10000, v/100%100, v%100), nil
}

// message returns the text that f leaves in a buffer.
func message(f func(*C.char, C.int)) string {
	p := (*C.char)(C.calloc(1, text))
	defer C.free(unsafe.Pointer(p))
	f(p, text)
	return C.GoString(p)
}

// result is the error that a function returned.
func result(function string, rc C.int) error {
	if rc == C.SN_OK || rc == C.SN_IN_PROGRESS {
		return nil
	}
	said, _, _ := strings.Cut(message(func(p *C.char, n C.int) { C.sn_error(rc, p, n) }), "\n")
	return fmt.Errorf("comm/nccl: nccl%s: %s (NCCL_DEBUG=WARN tells more)", function, strings.TrimSpace(said))
}

// Comm is a rank's end of a communicator. One goroutine at a time may use it.
type Comm struct {
	c       comm.Comm
	dev     backend.Sharer
	version string
	stream  backend.Stream
	handle  unsafe.Pointer  // nil once closed or aborted
	cell    *unsafe.Pointer // in C's memory: where NCCL keeps the handle while ranks meet
}

// New makes a communicator of the ranks of c, which each have a device of their own, an NVIDIA GPU (backend.Sharer). It
// is collective: an error that one rank has is one on all. Where the library or the device is missing, or ranks share a
// GPU, the error is comm.ErrUnavailable on the rank that has it.
func New(ctx context.Context, c comm.Comm, dev backend.Device) (*Comm, error) {
	x := &Comm{c: c}
	err := x.prepare(dev)
	if err = comm.Agree(c, err, nil); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	id := make([]byte, C.SN_ID)
	if c.Rank() == 0 {
		err = x.dev.Within(func() error { return result("GetUniqueId", C.sn_id((*C.char)(unsafe.Pointer(&id[0])))) })
	}
	if err = comm.Agree(c, err, nil); err == nil {
		err = c.Bcast(id, 0)
	}
	if err == nil {
		err = x.init(ctx, id)
	}
	if err != nil {
		return nil, errors.Join(err, x.abort())
	}
	return x, nil
}

// prepare does what comes before ranks meet in NCCL. It is collective.
func (x *Comm) prepare(dev backend.Device) error {
	var mine [16]byte
	var err error
	if s, ok := dev.(backend.Sharer); !ok {
		err = fmt.Errorf("comm/nccl: %w: NCCL is for CUDA devices, not for %v", comm.ErrUnavailable, dev.Info())
	} else if x.version, err = open(); err == nil {
		x.dev = s
		if x.stream, err = s.NewStream(); err == nil {
			mine, err = s.Unique()
		}
	}
	all, parts := make([]byte, 16*x.c.Size()), make([]comm.Part, x.c.Size())
	for r := range parts {
		parts[r] = comm.Part{Start: r, Count: 1}
	}
	if e := x.c.AllGatherV(16, mine[:], all, parts); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	for r := range x.c.Size() {
		if r != x.c.Rank() && string(all[16*r:16*r+16]) == string(mine[:]) {
			return fmt.Errorf("comm/nccl: %w: ranks %d and %d are on one GPU, and NCCL takes one rank on each: start as many ranks on a machine as it has GPUs",
				comm.ErrUnavailable, min(r, x.c.Rank()), max(r, x.c.Rank()))
		}
	}
	return nil
}

// init meets the other ranks in NCCL, which goes on by itself while they tell each other whether some rank still waits
// and whether one has an error, the end of its context too, which is then one on all.
func (x *Comm) init(ctx context.Context, id []byte) error {
	x.cell = (*unsafe.Pointer)(C.calloc(1, C.size_t(unsafe.Sizeof(x.handle)))) // NCCL's threads write there, too
	size, rank := C.int(x.c.Size()), C.int(x.c.Rank())
	err := x.dev.Within(func() error {
		return result("CommInitRankConfig", C.sn_init(x.cell, size, (*C.char)(unsafe.Pointer(&id[0])), rank))
	})
	x.handle = *x.cell
	for {
		state := []int64{0, 0} // this rank waits, this rank has an error
		if err == nil {
			var busy bool
			if busy, err = x.busy(); busy {
				state[0], err = 1, ctx.Err()
			}
		}
		if err != nil {
			state[1] = 1
		}
		if err := x.c.AllReduce(state, comm.Max); err != nil {
			return err
		}
		if state[0] == 0 || state[1] != 0 {
			return comm.Agree(x.c, err, nil)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Name says that data travel by NCCL, and its version.
func (x *Comm) Name() string { return x.version }

// Close frees the communicator. NCCL may wait for the other ranks to do so, too: after some seconds Close gives up.
func (x *Comm) Close() error {
	if x.handle == nil {
		return x.closeStream()
	}
	const patience = 5 * time.Second
	handle := x.handle
	x.handle = nil
	done := make(chan error, 1)
	go func() {
		done <- x.dev.Within(func() error { return result("CommDestroy", C.sn_destroy(handle)) })
	}()
	select {
	case err := <-done:
		return errors.Join(err, x.closeStream())
	case <-time.After(patience):
		return errors.New("comm/nccl: ncclCommDestroy waits for a rank that does not end")
	}
}

// abort frees the communicator whatever the other ranks do.
func (x *Comm) abort() error {
	handle := x.handle
	x.handle = nil
	if handle != nil {
		if err := x.dev.Within(func() error { return result("CommAbort", C.sn_abort(handle)) }); err != nil {
			return err
		}
	}
	return x.closeStream()
}

func (x *Comm) closeStream() error {
	C.free(unsafe.Pointer(x.cell))
	x.cell = nil
	if x.stream == nil {
		return nil
	}
	return x.stream.Close()
}

// AllToAllV is comm.DeviceComm's.
func (x *Comm) AllToAllV(ctx context.Context, item int, send comm.Buffer, sent []comm.Part, recv comm.Buffer,
	received []comm.Part) (comm.Transfer, error) {
	size := x.c.Size()
	if err := errors.Join(comm.CheckBuffer(size, item, send, sent),
		comm.CheckBuffer(size, item, recv, received)); err != nil {
		return nil, err
	}
	sentAt, sentBytes := sizes(item, sent)
	receivedAt, receivedBytes := sizes(item, received)
	return x.begin(ctx, "Send and ncclRecv", []comm.Buffer{send, recv},
		func(at []C.sn_address, stream C.sn_address) C.int {
			return C.sn_exchange(x.handle, C.int(size), at[0], &sentAt[0], &sentBytes[0], at[1], &receivedAt[0],
				&receivedBytes[0], stream)
		})
}

// AllGatherV is comm.DeviceComm's.
func (x *Comm) AllGatherV(ctx context.Context, item int, send, recv comm.Buffer, parts []comm.Part) (comm.Transfer,
	error) {
	size, rank := x.c.Size(), x.c.Rank()
	if err := comm.CheckBuffer(size, item, recv, parts); err != nil {
		return nil, err
	}
	mine := make([]comm.Part, size)
	mine[rank].Count = parts[rank].Count
	if err := comm.CheckBuffer(size, item, send, mine); err != nil {
		return nil, err
	}
	at, bytes := sizes(item, parts)
	return x.begin(ctx, "Broadcast", []comm.Buffer{send, recv}, func(p []C.sn_address, stream C.sn_address) C.int {
		return C.sn_gather(x.handle, C.int(size), C.int(rank), p[0], p[1], &at[0], &bytes[0], stream)
	})
}

// sizes returns where parts begin and how long they are, in bytes.
func sizes(item int, parts []comm.Part) (at, bytes []C.size_t) {
	for _, p := range parts {
		at, bytes = append(at, C.size_t(p.Start)*C.size_t(item)), append(bytes, C.size_t(p.Count)*C.size_t(item))
	}
	return at, bytes
}

var errClosed = errors.New("comm/nccl: the communicator was closed or aborted")

// begin submits an operation on buffers to the stream. NCCL's threads do so when the ranks that take part have
// connected to each other, which the first operations between them wait for.
func (x *Comm) begin(ctx context.Context, function string, buffers []comm.Buffer,
	f func(at []C.sn_address, stream C.sn_address) C.int) (comm.Transfer, error) {
	if x.handle == nil {
		return nil, errClosed
	}
	at := make([]C.sn_address, len(buffers))
	for i, b := range buffers {
		mine, ok := b.(backend.Buffer)
		if !ok {
			return nil, errors.New("comm/nccl: a buffer that is none of a device")
		}
		address, err := x.dev.Address(mine)
		if err != nil {
			return nil, err
		}
		at[i] = C.sn_address(address)
	}
	if err := x.until(ctx, x.submitted); err != nil { // the operation before
		return nil, err
	}
	err := x.dev.Within(func() error { return result(function, f(at, C.sn_address(x.stream.Handle()))) })
	if err != nil {
		return nil, errors.Join(err, x.abort())
	}
	return transfer{x, buffers}, nil
}

// transfer is all that is in the stream. It keeps the buffers of the last operation, whose memory NCCL uses until it is
// done.
type transfer struct {
	x       *Comm
	buffers []comm.Buffer
}

// Wait looks at the stream, and at the library's errors now and then.
func (t transfer) Wait(ctx context.Context) error {
	defer runtime.KeepAlive(t.buffers)
	const apart = 20 * time.Millisecond
	x := t.x
	if x.handle == nil {
		return errClosed
	}
	if err := x.until(ctx, x.submitted); err != nil {
		return err
	}
	looked := time.Now()
	return x.until(ctx, func() (bool, error) {
		done, err := x.stream.Done()
		if now := time.Now(); err == nil && !done && now.Sub(looked) > apart {
			looked = now
			_, err = x.busy()
		}
		return done, err
	})
}

// until looks whether something is done, often at first, because short transfers are done soon. An error, or that the
// context ends, aborts the communicator.
func (x *Comm) until(ctx context.Context, done func() (bool, error)) error {
	const often = time.Millisecond
	for start := time.Now(); ; {
		is, err := done()
		if err == nil && is {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return errors.Join(err, x.abort())
		}
		if time.Since(start) < often {
			runtime.Gosched()
			continue
		}
		// time.Sleep takes a millisecond where nothing else is to be done.
		t := syscall.NsecToTimespec(int64(20 * time.Microsecond))
		_ = syscall.Nanosleep(&t, nil)
	}
}

// submitted reports whether operations have gone to the stream.
func (x *Comm) submitted() (bool, error) {
	busy, err := x.busy()
	return !busy, err
}

// busy reports whether NCCL's threads still work on what was called last, or what error they have met: a connection
// that broke, because another rank has died.
func (x *Comm) busy() (bool, error) {
	var code C.int
	if err := result("CommGetAsyncError", C.sn_async_error(x.handle, &code)); err != nil {
		return false, err
	}
	return code == C.SN_IN_PROGRESS, result("CommGetAsyncError, another rank may have died", code)
}
