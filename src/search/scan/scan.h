/* Search in compressed rows with an exact second look.
 *
 * A query visits the lists with the nearest centroids. Codes give an estimate of each row's score; the rows with the best
 * estimates are read and scored in float64 from the given values, as exact search does it (knn/). So scores are always
 * exact, and what can be missing from a list is a row that was not visited or not looked at.
 *
 * Answers are the same for any number of threads, for every instruction set, and for one query at a time or many. */
#ifndef KI_SEARCH_SCAN_H
#define KI_SEARCH_SCAN_H

#include "search/scan/codes.h"

/* Rows first … first + n - 1 of the source. `codes` (of n rows) may be NULL for a few rows that have none yet: each of them
 * that is allowed is looked at in every search. */
typedef struct ki_scan_segment {
    const ki_codes *codes;
    int64_t first, n;
} ki_scan_segment;

/* What is searched: borrowed. The coder may be one of the first values of the rows alone: then estimates are those of short vectors, which
 * find candidates, and scores are of whole rows (not for ki_scan_range, whose bounds are of whole rows). Segments do not overlap; rows of the source that are in none are not found. */
typedef struct ki_scan_set {
    const ki_coder *coder;
    const ki_scan_segment *segments;
    int64_t n_segments;
    ki_row_source rows; /* n is less than 2^31 */
} ki_scan_set;

/* How much work a search takes on; from ki_scan_tune, or {0} for a guess that was not measured. */
typedef struct ki_scan_effort {
    int64_t n_probes; /* lists that a query visits */
    int64_t n_looks;  /* rows that it looks at exactly */
    int64_t k;        /* neighbours this was measured for; a search for more takes more */
    double recall;    /* measured; 0: it was not */
} ki_scan_effort;

typedef struct ki_scan_options {
    ki_scan_effort effort;
    /* Rows that may be found: bit i % 64 of word i / 64 is row i of the source. NULL: all. Deleted rows and rows that a
     * filter leaves out have no bit. As long as there are k allowed rows, k are returned: a query goes on to further lists
     * until it has met as many allowed rows as it would have met rows without a bitmap, and few allowed rows are looked at
     * one and all. */
    const uint64_t *allowed;
    int64_t
        n_allowed; /* how many bits are set; -1 if not known (they are counted). Only read with `allowed` */
    /* [n]: the row that is the query itself and must not be found, or -1; may be NULL. */
    const int64_t *self;
} ki_scan_options;

/* The k nearest rows of n queries [n, dim]: ret_neighbors [n, k], as kith_gallery_search fills it (nearest first, ties by
 * lower row, the tail -1 and NaN). `index` is the row's number in the source. options NULL: all zeros. KITH_EINVAL for k < 1
 * or a source of another dim, KITH_ENUMERIC for a query that is not finite; errors of the source as they are. */
kith_status ki_scan_search(const ki_scan_set *set, const float *query, int64_t n, int64_t k,
                           const ki_scan_options *options, kith_neighbor *ret_neighbors, kith_error *err);

/* All rows of one query that score at least `score` (squared Euclidean: at most), nearest first, ties by lower row. Lists that
 * cannot have any are passed over by a proven bound, rows by an estimate that misses one in about 10^4. Effort is not
 * used. *ret_neighbors is given back with ki_free. */
kith_status ki_scan_range(const ki_scan_set *set, const float *query, double score,
                          const ki_scan_options *options, kith_neighbor **ret_neighbors, int64_t *ret_n,
                          kith_error *err);

typedef struct ki_scan_tune_options {
    double recall;    /* wanted; 0: 0.99 */
    int64_t k;        /* of how many neighbours; 0: 10 */
    int64_t n_sample; /* rows taken as queries; 0: 500 */
    uint64_t seed;
    const uint64_t *allowed; /* rows that are there; NULL: all */
    int64_t most_looks;      /* 0: 1000 */
} ki_scan_tune_options;

/* The least effort that finds the wanted part of the exact k nearest neighbours of a sample of the set's own rows (a row does
 * not count as its own neighbour). ret_effort->recall is what was measured: below the wanted recall only when most_looks
 * do not suffice with every list visited, which means that codes need more bits. Reads every row once. */
kith_status ki_scan_tune(const ki_scan_set *set, const ki_scan_tune_options *options,
                         ki_scan_effort *ret_effort, kith_error *err);

#endif
