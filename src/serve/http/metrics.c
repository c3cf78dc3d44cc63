/* Counting requests, and Prometheus' text format. */
#include "serve/http/metrics.h"

static const unsigned codes[KI_N_CODES] = {200, 304, 400, 401, 403, 404, 405, 413, 415, 429, 500, 501, 503};
static const char *const limits[KI_N_TIMES - 1] = {"0.001", "0.0025", "0.005", "0.01", "0.025", "0.05",
                                                   "0.1",   "0.25",   "0.5",   "1",    "5"};
static const double seconds_of[KI_N_TIMES - 1] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,   0.25,   0.5,   1,    5};

void ki_metrics_count(ki_metrics *m, int route, unsigned status, double seconds) {
    ki_route_counts *c = &m->route[route >= 0 && route < KI_MOST_ROUTES ? route : KI_MOST_ROUTES];
    int code = 0, time = 0;
    while (code < KI_N_CODES - 1 && codes[code] != status) code++;
    while (time < KI_N_TIMES - 1 && seconds > seconds_of[time]) time++;
    atomic_fetch_add(&c->n[code], 1);
    atomic_fetch_add(&c->within[time], 1);
    atomic_fetch_add(&c->microseconds, (uint_least64_t)(seconds * 1e6));
}

static void put_requests(const ki_metrics *m, int route, const char *name, ki_buffer *to) {
    for (int i = 0; i < KI_N_CODES; i++) {
        const unsigned long long n = atomic_load(&m->route[route].n[i]);
        if (n > 0)
            ki_buffer_put(to, "kith_requests_total{route=\"%s\",status=\"%u\"} %llu\n", name, codes[i], n);
    }
}

static void put_times(const ki_metrics *m, int route, const char *name, ki_buffer *to) {
    const ki_route_counts *c = &m->route[route];
    unsigned long long n = 0;
    for (int i = 0; i < KI_N_TIMES; i++) n += atomic_load(&c->within[i]);
    if (n == 0) return;
    n = 0;
    for (int i = 0; i < KI_N_TIMES; i++) {
        n += atomic_load(&c->within[i]);
        ki_buffer_put(to, "kith_request_seconds_bucket{route=\"%s\",le=\"%s\"} %llu\n", name,
                      i < KI_N_TIMES - 1 ? limits[i] : "+Inf", n);
    }
    ki_buffer_put(to, "kith_request_seconds_sum{route=\"%s\"} %.6f\n", name,
                  1e-6 * (double)atomic_load(&c->microseconds));
    ki_buffer_put(to, "kith_request_seconds_count{route=\"%s\"} %llu\n", name, n);
}

static void put_count(const char *name, const char *help, unsigned long long n, ki_buffer *to) {
    ki_buffer_put(to, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", name, help, name, name, n);
}

void ki_metrics_put(const ki_metrics *m, const char *const *route_name, int n_routes, ki_buffer *to) {
    ki_buffer_put(to, "# HELP kith_requests_total Requests answered.\n# TYPE kith_requests_total counter\n");
    for (int i = 0; i < n_routes; i++) put_requests(m, i, route_name[i], to);
    put_requests(m, KI_MOST_ROUTES, "none", to);
    ki_buffer_put(to,
                  "# HELP kith_request_seconds From the first line of a request to its last byte sent.\n"
                  "# TYPE kith_request_seconds histogram\n");
    for (int i = 0; i < n_routes; i++) put_times(m, i, route_name[i], to);
    put_count("kith_query_batches_total", "Batches of queries searched together.", atomic_load(&m->n_batches),
              to);
    put_count("kith_queries_total", "Queries in them.", atomic_load(&m->n_batched), to);
    put_count("kith_embedded_pictures_total", "Pictures that went through the network.",
              atomic_load(&m->n_embedded), to);
    put_count("kith_decoder_failures_total", "Decoding processes that crashed or hung.",
              atomic_load(&m->n_decoder_failures), to);
}
