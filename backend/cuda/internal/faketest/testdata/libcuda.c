/* A stand-in for libcuda.so.1, for tests on machines without a GPU. Device memory is host memory;
 * what goes into a stream waits there until somebody waits for it, so that a program that reuses
 * memory too early computes wrong results; kernels are known by name and run as C.
 *
 * The environment steers it, read at each call:
 *   FAKE_INIT=CODE        cuInit fails            FAKE_DEVICES=N   devices (2)
 *   FAKE_VERSION=12040    the driver's version    FAKE_ARCH=90     compute capability
 *   FAKE_MEMORY=BYTES     of a device (1 GiB)     FAKE_FAIL=NAME=CODE   calls of NAME fail
 *   FAKE_FAIL_AT=N=CODE   of the calls after this was set, the Nth fails; those to free things do not count
 *   FAKE_ONES=1           all attributes of a device are all ones
 *   FAKE_RANGE=BYTES      an allocation looks like several of that size
 *   FAKE_COMPILE=NAME     which call compiles: cuLibraryLoadData (without the variable), cuKernelGetFunction or
 *                         cuFuncGetAttribute
 *   FAKE_HOLD=FILE        compiling lasts as long as the file exists; other calls go on
 *   FAKE_LOG=FILE         gets the name of every call, "compiling", and what a context's end finds not freed
 * Compiled with -DWITHOUT_NAME it lacks a function, as old drivers do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cuda.h"

/* ---- what there is ---- */

struct block { /* device or host memory */
	char *p;
	size_t n;
	int host;
	struct block *next;
};

struct CUlib_st {
	char *text;
	CUcontext ctx; /* that was current when it was loaded */
	CUjit_option *option;
	void **value;
	unsigned options;
	struct CUkern_st *kernels;
	int compiled, unloaded;
};

struct CUkern_st {
	char name[64];
	CUlibrary library;
	struct CUfunc_st *functions;
	struct CUkern_st *next;
};

struct CUfunc_st { /* a kernel in a context */
	CUkernel kernel;
	CUcontext ctx;
	int params;
	size_t size[16];
	int dynamic; /* bytes of dynamic shared memory allowed beyond the usual 48 KiB in all; 0: none */
	struct CUfunc_st *next;
};

struct CUevent_st {
	CUstream stream; /* of the last record */
	double ms;
	int pending, timed;
};

struct op {
	enum { COPY, KERNEL, EVENT } kind;
	void *dst;
	const void *src;
	size_t n, lines, dst_pitch, src_pitch; /* a copy: bytes of a line */
	CUcontext src_ctx;                     /* whose memory src is; NULL: the stream's */
	CUevent event;
	CUfunction fn;
	unsigned grid[3], block[3], shared;
	unsigned char arg[11][128];
	double until; /* a kernel that takes long: when it ends; 0: it has not begun */
	struct op *next;
};

struct CUstream_st {
	struct op *first, **last;
	CUcontext ctx;
	CUstream sibling; /* the context's stream made before */
};

struct CUctx_st {
	int refs, live, device;
	CUresult lost;
	struct block *blocks;
	size_t used;
	int events, streams, graphs, libraries;
	struct CUstream_st legacy; /* the default stream */
	CUstream made;             /* last of those that were not destroyed */
	CUcontext next;            /* made by cuCtxCreate */
};

struct CUgraphNode_st {
	struct op op;
	CUgraph graph;
	int loose; /* it waits for no other yet, and is not the first */
};

/* A graph, and what is made of one: its nodes in the order in which they run. */
struct CUgraph_st {
	CUgraphNode node[4096];
	size_t n;
	CUcontext ctx;
};

struct CUgraphExec_st {
	struct op *ops; /* the first of a list */
	CUcontext ctx;
	CUstream ran; /* the stream that it was launched into last */
};

static struct CUctx_st primary[8];
static CUcontext created;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread CUcontext stack[16];
static __thread int depth;

/* ---- entering a call ---- */

static long setting(const char *name, long otherwise)
{
	const char *s = getenv(name);
	return s && s[0] ? atol(s) : otherwise;
}

static void report(const char *text)
{
	const char *name = getenv("FAKE_LOG");
	if (!name || !name[0])
		return;
	FILE *f = fopen(name, "a");
	if (f) {
		fprintf(f, "%s\n", text);
		fclose(f);
	}
}

static CUresult asked_to_fail(const char *name)
{
	const char *s = getenv("FAKE_FAIL");
	size_t n = strlen(name);
	if (s && strncmp(s, name, n) == 0 && s[n] == '=')
		return (CUresult)atol(s + n + 1);
	return CUDA_SUCCESS;
}

/* A call that frees something has freed it, whatever it returns, and contexts that are alive can be entered for it. */
static int frees(const char *name)
{
	static const char *const words[] = {"Free", "Destroy", "Unload", "Release", "PopCurrent", "PushCurrent"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strstr(name, words[i]))
			return 1;
	return 0;
}

/* turn counts calls, and returns the code of the one that is to fail. */
static CUresult turn(const char *name)
{
	static char setting_seen[64];
	static long calls;
	const char *s = getenv("FAKE_FAIL_AT");
	if (!s || !s[0])
		s = "";
	if (strncmp(s, setting_seen, sizeof setting_seen - 1) != 0) {
		snprintf(setting_seen, sizeof setting_seen, "%s", s);
		calls = 0;
	}
	if (!s[0] || frees(name) || ++calls != atol(s))
		return CUDA_SUCCESS;
	report("failed");
	CUresult r = (CUresult)atol(strchr(s, '=') + 1);
	if (r == CUDA_ERROR_LAUNCH_FAILED && depth)
		stack[depth - 1]->lost = r;
	return r;
}

static CUresult enter(const char *name, int needs_context)
{
	report(name);
	CUresult r = asked_to_fail(name);
	if (!r)
		r = turn(name);
	if (r)
		return r;
	if (!needs_context)
		return CUDA_SUCCESS;
	if (!depth || !stack[depth - 1]->live)
		return CUDA_ERROR_INVALID_CONTEXT;
	return stack[depth - 1]->lost;
}

static void unlock(pthread_mutex_t **m) { pthread_mutex_unlock(*m); }

static pthread_mutex_t *locked(void)
{
	pthread_mutex_lock(&mutex);
	return &mutex;
}

/* Every exported function that can fail begins with ENTER, and holds the lock until it returns. */
#define current (stack[depth - 1])
#define ENTER(name, context)                                                                  \
	__attribute__((cleanup(unlock), unused)) pthread_mutex_t *held_ = locked();           \
	CUresult entered_ = enter(#name, context);                                            \
	if (entered_)                                                                         \
		return entered_;

/* ---- streams ---- */

static struct block *find(CUcontext c, const void *p, size_t n)
{
	for (struct block *b = c->blocks; b; b = b->next)
		if ((const char *)p >= b->p && (const char *)p + n <= b->p + b->n)
			return b;
	return NULL;
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static unsigned word(struct op *o, int arg, int i)
{
	unsigned w;
	memcpy(&w, o->arg[arg] + 4 * i, 4);
	return w;
}

/* memory returns argument i, if n words lie there. */
static unsigned *memory(CUcontext c, struct op *o, int i, size_t n)
{
	void *p;
	memcpy(&p, o->arg[i], sizeof p);
	return find(c, p, 4 * n) ? p : NULL;
}

/* ---- kernels: those of package backendtest, and some that misbehave ---- */

static CUresult run_step(CUcontext c, struct op *o)
{
	unsigned n = word(o, 2, 0), rot = word(o, 2, 1), m = word(o, 2, 2), a = word(o, 2, 3);
	unsigned *src = memory(c, o, 0, n), *dst = memory(c, o, 1, n);
	if (!src || !dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (unsigned i = 0; i < n && i < o->grid[0] * o->block[0]; i++)
		dst[i] = src[(i + rot) % n] * m + a;
	return CUDA_SUCCESS;
}

static CUresult run_grid(CUcontext c, struct op *o)
{
	unsigned nx = word(o, 1, 0), ny = word(o, 1, 1), nz = word(o, 1, 2);
	unsigned *dst = memory(c, o, 0, (size_t)nx * ny * nz);
	if (!dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (unsigned z = 0; z < nz && z < o->grid[2] * o->block[2]; z++)
		for (unsigned y = 0; y < ny && y < o->grid[1] * o->block[1]; y++)
			for (unsigned x = 0; x < nx && x < o->grid[0] * o->block[0]; x++)
				dst[(z * ny + y) * nx + x] = x | y << 10 | z << 20;
	return CUDA_SUCCESS;
}

static CUresult run_echo(CUcontext c, struct op *o)
{
	unsigned *dst = memory(c, o, 0, 16);
	if (!dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memcpy(dst, o->arg[1], 64);
	for (int i = 8; i < 16; i++) {
		float f;
		memcpy(&f, dst + i, 4);
		f *= 0.5f;
		memcpy(dst + i, &f, 4);
	}
	return CUDA_SUCCESS;
}

static CUresult run_sum(CUcontext c, struct op *o)
{
	unsigned n = o->grid[0] * o->block[0], *p[8];
	for (int k = 0; k < 8; k++)
		if (!(p[k] = memory(c, o, k, n)))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (unsigned i = 0; i < n; i++) {
		unsigned y = 0;
		for (unsigned k = 0; k < 7; k++)
			y += p[k][i] * (k + 1);
		p[7][i] = y;
	}
	return CUDA_SUCCESS;
}

static CUresult run_tile(CUcontext c, struct op *o)
{
	unsigned n = o->grid[0] * 64;
	unsigned *src = memory(c, o, 0, n), *dst = memory(c, o, 1, n);
	const char *add = strstr(o->fn->kernel->library->text, "add.u32 i, i, ");
	if (!src || !dst || !add || o->shared < 256)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (unsigned i = 0; i < n; i++)
		dst[i] = src[i - i % 64 + 63 - i % 64] + (unsigned)atol(add + 14);
	return CUDA_SUCCESS;
}

/* record(dst): grid, block and dynamic shared memory of the launch. */
static CUresult run_record(CUcontext c, struct op *o)
{
	unsigned *dst = memory(c, o, 0, 7);
	if (!dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memcpy(dst, o->grid, 12);
	memcpy(dst + 3, o->block, 12);
	dst[6] = o->shared;
	return CUDA_SUCCESS;
}

/* maps(dst, other, two maps): the words of the maps that the driver encoded. */
static CUresult run_maps(CUcontext c, struct op *o)
{
	unsigned *dst = memory(c, o, 0, 64);
	if (!dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memcpy(dst, o->arg[2], 128);
	memcpy(dst + 32, o->arg[3], 128);
	return CUDA_SUCCESS;
}

static CUresult run_fault(CUcontext c, struct op *o)
{
	(void)c, (void)o;
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* sleep(dst): counts in dst and takes 2 ms. */
static CUresult run_sleep(CUcontext c, struct op *o)
{
	unsigned *dst = memory(c, o, 0, 1);
	if (!dst)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	(*dst)++;
	nanosleep(&(struct timespec){0, 2000000}, NULL);
	return CUDA_SUCCESS;
}

/* spin(dst, n): takes 64 n additions' time per workgroup, at 10^12 additions a second. See busy. */
static CUresult run_spin(CUcontext c, struct op *o) { return memory(c, o, 0, 64) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS; }

/* busy tells whether a kernel that takes long is not done yet; it begins when it is first looked at. */
static int busy(struct op *o)
{
	if (o->kind != KERNEL || strcmp(o->fn->kernel->name, "spin") != 0)
		return 0;
	if (!o->until)
		o->until = now_ms() + 64e-9 * word(o, 1, 0) * o->grid[0];
	return now_ms() < o->until;
}

static const struct {
	const char *name;
	CUresult (*run)(CUcontext, struct op *);
} kernels[] = {
	{"step", run_step}, {"grid", run_grid}, {"echo", run_echo}, {"sum", run_sum}, {"tile", run_tile},
	{"record", run_record}, {"maps", run_maps}, {"fault", run_fault}, {"sleep", run_sleep},
	{"spin", run_spin},
};

static CUresult run_kernel(CUcontext c, struct op *o)
{
	if (o->fn->kernel->library->unloaded)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (strcmp(kernels[i].name, o->fn->kernel->name) == 0)
			return kernels[i].run(c, o);
	return CUDA_SUCCESS;
}

static CUresult perform(CUcontext c, struct op *o)
{
	switch (o->kind) {
	case COPY:
		if (!find(c, o->dst, (o->lines - 1) * o->dst_pitch + o->n) || !find(o->src_ctx ? o->src_ctx : c, o->src, (o->lines - 1) * o->src_pitch + o->n))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		for (size_t i = 0; i < o->lines; i++)
			memcpy((char *)o->dst + i * o->dst_pitch, (const char *)o->src + i * o->src_pitch, o->n);
		return CUDA_SUCCESS;
	case KERNEL:
		return run_kernel(c, o);
	case EVENT:
		o->event->pending--;
		o->event->ms = now_ms();
	}
	return CUDA_SUCCESS;
}

/* drain runs what waits in a stream, up to the last record of an event if one is given. A kernel that
 * takes long is waited for, or ends it if wait is 0. */
static CUresult drain(CUcontext c, CUstream s, CUevent until, int wait)
{
	while (s->first && !(until && !until->pending)) {
		struct op *o = s->first;
		while (!c->lost && busy(o)) {
			if (!wait)
				return CUDA_ERROR_NOT_READY;
			nanosleep(&(struct timespec){0, 200000}, NULL);
		}
		s->first = o->next;
		if (!s->first)
			s->last = &s->first;
		if (!c->lost)
			c->lost = perform(c, o);
		else if (o->kind == EVENT)
			o->event->pending--;
		free(o);
	}
	return c->lost;
}

/* stream is that of a handle, which may mean the default stream. */
static CUstream stream(CUstream s)
{
	if ((uintptr_t)s > 2)
		return s;
	CUstream l = &current->legacy;
	l->ctx = current;
	if (!l->last)
		l->last = &l->first;
	return l;
}

static struct op *append(CUstream s)
{
	s = stream(s);
	struct op *o = calloc(1, sizeof *o);
	*s->last = o;
	s->last = &o->next;
	return o;
}

/* ---- exported: initialisation and devices ---- */

CUresult cuInit(unsigned int flags)
{
	(void)flags;
	report("cuInit");
	return (CUresult)setting("FAKE_INIT", 0);
}

CUresult cuDriverGetVersion(int *v)
{
	*v = (int)setting("FAKE_VERSION", 12040);
	return CUDA_SUCCESS;
}

static const struct {
	CUresult code;
	const char *name, *text;
} names[] = {
	{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
	 "system has unsupported display driver / cuda driver combination"},
	{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

CUresult cuGetErrorName(CUresult e, const char **s)
{
	*s = NULL;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].code == e)
			*s = names[i].name;
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult e, const char **s)
{
	*s = NULL;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].code == e)
			*s = names[i].text;
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *n)
{
	ENTER(cuDeviceGetCount, 0)
	*n = (int)setting("FAKE_DEVICES", 2);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	ENTER(cuDeviceGet, 0)
	*d = ordinal;
	return ordinal < setting("FAKE_DEVICES", 2) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice d)
{
	ENTER(cuDeviceGetName, 0)
	snprintf(name, (size_t)len, "Fake GPU %d", d);
	return CUDA_SUCCESS;
}

static size_t total_memory(void) { return (size_t)setting("FAKE_MEMORY", 1L << 30); }

CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d)
{
	ENTER(cuDeviceTotalMem_v2, 0)
	(void)d;
	*n = total_memory();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	ENTER(cuDeviceGetAttribute, 0)
	(void)d;
	long arch = setting("FAKE_ARCH", 90);
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = (int)(arch / 10); break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *v = (int)(arch % 10); break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *v = 32; break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 232448; break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *v = 1024; break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *v = 64; break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *v = 0x7fffffff; break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *v = 65535; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 132; break;
	default: *v = 0;
	}
	if (setting("FAKE_ONES", 0))
		*v = -1;
	return CUDA_SUCCESS;
}

/* ---- exported: contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	ENTER(cuDevicePrimaryCtxRetain, 0)
	*c = &primary[d];
	(*c)->device = d;
	(*c)->refs++;
	(*c)->live = 1;
	return CUDA_SUCCESS;
}

/* end frees what a context holds, and reports it. */
static void end(CUcontext c)
{
	int blocks = 0;
	for (struct block *b = c->blocks, *next; b; b = next) {
		next = b->next;
		if (b->host != 2)
			free(b->p);
		free(b);
		blocks++;
	}
	c->blocks = NULL;
	char line[128];
	snprintf(line, sizeof line, "end lost=%d blocks=%d events=%d streams=%d graphs=%d libraries=%d", c->lost,
	         blocks, c->events, c->streams, c->graphs, c->libraries);
	report(line);
}

#ifndef WITHOUT_cuDevicePrimaryCtxRelease_v2
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	CUcontext c = &primary[d];
	ENTER(cuDevicePrimaryCtxRelease_v2, 0)
	if (!c->refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--c->refs)
		return CUDA_SUCCESS;
	end(c);
	memset(c, 0, sizeof *c);
	return CUDA_SUCCESS;
}
#endif

CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice d)
{
	ENTER(cuCtxCreate_v2, 0)
	(void)flags;
	*c = calloc(1, sizeof **c);
	(*c)->live = 1;
	(*c)->device = d;
	(*c)->next = created;
	created = *c;
	stack[depth++] = *c;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext c)
{
	ENTER(cuCtxDestroy_v2, 0)
	for (CUcontext *at = &created; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			end(c);
			c->live = 0; /* and never freed, so that its use shows */
			if (depth && stack[depth - 1] == c)
				depth--;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice(CUdevice *d)
{
	ENTER(cuCtxGetDevice, 1)
	*d = current->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext c)
{
	ENTER(cuCtxPushCurrent_v2, 0)
	if (!c || !c->live)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth == 16)
		return CUDA_ERROR_INVALID_VALUE; /* pushes without pops */
	stack[depth++] = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *c)
{
	ENTER(cuCtxPopCurrent_v2, 0)
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	*c = stack[--depth];
	return CUDA_SUCCESS;
}

/* ---- exported: libraries, kernels and functions ---- */

static void complain(CUlibrary l, const char *text)
{
	char *buf = NULL;
	size_t size = 0;
	for (unsigned i = 0; i < l->options; i++) {
		if (l->option[i] == CU_JIT_ERROR_LOG_BUFFER)
			buf = l->value[i];
		if (l->option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size = (size_t)l->value[i];
	}
	if (buf && size)
		snprintf(buf, size, "%s", text);
}

static int number_after(const char *text, const char *key)
{
	const char *p = strstr(text, key);
	return p ? atoi(p + strlen(key)) : 0;
}

/* hold waits for the file of FAKE_HOLD to go, without the lock. */
static void hold(void)
{
	const char *name = getenv("FAKE_HOLD");
	if (!name || !name[0])
		return;
	char copy[4096];
	snprintf(copy, sizeof copy, "%s", name);
	pthread_mutex_unlock(&mutex);
	while (access(copy, F_OK) == 0)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	pthread_mutex_lock(&mutex);
}

/* compile compiles a library once, in the call that is to do it. */
static CUresult compile(CUlibrary l, const char *call)
{
	const char *in = getenv("FAKE_COMPILE");
	if (l->compiled || strcmp(call, in && in[0] ? in : "cuLibraryLoadData") != 0)
		return CUDA_SUCCESS;
	report("compiling");
	hold();
	int major, minor, open = 0;
	const char *version = strstr(l->text, ".version ");
	for (const char *p = l->text; *p; p++)
		open += (*p == '{') - (*p == '}');
	if (!version || open || strstr(l->text, "bad instruction") || sscanf(version, ".version %d.%d", &major, &minor) != 2) {
		complain(l, "ptxas application ptx input, line 7; error   : Parsing error near 'bad': syntax error\nptxas fatal   : Ptx assembly aborted due to errors");
		return CUDA_ERROR_INVALID_PTX;
	}
	if (1000 * (major + 4) + 10 * minor > setting("FAKE_VERSION", 12040))
		return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	if (number_after(l->text, ".target sm_") > setting("FAKE_ARCH", 90))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	l->compiled = 1;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *l, const void *code, CUjit_option *options, void **values, unsigned n,
                           CUlibraryOption *library_options, void **library_values, unsigned library_n)
{
	ENTER(cuLibraryLoadData, 1)
	if (library_options || library_values || library_n)
		return CUDA_ERROR_INVALID_VALUE;
	CUlibrary new = calloc(1, sizeof *new);
	*new = (struct CUlib_st){.text = strdup(code), .ctx = current, .option = options, .value = values, .options = n};
	CUresult r = compile(new, "cuLibraryLoadData");
	if (r) {
		free(new->text);
		free(new);
		return r;
	}
	new->ctx->libraries++;
	*l = new;
	return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary l)
{
	ENTER(cuLibraryUnload, 0)
	if (l->unloaded)
		return CUDA_ERROR_INVALID_HANDLE;
	l->ctx->libraries--;
	l->unloaded = 1; /* and never freed, so that its use shows */
	return CUDA_SUCCESS;
}

/* parse_params reads the sizes from ".entry NAME(.param .u64 a, .param .align 4 .b8 p[16])". */
static void parse_params(struct CUfunc_st *f, const char *p)
{
	const char *end = strchr(p, ')');
	while (end && (p = strstr(p, ".param")) && p < end) {
		const char *b8 = strstr(p, ".b8"), *comma = strchr(p, ',');
		if (!comma || comma > end)
			comma = end;
		f->size[f->params++] = b8 && b8 < comma ? (size_t)atol(strchr(b8, '[') + 1) : 8;
		p = comma;
	}
}

/* entry finds what follows a function's name in PTX. */
static const char *entry(const char *text, const char *name)
{
	char start[128];
	snprintf(start, sizeof start, ".entry %s(", name);
	return strstr(text, start);
}

CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name)
{
	ENTER(cuLibraryGetKernel, 0)
	if (l->unloaded)
		return CUDA_ERROR_INVALID_HANDLE;
	for (*k = l->kernels; *k; *k = (*k)->next)
		if (strcmp((*k)->name, name) == 0)
			return CUDA_SUCCESS;
	if (!entry(l->text, name))
		return CUDA_ERROR_NOT_FOUND;
	CUkernel new = calloc(1, sizeof *new);
	snprintf(new->name, sizeof new->name, "%s", name);
	new->library = l;
	new->next = l->kernels;
	*k = l->kernels = new;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *f, CUkernel k)
{
	ENTER(cuKernelGetFunction, 1)
	if (k->library->unloaded)
		return CUDA_ERROR_INVALID_HANDLE;
	for (*f = k->functions; *f; *f = (*f)->next)
		if ((*f)->ctx == current)
			return CUDA_SUCCESS;
	CUresult r = compile(k->library, "cuKernelGetFunction");
	if (r)
		return r;
	CUfunction new = calloc(1, sizeof *new);
	new->kernel = k;
	new->ctx = current;
	parse_params(new, entry(k->library->text, k->name));
	new->next = k->functions;
	*f = k->functions = new;
	return CUDA_SUCCESS;
}

/* A comment in the PTX gives what a compiler would find: "//threads=N", "//static=N". */
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f)
{
	ENTER(cuFuncGetAttribute, 1)
	CUlibrary l = f->kernel->library;
	CUresult r = compile(l, "cuFuncGetAttribute");
	if (r)
		return r;
	int threads = number_after(l->text, "//threads=");
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *v = threads ? threads : 1024; break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *v = number_after(l->text, "//static="); break;
	default: *v = 0;
	}
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v)
{
	ENTER(cuFuncSetAttribute, 1)
	if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || v > 232448)
		return CUDA_ERROR_INVALID_VALUE;
	f->dynamic = v;
	return CUDA_SUCCESS;
}

#ifndef WITHOUT_cuFuncGetParamInfo
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *size)
{
	ENTER(cuFuncGetParamInfo, 1)
	if (i >= (size_t)f->params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 0;
	*size = f->size[i];
	return CUDA_SUCCESS;
}
#endif

/* ---- exported: memory ---- */

static CUresult add_block(void **p, size_t n, int host)
{
	struct block *b = calloc(1, sizeof *b);
	*b = (struct block){aligned_alloc(256, (n + 255) & ~(size_t)255), n, host, current->blocks};
	memset(b->p, 0xa5, n); /* undefined contents */
	current->blocks = b;
	*p = b->p;
	return CUDA_SUCCESS;
}

static CUresult remove_block(void *p, int host)
{
	for (struct block **b = &current->blocks; *b; b = &(*b)->next)
		if ((*b)->p == p && (*b)->host == host) {
			struct block *old = *b;
			*b = old->next;
			if (!host)
				current->used -= old->n;
			if (host != 2)
				free(old->p);
			free(old);
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
	ENTER(cuMemGetInfo_v2, 1)
	*total = total_memory();
	*left = *total - current->used;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	ENTER(cuMemAlloc_v2, 1)
	if (n > total_memory() - current->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	current->used += n;
	void *q;
	CUresult r = add_block(&q, n, 0);
	*p = (CUdeviceptr)(uintptr_t)q;
	return r;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	ENTER(cuMemFree_v2, 1)
	return remove_block((void *)(uintptr_t)p, 0);
}

CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags)
{
	ENTER(cuMemHostAlloc, 1)
	(void)flags;
	return add_block(p, n, 1);
}

CUresult cuMemFreeHost(void *p)
{
	ENTER(cuMemFreeHost, 1)
	return remove_block(p, 1);
}

/* Memory that is the program's: a block of kind 2. */
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
	ENTER(cuMemHostRegister_v2, 1)
	(void)flags;
	struct block *b = calloc(1, sizeof *b);
	*b = (struct block){p, n, 2, current->blocks};
	current->blocks = b;
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p)
{
	ENTER(cuMemHostUnregister, 1)
	return remove_block(p, 2);
}

static CUresult copy_peer(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t n, size_t lines, CUstream s, CUcontext src_ctx)
{
	struct op *o = append(s);
	o->kind = COPY;
	o->dst = dst;
	o->src = src;
	o->n = n;
	o->lines = lines;
	o->dst_pitch = dst_pitch;
	o->src_pitch = src_pitch;
	o->src_ctx = src_ctx;
	return CUDA_SUCCESS;
}

static CUresult copy_async(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t n, size_t lines, CUstream s)
{
	return copy_peer(dst, dst_pitch, src, src_pitch, n, lines, s, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
	ENTER(cuMemcpyHtoDAsync_v2, 1)
	return copy_async((void *)(uintptr_t)dst, 0, src, 0, n, 1, s);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s)
{
	ENTER(cuMemcpyDtoHAsync_v2, 1)
	return copy_async(dst, 0, (const void *)(uintptr_t)src, 0, n, 1, s);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	ENTER(cuMemcpyDtoH_v2, 1)
	copy_async(dst, 0, (const void *)(uintptr_t)src, 0, n, 1, NULL);
	return drain(current, stream(NULL), NULL, 1);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	ENTER(cuMemcpyHtoD_v2, 1)
	if (!find(current, (void *)(uintptr_t)dst, n))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy((void *)(uintptr_t)dst, src, n); /* pageable memory: at once */
	return CUDA_SUCCESS;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream s)
{
	ENTER(cuMemcpy2DAsync_v2, 1)
	int in = c->dstMemoryType == CU_MEMORYTYPE_DEVICE;
	if (c->WidthInBytes > c->srcPitch || c->WidthInBytes > c->dstPitch || c->srcMemoryType != (in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_async(in ? (void *)(uintptr_t)c->dstDevice : c->dstHost, c->dstPitch,
	                  in ? c->srcHost : (const void *)(uintptr_t)c->srcDevice, c->srcPitch, c->WidthInBytes, c->Height, s);
}

/* The peer copies of other contexts' memory; all devices reach each other. */
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t n, CUstream s)
{
	ENTER(cuMemcpyPeerAsync, 1)
	if (!find(dst_ctx, (void *)(uintptr_t)dst, n) || !find(src_ctx, (void *)(uintptr_t)src, n))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_peer((void *)(uintptr_t)dst, 0, (const void *)(uintptr_t)src, 0, n, 1, s, src_ctx);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream s)
{
	ENTER(cuMemcpy3DPeerAsync, 1)
	if (c->WidthInBytes > c->srcPitch || c->WidthInBytes > c->dstPitch || c->Depth != 1 || c->Height > c->srcHeight || c->Height > c->dstHeight)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find(c->dstContext, (void *)(uintptr_t)c->dstDevice, (c->Height - 1) * c->dstPitch + c->WidthInBytes) ||
	    !find(c->srcContext, (void *)(uintptr_t)c->srcDevice, (c->Height - 1) * c->srcPitch + c->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	return copy_peer((void *)(uintptr_t)c->dstDevice, c->dstPitch, (const void *)(uintptr_t)c->srcDevice, c->srcPitch, c->WidthInBytes, c->Height, s, c->srcContext);
}

CUresult cuDeviceGetUuid(CUuuid *id, CUdevice d)
{
	ENTER(cuDeviceGetUuid, 0)
	memset(id, 0, sizeof *id);
	memset(id, 0xf0 + d, 8);
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer)
{
	ENTER(cuDeviceCanAccessPeer, 0)
	*can = d != peer;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	ENTER(cuCtxEnablePeerAccess, 1)
	if (peer == current || flags)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

/* lookup finds the block that an address lies in, and its context. */
static struct block *lookup(CUdeviceptr p, CUcontext *owner)
{
	for (int i = 0; i < 8; i++) {
		struct block *b = find(*owner = &primary[i], (void *)(uintptr_t)p, 1);
		if (b)
			return b;
	}
	for (*owner = created; *owner; *owner = (*owner)->next) {
		struct block *b = find(*owner, (void *)(uintptr_t)p, 1);
		if (b)
			return b;
	}
	return NULL;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute a, CUdeviceptr p)
{
	ENTER(cuPointerGetAttribute, 1)
	CUcontext owner;
	struct block *b = lookup(p, &owner);
	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	size_t piece = (size_t)setting("FAKE_RANGE", 0), at = (size_t)((char *)(uintptr_t)p - b->p);
	switch (a) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(CUmemorytype *)data = b->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = owner; break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)data = 0; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = owner->device; break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)(b->p + (piece ? at / piece * piece : 0));
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = !piece ? b->n : b->n - at / piece * piece < piece ? b->n - at / piece * piece : piece; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* ---- exported: streams, events, launches ---- */

CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	ENTER(cuStreamCreate, 1)
	(void)flags;
	*s = calloc(1, sizeof **s);
	(*s)->last = &(*s)->first;
	(*s)->ctx = current;
	(*s)->sibling = current->made;
	current->made = *s;
	current->streams++;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER(cuCtxGetStreamPriorityRange, 1)
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority)
{
	return priority < -5 || priority > 0 ? CUDA_ERROR_INVALID_VALUE : cuStreamCreate(s, flags);
}

CUresult cuStreamQuery(CUstream s)
{
	ENTER(cuStreamQuery, 1)
	return stream(s)->first ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream s, CUcontext *c)
{
	ENTER(cuStreamGetCtx, 1)
	*c = stream(s)->ctx;
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
	ENTER(cuStreamIsCapturing, 1)
	(void)s;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	(void)mode;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *c)
{
	*c = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	ENTER(cuCtxSynchronize, 1)
	CUresult r = drain(current, stream(NULL), NULL, 1);
	for (CUstream s = current->made; s && !r; s = s->sibling)
		r = drain(current, s, NULL, 1);
	return r;
}

/* What the event follows is run at once, which puts it before what comes next in the stream. */
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	ENTER(cuStreamWaitEvent, 1)
	(void)s, (void)flags;
	return e->pending ? drain(current, e->stream, e, 1) : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream s)
{
	ENTER(cuStreamSynchronize, 1)
	return drain(current, stream(s), NULL, 1);
}

CUresult cuStreamDestroy_v2(CUstream s)
{
	ENTER(cuStreamDestroy_v2, 1)
	drain(current, s, NULL, 1);
	current->streams--;
	for (CUstream *p = &current->made; *p; p = &(*p)->sibling)
		if (*p == s) {
			*p = s->sibling;
			break;
		}
	free(s);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	ENTER(cuEventCreate, 1)
	*e = calloc(1, sizeof **e);
	(*e)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
	current->events++;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
	ENTER(cuEventRecord, 1)
	struct op *o = append(s);
	o->kind = EVENT;
	o->event = e;
	e->pending++;
	e->stream = stream(s);
	return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent e)
{
	ENTER(cuEventSynchronize, 1)
	return e->pending ? drain(current, e->stream, e, 1) : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent e)
{
	ENTER(cuEventQuery, 1)
	return e->pending ? drain(current, e->stream, e, 0) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	ENTER(cuEventElapsedTime, 1)
	if (!from->timed || !to->timed)
		return CUDA_ERROR_INVALID_HANDLE;
	if (from->pending || to->pending)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(to->ms - from->ms);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent e)
{
	ENTER(cuEventDestroy_v2, 1)
	current->events--;
	free(e);
	return CUDA_SUCCESS;
}

/* A map here is the words of what it was made from. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *dim, const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	ENTER(cuTensorMapEncodeTiled, 1)
	if ((size_t)map % 64 || type != CU_TENSOR_MAP_DATA_TYPE_UINT16 || rank != 2 || (size_t)at % 16 || stride[0] % 16 || box[0] * 2 > 128 || box[1] > 256 ||
	    step[0] != 1 || step[1] != 1 || interleave || fill)
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof *map);
	map->opaque[0] = (size_t)at;
	map->opaque[1] = dim[0], map->opaque[2] = dim[1], map->opaque[3] = stride[0], map->opaque[4] = box[1];
	map->opaque[5] = swizzle, map->opaque[6] = promotion, map->opaque[7] = box[0];
	return CUDA_SUCCESS;
}

/* kernel_op makes o a launch, with a copy of its parameters. */
static CUresult kernel_op(struct op *o, CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned shared, void **params)
{
	if (!grid[0] || !grid[1] || !grid[2] || grid[1] > 65535 || grid[2] > 65535 || block[0] * block[1] * block[2] > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (f->ctx != current)
		return CUDA_ERROR_INVALID_HANDLE;
	if (shared > (unsigned)f->dynamic && (int)shared + number_after(f->kernel->library->text, "//static=") > 48 << 10)
		return CUDA_ERROR_INVALID_VALUE;
	o->kind = KERNEL;
	o->fn = f;
	memcpy(o->grid, grid, sizeof o->grid);
	memcpy(o->block, block, sizeof o->block);
	o->shared = shared;
	for (int i = 0; i < f->params; i++)
		memcpy(o->arg[i], params[i], f->size[i]);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **params, void **extra)
{
	ENTER(cuLaunchKernel, 1)
	(void)extra;
	struct op o = {0};
	CUresult r = kernel_op(&o, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, params);
	if (r)
		return r;
	struct op *to = append(s);
	*to = o;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	ENTER(cuLaunchKernelEx, 1)
	if (c->numAttrs != 1 || c->attrs[0].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || extra)
		return CUDA_ERROR_INVALID_VALUE;
	struct op o = {0};
	CUresult r = kernel_op(&o, f, (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ},
	                       (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, params);
	if (r)
		return r;
	struct op *to = append(c->hStream);
	*to = o;
	return CUDA_SUCCESS;
}

/* ---- exported: graphs ---- */

CUresult cuGraphCreate(CUgraph *g, unsigned flags)
{
	ENTER(cuGraphCreate, 1)
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	*g = calloc(1, sizeof **g);
	(*g)->ctx = current;
	current->graphs++;
	return CUDA_SUCCESS;
}

/* A node must come after the one that was added last, so that there is one order: at once, or by cuGraphAddDependencies. */
CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	ENTER(cuGraphAddKernelNode, 1)
	if (n > (g->n > 0) || (n && after[0] != g->node[g->n - 1]) || g->n == sizeof g->node / sizeof g->node[0] || p->extra)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNode new = calloc(1, sizeof *new);
	CUresult r = kernel_op(&new->op, p->func, (unsigned[]){p->gridDimX, p->gridDimY, p->gridDimZ},
	                       (unsigned[]){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes, p->kernelParams);
	if (r) {
		free(new);
		return r;
	}
	new->loose = n != (g->n > 0);
	*node = g->node[g->n++] = new;
	return CUDA_SUCCESS;
}

static CUresult tie(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	if (n != 1 || g->n < 2 || *from != g->node[g->n - 2] || *to != g->node[g->n - 1] || !(*to)->loose)
		return CUDA_ERROR_INVALID_VALUE;
	(*to)->loose = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	ENTER(cuGraphAddDependencies, 1)
	return tie(g, from, to, n);
}

#ifndef WITHOUT_cuGraphAddDependencies_v2
CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edge, size_t n)
{
	ENTER(cuGraphAddDependencies_v2, 1)
	if (edge->from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC || edge->to_port || edge->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
		return CUDA_ERROR_INVALID_VALUE;
	return tie(g, from, to, n);
}
#endif

CUresult cuGraphDestroy(CUgraph g)
{
	ENTER(cuGraphDestroy, 1)
	for (size_t i = 0; i < g->n; i++)
		free(g->node[i]);
	g->ctx->graphs--;
	free(g);
	return CUDA_SUCCESS;
}

#ifndef WITHOUT_cuGraphInstantiateWithFlags
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	ENTER(cuGraphInstantiateWithFlags, 1)
	if (flags || !g->n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->n; i++)
		if (g->node[i]->loose)
			return CUDA_ERROR_INVALID_VALUE;
	*x = calloc(1, sizeof **x);
	(*x)->ctx = current;
	current->graphs++;
	struct op **last = &(*x)->ops;
	for (size_t i = 0; i < g->n; i++) {
		struct op *o = malloc(sizeof *o);
		*o = g->node[i]->op;
		*last = o;
		last = &o->next;
	}
	return CUDA_SUCCESS;
}
#endif

CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	ENTER(cuGraphLaunch, 1)
	x->ran = s;
	for (struct op *o = x->ops; o; o = o->next) {
		struct op *to = append(s);
		struct op copy = *o;
		copy.next = NULL;
		*to = copy;
	}
	return CUDA_SUCCESS;
}

/* A graph that is destroyed while it runs is a mistake here: the driver allows it. */
CUresult cuGraphExecDestroy(CUgraphExec x)
{
	ENTER(cuGraphExecDestroy, 1)
	if (x->ran && x->ran->first)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct op *o = x->ops, *next; o; o = next) {
		next = o->next;
		free(o);
	}
	x->ctx->graphs--;
	free(x);
	return CUDA_SUCCESS;
}
