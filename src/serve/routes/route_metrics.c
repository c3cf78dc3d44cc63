/* GET /metrics: counts in Prometheus' text format. */
#include "base/alloc.h"
#include "kith/log.h"
#include "serve/routes/route.h"
#include "serve/server.h"

static const char *const names[] = {
#define X(name, ...) #name,
#include "serve/routes/routes.def"
#undef X
};

static void put_gauge(const char *name, const char *help, long long value, ki_buffer *to) {
    ki_buffer_put(to, "# HELP %s %s\n# TYPE %s gauge\n%s %lld\n", name, help, name, name, value);
}

ki_handling ki_route_metrics(ki_request *r) {
    ki_server *s = r->server;
    kith_error err = {0};
    kith_memory_stats memory;
    ki_buffer text = {.err = &err};
    kith_memory_stats_get(&memory);
    pthread_mutex_lock(&s->connections.lock);
    const long long n_connections = s->connections.n, n_cut = s->connections.n_cut;
    pthread_mutex_unlock(&s->connections.lock);
    ki_metrics_put(&s->metrics, names, ki_n_routes, &text);
    put_gauge("kith_connections", "Open connections.", n_connections, &text);
    ki_buffer_put(&text,
                  "# HELP kith_connections_cut_total Connections cut at their deadline.\n"
                  "# TYPE kith_connections_cut_total counter\nkith_connections_cut_total %lld\n",
                  n_cut);
    put_gauge("kith_requests_in_work", "Requests in work or waiting for it.",
              (long long)atomic_load(&s->n_work), &text);
    put_gauge("kith_body_bytes", "Bytes of requests in memory.", (long long)atomic_load(&s->n_bytes), &text);
    put_gauge("kith_decoded_bytes", "Bytes of decoded images in memory, of the decoders and of requests.",
              (long long)ki_decoders_bytes(s->decoders), &text);
    put_gauge("kith_heap_bytes", "Heap memory of kith itself.", (long long)memory.live_bytes, &text);
    put_gauge("kith_index_items", "Items of the index.", (long long)r->catalog->info.n_items, &text);
    put_gauge("kith_index_generation", "Commit of the index that is served.",
              (long long)r->catalog->info.generation, &text);
    if (text.status != KITH_OK) {
        ki_buffer_release(&text);
        return ki_answer_error(r, text.status, &err);
    }
    return ki_answer_bytes(r, "text/plain; version=0.0.4; charset=utf-8", text.data, text.n);
}
