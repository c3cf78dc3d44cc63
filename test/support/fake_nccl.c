/* A stand-in for libnccl.so.2 on the emulated device: ranks are threads of one process, device memory is host memory, and a call is done
 * when it returns. KITH_FAKE_NCCL makes it fail: `old` (version 2.8), `init` (joining fails), `sum` (the first sum fails). With
 * FAKE_NCCL_PART it lacks a symbol.
 *
 * Only one rank's calls may be recorded: its sums change nothing, and its gathers are copied by `ki_fake_nccl_copy`, which the
 * test sets to something that the emulator records. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, OK = 0, UNHANDLED = 1, INVALID = 4 };

#define EXPORT __attribute__((visibility("default")))

typedef struct fake_id {
    char bytes[128];
} fake_id;

/* One job: what each rank brings to the call that all are in. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    int size, n_in;
    unsigned long turn;
    const void *from[MOST_RANKS];
    int n_calls, is_group;
} job = {.lock = PTHREAD_MUTEX_INITIALIZER, .turned = PTHREAD_COND_INITIALIZER};

typedef struct fake_comm {
    int rank, size;
} fake_comm;

EXPORT void (*ki_fake_nccl_copy)(void *to, const void *from, size_t bytes, void *stream);
EXPORT int ki_fake_nccl_calls(void);
int ki_fake_nccl_calls(void) { return job.n_calls; }

static int is_asked(const char *what) {
    const char *told = getenv("KITH_FAKE_NCCL");
    return told && strcmp(told, what) == 0;
}

static void wait_for_all(int size) {
    pthread_mutex_lock(&job.lock);
    const unsigned long turn = job.turn;
    if (++job.n_in == size) {
        job.n_in = 0;
        job.turn++;
        pthread_cond_broadcast(&job.turned);
    }
    while (turn == job.turn) pthread_cond_wait(&job.turned, &job.lock);
    pthread_mutex_unlock(&job.lock);
}

EXPORT int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
    *version = is_asked("old") ? 2804 : 22809;
    return OK;
}

EXPORT int ncclGetUniqueId(fake_id *id);
int ncclGetUniqueId(fake_id *id) {
    memset(id, 7, sizeof *id);
    return OK;
}

EXPORT int ncclCommInitRank(void **comm, int size, fake_id id, int rank);
int ncclCommInitRank(void **comm, int size, fake_id id, int rank) {
    const char *adds_in_switches = getenv("NCCL_NVLS_ENABLE");
    if (is_asked("init")) return UNHANDLED;
    if (!adds_in_switches || strcmp(adds_in_switches, "0") != 0) return INVALID; /* sums must be repeatable */
    if (id.bytes[0] != 7 || id.bytes[127] != 7 || size > MOST_RANKS) return INVALID;
    fake_comm *made = malloc(sizeof *made);
    *made = (fake_comm){.rank = rank, .size = size};
    *comm = made;
    wait_for_all(size);
    return OK;
}

EXPORT int ncclCommDestroy(void *comm);
int ncclCommDestroy(void *comm) {
    free(comm);
    return OK;
}

EXPORT int ncclCommAbort(void *comm);
int ncclCommAbort(void *comm) { return ncclCommDestroy(comm); }

EXPORT int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
    const fake_comm *c = comm;
    (void)stream;
    if (type != 7 || op != 0 || from != to) return INVALID;
    if (is_asked("sum")) return UNHANDLED;
    if (c->rank == 0) job.n_calls++;
    if (c->size == 1) return OK;
    float *sum = malloc(n * sizeof *sum + 1);
    job.from[c->rank] = from;
    wait_for_all(c->size);
    for (size_t i = 0; i < n; i++) {
        sum[i] = 0;
        for (int r = 0; r < c->size; r++) sum[i] += ((const float *)job.from[r])[i];
    }
    wait_for_all(c->size);
    memcpy(to, sum, n * sizeof *sum);
    free(sum);
    wait_for_all(c->size);
    return OK;
}

EXPORT int ncclAllGather(const void *from, void *to, size_t n, int type, void *comm, void *stream);
int ncclAllGather(const void *from, void *to, size_t n, int type, void *comm, void *stream) {
    const fake_comm *c = comm;
    if (type != 0) return INVALID;
    if (c->rank == 0) job.n_calls++;
    if (c->size == 1) {
        if (ki_fake_nccl_copy)
            ki_fake_nccl_copy(to, from, n, stream);
        else
            memmove(to, from, n);
        return OK;
    }
    job.from[c->rank] = from;
    wait_for_all(c->size);
    for (int r = 0; r < c->size; r++) memmove((char *)to + (size_t)r * n, job.from[r], n);
    wait_for_all(c->size);
    return OK;
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream);
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream) {
    const fake_comm *c = comm;
    (void)stream;
    if (type != 0 || !job.is_group) return INVALID;
    if (c->rank == root) job.from[root] = from;
    wait_for_all(c->size);
    memmove(to, job.from[root], n);
    wait_for_all(c->size);
    return OK;
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void) {
    job.is_group = 1;
    return OK;
}

#ifndef FAKE_NCCL_PART
EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void) { return OK; }
#endif

EXPORT const char *ncclGetErrorString(int error);
const char *ncclGetErrorString(int error) {
    return error == INVALID ? "invalid argument" : "unhandled cuda error";
}
