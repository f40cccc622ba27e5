// The C side of the Vulkan backend: calls whose arguments are arrays of structs, which the Go binding
// frees too early, and the hot path, where a whole batch of launches costs one crossing from Go to C.
// Handles that are not pointers in the API are uint64_t; results are VkResult.

#ifndef SPMM_VULKAN_NATIVE_H
#define SPMM_VULKAN_NATIVE_H

#include <stddef.h>
#include <stdint.h>

enum {
    SV_PUSH = 144,  // bytes of push constants at most: backend.MaxArgs addresses and backend.MaxParams
    SV_BATCH = 128, // launches of one command buffer
    SV_SLOTS = 2,   // copies in flight
    SV_RUNNING = 2, // VK_TIMEOUT
};

typedef struct {
    uint64_t pipeline, layout;
    uint32_t groups[3];
    uint32_t push_bytes;
    uint8_t push[SV_PUSH];
    uint32_t wait; // 1: those before it are done, 2: and it sees what they wrote
    uint32_t unused;
} sv_launch;

// Memory with one buffer over all of it.
typedef struct {
    uint64_t buffer, memory;
    uint64_t *parts; // instead of memory, for a buffer larger than one allocation may be
    uint32_t nparts;
    uint64_t address; // 0 unless requested
    void *host;       // null unless requested
} sv_memory;

typedef struct {
    const uint32_t *code;
    size_t code_bytes;
    const char *entry;
    const uint32_t *spec; // pairs of constant id and value
    uint32_t spec_count;
    uint32_t subgroup;      // size to require; 0: none
    uint32_t full_subgroups; // 1: every subgroup has all its invocations
} sv_shader;

typedef struct {
    int result;     // SV_RUNNING: the launches are not done yet
    uint64_t ticks; // what the timestamps counted; 0 without timestamps
} sv_outcome;

// A command buffer with a fence and two timestamps of its own. It runs once at a time.
typedef struct {
    void *commands;
    uint64_t fence, queries;
} sv_work;

typedef struct sv_device sv_device;

// The loader and the instance.
void *sv_dlopen(const char *name, const char **error);
void *sv_dlsym(void *lib, const char *name);
void *sv_proc(void *get_instance_proc, void *instance, const char *name);
int sv_instance_version(void *f, uint32_t *version);
int sv_create_instance(void *f, uint32_t api, const char **layers, uint32_t nlayers,
                       const char **extensions, uint32_t nextensions, void **instance);
int sv_call3(void *f, void *a, void *b, void *c);
int sv_call4(void *f, void *a, void *b, void *c, void *d);
int sv_create_device(void *f, void *physical, void *chain, uint32_t family,
                     const char **extensions, uint32_t nextensions, void **device);

// Messages of the validation layers, of all instances of the process.
int sv_messenger(void *f, void *instance, uint64_t *messenger);
uint32_t sv_messages(char *first, size_t size); // returns how many; copies the first ones
void sv_messages_reset(void);

// Entry points and the objects of one device's queue. A device that only compiles has no queue (null).
// On failure *missing may name an entry point that the driver lacks.
int sv_open(void *get_device_proc, void *device, void *queue, uint32_t family, int timestamps,
            sv_device **out, const char **missing);
void sv_idle(sv_device *d);
void sv_close(sv_device *d); // frees all but the device itself

int sv_memory_types(sv_device *d, uint32_t usage, uint32_t *bits);
int sv_alloc(sv_device *d, uint64_t size, uint32_t type, uint32_t usage, int map, sv_memory *m);
// The same of several allocations of at most part bytes; the queue must bind sparse memory.
int sv_alloc_parts(sv_device *d, uint64_t size, uint64_t part, uint32_t type, uint32_t usage, sv_memory *m);
void sv_free(sv_device *d, sv_memory *m);

int sv_layout(sv_device *d, uint32_t push_bytes, uint64_t *layout);
void sv_free_layout(sv_device *d, uint64_t layout);
int sv_pipeline(sv_device *d, uint64_t cache, uint64_t layout, const sv_shader *s, uint64_t *pipeline);
void sv_free_pipeline(sv_device *d, uint64_t pipeline);

// The launches that sv_run runs: SV_BATCH of them, to be filled by the caller.
sv_launch *sv_launches(sv_device *d);
// Records (unless they are those of the last call) and submits n launches, which wait for those before
// them as they say, and awaits them for 20 ms at most. The device must not be running launches.
sv_outcome sv_run(sv_device *d, uint32_t n);
// Awaits what sv_run left running, for 20 ms at most.
sv_outcome sv_wait(sv_device *d);

// Makes a work. It may also be freed after an error, and when it is not running.
int sv_work_make(sv_device *d, sv_work *w);
void sv_work_free(sv_device *d, sv_work *w);
// Records launches: those of each call of sv_work_add are the first n of sv_launches.
int sv_work_begin(sv_device *d, sv_work *w);
void sv_work_add(sv_device *d, sv_work *w, uint32_t n);
int sv_work_end(sv_device *d, sv_work *w);
// Submits the work; awaits it, for a number of nanoseconds at most.
int sv_work_submit(sv_device *d, sv_work *w);
sv_outcome sv_work_wait(sv_device *d, sv_work *w, int64_t most);

// Starts a copy between buffers in a slot; awaits it (at once if none is in flight).
int sv_copy(sv_device *d, int slot, uint64_t src, uint64_t src_off, uint64_t dst, uint64_t dst_off, uint64_t n);
int sv_copy_wait(sv_device *d, int slot);

#endif
