//go:build cuda && cgo && linux && (amd64 || arm64)

// Libraries: PTX that the driver compiles, and its functions.

package driver

/*
#include "cuda.h"

// A library with its options, which the driver may read, and its compiler write to, until the library is unloaded.
typedef struct {
	CUlibrary library;
	CUjit_option option[2];
	void *value[2]; // integers or pointers in the shape of a void *
	char log[4 << 10];
} spmm_library;

static CUresult load_library(spmm_library *l, const char *ptx)
{
	l->option[0] = CU_JIT_ERROR_LOG_BUFFER;
	l->value[0] = l->log;
	l->option[1] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
	l->value[1] = (void *)(sizeof l->log - 1);
	return cuLibraryLoadData(&l->library, ptx, l->option, l->value, 2, NULL, NULL, 0);
}

static CUresult library_function(spmm_library *l, const char *name, CUfunction *f)
{
	CUkernel k;
	int threads;
	CUresult r = cuLibraryGetKernel(&k, l->library, name);
	if (!r)
		r = cuKernelGetFunction(f, k);
	// Asked for an attribute, the driver compiles what it has not compiled yet.
	return r ? r : cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *f);
}
*/
import "C"

import (
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// Library is PTX that the driver has taken. It belongs to no context.
type Library struct{ c *C.spmm_library }

// LoadLibrary has the driver take PTX text, which it compiles now or for the first Function. The log holds the
// compiler's errors.
func LoadLibrary(ptx []byte) (l *Library, log string, err error) {
	text := C.CString(string(ptx)) // adds the final zero
	defer C.free(unsafe.Pointer(text))
	l = &Library{(*C.spmm_library)(C.calloc(1, C.sizeof_spmm_library))}
	if err := check(C.load_library(l.c, text)); err != nil {
		log = l.log()
		C.free(unsafe.Pointer(l.c))
		return nil, log, err
	}
	return l, "", nil
}

// Function returns a function for the current context, compiled. NotFound: the library has none of that name. The log
// holds the compiler's errors.
func (l *Library) Function(name string) (f cu.Function, log string, err error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var h C.CUfunction
	err = check(C.library_function(l.c, n, &h))
	return *(*cu.Function)(unsafe.Pointer(&h)), l.log(), err
}

// Unload frees the library and its functions in all contexts; none needs to be current.
func (l *Library) Unload() error {
	err := check(C.cuLibraryUnload(l.c.library))
	C.free(unsafe.Pointer(l.c))
	return err
}

func (l *Library) log() string { return strings.TrimSpace(C.GoString(&l.c.log[0])) }
