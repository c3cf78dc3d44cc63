/* An index on PostgreSQL over the rows of search_rows, for bench/postgres.sh:
 *
 *     search_postgres load PREFIX ADDRESS [RECALL]   COPY in the binary form, then the graph, each with its time
 *     search_postgres ask PREFIX ADDRESS             queries a second and recall: with the graph, and comparing every vector
 *     search_postgres insert|copy PREFIX N           the first N rows as statements for psql, as people write them: one INSERT
 *                                                    each, or one COPY in its text form
 */
#include <kith/kith.h>
#include <pthread.h>
#include <string.h>

#include "bench/search_asked.h"

enum { ROUNDS = 5, MOST_CLIENTS = 8, EXACT_QUERIES = 20 };

static void load(const char *prefix, const char *address, double recall) {
    const bench_rows rows = bench_read(prefix, "rows", sizeof(float));
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = rows.width;
    options.recall = recall;
    options.exact_numbers = 0;
    check(kith_index_create(address, &options, &index, &err), &err);
    const kith_array all = {.dtype = KITH_F32, .n_dims = 2, .dim = {rows.n, rows.width}, .data = rows.data};
    double begun = bench_now();
    check(kith_index_add(index, &all, NULL, NULL, &err), &err);
    const double took = bench_now() - begun;
    printf("COPY binary by kith: %lld rows of %lld in %.1f s, %.0f rows/s\n", (long long)rows.n,
           (long long)rows.width, took, (double)rows.n / took);
    fflush(stdout);
    begun = bench_now();
    check(kith_index_commit(index, NULL, &err), &err);
    printf("graph and commit: %.1f s\n", bench_now() - begun);
    kith_index_free(index);
    free(rows.data);
}

/* One of several that ask at the same time, each over its own connection. */
typedef struct client {
    kith_index *index;
    const bench_rows *queries;
    int64_t first, n, *found;
} client;

static void *run(void *context) {
    const client *c = context;
    for (int64_t i = c->first; i < c->first + c->n; i++)
        ask_index(c->index, c->queries, i, 1, 1, false, c->found);
    return NULL;
}

static double ask_together(const char *address, int n_clients, const bench_rows *queries, int64_t *found) {
    client clients[MOST_CLIENTS];
    pthread_t threads[MOST_CLIENTS];
    kith_error err;
    double best = 0;
    for (int i = 0; i < n_clients; i++) {
        const int64_t first = queries->n * i / n_clients, end = queries->n * (i + 1) / n_clients;
        clients[i] = (client){NULL, queries, first, end - first, found};
        check(kith_index_open(address, KITH_INDEX_READ, &clients[i].index, &err), &err);
        ask_index(clients[i].index, queries, 0, 1, 1, false, found);
    }
    for (int round = 0; round < ROUNDS; round++) {
        const double begun = bench_now();
        for (int i = 0; i < n_clients; i++) pthread_create(&threads[i], NULL, run, &clients[i]);
        for (int i = 0; i < n_clients; i++) pthread_join(threads[i], NULL);
        const double speed = (double)queries->n / (bench_now() - begun);
        if (speed > best) best = speed;
    }
    for (int i = 0; i < n_clients; i++) kith_index_free(clients[i].index);
    return best;
}

static void ask(const char *prefix, const char *address) {
    bench_rows queries = bench_read(prefix, "queries", sizeof(float));
    bench_rows truth = bench_read(prefix, "truth", sizeof(int64_t));
    int64_t *found = calloc((size_t)(queries.n * BENCH_K), sizeof *found);
    if (!found) bench_stop("no memory");
    for (int n_clients = 1; n_clients <= 2; n_clients++) {
        const double speed = ask_together(address, n_clients, &queries, found);
        printf("graph and second look: recall %.4f, %.0f queries/s over %d connection%s\n",
               bench_recall(&truth, found), speed, n_clients, n_clients == 1 ? "" : "s");
    }
    kith_error err;
    kith_index *index = NULL;
    check(kith_index_open(address, KITH_INDEX_READ, &index, &err), &err);
    queries.n = truth.n = EXACT_QUERIES;
    const double begun = bench_now();
    for (int64_t i = 0; i < EXACT_QUERIES; i++) ask_index(index, &queries, i, 1, 1, true, found);
    printf("every vector compared: recall %.4f, %.2f queries/s\n", bench_recall(&truth, found),
           EXACT_QUERIES / (bench_now() - begun));
    kith_index_free(index);
    free(found);
}

static void print_rows(const char *prefix, int64_t n, bool is_copy) {
    const bench_rows rows = bench_read(prefix, "rows", sizeof(float));
    const char *columns = "id, path, label, hash, bytes, mtime_ns, attributes, embedding";
    if (is_copy) printf("copy items (%s) from stdin;\n", columns);
    for (int64_t i = 0; i < n && i < rows.n; i++) {
        if (is_copy)
            printf("%lld\t\\N\t\\N\t\\N\t-1\t-1\t{}\t[", (long long)i);
        else
            printf("insert into items (%s) values (%lld, null, null, null, -1, -1, '{}', '[", columns,
                   (long long)i);
        for (int64_t k = 0; k < rows.width; k++)
            printf("%s%.9g", k ? "," : "", (double)((const float *)rows.data)[i * rows.width + k]);
        fputs(is_copy ? "]\n" : "]');\n", stdout);
    }
    if (is_copy) puts("\\.");
    free(rows.data);
}

int main(int argc, char **argv) {
    if (argc < 4) bench_stop("usage: search_postgres load|ask|insert|copy PREFIX ADDRESS|N [RECALL]");
    if (strcmp(argv[1], "load") == 0)
        load(argv[2], argv[3], argc > 4 ? atof(argv[4]) : 0.95);
    else if (strcmp(argv[1], "ask") == 0)
        ask(argv[2], argv[3]);
    else
        print_rows(argv[2], atoll(argv[3]), strcmp(argv[1], "copy") == 0);
    return 0;
}
