/* Blocks of columns: products of projections, their pooling, and the gradients. */
#include "objective/reg/moments.h"

#include <string.h>

#include "base/parallel.h"
#include "objective/gemm.h"

enum { BLOCK = 512 };

/* Projections of one product: all of them, with results from order 2 on, or those of one order. */
typedef struct chain {
    int first, n;  /* w[first … first + n) */
    int least_out; /* phi of fewer factors is not asked for */
} chain;

static int chains_of(const ki_moments *o, chain *chains) {
    if (o->cascaded) {
        chains[0] = (chain){0, o->orders, 2};
        return 1;
    }
    int n = 0, first = 0;
    for (int k = 2; k <= o->orders; k++) {
        chains[n++] = (chain){first, k, k};
        first += k;
    }
    return n;
}

/* One block of columns of one chain. */
typedef struct job {
    const ki_moments *o;
    chain chain;
    int64_t begin, n; /* columns */
    ki_real *p[KI_HORDE_MOST_ORDERS];
    ki_real scale; /* 1 / sqrt(dim) */
} job;

static void sum_items(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_moments *o = j->o;
    const ki_real inverse = 1 / (ki_real)o->hw;
    for (int64_t i = begin; i < end; i++) {
        for (int k = j->chain.least_out; k <= j->chain.n; k++)
            memset(o->g[k] + i * o->dim + j->begin, 0, (size_t)j->n * sizeof(ki_real));
        for (int64_t at = i * o->hw; at < (i + 1) * o->hw; at++) {
            ki_real phi[BLOCK];
            const ki_real *a = j->p[0] + at * j->n, *b = j->p[1] + at * j->n;
            for (int64_t d = 0; d < j->n; d++) phi[d] = j->scale * a[d] * b[d];
            for (int k = 2; k <= j->chain.n; k++) {
                const ki_real *p = j->p[k - 1] + at * j->n;
                ki_real *g = o->g[k] + i * o->dim + j->begin;
                if (k > 2) {
                    for (int64_t d = 0; d < j->n; d++) phi[d] *= p[d];
                }
                if (k < j->chain.least_out) continue;
                for (int64_t d = 0; d < j->n; d++) g[d] += phi[d];
            }
        }
        for (int k = j->chain.least_out; k <= j->chain.n; k++) {
            ki_real *g = o->g[k] + i * o->dim + j->begin;
            for (int64_t d = 0; d < j->n; d++) g[d] *= inverse;
        }
    }
}

/* Every p becomes dL/dp. slope is dL/dphi_k, from the highest order down. */
static void backward_items(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_moments *o = j->o;
    const ki_real inverse = 1 / (ki_real)o->hw;
    const int n = j->chain.n;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t at = i * o->hw; at < (i + 1) * o->hw; at++) {
            ki_real phi[KI_HORDE_MOST_ORDERS][BLOCK], slope[BLOCK]; /* phi[k]: k factors */
            ki_real *a = j->p[0] + at * j->n, *b = j->p[1] + at * j->n;
            const ki_real *top = o->g[n] + i * o->dim + j->begin;
            for (int64_t d = 0; d < j->n; d++) phi[2][d] = j->scale * a[d] * b[d];
            for (int k = 3; k < n; k++) {
                const ki_real *p = j->p[k - 1] + at * j->n;
                for (int64_t d = 0; d < j->n; d++) phi[k][d] = phi[k - 1][d] * p[d];
            }
            for (int64_t d = 0; d < j->n; d++) slope[d] = inverse * top[d];
            for (int k = n; k > 2; k--) {
                ki_real *p = j->p[k - 1] + at * j->n;
                const ki_real *below = o->g[k - 1] + i * o->dim + j->begin;
                const ki_real share = k - 1 >= j->chain.least_out ? inverse : 0;
                for (int64_t d = 0; d < j->n; d++) {
                    const ki_real old = p[d];
                    p[d] = slope[d] * phi[k - 1][d];
                    slope[d] = slope[d] * old + share * below[d];
                }
            }
            for (int64_t d = 0; d < j->n; d++) {
                const ki_real old = a[d], s = j->scale * slope[d];
                a[d] = s * b[d];
                b[d] = s * old;
            }
        }
    }
}

static job job_of(const ki_moments *o, const chain *c, int64_t index, ki_real *memory) {
    const int64_t left = o->dim - index * o->block, n_rows = o->m * o->hw;
    job j = {.o = o,
             .chain = *c,
             .begin = index * o->block,
             .n = left < o->block ? left : o->block,
             .scale = (ki_real)(1 / sqrt((double)o->dim))};
    for (int t = 0; t < c->n; t++) j.p[t] = memory + (c->first + t) * n_rows * o->block;
    return j;
}

static void project(const job *j) {
    const ki_moments *o = j->o;
    for (int t = 0; t < j->chain.n; t++)
        ki_gemm(false, false, o->m * o->hw, j->n, o->c, 1, o->f, o->c, o->w[j->chain.first + t] + j->begin,
                o->dim, 0, j->p[t], j->n);
}

/* An item's map between [c, hw] and [hw, c]. */
static void turn(const ki_real *src, int64_t rows, int64_t cols, bool add, ki_real *dst) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            ki_real *to = dst + c * rows + r;
            *to = src[r * cols + c] + (add ? *to : 0);
        }
    }
}

kith_status ki_moments_forward(ki_moments *o, const ki_tap_data *map, kith_error *err) {
    chain chains[KI_HORDE_MOST_ORDERS];
    const int n_chains = chains_of(o, chains);
    const int64_t n_w = ki_moments_projections(o->orders, o->cascaded), n_rows = o->m * o->hw;
    o->block = o->dim < BLOCK ? o->dim : BLOCK;
    const int64_t n_blocks = (o->dim + o->block - 1) / o->block;
    const double block_bytes = (double)n_w * (double)n_rows * (double)o->block * (double)sizeof(ki_real);
    const double fitting = (double)o->keep_bytes / block_bytes;
    o->n_kept = fitting < (double)n_blocks ? (int64_t)fitting : n_blocks;
    KI_TRY(ki_work_reals(o->work, n_rows * o->c, "positions of the map", &o->f, err));
    for (int k = 2; k <= o->orders; k++)
        KI_TRY(ki_work_reals(o->work, o->m * o->dim, "moments", &o->g[k], err));
    KI_TRY(ki_work_take(o->work, (size_t)o->n_kept + 1, sizeof *o->kept, "moments", &o->kept, err));
    for (int64_t b = 0; b < o->n_kept; b++)
        KI_TRY(ki_work_reals(o->work, n_w * n_rows * o->block, "projected positions", &o->kept[b], err));
    if (o->n_kept < n_blocks)
        KI_TRY(ki_work_reals(o->work, n_w * n_rows * o->block, "projected positions", &o->scratch, err));
    for (int64_t i = 0; i < o->m; i++)
        turn(map->data + i * o->c * o->hw, o->c, o->hw, false, o->f + i * o->c * o->hw);
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int c = 0; c < n_chains; c++) {
            job j = job_of(o, &chains[c], b, b < o->n_kept ? o->kept[b] : o->scratch);
            project(&j);
            ki_parallel_for(o->m, 1, sum_items, &j);
        }
    }
    return KITH_OK;
}

kith_status ki_moments_backward(ki_moments *o, ki_real *diff_map, ki_real *const *diff_w, kith_error *err) {
    chain chains[KI_HORDE_MOST_ORDERS];
    const int n_chains = chains_of(o, chains);
    const int64_t n_rows = o->m * o->hw, n_blocks = (o->dim + o->block - 1) / o->block;
    ki_real *diff_f = NULL;
    KI_TRY(ki_work_reals(o->work, n_rows * o->c, "gradients at the map", &diff_f, err));
    memset(diff_f, 0, (size_t)(n_rows * o->c) * sizeof *diff_f);
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int c = 0; c < n_chains; c++) {
            job j = job_of(o, &chains[c], b, b < o->n_kept ? o->kept[b] : o->scratch);
            if (b >= o->n_kept) project(&j);
            ki_parallel_for(o->m, 1, backward_items, &j);
            for (int t = 0; t < j.chain.n; t++) {
                const int at = j.chain.first + t;
                if (diff_w[at])
                    ki_gemm(true, false, o->c, j.n, n_rows, 1, o->f, o->c, j.p[t], j.n, 1,
                            diff_w[at] + j.begin, o->dim);
                ki_gemm(false, true, n_rows, o->c, j.n, 1, j.p[t], j.n, o->w[at] + j.begin, o->dim, 1, diff_f,
                        o->c);
            }
        }
    }
    for (int64_t i = 0; i < o->m; i++)
        turn(diff_f + i * o->c * o->hw, o->hw, o->c, true, diff_map + i * o->c * o->hw);
    return KITH_OK;
}
