//go:build cuda && cgo && linux && (amd64 || arm64)

/* Loads libcuda at run time, so that a program built with CUDA support starts on any machine.
 *
 * gorgonia.org/cu calls cuInit in a package init() and ends the process when that fails. So the
 * cuInit it sees always succeeds, and the driver is opened, and really initialised, by the first
 * other call. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include "shim.h"

__attribute__((visibility("hidden"))) CUresult cuInit(unsigned int flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static CUresult status;
static char message[512];

static void *load(void)
{
	/* The variable replaces the search. WSL keeps the driver outside the linker's path. */
	static const char *const names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
	const char *own = getenv("SPMM_CUDA_LIBRARY");
	if (own && own[0]) {
		void *p = dlopen(own, RTLD_NOW | RTLD_LOCAL);
		if (!p)
			snprintf(message, sizeof message, "SPMM_CUDA_LIBRARY: %s", dlerror());
		return p;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *p = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (p)
			return p;
		const char *text = dlerror();
		if (i == 0)
			snprintf(message, sizeof message, "%s", text);
	}
	return NULL;
}

static void open_library(void)
{
	library = load();
	if (!library) {
		status = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
		return;
	}
	message[0] = 0;
	CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))dlsym(library, "cuInit");
	if (!init) {
		status = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
		snprintf(message, sizeof message, "cuInit");
		return;
	}
	status = init(0);
}

CUresult spmm_cuda_open(const char **text)
{
	pthread_once(&once, open_library);
	*text = message;
	return status;
}

CUresult spmm_cuda_resolve(const char *name, void **symbol)
{
	pthread_once(&once, open_library);
	/* Errors have names, and the driver a version, even where it could not be initialised. */
	if (!library)
		return status;
	*symbol = dlsym(library, name);
	return *symbol ? CUDA_SUCCESS : CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}
