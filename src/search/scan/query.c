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

/* The values of a group, wherever they lie, and other things by fours. */
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef double four_double __attribute__((vector_size(32)));
typedef int32_t four_int __attribute__((vector_size(16)));
typedef int32_t sixteen_int __attribute__((vector_size(64)));
typedef uint8_t sixteen_byte __attribute__((vector_size(16), aligned(1)));

static inline four below_zero(four x) { return (four)((four_int)x & (x < 0)); }

/* The sums of all choices of 4 values, less the smallest, in steps: ret [16], 0 to 255. */
static inline void make_entries(four q, float inverse, uint8_t *ret) {
    const four below = below_zero(q);
    const float least = 0 - below[0] - below[1] - below[2] - below[3];
    const four zero = {0}, low = __builtin_shufflevector(q, zero, 4, 0, 4, 0),
               next = __builtin_shufflevector(q, zero, 4, 4, 1, 1);
    const four first = least + low + next, second = first + q[2];
    const four sum[4] = {first, second, first + q[3], second + q[3]};
    union {
        four_int part[4];
        sixteen_int whole;
    } rounded;
    /* No sum is below 0 or above the widest by more than rounding, which the half absorbs. */
    for (int i = 0; i < 4; i++) rounded.part[i] = __builtin_convertvector(sum[i] * inverse + 0.5F, four_int);
    *(sixteen_byte *)(void *)ret = __builtin_convertvector(rounded.whole, sixteen_byte);
}

/* <q, y> of a code y = sum_b 2^b bit_b - (2^bits - 1) / 2 from rounded sums: each plane adds step * T_b and the smallest sums. */
static void make_table(ki_scan_query *query, const ki_coder *c) {
    const four *q = (const four *)(const void *)query->turned;
    const int64_t n_groups = c->coded / KI_SCAN_GROUP;
    float widest = 0;
    four_double sums = {0}, below = {0}; /* by the place in a group */
    for (int64_t g = 0; g < n_groups; g++) {
        const four under = below_zero(q[g]), size = q[g] - under - under;
        const float width = size[0] + size[1] + size[2] + size[3];
        widest = width > widest ? width : widest;
        sums += __builtin_convertvector(q[g], four_double);
        below += __builtin_convertvector(under, four_double);
    }
    const double sum = sums[0] + sums[1] + (sums[2] + sums[3]),
                 smallest = below[0] + below[1] + (below[2] + below[3]);
    const float step = widest / 255, inverse = widest > KI_CODER_LEAST ? 255 / widest : 0;
    for (int64_t g = 0; g < n_groups; g++) make_entries(q[g], inverse, query->entry + g * 16);
    const double most = (double)((1 << c->bits) - 1);
    query->rounding = (double)step * sqrt((double)n_groups / 12) * (most + 1) * 0.58;
    query->table = (ki_scan_table){.entry = query->entry,
                                   .n_groups = n_groups,
                                   .bits = c->bits,
                                   .step = step,
                                   .shift = (float)(most * (smallest - sum / 2))};
}

kith_status ki_scan_query_set(ki_scan_query *query, const ki_coder *coder, const float *given, int64_t dim,
                              int64_t i, kith_error *err) {
    double unused;
    for (int64_t k = 0; k < dim; k++) {
        if (fabsf(given[k]) <= 1e18F) continue;
        return ki_fail(err, KITH_ENUMERIC, "query: row %lld column %lld is %g", (long long)i, (long long)k,
                       (double)given[k]);
    }
    query->given = given;
    ki_scan_kernel_best()->dots(given, given, dim, &query->square, &unused);
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

/* Squared distances are differences of what may be much larger: float64 for them. */
float ki_scan_query_about(const ki_scan_query *query, const ki_coder *coder, const ki_scan_kernel *kernel,
                          int64_t list) {
    double unused;
    if (coder->metric == KITH_SQEUCLIDEAN)
        return (float)ki_scan_query_base(query, coder, kernel, list, &unused);
    return kernel->dot(query->turned, coder->centroid + list * coder->padded, coder->padded);
}
