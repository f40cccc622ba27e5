//go:build cgo && amd64 && (linux || (windows && webgpu))

// Listing adapters.

package webgpu

// #include "native.h"
// #include <stdlib.h>
import "C"

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/spmmrun/spmm/backend"
)

// adapter is a GPU as one API shows it, and how to find it again.
type adapter struct {
	apis  wgpu.InstanceBackend
	place int // in the list that these APIs give
	info  backend.Info
}

// adapters lists GPUs, discrete ones first. It looks once, for the first API that shows any: OpenGL would show again
// what Vulkan did. An OpenGL driver that runs on the CPU is left out: the cpu backend is faster, and submitting to it
// returns only when all is done, so that nothing could be cancelled.
var adapters = sync.OnceValues(func() ([]adapter, error) {
	if !C.wg_linked() {
		return nil, errNoAdapter
	}
	wgpu.SetLogLevel(wgpu.LogLevel_Off)
	list := enumerate(wgpu.InstanceBackend_Vulkan | wgpu.InstanceBackend_Metal | wgpu.InstanceBackend_DX12)
	if list == nil && bool(C.wg_display()) {
		list = slices.DeleteFunc(enumerate(wgpu.InstanceBackend_GL), func(a adapter) bool { return a.info.Kind == "cpu" })
	}
	slices.SortStableFunc(list, func(a, b adapter) int { return cmp.Compare(rank(a.info.Kind), rank(b.info.Kind)) })
	for i := range list {
		list[i].info.Index = i
	}
	if len(list) == 0 {
		return nil, errNoAdapter
	}
	return list, nil
})

// enumerate lists what the APIs show. An error means that they show nothing.
func enumerate(apis wgpu.InstanceBackend) []adapter {
	const most = 64
	errors := (*C.wg_device)(C.calloc(1, C.sizeof_wg_device))
	defer C.free(unsafe.Pointer(errors))
	found := (*[most]C.wg_adapter)(C.calloc(most, C.sizeof_wg_adapter))
	defer C.free(unsafe.Pointer(found))
	defer quietWayland(apis)()
	n := C.wg_adapters(errors, C.uint32_t(apis), &found[0], most)
	var list []adapter
	for i := range found[:n] {
		list = append(list, adapter{apis, i, describe(&found[i])})
	}
	return list
}

// quietWayland keeps libwayland, which wgpu tries for OpenGL, from writing to stderr that XDG_RUNTIME_DIR is not
// set: given an absolute path it looks there in silence. The function it returns undoes that.
func quietWayland(apis wgpu.InstanceBackend) func() {
	const name = "WAYLAND_DISPLAY"
	if apis&wgpu.InstanceBackend_GL == 0 || os.Getenv("XDG_RUNTIME_DIR") != "" || os.Getenv(name) != "" {
		return func() {}
	}
	os.Setenv(name, "/nonexistent")
	return func() { os.Unsetenv(name) }
}

func rank(kind string) int {
	return slices.Index([]string{"discrete", "integrated", "virtual", "cpu"}, kind)
}

// describe says what wgpu tells; it does not tell the memory.
func describe(a *C.wg_adapter) backend.Info {
	kind := map[wgpu.AdapterType]string{wgpu.AdapterType_DiscreteGPU: "discrete",
		wgpu.AdapterType_IntegratedGPU: "integrated",
		wgpu.AdapterType_CPU:           "cpu"}[wgpu.AdapterType(a._type)]
	return backend.Info{
		Backend: "webgpu",
		Name:    C.GoString(&a.name[0]),
		Vendor:  vendor(uint32(a.vendor)),
		Driver: strings.TrimSpace(fmt.Sprintf("wgpu-native 0.17 on %v %s", wgpu.BackendType(a.api),
			C.GoString(&a.driver[0]))),
		Kind: cmp.Or(kind, "virtual"),
	}
}

// vendor is "" for OpenGL, which does not tell.
func vendor(id uint32) string {
	if id == 0 {
		return ""
	}
	return backend.VendorName(id)
}

var errNoAdapter = fmt.Errorf("webgpu: no GPU found: install %s: %w", driverNeeded(), backend.ErrUnavailable)

// driverNeeded names what a system without a GPU that wgpu finds may lack.
func driverNeeded() string {
	if runtime.GOOS == "windows" {
		return "the GPU maker's driver, for Direct3D 12 or Vulkan"
	}
	return "a Vulkan driver (Debian: mesa-vulkan-drivers, or the GPU maker's) and the loader libvulkan.so.1"
}
