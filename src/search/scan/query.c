/* Tables of queries and pools of candidates. */
#include "search/scan/query.h"

void ki_scan_pool_init(ki_scan_pool *pool, ki_key *keys, int64_t n_best) {
    *pool =
        (ki_scan_pool){.keys = keys, .room = ki_scan_pool_room(n_best), .n_best = n_best, .least = -INFINITY};
}

void ki_scan_pool_cut(ki_scan_pool *pool, ki_key *scratch) {
    if (pool->n < pool->n_best) return;
    if (pool->n > pool->n_best)
        ki_keys_select(ki_knn_kernel_best(), pool->keys, pool->n, pool->n_best, scratch);
    pool->n = pool->n_best;
    ki_key worst = pool->keys[0];
    for (int64_t i = 1; i < pool->n; i++) worst = pool->keys[i] < worst ? pool->keys[i] : worst;
    pool->worst = worst - 1;
    pool->least = ki_key_score(worst);
}

/* The sums of all choices of 4 values, less the smallest. */
static void sums_of(const float *q, float *ret_sum) {
    ret_sum[0] = 0;
    for (int k = 0; k < KI_SCAN_GROUP; k++) ret_sum[0] -= q[k] < 0 ? q[k] : 0;
    for (int k = 0; k < KI_SCAN_GROUP; k++) {
        for (int j = 0; j < 1 << k; j++) ret_sum[(1 << k) + j] = ret_sum[j] + q[k];
    }
}

/* <q, y> of a code y = sum_b 2^b bit_b - (2^bits - 1) / 2 from rounded sums: each plane adds step * T_b and the smallest sums. */
static void make_table(ki_scan_query *query, const ki_coder *c) {
    const float *q = query->turned;
    const int64_t n_groups = c->coded / KI_SCAN_GROUP;
    float widest = 0;
    double sum = 0, smallest = 0;
    for (int64_t g = 0; g < n_groups; g++) {
        float width = 0;
        for (int k = 0; k < KI_SCAN_GROUP; k++) {
            const float x = q[g * KI_SCAN_GROUP + k];
            width += fabsf(x);
            sum += (double)x;
            smallest += x < 0 ? (double)x : 0;
        }
        widest = width > widest ? width : widest;
    }
    const float step = widest / 255, inverse = widest > KI_CODER_LEAST ? 255 / widest : 0;
    for (int64_t g = 0; g < n_groups; g++) {
        float of[16];
        sums_of(q + g * KI_SCAN_GROUP, of);
        /* No sum is below 0 or above the widest by more than rounding, which the half absorbs. */
        for (int j = 0; j < 16; j++) query->entry[g * 16 + j] = (uint8_t)(int)(of[j] * inverse + 0.5F);
    }
    const double most = (double)((1 << c->bits) - 1);
    query->rounding = (double)step * sqrt((double)n_groups / 12) * (most + 1) * 0.58;
    query->table = (ki_scan_table){.entry = query->entry,
                                   .n_groups = n_groups,
                                   .bits = c->bits,
                                   .step = step,
                                   .shift = (float)(most * (smallest - sum / 2))};
}

kith_status ki_scan_query_set(ki_scan_query *query, const ki_coder *coder, const float *given, int64_t i,
                              kith_error *err) {
    double unused;
    for (int64_t k = 0; k < coder->dim; k++) {
        if (fabsf(given[k]) <= 1e18F) continue;
        return ki_fail(err, KITH_ENUMERIC, "query: row %lld column %lld is %g", (long long)i, (long long)k,
                       (double)given[k]);
    }
    query->given = given;
    ki_scan_kernel_best()->dots(given, given, coder->dim, &query->square, &unused);
    ki_coder_turn(coder, given, query->turned);
    ki_scan_kernel_best()->dots(query->turned, query->turned, coder->padded, &query->turned_square, &unused);
    make_table(query, coder);
    return KITH_OK;
}

double ki_scan_query_base(const ki_scan_query *query, const ki_coder *coder, const ki_scan_kernel *kernel,
                          int64_t list, double *ret_distance) {
    double dot, square;
    kernel->dots(query->turned, coder->centroid + list * coder->padded, coder->padded, &dot, &square);
    const double apart = fmax(0, query->turned_square - 2 * dot + square);
    *ret_distance = sqrt(apart);
    return coder->metric == KITH_SQEUCLIDEAN ? -apart / 2 : dot;
}
