/* What is made of `gather` and `exchange`, the same for every implementation.
 *
 * A sum: every rank gets its part of all ranks' numbers (exchange), adds them in the order of the ranks, and the parts are
 * gathered. Each rank sends and receives 2 (size - 1) / size of the numbers, the least that is possible. Long arrays are
 * summed in pieces, so that the memory needed does not grow with them. */
#include "comm/comm.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"

enum { PIECE = 1 << 21, SUM_GRAIN = 1 << 14 };

void ki_comm_part(int64_t n, int rank, int size, int64_t *ret_first, int64_t *ret_n) {
    const int64_t each = n / size, more = n % size;
    *ret_first = rank * each + (rank < more ? rank : more);
    *ret_n = each + (rank < more);
}

void ki_comm_own(const ki_comm *comm, int64_t n, int64_t *ret_first, int64_t *ret_n) {
    ki_comm_part(n, comm ? comm->rank : 0, comm ? comm->size : 1, ret_first, ret_n);
}

kith_status ki_comm_scratch(ki_comm *comm, size_t bytes, void **ret, kith_error *err) {
    if (bytes > comm->scratch_bytes) {
        void *larger = ki_alloc(bytes, 1);
        if (!larger) return ki_fail_memory(err, bytes, "messages between ranks");
        ki_free(comm->scratch);
        comm->scratch = larger;
        comm->scratch_bytes = bytes;
    }
    *ret = comm->scratch;
    return KITH_OK;
}

int64_t ki_comm_most(const ki_comm *comm, int64_t n) {
    const int64_t size = comm ? comm->size : 1;
    return n / size + (n % size > 0);
}

void ki_comm_release(ki_comm *comm) {
    ki_free(comm->scratch);
    comm->scratch = NULL;
    comm->scratch_bytes = 0;
}

kith_status ki_comm_gather(ki_comm *comm, const void *own, const int64_t *counts, size_t bytes, void *all,
                           kith_error *err) {
    size_t each[KI_MOST_RANKS];
    if (ki_comm_is_alone(comm)) {
        if (all != own) memmove(all, own, (size_t)counts[0] * bytes);
        return KITH_OK;
    }
    for (int r = 0; r < comm->size; r++) each[r] = (size_t)counts[r] * bytes;
    return comm->type->gather(comm, own, all, each, err);
}

/* Rank by rank in pieces, so that no message is large. */
kith_status ki_comm_gather_first(ki_comm *comm, const void *own, const int64_t *counts, size_t bytes,
                                 void *all, kith_error *err) {
    enum { MOST = 1 << 26 };
    if (ki_comm_is_alone(comm)) return ki_comm_gather(comm, own, counts, bytes, all, err);
    char *to = all;
    for (int r = 0; r < comm->size; r++) {
        const size_t n = (size_t)counts[r] * bytes;
        if (r == 0 && comm->rank == 0) memmove(to, own, n);
        for (size_t done = 0; r > 0 && done < n; done += MOST) {
            size_t out[KI_MOST_RANKS] = {0}, in[KI_MOST_RANKS] = {0};
            const size_t piece = n - done < MOST ? n - done : MOST;
            if (comm->rank == r) out[0] = piece;
            if (comm->rank == 0) in[r] = piece;
            KI_TRY(comm->type->exchange(comm, comm->rank == r ? (const char *)own + done : NULL, out,
                                        comm->rank == 0 ? to + done : NULL, in, err));
        }
        if (comm->rank == 0) to += n;
    }
    return KITH_OK;
}

kith_status ki_comm_gather_each(ki_comm *comm, const void *own, size_t bytes, void *all, kith_error *err) {
    size_t each[KI_MOST_RANKS];
    if (ki_comm_is_alone(comm)) return memmove(all, own, bytes), KITH_OK;
    for (int r = 0; r < comm->size; r++) each[r] = bytes;
    return comm->type->gather(comm, own, all, each, err);
}

kith_status ki_comm_gather_counts(ki_comm *comm, int64_t own, int64_t *all, kith_error *err) {
    return ki_comm_gather_each(comm, &own, sizeof own, all, err);
}

kith_status ki_comm_broadcast(ki_comm *comm, void *data, size_t bytes, kith_error *err) {
    size_t each[KI_MOST_RANKS] = {bytes};
    if (ki_comm_is_alone(comm)) return KITH_OK;
    return comm->type->gather(comm, data, data, each, err);
}

kith_status ki_comm_wait(ki_comm *comm, kith_error *err) {
    int64_t all[KI_MOST_RANKS];
    return ki_comm_gather_counts(comm, 0, all, err);
}

/* ---- sums ---- */

typedef struct adding {
    int size;
    int64_t n;
    const ki_real *from; /* [size, n] */
    ki_real *to;
} adding;

static void add_ranks(void *context, int64_t begin, int64_t end) {
    const adding *a = context;
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int r = 0; r < a->size; r++) sum += (double)a->from[r * a->n + i];
        a->to[i] = (ki_real)sum;
    }
}

static kith_status sum_piece(ki_comm *comm, ki_real *x, int64_t n, kith_error *err) {
    size_t out[KI_MOST_RANKS], in[KI_MOST_RANKS];
    void *memory = NULL;
    int64_t first = 0, n_own = 0;
    ki_comm_own(comm, n, &first, &n_own);
    KI_TRY(ki_comm_scratch(comm, (size_t)(n_own * comm->size + 1) * sizeof *x, &memory, err));
    for (int r = 0; r < comm->size; r++) {
        int64_t at = 0, n_there = 0;
        ki_comm_part(n, r, comm->size, &at, &n_there);
        out[r] = (size_t)n_there * sizeof *x;
        in[r] = (size_t)n_own * sizeof *x;
    }
    KI_TRY(comm->type->exchange(comm, x, out, memory, in, err));
    adding a = {.size = comm->size, .n = n_own, .from = memory, .to = x + first};
    ki_parallel_for(n_own, SUM_GRAIN, add_ranks, &a);
    return comm->type->gather(comm, x + first, x, out, err);
}

kith_status ki_comm_sum(ki_comm *comm, ki_real *x, int64_t n, kith_error *err) {
    if (ki_comm_is_alone(comm)) return KITH_OK;
    for (int64_t at = 0; at < n; at += PIECE)
        KI_TRY(sum_piece(comm, x + at, n - at < PIECE ? n - at : PIECE, err));
    return KITH_OK;
}

/* ---- agreeing ---- */

/* The line of the rank that failed, for all. */
static kith_status send_error(ki_comm *comm, int from, kith_error *error, kith_error *err) {
    size_t each[KI_MOST_RANKS] = {0};
    each[from] = sizeof *error;
    kith_error sent;
    KI_TRY(comm->type->gather(comm, error, &sent, each, err));
    *error = sent;
    return KITH_OK;
}

kith_status ki_comm_agree_on(ki_comm *comm, kith_status status, bool *flag, kith_error *err) {
    enum { FLAG = 1 << 16 };
    int64_t all[KI_MOST_RANKS];
    if (ki_comm_is_alone(comm)) return status;
    kith_error why = {.status = status};
    if (status != KITH_OK && err) why = *err;
    KI_TRY(ki_comm_gather_counts(comm, (int64_t)status + (*flag ? FLAG : 0), all, err));
    int from = comm->size;
    for (int r = comm->size - 1; r >= 0; r--) {
        if (all[r] & FLAG) *flag = true;
        if (all[r] & (FLAG - 1)) from = r;
    }
    comm->has_agreed = from < comm->size; /* a failure that was overcome is none of the next one's */
    if (from == comm->size) return KITH_OK;
    KI_TRY(send_error(comm, from, &why, err));
    const kith_status found = (kith_status)(all[from] & (FLAG - 1));
    if (err) *err = why;
    return from > 0 && found != KITH_ECANCELED ? ki_prefix(err, found, "rank %d", from) : found;
}

kith_status ki_comm_agree(ki_comm *comm, kith_status status, kith_error *err) {
    bool unused = false;
    return ki_comm_agree_on(comm, status, &unused, err);
}
