// A Vulkan loader that hands every call on to the real one and, as the environment says, lets some fail:
//
//   FAULTVK="FUNCTION RESULT SKIP [TIMES]"   the call after SKIP others returns RESULT and is not handed on; TIMES calls
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

static void *wrap(void *real, const char *name) {
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
        void *lib = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
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
