/* What the tests of the scan share: rows that look like embeddings, and a set to search made of them. */
#ifndef KITH_TEST_SCAN_ROWS_H
#define KITH_TEST_SCAN_ROWS_H

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "knn/panels.h"
#include "search/scan/scan.h"
#include "support/testing.h"

/* Classes of classes of rows, as a network's embeddings are: n_classes around a tenth as many points. */
static inline float *scan_rows(int64_t n, int64_t dim, int64_t n_classes, uint32_t stream) {
    float *x = ki_alloc((size_t)(n * dim), sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        ki_rng noise = ki_rng_at(5, KI_RNG_TEST, stream, (uint32_t)i);
        const uint32_t class = ki_rng_below(&noise, (uint32_t)n_classes);
        ki_rng centre = ki_rng_at(5, KI_RNG_TEST, 1, class), above = ki_rng_at(5, KI_RNG_TEST, 2, class / 10);
        for (int64_t k = 0; k < dim; k++)
            x[i * dim + k] =
                (float)(ki_rng_normal(&above) + 0.7 * ki_rng_normal(&centre) + 0.5 * ki_rng_normal(&noise));
    }
    return x;
}

/* A coder, one segment of all rows, and a set. */
typedef struct scan_index {
    float *x;
    ki_coder *coder;
    uint8_t *bytes;
    ki_codes codes;
    ki_scan_segment segment;
    ki_scan_set set;
} scan_index;

/* Takes the rows. */
static inline void scan_index_init(scan_index *s, float *x, int64_t n, int64_t dim,
                                   const ki_coder_options *options) {
    kith_error err;
    *s = (scan_index){.x = x};
    const ki_row_source rows = {.n = n, .dim = dim, .data = x};
    assert_ok(ki_coder_fit(&rows, options, &s->coder, &err), &err);
    assert_ok(ki_codes_make(s->coder, &rows, 0, n, NULL, &s->bytes, &err), &err);
    assert_ok(ki_codes_open(s->coder, s->bytes, ki_codes_bytes(s->coder, n), &s->codes, &err), &err);
    s->segment = (ki_scan_segment){&s->codes, 0, n};
    s->set = (ki_scan_set){.coder = s->coder, .segments = &s->segment, .n_segments = 1, .rows = rows};
}

static inline void scan_index_release(scan_index *s) {
    ki_free(s->x);
    ki_free(s->bytes);
    ki_coder_free(s->coder);
}

/* Exact neighbours among the allowed rows of segments, from float64 scores of everything. ret [n_queries, k]. */
static inline void scan_exact(const ki_scan_set *set, const float *query, int64_t n_queries, int64_t k,
                              const uint64_t *allowed, const int64_t *self, kith_neighbor *ret) {
    kith_error err;
    const int64_t dim = set->rows.dim;
    int64_t *number = ki_alloc((size_t)set->rows.n + 1, sizeof *number), n = 0;
    float *x = ki_alloc((size_t)set->rows.n + 1, (size_t)dim * sizeof *x);
    int64_t *own = ki_alloc((size_t)n_queries, sizeof *own);
    for (int64_t s = 0; s < set->n_segments; s++) {
        for (int64_t i = set->segments[s].first; i < set->segments[s].first + set->segments[s].n; i++) {
            if (!allowed || (allowed[i / 64] >> (i % 64) & 1)) number[n++] = i;
        }
    }
    for (int64_t q = 0; q < n_queries; q++) {
        own[q] = -1;
        for (int64_t i = 0; self && i < n; i++) own[q] = number[i] == self[q] ? i : own[q];
    }
    assert_ok(ki_source_read(&set->rows, number, n, x, &err), &err);
    kith_knn_options options;
    kith_knn_options_init(&options, sizeof options);
    options.metric = ki_coder_metric(set->coder);
    options.exact = true;
    const kith_array here = {.dtype = KITH_F32, .n_dims = 2, .dim = {n, dim}, .data = x};
    const kith_array asked = {
        .dtype = KITH_F32, .n_dims = 2, .dim = {n_queries, dim}, .data = (void *)(uintptr_t)query};
    kith_gallery *gallery = NULL;
    assert_ok(kith_gallery_new(&here, &options, &gallery, &err), &err);
    assert_ok(kith_gallery_search(gallery, &asked, own, k, ret, &err), &err);
    const ki_rows a = {KITH_F32, n_queries, dim, query, NULL}, b = {KITH_F32, n, dim, x, NULL};
    for (int64_t i = 0; i < n_queries * k; i++) {
        const int64_t q = i / k, j = ret[i].index;
        if (j < 0) continue;
        /* Exact search scores in float32 where that decides; the scan always in float64. */
        double score = ki_rows_dot(&a, q, &b, j);
        if (options.metric == KITH_SQEUCLIDEAN) score = ki_rows_sqdist(&a, q, &b, j);
        if (options.metric == KITH_COSINE)
            score /= fmax(sqrt(ki_rows_dot(&a, q, &a, q)), KI_LEAST_NORM) *
                     fmax(sqrt(ki_rows_dot(&b, j, &b, j)), KI_LEAST_NORM);
        ret[i] = (kith_neighbor){(float)score, number[j]};
    }
    kith_gallery_free(gallery);
    ki_free(number);
    ki_free(own);
    ki_free(x);
}

/* The part of the wanted rows that is found. */
static inline double scan_recall(const kith_neighbor *found, const kith_neighbor *wanted, int64_t n_queries,
                                 int64_t k) {
    int64_t n_hits = 0, n_wanted = 0;
    for (int64_t i = 0; i < n_queries * k; i++) {
        if (wanted[i].index < 0) continue;
        n_wanted++;
        for (int64_t j = i / k * k; j < (i / k + 1) * k; j++) n_hits += found[j].index == wanted[i].index;
    }
    return n_wanted ? (double)n_hits / (double)n_wanted : 1;
}

#endif
