/* Where a step's time goes. A mark follows every piece of work, and the time since the mark before it is added to that kind of
 * work. On a device the marks are queued between the kernels and read when all is done. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/bench_parts.h"

enum { MOST_MARKS = 4096 };

struct ki_bench_profile {
    ki_probe probe;
    ki_backend *backend;
    const ki_queue_type *queues;
    ki_mark *mark[MOST_MARKS];
    int row_of[MOST_MARKS];
    int n_marks; /* of the present step; the first is its beginning */
    bool is_on;
    kith_status status;
    kith_error error;
    int n_rows;
    kith_bench_row row[KITH_BENCH_ROWS];
};

static int find_row(ki_bench_profile *p, const char *name) {
    for (int i = 0; i < p->n_rows; i++) {
        if (strncmp(p->row[i].name, name, sizeof p->row[i].name - 1) == 0) return i;
    }
    if (p->n_rows == KITH_BENCH_ROWS) return KITH_BENCH_ROWS - 1;
    strncpy(p->row[p->n_rows].name, name, sizeof p->row[0].name - 1);
    return p->n_rows++;
}

static void set_mark(ki_bench_profile *p, int row) {
    if (p->n_marks == MOST_MARKS || p->status != KITH_OK) return;
    const int i = p->n_marks++;
    p->row_of[i] = row;
    if (!p->mark[i]) p->status = p->queues->mark_new(p->backend, &p->mark[i], &p->error);
    if (p->status == KITH_OK)
        p->status = p->queues->mark_set(p->backend, p->mark[i], KI_QUEUE_MAIN, &p->error);
}

static void note(ki_probe *probe, const char *what, double bytes) {
    ki_bench_profile *p = (ki_bench_profile *)probe;
    if (!p->is_on) return;
    const int row = find_row(p, what);
    p->row[row].bytes += bytes;
    p->row[row].calls++;
    set_mark(p, row);
}

kith_status ki_bench_profile_new(ki_backend *backend, ki_bench_profile **ret_profile, kith_error *err) {
    ki_bench_profile *p = NULL;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p, "a profile", err));
    p->probe.note = note;
    p->backend = backend;
    p->queues = backend->type->queues;
    backend->probe = &p->probe;
    *ret_profile = p;
    return KITH_OK;
}

void ki_bench_profile_free(ki_bench_profile *p) {
    if (!p) return;
    p->backend->probe = NULL;
    for (int i = 0; i < MOST_MARKS; i++) p->queues->mark_free(p->backend, p->mark[i]);
    ki_free(p);
}

kith_status ki_bench_profile_begin(ki_bench_profile *p, kith_error *err) {
    KI_TRY(p->backend->type->memory.sync(p->backend, err));
    p->n_marks = 0;
    p->is_on = true;
    set_mark(p, -1);
    return KITH_OK;
}

kith_status ki_bench_profile_end(ki_bench_profile *p, kith_error *err) {
    p->is_on = false;
    KI_TRY(p->backend->type->memory.sync(p->backend, err));
    if (p->status != KITH_OK && err) *err = p->error;
    KI_TRY(p->status);
    for (int i = 1; i < p->n_marks; i++) {
        double seconds = 0;
        KI_TRY(p->queues->mark_seconds(p->backend, p->mark[i - 1], p->mark[i], &seconds, err));
        p->row[p->row_of[i]].seconds += seconds;
    }
    return KITH_OK;
}

static int longest_first(const void *a, const void *b) {
    const kith_bench_row *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

void ki_bench_profile_finish(const ki_bench_profile *p, int64_t n_steps, kith_bench_result *result) {
    result->n_rows = p->n_rows;
    memcpy(result->row, p->row, sizeof p->row);
    for (int i = 0; i < p->n_rows; i++) {
        result->row[i].seconds /= (double)n_steps;
        result->row[i].bytes /= (double)n_steps;
        result->row[i].calls /= (double)n_steps;
    }
    qsort(result->row, (size_t)p->n_rows, sizeof result->row[0], longest_first);
}

kith_status ki_bench_copy_rate(ki_backend *backend, double *ret_rate, kith_error *err) {
    enum { ROUNDS = 12 };
    const ki_queue_type *queues = backend->type->queues;
    /* Far larger than any cache. */
    const size_t bytes = (size_t)1 << (backend->type->is_host ? 27 : 30);
    kith_status status;
    void *src = NULL, *dst = NULL;
    ki_mark *mark[2] = {NULL, NULL};
    double best = 0;
    KI_CHECK(backend->type->memory.alloc(backend, bytes, &src, err));
    KI_CHECK(backend->type->memory.alloc(backend, bytes, &dst, err));
    KI_CHECK(backend->type->memory.zero(backend, src, bytes, err));
    for (int i = 0; i < 2; i++) KI_CHECK(queues->mark_new(backend, &mark[i], err));
    for (int i = 0; i < ROUNDS; i++) {
        double seconds = 0;
        KI_CHECK(queues->mark_set(backend, mark[0], KI_QUEUE_MAIN, err));
        KI_CHECK(queues->copy(backend, KI_QUEUE_MAIN, dst, src, bytes, err));
        KI_CHECK(queues->mark_set(backend, mark[1], KI_QUEUE_MAIN, err));
        KI_CHECK(queues->mark_wait(backend, mark[1], err));
        KI_CHECK(queues->mark_seconds(backend, mark[0], mark[1], &seconds, err));
        if (seconds > 0 && 2 * (double)bytes / seconds > best) best = 2 * (double)bytes / seconds;
    }
    *ret_rate = best;
done:
    for (int i = 0; i < 2; i++) queues->mark_free(backend, mark[i]);
    backend->type->memory.free(backend, src);
    backend->type->memory.free(backend, dst);
    return status;
}
