//go:build cuda && cgo && linux && (amd64 || arm64)

// Opening the library, error codes, and the calls gorgonia.org/cu lacks.

package driver

/*
#cgo CFLAGS: -I${SRCDIR} -I${SRCDIR}/../toolkit
#cgo LDFLAGS: -L${SRCDIR}/../toolkit -ldl -lpthread
#include "shim.h"

static void pop(void)
{
	CUcontext popped;
	cuCtxPopCurrent(&popped);
}
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	_ "github.com/spmmrun/spmm/backend/cuda/internal/toolkit" // so that go mod vendor copies the header
)

// Result is an error code of the driver API.
type Result int

// The codes that callers tell apart.
const (
	OutOfMemory           Result = C.CUDA_ERROR_OUT_OF_MEMORY
	InvalidValue          Result = C.CUDA_ERROR_INVALID_VALUE
	Deinitialized         Result = C.CUDA_ERROR_DEINITIALIZED
	StubLibrary           Result = C.CUDA_ERROR_STUB_LIBRARY
	DeviceUnavailable     Result = C.CUDA_ERROR_DEVICE_UNAVAILABLE
	NoDevice              Result = C.CUDA_ERROR_NO_DEVICE
	InvalidContext        Result = C.CUDA_ERROR_INVALID_CONTEXT
	InvalidDevice         Result = C.CUDA_ERROR_INVALID_DEVICE
	NotLicensed           Result = C.CUDA_ERROR_DEVICE_NOT_LICENSED
	InvalidImage          Result = C.CUDA_ERROR_INVALID_IMAGE
	NoBinaryForGPU        Result = C.CUDA_ERROR_NO_BINARY_FOR_GPU
	ECCUncorrectable      Result = C.CUDA_ERROR_ECC_UNCORRECTABLE
	InvalidPTX            Result = C.CUDA_ERROR_INVALID_PTX
	NVLinkUncorrectable   Result = C.CUDA_ERROR_NVLINK_UNCORRECTABLE
	NoJIT                 Result = C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND
	PTXVersion            Result = C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
	JITDisabled           Result = C.CUDA_ERROR_JIT_COMPILATION_DISABLED
	InvalidSource         Result = C.CUDA_ERROR_INVALID_SOURCE
	SymbolNotFound        Result = C.CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
	NoLibrary             Result = C.CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
	PeerAccessUnsupported Result = C.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
	PeerAccessEnabled     Result = C.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
	TooManyPeers          Result = C.CUDA_ERROR_TOO_MANY_PEERS
	NotFound              Result = C.CUDA_ERROR_NOT_FOUND
	NotReady              Result = C.CUDA_ERROR_NOT_READY
	IllegalAddress        Result = C.CUDA_ERROR_ILLEGAL_ADDRESS
	OutOfResources        Result = C.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
	LaunchTimeout         Result = C.CUDA_ERROR_LAUNCH_TIMEOUT
	ContextDestroyed      Result = C.CUDA_ERROR_CONTEXT_IS_DESTROYED
	Assert                Result = C.CUDA_ERROR_ASSERT
	HardwareStack         Result = C.CUDA_ERROR_HARDWARE_STACK_ERROR
	IllegalInstruction    Result = C.CUDA_ERROR_ILLEGAL_INSTRUCTION
	MisalignedAddress     Result = C.CUDA_ERROR_MISALIGNED_ADDRESS
	InvalidAddressSpace   Result = C.CUDA_ERROR_INVALID_ADDRESS_SPACE
	InvalidPC             Result = C.CUDA_ERROR_INVALID_PC
	LaunchFailed          Result = C.CUDA_ERROR_LAUNCH_FAILED
	TensorMemoryLeak      Result = C.CUDA_ERROR_TENSOR_MEMORY_LEAK
	SystemNotReady        Result = C.CUDA_ERROR_SYSTEM_NOT_READY
	DriverMismatch        Result = C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
	CompatNotSupported    Result = C.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
	Unknown               Result = C.CUDA_ERROR_UNKNOWN
)

// Error returns the code's name, number and description, as far as the driver knows them.
func (r Result) Error() string {
	var name, text *C.char
	if C.cuGetErrorName(C.CUresult(r), &name) != 0 || name == nil {
		return fmt.Sprintf("CUDA error %d", int(r))
	}
	if C.cuGetErrorString(C.CUresult(r), &text) != 0 || text == nil {
		return fmt.Sprintf("%s (%d)", C.GoString(name), int(r))
	}
	return fmt.Sprintf("%s (%d): %s", C.GoString(name), int(r), C.GoString(text))
}

// The type of gorgonia.org/cu's errors is not exported; inference names it.
var cuCode = codeOf(cu.Success)

func codeOf[T ~int](T) func(error) (Result, bool) {
	return func(err error) (Result, bool) {
		code, ok := err.(T)
		return Result(code), ok
	}
}

// Code returns the error code of a call of this package or of gorgonia.org/cu, 0 for other errors.
func Code(err error) Result {
	if r, ok := err.(Result); ok {
		return r
	}
	r, _ := cuCode(err)
	return r
}

func check(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Result(r)
}

// Open loads and initialises the driver on its first call; later calls repeat the answer. The text
// says more where the code does not say all: which library or symbol was not found.
func Open() (text string, err error) {
	var t *C.char
	r := C.spmm_cuda_open(&t)
	return C.GoString(t), check(r)
}

// needed are the functions without which a device cannot be used; older drivers lack some.
var needed = strings.Fields(`
	cuDriverGetVersion cuGetErrorName cuGetErrorString
	cuDeviceGet cuDeviceGetCount cuDeviceGetName cuDeviceTotalMem_v2 cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxGetDevice
	cuLibraryLoadData cuLibraryGetKernel cuLibraryUnload cuKernelGetFunction cuFuncGetAttribute cuFuncSetAttribute
	cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost
	cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpy2DAsync_v2 cuPointerGetAttribute cuLaunchKernel
	cuStreamCreate cuStreamGetCtx cuStreamSynchronize cuStreamDestroy_v2
	cuEventCreate cuEventRecord cuEventQuery cuEventSynchronize cuEventElapsedTime cuEventDestroy_v2`)

// Missing names the functions that this package and backend/cuda call and the library lacks.
func Missing() []string {
	var names []string
	for _, n := range needed {
		c := C.CString(n)
		var p unsafe.Pointer
		if C.spmm_cuda_resolve(c, &p) != C.CUDA_SUCCESS {
			names = append(names, n)
		}
		C.free(unsafe.Pointer(c))
	}
	return names
}

// DeviceOf returns the number of the device that a context is on.
func DeviceOf(ctx cu.CUContext) (int, error) {
	if err := check(C.cuCtxPushCurrent(*(*C.CUcontext)(unsafe.Pointer(&ctx)))); err != nil {
		return 0, err
	}
	defer Pop()
	var dev C.CUdevice
	err := check(C.cuCtxGetDevice(&dev))
	return int(dev), err
}

// Pop makes the context current that was before the last one was pushed. Unlike cu.PopCurrentCtx it allocates nothing.
func Pop() { C.pop() }

// Context returns the context of a handle.
func Context(handle uintptr) cu.CUContext { return *(*cu.CUContext)(unsafe.Pointer(&handle)) }

// SetMaxDynamicShared lets launches of f use n bytes of dynamic shared memory; without it
// 48 KiB is the most.
func SetMaxDynamicShared(f cu.Function, bytes uint32) error {
	return check(C.cuFuncSetAttribute(function(f), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// ParamSize returns the size in bytes of parameter i of f: InvalidValue past the last one,
// SymbolNotFound from drivers before CUDA 12.4, which do not tell.
func ParamSize(f cu.Function, i int) (int, error) {
	var off, size C.size_t
	err := check(C.cuFuncGetParamInfo(function(f), C.size_t(i), &off, &size))
	return int(size), err
}

// The handles of gorgonia.org/cu are structs of one pointer each.
var (
	_ [unsafe.Sizeof(C.CUfunction(nil))]byte = [unsafe.Sizeof(cu.Function{})]byte{}
	_ [unsafe.Sizeof(C.CUcontext(nil))]byte  = [unsafe.Sizeof(cu.CUContext{})]byte{}
	_ [unsafe.Sizeof(C.CUstream(nil))]byte   = [unsafe.Sizeof(cu.Stream{})]byte{}
)

func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }
