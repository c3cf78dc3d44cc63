/* The compressed scan on the rows of search_rows: search_scan PREFIX [BITS [LISTS [RECALL…]]]
 * Prints build time, memory, and for each recall wanted what ki_scan_tune chose, what was reached on the queries, and queries a
 * second: one at a time on one thread, and all at once on all threads. Each is the best of several rounds. */
#include <string.h>

#include "bench/search_files.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "search/scan/scan.h"

enum { ROUNDS = 7 };

static void check(kith_status status, const kith_error *err) {
    if (status != KITH_OK) bench_stop(err->message);
}

typedef struct measured {
    bench_speed one, many;
    double recall;
} measured;

static measured measure(const ki_scan_set *set, const bench_rows *queries, const bench_rows *truth,
                        const ki_scan_options *options) {
    kith_error err;
    measured best = {0};
    const int64_t n = queries->n;
    kith_neighbor *found = ki_alloc((size_t)(n * BENCH_K), sizeof *found);
    int64_t *index = ki_alloc((size_t)(n * BENCH_K), sizeof *index);
    for (int round = 0; round < ROUNDS; round++) {
        double wall = bench_now(), cpu = bench_cpu();
        for (int64_t i = 0; i < n; i++)
            check(ki_scan_search(set, (const float *)queries->data + i * queries->width, 1, BENCH_K, options,
                                 found + i * BENCH_K, &err),
                  &err);
        bench_round(&best.one, n, bench_now() - wall, bench_cpu() - cpu, 1);
        wall = bench_now(), cpu = bench_cpu();
        check(ki_scan_search(set, queries->data, n, BENCH_K, options, found, &err), &err);
        bench_round(&best.many, n, bench_now() - wall, bench_cpu() - cpu, ki_threads());
    }
    for (int64_t i = 0; i < n * BENCH_K; i++) index[i] = found[i].index;
    best.recall = bench_recall(truth, index);
    ki_free(found);
    ki_free(index);
    return best;
}

int main(int argc, char **argv) {
    kith_error err = {0};
    if (argc < 2) bench_stop("usage: search_scan PREFIX [BITS [LISTS [RECALL…]]]");
    const bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const bench_rows truth = bench_read(argv[1], "truth", sizeof(int64_t));
    const ki_row_source source = {.n = rows.n, .dim = rows.width, .data = rows.data};
    const ki_coder_options options = {.bits = argc > 2 ? atoi(argv[2]) : 1,
                                      .n_lists = argc > 3 ? atoll(argv[3]) : 0};
    ki_coder *coder = NULL;
    uint8_t *bytes = NULL;
    ki_codes codes;
    double began = bench_now();
    check(ki_coder_fit(&source, &options, &coder, &err), &err);
    const double fit = bench_now() - began;
    began = bench_now();
    check(ki_codes_make(coder, &source, 0, rows.n, &bytes, &err), &err);
    const double make = bench_now() - began;
    check(ki_codes_open(coder, bytes, ki_codes_bytes(coder, rows.n), &codes, &err), &err);
    const size_t memory = ki_codes_bytes(coder, rows.n) + ki_coder_memory(coder);
    printf(
        "scan: %lld rows of %lld, %d bits, %lld lists: fit %.1f s + codes %.1f s = %.1f s on %d threads, "
        "%.1f bytes a row\n",
        (long long)rows.n, (long long)rows.width, ki_coder_bits(coder), (long long)ki_coder_lists(coder), fit,
        make, fit + make, ki_threads(), (double)memory / (double)rows.n);
    const ki_scan_segment segment = {&codes, 0, rows.n};
    const ki_scan_set set = {.coder = coder, .segments = &segment, .n_segments = 1, .rows = source};
    const char *quick = getenv("SEARCH_EFFORT"); /* PROBES,LOOKS instead of tuning */
    for (int i = 4; i < argc || i == 4; i++) {
        const ki_scan_tune_options wanted = {.recall = i < argc ? atof(argv[i]) : 0.95};
        ki_scan_options o = {0};
        began = bench_now();
        if (quick) {
            long long p, l;
            if (sscanf(quick, "%lld,%lld", &p, &l) != 2) bench_stop("SEARCH_EFFORT=PROBES,LOOKS");
            o.effort = (ki_scan_effort){.n_probes = p, .n_looks = l, .k = BENCH_K};
        } else {
            check(ki_scan_tune(&set, &wanted, &o.effort, &err), &err);
        }
        const double tune = bench_now() - began;
        const measured m = measure(&set, &queries, &truth, &o);
        printf(
            "scan: wanted %.3f: %lld probes, %lld looks (tuned in %.1f s to %.4f); recall %.4f, one at a "
            "time %.0f/s (processor time: %.0f), all at once %.0f/s (%.0f)\n",
            wanted.recall, (long long)o.effort.n_probes, (long long)o.effort.n_looks, tune, o.effort.recall,
            m.recall, m.one.wall, m.one.cpu, m.many.wall, m.many.cpu);
        fflush(stdout);
    }
    ki_free(bytes);
    ki_coder_free(coder);
    return 0;
}
