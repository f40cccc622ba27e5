// The loader and the process's Vulkan instance.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
)

const (
	version12       = 1<<22 | 2<<12
	version13       = 1<<22 | 3<<12
	validationLayer = "VK_LAYER_KHRONOS_validation"
)

// loaderName is the library that finds the drivers; tests put one before it.
var loaderName = "libvulkan.so.1"

// instance is the loader and one VkInstance made from it.
type instance struct {
	getProc unsafe.Pointer // vkGetInstanceProcAddr
	handle  vk.Instance
}

// shared is the process's instance. It is made on first use and kept: making one loads every
// installed driver. A failure is not kept, so that a later call may find what was missing.
var shared struct {
	sync.Mutex
	*instance
}

func getInstance() (*instance, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.instance == nil {
		in, err := newInstance()
		if err != nil {
			return nil, err
		}
		shared.instance = in
	}
	return shared.instance, nil
}

func unavailable(format string, args ...any) error {
	return fmt.Errorf("vulkan: %w: %s", backend.ErrUnavailable, fmt.Sprintf(format, args...))
}

func newInstance() (*instance, error) {
	getProc, err := openLoader(loaderName)
	if err != nil {
		return nil, err
	}
	in := &instance{getProc: getProc}
	if err := in.checkVersion(); err != nil {
		return nil, err
	}
	if err := in.create(); err != nil {
		return nil, err
	}
	if err := in.complete(); err != nil {
		return nil, err
	}
	if err := in.bind(); err != nil {
		return nil, unavailable("%v", err)
	}
	return in, nil
}

// needed are the functions that this package and the binding call of an instance. (sv_open looks for those of a
// device.)
var needed = strings.Fields(`
	vkEnumeratePhysicalDevices vkEnumerateDeviceExtensionProperties
	vkGetPhysicalDeviceProperties vkGetPhysicalDeviceProperties2 vkGetPhysicalDeviceFeatures2
	vkGetPhysicalDeviceMemoryProperties vkGetPhysicalDeviceQueueFamilyProperties
	vkCreateDevice vkDestroyDevice vkGetDeviceProcAddr vkGetDeviceQueue
	vkCreatePipelineCache vkGetPipelineCacheData vkDestroyPipelineCache`)

// complete checks that the loader has all functions: calling one that is missing would end the process.
func (in *instance) complete() error {
	for _, name := range needed {
		if in.proc(name) == nil {
			return in.lacks(name)
		}
	}
	return nil
}

func (in *instance) lacks(name string) error {
	return unavailable("the Vulkan loader lacks %s; reinstall it (Debian: libvulkan1)", name)
}

// bind gives the binding the instance's functions.
func (in *instance) bind() error {
	vk.SetGetInstanceProcAddr(in.getProc)
	if err := vk.Init(); err != nil {
		return err
	}
	return vk.InitInstance(in.handle)
}

// openLoader returns the loader's vkGetInstanceProcAddr.
func openLoader(name string) (unsafe.Pointer, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var why *C.char
	lib := C.sv_dlopen(cname, &why)
	if lib == nil {
		return nil, unavailable("%s; install the Vulkan loader (Debian: libvulkan1) and your GPU's Vulkan driver", C.GoString(why))
	}
	sym := C.CString("vkGetInstanceProcAddr")
	defer C.free(unsafe.Pointer(sym))
	if p := C.sv_dlsym(lib, sym); p != nil {
		return p, nil
	}
	return nil, unavailable("%s has no vkGetInstanceProcAddr; reinstall the Vulkan loader", name)
}

// proc resolves a function of the instance; of the loader before there is one.
func (in *instance) proc(name string) unsafe.Pointer {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return C.sv_proc(in.getProc, unsafe.Pointer(in.handle), cname)
}

func (in *instance) checkVersion() error {
	version := C.uint32_t(1 << 22) // a loader of Vulkan 1.0 lacks the function
	if f := in.proc("vkEnumerateInstanceVersion"); f != nil {
		if err := resultError(vk.Result(C.sv_instance_version(f, &version)), "vkEnumerateInstanceVersion"); err != nil {
			return err
		}
	}
	if version < version12 {
		return unavailable("the Vulkan loader is version %s, 1.2 is needed; update it (Debian: libvulkan1)", versionString(uint32(version)))
	}
	return nil
}

// validating tells what the environment asks for: SPMM_VALIDATE turns the layer on and the layer's
// messages are kept; with VK_INSTANCE_LAYERS the loader turns it on by itself.
func validating() (layer, messages bool) {
	v := os.Getenv("SPMM_VALIDATE")
	layer = v != "" && v != "0"
	return layer, layer || strings.Contains(os.Getenv("VK_INSTANCE_LAYERS"), validationLayer)
}

func (in *instance) create() error {
	layer, messages := validating()
	var layers, extensions []string
	if layer {
		layers = append(layers, validationLayer)
	}
	if messages {
		extensions = append(extensions, "VK_EXT_debug_utils")
	}
	cl, freeLayers := cStrings(layers)
	defer freeLayers()
	ce, freeExtensions := cStrings(extensions)
	defer freeExtensions()
	var handle unsafe.Pointer
	create := in.proc("vkCreateInstance")
	if create == nil {
		return in.lacks("vkCreateInstance")
	}
	r := vk.Result(C.sv_create_instance(create, version13,
		unsafe.SliceData(cl), C.uint32_t(len(cl)), unsafe.SliceData(ce), C.uint32_t(len(ce)), &handle))
	switch r {
	case vk.Success:
	case vk.ErrorIncompatibleDriver:
		return unavailable("no Vulkan driver is installed (Debian: mesa-vulkan-drivers, or your GPU vendor's package)")
	case vk.ErrorLayerNotPresent:
		return unavailable("SPMM_VALIDATE is set and %s is not installed (Debian: vulkan-validationlayers)", validationLayer)
	default:
		return unavailable("%v", resultError(r, "vkCreateInstance"))
	}
	if handle == nil {
		return unavailable("vkCreateInstance succeeds and makes no instance; reinstall the Vulkan loader (Debian: libvulkan1)")
	}
	in.handle = vk.Instance(handle)
	if messages {
		create := in.proc("vkCreateDebugUtilsMessengerEXT")
		if create == nil {
			return in.lacks("vkCreateDebugUtilsMessengerEXT")
		}
		var messenger C.uint64_t
		r := vk.Result(C.sv_messenger(create, handle, &messenger))
		if err := resultError(r, "vkCreateDebugUtilsMessengerEXT"); err != nil {
			return unavailable("%v", err)
		}
	}
	return nil
}

// cStrings copies strings to C memory. The function frees them.
func cStrings(s []string) ([]*C.char, func()) {
	c := make([]*C.char, len(s))
	for i := range s {
		c[i] = C.CString(s[i])
	}
	return c, func() {
		for _, p := range c {
			C.free(unsafe.Pointer(p))
		}
	}
}

// validationMessages returns how many messages the validation layer has sent since the last reset,
// and the first ones, a line each.
func validationMessages() (int, string) {
	buf := make([]byte, 8192)
	n := C.sv_messages((*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)))
	return int(n), cString(buf)
}

func resetValidationMessages() { C.sv_messages_reset() }

// cString returns the text before the first NUL.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func versionString(v uint32) string {
	return fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
}
