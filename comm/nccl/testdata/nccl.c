// A stand-in for NCCL whose ranks are threads of one process and whose device is the host's memory. Its communicators do not block:
// a thread meets the other ranks, and one does the operations of a group when it has ended. It checks what it is called with.

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char internal[128]; } unique_id;
enum { OK = 0, INVALID = 4, IN_PROGRESS = 7, MAX_RANKS = 8, MAX_OPS = 64, STREAM = 0x51 };

typedef struct letter {
    struct letter *next;
    size_t bytes;
    char data[];
} letter;

typedef struct {
    int number, joined;
    letter *mail[MAX_RANKS][MAX_RANKS]; // from, to
} job;

typedef struct { const char *send; char *recv; size_t bytes; int peer; } op;

typedef struct member {
    job *job;
    int rank, size, aborted;
    int state;                 // of what was called last
    struct member **out;       // where the caller wants its address
    pthread_t thread;          // that works on it
    int started;
    op ops[MAX_OPS];
    int waiting;
} member;

typedef struct { size_t size; unsigned magic, version; int blocking, undefined; } config;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static job jobs[64];
static int made;
static int aborted;
static __thread member *grouped; // has operations in the group of this thread
static __thread int depth;

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

// begin has a thread work on m.
static int begin(member *m, void *(*f)(void *)) {
    if (m->started) pthread_join(m->thread, NULL);
    m->started = 1;
    m->state = IN_PROGRESS;
    return pthread_create(&m->thread, NULL, f, m) ? INVALID : IN_PROGRESS;
}

static void done(member *m, int rc) {
    pthread_mutex_lock(&mutex);
    m->state = rc;
    pthread_mutex_unlock(&mutex);
}

static void *meet(void *arg) {
    member *m = arg;
    pthread_mutex_lock(&mutex);
    m->job->joined++;
    pthread_cond_broadcast(&news);
    while (!m->aborted && (m->job->joined < m->size || getenv("STAND_IN_WAITS"))) pthread_cond_wait(&news, &mutex);
    *m->out = m;
    m->state = m->aborted ? INVALID : OK;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int ncclCommInitRankConfig(member **out, int size, unique_id id, int rank, config *c) {
    int number;
    memcpy(&number, id.internal + 120, sizeof number);
    if (id.internal[0] != 0x5a || number < 1 || number > made || rank < 0 || rank >= size || size > MAX_RANKS) return INVALID;
    if (c->size != 24 || c->magic != 0xcafebeef || c->version != 21400 || c->blocking) return INVALID;
    const char *refuses = getenv("STAND_IN_REFUSES"); // a rank, or all
    if (refuses && (!strcmp(refuses, "all") || atoi(refuses) == rank)) return INVALID;
    member *m = calloc(1, sizeof *m);
    m->job = &jobs[number - 1], m->rank = rank, m->size = size, m->out = out;
    *out = m;
    return begin(m, meet);
}

int ncclCommDestroy(member *m) {
    if (m->started) pthread_join(m->thread, NULL);
    free(m);
    return OK;
}

int ncclCommAbort(member *m) {
    pthread_mutex_lock(&mutex);
    m->aborted = 1;
    aborted++;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&mutex);
    return ncclCommDestroy(m);
}

int ncclCommGetAsyncError(member *m, int *code) {
    if (!m) return INVALID;
    const char *e = getenv("STAND_IN_ERROR");
    pthread_mutex_lock(&mutex);
    *code = e && !m->state ? atoi(e) : m->state;
    pthread_mutex_unlock(&mutex);
    return OK;
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
    while (!*head && !m->aborted) pthread_cond_wait(&news, &mutex);
    if (m->aborted) return INVALID;
    letter *l = *head;
    int rc = l->bytes == bytes ? OK : INVALID;
    if (!rc) memcpy(data, l->data, bytes);
    *head = l->next;
    free(l);
    return rc;
}

// work does all sends and all receives.
static void *work(void *arg) {
    member *m = arg;
    int rc = OK;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < m->waiting; i++)
        if (m->ops[i].send) put(m, m->ops[i].peer, m->ops[i].send, m->ops[i].bytes);
    for (int i = 0; i < m->waiting; i++)
        if (m->ops[i].recv && take(m, m->ops[i].peer, m->ops[i].recv, m->ops[i].bytes)) rc = INVALID;
    pthread_mutex_unlock(&mutex);
    m->waiting = 0;
    done(m, rc);
    return NULL;
}

static int add(member *m, const void *send, void *recv, size_t bytes, int peer, void *stream) {
    if (!m || peer < 0 || peer >= m->size || stream != (void *)STREAM || m->waiting == MAX_OPS) return INVALID;
    if (m->state || (grouped && grouped != m)) return INVALID; // what was called before is not done
    grouped = m;
    m->ops[m->waiting++] = (op){send, recv, bytes, peer};
    return OK;
}

int ncclGroupStart(void) { depth++; return OK; }

int ncclGroupEnd(void) {
    if (--depth || !grouped) return OK;
    member *m = grouped;
    grouped = NULL;
    return begin(m, work);
}

int ncclSend(const void *send, size_t n, int type, int peer, void *m, void *stream) {
    return type == 1 && depth && n ? add(m, send, NULL, n, peer, stream) : INVALID;
}

int ncclRecv(void *recv, size_t n, int type, int peer, void *m, void *stream) {
    return type == 1 && depth && n ? add(m, NULL, recv, n, peer, stream) : INVALID;
}

int ncclBroadcast(const void *send, void *recv, size_t n, int type, int root, void *comm, void *stream) {
    member *m = comm;
    if (type != 1) return INVALID;
    int rc = ncclGroupStart();
    if (m->rank == root) {
        memmove(recv, send, n);
        for (int r = 0; r < m->size && !rc; r++)
            if (r != root) rc = add(m, send, NULL, n, r, stream);
    } else {
        rc = add(m, NULL, recv, n, root, stream);
    }
    int end = ncclGroupEnd();
    return rc ? rc : end;
}
