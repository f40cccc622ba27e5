//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Kernels and their bind groups.

package webgpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
)

// maxGroups is how many bind groups a kernel keeps from one batch to the next; past that it starts anew.
const maxGroups = 256

// arguments are a launch's buffers, as a key.
type arguments [backend.MaxArgs]*buffer

type kernel struct {
	dev    *device
	bin    backend.Binary
	nat    *program // nil once closed
	groups map[arguments]ref
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
	if b.Args > d.limits.arguments {
		return nil, fmt.Errorf("kernel %s: %d arguments, the device binds %d (maxStorageBuffersPerShaderStage): %w", b.Name, b.Args, d.limits.arguments, backend.ErrUnsupported)
	}
	k := &kernel{dev: d, bin: b, groups: map[arguments]ref{}}
	k.nat = d.gpu.load(&k.bin, k.paddedParams())
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
	k.dev.gpu.freeProgram(k.nat)
	k.nat = nil
	delete(k.dev.kernels, k)
}

// forget frees the bind groups that have b among their buffers; all, if b is nil.
func (k *kernel) forget(b *buffer) {
	for args, group := range k.groups {
		if b == nil || slices.Contains(args[:], b) {
			k.dev.gpu.freeGroup(group)
			delete(k.groups, args)
		}
	}
}

// trim frees the bind groups if there are too many. No launch that was encoded and not submitted may need one.
func (k *kernel) trim() {
	if len(k.groups) >= maxGroups {
		k.forget(nil)
	}
}

// group returns the bind group for these buffers, made when first needed.
func (k *kernel) group(args arguments) (ref, error) {
	if group, ok := k.groups[args]; ok {
		return group, nil
	}
	var refs [backend.MaxArgs]ref
	for i := range k.bin.Args {
		refs[i] = args[i].ref
	}
	group := k.dev.gpu.group(k.nat, refs[:k.bin.Args], k.dev.params.ref, k.paddedParams())
	if err := k.dev.take("kernel " + k.bin.Name + ": binding its arguments"); err != nil {
		return none, err
	}
	k.groups[args] = group
	for _, b := range args[:k.bin.Args] {
		if !slices.Contains(b.used, k) {
			b.used = append(b.used, k)
		}
	}
	return group, nil
}
