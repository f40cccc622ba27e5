//go:build cgo && amd64 && (linux || (windows && webgpu))

// WebGPU as wgpu-native has it, for what is the same in all builds: native.c's functions, called from Go.

package webgpu

// #cgo CFLAGS: -O2 -Wall -fexceptions
// #include "native.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

// ref is a buffer or a bind group.
type ref = unsafe.Pointer

var none ref

// program is a compiled kernel.
type program = C.wg_kernel

// gpu is an open device. All that C points to lives in C's memory.
type gpu struct {
	nat   *C.wg_device
	batch []C.wg_launch
	clock clock
}

// open opens an adapter; take says what went wrong.
func open(a adapter) *gpu {
	g := &gpu{nat: (*C.wg_device)(C.calloc(1, C.sizeof_wg_device))}
	defer quietWayland(a.apis)()
	C.wg_open(g.nat, C.uint32_t(a.apis), C.size_t(a.place))
	return g
}

// wgpu-native 0.17 compiles no packed dot products.
func (g *gpu) limits() limits {
	n := g.nat
	return limits{
		shared: uint32(n.maxShared), invocations: uint32(n.maxInvocations), groups: uint32(n.maxGroups),
		local:     [3]uint32{uint32(n.maxLocal[0]), uint32(n.maxLocal[1]), uint32(n.maxLocal[2])},
		binding:   int64(min(n.maxBinding, n.maxBuffer, 1<<62)),
		arguments: int(n.maxStorage), uniformAlign: int(n.uniformAlign),
	}
}

// take returns the first failure since the last call; a loss, from then on.
func (g *gpu) take() failure {
	n := g.nat
	if n.error == C.WG_OK {
		return failure{}
	}
	f := failure{failureKind(n.error), C.GoString(&n.text[0])}
	if f.kind == lost {
		return f
	}
	n.error = C.WG_OK
	// wgpu reports a lack of memory as such or, from most calls, as a mistake of the caller's.
	if strings.Contains(f.text, "Not enough memory left") {
		f.kind = noMemory
	}
	f.text = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(f.text, "Validation Error")), "Caused by:")
	f.text = wgpuCall.ReplaceAllString(f.text, "")
	return f
}

// wgpuCall is how wgpu's errors begin.
var wgpuCall = regexp.MustCompile(`^\s*In wgpu\w+\s+(Shader ''\s+)?`)

// dead reports whether the device is lost.
func (g *gpu) dead() bool { return bool(g.nat.dead) }

// close frees the device; nothing may be running on it.
func (g *gpu) close() {
	C.wg_close(g.nat)
	if !g.nat.dead { // else wgpu still has it for its callbacks
		C.free(unsafe.Pointer(g.nat))
	}
}

func (g *gpu) buffer(use int, bytes int64) ref {
	return C.wg_buffer(g.nat, C.uint32_t(use), C.uint64_t(bytes))
}

func (g *gpu) freeBuffer(b ref) { C.wg_buffer_free(g.nat, b) }

// write copies p to a buffer, whose last word may be partly padding that nobody owns.
func (g *gpu) write(b ref, off int64, p []byte) {
	if whole := len(p) &^ 3; whole > 0 {
		C.wg_write(g.nat, b, C.uint64_t(off), unsafe.Pointer(&p[0]), C.size_t(whole))
		off, p = off+int64(whole), p[whole:]
	}
	if len(p) > 0 {
		var last [4]byte
		copy(last[:], p)
		C.wg_write(g.nat, b, C.uint64_t(off), unsafe.Pointer(&last[0]), 4)
	}
}

// flush has the device do what was written, so that the copy of it is freed.
func (g *gpu) flush() { C.wg_flush(g.nat) }

func (g *gpu) read(b ref, off int64, staging ref, p []byte) {
	C.wg_read(g.nat, b, C.uint64_t(off), staging, unsafe.Pointer(&p[0]), C.size_t(len(p)))
}

// load compiles WGSL.
func (g *gpu) load(b *backend.Binary, paramBytes int) *program {
	k := (*program)(C.calloc(1, C.sizeof_wg_kernel))
	code, entry := C.CString(string(b.Code)), C.CString(b.Entry)
	defer C.free(unsafe.Pointer(code))
	defer C.free(unsafe.Pointer(entry))
	C.wg_kernel_make(g.nat, k, code, entry, C.uint32_t(b.Args), C.uint32_t(b.ReadOnly), C.uint32_t(paramBytes))
	return k
}

func (g *gpu) freeProgram(k *program) {
	C.wg_kernel_free(g.nat, k)
	C.free(unsafe.Pointer(k))
}

// group makes a bind group.
func (g *gpu) group(k *program, buffers []ref, params ref, paramBytes int) ref {
	var refs [backend.MaxArgs]ref
	copy(refs[:], buffers)
	return C.wg_group(g.nat, k, &refs[0], C.uint32_t(len(buffers)), params, C.uint32_t(paramBytes))
}

func (g *gpu) freeGroup(group ref) { C.wg_group_free(g.nat, group) }

// reset empties the batch.
func (g *gpu) reset() { g.batch = g.batch[:0] }

// append adds a launch to the batch; offset is that of its parameters, -1 if it has none.
func (g *gpu) append(k *program, group ref, offset int, groups [3]uint32) {
	l := C.wg_launch{pipeline: k.pipeline, group: group,
		groups: [3]C.uint32_t{C.uint32_t(groups[0]), C.uint32_t(groups[1]), C.uint32_t(groups[2])}}
	if offset >= 0 {
		l.params, l.offset = 1, C.uint32_t(offset)
	}
	g.batch = append(g.batch, l)
}

// run submits the batch.
func (g *gpu) run() {
	C.wg_run(g.nat, unsafe.SliceData(g.batch), C.size_t(len(g.batch)), &g.clock.last)
}

// running reports whether what was submitted is not known to be done.
func (g *gpu) running() bool { return bool(g.nat.running && !g.nat.dead) }

// await waits for what was submitted, and looks at the context in between.
func (g *gpu) await(ctx context.Context) error {
	for C.wg_wait(g.nat, &g.clock.last, C.uint64_t(20*time.Millisecond)) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// look reports whether what was submitted is done.
func (g *gpu) look() bool { return !bool(C.wg_wait(g.nat, &g.clock.last, 0)) }

// worked returns how long the device worked on the last submission. now: it has just ended.
func (g *gpu) worked(now bool) time.Duration { return g.clock.worked(now) }
