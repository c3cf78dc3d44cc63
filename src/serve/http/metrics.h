/* Counts of what the server did, for /metrics. Any thread may count. */
#ifndef KI_SERVE_METRICS_H
#define KI_SERVE_METRICS_H

#include <stdatomic.h>

#include "base/buffer.h"

enum { KI_MOST_ROUTES = 24, KI_N_CODES = 16, KI_N_TIMES = 12 };

/* Of requests, and of how long they took. */
typedef struct ki_route_counts {
    atomic_uint_least64_t n[KI_N_CODES];      /* by status; which, metrics.c says */
    atomic_uint_least64_t within[KI_N_TIMES]; /* by seconds; the last: longer than all limits */
    atomic_uint_least64_t microseconds;
} ki_route_counts;

typedef struct ki_metrics {
    ki_route_counts route[KI_MOST_ROUTES + 1]; /* the last: no route */
    atomic_uint_least64_t n_batches, n_batched,
        n_embedded;                           /* batches of queries, queries, pictures in them */
    atomic_uint_least64_t n_decoder_failures; /* decoders that crashed or hung */
} ki_metrics;

/* route: its number, or -1. */
void ki_metrics_count(ki_metrics *metrics, int route, unsigned status, double seconds);
/* In Prometheus' text format, with the names of the routes. */
void ki_metrics_put(const ki_metrics *metrics, const char *const *route_name, int n_routes, ki_buffer *to);

#endif
