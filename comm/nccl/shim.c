// See shim.h. Constants are those of NCCL's nccl.h, which have not changed since version 2.

//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct { char internal[SN_ID]; } unique_id; // passed by value
typedef void *comm_t;

#define P(address) ((void *)(address))

enum { UINT8 = 1 };

static int (*get_version)(int *);
static int (*get_unique_id)(unique_id *);
// config is NCCL 2.14's ncclConfig_t; later versions read as much of it as its version had.
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, undefined;
} config;

static int (*comm_init_rank)(comm_t *, int, unique_id, int, config *);
static int (*comm_destroy)(comm_t);
static int (*comm_abort)(comm_t);
static int (*comm_async_error)(comm_t, int *);
static const char *(*error_string)(int);
static const char *(*last_error)(comm_t); // null before 2.13
static int (*group_start)(void);
static int (*group_end)(void);
static int (*send_to)(const void *, size_t, int, int, comm_t, void *);
static int (*recv_from)(void *, size_t, int, int, comm_t, void *);
static int (*broadcast)(const void *, void *, size_t, int, int, comm_t, void *);

int sn_open(const char *path, char *error, int length) {
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(error, length, "%s", dlerror());
        return 1;
    }
    struct { const char *name; void *at; } functions[] = {
        {"ncclGetVersion", &get_version}, {"ncclGetUniqueId", &get_unique_id}, {"ncclCommInitRankConfig",
                &comm_init_rank},
        {"ncclCommDestroy", &comm_destroy}, {"ncclCommAbort", &comm_abort}, {"ncclCommGetAsyncError",
                &comm_async_error},
        {"ncclGetErrorString", &error_string}, {"ncclGroupStart", &group_start}, {"ncclGroupEnd", &group_end},
        {"ncclSend", &send_to}, {"ncclRecv", &recv_from}, {"ncclBroadcast", &broadcast},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(lib, functions[i].name);
        if (!f) {
            snprintf(error, length, "%s has no %s: NCCL 2.14 or later is needed", path, functions[i].name);
            dlclose(lib);
            return 1;
        }
        memcpy(functions[i].at, &f, sizeof f);
    }
    void *f = dlsym(lib, "ncclGetLastError");
    memcpy(&last_error, &f, sizeof f);
    return 0;
}

int sn_version(void) {
    int v = 0;
    return get_version(&v) ? 0 : v;
}

void sn_error(int code, char *text, int length) {
    const char *more = last_error ? last_error(NULL) : NULL;
    snprintf(text, length, "%s%s%s", error_string(code), more && *more ? ": " : "", more ? more : "");
}

int sn_id(char *id) {
    unique_id u;
    int rc = get_unique_id(&u);
    memcpy(id, &u, sizeof u);
    return rc;
}

int sn_init(void **comm, int size, const char *id, int rank) {
    unique_id u;
    memcpy(&u, id, sizeof u);
    config c = {sizeof c, 0xcafebeef, 21400, 0, INT_MIN};
    return comm_init_rank(comm, size, u, rank, &c);
}

int sn_async_error(void *comm, int *code) { return comm_async_error(comm, code); }
int sn_destroy(void *comm) { return comm_destroy(comm); }
int sn_abort(void *comm) { return comm_abort(comm); }

// grouped ends a group whose calls returned rc so far.
static int grouped(int rc) {
    int end = group_end();
    return rc ? rc : end;
}

int sn_exchange(void *comm, int size, sn_address send, const size_t *sent_at, const size_t *sent,
                sn_address recv, const size_t *received_at, const size_t *received, sn_address stream) {
    int rc = group_start();
    if (rc) return rc;
    for (int r = 0; r < size && !rc; r++) {
        if (sent[r]) rc = send_to(P(send + sent_at[r]), sent[r], UINT8, r, comm, P(stream));
        if (!rc && received[r]) rc = recv_from(P(recv + received_at[r]), received[r], UINT8, r, comm, P(stream));
    }
    return grouped(rc);
}

int sn_gather(void *comm, int size, int rank, sn_address send, sn_address recv, const size_t *at, const size_t *count,
        sn_address stream) {
    int rc = group_start();
    if (rc) return rc;
    for (int r = 0; r < size && !rc; r++)
        if (count[r]) rc = broadcast(P(r == rank ? send : recv + at[r]), P(recv + at[r]), count[r], UINT8, r, comm,
                P(stream));
    return grouped(rc);
}
