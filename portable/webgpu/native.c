//go:build cgo && amd64 && (linux || (windows && webgpu))

// wgpu-native's steps put together. See native.h.

#include "native.h"
#include "abi.h"
#include "guard.h"
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#include <sched.h>
#include <time.h>
#endif

// record keeps the first error.
static void record(wg_device *d, int error, const char *text) {
	if (error == WG_LOST)
		d->dead = true;
	if (d->error != WG_OK && error != WG_LOST)
		return;
	d->error = error;
	strncpy(d->text, text ? text : "", sizeof d->text - 1);
}

static void on_error(int type, const char *text, void *user) {
	record(user, type == wgErrorOutOfMemory ? WG_NO_MEMORY : type == wgErrorDeviceLost ? WG_LOST : WG_REFUSED, text);
}

static void on_lost(int reason, const char *text, void *user) { (void)reason; record(user, WG_LOST, text); }

// guarded runs one step; the argument's first member is the device.
static void guarded(void (*step)(void *), void *args) {
	wg_device *d = *(wg_device **)args;
	if (!d->dead && !wg_guard(step, args))
		record(d, WG_LOST, "wgpu-native gave up, with a message on stderr");
}

bool wg_linked(void) { return wgpuAdapterRequestDevice && wgpuDeviceSetUncapturedErrorCallback &&
	wgpuCommandEncoderResolveQuerySet; }

// --- adapters

// wg_display reports whether EGL has any display: wgpu-native's OpenGL panics where it has none. Windows does without
// OpenGL.
#ifdef _WIN32
bool wg_display(void) { return false; }
#else
bool wg_display(void) {
	void *egl = dlopen("libEGL.so.1", RTLD_NOW);
	if (!egl)
		return false;
	void *(*get)(void *) = dlsym(egl, "eglGetDisplay");
	return get && get(NULL); // the library stays: wgpu wants it next
}
#endif

enum { most_adapters = 64 };

// OpenGL's instances share one EGL display, which the release of any of them would end for all: they are kept.
static void release_instance(void *instance, uint32_t apis) {
	if (instance && !(apis & wgAPIOpenGL))
		wgpuInstanceRelease(instance);
}

// enumerate returns an instance and its adapters; the caller releases them. NULL: none.
static void *enumerate(uint32_t apis, void *adapters[most_adapters], size_t *n) {
	wgInstanceExtras extras = {.chain = {NULL, wgInstance}, .apis = apis};
	wgEnumerateOptions options = {NULL, apis};
	void *instance = wgpuCreateInstance(&(wgInstanceDescriptor){&extras});
	*n = wgpuInstanceEnumerateAdapters(instance, &options, NULL);
	if (*n == 0 || *n > most_adapters) {
		release_instance(instance, apis);
		*n = 0;
		return NULL;
	}
	*n = wgpuInstanceEnumerateAdapters(instance, &options, adapters);
	return instance;
}

struct list { wg_device *d; uint32_t apis; wg_adapter *list; size_t max, n; };

static void adapters_step(void *p) {
	struct list *a = p;
	void *adapters[most_adapters];
	size_t n;
	void *instance = enumerate(a->apis, adapters, &n);
	for (size_t i = 0; i < n; i++) {
		wgAdapterProperties props = {0};
		wgpuAdapterGetProperties(adapters[i], &props);
		if (a->n < a->max) {
			wg_adapter *w = &a->list[a->n++];
			*w = (wg_adapter){.vendor = props.vendorID, .type = props.type, .api = props.api};
			strncpy(w->name, props.name, sizeof w->name - 1);
			strncpy(w->driver, props.driver, sizeof w->driver - 1);
		}
		wgpuAdapterRelease(adapters[i]);
	}
	release_instance(instance, a->apis);
}

size_t wg_adapters(wg_device *errors, uint32_t apis, wg_adapter *list, size_t max) {
	struct list a = {errors, apis, list, max, 0};
	guarded(adapters_step, &a);
	return a.n;
}

// --- device

struct open { wg_device *d; uint32_t apis; size_t index; };

static void on_device(int status, void *device, const char *text, void *user) {
	wg_device *d = user;
	if (status != 0)
		record(d, WG_REFUSED, text);
	d->device = device;
}

static void make_timer(wg_device *d);

static void open_step(void *p) {
	struct open *a = p;
	wg_device *d = a->d;
	void *adapters[most_adapters];
	size_t n;
	d->apis = a->apis;
	d->instance = enumerate(a->apis, adapters, &n);
	for (size_t i = 0; i < n; i++) {
		if (i == a->index)
			d->adapter = adapters[i];
		else
			wgpuAdapterRelease(adapters[i]);
	}
	if (!d->adapter) {
		record(d, WG_REFUSED, "the adapter is not there any more");
		return;
	}
	wgChainedLimits limits = {0};
	wgpuAdapterGetLimits(d->adapter, &limits);
	static const int features[] = {wgFeatureTimestamps};
	bool timed = wgpuAdapterHasFeature(d->adapter, wgFeatureTimestamps);
	wgDeviceDescriptor desc = {.features = timed, .feature = features, .limits = &limits, .lost = on_lost, .lostUser = d};
	wgpuAdapterRequestDevice(d->adapter, &desc, on_device, d);
	if (!d->device)
		return;
	wgpuDeviceSetUncapturedErrorCallback(d->device, on_error, d);
	d->queue = wgpuDeviceGetQueue(d->device);

	const wgLimits *l = &limits.limits;
	d->maxBuffer = l->maxBufferSize;
	d->maxBinding = l->maxStorageBufferBindingSize;
	d->maxUniform = l->maxUniformBufferBindingSize;
	d->uniformAlign = l->minUniformBufferOffsetAlignment;
	d->maxStorage = l->maxStorageBuffers;
	d->maxShared = l->maxWorkgroupStorage;
	d->maxInvocations = l->maxInvocations;
	d->maxLocal[0] = l->maxWorkgroupX, d->maxLocal[1] = l->maxWorkgroupY, d->maxLocal[2] = l->maxWorkgroupZ;
	d->maxGroups = l->maxWorkgroups;
	if (timed)
		make_timer(d);
}

// Every device has its own instance: wgpu-native frees a released device's memory only with its instance.
void wg_open(wg_device *d, uint32_t apis, size_t index) { guarded(open_step, &(struct open){d, apis, index}); }

static void close_step(void *p) {
	wg_device *d = *(wg_device **)p;
	if (d->queries) {
		wgpuQuerySetRelease(d->queries);
		wgpuBufferRelease(d->resolved);
		wgpuBufferRelease(d->stamps);
	}
	if (d->queue)
		wgpuQueueRelease(d->queue);
	if (d->device)
		wgpuDeviceRelease(d->device);
	if (d->adapter)
		wgpuAdapterRelease(d->adapter);
	release_instance(d->instance, d->apis);
}

void wg_close(wg_device *d) { guarded(close_step, &d); }

// --- buffers

static void *make_buffer(wg_device *d, uint32_t usage, uint64_t size) {
	int before = d->error;
	void *b = wgpuDeviceCreateBuffer(d->device, &(wgBufferDescriptor){.usage = usage, .size = size});
	if (d->error != before) {
		wgpuBufferRelease(b); // an error object
		return NULL;
	}
	return b;
}

struct buffer { wg_device *d; uint32_t usage; uint64_t size; void *out; };

static void buffer_step(void *p) {
	struct buffer *a = p;
	a->out = make_buffer(a->d, a->usage, a->size);
}

void *wg_buffer(wg_device *d, uint32_t usage, uint64_t size) {
	struct buffer a = {d, usage, size, NULL};
	guarded(buffer_step, &a);
	return a.out;
}

struct object { wg_device *d; void *object; };

// A destroyed buffer's memory is free once the device is polled.
static void buffer_free_step(void *p) {
	struct object *a = p;
	wgpuBufferDestroy(a->object);
	wgpuBufferRelease(a->object);
	wgpuDevicePoll(a->d->device, false, NULL);
}

void wg_buffer_free(wg_device *d, void *buffer) { guarded(buffer_free_step, &(struct object){d, buffer}); }

struct transfer { wg_device *d; void *buffer; uint64_t off; const void *from; void *staging, *to; size_t size; };

static void write_step(void *p) {
	struct transfer *a = p;
	wgpuQueueWriteBuffer(a->d->queue, a->buffer, a->off, a->from, a->size);
}

void wg_write(wg_device *d, void *buffer, uint64_t off, const void *data, size_t size) {
	guarded(write_step, &(struct transfer){.d = d, .buffer = buffer, .off = off, .from = data, .size = size});
}

// pause_before waits between two looks at the device: not at all at first, half a millisecond in the end.
// (wgpu-native's own wait gives up after five seconds and then takes the work for done.)
#ifdef _WIN32
static void pause_before(unsigned look) { Sleep(look < 200 ? 0 : 1); }
#else
static void pause_before(unsigned look) {
	if (look < 100)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = look < 200 ? 20000 : 500000}, NULL);
}
#endif

static void wait_idle(wg_device *d) {
	for (unsigned look = 0; !wgpuDevicePoll(d->device, false, NULL) && d->error == WG_OK; look++)
		pause_before(look);
}

// Pending writes hold a copy of their data until something is submitted and done.
static void flush_step(void *p) {
	wg_device *d = *(wg_device **)p;
	wgpuQueueSubmit(d->queue, 0, NULL);
	wait_idle(d);
}

void wg_flush(wg_device *d) { guarded(flush_step, &d); }

static void on_map(int status, void *user) { ((wg_device *)user)->mapped = status; }

// start_map asks for the memory of a buffer's first bytes. The answer goes to the device, which outlives every call.
static void start_map(wg_device *d, void *buffer, size_t size) {
	d->mapped = WG_MAPPING;
	wgpuBufferMapAsync(buffer, wgMapRead, 0, size, on_map, d);
}

// end_map returns the memory, NULL if it cannot be had. A mapping that something else kept from ending is given up.
static const void *end_map(wg_device *d, void *buffer, size_t size) {
	if (d->error == WG_OK && d->mapped != wgMapOK)
		record(d, d->mapped == wgMapLost ? WG_LOST : WG_REFUSED, "a buffer could not be mapped");
	const void *memory = d->error == WG_OK ? wgpuBufferGetConstMappedRange(buffer, 0, size) : NULL;
	if (!memory && d->error != WG_LOST)
		wgpuBufferUnmap(buffer);
	return memory;
}

// map waits for all submitted work and maps a buffer.
static const void *map(wg_device *d, void *buffer, size_t size) {
	start_map(d, buffer, size);
	for (unsigned look = 0; d->mapped == WG_MAPPING && d->error == WG_OK; look++) {
		pause_before(look);
		wgpuDevicePoll(d->device, false, NULL);
	}
	return end_map(d, buffer, size);
}

// submit finishes the encoder and submits its commands, unless recording them failed.
static void submit(wg_device *d, void *encoder) {
	void *commands = wgpuCommandEncoderFinish(encoder, NULL);
	wgpuCommandEncoderRelease(encoder);
	if (d->error == WG_OK)
		wgpuQueueSubmit(d->queue, 1, &commands);
	wgpuCommandBufferRelease(commands);
}

static void read_step(void *p) {
	struct transfer *a = p;
	size_t words = (a->size + 3) & ~(size_t)3;
	void *encoder = wgpuDeviceCreateCommandEncoder(a->d->device, NULL);
	wgpuCommandEncoderCopyBufferToBuffer(encoder, a->buffer, a->off, a->staging, 0, words);
	submit(a->d, encoder);
	if (a->d->error != WG_OK)
		return;
	const void *memory = map(a->d, a->staging, words);
	if (memory) {
		memcpy(a->to, memory, a->size);
		wgpuBufferUnmap(a->staging);
	}
}

void wg_read(wg_device *d, void *buffer, uint64_t off, void *staging, void *data, size_t size) {
	guarded(read_step, &(struct transfer){.d = d, .buffer = buffer, .off = off, .staging = staging, .to = data,
		.size = size});
}

// --- kernels

struct make { wg_device *d; wg_kernel *k; const char *code, *entry; uint32_t args, readonly, paramBytes; };

// Each object is made only if the one before was: an error object given on would be a second error.
static void make_step(void *p) {
	struct make *a = p;
	void *dev = a->d->device;
	wgLayoutEntry entry[16] = {0};
	uint32_t n = 0;
	for (; n < a->args; n++)
		entry[n].buffer.type = a->readonly >> n & 1 ? wgBindReadOnly : wgBindStorage;
	if (a->paramBytes) {
		entry[n].buffer.type = wgBindUniform;
		entry[n++].buffer.dynamic = true;
	}
	for (uint32_t i = 0; i < n; i++)
		entry[i].binding = i, entry[i].visibility = wgStageCompute;

	wgWGSL wgsl = {{NULL, wgShaderWGSL}, a->code};
	void *module = wgpuDeviceCreateShaderModule(dev, &(wgModuleDescriptor){.next = &wgsl});
	if (a->d->error == WG_OK)
		a->k->layout = wgpuDeviceCreateBindGroupLayout(dev, &(wgGroupLayoutDescriptor){.entries = n, .entry = entry});
	if (a->d->error == WG_OK)
		a->k->pipelineLayout = wgpuDeviceCreatePipelineLayout(dev, &(wgPipelineLayoutDescriptor){.groups = 1,
			.group = &a->k->layout});
	if (a->d->error == WG_OK)
		a->k->pipeline = wgpuDeviceCreateComputePipeline(dev, &(wgPipelineDescriptor){
			.layout = a->k->pipelineLayout, .compute = {.module = module, .entry = a->entry}});
	if (module)
		wgpuShaderModuleRelease(module);
}

void wg_kernel_make(wg_device *d, wg_kernel *k, const char *code, const char *entry, uint32_t args, uint32_t readonly,
	uint32_t paramBytes) {
	guarded(make_step, &(struct make){d, k, code, entry, args, readonly, paramBytes});
}

static void kernel_free_step(void *p) {
	struct object *a = p;
	wg_kernel *k = a->object;
	if (k->pipeline)
		wgpuComputePipelineRelease(k->pipeline);
	if (k->pipelineLayout)
		wgpuPipelineLayoutRelease(k->pipelineLayout);
	if (k->layout)
		wgpuBindGroupLayoutRelease(k->layout);
}

void wg_kernel_free(wg_device *d, wg_kernel *k) { guarded(kernel_free_step, &(struct object){d, k}); }

struct group { wg_device *d; const wg_kernel *k; void *const *buffers; uint32_t args; void *params; uint32_t paramBytes;
void *out; };

static void group_step(void *p) {
	struct group *a = p;
	wgGroupEntry entry[16] = {0};
	uint32_t n = 0;
	for (; n < a->args; n++)
		entry[n] = (wgGroupEntry){.binding = n, .buffer = a->buffers[n], .size = UINT64_MAX};
	if (a->paramBytes)
		entry[n] = (wgGroupEntry){.binding = n, .buffer = a->params, .size = a->paramBytes}, n++;
	a->out = wgpuDeviceCreateBindGroup(a->d->device, &(wgGroupDescriptor){.layout = a->k->layout, .entries = n,
		.entry = entry});
	if (a->d->error != WG_OK) {
		wgpuBindGroupRelease(a->out);
		a->out = NULL;
	}
}

void *wg_group(wg_device *d, const wg_kernel *k, void *const *buffers, uint32_t args, void *params,
	uint32_t paramBytes) {
	struct group a = {d, k, buffers, args, params, paramBytes, NULL};
	guarded(group_step, &a);
	return a.out;
}

static void group_free_step(void *p) { wgpuBindGroupRelease(((struct object *)p)->object); }

void wg_group_free(wg_device *d, void *group) { guarded(group_free_step, &(struct object){d, group}); }

// --- runs

static void make_timer(wg_device *d) {
	d->queries = wgpuDeviceCreateQuerySet(d->device, &(wgQueryDescriptor){.type = wgQueryTimestamp, .count = 2});
	d->resolved = make_buffer(d, wgUseResolve | wgUseCopySrc, 16);
	d->stamps = make_buffer(d, wgUseMapRead | wgUseCopyDst, 16);
}

// now is the host's clock in nanoseconds.
#ifdef _WIN32
static uint64_t now(void) {
	LARGE_INTEGER ticks, second;
	QueryPerformanceCounter(&ticks);
	QueryPerformanceFrequency(&second);
	uint64_t t = ticks.QuadPart, s = second.QuadPart;
	return t / s * 1000000000u + t % s * 1000000000u / s;
}
#else
static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#endif

struct run { wg_device *d; const wg_launch *launches; size_t n; wg_stamps *stamps; uint64_t most; };

static void run_step(void *p) {
	struct run *a = p;
	wg_device *d = a->d;
	void *encoder = wgpuDeviceCreateCommandEncoder(d->device, NULL);
	if (d->queries)
		wgpuCommandEncoderWriteTimestamp(encoder, d->queries, 0);
	void *pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
	for (size_t i = 0; i < a->n; i++) {
		const wg_launch *l = &a->launches[i];
		wgpuComputePassEncoderSetPipeline(pass, l->pipeline);
		wgpuComputePassEncoderSetBindGroup(pass, 0, l->group, l->params, &l->offset);
		wgpuComputePassEncoderDispatchWorkgroups(pass, l->groups[0], l->groups[1], l->groups[2]);
	}
	wgpuComputePassEncoderEnd(pass);
	wgpuComputePassEncoderRelease(pass);
	if (d->queries) {
		wgpuCommandEncoderWriteTimestamp(encoder, d->queries, 1);
		wgpuCommandEncoderResolveQuerySet(encoder, d->queries, 0, 2, d->resolved, 0);
		wgpuCommandEncoderCopyBufferToBuffer(encoder, d->resolved, 0, d->stamps, 0, 16);
	}
	a->stamps->hostBegin = now();
	submit(d, encoder);
	if (d->error != WG_OK)
		return;
	if (d->queries)
		start_map(d, d->stamps, 16);
	d->running = true;
	d->looks = 0;
}

void wg_run(wg_device *d, const wg_launch *launches, size_t n, wg_stamps *stamps) {
	guarded(run_step, &(struct run){d, launches, n, stamps, 0});
}

// done looks whether the device has finished.
static bool done(wg_device *d) {
	bool idle = wgpuDevicePoll(d->device, false, NULL);
	return d->queries ? d->mapped != WG_MAPPING : idle;
}

static void wait_step(void *p) {
	struct run *a = p;
	wg_device *d = a->d;
	for (uint64_t end = now() + a->most; d->error == WG_OK && !done(d); pause_before(d->looks++))
		if (now() >= end)
			return;
	d->running = false;
	if (!d->queries)
		return;
	const uint64_t *ticks = end_map(d, d->stamps, 16);
	a->stamps->hostEnd = now();
	if (ticks) {
		a->stamps->begin = ticks[0], a->stamps->end = ticks[1];
		wgpuBufferUnmap(d->stamps);
	}
}

bool wg_wait(wg_device *d, wg_stamps *stamps, uint64_t most) {
	guarded(wait_step, &(struct run){d, NULL, 0, stamps, most});
	return d->running && !d->dead;
}
