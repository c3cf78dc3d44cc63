// usearch (its C interface) on the rows of search_rows, 16 links and 200 candidates when adding, as hnswlib: search_usearch PREFIX
// [RECALL]. Raises the candidates of a search until the recall is reached.
#include <omp.h>
#include <usearch.h>

#include "search_files.h"

enum { ROUNDS = 7 };

int main(int argc, char **argv) {
    if (argc < 2) bench_stop("usage: search_usearch PREFIX [RECALL]");
    const bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const bench_rows truth = bench_read(argv[1], "truth", sizeof(int64_t));
    const double wanted = argc > 2 ? atof(argv[2]) : 0.95;
    const float *x = (const float *)rows.data, *q = (const float *)queries.data;
    usearch_error_t error = NULL;
    usearch_init_options_t options = {};
    options.metric_kind = usearch_metric_ip_k;
    options.quantization = usearch_scalar_f32_k;
    options.dimensions = (size_t)rows.width;
    options.connectivity = 16;
    options.expansion_add = 200;
    usearch_index_t index = usearch_init(&options, &error);
    if (error) bench_stop(error);
    usearch_reserve(index, (size_t)rows.n, &error);
    const double began = bench_now(), cpu = bench_cpu();
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t i = 0; i < rows.n; i++) {
        usearch_error_t failed = NULL;
        usearch_add(index, (usearch_key_t)i, x + i * rows.width, usearch_scalar_f32_k, &failed);
        if (failed) bench_stop(failed);
    }
    printf(
        "usearch: built in %.1f s on %d threads (processor time a thread: %.1f s), %.1f bytes a row with the "
        "rows\n",
        bench_now() - began, omp_get_max_threads(), (bench_cpu() - cpu) / omp_get_max_threads(),
        (double)usearch_memory_usage(index, &error) / (double)rows.n);
    int64_t *found = (int64_t *)malloc((size_t)(queries.n * BENCH_K) * sizeof *found);
    auto ask = [&](int64_t i) {
        usearch_error_t failed = NULL;
        usearch_key_t keys[BENCH_K];
        usearch_distance_t distances[BENCH_K];
        const size_t n = usearch_search(index, q + i * queries.width, usearch_scalar_f32_k, BENCH_K, keys,
                                        distances, &failed);
        for (size_t j = 0; j < BENCH_K; j++) found[i * BENCH_K + (int64_t)j] = j < n ? (int64_t)keys[j] : -1;
    };
    for (size_t expansion = 10; expansion < 4096; expansion += expansion < 40 ? 5 : expansion / 8) {
        usearch_change_expansion_search(index, expansion, &error);
        for (int64_t i = 0; i < queries.n; i++) ask(i);
        const double recall = bench_recall(&truth, found);
        if (recall < wanted) continue;
        bench_speed one = {0, 0}, many = {0, 0};
        for (int round = 0; round < ROUNDS; round++) {
            double wall = bench_now(), used = bench_cpu();
            for (int64_t i = 0; i < queries.n; i++) ask(i);
            bench_round(&one, queries.n, bench_now() - wall, bench_cpu() - used, 1);
            wall = bench_now(), used = bench_cpu();
#pragma omp parallel for schedule(dynamic, 16)
            for (int64_t i = 0; i < queries.n; i++) ask(i);
            bench_round(&many, queries.n, bench_now() - wall, bench_cpu() - used, omp_get_max_threads());
        }
        printf(
            "usearch: expansion %zu: recall %.4f, one at a time %.0f/s (processor time: %.0f), all at once "
            "%.0f/s (%.0f)\n",
            expansion, recall, one.wall, one.cpu, many.wall, many.cpu);
        return 0;
    }
    printf("usearch: recall %.2f was not reached with 4096 candidates\n", wanted);
    return 0;
}
