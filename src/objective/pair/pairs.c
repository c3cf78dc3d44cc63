/* Building the pair view, and looping over its rows. */
#include "objective/pair/pairs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "objective/gemm.h"
#include "objective/pair/product.h"

enum { LANES = 16, PAIRS_PER_RUN = 8192 };

static void fill_rows(void *context, int64_t begin, int64_t end) {
    ki_pairs *p = context;
    for (int64_t i = begin; i < end; i++) {
        uint8_t *pair = p->pair + i * p->ld;
        p->vec->compare(p->col_label, p->row_label[i], pair, p->n);
        if (!p->is_proxy) pair[i] = KI_PAIR_NONE;
        memset(pair + p->n, KI_PAIR_NONE, (size_t)(p->ld - p->n));
        memset(p->s + i * p->ld + p->n, 0, (size_t)(p->ld - p->n) * sizeof *p->s);
        p->n_pos[i] = p->vec->count(pair, KI_PAIR_POSITIVE, p->n);
        p->n_neg[i] = p->n - p->n_pos[i] - (p->is_proxy ? 0 : 1);
    }
}

static void add_up(ki_pairs *p) {
    p->total_pos = p->total_neg = 0;
    for (int64_t i = 0; i < p->m; i++) {
        p->total_pos += p->n_pos[i];
        p->total_neg += p->n_neg[i];
    }
}

static void count_rows(void *context, int64_t begin, int64_t end) {
    ki_pairs *p = context;
    for (int64_t i = begin; i < end; i++) {
        p->n_pos[i] = p->vec->count(p->pair + i * p->ld, KI_PAIR_POSITIVE, p->n);
        p->n_neg[i] = p->vec->count(p->pair + i * p->ld, KI_PAIR_NEGATIVE, p->n);
    }
}

/* How many rows are worth a thread when each pair costs very little. */
static int64_t grain_of(const ki_pairs *p) { return 1 + 4 * PAIRS_PER_RUN / p->ld; }

void ki_pairs_count(ki_pairs *pairs) {
    ki_parallel_for(pairs->m, grain_of(pairs), count_rows, pairs);
    add_up(pairs);
}

static void split_rows(void *context, int64_t begin, int64_t end) {
    ki_pairs *p = context;
    for (int64_t i = begin; i < end; i++) {
        uint8_t *pair = p->pair + i * p->ld;
        memset(pair, KI_PAIR_NONE, (size_t)p->n);
        for (int64_t j = i % p->heads; j < p->n; j += p->heads)
            pair[j] = p->col_label[j] == p->row_label[i] ? KI_PAIR_POSITIVE : KI_PAIR_NEGATIVE;
        pair[i] = KI_PAIR_NONE;
    }
}

void ki_pairs_split(ki_pairs *pairs, int64_t heads) {
    if (heads <= 1 || pairs->is_proxy) return;
    pairs->heads = heads;
    ki_parallel_for(pairs->m, grain_of(pairs), split_rows, pairs);
    ki_pairs_count(pairs);
}

void ki_pairs_count_all(const ki_pairs *pairs, int64_t i, int64_t *ret_pos, int64_t *ret_neg) {
    int64_t n = 0, all = 0; /* of its class and in all, the row itself among them */
    for (int64_t j = i % pairs->heads; j < pairs->n; j += pairs->heads, all++)
        n += pairs->col_label[j] == pairs->row_label[i];
    *ret_pos = n - 1;
    *ret_neg = all - n;
}

int64_t ki_pairs_anchors(const ki_pairs *pairs) {
    int64_t n = 0;
    for (int64_t i = 0; i < pairs->m; i++) n += pairs->n_pos[i] > 0;
    return n;
}

static void square_norms(const ki_vec *vec, const ki_real *x, int64_t n, int64_t dim, ki_real *sq) {
    for (int64_t i = 0; i < n; i++) sq[i] = vec->dot(x + i * dim, x + i * dim, dim);
}

kith_status ki_pairs_build(ki_pairs *pairs, const ki_real *x, int64_t m, int64_t dim, const int32_t *label,
                           const ki_real *more, const int32_t *more_label, int64_t n_more, bool is_proxy,
                           const ki_vec *vec, ki_work *work, kith_error *err) {
    const int64_t n = is_proxy ? n_more : m + n_more;
    /* A rank may have no column of a step. */
    const int64_t ld = (int64_t)ki_round_up((size_t)(n ? n : 1), LANES), n_self = is_proxy ? 0 : m;
    ki_real *row_sq = NULL, *col_sq = NULL;
    int32_t *col_label = NULL;
    *pairs = (ki_pairs){.m = m,
                        .n = n,
                        .ld = ld,
                        .is_proxy = is_proxy,
                        .heads = 1,
                        .measure = KI_INNER,
                        .row_label = label,
                        .x = x,
                        .w = more,
                        .dim = dim,
                        .vec = vec,
                        .work = work};
    KI_TRY(ki_work_reals(work, m * ld, "the pair matrix", &pairs->s, err));
    KI_TRY(ki_work_take(work, (size_t)m, (size_t)ld, "the kept pairs", &pairs->pair, err));
    KI_TRY(ki_work_take(work, (size_t)m, sizeof(int64_t), "counts", &pairs->n_pos, err));
    KI_TRY(ki_work_take(work, (size_t)m, sizeof(int64_t), "counts", &pairs->n_neg, err));
    KI_TRY(ki_work_reals(work, m, "norms", &row_sq, err));
    KI_TRY(ki_work_reals(work, ld, "norms", &col_sq, err));
    KI_TRY(ki_work_take(work, (size_t)ld, sizeof(int32_t), "labels", &col_label, err));
    if (n_self) memcpy(col_label, label, (size_t)m * sizeof *label);
    if (n_more) memcpy(col_label + n_self, more_label, (size_t)n_more * sizeof *label);
    pairs->row_sq = row_sq;
    pairs->col_sq = col_sq;
    pairs->col_label = col_label;
    memset(col_sq, 0, (size_t)ld * sizeof *col_sq);
    square_norms(vec, more, n_more, dim, col_sq + n_self);
    if (n_self) {
        ki_gram(x, m, dim, pairs->s, ld);
        for (int64_t i = 0; i < m; i++) row_sq[i] = col_sq[i] = pairs->s[i * ld + i];
    } else {
        square_norms(vec, x, m, dim, row_sq);
    }
    if (n_more) ki_gemm(false, true, m, n_more, dim, 1, x, dim, more, dim, 0, pairs->s + n_self, ld);
    ki_parallel_for(m, grain_of(pairs), fill_rows, pairs);
    add_up(pairs);
    return KITH_OK;
}

typedef struct walk {
    const ki_pairs *pairs;
    ki_real *g, *scratch;
    ki_row_fn fn;
    const void *context;
    double *value;
    int64_t n_runs;
} walk;

static void walk_runs(void *context, int64_t begin, int64_t end) {
    const walk *w = context;
    const ki_pairs *p = w->pairs;
    for (int64_t run = begin; run < end; run++) {
        for (int64_t i = p->m * run / w->n_runs; i < p->m * (run + 1) / w->n_runs; i++) {
            const ki_row row = {.i = i,
                                .n = p->n,
                                .s = p->s + i * p->ld,
                                .pair = p->pair + i * p->ld,
                                .g = w->g ? w->g + i * p->ld : NULL,
                                .n_pos = p->n_pos[i],
                                .n_neg = p->n_neg[i],
                                .scratch = w->scratch + run * KI_ROW_SCRATCH * p->ld};
            if (row.g) memset(row.g, 0, (size_t)p->ld * sizeof *row.g);
            w->value[i] = w->fn(w->context, p, &row);
        }
    }
}

kith_status ki_pairs_rows(const ki_pairs *pairs, ki_real *g, ki_row_fn fn, const void *context,
                          double *rows_ret, double *ret_sum, kith_error *err) {
    const ki_work_mark mark = ki_work_here(pairs->work);
    kith_status status = KITH_OK;
    walk w = {
        .pairs = pairs, .g = g, .fn = fn, .context = context, .value = rows_ret, .n_runs = ki_threads()};
    /* A few thousand pairs are finished before a second thread wakes up. */
    const int64_t most = 1 + pairs->m * pairs->ld / PAIRS_PER_RUN;
    if (w.n_runs > most) w.n_runs = most;
    if (w.n_runs > pairs->m) w.n_runs = pairs->m;
    if (!w.value)
        KI_CHECK(ki_work_take(pairs->work, (size_t)pairs->m, sizeof(double), "row values", &w.value, err));
    KI_CHECK(
        ki_work_reals(pairs->work, w.n_runs * KI_ROW_SCRATCH * pairs->ld, "row scratch", &w.scratch, err));
    ki_parallel_for(w.n_runs, 1, walk_runs, &w);
    double sum = 0;
    for (int64_t i = 0; i < pairs->m; i++) sum += w.value[i];
    if (ret_sum) *ret_sum = sum;
done:
    ki_work_rewind(pairs->work, mark);
    return status;
}
