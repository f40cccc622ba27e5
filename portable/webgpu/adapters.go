//go:build cgo && linux && amd64

// Listing adapters.

package webgpu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/spmmrun/spmm/backend"
)

// adapter is a GPU as one API shows it. Adapters live as long as the process: several devices may be opened from one.
type adapter struct {
	ref  unsafe.Pointer
	info backend.Info
}

// adapters looks once, for the first API that shows any: OpenGL would show again what Vulkan did.
var adapters = sync.OnceValue(func() []adapter {
	if !linked() {
		return nil
	}
	var list []adapter
	for _, apis := range []wgpu.InstanceBackend{wgpu.InstanceBackend_Vulkan | wgpu.InstanceBackend_Metal | wgpu.InstanceBackend_DX12, wgpu.InstanceBackend_GL} {
		instance := wgpu.CreateInstance(&wgpu.InstanceDescriptor{Backends: apis})
		for _, a := range instance.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: apis}) {
			list = append(list, describe(a))
		}
		if len(list) > 0 {
			break
		}
		instance.Release()
	}
	slices.SortStableFunc(list, func(a, b adapter) int { return cmp.Compare(rank(a.info.Kind), rank(b.info.Kind)) })
	for i := range list {
		list[i].info.Index = i
	}
	return list
})

func rank(kind string) int {
	return slices.Index([]string{"discrete", "integrated", "virtual", "cpu"}, kind)
}

// describe reads what wgpu tells; it does not tell the memory.
func describe(a *wgpu.Adapter) adapter {
	p := a.GetProperties()
	kind := map[wgpu.AdapterType]string{wgpu.AdapterType_DiscreteGPU: "discrete", wgpu.AdapterType_IntegratedGPU: "integrated",
		wgpu.AdapterType_CPU: "cpu"}[p.AdapterType]
	info := backend.Info{
		Backend: "webgpu",
		Name:    p.Name,
		Vendor:  vendor(p.VendorId),
		Driver:  strings.TrimSpace(fmt.Sprintf("wgpu-native 0.17 on %v %s", p.BackendType, p.DriverDescription)),
		Kind:    cmp.Or(kind, "virtual"),
	}
	return adapter{*(*unsafe.Pointer)(unsafe.Pointer(a)), info} // wgpu.Adapter is its C reference
}

// vendor names a PCI vendor (0x10005 is Mesa's own, for software).
func vendor(id uint32) string {
	names := map[uint32]string{0x10de: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel", 0x13b5: "Arm", 0x5143: "Qualcomm", 0x106b: "Apple", 0x1010: "Imagination", 0x10005: "Mesa"}
	if n, ok := names[id]; ok {
		return n
	}
	return fmt.Sprintf("0x%04x", id)
}

var errNoAdapter = fmt.Errorf("webgpu: no GPU found: install a Vulkan driver (Debian: mesa-vulkan-drivers, or the GPU maker's) and the loader libvulkan.so.1: %w", backend.ErrUnavailable)

// Devices lists the adapters, discrete GPUs first.
func (Driver) Devices(ctx context.Context) ([]backend.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var infos []backend.Info
	for _, a := range adapters() {
		infos = append(infos, a.info)
	}
	if infos == nil {
		return nil, errNoAdapter
	}
	return infos, nil
}
