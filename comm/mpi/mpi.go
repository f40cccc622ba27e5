// The library, its thread, and the operations.

//go:build cgo && linux

package mpi

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/spmmrun/spmm/comm"
)

// library is the process's MPI: it can be initialised once.
var library struct {
	sync.Mutex
	begun bool
	calls chan func() // run on MPI's thread
	items map[int]C.sm_handle
}

// text is the length of buffers for messages.
const text = 8192

// Init opens the library of the launcher that started the process, initialises it, and returns the Comm of all ranks,
// whose Close finalises MPI, with the library's version. It may be called once. Without a library the error is
// comm.ErrUnavailable.
func Init() (comm.Comm, string, error) {
	library.Lock()
	defer library.Unlock()
	if library.begun {
		return nil, "", errors.New("comm/mpi: MPI can be initialised once in a process")
	}
	library.begun = true
	library.items = map[int]C.sm_handle{}
	library.calls = make(chan func())
	go func() {
		runtime.LockOSThread() // never unlocked: MPI's calls come from the thread that initialised it
		for f := range library.calls {
			f()
		}
	}()
	var c *ranks
	var version string
	var err error
	onThread(func() { c, version, err = open() })
	if err != nil {
		return nil, version, err
	}
	return c, version, nil
}

// onThread runs f on MPI's thread.
func onThread(f func()) {
	done := make(chan struct{})
	library.calls <- func() { defer close(done); f() }
	<-done
}

// open opens and initialises a library.
func open() (*ranks, string, error) {
	l, launched := Launcher()
	C.sm_signals_save()
	defer C.sm_signals_restore()
	path, err := load(candidates(l.By, os.Getenv("SPMM_MPI_LIBRARY")))
	if err != nil {
		return nil, "", err
	}
	if err := result("Init_thread", C.sm_init()); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	version := message(func(p *C.char, n C.int) { C.sm_version(p, n) })
	c, err := newRanks(C.sm_world())
	if err != nil {
		return nil, version, err
	}
	if launched {
		if err := l.check(path, version, c.rank, c.size); err != nil {
			return nil, version, errors.Join(err, result("Finalize", C.sm_finalize()))
		}
	}
	return c, firstLine(version), nil
}

// load opens the first of the libraries that can be opened.
func load(paths []string) (string, error) {
	var why []string
	for _, path := range paths {
		name := C.CString(path)
		abi := C.SM_NONE
		reason := message(func(p *C.char, n C.int) { abi = int(C.sm_open(name, p, n)) })
		C.free(unsafe.Pointer(name))
		if abi != C.SM_NONE {
			return path, nil
		}
		why = append(why, reason)
	}
	return "", fmt.Errorf("comm/mpi: %w: no MPI library (Debian: openmpi-bin or mpich; SPMM_MPI_LIBRARY names another): %s", comm.ErrUnavailable, strings.Join(why, "; "))
}

// message returns the text that f leaves in a buffer.
func message(f func(*C.char, C.int)) string {
	p := (*C.char)(C.calloc(1, text))
	defer C.free(unsafe.Pointer(p))
	f(p, text)
	return C.GoString(p)
}

// result is the error that a function returned, on MPI's thread.
func result(function string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("comm/mpi: MPI_%s: %s", function, firstLine(message(func(p *C.char,
		n C.int) {
		C.sm_error(rc, p, n)
	})))
}

// call runs one of MPI's functions on its thread.
func call(function string, f func() C.int) (err error) {
	onThread(func() { err = result(function, f()) })
	return err
}

// ranks is the communicator of all ranks.
type ranks struct {
	handle     C.sm_handle
	rank, size int
}

// newRanks describes it, on MPI's thread.
func newRanks(h C.sm_handle) (*ranks, error) {
	var rank, size C.int
	if err := result("Comm_rank", C.sm_rank(h, &rank)); err != nil {
		return nil, err
	}
	if err := result("Comm_size", C.sm_size(h, &size)); err != nil {
		return nil, err
	}
	return &ranks{h, int(rank), int(size)}, nil
}

// Close finalises MPI, which waits for all ranks.
func (c *ranks) Close() error {
	return call("Finalize", func() C.int {
		for _, t := range library.items {
			C.sm_items_free(t)
		}
		library.items = nil
		return C.sm_finalize()
	})
}

func (c *ranks) Rank() int { return c.rank }
func (c *ranks) Size() int { return c.size }

// Abort ends all ranks. It does not wait for MPI's thread, which may be waiting for a rank that will never come.
func (c *ranks) Abort(code int) {
	C.sm_abort(C.int(code))
	os.Exit(code)
}

func (c *ranks) Barrier() error {
	return call("Barrier", func() C.int { return C.sm_barrier(c.handle) })
}

// chunk is how many elements go into one call: counts are ints.
const chunk = 1 << 28

func (c *ranks) Bcast(data []byte, root int) error {
	if err := comm.CheckRoot(c, root); err != nil {
		return err
	}
	for p := range chunks(data) {
		err := through(func(m *staging) error {
			b, n := m.inOut(p), C.int(len(p))
			return call("Bcast", func() C.int { return C.sm_bcast(b, n, C.int(root), c.handle) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *ranks) AllReduce(data []int64, op comm.Op) error {
	if err := comm.CheckOp(op); err != nil {
		return err
	}
	for p := range chunks(data) {
		err := through(func(m *staging) error {
			b, n := m.inOut(bytesOf(p)), C.int(len(p))
			return call("Allreduce", func() C.int { return C.sm_allreduce((*C.int64_t)(b), n, reduction(op), c.handle) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *ranks) AllToAllV(item int, send []byte, sent []comm.Part, recv []byte, received []comm.Part) error {
	if err := errors.Join(comm.CheckParts(c, item, send, sent), comm.CheckParts(c, item, recv, received)); err != nil {
		return err
	}
	sn, ss := ints(sent)
	rn, rs := ints(received)
	return through(func(m *staging) error {
		from, to := m.in(send), m.inOut(recv)
		return c.items(item, "Alltoallv", func(t C.sm_handle) C.int {
			return C.sm_alltoallv(from, &sn[0], &ss[0], to, &rn[0], &rs[0], t, c.handle)
		})
	})
}

func (c *ranks) AllGatherV(item int, send, recv []byte, parts []comm.Part) error {
	if err := comm.CheckGather(c, item, send, recv, parts); err != nil {
		return err
	}
	if c.size == 1 { // MPICH 4.0 takes no heed of where the part of one rank starts
		copy(recv[parts[0].Start*item:], send)
		return nil
	}
	n, s := ints(parts)
	count := C.int(len(send) / item)
	return through(func(m *staging) error {
		from, to := m.in(send), m.inOut(recv)
		return c.items(item, "Allgatherv", func(t C.sm_handle) C.int {
			return C.sm_allgatherv(from, count, to, &n[0], &s[0], t, c.handle)
		})
	})
}

// items calls a function with MPI's type of that many bytes, which is made once.
func (c *ranks) items(bytes int, function string, f func(C.sm_handle) C.int) (err error) {
	if bytes > math.MaxInt32 {
		return fmt.Errorf("comm/mpi: items of %d bytes, at most %d are possible", bytes, math.MaxInt32)
	}
	onThread(func() {
		t, known := library.items[bytes]
		if !known {
			if err = result("Type_contiguous", C.sm_items(C.int(bytes), &t)); err != nil {
				return
			}
			library.items[bytes] = t
		}
		err = result(function, f(t))
	})
	return err
}

// chunks cuts data into what one call takes.
func chunks[T any](data []T) func(func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(data) > 0 {
			n := min(len(data), chunk)
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

func reduction(op comm.Op) C.int {
	if op == comm.Max {
		return C.SM_MAX
	}
	return C.SM_SUM
}

func ints(parts []comm.Part) (counts, starts []C.int) {
	for _, p := range parts {
		counts, starts = append(counts, C.int(p.Count)), append(starts, C.int(p.Start))
	}
	return counts, starts
}
