/* The functions of spmm.h: each refuses to enter Go's runtime in a forked child, where it has no threads and would
 * wait for ever, and calls its Go function. Also the message of each thread's last error. A library that is opened
 * at run time gets little of the C library's thread-local memory, so the message is behind a key. */
#include <stdlib.h>
#include <string.h>
#include "_cgo_export.h"

enum { MOST = 4096 }; /* bytes of a message */

static volatile int forked;

#ifdef _WIN32
#include <windows.h>
#define EXPORT __declspec(dllexport)

static DWORD key;

__attribute__((constructor)) static void load(void) { key = FlsAlloc(free); }
static void *kept(void) { return FlsGetValue(key); }
static void keep(void *p) { FlsSetValue(key, p); }
#else
#include <pthread.h>
#define EXPORT

static pthread_key_t key;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void load(void)
{
	pthread_key_create(&key, free);
	pthread_atfork(NULL, NULL, in_child);
}
static void *kept(void) { return pthread_getspecific(key); }
static void keep(void *p) { pthread_setspecific(key, p); }
#endif

void spmm_keep_error(const char *text, size_t n)
{
	char *last = kept();
	if (!last) {
		last = malloc(MOST);
		if (!last)
			return;
		keep(last);
	}
	if (n > MOST - 1)
		n = MOST - 1;
	memcpy(last, text, n);
	last[n] = 0;
}

EXPORT const char *spmm_last_error(void)
{
	const char *last = kept();
	return last ? last : "";
}

EXPORT int spmm_abi(void) { return SPMM_ABI; }

static int refused(void)
{
	static const char text[] =
		"the process was forked after spmm was loaded: load it in the child, or start the child by exec (Python: spawn)";
	if (forked)
		spmm_keep_error(text, sizeof text - 1);
	return forked;
}

EXPORT void spmm_cancel(void)
{
	if (!refused())
		go_cancel();
}

#define BRIEF(name, params, go, args)                           \
	EXPORT spmm_status name params                          \
	{                                                       \
		return refused() ? SPMM_FORKED : (spmm_status)go args; \
	}
/* The guard takes longer than a call that only submits may. */
#define ENTRY(name, params, go, args)                           \
	EXPORT spmm_status name params                          \
	{                                                       \
		spmm_guard();                                   \
		return refused() ? SPMM_FORKED : (spmm_status)go args; \
	}

ENTRY(spmm_set, (const char *setting, const char *value), go_set, ((char *)setting, (char *)value))
ENTRY(spmm_device_open, (const char *name, spmm_device *device), go_device_open, ((char *)name, device))
ENTRY(spmm_device_join, (const spmm_device *devices, int32_t count, spmm_device *group),
      go_device_join, ((spmm_device *)devices, count, group))
ENTRY(spmm_device_close, (spmm_device device), go_close, (device.id))
ENTRY(spmm_device_info, (spmm_device device, char *buf, size_t *size), go_info, (device.id, buf, size))
ENTRY(spmm_plan_csr, (spmm_device device, const spmm_csr *a, const spmm_options *options, spmm_plan *plan),
      go_plan_csr, (device, (spmm_csr *)a, (spmm_options *)options, plan))
ENTRY(spmm_plan_dense, (spmm_device device, int64_t rows, int64_t cols, const spmm_dense *a, int32_t drop_zeros,
      const spmm_options *options, spmm_plan *plan),
      go_plan_dense, (device, rows, cols, (spmm_dense *)a, drop_zeros, (spmm_options *)options, plan))
ENTRY(spmm_plan_close, (spmm_plan plan), go_close, (plan.id))
ENTRY(spmm_plan_info, (spmm_plan plan, char *buf, size_t *size), go_info, (plan.id, buf, size))
ENTRY(spmm_plan_multiply, (spmm_plan plan, int64_t n, double alpha, const spmm_dense *b, double beta, const
      spmm_dense *c, const spmm_epilogue *epilogue),
      go_plan_multiply, (plan, n, alpha, (spmm_dense *)b, beta, (spmm_dense *)c, (spmm_epilogue *)epilogue))
BRIEF(spmm_plan_enqueue, (spmm_plan plan, uint64_t stream, int64_t n, double alpha, const spmm_dense *b, double
      beta, const spmm_dense *c, const spmm_epilogue *epilogue),
      go_plan_enqueue, (plan, stream, n, alpha, (spmm_dense *)b, beta, (spmm_dense *)c, (spmm_epilogue *)epilogue, 0))
ENTRY(spmm_plan_ready, (spmm_plan plan, uint64_t stream, int64_t n, double alpha, const spmm_dense *b, double beta,
      const spmm_dense *c, const spmm_epilogue *epilogue),
      go_plan_enqueue, (plan, stream, n, alpha, (spmm_dense *)b, beta, (spmm_dense *)c, (spmm_epilogue *)epilogue, 1))
ENTRY(spmm_plan_set_values, (spmm_plan plan, int64_t nnz, const void *values, int32_t type),
      go_plan_set_values, (plan, nnz, (void *)values, type))
BRIEF(spmm_plan_enqueue_values, (spmm_plan plan, uint64_t stream, int64_t nnz, const void *values, int32_t type),
      go_plan_enqueue_values, (plan, stream, nnz, (void *)values, type))
ENTRY(spmm_plan_sample, (spmm_plan plan, int64_t n, const spmm_dense *x, const spmm_dense *y, const spmm_sampled *s),
      go_plan_sample, (plan, n, (spmm_dense *)x, (spmm_dense *)y, (spmm_sampled *)s))
BRIEF(spmm_plan_enqueue_sample, (spmm_plan plan, uint64_t stream, int64_t n, const spmm_dense *x, const spmm_dense *y,
      const spmm_sampled *s),
      go_plan_enqueue_sample, (plan, stream, n, (spmm_dense *)x, (spmm_dense *)y, (spmm_sampled *)s))
ENTRY(spmm_tensor_new, (spmm_device device, int64_t rows, int64_t cols, int32_t type, int32_t column_major,
      spmm_tensor *tensor),
      go_tensor_new, (device, rows, cols, type, column_major, tensor))
ENTRY(spmm_tensor_upload, (spmm_tensor tensor, const spmm_dense *from),
      go_tensor_copy, (tensor, (spmm_dense *)from, 1))
ENTRY(spmm_tensor_download, (spmm_tensor tensor, const spmm_dense *to), go_tensor_copy, (tensor, (spmm_dense *)to, 0))
ENTRY(spmm_tensor_close, (spmm_tensor tensor), go_close, (tensor.id))
ENTRY(spmm_plan_run, (spmm_plan plan, double alpha, spmm_tensor b, double beta, spmm_tensor c, spmm_tensor bias,
      int32_t bias_of_rows, int32_t activation),
      go_plan_run, (plan, alpha, b, beta, c, bias, bias_of_rows, activation))
ENTRY(spmm_sequence_new, (spmm_device device, spmm_sequence *sequence), go_sequence_new, (device, sequence))
ENTRY(spmm_sequence_add, (spmm_sequence sequence, spmm_plan plan, double alpha, spmm_tensor b, double beta,
      spmm_tensor c, spmm_tensor bias, int32_t bias_of_rows, int32_t activation),
      go_sequence_add, (sequence, plan, alpha, b, beta, c, bias, bias_of_rows, activation))
ENTRY(spmm_sequence_run, (spmm_sequence sequence), go_sequence_run, (sequence))
ENTRY(spmm_sequence_close, (spmm_sequence sequence), go_close, (sequence.id))
