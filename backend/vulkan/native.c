// See native.h. The structs are those of the Vulkan 1.2 API, 64-bit, with only the names this file needs.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    OK = 0,
    TIMEOUT = 2,
    OUT_OF_HOST_MEMORY = -1,
    OUT_OF_DEVICE_MEMORY = -2,
    INITIALIZATION_FAILED = -3,
    DEVICE_LOST = -4,
};

// Structure types.
enum {
    T_APPLICATION = 0,
    T_INSTANCE = 1,
    T_QUEUE = 2,
    T_DEVICE = 3,
    T_SUBMIT = 4,
    T_ALLOCATE = 5,
    T_BIND_SPARSE = 7,
    T_FENCE = 8,
    T_QUERY_POOL = 11,
    T_BUFFER = 12,
    T_MODULE = 16,
    T_STAGE = 18,
    T_PIPELINE = 29,
    T_LAYOUT = 30,
    T_COMMAND_POOL = 39,
    T_COMMAND_BUFFERS = 40,
    T_BEGIN = 42,
    T_BARRIER = 46,
    T_ALLOCATE_FLAGS = 1000060000,
    T_MESSENGER = 1000128004,
    T_SUBGROUP_SIZE = 1000225001,
    T_BUFFER_ADDRESS = 1000244001,
};

// Pipeline stages and accesses.
enum {
    S_TOP = 0x1,
    S_COMPUTE = 0x800,
    S_TRANSFER = 0x1000,
    S_BOTTOM = 0x2000,
    S_HOST = 0x4000,
    S_ALL = 0x10000,
    A_SHADER_READ = 0x20,
    A_SHADER_WRITE = 0x40,
    A_TRANSFER_READ = 0x800,
    A_TRANSFER_WRITE = 0x1000,
    A_HOST_READ = 0x2000,
    A_MEMORY_READ = 0x8000,
    A_MEMORY_WRITE = 0x10000,
};

enum { STAGE_BIT_COMPUTE = 0x20, USAGE_ADDRESS = 0x20000 };

#define HEAD int32_t type; const void *next

typedef struct {
    HEAD; const char *app; uint32_t app_version; const char *engine; uint32_t engine_version, api;
} application_info;
typedef struct {
    HEAD; uint32_t flags; const application_info *app; uint32_t nlayers; const char **layers;
    uint32_t nexts; const char **exts;
} instance_info;
typedef struct { HEAD; uint32_t flags, family, count; const float *priorities; } queue_info;
typedef struct {
    HEAD; uint32_t flags, nqueues; const queue_info *queues; uint32_t nlayers; const char **layers;
    uint32_t nexts; const char **exts; const void *features;
} device_info;
typedef struct {
    HEAD; uint32_t nwaits; const uint64_t *waits; const uint32_t *wait_stages; uint32_t ncommands;
    void *const *commands; uint32_t nsignals; const uint64_t *signals;
} submit_info;
typedef struct { HEAD; uint64_t size; uint32_t memory_type; } allocate_info;
typedef struct { HEAD; uint32_t flags, mask; } allocate_flags;
typedef struct { HEAD; uint32_t flags; } fence_info;
typedef struct { HEAD; uint32_t flags; int32_t query; uint32_t count, statistics; } query_info;
typedef struct {
    HEAD; uint32_t flags; uint64_t size; uint32_t usage; int32_t sharing; uint32_t nfamilies;
    const uint32_t *families;
} buffer_info;
typedef struct { HEAD; uint32_t flags; size_t bytes; const uint32_t *code; } module_info;
typedef struct { uint32_t id, offset; size_t size; } spec_entry;
typedef struct { uint32_t count; const spec_entry *entries; size_t bytes; const void *data; } spec_info;
typedef struct { HEAD; uint32_t size; } subgroup_info;
typedef struct { HEAD; uint32_t flags, stage; uint64_t module; const char *entry; const spec_info *spec; } stage_info;
typedef struct { HEAD; uint32_t flags; stage_info stage; uint64_t layout, base; int32_t base_index; } pipeline_info;
typedef struct { uint32_t stages, offset, size; } push_range;
typedef struct {
    HEAD; uint32_t flags, nsets; const uint64_t *sets; uint32_t nranges; const push_range *ranges;
} layout_info;
typedef struct { HEAD; uint32_t flags, family; } command_pool_info;
typedef struct { HEAD; uint64_t pool; int32_t level; uint32_t count; } command_buffer_info;
typedef struct { HEAD; uint32_t flags; const void *inheritance; } begin_info;
typedef struct { HEAD; uint32_t src, dst; } memory_barrier;
typedef struct { HEAD; uint64_t buffer; } address_info;
typedef struct { uint64_t size, alignment; uint32_t type_bits; } memory_requirements;
typedef struct { uint64_t src, dst, size; } buffer_copy;
typedef struct { uint64_t offset, size, memory, memory_offset; uint32_t flags; } sparse_part;
typedef struct { uint64_t buffer; uint32_t nparts; const sparse_part *parts; } sparse_buffer;
typedef struct {
    HEAD; uint32_t nwaits; const uint64_t *waits; uint32_t nbuffers; const sparse_buffer *buffers;
    uint32_t nopaque; const void *opaque; uint32_t nimages; const void *images; uint32_t nsignals;
    const uint64_t *signals;
} sparse_info;
// Its beginning.
typedef struct { HEAD; uint32_t flags; const char *id_name; int32_t id; const char *text; } message_data;
typedef uint32_t (*message_fn)(uint32_t severity, uint32_t kind, const message_data *m, void *user);
typedef struct { HEAD; uint32_t flags, severity, kinds; message_fn callback; void *user; } messenger_info;

// ---- the loader and the instance ----

void *sv_dlopen(const char *name, const char **error) {
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) *error = dlerror();
    return lib;
}

void *sv_dlsym(void *lib, const char *name) { return dlsym(lib, name); }

void *sv_proc(void *get, void *instance, const char *name) {
    return ((void *(*)(void *, const char *))get)(instance, name);
}

int sv_instance_version(void *f, uint32_t *version) { return ((int (*)(uint32_t *))f)(version); }

int sv_create_instance(void *f, uint32_t api, const char **layers, uint32_t nlayers,
                       const char **exts, uint32_t nexts, void **instance) {
    application_info app = {.type = T_APPLICATION, .app = "spmm", .engine = "spmm", .api = api};
    instance_info info = {.type = T_INSTANCE, .app = &app, .nlayers = nlayers, .layers = layers, .nexts = nexts,
        .exts = exts};
    return ((int (*)(const instance_info *, const void *, void **))f)(&info, 0, instance);
}

int sv_call3(void *f, void *a, void *b, void *c) { return ((int (*)(void *, void *, void *))f)(a, b, c); }

int sv_call4(void *f, void *a, void *b, void *c, void *d) {
    return ((int (*)(void *, void *, void *, void *))f)(a, b, c, d);
}

int sv_create_device(void *f, void *physical, void *chain, uint32_t family,
                     const char **exts, uint32_t nexts, void **device) {
    float priority = 1;
    queue_info queue = {.type = T_QUEUE, .family = family, .count = 1, .priorities = &priority};
    device_info info = {.type = T_DEVICE, .next = chain, .nqueues = 1, .queues = &queue, .nexts = nexts, .exts = exts};
    return ((int (*)(void *, const device_info *, const void *, void **))f)(physical, &info, 0, device);
}

// ---- validation messages ----

static struct {
    pthread_mutex_t lock;
    uint32_t count;
    size_t used;
    char first[8192];
} log_ = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t on_message(uint32_t severity, uint32_t kind, const message_data *m, void *user) {
    const char *text = m->text ? m->text : "(no text)";
    size_t n = strlen(text);
    pthread_mutex_lock(&log_.lock);
    log_.count++;
    if (log_.used + n + 2 <= sizeof log_.first) {
        memcpy(log_.first + log_.used, text, n);
        log_.used += n;
        log_.first[log_.used++] = '\n';
        log_.first[log_.used] = 0;
    }
    pthread_mutex_unlock(&log_.lock);
    return 0; // never abort the call
}

int sv_messenger(void *f, void *instance, uint64_t *messenger) {
    messenger_info info = {
        .type = T_MESSENGER,
        .severity = 0x100 | 0x1000, // warnings, errors
        .kinds = 0x1 | 0x2 | 0x4,   // general, validation, performance
        .callback = on_message,
    };
    return ((int (*)(void *, const messenger_info *, const void *, uint64_t *))f)(instance, &info, 0, messenger);
}

uint32_t sv_messages(char *first, size_t size) {
    pthread_mutex_lock(&log_.lock);
    uint32_t n = log_.count;
    size_t k = log_.used < size ? log_.used : size - 1;
    memcpy(first, log_.first, k);
    first[k] = 0;
    pthread_mutex_unlock(&log_.lock);
    return n;
}

void sv_messages_reset(void) {
    pthread_mutex_lock(&log_.lock);
    log_.count = 0;
    log_.used = 0;
    pthread_mutex_unlock(&log_.lock);
}

// ---- the device ----

// Entry points: result, name, parameters.
#define ENTRY_POINTS(X) \
    X(int, CreateCommandPool, (void *, const command_pool_info *, const void *, uint64_t *)) \
    X(void, DestroyCommandPool, (void *, uint64_t, const void *)) \
    X(int, AllocateCommandBuffers, (void *, const command_buffer_info *, void **)) \
    X(int, BeginCommandBuffer, (void *, const begin_info *)) \
    X(int, EndCommandBuffer, (void *)) \
    X(int, CreateFence, (void *, const fence_info *, const void *, uint64_t *)) \
    X(void, DestroyFence, (void *, uint64_t, const void *)) \
    X(int, ResetFences, (void *, uint32_t, const uint64_t *)) \
    X(int, GetFenceStatus, (void *, uint64_t)) \
    X(int, WaitForFences, (void *, uint32_t, const uint64_t *, uint32_t, uint64_t)) \
    X(int, CreateQueryPool, (void *, const query_info *, const void *, uint64_t *)) \
    X(void, DestroyQueryPool, (void *, uint64_t, const void *)) \
    X(int, GetQueryPoolResults, (void *, uint64_t, uint32_t, uint32_t, size_t, void *, uint64_t, uint32_t)) \
    X(int, CreateBuffer, (void *, const buffer_info *, const void *, uint64_t *)) \
    X(void, DestroyBuffer, (void *, uint64_t, const void *)) \
    X(void, GetBufferMemoryRequirements, (void *, uint64_t, memory_requirements *)) \
    X(uint64_t, GetBufferDeviceAddress, (void *, const address_info *)) \
    X(int, AllocateMemory, (void *, const allocate_info *, const void *, uint64_t *)) \
    X(void, FreeMemory, (void *, uint64_t, const void *)) \
    X(int, BindBufferMemory, (void *, uint64_t, uint64_t, uint64_t)) \
    X(int, MapMemory, (void *, uint64_t, uint64_t, uint64_t, uint32_t, void **)) \
    X(int, CreateShaderModule, (void *, const module_info *, const void *, uint64_t *)) \
    X(void, DestroyShaderModule, (void *, uint64_t, const void *)) \
    X(int, CreatePipelineLayout, (void *, const layout_info *, const void *, uint64_t *)) \
    X(void, DestroyPipelineLayout, (void *, uint64_t, const void *)) \
    X(int, CreateComputePipelines, (void *, uint64_t, uint32_t, const pipeline_info *, const void *, uint64_t *)) \
    X(void, DestroyPipeline, (void *, uint64_t, const void *)) \
    X(void, FreeCommandBuffers, (void *, uint64_t, uint32_t, void *const *)) \
    X(int, QueueSubmit, (void *, uint32_t, const submit_info *, uint64_t)) \
    X(int, QueueBindSparse, (void *, uint32_t, const sparse_info *, uint64_t)) \
    X(int, DeviceWaitIdle, (void *)) \
    X(void, CmdBindPipeline, (void *, int32_t, uint64_t)) \
    X(void, CmdPushConstants, (void *, uint64_t, uint32_t, uint32_t, uint32_t, const void *)) \
    X(void, CmdDispatch, (void *, uint32_t, uint32_t, uint32_t)) \
    X(void, CmdPipelineBarrier, (void *, uint32_t, uint32_t, uint32_t, uint32_t, const memory_barrier *, \
      uint32_t, const void *, uint32_t, const void *)) \
    X(void, CmdCopyBuffer, (void *, uint64_t, uint64_t, uint32_t, const buffer_copy *)) \
    X(void, CmdResetQueryPool, (void *, uint64_t, uint32_t, uint32_t)) \
    X(void, CmdWriteTimestamp, (void *, uint32_t, uint64_t, uint32_t))

struct sv_device {
#define X(result, name, params) result(*name) params;
    ENTRY_POINTS(X)
#undef X
    void *device, *queue;
    uint64_t pool, queries;
    void *commands[1 + SV_SLOTS]; // of sv_run, and of each slot
    uint64_t fences[1 + SV_SLOTS];
    int in_flight[SV_SLOTS];
    sv_launch launches[SV_BATCH];
    sv_launch recorded[SV_BATCH]; // what commands[0] holds
    uint32_t nrecorded;
    int failures; // looks at a fence that failed, one after the other
};

static int resolve(sv_device *d, void *get, const char **missing) {
    typedef void *(*get_fn)(void *, const char *);
    void *p;
#define X(result, name, params) \
    if (!(p = ((get_fn)get)(d->device, "vk" #name))) { *missing = "vk" #name; return INITIALIZATION_FAILED; } \
    memcpy(&d->name, &p, sizeof p);
    ENTRY_POINTS(X)
#undef X
    return OK;
}

static int make_queries(sv_device *d, uint64_t *queries) {
    query_info info = {.type = T_QUERY_POOL, .query = 2 /* timestamp */, .count = 2};
    return d->CreateQueryPool(d->device, &info, 0, queries);
}

static int open_queue(sv_device *d, uint32_t family, int timestamps) {
    command_pool_info pool = {.type = T_COMMAND_POOL, .flags = 2 /* buffers reset one by one */, .family = family};
    int r = d->CreateCommandPool(d->device, &pool, 0, &d->pool);
    if (r) return r;
    command_buffer_info buffers = {.type = T_COMMAND_BUFFERS, .pool = d->pool, .count = 1 + SV_SLOTS};
    if ((r = d->AllocateCommandBuffers(d->device, &buffers, d->commands))) return r;
    for (int i = 0; i < 1 + SV_SLOTS; i++)
        if (!d->commands[i]) return INITIALIZATION_FAILED;
    fence_info fence = {.type = T_FENCE};
    for (int i = 0; i < 1 + SV_SLOTS; i++)
        if ((r = d->CreateFence(d->device, &fence, 0, &d->fences[i]))) return r;
    return timestamps ? make_queries(d, &d->queries) : OK;
}

int sv_open(void *get, void *device, void *queue, uint32_t family, int timestamps, sv_device **out,
    const char **missing) {
    sv_device *d = calloc(1, sizeof *d);
    if (!d) return OUT_OF_HOST_MEMORY;
    d->device = device;
    d->queue = queue;
    int r = resolve(d, get, missing);
    if (r) {
        free(d);
        return r;
    }
    if (queue && (r = open_queue(d, family, timestamps))) {
        sv_close(d);
        return r;
    }
    *out = d;
    return OK;
}

void sv_idle(sv_device *d) {
    if (d->queue) d->DeviceWaitIdle(d->device);
}

void sv_close(sv_device *d) {
    sv_idle(d);
    for (int i = 0; i < 1 + SV_SLOTS; i++) d->DestroyFence(d->device, d->fences[i], 0);
    d->DestroyQueryPool(d->device, d->queries, 0);
    d->DestroyCommandPool(d->device, d->pool, 0);
    free(d);
}

static int submit_commands(sv_device *d, void *commands, uint64_t fence) {
    submit_info info = {.type = T_SUBMIT, .ncommands = 1, .commands = &commands};
    return d->QueueSubmit(d->queue, 1, &info, fence);
}

static int submit(sv_device *d, int i) { return submit_commands(d, d->commands[i], d->fences[i]); }

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

enum { MILLISECOND = 1000000, POLL = MILLISECOND / 10, LOOK = 20 * MILLISECOND };
#define FOREVER INT64_MAX

// wait awaits a fence until the time end; TIMEOUT if it is still not signalled then. It polls for a short while,
// because sleeping costs more than a short kernel takes, then sleeps. Where the host's memory does not suffice to
// look, the device works on all the same: it looks again, and takes the device for lost after a second.
static int wait(sv_device *d, uint64_t fence, int64_t end) {
    int r;
    for (int64_t t = now(), polls = t + POLL;; t = now()) {
        if (t < polls) {
            r = d->GetFenceStatus(d->device, fence);
        } else {
            int64_t left = end - t;
            r = d->WaitForFences(d->device, 1, &fence, 1,
                left < 0 ? 0 : left > 1000 * MILLISECOND ? 1000 * MILLISECOND : left);
        }
        if (r == OUT_OF_HOST_MEMORY || r == OUT_OF_DEVICE_MEMORY) {
            if (++d->failures > 1000) return DEVICE_LOST;
            nanosleep(&(struct timespec){.tv_nsec = MILLISECOND}, 0);
        } else if (r < 0) {
            return DEVICE_LOST;
        } else if (r == OK) {
            d->failures = 0;
            return d->ResetFences(d->device, 1, &fence) ? DEVICE_LOST : OK;
        } else {
            d->failures = 0;
            if (t < polls) sched_yield();
        }
        if (t >= end) return TIMEOUT;
    }
}

// ---- memory ----

static int create_buffer(sv_device *d, uint64_t size, uint32_t flags, uint32_t usage, uint64_t *buffer) {
    buffer_info info = {.type = T_BUFFER, .flags = flags, .size = size, .usage = usage};
    return d->CreateBuffer(d->device, &info, 0, buffer);
}

int sv_memory_types(sv_device *d, uint32_t usage, uint32_t *bits) {
    uint64_t buffer;
    int r = create_buffer(d, 65536, 0, usage, &buffer);
    if (r) return r;
    memory_requirements need;
    d->GetBufferMemoryRequirements(d->device, buffer, &need);
    d->DestroyBuffer(d->device, buffer, 0);
    *bits = need.type_bits;
    return OK;
}

// requirements tells what memory a buffer needs; an answer that cannot be is an error.
static int requirements(sv_device *d, uint64_t buffer, uint64_t size, memory_requirements *need) {
    memset(need, 0, sizeof *need);
    d->GetBufferMemoryRequirements(d->device, buffer, need);
    uint64_t a = need->alignment;
    return !a || a & (a - 1) || a > 1u << 30 || need->size < size ||
        need->size - size > size + (1u << 30) ? INITIALIZATION_FAILED : OK;
}

static int allocate(sv_device *d, uint64_t size, uint32_t type, uint32_t usage, uint64_t *memory) {
    allocate_flags flags = {.type = T_ALLOCATE_FLAGS, .flags = 2 /* has an address */};
    allocate_info info = {.type = T_ALLOCATE, .size = size, .memory_type = type};
    if (usage & USAGE_ADDRESS) info.next = &flags;
    return d->AllocateMemory(d->device, &info, 0, memory);
}

static int take_address(sv_device *d, uint32_t usage, sv_memory *m) {
    if (!(usage & USAGE_ADDRESS)) return OK;
    address_info info = {.type = T_BUFFER_ADDRESS, .buffer = m->buffer};
    m->address = d->GetBufferDeviceAddress(d->device, &info);
    return m->address ? OK : INITIALIZATION_FAILED;
}

static int alloc_whole(sv_device *d, uint64_t size, uint32_t type, uint32_t usage, int map, sv_memory *m) {
    memory_requirements need;
    int r = requirements(d, m->buffer, size, &need);
    if (r || (r = allocate(d, need.size, type, usage, &m->memory))) return r;
    if ((r = d->BindBufferMemory(d->device, m->buffer, m->memory, 0)) || (r = take_address(d, usage, m)) ||
        !map) return r;
    if ((r = d->MapMemory(d->device, m->memory, 0, ~0ull, 0, &m->host))) return r;
    return m->host ? OK : INITIALIZATION_FAILED;
}

int sv_alloc(sv_device *d, uint64_t size, uint32_t type, uint32_t usage, int map, sv_memory *m) {
    memset(m, 0, sizeof *m);
    int r = create_buffer(d, size, 0, usage, &m->buffer);
    if (r) return r;
    if ((r = alloc_whole(d, size, type, usage, map, m))) sv_free(d, m);
    return r;
}

static int bind_parts(sv_device *d, uint64_t buffer, uint32_t n, const sparse_part *parts) {
    sparse_buffer b = {buffer, n, parts};
    sparse_info info = {.type = T_BIND_SPARSE, .nbuffers = 1, .buffers = &b};
    int r = d->QueueBindSparse(d->queue, 1, &info, d->fences[0]);
    return r ? r : wait(d, d->fences[0], FOREVER);
}

static int alloc_parts(sv_device *d, uint64_t size, uint64_t part, uint32_t type, uint32_t usage, sv_memory *m) {
    memory_requirements need;
    int r = requirements(d, m->buffer, size, &need);
    if (r) return r;
    part -= part % need.alignment;
    if (!part) return OUT_OF_DEVICE_MEMORY;
    uint64_t n = (need.size + part - 1) / part;
    m->parts = calloc(n, sizeof *m->parts);
    sparse_part *binds = calloc(n, sizeof *binds);
    r = m->parts && binds ? OK : OUT_OF_HOST_MEMORY;
    for (uint64_t i = 0; !r && i < n; i++) {
        uint64_t size = i + 1 < n ? part : need.size - i * part;
        if (!(r = allocate(d, size, type, usage, &m->parts[i]))) m->nparts++;
        binds[i] = (sparse_part){i * part, size, m->parts[i], 0, 0};
    }
    if (!r) r = bind_parts(d, m->buffer, n, binds);
    free(binds);
    return r ? r : take_address(d, usage, m);
}

int sv_alloc_parts(sv_device *d, uint64_t size, uint64_t part, uint32_t type, uint32_t usage, sv_memory *m) {
    memset(m, 0, sizeof *m);
    int r = create_buffer(d, size, 1 /* sparse binding */, usage, &m->buffer);
    if (r) return r;
    if ((r = alloc_parts(d, size, part, type, usage, m))) sv_free(d, m);
    return r;
}

void sv_free(sv_device *d, sv_memory *m) {
    d->DestroyBuffer(d->device, m->buffer, 0);
    d->FreeMemory(d->device, m->memory, 0); // unmaps
    for (uint32_t i = 0; i < m->nparts; i++) d->FreeMemory(d->device, m->parts[i], 0);
    free(m->parts);
    memset(m, 0, sizeof *m);
}

// ---- pipelines ----

int sv_layout(sv_device *d, uint32_t push_bytes, uint64_t *layout) {
    push_range range = {STAGE_BIT_COMPUTE, 0, push_bytes};
    layout_info info = {.type = T_LAYOUT, .nranges = push_bytes > 0, .ranges = &range};
    return d->CreatePipelineLayout(d->device, &info, 0, layout);
}

void sv_free_layout(sv_device *d, uint64_t layout) { d->DestroyPipelineLayout(d->device, layout, 0); }

int sv_pipeline(sv_device *d, uint64_t cache, uint64_t layout, const sv_shader *s, uint64_t *pipeline) {
    spec_entry *entries = calloc(s->spec_count + 1, sizeof *entries);
    if (!entries) return OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < s->spec_count; i++) entries[i] = (spec_entry){s->spec[2 * i], 8 * i + 4, 4};
    module_info module = {.type = T_MODULE, .bytes = s->code_bytes, .code = s->code};
    spec_info spec = {s->spec_count, entries, 8 * (size_t)s->spec_count, s->spec};
    subgroup_info subgroup = {.type = T_SUBGROUP_SIZE, .size = s->subgroup};
    pipeline_info info = {
        .type = T_PIPELINE,
        .stage = {.type = T_STAGE, .stage = STAGE_BIT_COMPUTE, .entry = s->entry, .spec = &spec},
        .layout = layout,
        .base_index = -1,
    };
    if (s->subgroup) info.stage.next = &subgroup;
    if (s->full_subgroups) info.stage.flags = 2;
    int r = d->CreateShaderModule(d->device, &module, 0, &info.stage.module);
    if (!r) {
        r = d->CreateComputePipelines(d->device, cache, 1, &info, 0, pipeline);
        d->DestroyShaderModule(d->device, info.stage.module, 0);
    }
    free(entries);
    return r;
}

void sv_free_pipeline(sv_device *d, uint64_t pipeline) {
    d->nrecorded = 0; // a command buffer that used it must not be submitted again
    d->DestroyPipeline(d->device, pipeline, 0);
}

// ---- running ----

static void barrier(sv_device *d, void *c, uint32_t src_stage, uint32_t src, uint32_t dst_stage, uint32_t dst) {
    memory_barrier b = {.type = T_BARRIER, .src = src, .dst = dst};
    d->CmdPipelineBarrier(c, src_stage, dst_stage, 0, 1, &b, 0, 0, 0, 0);
}

// begin starts to record. Where other work may be in the queue before, the first timestamp is to wait for that: it is
// written at the end of the pipe, after all that was submitted before.
static int begin(sv_device *d, void *c, uint64_t queries, uint32_t stage) {
    begin_info info = {.type = T_BEGIN};
    int r = d->BeginCommandBuffer(c, &info);
    if (r) return r;
    barrier(d, c, S_ALL, A_MEMORY_WRITE, S_COMPUTE, A_SHADER_READ | A_SHADER_WRITE);
    if (queries) {
        d->CmdResetQueryPool(c, queries, 0, 2);
        d->CmdWriteTimestamp(c, stage, queries, 0);
    }
    return OK;
}

static void add(sv_device *d, void *c, const sv_launch *l, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i && l[i].wait) barrier(d, c, S_COMPUTE, A_SHADER_WRITE, S_COMPUTE,
            l[i].wait == 1 ? A_SHADER_WRITE : A_SHADER_READ | A_SHADER_WRITE);
        if (!i || l[i].pipeline != l[i - 1].pipeline) d->CmdBindPipeline(c, 1 /* compute */, l[i].pipeline);
        if (l[i].push_bytes) d->CmdPushConstants(c, l[i].layout, STAGE_BIT_COMPUTE, 0, l[i].push_bytes, l[i].push);
        d->CmdDispatch(c, l[i].groups[0], l[i].groups[1], l[i].groups[2]);
    }
}

static int end(sv_device *d, void *c, uint64_t queries) {
    if (queries) d->CmdWriteTimestamp(c, S_BOTTOM, queries, 1);
    barrier(d, c, S_COMPUTE, A_SHADER_WRITE, S_HOST | S_TRANSFER, A_HOST_READ | A_TRANSFER_READ | A_TRANSFER_WRITE);
    return d->EndCommandBuffer(c);
}

static int record(sv_device *d, void *c, const sv_launch *l, uint32_t n) {
    int r = begin(d, c, d->queries, S_TOP);
    if (r) return r;
    add(d, c, l, n);
    return end(d, c, d->queries);
}

sv_launch *sv_launches(sv_device *d) { return d->launches; }

static int start(sv_device *d, uint32_t n) {
    size_t bytes = n * sizeof *d->launches;
    int r;
    if (n != d->nrecorded || memcmp(d->launches, d->recorded, bytes)) {
        d->nrecorded = 0;
        if ((r = record(d, d->commands[0], d->launches, n))) return r;
        memcpy(d->recorded, d->launches, bytes);
        d->nrecorded = n;
    }
    return submit(d, 0);
}

sv_outcome sv_run(sv_device *d, uint32_t n) {
    sv_outcome o = {.result = start(d, n)};
    return o.result ? o : sv_wait(d);
}

static sv_outcome await(sv_device *d, uint64_t fence, uint64_t queries, int64_t most) {
    sv_outcome o = {.result = wait(d, fence, now() + most)};
    if (!o.result && queries) {
        uint64_t t[2];
        o.result = d->GetQueryPoolResults(d->device, queries, 0, 2, sizeof t, t, 8, 1 /* 64 bit */ | 2 /* wait */);
        if (!o.result) o.ticks = t[1] - t[0];
    }
    return o;
}

sv_outcome sv_wait(sv_device *d) { return await(d, d->fences[0], d->queries, LOOK); }

int sv_work_make(sv_device *d, sv_work *w) {
    memset(w, 0, sizeof *w);
    command_buffer_info buffers = {.type = T_COMMAND_BUFFERS, .pool = d->pool, .count = 1};
    int r = d->AllocateCommandBuffers(d->device, &buffers, &w->commands);
    if (!r && !w->commands) r = INITIALIZATION_FAILED;
    fence_info fence = {.type = T_FENCE};
    if (!r) r = d->CreateFence(d->device, &fence, 0, &w->fence);
    if (!r && d->queries) r = make_queries(d, &w->queries);
    return r;
}

void sv_work_free(sv_device *d, sv_work *w) {
    if (w->commands) d->FreeCommandBuffers(d->device, d->pool, 1, &w->commands);
    d->DestroyFence(d->device, w->fence, 0);
    d->DestroyQueryPool(d->device, w->queries, 0);
    memset(w, 0, sizeof *w);
}

int sv_work_begin(sv_device *d, sv_work *w) { return begin(d, w->commands, w->queries, S_BOTTOM); }

void sv_work_add(sv_device *d, sv_work *w, uint32_t n) {
    barrier(d, w->commands, S_COMPUTE, A_SHADER_WRITE, S_COMPUTE, A_SHADER_READ | A_SHADER_WRITE);
    add(d, w->commands, d->launches, n);
}

int sv_work_end(sv_device *d, sv_work *w) { return end(d, w->commands, w->queries); }

int sv_work_submit(sv_device *d, sv_work *w) { return submit_commands(d, w->commands, w->fence); }

sv_outcome sv_work_wait(sv_device *d, sv_work *w, int64_t most) { return await(d, w->fence, w->queries, most); }

int sv_copy(sv_device *d, int slot, uint64_t src, uint64_t src_off, uint64_t dst, uint64_t dst_off, uint64_t n) {
    void *c = d->commands[1 + slot];
    begin_info begin = {.type = T_BEGIN, .flags = 1 /* once */};
    buffer_copy region = {src_off, dst_off, n};
    int r = d->BeginCommandBuffer(c, &begin);
    if (r) return r;
    barrier(d, c, S_ALL, A_MEMORY_WRITE, S_TRANSFER, A_TRANSFER_READ | A_TRANSFER_WRITE);
    d->CmdCopyBuffer(c, src, dst, 1, &region);
    barrier(d, c, S_TRANSFER, A_TRANSFER_WRITE, S_HOST, A_HOST_READ);
    if ((r = d->EndCommandBuffer(c)) || (r = submit(d, 1 + slot))) return r;
    d->in_flight[slot] = 1;
    return OK;
}

int sv_copy_wait(sv_device *d, int slot) {
    if (!d->in_flight[slot]) return OK;
    d->in_flight[slot] = 0;
    return wait(d, d->fences[1 + slot], FOREVER);
}
