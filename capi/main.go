// Package main is spmm as a C library, libspmm: `make capi` builds it, and spmm.h documents it.
//
// entry.c has the functions of spmm.h. Each checks that the process is not a forked child, in which Go's runtime has no
// threads, and calls the Go function of the same name with go in place of spmm. This file has errors and handles.
package main

/*
#include "entry.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/spmmrun/spmm"
	_ "github.com/spmmrun/spmm/backend/all"
)

func main() {}

var errDefect = errors.New("a defect of the library")

// status keeps an error's message for the thread and returns its code.
func status(err error) C.int {
	if err == nil {
		return C.SPMM_OK
	}
	text := err.Error()
	C.spmm_keep_error((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	for _, c := range []struct {
		err  error
		code C.int
	}{
		{errDefect, C.SPMM_DEFECT}, {context.Canceled, C.SPMM_CANCELLED}, {spmm.ErrDeviceLost, C.SPMM_LOST},
		{spmm.ErrOutOfMemory, C.SPMM_OUT_OF_MEMORY}, {spmm.ErrUnavailable, C.SPMM_UNAVAILABLE},
		{spmm.ErrCompile, C.SPMM_COMPILE}, {spmm.ErrUnsupported, C.SPMM_UNSUPPORTED}, {spmm.ErrClosed, C.SPMM_CLOSED},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return C.SPMM_INVALID
}

// try calls f, and makes an error of a panic, and of an access to memory that is not there.
func try(f func() error) (code C.int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			code = status(fmt.Errorf("%w: %v\n%s", errDefect, r, debug.Stack()))
		}
	}()
	return status(f())
}

// handles are the objects that the program holds, by their numbers.
type handles struct {
	mu   sync.RWMutex
	of   map[uint64]any
	last uint64
}

var open = handles{of: map[uint64]any{}}

func (h *handles) put(v any) C.uint64_t {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.of[h.last] = v
	return C.uint64_t(h.last)
}

// take removes an object, and tells whether there was one.
func (h *handles) take(id C.uint64_t) (any, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.of[uint64(id)]
	delete(h.of, uint64(id))
	return v, ok
}

// get returns the object of a handle, which must be of type T.
func get[T any](id C.uint64_t, what string) (T, error) {
	open.mu.RLock()
	v, ok := open.of[uint64(id)].(T)
	open.mu.RUnlock()
	if !ok {
		return v, fmt.Errorf("handle %d of a %s: %w", uint64(id), what, spmm.ErrClosed)
	}
	return v, nil
}

//export go_close
func go_close(id C.uint64_t) C.int {
	return try(func() error {
		v, ok := open.take(id)
		if !ok {
			return nil
		}
		return v.(interface{ close() error }).close()
	})
}

//export go_info
func go_info(id C.uint64_t, buf *C.char, size *C.size_t) C.int {
	return try(func() error {
		v, err := get[interface{ info() any }](id, "device or a plan")
		if err != nil {
			return err
		}
		text, err := json.Marshal(v.info())
		if err != nil {
			return err
		}
		if size == nil {
			return errors.New("the pointer to the size is missing")
		}
		need := len(text) + 1
		if buf != nil && int(*size) >= need {
			out := unsafe.Slice((*byte)(unsafe.Pointer(buf)), need)
			copy(out, text)
			out[len(text)] = 0
		}
		*size = C.size_t(need)
		return nil
	})
}

// running is the context of all calls, until they are cancelled.
var running struct {
	sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

// current returns the context of a call.
func current() context.Context {
	running.Lock()
	defer running.Unlock()
	if running.ctx == nil {
		running.ctx, running.cancel = context.WithCancel(context.Background())
	}
	return running.ctx
}

//export go_cancel
func go_cancel() {
	current()
	running.Lock()
	defer running.Unlock()
	running.cancel()
	running.ctx = nil
}
