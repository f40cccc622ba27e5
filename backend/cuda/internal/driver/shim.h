/* What the shim, its generated forwarders and the Go side share. */
#ifndef SPMM_SHIM_H
#define SPMM_SHIM_H

#include "cuda.h"

/* Loads libcuda on first use and initialises it. The result is kept; text (never NULL) says what
 * failed where a code alone would not. */
CUresult spmm_cuda_open(const char **text);

/* Finds a symbol of the loaded library. */
CUresult spmm_cuda_resolve(const char *name, void **symbol);

/* One forwarder: a function of the driver's name that finds the real one on its first call. Hidden,
 * because the real library must not bind its own internal calls to these. */
#define FORWARD(name, params, args)                                                  \
	__attribute__((visibility("hidden"))) CUresult name params                    \
	{                                                                             \
		static void *kept_;                                                   \
		void *real_ = __atomic_load_n(&kept_, __ATOMIC_ACQUIRE);              \
		if (!real_) {                                                         \
			CUresult result_ = spmm_cuda_resolve(#name, &real_);          \
			if (result_ != CUDA_SUCCESS)                                  \
				return result_;                                       \
			__atomic_store_n(&kept_, real_, __ATOMIC_RELEASE);            \
		}                                                                     \
		return ((CUresult(*) params)real_)args;                               \
	}

#endif
