//go:build cuda && cgo && linux

// Package plain copies by the driver of a device alone, without the library, to compare ours with.
package plain

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef unsigned long long address;

static void *library;

static int call_init(void)
{
	if (!library) {
		const char *own = getenv("SPMM_CUDA_LIBRARY");
		library = dlopen(own && own[0] ? own : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	}
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
	return init ? init(0) : -1;
}

#define CALL(name, type) ((int(*) type)dlsym(library, name))

// Makes the first device's primary context current, as CUDA's runtime does, and allocates.
static int plain_make(size_t n, void **host, address *device)
{
	void *ctx;
	int r = call_init();
	if (!r)
		r = CALL("cuDevicePrimaryCtxRetain", (void **, int))(&ctx, 0);
	if (!r)
		r = CALL("cuCtxPushCurrent_v2", (void *))(ctx);
	if (!r)
		r = CALL("cuMemHostAlloc", (void **, size_t, unsigned))(host, n, 1);
	if (!r)
		r = CALL("cuMemAlloc_v2", (address *, size_t))(device, n);
	return r;
}

static int plain_free(void *host, address device)
{
	void *ctx;
	int r = CALL("cuMemFreeHost", (void *))(host);
	if (!r)
		r = CALL("cuMemFree_v2", (address))(device);
	if (!r)
		r = CALL("cuCtxPopCurrent_v2", (void **))(&ctx);
	if (!r)
		r = CALL("cuDevicePrimaryCtxRelease_v2", (int))(0);
	return r;
}

static int (*plain_in)(address, const void *, size_t);
static int (*plain_out)(void *, address, size_t);

static void plain_look(void)
{
	plain_in = CALL("cuMemcpyHtoD_v2", (address, const void *, size_t));
	plain_out = CALL("cuMemcpyDtoH_v2", (void *, address, size_t));
}

static int plain_copy_in(void *host, address device, size_t n) { return plain_in(device, host, n); }
static int plain_copy_out(void *host, address device, size_t n) { return plain_out(host, device, n); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Copies returns copies of page-locked memory to the first CUDA device and back, and a function that
// frees the memory. The context stays current on the calling thread until then.
func Copies(device string, bytes int) (in, out func() error, free func(), err error) {
	if !strings.HasPrefix(device, "cuda") {
		return nil, nil, func() {}, nil
	}
	runtime.LockOSThread()
	var host unsafe.Pointer
	var dev C.address
	if r := C.plain_make(C.size_t(bytes), &host, &dev); r != 0 {
		return nil, nil, nil, fmt.Errorf("plain copies: CUDA error %d", r)
	}
	C.plain_look()
	check := func(r C.int) error {
		if r != 0 {
			return fmt.Errorf("plain copy: CUDA error %d", r)
		}
		return nil
	}
	in = func() error { return check(C.plain_copy_in(host, dev, C.size_t(bytes))) }
	out = func() error { return check(C.plain_copy_out(host, dev, C.size_t(bytes))) }
	return in, out, func() { C.plain_free(host, dev); runtime.UnlockOSThread() }, nil
}
