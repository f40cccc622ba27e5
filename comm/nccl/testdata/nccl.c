// A stand-in for NCCL whose ranks are threads of one process and whose device is the host's memory: operations are done when
// a group ends. It checks what it is called with.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char internal[128]; } unique_id;
enum { OK = 0, INVALID = 4, MAX_RANKS = 8, MAX_OPS = 64, STREAM = 0x51 };

typedef struct letter {
    struct letter *next;
    size_t bytes;
    char data[];
} letter;

typedef struct {
    int number, joined;
    letter *mail[MAX_RANKS][MAX_RANKS]; // from, to
} job;

typedef struct {
    job *job;
    int rank, size;
} member;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static job jobs[64];
static int made;
static int aborted;

typedef struct { member *m; const char *send; char *recv; size_t bytes; int peer; } op;
static __thread op ops[MAX_OPS];
static __thread int waiting, depth;

const char *ncclGetErrorString(int code) { return code == 6 ? "remote process exited or there was a network error" : "stand-in's error"; }
const char *ncclGetLastError(void *m) { return m ? NULL : "as the test asked"; }
int ncclGetVersion(int *v) { *v = 22703; return OK; }
int stand_in_aborted(void) { return aborted; }

int ncclGetUniqueId(unique_id *id) {
    pthread_mutex_lock(&mutex);
    jobs[made].number = made + 1;
    memset(id, 0x5a, sizeof *id);
    memcpy(id->internal + 120, &jobs[made].number, sizeof(int)); // the last bytes, so that all must come
    made++;
    pthread_mutex_unlock(&mutex);
    return OK;
}

int ncclCommInitRank(void **out, int size, unique_id id, int rank) {
    int number;
    memcpy(&number, id.internal + 120, sizeof number);
    if (id.internal[0] != 0x5a || number < 1 || number > made || rank < 0 || rank >= size || size > MAX_RANKS) return INVALID;
    const char *refuses = getenv("STAND_IN_REFUSES"); // a rank, or all
    if (refuses && (!strcmp(refuses, "all") || atoi(refuses) == rank)) return INVALID;
    member *m = malloc(sizeof *m);
    *m = (member){&jobs[number - 1], rank, size};
    pthread_mutex_lock(&mutex);
    m->job->joined++;
    pthread_cond_broadcast(&news);
    while (m->job->joined < size || getenv("STAND_IN_WAITS")) pthread_cond_wait(&news, &mutex);
    pthread_mutex_unlock(&mutex);
    *out = m;
    return OK;
}

int ncclCommDestroy(void *m) { free(m); return OK; }
int ncclCommAbort(void *m) { free(m); aborted++; return OK; }

int ncclCommGetAsyncError(void *m, int *code) {
    const char *e = getenv("STAND_IN_ERROR");
    *code = e ? atoi(e) : 0;
    return m ? OK : INVALID;
}

static void put(member *m, int to, const char *data, size_t bytes) {
    letter *l = malloc(sizeof *l + bytes), **end = &m->job->mail[m->rank][to];
    l->next = NULL, l->bytes = bytes;
    memcpy(l->data, data, bytes);
    while (*end) end = &(*end)->next;
    *end = l;
    pthread_cond_broadcast(&news);
}

static int take(member *m, int from, char *data, size_t bytes) {
    letter **head = &m->job->mail[from][m->rank];
    while (!*head) pthread_cond_wait(&news, &mutex);
    letter *l = *head;
    int rc = l->bytes == bytes ? OK : INVALID;
    if (!rc) memcpy(data, l->data, bytes);
    *head = l->next;
    free(l);
    return rc;
}

// run does all sends, and then all receives.
static int run(void) {
    int rc = OK;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < waiting; i++)
        if (ops[i].send) put(ops[i].m, ops[i].peer, ops[i].send, ops[i].bytes);
    for (int i = 0; i < waiting; i++)
        if (ops[i].recv && take(ops[i].m, ops[i].peer, ops[i].recv, ops[i].bytes)) rc = INVALID;
    pthread_mutex_unlock(&mutex);
    waiting = 0;
    return rc;
}

static int add(member *m, const void *send, void *recv, size_t bytes, int peer, void *stream) {
    if (!m || peer < 0 || peer >= m->size || stream != (void *)STREAM || waiting == MAX_OPS) return INVALID;
    ops[waiting++] = (op){m, send, recv, bytes, peer};
    return depth ? OK : run();
}

int ncclGroupStart(void) { depth++; return OK; }
int ncclGroupEnd(void) { return --depth ? OK : run(); }

int ncclSend(const void *send, size_t n, int type, int peer, void *m, void *stream) {
    return type == 1 && depth && n ? add(m, send, NULL, n, peer, stream) : INVALID;
}

int ncclRecv(void *recv, size_t n, int type, int peer, void *m, void *stream) {
    return type == 1 && depth && n ? add(m, NULL, recv, n, peer, stream) : INVALID;
}

int ncclBroadcast(const void *send, void *recv, size_t n, int type, int root, void *comm, void *stream) {
    member *m = comm;
    if (type != 1) return INVALID;
    depth++;
    int rc = OK;
    if (m->rank == root) {
        memmove(recv, send, n);
        for (int r = 0; r < m->size && !rc; r++)
            if (r != root) rc = add(m, send, NULL, n, r, stream);
    } else {
        rc = add(m, NULL, recv, n, root, stream);
    }
    return --depth || rc ? rc : run();
}

static int reduce(const int64_t *send, int64_t *recv, size_t n, size_t from, size_t count, int op, member *m, void *stream) {
    int64_t *all = malloc(m->size * n * 8 + 8);
    int rc = OK;
    depth++;
    for (int r = 0; r < m->size && !rc; r++) {
        rc = add(m, send, NULL, n * 8, r, stream);
        if (!rc) rc = add(m, NULL, all + r * n, n * 8, r, stream);
    }
    depth--;
    if (!rc) rc = run();
    for (size_t i = 0; i < count && !rc; i++) {
        int64_t x = all[from + i];
        for (int r = 1; r < m->size; r++) {
            int64_t y = all[r * n + from + i];
            x = op == 0 ? (int64_t)((uint64_t)x + (uint64_t)y) : x > y ? x : y;
        }
        recv[i] = x;
    }
    free(all);
    return rc;
}

int ncclAllReduce(const void *send, void *recv, size_t n, int type, int op, void *m, void *stream) {
    return type == 4 && (op == 0 || op == 2) && !depth ? reduce(send, recv, n, 0, n, op, m, stream) : INVALID;
}

int ncclReduceScatter(const void *send, void *recv, size_t n, int type, int op, void *comm, void *stream) {
    member *m = comm;
    return type == 4 && (op == 0 || op == 2) && !depth ? reduce(send, recv, n * m->size, n * m->rank, n, op, m, stream) : INVALID;
}
