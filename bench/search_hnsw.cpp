// hnswlib on the rows of search_rows, M = 16 and efConstruction = 200: search_hnsw PREFIX [RECALL]
// Raises ef until the recall is reached; queries a second one at a time on one thread and all at once on all threads.
#include <hnswlib/hnswlib.h>
#include <omp.h>

#include <string>

#include "search_files.h"

enum { ROUNDS = 7 };

int main(int argc, char **argv) {
    if (argc < 2) bench_stop("usage: search_hnsw PREFIX [RECALL]");
    const bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const bench_rows truth = bench_read(argv[1], "truth", sizeof(int64_t));
    const double wanted = argc > 2 ? atof(argv[2]) : 0.95;
    const float *x = (const float *)rows.data, *q = (const float *)queries.data;
    const std::string file = std::string(argv[1]) + ".hnsw";
    hnswlib::InnerProductSpace space((size_t)rows.width);
    hnswlib::HierarchicalNSW<float> *index;
    if (FILE *there = fopen(file.c_str(), "rb")) { // built before: the time is beside it
        fclose(there);
        index = new hnswlib::HierarchicalNSW<float>(&space, file);
        if (FILE *said = fopen((file + ".txt").c_str(), "r")) {
            char line[200];
            if (fgets(line, sizeof line, said)) printf("%s", line);
            fclose(said);
        }
    } else {
        const double began = bench_now(), cpu = bench_cpu();
        index = new hnswlib::HierarchicalNSW<float>(&space, (size_t)rows.n, 16, 200);
        index->addPoint(x, 0);
#pragma omp parallel for schedule(dynamic, 64)
        for (int64_t i = 1; i < rows.n; i++) index->addPoint(x + i * rows.width, (size_t)i);
        const double took = bench_now() - began, used = (bench_cpu() - cpu) / omp_get_max_threads();
        index->saveIndex(file);
        char line[200];
        snprintf(line, sizeof line,
                 "hnswlib: built in %.1f s on %d threads (processor time a thread: %.1f s), %.1f bytes a row "
                 "with the rows\n",
                 took, omp_get_max_threads(), used, (double)(index->size_data_per_element_ + sizeof(void *)));
        if (FILE *said = fopen((file + ".txt").c_str(), "w")) {
            fputs(line, said);
            fclose(said);
        }
        fputs(line, stdout);
    }
    int64_t *found = (int64_t *)malloc((size_t)(queries.n * BENCH_K) * sizeof *found);
    auto ask = [&](int64_t i) {
        auto best = index->searchKnn(q + i * queries.width, BENCH_K);
        for (int64_t j = BENCH_K - 1; j >= 0; j--, best.pop())
            found[i * BENCH_K + j] = (int64_t)best.top().second;
    };
    for (size_t ef = 10; ef < 4096; ef += ef < 40 ? 5 : ef / 8) {
        index->setEf(ef);
        for (int64_t i = 0; i < queries.n; i++) ask(i);
        const double recall = bench_recall(&truth, found);
        if (recall < wanted) continue;
        bench_speed one = {0, 0}, many = {0, 0};
        for (int round = 0; round < ROUNDS; round++) {
            double wall = bench_now(), cpu = bench_cpu();
            for (int64_t i = 0; i < queries.n; i++) ask(i);
            bench_round(&one, queries.n, bench_now() - wall, bench_cpu() - cpu, 1);
            wall = bench_now(), cpu = bench_cpu();
#pragma omp parallel for schedule(dynamic, 16)
            for (int64_t i = 0; i < queries.n; i++) ask(i);
            bench_round(&many, queries.n, bench_now() - wall, bench_cpu() - cpu, omp_get_max_threads());
        }
        printf(
            "hnswlib: ef %zu: recall %.4f, one at a time %.0f/s (processor time: %.0f), all at once %.0f/s "
            "(%.0f)\n",
            ef, recall, one.wall, one.cpu, many.wall, many.cpu);
        return 0;
    }
    printf("hnswlib: recall %.2f was not reached with ef 4096\n", wanted);
    return 0;
}
