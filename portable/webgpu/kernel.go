//go:build cgo && linux && amd64

// Kernels and their bind groups.

package webgpu

// #include "native.h"
// #include <stdlib.h>
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

// maxGroups is how many bind groups a kernel keeps; past that it starts anew.
const maxGroups = 256

// arguments are a launch's buffers, as a key.
type arguments [backend.MaxArgs]*buffer

type kernel struct {
	dev    *device
	bin    backend.Binary
	nat    *C.wg_kernel // nil once closed
	groups map[arguments]unsafe.Pointer
	pace   backend.Pace
}

// paddedParams is the size of the kernel's parameter block as the shader sees it.
func (k *kernel) paddedParams() int { return (k.bin.ParamBytes + 15) &^ 15 }

// Load compiles WGSL. What is wrong with it is the error.
func (d *device) Load(b backend.Binary) (backend.Kernel, error) {
	if err := backend.CheckBinary(&b, &d.caps); err != nil {
		return nil, err
	}
	if bytes.IndexByte(b.Code, 0) >= 0 {
		return nil, fmt.Errorf("kernel %s: a zero byte in WGSL text", b.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if b.Args > int(d.nat.maxStorage) {
		return nil, fmt.Errorf("kernel %s: %d arguments, the device binds %d (maxStorageBuffersPerShaderStage): %w", b.Name, b.Args, d.nat.maxStorage, backend.ErrUnsupported)
	}
	k := &kernel{dev: d, bin: b, nat: (*C.wg_kernel)(C.calloc(1, C.sizeof_wg_kernel)), groups: map[arguments]unsafe.Pointer{}}
	code, entry := C.CString(string(b.Code)), C.CString(b.Entry)
	defer C.free(unsafe.Pointer(code))
	defer C.free(unsafe.Pointer(entry))
	C.wg_kernel_make(d.nat, k.nat, code, entry, C.uint32_t(b.Args), C.uint32_t(b.ReadOnly), C.uint32_t(k.paddedParams()))
	d.kernels[k] = struct{}{}
	if err := d.take("kernel " + b.Name); err != nil {
		k.free()
		if !errors.Is(err, backend.ErrOutOfMemory) && !errors.Is(err, backend.ErrDeviceLost) {
			err = fmt.Errorf("%w: %w", err, backend.ErrCompile)
		}
		return nil, err
	}
	return k, nil
}

func (k *kernel) Close() error {
	k.dev.mu.Lock()
	defer k.dev.mu.Unlock()
	if k.nat != nil {
		k.dev.settle(context.Background())
	}
	k.free()
	return nil
}

// free is called with the device locked.
func (k *kernel) free() {
	if k.nat == nil {
		return
	}
	k.forget(nil)
	C.wg_kernel_free(k.dev.nat, k.nat)
	C.free(unsafe.Pointer(k.nat))
	k.nat = nil
	delete(k.dev.kernels, k)
}

// forget frees the bind groups that have b among their buffers; all, if b is nil.
func (k *kernel) forget(b *buffer) {
	for args, ref := range k.groups {
		if b == nil || slices.Contains(args[:], b) {
			C.wg_group_free(k.dev.nat, ref)
			delete(k.groups, args)
		}
	}
}

// group returns the bind group for these buffers, made when first needed.
func (k *kernel) group(args arguments) (unsafe.Pointer, error) {
	if ref, ok := k.groups[args]; ok {
		return ref, nil
	}
	if len(k.groups) >= maxGroups {
		k.forget(nil)
	}
	refs := make([]unsafe.Pointer, k.bin.Args+1) // never empty
	for i := range k.bin.Args {
		refs[i] = args[i].ref
	}
	ref := C.wg_group(k.dev.nat, k.nat, &refs[0], C.uint32_t(k.bin.Args), k.dev.params.ref, C.uint32_t(k.paddedParams()))
	if err := k.dev.take("kernel " + k.bin.Name + ": binding its arguments"); err != nil {
		return nil, err
	}
	k.groups[args] = ref
	for _, b := range args[:k.bin.Args] {
		if !slices.Contains(b.used, k) {
			b.used = append(b.used, k)
		}
	}
	return ref, nil
}
