/* Filters and churn on the rows of search_rows: search_churn PREFIX [RECALL]
 * Filters keep a random half, tenth, hundredth and thousandth of the rows. Churn deletes every second row of the first 77 % and
 * adds the rest as a second segment; a fresh index of what is left is the measure. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/search_files.h"
#include "search/scan/scan.h"

static void check(kith_status status, const kith_error *err) {
    if (status != KITH_OK) bench_stop(err->message);
}

typedef struct segment {
    uint8_t *bytes;
    ki_codes codes;
} segment;

static segment encode(const ki_coder *coder, const ki_row_source *rows, int64_t first, int64_t n) {
    kith_error err;
    segment s = {0};
    check(ki_codes_make(coder, rows, first, n, NULL, &s.bytes, &err), &err);
    check(ki_codes_open(coder, s.bytes, ki_codes_bytes(coder, n), &s.codes, &err), &err);
    return s;
}

/* The exact lists of the queries among the allowed rows: exact search of a copy of them. */
static void truth_of(const bench_rows *rows, const bench_rows *queries, const uint64_t *allowed,
                     int64_t *ret) {
    kith_error err;
    int64_t n = 0, *number = ki_alloc((size_t)rows->n, sizeof *number);
    float *x = ki_alloc((size_t)(rows->n * rows->width), sizeof *x);
    for (int64_t i = 0; i < rows->n; i++) {
        if (!(allowed[i / 64] >> (i % 64) & 1)) continue;
        memcpy(x + n * rows->width, (const float *)rows->data + i * rows->width,
               (size_t)rows->width * sizeof *x);
        number[n++] = i;
    }
    const kith_array here = {.dtype = KITH_F32, .n_dims = 2, .dim = {n, rows->width}, .data = x};
    const kith_array asked = {
        .dtype = KITH_F32, .n_dims = 2, .dim = {queries->n, queries->width}, .data = queries->data};
    kith_gallery *gallery = NULL;
    kith_neighbor *found = ki_alloc((size_t)(queries->n * BENCH_K), sizeof *found);
    check(kith_gallery_new(&here, NULL, &gallery, &err), &err);
    check(kith_gallery_search(gallery, &asked, NULL, BENCH_K, found, &err), &err);
    for (int64_t i = 0; i < queries->n * BENCH_K; i++)
        ret[i] = found[i].index < 0 ? -1 : number[found[i].index];
    kith_gallery_free(gallery);
    ki_free(found);
    ki_free(number);
    ki_free(x);
}

static void print(const char *what, const ki_scan_set *set, const bench_rows *queries, const int64_t *wanted,
                  const ki_scan_options *options) {
    kith_error err;
    const int64_t n = queries->n;
    kith_neighbor *found = ki_alloc((size_t)(n * BENCH_K), sizeof *found);
    int64_t *index = ki_alloc((size_t)(n * BENCH_K), sizeof *index);
    bench_speed one = {0};
    for (int round = 0; round < 2; round++) {
        const double wall = bench_now(), cpu = bench_cpu();
        for (int64_t i = 0; i < n; i++)
            check(ki_scan_search(set, (const float *)queries->data + i * queries->width, 1, BENCH_K, options,
                                 found + i * BENCH_K, &err),
                  &err);
        bench_round(&one, n, bench_now() - wall, bench_cpu() - cpu, 1);
    }
    int64_t n_short = 0;
    for (int64_t i = 0; i < n * BENCH_K; i++) {
        index[i] = found[i].index;
        n_short += index[i] < 0 && wanted[i] >= 0;
    }
    const bench_rows truth = {n, BENCH_K, (void *)(uintptr_t)wanted};
    printf("%s: recall %.4f, %lld answers missing, one at a time %.0f/s (processor time: %.0f)\n", what,
           bench_recall(&truth, index), (long long)n_short, one.wall, one.cpu);
    fflush(stdout);
    ki_free(found);
    ki_free(index);
}

int main(int argc, char **argv) {
    kith_error err = {0};
    if (argc < 2) bench_stop("usage: search_churn PREFIX [RECALL]");
    const bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const int64_t n = rows.n, n_old = n * 10 / 13;
    const ki_row_source source = {.n = n, .dim = rows.width, .data = rows.data};
    const ki_row_source old = {.n = n_old, .dim = rows.width, .data = rows.data};
    const ki_scan_tune_options wanted = {.recall = argc > 2 ? atof(argv[2]) : 0.99};
    uint64_t *allowed = ki_zalloc((size_t)n / 64 + 1, sizeof *allowed);
    int64_t *truth = ki_alloc((size_t)(queries.n * BENCH_K), sizeof *truth);
    ki_coder *coder = NULL;

    /* Fitted to the old rows alone, as an index that grew. */
    check(ki_coder_fit(&old, &(ki_coder_options){0}, &coder, &err), &err);
    segment parts[2] = {encode(coder, &source, 0, n_old), encode(coder, &source, n_old, n - n_old)};
    const ki_scan_segment segments[2] = {{&parts[0].codes, 0, n_old}, {&parts[1].codes, n_old, n - n_old}};
    const ki_scan_set set = {.coder = coder, .segments = segments, .n_segments = 2, .rows = source};
    ki_scan_options options = {.allowed = allowed, .n_allowed = -1};
    check(ki_scan_tune(&set, &wanted, &options.effort, &err), &err);
    printf("tuned to %.4f: %lld probes, %lld looks\n", options.effort.recall,
           (long long)options.effort.n_probes, (long long)options.effort.n_looks);
    for (int part = 0; part < 4; part++) {
        static const double KEPT[] = {0.5, 0.1, 0.01, 0.001};
        char what[64];
        ki_rng rng = ki_rng_at(2, KI_RNG_TEST, (uint32_t)part, 0);
        memset(allowed, 0, ((size_t)n / 64 + 1) * sizeof *allowed);
        for (int64_t i = 0; i < n; i++) {
            if (ki_rng_double(&rng) < KEPT[part]) allowed[i / 64] |= UINT64_C(1) << (i % 64);
        }
        truth_of(&rows, &queries, allowed, truth);
        snprintf(what, sizeof what, "filter that keeps %g %%", 100 * KEPT[part]);
        print(what, &set, &queries, truth, &options);
    }

    memset(allowed, 0, ((size_t)n / 64 + 1) * sizeof *allowed);
    int64_t n_live = 0, *live = ki_alloc((size_t)n, sizeof *live);
    float *x = ki_alloc((size_t)(n * rows.width), sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        if (i < n_old && i % 2) continue;
        allowed[i / 64] |= UINT64_C(1) << (i % 64);
        memcpy(x + n_live * rows.width, (const float *)rows.data + i * rows.width,
               (size_t)rows.width * sizeof *x);
        live[n_live++] = i;
    }
    truth_of(&rows, &queries, allowed, truth);
    print("half deleted, 30 % added", &set, &queries, truth, &options);
    /* Every live row as a query, many at a time. */
    int64_t n_lost = 0;
    kith_neighbor *own = ki_alloc((size_t)n_live, sizeof *own);
    check(ki_scan_search(&set, x, n_live, 1, &options, own, &err), &err);
    /* Another row with the same values is as good. */
    for (int64_t i = 0; i < n_live; i++)
        n_lost += own[i].index != live[i] && memcmp((const float *)rows.data + own[i].index * rows.width,
                                                    x + i * rows.width, (size_t)rows.width * sizeof *x) != 0;
    printf("%lld of %lld live rows do not find themselves\n", (long long)n_lost, (long long)n_live);

    ki_coder *anew = NULL;
    const ki_row_source left = {.n = n_live, .dim = rows.width, .data = x};
    check(ki_coder_fit(&left, &(ki_coder_options){0}, &anew, &err), &err);
    segment fresh = encode(anew, &left, 0, n_live);
    const ki_scan_segment whole = {&fresh.codes, 0, n_live};
    const ki_scan_set fresh_set = {.coder = anew, .segments = &whole, .n_segments = 1, .rows = left};
    const ki_scan_options plain = {.effort = options.effort};
    /* The truth in the numbers of the copy. */
    int64_t *place = ki_alloc((size_t)n, sizeof *place);
    for (int64_t j = 0; j < n_live; j++) place[live[j]] = j;
    for (int64_t i = 0; i < queries.n * BENCH_K; i++) truth[i] = truth[i] < 0 ? -1 : place[truth[i]];
    print("a fresh index of the same rows", &fresh_set, &queries, truth, &plain);
    return 0;
}
