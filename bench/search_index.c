/* An index on disk over the rows of search_rows: search_index PREFIX FOLDER [RECALL]
 * What a user gets: codes in memory, vectors read from files for the second look. Prints build time and memory, what recall the
 * index promises and what it reaches on the queries, and queries a second: one at a time on one thread, and all at once on all
 * threads, the best of several rounds. FOLDER must not be there. */
#include <kith/kith.h>
#include <sys/resource.h>

#include "bench/search_asked.h"

enum { ROUNDS = 7 };

int main(int argc, char **argv) {
    if (argc < 3) bench_stop("usage: search_index PREFIX FOLDER [RECALL]");
    bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const bench_rows truth = bench_read(argv[1], "truth", sizeof(int64_t));
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = rows.width;
    options.recall = argc > 3 ? atof(argv[3]) : 0.95;
    options.exact_numbers = 0;
    double wall = bench_now(), cpu = bench_cpu();
    check(kith_index_create(argv[2], &options, &index, &err), &err);
    const kith_array all = {.dtype = KITH_F32, .n_dims = 2, .dim = {rows.n, rows.width}, .data = rows.data};
    check(kith_index_add(index, &all, NULL, NULL, &err), &err);
    check(kith_index_commit(index, NULL, &err), &err);
    const double took = bench_now() - wall, used = bench_cpu() - cpu;
    kith_index_free(index);
    free(rows.data);

    kith_index_info info;
    check(kith_index_open(argv[2], KITH_INDEX_READ, &index, &err), &err);
    kith_index_info_get(index, &info);
    printf(
        "index: built in %.1f s on %lld threads (processor time a thread: %.1f s), %.1f bytes a row of "
        "codes, %lld bits, "
        "%lld lists, promises %.4f\n",
        took, (long long)kith_threads(), used / (double)kith_threads(), info.bytes_per_row,
        (long long)info.bits, (long long)info.n_lists, info.recall);
    int64_t *found = malloc((size_t)(queries.n * BENCH_K) * sizeof *found);
    if (!found) bench_stop("no memory");
    bench_speed one = {0, 0}, many = {0, 0};
    ask_index(index, &queries, 0, queries.n, 0, false, found); /* reads the codes */
    for (int round = 0; round < ROUNDS; round++) {
        wall = bench_now(), cpu = bench_cpu();
        for (int64_t i = 0; i < queries.n; i++) ask_index(index, &queries, i, 1, 1, false, found);
        bench_round(&one, queries.n, bench_now() - wall, bench_cpu() - cpu, 1);
        wall = bench_now(), cpu = bench_cpu();
        ask_index(index, &queries, 0, queries.n, 0, false, found);
        bench_round(&many, queries.n, bench_now() - wall, bench_cpu() - cpu, (int)kith_threads());
    }
    printf("index: recall %.4f, one at a time %.0f/s (processor time: %.0f), all at once %.0f/s (%.0f)\n",
           bench_recall(&truth, found), one.wall, one.cpu, many.wall, many.cpu);
    kith_index_free(index);
    free(found);
    return 0;
}
