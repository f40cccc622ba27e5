// A Vulkan loader and driver of which nothing works, in one of the ways that the environment says:
//
//   BROKENVK="missing NAME"   the function is not there
//   BROKENVK=ones             whatever is queried is all ones
//   BROKENVK=counts           lists have 2^32-1 entries
//   BROKENVK=grow             every list is longer each time that it is queried, and never complete
//   BROKENVK=null             calls succeed and make nothing
//
// Otherwise there is one device, whose properties are plausible and which cannot be created.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*proc)(void);
enum { incomplete = 5, failed = -3 };

static int broken(const char *how) {
    const char *env = getenv("BROKENVK");
    return env && !strcmp(env, how);
}

// count tells how long a list is, as a driver of this kind does, and returns how many entries may be written.
static uint32_t count(uint32_t *n, const void *entries, uint32_t have) {
    static uint32_t asked;
    uint32_t room = *n;
    if (broken("ones") || broken("counts")) have = UINT32_MAX;
    if (broken("grow")) have = ++asked * 7;
    *n = have;
    return entries ? (room < have ? room : have) : 0;
}

static int32_t result(void) { return broken("grow") ? incomplete : 0; }

static int handle; // what handles point to

static int32_t version(uint32_t *v) {
    *v = broken("ones") ? UINT32_MAX : 1u << 22 | 3u << 12;
    return 0;
}

static int32_t create_instance(const void *info, const void *allocator, void **instance) {
    *instance = broken("null") ? 0 : &handle;
    return 0;
}

static int32_t devices(void *instance, uint32_t *n, void **list) {
    uint32_t real = broken("ones") ? 1 : 0; // all ones are for the properties: with such a count there is no device
    if (real) {
        if (list) *list = &handle;
        *n = 1;
        return 0;
    }
    for (uint32_t i = 0, m = count(n, list, 1); i < m; i++) list[i] = broken("null") ? 0 : &handle;
    return result();
}

static int32_t extensions(void *device, const char *layer, uint32_t *n, char *list) {
    uint32_t m = count(n, list, 0);
    if (list) memset(list, broken("ones") ? 0xff : 'x', (size_t)m * 260);
    return result();
}

static void families(void *device, uint32_t *n, uint32_t *list) {
    uint32_t m = count(n, list, 1);
    if (list) memset(list, 0xff, (size_t)m * 24);
}

// VkPhysicalDeviceProperties, as far as it is looked at; 824 bytes.
static void properties(void *device, uint8_t *p) {
    memset(p, broken("ones") ? 0xff : 0, 824);
    if (broken("ones")) return;
    ((uint32_t *)p)[0] = 1u << 22 | 3u << 12; // version
    ((uint32_t *)p)[4] = 2;                   // discrete
    strcpy((char *)p + 20, "Broken \033[31mGPU");
    uint32_t *limits = (uint32_t *)(p + 296);
    for (int i = 0; i < 126; i++) limits[i] = 65536;
}

static void properties2(void *device, uint32_t *p) {
    for (uint32_t *s = p; s; s = *(uint32_t **)(s + 2)) {
        size_t size = *s == 1000059001 ? 824 : *s == 1000196000 ? 520 : 16;
        if (*s == 1000059001) properties(device, (uint8_t *)(s + 4));
        else memset(s + 4, broken("ones") ? 0xff : 0, *s == 1000168000 || *s == 1000094000 || *s == 1000225000 ? 16 : *s == 1000413001 ? 8 : size);
        if (*s == 1000168000 && !broken("ones")) *(uint64_t *)(s + 6) = 1 << 30; // bytes of an allocation
        if (*s == 1000094000 && !broken("ones")) s[4] = 32;                      // invocations of a subgroup
    }
}

// VkPhysicalDeviceFeatures2 and what is chained: all of them are there.
static void features2(void *device, uint32_t *p) {
    for (uint32_t *s = p; s; s = *(uint32_t **)(s + 2))
        for (int i = 0, n = *s == 1000059000 ? 55 : *s == 51 ? 47 : *s == 49 ? 12 : *s == 53 ? 15 : 2; i < n; i++) s[4 + i] = broken("ones") ? UINT32_MAX : 1;
}

static void memory(void *device, uint8_t *p) {
    memset(p, broken("ones") ? 0xff : 0, 520);
    if (broken("ones")) return;
    *(uint32_t *)p = 1;             // one type, of no property, in heap 0
    *(uint32_t *)(p + 260) = 1;     // one heap
    *(uint64_t *)(p + 264) = 1 << 30;
}

static int32_t fails(void) { return failed; }
static int32_t succeeds(void) { return 0; }

static proc device_proc(void *device, const char *name) { return (proc)fails; }

proc vkGetInstanceProcAddr(void *instance, const char *name) {
    static const struct {
        const char *name;
        proc f;
    } known[] = {
        {"vkEnumerateInstanceVersion", (proc)version},
        {"vkCreateInstance", (proc)create_instance},
        {"vkEnumeratePhysicalDevices", (proc)devices},
        {"vkEnumerateDeviceExtensionProperties", (proc)extensions},
        {"vkGetPhysicalDeviceQueueFamilyProperties", (proc)families},
        {"vkGetPhysicalDeviceProperties", (proc)properties},
        {"vkGetPhysicalDeviceProperties2", (proc)properties2},
        {"vkGetPhysicalDeviceFeatures2", (proc)features2},
        {"vkGetPhysicalDeviceMemoryProperties", (proc)memory},
        {"vkGetDeviceProcAddr", (proc)device_proc},
    };
    char missing[64] = "";
    const char *env = getenv("BROKENVK");
    if (env && sscanf(env, "missing %63s", missing) == 1 && !strcmp(missing, name)) return 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].name, name)) return known[i].f;
    return broken("null") ? (proc)succeeds : (proc)fails;
}
