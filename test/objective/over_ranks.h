/* Every golden case over ranks beside one process: values, gradients at the rank's rows, gradients of parameters
 * and what is remembered. Once with all proxies on every rank, once with the proxies shared out over ranks. For tests in float and in double; included by one test program each. */
#ifndef KITH_TEST_OBJECTIVE_OVER_RANKS_H
#define KITH_TEST_OBJECTIVE_OVER_RANKS_H

#include "base/parallel.h"
#include "objective/cases.h"
#include "support/thread_ranks.h"

enum { OVER_MOST_PARAMS = 64 };

/* What one evaluation gave. */
typedef struct over_found {
    kith_status status;
    kith_error err;
    double total;
    ki_real *diff[KI_N_TAPS], *diff_stopped;
    ki_real *param[OVER_MOST_PARAMS], *value[OVER_MOST_PARAMS];
} over_found;

typedef struct over {
    const golden_case *c;
    made made[THREAD_RANKS_MOST];
    over_found found[THREAD_RANKS_MOST];
} over;

static inline ki_real *over_copy(const ki_real *x, int64_t n) {
    if (!x) return NULL;
    ki_real *copy = malloc((size_t)(n + 1) * sizeof *copy);
    memcpy(copy, x, (size_t)n * sizeof *copy);
    return copy;
}

/* The rows [first, first + n) of a case's batch. */
static inline ki_batch over_rows(const golden_case *c, int64_t first, int64_t n) {
    ki_batch batch = c->batch;
    batch.m = n;
    batch.label += first;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap == KI_TAP_WEIGHT || !batch.tap[tap].data) continue;
        batch.tap[tap].data += first * batch.tap[tap].cols;
        batch.tap[tap].rows = n;
    }
    return batch;
}

static inline void over_evaluate(const ki_batch *batch, ki_objective *objective, over_found *found) {
    ki_result result;
    found->status = ki_objective_evaluate(objective, batch, &result, &found->err);
    if (found->status != KITH_OK) return;
    found->total = result.total;
    for (int tap = 0; tap < KI_N_TAPS; tap++)
        found->diff[tap] = over_copy(result.diff[tap], batch->tap[tap].rows * batch->tap[tap].cols);
    found->diff_stopped = over_copy(result.diff_stopped, batch->m * batch->tap[KI_TAP_EMBEDDING].cols);
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(objective, i)) && i < OVER_MOST_PARAMS; i++) {
        found->param[i] = over_copy(param->diff, param->count);
        found->value[i] = over_copy(param->value, param->count);
    }
}

static inline void over_release(over_found *found) {
    free(found->diff_stopped);
    for (int tap = 0; tap < KI_N_TAPS; tap++) free(found->diff[tap]);
    for (int i = 0; i < OVER_MOST_PARAMS; i++) free(found->param[i]), free(found->value[i]);
}

static inline int64_t over_at(const ki_state *param) {
    return param->first * (param->count / param->shape.dim[0]);
}

/* A new objective with the case's state, or with part `part` of n_parts of it. */
static inline made over_made(const golden_case *c, int part, int n_parts) {
    ki_sizes sizes = c->sizes;
    sizes.part = part;
    sizes.n_parts = n_parts;
    made m = made_of(c->recipe, &sizes);
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(m.objective, i)); i++)
        memcpy(param->value, ki_objective_param(c->made.objective, i)->value + over_at(param),
               (size_t)param->count * sizeof *param->value);
    return m;
}

static inline void over_rank(ki_comm *comm, void *user) {
    over *o = user;
    int64_t first = 0, n = 0;
    ki_threads_set(1);
    ki_comm_own(comm, o->c->batch.m, &first, &n);
    ki_batch batch = over_rows(o->c, first, n);
    batch.comm = comm;
    over_evaluate(&batch, o->made[comm->rank].objective, &o->found[comm->rank]);
}

static double over_tolerance;
static int over_n_compared, over_n_parts;

static inline double over_most(const ki_real *x, int64_t n) {
    double most = 0;
    for (int64_t i = 0; x && i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* The rank's array beside its part of the whole, whose largest entry is `most`. */
static inline void over_compare(const over *o, int rank, const char *what, const ki_real *found,
                                const ki_real *wanted, int64_t n, double most) {
    if ((found == NULL) != (wanted == NULL)) fail_msg("%srank %d: %s is there or not", o->c->key, rank, what);
    for (int64_t i = 0; found && i < n; i++) {
        if (!(fabs((double)found[i] - (double)wanted[i]) <= over_tolerance * fmax(most, 1e-30)))
            fail_msg("%srank %d: %s[%lld] is %.17g; one process has %.17g (largest %g)", o->c->key, rank,
                     what, (long long)i, (double)found[i], (double)wanted[i], most);
    }
    over_n_compared++;
}

static inline void over_compare_rank(const over *o, int rank, int size, const over_found *one) {
    const over_found *f = &o->found[rank];
    int64_t first = 0, n = 0;
    if (f->status != KITH_OK) fail_msg("%srank %d: %s", o->c->key, rank, f->err.message);
    ki_comm_part(o->c->batch.m, rank, size, &first, &n);
    if (!(fabs(f->total - one->total) <= over_tolerance * fmax(fabs(one->total), 1)))
        fail_msg("%srank %d: total %.17g; one process has %.17g", o->c->key, rank, f->total, one->total);
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        const int64_t cols = o->c->batch.tap[tap].cols, rows = o->c->batch.tap[tap].rows;
        const bool is_whole = tap == KI_TAP_WEIGHT;
        over_compare(o, rank, ki_tap_name((ki_tap)tap), f->diff[tap],
                     one->diff[tap] ? one->diff[tap] + (is_whole ? 0 : first * cols) : NULL,
                     (is_whole ? rows : n) * cols, over_most(one->diff[tap], rows * cols));
    }
    const int64_t dim = o->c->batch.tap[KI_TAP_EMBEDDING].cols;
    over_compare(o, rank, "what stops", f->diff_stopped,
                 one->diff_stopped ? one->diff_stopped + first * dim : NULL, n * dim,
                 over_most(one->diff_stopped, o->c->batch.m * dim));
    ki_state *param;
    for (size_t i = 0; (param = ki_objective_param(o->made[rank].objective, i)); i++) {
        const int64_t all = ki_objective_param(o->c->made.objective, i)->count, at = over_at(param);
        over_compare(o, rank, param->name, f->param[i], one->param[i] ? one->param[i] + at : NULL,
                     param->count, over_most(one->param[i], all));
        over_compare(o, rank, param->name, f->value[i], one->value[i] ? one->value[i] + at : NULL,
                     param->count, over_most(one->value[i], all));
        over_n_parts += param->n_whole > 0;
        /* Every rank updates its own copy: they must not drift apart. */
        if (f->param[i] && !param->n_whole &&
            memcmp(f->param[i], o->found[0].param[i], (size_t)param->count * sizeof(ki_real)) != 0)
            fail_msg("%srank %d: the gradient of %s has other bits than rank 0's", o->c->key, rank,
                     param->name);
    }
}

static const int *over_sizes; /* ends with 0 */

static inline void over_check_case(golden_case *c) {
    made alone = over_made(c, 0, 0);
    over_found one = {0};
    over_evaluate(&c->batch, alone.objective, &one);
    assert_ok(one.status, &one.err);
    for (int i = 0; over_sizes[i / 2]; i++) {
        const int size = over_sizes[i / 2];
        over o = {.c = c};
        for (int r = 0; r < size; r++) o.made[r] = over_made(c, i % 2 ? r : 0, i % 2 ? size : 0);
        thread_ranks_run(size, over_rank, &o);
        for (int r = 0; r < size; r++) over_compare_rank(&o, r, size, &one);
        for (int r = 0; r < size; r++) over_release(&o.found[r]), made_free(&o.made[r]);
    }
    over_release(&one);
    made_free(&alone);
}

static inline void over_check_all(const int *sizes, double tolerance) {
    over_sizes = sizes;
    over_tolerance = tolerance;
    const int n = cases_walk(over_check_case);
    print_message("%d cases over ranks: %d arrays compared, %d of them parts\n", n, over_n_compared,
                  over_n_parts);
    assert_true(n > 100);
    assert_true(over_n_parts > 20);
}

#endif
