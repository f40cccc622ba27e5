// See shim.h. Constants are those of Open MPI's and MPICH's mpi.h and of the MPI-5 standard's chapter on the ABI.

//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X) \
    X(Init_thread) X(Finalize) X(Abort) X(Get_library_version) X(Error_string) X(Comm_set_errhandler) \
    X(Comm_rank) X(Comm_size) X(Barrier) X(Bcast) X(Allreduce) \
    X(Alltoallv) X(Allgatherv) X(Type_contiguous) X(Type_commit) X(Type_free)

#define DECLARE(f) static void *p_##f;
FUNCTIONS(DECLARE)

static int abi;
static void *in_place;
static sm_handle world, errors_return, byte_type, int64_type, ops[2];

enum { ERROR_TEXT = 8192, VERSION_TEXT = 8192 }; // at least what each ABI's functions may write

static sm_handle symbol(void *lib, const char *name) { return (sm_handle)(uintptr_t)dlsym(lib, name); }

static int standard(const char *path) { return strstr(path, "mpi_abi") != NULL; }

int sm_open(const char *path, char *error, int length) {
    // Open MPI's plugins look for its symbols among the global ones.
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!lib) {
        snprintf(error, length, "%s", dlerror());
        return SM_NONE;
    }
#define RESOLVE(f) \
    if (!(p_##f = dlsym(lib, "MPI_" #f))) { \
        snprintf(error, length, "%s has no MPI_" #f, path); \
        return SM_NONE; \
    }
    FUNCTIONS(RESOLVE)
    if (standard(path)) {
        abi = SM_STANDARD;
        in_place = (void *)1;
        world = 0x101, errors_return = 0x142, byte_type = 0x247, int64_type = 0x258;
        ops[SM_SUM] = 0x21, ops[SM_MAX] = 0x23;
    } else if (dlsym(lib, "ompi_mpi_comm_world")) {
        abi = SM_OPENMPI;
        in_place = (void *)1;
        world = symbol(lib, "ompi_mpi_comm_world"), errors_return = symbol(lib, "ompi_mpi_errors_return");
        byte_type = symbol(lib, "ompi_mpi_byte"), int64_type = symbol(lib, "ompi_mpi_int64_t");
        ops[SM_SUM] = symbol(lib, "ompi_mpi_op_sum"), ops[SM_MAX] = symbol(lib, "ompi_mpi_op_max");
        if (!errors_return || !byte_type || !int64_type || !ops[SM_SUM] || !ops[SM_MAX]) {
            snprintf(error, length, "%s lacks symbols of Open MPI", path);
            return SM_NONE;
        }
    } else {
        abi = SM_MPICH;
        in_place = (void *)(intptr_t)-1;
        world = 0x44000000, errors_return = 0x54000001, byte_type = 0x4c00010d, int64_type = 0x4c00083a;
        ops[SM_SUM] = 0x58000003, ops[SM_MAX] = 0x58000001;
    }
    return abi;
}

// CALL calls a function through its type with handles as ints or as pointers; H is the type of a handle in both lists.
typedef void *pointer;
#define I(h) ((int)(h))
#define P(h) ((pointer)(uintptr_t)(h))
#define CALL(f, int_types, int_args, ptr_types, ptr_args) \
    (abi == SM_MPICH ? ((int(*) int_types)p_##f) int_args : ((int(*) ptr_types)p_##f) ptr_args)

enum { SIGNALS = 32 };

// restore gives signals the handlers that they had: a library that takes SIGSEGV from Go turns a nil dereference, which
// Go recovers from, into the process's end. Handlers for signals that Go does not need stay, on the signal stack, since
// a goroutine's own is small.
static void restore(const struct sigaction *saved) {
    for (int s = 1; s < SIGNALS; s++) {
        struct sigaction now;
        if (s == SIGKILL || s == SIGSTOP || sigaction(s, NULL, &now) ||
                now.sa_sigaction == saved[s].sa_sigaction) continue;
        if (s == SIGUSR1 || s == SIGUSR2) { // MPICH's news of processes that died
            now.sa_flags |= SA_ONSTACK;
            sigaction(s, &now, NULL);
        } else {
            sigaction(s, &saved[s], NULL);
        }
    }
}

static struct sigaction before[SIGNALS];

void sm_signals_save(void) {
    for (int s = 1; s < SIGNALS; s++) sigaction(s, NULL, &before[s]);
}

void sm_signals_restore(void) { restore(before); }

int sm_init(void) {
    const int funneled = abi == SM_STANDARD ? 1024 : 1;
    int provided = 0;
    int rc = ((int (*)(int *, char ***, int, int *))p_Init_thread)(NULL, NULL, funneled, &provided);
    if (rc) return rc;
    return CALL(Comm_set_errhandler, (int, int), (I(world), I(errors_return)), (pointer, pointer),
            (P(world), P(errors_return)));
}

int sm_finalize(void) { return ((int (*)(void))p_Finalize)(); }

void sm_abort(int code) { CALL(Abort, (int, int), (I(world), code), (pointer, int), (P(world), code)); }

int sm_version(char *text, int length) {
    static char buffer[VERSION_TEXT + 1];
    int n = 0, rc = ((int (*)(char *, int *))p_Get_library_version)(buffer, &n);
    snprintf(text, length, "%s", rc ? "unknown version" : buffer);
    return rc;
}

void sm_error(int code, char *text, int length) {
    char buffer[ERROR_TEXT + 1] = "";
    int n = 0;
    if (((int (*)(int, char *, int *))p_Error_string)(code, buffer, &n)) snprintf(buffer, sizeof buffer, "error %d",
            code);
    snprintf(text, length, "%s", buffer);
}

sm_handle sm_world(void) { return world; }
sm_handle sm_byte(void) { return byte_type; }
int sm_rank(sm_handle c, int *out) { return CALL(Comm_rank, (int, int *), (I(c), out), (pointer, int *), (P(c), out)); }
int sm_size(sm_handle c, int *out) { return CALL(Comm_size, (int, int *), (I(c), out), (pointer, int *), (P(c), out)); }

int sm_barrier(sm_handle c) { return CALL(Barrier, (int), (I(c)), (pointer), (P(c))); }

int sm_bcast(void *data, int count, int root, sm_handle c) {
    return CALL(Bcast, (void *, int, int, int, int), (data, count, I(byte_type), root, I(c)),
                (void *, int, pointer, int, pointer), (data, count, P(byte_type), root, P(c)));
}

int sm_allreduce(int64_t *data, int count, int op, sm_handle c) {
    return CALL(Allreduce, (const void *, void *, int, int, int, int),
            (in_place, data, count, I(int64_type), I(ops[op]), I(c)),
                (const void *, void *, int, pointer, pointer, pointer), (in_place, data, count, P(int64_type),
                        P(ops[op]), P(c)));
}

int sm_alltoallv(const void *send, const int *scounts, const int *sstarts, void *recv, const int *rcounts,
        const int *rstarts, sm_handle t, sm_handle c) {
    return CALL(Alltoallv, (const void *, const int *, const int *, int, void *, const int *, const int *, int, int),
                (send, scounts, sstarts, I(t), recv, rcounts, rstarts, I(t), I(c)),
                (const void *, const int *, const int *, pointer, void *, const int *, const int *, pointer, pointer),
                (send, scounts, sstarts, P(t), recv, rcounts, rstarts, P(t), P(c)));
}

int sm_allgatherv(const void *send, int count, void *recv, const int *counts, const int *starts, sm_handle t,
        sm_handle c) {
    return CALL(Allgatherv, (const void *, int, int, void *, const int *, const int *, int, int),
                (send, count, I(t), recv, counts, starts, I(t), I(c)),
                (const void *, int, pointer, void *, const int *, const int *, pointer, pointer),
                (send, count, P(t), recv, counts, starts, P(t), P(c)));
}

int sm_items(int bytes, sm_handle *out) {
    if (abi == SM_MPICH) {
        int h = 0, rc = ((int (*)(int, int, int *))p_Type_contiguous)(bytes, I(byte_type), &h);
        if (!rc) rc = ((int (*)(int *))p_Type_commit)(&h);
        *out = (uint32_t)h;
        return rc;
    }
    pointer h = NULL;
    int rc = ((int (*)(int, pointer, pointer *))p_Type_contiguous)(bytes, P(byte_type), &h);
    if (!rc) rc = ((int (*)(pointer *))p_Type_commit)(&h);
    *out = (sm_handle)(uintptr_t)h;
    return rc;
}

int sm_items_free(sm_handle t) {
    if (abi == SM_MPICH) {
        int h = I(t);
        return ((int (*)(int *))p_Type_free)(&h);
    }
    pointer h = P(t);
    return ((int (*)(pointer *))p_Type_free)(&h);
}
