// Kernels: compute pipelines made from SPIR-V.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

// kernel implements backend.Kernel.
type kernel struct {
	d                *device
	bin              backend.Binary // without its code
	layout, pipeline C.uint64_t     // pipeline is 0 once closed
	push             C.uint32_t     // bytes of push constants
	pace             backend.Pace
}

func (d *device) Load(b backend.Binary) (backend.Kernel, error) {
	if err := d.checkBinary(&b); err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	if len(b.Code)%4 != 0 {
		return nil, fmt.Errorf("vulkan: kernel %s: %d bytes are no SPIR-V module", b.Name, len(b.Code))
	}
	code := make([]uint32, len(b.Code)/4) // aligned, in the host's byte order
	for i := range code {
		code[i] = binary.LittleEndian.Uint32(b.Code[4*i:])
	}
	if err := d.checkModule(code, b.Entry); err != nil {
		return nil, fmt.Errorf("vulkan: kernel %s: %w", b.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	k := &kernel{d: d, bin: b, push: C.uint32_t(8*b.Args + b.ParamBytes)}
	k.bin.Code, k.bin.Spec = nil, nil
	var err error
	if k.layout, err = d.layout(k.push); err != nil {
		return nil, err
	}
	if err := d.pipeline(k, &b, code); err != nil {
		return nil, err
	}
	d.kernels[k] = struct{}{}
	return k, nil
}

// checkBinary refuses what the device cannot run, as far as the description tells.
func (d *device) checkBinary(b *backend.Binary) error {
	if err := backend.CheckBinary(b, &d.caps); err != nil {
		return err
	}
	if push := uint32(8*b.Args + b.ParamBytes); push > d.a.limits.pushBytes {
		return fmt.Errorf("kernel %s: %d bytes of push constants, the device allows %d: %w", b.Name, push, d.a.limits.pushBytes, backend.ErrUnsupported)
	}
	if b.Matrix && len(d.caps.Matrix) == 0 {
		return fmt.Errorf("kernel %s: the device has no cooperative matrices: %w", b.Name, backend.ErrUnsupported)
	}
	if b.Subgroup == 0 {
		return nil
	}
	c := &d.caps
	if b.Subgroup < c.SubgroupMin || b.Subgroup > c.SubgroupMax || bits.OnesCount32(b.Subgroup) != 1 ||
		!c.SubgroupPinned && c.SubgroupMin != c.SubgroupMax {
		return fmt.Errorf("kernel %s: needs subgroups of %d, the device has %d to %d (to choose: %v): %w",
			b.Name, b.Subgroup, c.SubgroupMin, c.SubgroupMax, c.SubgroupPinned, backend.ErrUnsupported)
	}
	most := d.props.size.maxComputeWorkgroupSubgroups
	if n := b.Local[0] * b.Local[1] * b.Local[2] / b.Subgroup; c.SubgroupPinned && n > most {
		return fmt.Errorf("kernel %s: %d subgroups of %d in a workgroup, the device allows %d: %w", b.Name, n, b.Subgroup, most, backend.ErrUnsupported)
	}
	if b.Local[0]%b.Subgroup != 0 {
		return fmt.Errorf("kernel %s: workgroup %v is no multiple of the subgroup %d", b.Name, b.Local, b.Subgroup)
	}
	return nil
}

// layout returns the pipeline layout for n bytes of push constants.
func (d *device) layout(push C.uint32_t) (C.uint64_t, error) {
	l, ok := d.layouts[push]
	if !ok {
		if err := d.check(C.sv_layout(d.native, push, &l), "vkCreatePipelineLayout"); err != nil {
			return 0, err
		}
		d.layouts[push] = l
	}
	return l, nil
}

func (d *device) pipeline(k *kernel, b *backend.Binary, code []uint32) error {
	spec := make([]uint32, 0, 2*len(b.Spec))
	for _, s := range b.Spec {
		spec = append(spec, s.ID, s.Value)
	}
	entry := C.CString(b.Entry)
	defer C.free(unsafe.Pointer(entry))
	var pin runtime.Pinner
	defer pin.Unpin()
	s := C.sv_shader{code_bytes: C.size_t(4 * len(code)), entry: entry, spec_count: C.uint32_t(len(b.Spec))}
	pin.Pin(&code[0])
	s.code = (*C.uint32_t)(&code[0])
	if len(spec) > 0 {
		pin.Pin(&spec[0])
		s.spec = (*C.uint32_t)(&spec[0])
	}
	if b.Subgroup != 0 && d.caps.SubgroupPinned {
		s.subgroup, s.full_subgroups = C.uint32_t(b.Subgroup), 1
	}
	r := C.sv_pipeline(d.native, d.cache.handle, k.layout, &s, &k.pipeline)
	switch err := d.check(r, "vkCreateComputePipelines"); {
	case errors.Is(err, backend.ErrDeviceLost), errors.Is(err, backend.ErrOutOfMemory):
		return fmt.Errorf("kernel %s: %w", b.Name, err)
	case err != nil:
		return fmt.Errorf("vulkan: kernel %s: %w: %w", b.Name, backend.ErrCompile, err)
	}
	if k.pipeline == 0 {
		return fmt.Errorf("vulkan: kernel %s: %w: no error, and no pipeline", b.Name, backend.ErrCompile)
	}
	return nil
}

func (k *kernel) Close() error {
	k.d.mu.Lock()
	defer k.d.mu.Unlock()
	if k.pipeline != 0 && !k.d.closed {
		k.d.settle(context.Background())
		if k.d.lost {
			return nil // freed with the device: who knows what it is doing
		}
		C.sv_free_pipeline(k.d.native, k.pipeline)
		delete(k.d.kernels, k)
	}
	k.pipeline = 0
	return nil
}
