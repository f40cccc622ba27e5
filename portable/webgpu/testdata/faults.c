// A Vulkan loader that forwards to the real one (environment variable REAL_VULKAN) and makes calls fail while the
// file named by VULKAN_FAULT exists: "submit" and "wait" there lose the device as a GPU's reset does, "memory"
// leaves none.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*proc)(void);
typedef proc get_proc(void *, const char *);
enum { no_memory = -2, lost = -4 };

static get_proc *instance_proc, *device_proc;
static int (*submit)(void *, uint32_t, const void *, uint64_t);
static int (*wait_fences)(void *, uint32_t, const uint64_t *, uint32_t, uint64_t);
static int (*wait_semaphores)(void *, const void *, uint64_t);
static int (*fence_status)(void *, uint64_t);
static int (*semaphore_value)(void *, uint64_t, uint64_t *);
static int (*allocate)(void *, const void *, const void *, uint64_t *);

static int fault(const char *which) {
	char now[16] = "";
	FILE *f = fopen(getenv("VULKAN_FAULT"), "r");
	if (!f)
		return 0;
	int n = fscanf(f, "%15s", now);
	fclose(f);
	return n == 1 && !strcmp(now, which);
}

static int my_submit(void *q, uint32_t n, const void *s, uint64_t f) { return fault("submit") ? lost : submit(q, n, s, f); }
static int my_wait_fences(void *d, uint32_t n, const uint64_t *f, uint32_t all, uint64_t t) { return fault("wait") ? lost : wait_fences(d, n, f, all, t); }
static int my_wait_semaphores(void *d, const void *i, uint64_t t) { return fault("wait") ? lost : wait_semaphores(d, i, t); }
static int my_fence_status(void *d, uint64_t f) { return fault("wait") ? lost : fence_status(d, f); }
static int my_semaphore_value(void *d, uint64_t s, uint64_t *v) { return fault("wait") ? lost : semaphore_value(d, s, v); }
static int my_allocate(void *d, const void *i, const void *a, uint64_t *m) { return fault("memory") ? no_memory : allocate(d, i, a, m); }

static proc my_device_proc(void *device, const char *name) {
	proc p = device_proc(device, name);
	if (!p)
		return p;
	if (!strcmp(name, "vkQueueSubmit"))
		return submit = (void *)p, (proc)my_submit;
	if (!strcmp(name, "vkWaitForFences"))
		return wait_fences = (void *)p, (proc)my_wait_fences;
	if (!strcmp(name, "vkWaitSemaphores") || !strcmp(name, "vkWaitSemaphoresKHR"))
		return wait_semaphores = (void *)p, (proc)my_wait_semaphores;
	if (!strcmp(name, "vkGetFenceStatus"))
		return fence_status = (void *)p, (proc)my_fence_status;
	if (!strcmp(name, "vkGetSemaphoreCounterValue") || !strcmp(name, "vkGetSemaphoreCounterValueKHR"))
		return semaphore_value = (void *)p, (proc)my_semaphore_value;
	if (!strcmp(name, "vkAllocateMemory"))
		return allocate = (void *)p, (proc)my_allocate;
	return p;
}

proc vkGetInstanceProcAddr(void *instance, const char *name) {
	if (!instance_proc) {
		void *real = dlopen(getenv("REAL_VULKAN"), RTLD_NOW | RTLD_LOCAL);
		if (!real)
			abort();
		instance_proc = (get_proc *)dlsym(real, "vkGetInstanceProcAddr");
	}
	proc p = instance_proc(instance, name);
	if (p && !strcmp(name, "vkGetDeviceProcAddr"))
		return device_proc = (get_proc *)p, (proc)my_device_proc;
	return p;
}
