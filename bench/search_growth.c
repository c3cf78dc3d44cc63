/* An index of N rows of 64 values, built in parts: search_growth FOLDER N [PART]
 *
 * Rows lie in clusters of clusters, a row follows from its number, and queries are further rows, so that any number of them needs no
 * file. Prints one line of columns (search_growth with no argument prints their names): time and memory of the build, bytes
 * on disk and in memory, recall@10 against the exact search of the same index, and queries a second. FOLDER must not be there. */
#include <kith/kith.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/search_asked.h"

enum { DIM = 64, CLUSTER = 64, TOPS = 1000, N_QUERIES = 1000, N_TRUTH = 100, PIECE = 1 << 16 };

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* Nearly normal, by counting random bits: mean 0, variance 1. */
static float normal(uint64_t stream, uint64_t number, int k) {
    return 0.25F * ((float)__builtin_popcountll(mixed(mixed(number * 64 + (uint64_t)k) ^ stream)) - 32);
}

/* A row of a cluster; which one, stream and number say. */
static void make_row(uint64_t cluster, uint64_t stream, uint64_t number, float *row) {
    const uint64_t top = mixed(cluster) % TOPS;
    double length = 0;
    for (int k = 0; k < DIM; k++) {
        row[k] = normal(1, top, k) + 0.6F * normal(2, cluster, k) + 0.4F * normal(stream, number, k);
        length += (double)row[k] * row[k];
    }
    for (int k = 0; k < DIM; k++) row[k] = (float)(row[k] / sqrt(length));
}

static void make_rows(int64_t first, int64_t n, float *rows) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++)
        make_row((uint64_t)(first + i) / CLUSTER, 3, (uint64_t)(first + i), rows + i * DIM);
}

static void make_queries(int64_t n_rows, float *queries) {
    for (uint64_t i = 0; i < N_QUERIES; i++)
        make_row(mixed(i + 77) % (uint64_t)(n_rows / CLUSTER), 4, i, queries + i * DIM);
}

static kith_array array_of(float *rows, int64_t n) {
    return (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {n, DIM}, .data = rows};
}

static kith_hits search(const kith_index *index, float *query, int64_t n, bool exact) {
    kith_error err;
    kith_hits hits;
    KITH_OPTIONS(kith_search_options, options);
    options.k = BENCH_K;
    options.exact = exact;
    options.n_threads = n == 1;
    const kith_array rows = array_of(query, n);
    check(kith_index_search(index, &rows, &options, &hits, &err), &err);
    return hits;
}

static double recall_of(const kith_index *index, float *queries) {
    int64_t n_found = 0;
    kith_hits truth = search(index, queries, N_TRUTH, true), found = search(index, queries, N_TRUTH, false);
    for (int64_t i = 0; i < N_TRUTH; i++) {
        for (int64_t a = truth.begin[i]; a < truth.begin[i + 1]; a++)
            for (int64_t b = found.begin[i]; b < found.begin[i + 1]; b++)
                n_found += truth.hits[a].id == found.hits[b].id;
    }
    kith_hits_release(&truth);
    kith_hits_release(&found);
    return (double)n_found / (N_TRUTH * BENCH_K);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t peak_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void build(const char *folder, int64_t n, int64_t part) {
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = DIM;
    options.recall = 0.95;
    check(kith_index_create(folder, &options, &index, &err), &err);
    float *rows = malloc(sizeof *rows * PIECE * DIM);
    if (!rows) bench_stop("no memory");
    for (int64_t first = 0, rest; first < n; first += rest) {
        rest = n - first < PIECE ? n - first : PIECE;
        if (part - first % part < rest) rest = part - first % part;
        make_rows(first, rest, rows);
        const kith_array added = array_of(rows, rest);
        check(kith_index_add(index, &added, NULL, NULL, &err), &err);
        if ((first + rest) % part == 0 || first + rest == n) {
            check(kith_index_commit(index, NULL, &err), &err);
            fprintf(stderr, "%lld rows, %.0f s, at most %lld MiB\n", (long long)(first + rest), bench_now(),
                    (long long)peak_mib());
        }
    }
    free(rows);
    kith_index_free(index);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        puts(
            "rows\tbuild_s\tbuild_cpu_s\tbuild_mib\tdisk_bytes_row\tcode_bytes_"
            "row\ttier\tbits\tlists\trecall_own\trecall\t"
            "first_s\tp50_ms\tp99_ms\tqps_one\tqps_many\tsearch_mib");
        return argc > 1;
    }
    const int64_t n = atoll(argv[2]), part = argc > 3 ? atoll(argv[3]) : n;
    if (n < N_QUERIES || part < 1) bench_stop("usage: search_growth FOLDER N [PART], N from 1000");
    kith_error err;
    double began = bench_now(), cpu = bench_cpu();
    build(argv[1], n, part);
    printf("%lld\t%.1f\t%.1f\t%lld", (long long)n, bench_now() - began, bench_cpu() - cpu,
           (long long)peak_mib());
    fflush(stdout);

    kith_index *index = NULL;
    kith_index_info info;
    check(kith_index_open(argv[1], KITH_INDEX_READ, &index, &err), &err);
    kith_index_info_get(index, &info);
    float *queries = malloc(sizeof *queries * N_QUERIES * DIM);
    double took[N_QUERIES], sum = 0;
    if (!queries) bench_stop("no memory");
    make_queries(n, queries);
    began = bench_now();
    kith_hits hits = search(index, queries, 1, false);
    const double first = bench_now() - began;
    kith_hits_release(&hits);
    for (int64_t i = 0; i < N_QUERIES; i++) {
        began = bench_now();
        hits = search(index, queries + i * DIM, 1, false);
        took[i] = bench_now() - began;
        sum += took[i];
        kith_hits_release(&hits);
    }
    qsort(took, N_QUERIES, sizeof *took, compare);
    began = bench_now();
    hits = search(index, queries, N_QUERIES, false);
    const double many = bench_now() - began;
    kith_hits_release(&hits);
    const int64_t searching = peak_mib(); /* of the whole process: of the build, if that took more */
    printf("\t%.1f\t%.1f\t%s\t%lld\t%lld\t%.4f\t%.4f\t%.2f\t%.3f\t%.3f\t%.0f\t%.0f\t%lld\n",
           (double)info.file_bytes / (double)n, info.bytes_per_row, kith_index_tier_name(info.tier),
           (long long)info.bits, (long long)info.n_lists, info.recall, recall_of(index, queries), first,
           1e3 * took[N_QUERIES / 2], 1e3 * took[N_QUERIES * 99 / 100], N_QUERIES / sum, N_QUERIES / many,
           (long long)searching);
    kith_index_free(index);
    free(queries);
    return 0;
}
