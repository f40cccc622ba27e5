// Memory that MPI may see. Communication libraries register pages with the network card and remember them until the C
// library frees them; Go gives pages back behind its back. So MPI is given C memory alone: what lies elsewhere goes
// through a copy.

//go:build cgo && linux

package mpi

/*
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// allocated are the runs of C memory that Alloc has returned.
var allocated struct {
	sync.Mutex
	runs []run
}

// run is memory from begin to before end.
type run struct{ begin, end uintptr }

// Alloc returns C memory, which is transferred without a copy.
func (c *ranks) Alloc(bytes int) ([]byte, func(), error) {
	p := C.calloc(1, C.size_t(bytes))
	if p == nil {
		return nil, nil, fmt.Errorf("comm/mpi: no memory for %d bytes", bytes)
	}
	r := run{uintptr(p), uintptr(p) + uintptr(bytes)}
	allocated.Lock()
	defer allocated.Unlock()
	allocated.runs = append(allocated.runs, r)
	return unsafe.Slice((*byte)(p), bytes), sync.OnceFunc(func() {
		allocated.Lock()
		defer allocated.Unlock()
		allocated.runs = slices.DeleteFunc(allocated.runs, func(x run) bool { return x == r })
		C.free(p)
	}), nil
}

// isAllocated reports whether memory is Alloc's.
func isAllocated(b []byte) bool {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	allocated.Lock()
	defer allocated.Unlock()
	return slices.ContainsFunc(allocated.runs, func(r run) bool {
		return r.begin <= begin &&
			begin+uintptr(len(b)) <= r.end
	})
}

// staging is the C memory of one call.
type staging struct{ copies []staged }

// staged is a copy of memory, which goes back there if out is set.
type staged struct {
	data []byte
	c    unsafe.Pointer
	out  bool
}

// through calls f with staging for its buffers, and brings results back.
func through(f func(m *staging) error) error {
	m := new(staging)
	defer func() {
		for _, s := range m.copies {
			C.free(s.c)
		}
	}()
	if err := f(m); err != nil {
		return err
	}
	for _, s := range m.copies {
		if s.out {
			copy(s.data, unsafe.Slice((*byte)(s.c), len(s.data)))
		}
	}
	return nil
}

// in returns where MPI reads a buffer, inOut where it writes all or some of one.
func (m *staging) in(b []byte) unsafe.Pointer    { return m.place(b, false) }
func (m *staging) inOut(b []byte) unsafe.Pointer { return m.place(b, true) }

func (m *staging) place(b []byte, out bool) unsafe.Pointer {
	if len(b) > 0 && isAllocated(b) {
		return unsafe.Pointer(unsafe.SliceData(b))
	}
	p := C.malloc(C.size_t(max(8,
		len(b)))) // not null for no bytes, which some libraries refuse; malloc in cgo never fails
	copy(unsafe.Slice((*byte)(p), len(b)), b)
	m.copies = append(m.copies, staged{b, p, out})
	return p
}

// bytesOf returns the memory of s.
func bytesOf(s []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}
