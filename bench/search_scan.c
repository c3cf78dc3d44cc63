/* The compressed scan on the rows of search_rows: search_scan PREFIX [BITS [LISTS [RECALL…]]]
 * Prints build time, memory, and for each recall wanted what ki_scan_tune chose, what was reached on the queries, and queries a
 * second: one at a time on one thread, and all at once on all threads. Each is the best of several rounds. */
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "bench/search_files.h"
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

/* A coder and the codes of all rows. With SEARCH_INDEX=FILE they are kept there, and read when it is there already. */
typedef struct built {
    ki_coder *coder;
    uint8_t *bytes;
    ki_codes codes;
} built;

static bool read_index(const char *path, int64_t n, built *b) {
    kith_error err;
    int64_t n_coder = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    if (fread(&n_coder, sizeof n_coder, 1, file) != 1) bench_stop("SEARCH_INDEX is cut short");
    char *coder = ki_alloc((size_t)n_coder, 1);
    if (fread(coder, 1, (size_t)n_coder, file) != (size_t)n_coder) bench_stop("SEARCH_INDEX is cut short");
    check(ki_coder_from_bytes(coder, (size_t)n_coder, &b->coder, &err), &err);
    const size_t n_codes = ki_codes_bytes(b->coder, n);
    b->bytes = ki_alloc(n_codes, 1);
    if (fread(b->bytes, 1, n_codes, file) != n_codes) bench_stop("SEARCH_INDEX is cut short");
    ki_free(coder);
    fclose(file);
    return true;
}

static void write_index(const char *path, int64_t n, const built *b) {
    ki_buffer coder = {0};
    ki_coder_to_bytes(b->coder, &coder);
    const int64_t n_coder = (int64_t)coder.n;
    const size_t n_codes = ki_codes_bytes(b->coder, n);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(&n_coder, sizeof n_coder, 1, file) != 1 ||
        fwrite(coder.data, 1, coder.n, file) != coder.n || fwrite(b->bytes, 1, n_codes, file) != n_codes ||
        fclose(file) != 0)
        bench_stop("SEARCH_INDEX could not be written");
    ki_buffer_release(&coder);
}

static built build(const ki_row_source *rows, int bits, int64_t n_lists) {
    kith_error err;
    built b = {0};
    const char *kept = getenv("SEARCH_INDEX");
    const ki_coder_options options = {.bits = bits, .n_lists = n_lists};
    if (!kept || !read_index(kept, rows->n, &b)) {
        const double began = bench_now(), cpu = bench_cpu();
        check(ki_coder_fit(rows, &options, &b.coder, &err), &err);
        const double fit = bench_now() - began;
        check(ki_codes_make(b.coder, rows, 0, rows->n, NULL, &b.bytes, &err), &err);
        printf(
            "scan: built in %.1f s on %d threads, of which %.1f s for lists (processor time a thread: %.1f "
            "s)\n",
            bench_now() - began, ki_threads(), fit, (bench_cpu() - cpu) / ki_threads());
        if (kept) write_index(kept, rows->n, &b);
    }
    check(ki_codes_open(b.coder, b.bytes, ki_codes_bytes(b.coder, rows->n), &b.codes, &err), &err);
    return b;
}

static void print(const ki_scan_set *set, const bench_rows *queries, const bench_rows *truth,
                  const ki_scan_options *options) {
    const measured m = measure(set, queries, truth, options);
    printf(
        "scan: %lld probes, %lld looks: recall %.4f, one at a time %.0f/s (processor time: %.0f), all at "
        "once %.0f/s "
        "(%.0f)\n",
        (long long)options->effort.n_probes, (long long)options->effort.n_looks, m.recall, m.one.wall,
        m.one.cpu, m.many.wall, m.many.cpu);
    fflush(stdout);
}

int main(int argc, char **argv) {
    kith_error err = {0};
    if (argc < 2) bench_stop("usage: search_scan PREFIX [BITS [LISTS [RECALL…]]]");
    const bench_rows rows = bench_read(argv[1], "rows", sizeof(float));
    const bench_rows queries = bench_read(argv[1], "queries", sizeof(float));
    const bench_rows truth = bench_read(argv[1], "truth", sizeof(int64_t));
    const ki_row_source source = {.n = rows.n, .dim = rows.width, .data = rows.data};
    built b = build(&source, argc > 2 ? atoi(argv[2]) : 1, argc > 3 ? atoll(argv[3]) : 0);
    const size_t memory = ki_codes_bytes(b.coder, rows.n) + ki_coder_memory(b.coder);
    printf("scan: %lld rows of %lld, %d bits, %lld lists, %.1f bytes a row\n", (long long)rows.n,
           (long long)rows.width, ki_coder_bits(b.coder), (long long)ki_coder_lists(b.coder),
           (double)memory / (double)rows.n);
    const ki_scan_segment segment = {&b.codes, 0, rows.n};
    const ki_scan_set set = {.coder = b.coder, .segments = &segment, .n_segments = 1, .rows = source};
    /* SEARCH_EFFORT="PROBES,LOOKS …": these instead of what tuning finds. */
    const char *efforts = getenv("SEARCH_EFFORT");
    for (int used = 0; efforts && *efforts; efforts += used) {
        long long probes = 0, looks = 0;
        if (sscanf(efforts, "%lld,%lld %n", &probes, &looks, &used) != 2)
            bench_stop("SEARCH_EFFORT=\"PROBES,LOOKS …\"");
        print(&set, &queries, &truth, &(ki_scan_options){.effort = {probes, looks, BENCH_K, 0}});
    }
    for (int i = 4; i < argc; i++) {
        const ki_scan_tune_options wanted = {.recall = atof(argv[i])};
        ki_scan_options o = {0};
        const double began = bench_now();
        check(ki_scan_tune(&set, &wanted, &o.effort, &err), &err);
        printf("scan: tuned for %.3f in %.1f s: %.4f on own rows\n", wanted.recall, bench_now() - began,
               o.effort.recall);
        print(&set, &queries, &truth, &o);
    }
    ki_free(b.bytes);
    ki_coder_free(b.coder);
    return 0;
}
