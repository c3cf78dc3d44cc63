/* What the programs that ask an index share: stopping at an error, and a search of some of the queries. */
#ifndef BENCH_SEARCH_ASKED_H
#define BENCH_SEARCH_ASKED_H

#include <kith/kith.h>

#include "bench/search_files.h"

static inline void check(kith_status status, const kith_error *err) {
    if (status != KITH_OK) bench_stop(err->message);
}

/* Queries first … first + n - 1: their ids go to found [queries, BENCH_K]. */
static inline void ask_index(const kith_index *index, const bench_rows *queries, int64_t first, int64_t n,
                             int n_threads, bool exact, int64_t *found) {
    kith_error err;
    kith_hits hits;
    KITH_OPTIONS(kith_search_options, options);
    options.k = BENCH_K;
    options.n_threads = n_threads;
    options.exact = exact;
    const kith_array rows = {.dtype = KITH_F32,
                             .n_dims = 2,
                             .dim = {n, queries->width},
                             .data = (float *)queries->data + first * queries->width};
    check(kith_index_search(index, &rows, &options, &hits, &err), &err);
    for (int64_t i = 0; i < n * BENCH_K; i++) found[first * BENCH_K + i] = hits.hits[i].id;
    kith_hits_release(&hits);
}

#endif
