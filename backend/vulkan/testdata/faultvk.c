// A Vulkan loader that hands every call on to the real one and, as the environment says, lets some fail:
//
//   FAULTVK="FUNCTION RESULT SKIP [TIMES]"   the call after SKIP others returns RESULT and is not handed on; TIMES calls
//   FAULTVK_AT="N RESULT"            the Nth call of a device's functions that can fail returns RESULT; see counted
//   FAULTVK_LOG=FILE                 gets a line when such a call fails, and one when a device is destroyed: how many of the
//                                    objects that were made are left
//   REAL_VULKAN=FILE                 the real loader, where this one is found by its name
//   FAULTVK_VERSION=1.1              vkEnumerateInstanceVersion tells this; "1.0": the function is absent
//   FAULTVK_DEVICES=0                no physical device
//   FAULTVK_ADDRESS=0                devices lack bufferDeviceAddress
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t word;
typedef void *(*get_fn)(void *, const char *);
typedef word (*call_fn)(word, word, word, word, word, word, word, word);

static get_fn real_instance_proc, real_device_proc;
static call_fn faulty;
static int32_t result;
static int skip, times;

// Eight words hold the arguments of every function that tests let fail.
static word fault(word a, word b, word c, word d, word e, word f, word g, word h) {
    if (skip > 0 || times <= 0) {
        skip--;
        return faulty(a, b, c, d, e, f, g, h);
    }
    times--;
    return (word)(int64_t)result;
}

// "looks" are both ways to look at a fence; they must fail for good.
static int is(const char *function, const char *name) {
    if (!strcmp(function, "looks")) return !strcmp(name, "vkGetFenceStatus") || !strcmp(name, "vkWaitForFences");
    return !strcmp(function, name);
}

// The functions of a device that can fail, and those that free what they made: 1 makes objects, -1 frees one.
static struct function {
    const char *name;
    int makes;
    call_fn real;
} functions[] = {
    {"vkCreateDevice", 1}, {"vkDestroyDevice", -1}, {"vkAllocateMemory", 1}, {"vkFreeMemory", -1}, {"vkCreateBuffer", 1},
    {"vkDestroyBuffer", -1}, {"vkCreateFence", 1}, {"vkDestroyFence", -1}, {"vkCreateQueryPool", 1}, {"vkDestroyQueryPool", -1},
    {"vkCreateCommandPool", 1}, {"vkDestroyCommandPool", -1}, {"vkCreateShaderModule", 1}, {"vkDestroyShaderModule", -1},
    {"vkCreatePipelineLayout", 1}, {"vkDestroyPipelineLayout", -1}, {"vkCreatePipelineCache", 1}, {"vkDestroyPipelineCache", -1},
    {"vkCreateComputePipelines", 1}, {"vkDestroyPipeline", -1}, {"vkAllocateCommandBuffers", 0}, {"vkBindBufferMemory", 0},
    {"vkMapMemory", 0}, {"vkBeginCommandBuffer", 0}, {"vkEndCommandBuffer", 0}, {"vkResetCommandBuffer", 0}, {"vkResetCommandPool", 0},
    {"vkQueueSubmit", 0}, {"vkQueueBindSparse", 0}, {"vkResetFences", 0}, {"vkGetFenceStatus", 0}, {"vkWaitForFences", 0},
    {"vkGetQueryPoolResults", 0}, {"vkGetPipelineCacheData", 0}, {"vkFlushMappedMemoryRanges", 0}, {"vkInvalidateMappedMemoryRanges", 0},
};

static int calls, live;
static int lost; // a call has returned VK_ERROR_DEVICE_LOST
static char seen[32]; // the setting that calls are counted for

static void report(const char *word, const char *name, int n) {
    const char *file = getenv("FAULTVK_LOG");
    FILE *f = file ? fopen(file, "a") : 0;
    if (!f) return;
    fprintf(f, "%s %s %d\n", word, name, n);
    fclose(f);
}

// turn counts a call, and returns what it is to return; 0: it does not fail.
static int turn(const char *name) {
    const char *s = getenv("FAULTVK_AT");
    if (!s) s = "";
    if (strcmp(s, seen)) {
        snprintf(seen, sizeof seen, "%s", s);
        __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
        lost = 0;
    }
    int n, r;
    if (sscanf(s, "%d %d", &n, &r) < 2 || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != n) return 0;
    report("failed", name, r);
    return r;
}

static word counted(int i, word a, word b, word c, word d, word e, word f, word g, word h) {
    struct function *x = &functions[i];
    if (x->makes < 0) {
        int device = !strcmp(x->name, "vkDestroyDevice");
        // A device that is lost runs nothing any more, so that what it used may be freed: the real one ends first.
        if (lost && a && real_device_proc) ((call_fn)real_device_proc((void *)a, "vkDeviceWaitIdle"))(a, 0, 0, 0, 0, 0, 0, 0);
        if (device ? a : b) __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
        word r = x->real(a, b, c, d, e, f, g, h);
        if (device) report("end", "objects", live);
        return r;
    }
    int r = turn(x->name);
    if (r == -4) lost = 1;
    if (r) return (word)(int64_t)r;
    word result = x->real(a, b, c, d, e, f, g, h);
    if (!(int32_t)result) __atomic_add_fetch(&live, x->makes, __ATOMIC_SEQ_CST);
    return result;
}

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) \
    X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35)
#define WRAPPER(i) \
    static word wrapper##i(word a, word b, word c, word d, word e, word f, word g, word h) { return counted(i, a, b, c, d, e, f, g, h); }
#define NAME(i) wrapper##i,
EACH(WRAPPER)
static const call_fn wrappers[] = {EACH(NAME)};
_Static_assert(sizeof wrappers / sizeof *wrappers == sizeof functions / sizeof *functions, "a wrapper for each function");

static void *wrap(void *real, const char *name) {
    if (getenv("FAULTVK_AT"))
        for (unsigned i = 0; real && i < sizeof functions / sizeof *functions; i++)
            if (!strcmp(functions[i].name, name)) {
                functions[i].real = (call_fn)real;
                return wrappers[i];
            }
    char function[64] = "";
    const char *env = getenv("FAULTVK");
    int r, s, t = 1;
    if (!real || !env || sscanf(env, "%63s %d %d %d", function, &r, &s, &t) < 3 || !is(function, name)) return real;
    faulty = (call_fn)real, result = r, skip = s, times = t;
    return fault;
}

static int32_t version(uint32_t *v) {
    unsigned major, minor;
    sscanf(getenv("FAULTVK_VERSION"), "%u.%u", &major, &minor);
    *v = major << 22 | minor << 12;
    return 0;
}

static int32_t no_devices(void *instance, uint32_t *n, void **devices) {
    *n = 0;
    return 0;
}

static void (*real_features)(void *, uint32_t *);

// Clears the feature, the 39th of the structure of Vulkan 1.2's features (type 51) after its 16 bytes of header.
static void features(void *device, uint32_t *f) {
    real_features(device, f);
    for (uint32_t *s = f; s; s = *(uint32_t **)(s + 2))
        if (*s == 51) s[4 + 38] = 0;
}

static void *device_proc(void *device, const char *name) { return wrap(real_device_proc(device, name), name); }

void *vkGetInstanceProcAddr(void *instance, const char *name) {
    if (!real_instance_proc) {
        const char *path = getenv("REAL_VULKAN");
        void *lib = dlopen(path ? path : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
        real_instance_proc = lib ? (get_fn)dlsym(lib, "vkGetInstanceProcAddr") : 0;
    }
    void *real = real_instance_proc ? real_instance_proc(instance, name) : 0;
    const char *v = getenv("FAULTVK_VERSION");
    if (v && !strcmp(name, "vkEnumerateInstanceVersion")) return strcmp(v, "1.0") ? version : 0;
    if (getenv("FAULTVK_DEVICES") && !strcmp(name, "vkEnumeratePhysicalDevices")) return no_devices;
    if (real && getenv("FAULTVK_ADDRESS") && !strcmp(name, "vkGetPhysicalDeviceFeatures2")) {
        real_features = (void (*)(void *, uint32_t *))real;
        return features;
    }
    if (real && !strcmp(name, "vkGetDeviceProcAddr")) {
        real_device_proc = (get_fn)real;
        return device_proc;
    }
    return wrap(real, name);
}
