/* kith bench knn: how fast exact neighbours are found. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "kith/experimental/json.h"
#include "kith/knn.h"

typedef struct measured {
    int64_t n, n_query, dim, k;
    int64_t repeats;
    double prepare_seconds; /* the gallery, once */
    double seconds;         /* median search */
    double fastest;
    double gflops; /* as if every product were computed: 2 n_query n dim */
    double peak_bytes;
} measured;

static int compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static kith_status measure(const kith_array *gallery, const kith_array *query,
                           const kith_knn_options *options, measured *m, kith_error *err) {
    enum { MOST = 100 };
    double took[MOST];
    kith_gallery *g = NULL;
    double began = cli_seconds_now();
    kith_status status = kith_gallery_new(gallery, options, &g, err);
    if (status != KITH_OK) return status;
    m->prepare_seconds = cli_seconds_now() - began;
    m->n = gallery->dim[0];
    m->n_query = query ? query->dim[0] : m->n;
    m->dim = gallery->dim[1];
    kith_neighbor *found = NULL;
    if (m->k > 0 && m->n_query < INT64_MAX / 16 / m->k)
        found = malloc((size_t)(m->n_query * m->k) * sizeof *found + 1);
    if (!found) {
        *err = (kith_error){.status = KITH_ENOMEM};
        snprintf(err->message, sizeof err->message, "no memory for %lld lists of %lld neighbours",
                 (long long)m->n_query, (long long)m->k);
        kith_gallery_free(g);
        return KITH_ENOMEM;
    }
    if (m->repeats > MOST) m->repeats = MOST;
    for (int64_t i = 0; status == KITH_OK && i < m->repeats; i++) {
        began = cli_seconds_now();
        status = query ? kith_gallery_search(g, query, NULL, m->k, found, err)
                       : kith_gallery_self(g, m->k, found, err);
        took[i] = cli_seconds_now() - began;
    }
    free(found);
    kith_gallery_free(g);
    if (status != KITH_OK) return status;
    qsort(took, (size_t)m->repeats, sizeof *took, compare_double);
    m->seconds =
        m->repeats % 2 ? took[m->repeats / 2] : (took[m->repeats / 2 - 1] + took[m->repeats / 2]) / 2;
    m->fastest = took[0];
    m->gflops = 2e-9 * (double)m->n_query * (double)m->n * (double)m->dim / m->seconds;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    m->peak_bytes = 1024.0 * (double)usage.ru_maxrss;
    return KITH_OK;
}

static kith_status print_json(const measured *m, const kith_knn_options *options, kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
#define PUT(key, kind, value) kith_json_key(json, key), kith_json_##kind(json, value)
    PUT("bench", string, "knn");
    PUT("metric", string, kith_metric_name(options->metric));
    PUT("exact", bool, options->exact);
    PUT("device", string, options->device ? options->device : "cpu");
    PUT("n", int, m->n);
    PUT("queries", int, m->n_query);
    PUT("dim", int, m->dim);
    PUT("k", int, m->k);
    PUT("repeats", int, m->repeats);
    PUT("seconds", real, m->seconds);
    PUT("fastest_seconds", real, m->fastest);
    PUT("prepare_seconds", real, m->prepare_seconds);
    PUT("gflops", real, m->gflops);
    PUT("queries_per_second", real, (double)m->n_query / m->seconds);
    PUT("peak_bytes", real, m->peak_bytes);
#undef PUT
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static void print_text(const measured *m, const kith_knn_options *options) {
    printf("knn %s on %s: %lld queries in %lld x %lld, k = %lld, %lld searches\n",
           kith_metric_name(options->metric), options->device ? options->device : "cpu",
           (long long)m->n_query, (long long)m->n, (long long)m->dim, (long long)m->k, (long long)m->repeats);
    printf("  %.3f s (median; fastest %.3f s, preparation %.3f s), %.0f queries/s\n", m->seconds, m->fastest,
           m->prepare_seconds, (double)m->n_query / m->seconds);
    printf("  %.1f GFLOP/s counting every pair once in each direction\n", m->gflops);
    printf("  peak memory %.0f MiB\n", m->peak_bytes / 1048576);
}

int bench_knn(int argc, char **argv) {
    static const char *const metrics[] = {"cosine", "inner", "sqeuclidean", NULL};
    const char *embedding = NULL, *query = NULL;
    int64_t k = 10, repeats = 3;
    int metric = KITH_COSINE;
    bool json = false, exact = false;
    const char *device = NULL;
    const cli_option options[] = {
        CLI_TEXT("embedding|e", "E.npy", &embedding, "the gallery [n, dim]"),
        CLI_TEXT("query", "Q.npy", &query, "queries [m, dim]; without: every row searches all others"),
        CLI_INT("neighbors|k", "K", &k, 1, INT32_MAX, "neighbours per query"),
        CLI_CHOICE("metric", "NAME", &metric, metrics, "how similar two embeddings are"),
        CLI_FLAG("exact", &exact, "order by float64 scores"),
        CLI_INT("repeats", "N", &repeats, 1, 100, "searches to take the median of"),
        CLI_TEXT("device", "NAME", &device, "where products are made: cpu or cuda"),
        CLI_FLAG("json", &json, "print the result as JSON"),
        CLI_END};
    const cli_usage usage = {.operands = "knn", .least = 1, .most = 1, .options = options};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (!embedding) return cli_misused("bench", "knn wants --embedding E.npy");
    kith_error err = {0};
    kith_array gallery = {0}, queries = {0};
    measured m = {.k = k, .repeats = repeats};
    const kith_knn_options search = {
        .size = sizeof(kith_knn_options), .metric = (kith_metric)metric, .exact = exact, .device = device};
    kith_status status = kith_npy_read(embedding, &gallery, &err);
    if (status == KITH_OK && query) status = kith_npy_read(query, &queries, &err);
    if (status == KITH_OK) status = measure(&gallery, query ? &queries : NULL, &search, &m, &err);
    if (status == KITH_OK && json) status = print_json(&m, &search, &err);
    if (status == KITH_OK && !json) print_text(&m, &search);
    kith_array_release(&gallery);
    kith_array_release(&queries);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}
