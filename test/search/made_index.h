/* Indexes for the tests of search: rows and items drawn from a seed, so that a test can make them again. */
#ifndef KITH_TEST_MADE_INDEX_H
#define KITH_TEST_MADE_INDEX_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/rng.h"
#include "kith/kith.h"
#include "support/testing.h"

enum { MADE_DIM = 24 };

/* Rows times dim up to which made indexes have no codes. */
static int64_t made_exact_numbers = 25000000;

static const char *const made_labels[] = {"tern", "gull", "auk", "black tern", "Möwe"};
static const kith_column made_columns[] = {
    {"year", KITH_VALUE_INT}, {"weight", KITH_VALUE_REAL}, {"place", KITH_VALUE_TEXT}};

/* Row i of all made rows: the same wherever it is made. A few are alike, so that there are ties. */
static inline void made_row(int64_t i, float *ret_row) {
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, (uint32_t)(i % 50 == 49 ? i - 1 : i), 0);
    for (int k = 0; k < MADE_DIM; k++) ret_row[k] = (float)ki_rng_normal(&rng);
}

typedef struct made_item {
    kith_index_item item;
    kith_value values[3];
    char path[40], hash[65];
} made_item;

/* What is known of item i: some has no label, some no values. */
static inline void made_known(int64_t i, made_item *ret_made) {
    ki_rng rng = ki_rng_at(8, KI_RNG_TEST, (uint32_t)i, 0);
    memset(ret_made, 0, sizeof *ret_made);
    snprintf(ret_made->path, sizeof ret_made->path, "%d/picture-%lld.jpg", 2015 + (int)(i % 10),
             (long long)i);
    snprintf(ret_made->hash, sizeof ret_made->hash, "%064llx", (unsigned long long)i * 1000003);
    ret_made->item = (kith_index_item){.path = ret_made->path,
                                       .label = i % 7 == 0 ? NULL : made_labels[ki_rng_below(&rng, 5)],
                                       .hash = ret_made->hash,
                                       .bytes = 1000 + i,
                                       .mtime_ns = 1700000000000000000 + i};
    if (i % 11 != 0)
        ret_made->values[0] =
            (kith_value){.type = KITH_VALUE_INT, .integer = 2015 + (int64_t)ki_rng_below(&rng, 10)};
    if (i % 13 != 0)
        ret_made->values[1] = (kith_value){.type = KITH_VALUE_REAL, .real = ki_rng_double(&rng) * 4 - 2};
    if (i % 5 != 0)
        ret_made->values[2] =
            (kith_value){.type = KITH_VALUE_TEXT, .text = ki_rng_below(&rng, 2) ? "Helgoland" : "Texel"};
}

/* Add made rows first … first + n - 1; they get ids from `first` when they are added in order to a new index. */
static inline kith_status made_try_add(kith_index *index, int64_t first, int64_t n, kith_error *err) {
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows + 1);
    made_item *made = malloc((size_t)n * sizeof *made + 1);
    kith_index_item *items = malloc((size_t)n * sizeof *items + 1);
    for (int64_t i = 0; i < n; i++) {
        made_row(first + i, rows + i * MADE_DIM);
        made_known(first + i, &made[i]);
        items[i] = made[i].item;
        items[i].values = made[i].values;
    }
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows};
    const kith_status status = kith_index_add(index, &array, items, NULL, err);
    free(items);
    free(made);
    free(rows);
    return status;
}

static inline void made_add(kith_index *index, int64_t first, int64_t n) {
    kith_error err;
    assert_ok(made_try_add(index, first, n, &err), &err);
}

/* Add made rows first … first + n - 1 with labels that repeat after `n_labels`, drawn together by label. */
static inline void made_add_labelled(kith_index *index, int64_t first, int64_t n, int64_t n_labels) {
    kith_error err;
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows), middle[MADE_DIM];
    kith_index_item *items = calloc((size_t)n, sizeof *items);
    char(*label)[24] = malloc((size_t)n * sizeof *label);
    for (int64_t i = 0; i < n; i++) {
        const int64_t class_of = (first + i) % n_labels;
        made_row(first + i, rows + i * MADE_DIM);
        made_row(1000000 + class_of, middle);
        for (int k = 0; k < MADE_DIM; k++) rows[i * MADE_DIM + k] += middle[k];
        snprintf(label[i], sizeof *label, "c%lld", (long long)class_of);
        items[i] = (kith_index_item){.label = label[i], .bytes = -1, .mtime_ns = -1};
    }
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows};
    assert_ok(kith_index_add(index, &array, items, NULL, &err), &err);
    free(label);
    free(items);
    free(rows);
}

static inline kith_status made_try_create(const char *path, kith_metric metric, kith_index **ret_index,
                                          kith_error *err) {
    KITH_OPTIONS(kith_index_options, options);
    options.dim = MADE_DIM;
    options.metric = metric;
    options.model = "0123abcd";
    options.preprocess = "squash256";
    options.columns = made_columns;
    options.n_columns = 3;
    options.exact_numbers = made_exact_numbers;
    return kith_index_create(path, &options, ret_index, err);
}

static inline kith_index *made_create(const char *path, kith_metric metric) {
    kith_error err;
    kith_index *index = NULL;
    assert_ok(made_try_create(path, metric, &index, &err), &err);
    return index;
}

static inline kith_index *made_open(const char *path, kith_index_mode mode) {
    kith_error err;
    kith_index *index = NULL;
    assert_ok(kith_index_open(path, mode, &index, &err), &err);
    return index;
}

static inline kith_index_info made_info(const kith_index *index) {
    kith_index_info info = {0};
    kith_index_info_get(index, &info);
    return info;
}

/* One number for all that can be asked of an index: what is known of every item, its vector, and the hits of a few queries. */
static inline kith_status made_digest(const kith_index *index, uint64_t *ret_digest, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n_excluded = made_info(index).n_excluded;
    uint64_t sum = ki_checksum(&n_excluded, sizeof n_excluded, 0);
    int64_t *ids = NULL, n = 0;
    float row[MADE_DIM], query[3 * MADE_DIM];
    kith_hits hits = {0};
    status = kith_index_ids(index, "not label = gull or id >= 0 and not path = x", &ids, &n, err);
    for (int64_t i = 0; i < n && status == KITH_OK; i++) {
        kith_index_item item = {0};
        status = kith_index_item_get(index, ids[i], &item, err);
        if (status != KITH_OK) break;
        sum = ki_checksum(&item.id, sizeof item.id, sum);
        sum = ki_checksum(&item.bytes, sizeof item.bytes, sum);
        if (item.path) sum = ki_checksum(item.path, strlen(item.path), sum);
        if (item.label) sum = ki_checksum(item.label, strlen(item.label), sum);
        if (item.values[0].type == KITH_VALUE_INT)
            sum = ki_checksum(&item.values[0].integer, sizeof(int64_t), sum);
        if (item.values[2].type == KITH_VALUE_TEXT)
            sum = ki_checksum(item.values[2].text, strlen(item.values[2].text), sum);
        kith_index_item_release(&item);
        status = kith_index_vectors(index, &ids[i], 1, row, err);
        sum = ki_checksum(row, sizeof row, sum);
    }
    for (int i = 0; i < 3; i++) made_row(i * 17, query + i * MADE_DIM);
    const kith_array asked = {KITH_F32, 2, {3, MADE_DIM}, query};
    KITH_OPTIONS(kith_search_options, options);
    for (int exact = 0; exact < 2 && status == KITH_OK; exact++) {
        options.exact = exact;
        status = kith_index_search(index, &asked, &options, &hits, err);
        if (status == KITH_OK && hits.begin[3] > 0)
            sum = ki_checksum(hits.hits, (size_t)hits.begin[3] * sizeof *hits.hits, sum);
        kith_hits_release(&hits);
    }
    kith_ids_free(ids);
    *ret_digest = sum;
    return status;
}

/* A path in the test's folder, that nothing is at. */
static inline const char *made_path(const char *name) {
    static char path[4096];
    char output[4096];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    assert_int_equal(
        testing_run(output, sizeof output, "chmod -R u+rwX '%s' 2>/dev/null; rm -rf '%s'", path, path), 0);
    return path;
}

#endif
