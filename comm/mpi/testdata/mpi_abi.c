// A stand-in for a library with the ABI of MPI-5, of one rank: no such library is packaged yet. It knows handles and constants
// by the values of the standard's chapter on the ABI, and ends the process where it is given others.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;

enum { WORLD = 0x101, ERRORS_RETURN = 0x142, BYTE = 0x247, INT64 = 0x258, SUM = 0x21, MAX = 0x23, FUNNELED = 1024, ERR_OTHER = 15 };
#define IN_PLACE ((void *)1)

static int initialised;
static struct { intptr_t size; } types[1000];
static int ntypes;

static void need(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "stand-in for MPI-5: %s\n", what);
    exit(99);
}

static void comm(handle c) {
    need(initialised && (intptr_t)c == WORLD, "no such communicator");
}

static size_t size(handle t) {
    intptr_t h = (intptr_t)t;
    if (h == BYTE) return 1;
    if (h == INT64) return 8;
    need(h >= 0x20000 && h < 0x20000 + ntypes && types[h - 0x20000].size > 0, "no such type");
    return types[h - 0x20000].size;
}

static void op(handle o) { need((intptr_t)o == SUM || (intptr_t)o == MAX, "no such reduction"); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    need(required == FUNNELED, "another thread level than MPI_THREAD_FUNNELED");
    *provided = FUNNELED;
    initialised = 1;
    return 0;
}
int MPI_Finalize(void) {
    for (int i = 0; i < ntypes; i++) need(!types[i].size, "a type was not freed");
    initialised = 0;
    return 0;
}
int MPI_Abort(handle c, int code) { comm(c); exit(code); }
int MPI_Get_library_version(char *text, int *n) { *n = sprintf(text, "Stand-in 1.0, MPI-5 ABI"); return 0; }
int MPI_Error_string(int code, char *text, int *n) { *n = sprintf(text, "stand-in's error %d", code); return 0; }
int MPI_Comm_set_errhandler(handle c, handle e) { comm(c); need((intptr_t)e == ERRORS_RETURN, "another error handler"); return 0; }
int MPI_Comm_rank(handle c, int *r) { comm(c); *r = 0; return 0; }
int MPI_Comm_size(handle c, int *n) { comm(c); *n = 1; return 0; }
int MPI_Barrier(handle c) { comm(c); return 0; }
int MPI_Bcast(void *data, int n, handle t, int root, handle c) { comm(c); size(t); return root == 0 && data ? 0 : ERR_OTHER; }
int MPI_Allreduce(const void *send, void *recv, int n, handle t, handle o, handle c) {
    comm(c);
    op(o);
    need(send == IN_PLACE && size(t) == 8 && recv, "MPI_Allreduce of something else than int64 in place");
    return 0;
}
int MPI_Alltoallv(const void *send, const int *sn, const int *ss, handle st, void *recv, const int *rn, const int *rs, handle rt, handle c) {
    comm(c);
    if (sn[0] != rn[0]) return ERR_OTHER;
    memcpy((char *)recv + rs[0] * size(rt), (const char *)send + ss[0] * size(st), sn[0] * size(st));
    return 0;
}
int MPI_Allgatherv(const void *send, int n, handle st, void *recv, const int *rn, const int *rs, handle rt, handle c) {
    return MPI_Alltoallv(send, &n, (int[]){0}, st, recv, rn, rs, rt, c);
}
int MPI_Type_contiguous(int n, handle t, handle *out) {
    need(ntypes < 1000, "too many types");
    types[ntypes].size = n * size(t);
    *out = (handle)(intptr_t)(0x20000 + ntypes++);
    return 0;
}
int MPI_Type_commit(handle *t) { size(*t); return 0; }
int MPI_Type_free(handle *t) { size(*t); types[(intptr_t)*t - 0x20000].size = 0; return 0; }
