/* Neighbours, ranks and clusters on a device are those of the host: same lists, same order, ties by index. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "judge/ranks.h"
#include "kith/eval.h"
#include "kith/log.h"
#include "knn/kmeans.h"
#include "knn/pca.h"
#include "support/testing.h"

static int has_device(void **state) {
    (void)state;
    ki_knn_device device;
    kith_error err;
    if (ki_knn_device_open("cuda", &device, &err) != KITH_OK) exit(77);
    assert_non_null(device.type);
    ki_knn_device_close(&device);
    return 0;
}

/* Clouds around a few centres, with every ninth row a copy of an earlier one: exact ties. */
static kith_array rows_of(int64_t n, int64_t dim, uint32_t salt) {
    kith_array a;
    kith_error err;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &a, &err), &err);
    float *x = a.data;
    for (int64_t i = 0; i < n; i++) {
        ki_rng rng = ki_rng_at(7, KI_RNG_TEST, salt, (uint32_t)i);
        if (i % 9 == 8) {
            memcpy(x + i * dim, x + ki_rng_below(&rng, (uint32_t)i) * dim, (size_t)dim * sizeof *x);
            continue;
        }
        ki_rng centre = ki_rng_at(7, KI_RNG_TEST, salt + 1000, (uint32_t)(i % 7));
        for (int64_t k = 0; k < dim; k++)
            x[i * dim + k] = (float)(ki_rng_normal(&centre) + 0.8 * ki_rng_normal(&rng));
    }
    return a;
}

/* The bound of ki_panels_bound for both sides together: scores are float32, order is not theirs to decide. */
static double score_bound(const kith_array *gallery, const kith_array *query, int metric) {
    double most = 0;
    const int64_t dim = gallery->dim[1];
    const kith_array *both[] = {gallery, query};
    for (int b = 0; b < 2; b++) {
        for (int64_t i = 0; i < both[b]->dim[0]; i++) {
            double sum = 0;
            for (int64_t k = 0; k < dim; k++) sum += pow((double)((float *)both[b]->data)[i * dim + k], 2);
            most = fmax(most, sum);
        }
    }
    const double scale = metric == KITH_COSINE ? 1 : metric == KITH_INNER ? most : 4 * most;
    return 2 * 1.01 * ((double)dim + 20) * 0x1p-24 * scale;
}

static void assert_same_lists(const kith_neighbor *a, const kith_neighbor *b, int64_t n, int64_t k,
                              double bound, const char *what) {
    for (int64_t i = 0; i < n * k; i++) {
        const bool is_same = a[i].index == b[i].index &&
                             (a[i].index < 0 || fabs((double)a[i].score - (double)b[i].score) <= bound);
        if (!is_same)
            fail_msg("%s: row %lld, place %lld: %d (%.9g) on the host, %d (%.9g) on the device; bound %.3g",
                     what, (long long)(i / k), (long long)(i % k), (int)a[i].index, (double)a[i].score,
                     (int)b[i].index, (double)b[i].score, bound);
    }
}

static void test_lists_are_the_hosts(void **state) {
    (void)state;
    static const struct {
        int64_t n, dim, n_query, k;
    } rows[] = {{300, 20, 0, 5}, {300, 20, 0, 1}, {150, 33, 70, 12},
                {40, 8, 13, 60}, {5, 3, 0, 10},   {1, 4, 3, 2}};
    for (size_t c = 0; c < N_ROWS(rows); c++) {
        for (int metric = 0; metric < 3; metric++) {
            const int64_t n = rows[c].n, k = rows[c].k;
            kith_array gallery = rows_of(n, rows[c].dim, 1), query = rows_of(rows[c].n_query, rows[c].dim, 2);
            const int64_t n_query = rows[c].n_query ? rows[c].n_query : n;
            kith_neighbor *lists[2];
            kith_error err;
            for (int there = 0; there < 2; there++) {
                const kith_knn_options o = {.size = sizeof(kith_knn_options),
                                            .metric = (kith_metric)metric,
                                            .exact = true,
                                            .device = there ? "cuda" : NULL};
                kith_gallery *g = NULL;
                lists[there] = ki_zalloc((size_t)(n_query * k), sizeof **lists);
                assert_ok(kith_gallery_new(&gallery, &o, &g, &err), &err);
                if (rows[c].n_query)
                    assert_ok(kith_gallery_search(g, &query, NULL, k, lists[there], &err), &err);
                else
                    assert_ok(kith_gallery_self(g, k, lists[there], &err), &err);
                kith_gallery_free(g);
            }
            assert_same_lists(lists[0], lists[1], n_query, k, score_bound(&gallery, &query, metric),
                              kith_metric_name((kith_metric)metric));
            ki_free(lists[0]);
            ki_free(lists[1]);
            kith_array_release(&gallery);
            kith_array_release(&query);
        }
    }
}

/* Lists through tiles that do not divide the matrices, against all keys sorted; with columns to leave out. */
static void test_tiles_and_left_out(void **state) {
    (void)state;
    enum { N = 61, M = 2300, DIM = 9, K = 30 };
    kith_array query = rows_of(N, DIM, 3), gallery = rows_of(M, DIM, 4);
    kith_error err;
    ki_knn_device d;
    ki_rows q, g;
    ki_panels qp, gp;
    ki_device_rows *qd, *gd;
    int32_t self[N];
    assert_ok(ki_knn_device_open("cuda", &d, &err), &err);
    assert_ok(ki_rows_init(&query, "query", &q, &err), &err);
    assert_ok(ki_rows_init(&gallery, "gallery", &g, &err), &err);
    assert_ok(ki_panels_init(&g, KITH_SQEUCLIDEAN, NULL, &gp, &err), &err);
    assert_ok(ki_panels_init(&q, KITH_SQEUCLIDEAN, &gp, &qp, &err), &err);
    for (int i = 0; i < N; i++) self[i] = i % 3 ? i : -1;
    float *score = ki_alloc((size_t)N * M, sizeof *score);
    ki_key *keys = ki_alloc((size_t)N * K, sizeof *keys);
    assert_ok(d.type->load(d.backend, &qp, (ki_device_tile){0}, &qd, &err), &err);
    assert_ok(d.type->load(d.backend, &gp, (ki_device_tile){0}, &gd, &err), &err);
    assert_ok(d.type->scores(d.backend, qd, gd, score, &err), &err);
    d.type->unload(d.backend, gd);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < M; j++) {
            const double exact = ki_panels_score(&qp, i, &gp, j);
            if (fabs((double)score[i * M + j] - exact) > 1e-5 * (1 + fabs(exact)))
                fail_msg("score (%d, %d): %g, wanted %g", (int)i, (int)j, (double)score[i * M + j], exact);
        }
    }
    static const ki_device_tile tiles[] = {{16, 100}, {64, 1500}, {7, 2300}};
    for (size_t t = 0; t < N_ROWS(tiles); t++) {
        assert_ok(d.type->load(d.backend, &gp, tiles[t], &gd, &err), &err);
        const ki_device_best ask = {.rows = qd, .cols = gd, .self = self, .k = K, .ret_keys = keys};
        assert_ok(d.type->best(d.backend, &ask, &err), &err);
        d.type->unload(d.backend, gd);
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < K; k++) {
                const ki_key key = keys[i * K + k];
                if (k > 0 && key >= keys[i * K + k - 1])
                    fail_msg("row %d: place %d is not below the one before", i, k);
                if (ki_key_index(key) == self[i]) fail_msg("row %d found itself", i);
            }
            const float last = ki_key_score(keys[i * K + K - 1]);
            int n_better = 0;
            for (int j = 0; j < M; j++)
                n_better += j != self[i] && score[i * M + j] > last + 2e-5F * (1 + fabsf(last));
            if (n_better >= K)
                fail_msg("row %d, tile %d: %d scores beat the last of %d", i, (int)t, n_better, K);
        }
    }
    ki_free(score);
    ki_free(keys);
    d.type->unload(d.backend, qd);
    ki_panels_release(&qp);
    ki_panels_release(&gp);
    ki_knn_device_close(&d);
    kith_array_release(&query);
    kith_array_release(&gallery);
}

typedef struct ranks {
    int64_t n;
    int64_t rank[200000];
    int64_t n_tied;
} ranks;

static void keep_ranks(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied) {
    ranks *r = context;
    (void)query;
    for (int64_t i = 0; i < n && r->n < (int64_t)N_ROWS(r->rank); i++) r->rank[r->n++] = rank[i];
    r->n_tied += is_tied;
}

static void test_ranks_are_the_hosts(void **state) {
    (void)state;
    static ranks found[2];
    enum { N = 500, DIM = 16, CLASSES = 11 };
    kith_array rows = rows_of(N, DIM, 5);
    int32_t class_of[N];
    kith_error err;
    ki_rows r;
    for (int i = 0; i < N; i++) class_of[i] = i * 7 % CLASSES;
    class_of[17] = CLASSES; /* lone */
    assert_ok(ki_rows_init(&rows, "rows", &r, &err), &err);
    for (int metric = 0; metric < 3; metric++) {
        /* All at once, and in groups of queries. */
        for (int64_t most = 0; most < 20001; most += 20000) {
            for (int there = 0; there < 2; there++) {
                ki_knn_device d;
                ki_panels p;
                assert_ok(ki_panels_init(&r, (kith_metric)metric, NULL, &p, &err), &err);
                assert_ok(ki_knn_device_open(there ? "cuda" : NULL, &d, &err), &err);
                if (there) ki_panels_any_order(&p);
                found[there].n = found[there].n_tied = 0;
                const ki_ranks_input in = {.query = &p,
                                           .gallery = &p,
                                           .query_class = class_of,
                                           .gallery_class = class_of,
                                           .n_classes = CLASSES + 1,
                                           .most_relevant = most,
                                           .device = &d,
                                           .tile = {96, 200}};
                assert_ok(ki_ranks_run(&in, keep_ranks, &found[there], &err), &err);
                ki_knn_device_close(&d);
                ki_panels_release(&p);
            }
            assert_true(found[0].n > 10000);
            assert_int_equal(found[0].n, found[1].n);
            assert_int_equal(found[0].n_tied, found[1].n_tied);
            assert_true(found[0].n_tied > 0);
            for (int64_t i = 0; i < found[0].n; i++) {
                if (found[0].rank[i] != found[1].rank[i])
                    fail_msg("metric %d, rank %lld: %lld on the host, %lld on the device", metric,
                             (long long)i, (long long)found[0].rank[i], (long long)found[1].rank[i]);
            }
        }
    }
    kith_array_release(&rows);
}

/* Rows that the device has already become those of the panels, to the bit, a part of them too. */
static void test_rows_that_are_there(void **state) {
    (void)state;
    enum { N = 70, DIM = 11, FIRST = 32 };
    kith_array rows = rows_of(N, DIM, 8);
    kith_error err;
    ki_knn_device d;
    ki_rows copied, there;
    void *memory = NULL;
    static float score[2][N * N];
    memset((float *)rows.data + 5 * DIM, 0, DIM * sizeof(float)); /* a row of zeros */
    assert_ok(ki_knn_device_open("cuda", &d, &err), &err);
    const ki_backend_type *type = d.backend->type;
    const size_t bytes = N * DIM * sizeof(float);
    assert_ok(type->memory.alloc(d.backend, bytes, &memory, &err), &err);
    assert_ok(type->memory.upload(d.backend, memory, rows.data, bytes, &err), &err);
    assert_ok(ki_rows_init(&rows, "rows", &copied, &err), &err);
    there = copied;
    there.there = memory;
    for (int metric = 0; metric < 3; metric++) {
        for (int part = 0; part < 2; part++) {
            for (int w = 0; w < 2; w++) {
                ki_panels p;
                ki_device_rows *loaded = NULL;
                assert_ok(ki_panels_init(w ? &there : &copied, (kith_metric)metric, NULL, &p, &err), &err);
                assert_int_equal(p.data == NULL, w);
                const ki_panels view = ki_panels_view(&p, FIRST, N - FIRST);
                assert_ok(d.type->load(d.backend, part ? &view : &p, (ki_device_tile){0}, &loaded, &err),
                          &err);
                assert_ok(d.type->scores(d.backend, loaded, loaded, score[w], &err), &err);
                d.type->unload(d.backend, loaded);
                ki_panels_release(&p);
            }
            const size_t n = part ? N - FIRST : N;
            assert_memory_equal(score[0], score[1], n * n * sizeof(float));
        }
    }
    type->memory.free(d.backend, memory);
    ki_knn_device_close(&d);
    kith_array_release(&rows);
}

/* Components and projections are the host's up to the rounding of float64 sums, from rows that are copied and from rows
 * that are there; more rows than one block. */
static void check_components(kith_pca_method method) {
    enum { N = 2500, DIM = 12, M = 4 };
    kith_array rows = rows_of(N, DIM, 9), projected[3];
    kith_pca pca[3];
    kith_error err;
    ki_knn_device d;
    ki_rows r;
    void *memory = NULL;
    const size_t bytes = N * DIM * sizeof(float);
    const kith_pca_options options = {.size = sizeof(kith_pca_options), .n_components = M, .method = method};
    for (int64_t i = 0; i < N * DIM; i++) ((float *)rows.data)[i] *= (float)(1 + i % DIM); /* gaps */
    assert_ok(ki_knn_device_open("cuda", &d, &err), &err);
    assert_ok(d.backend->type->memory.alloc(d.backend, bytes, &memory, &err), &err);
    assert_ok(d.backend->type->memory.upload(d.backend, memory, rows.data, bytes, &err), &err);
    assert_ok(ki_rows_init(&rows, "rows", &r, &err), &err);
    for (int w = 0; w < 3; w++) {
        r.there = w == 2 ? memory : NULL;
        assert_ok(ki_pca_fit(&r, w ? &d : NULL, &options, &pca[w], &err), &err);
        pca[w].whiten = true;
        assert_ok(ki_pca_apply(&pca[w], &r, w ? &d : NULL, &projected[w], &err), &err);
    }
    const double *host = pca[0].components.data;
    for (int w = 1; w < 3; w++) {
        const double *found = pca[w].components.data;
        assert_memory_equal(pca[w].mean.data, pca[0].mean.data, DIM * sizeof(double));
        assert_true(fabs(pca[w].total_variance / pca[0].total_variance - 1) < 1e-12);
        for (int i = 0; i < M * DIM; i++) {
            if (!(fabs(found[i] - host[i]) < 1e-9))
                fail_msg("way %d: component %d is %.12g; wanted %.12g", w, i, found[i], host[i]);
        }
        const double off = testing_relative_l2(projected[w].data, projected[0].data, (int64_t)N * M);
        if (!(off < 1e-6)) fail_msg("way %d: projections are %g off", w, off);
    }
    for (int w = 0; w < 3; w++) {
        kith_pca_release(&pca[w]);
        kith_array_release(&projected[w]);
    }
    d.backend->type->memory.free(d.backend, memory);
    ki_knn_device_close(&d);
    kith_array_release(&rows);
}

static void test_components(void **state) {
    (void)state;
    check_components(KITH_PCA_EXACT);
    check_components(KITH_PCA_RANDOMIZED);
}

/* The device of a backend that is open: itself, or one beside it that does not round to TF32. */
static void test_device_beside(void **state) {
    (void)state;
    for (int tf32 = 0; tf32 < 2; tf32++) {
        ki_backend *backend = NULL;
        ki_knn_device d;
        kith_error err;
        assert_ok(ki_backend_open("cuda", &(ki_backend_options){.tf32 = tf32}, &backend, &err), &err);
        assert_ok(ki_knn_device_beside(backend, &d, &err), &err);
        assert_non_null(d.type);
        assert_int_equal(d.backend == backend, !tf32);
        assert_false(d.backend->options.tf32);
        ki_knn_device_close(&d);
        ki_backend_close(backend);
    }
}

/* The public way, with queries and gallery apart. */
static void test_retrieval(void **state) {
    (void)state;
    enum { N = 260, DIM = 12 };
    kith_array rows = rows_of(N, DIM, 6);
    int64_t labels[N], query[60], gallery[200];
    kith_error err;
    for (int i = 0; i < N; i++) labels[i] = i % 7;
    for (int i = 0; i < 60; i++) query[i] = 4 * i;
    for (int i = 0; i < 200; i++) gallery[i] = 259 - i;
    const kith_retrieval_input in = {.embedding = &rows,
                                     .labels = labels,
                                     .n_labels = N,
                                     .query = query,
                                     .n_query = 60,
                                     .gallery = gallery,
                                     .n_gallery = 200};
    kith_retrieval found[2];
    for (int there = 0; there < 2; there++) {
        KITH_OPTIONS(kith_retrieval_options, o);
        o.device = there ? "cuda" : NULL;
        assert_ok(kith_retrieval_run(&in, &o, &found[there], &err), &err);
    }
    assert_true(found[0].mean.map == found[1].mean.map);
    assert_true(found[0].mean.map_at_r == found[1].mean.map_at_r);
    assert_memory_equal(found[0].query, found[1].query, 60 * sizeof *found[0].query);
    kith_retrieval_release(&found[0]);
    kith_retrieval_release(&found[1]);
    kith_array_release(&rows);
}

/* Bytes that go between host and device. */
static struct traffic {
    const ki_backend_type *type;
    size_t up, down;
} traffic;

static kith_status count_up(ki_backend *on, void *to, const void *from, size_t bytes, kith_error *err) {
    traffic.up += bytes;
    return traffic.type->memory.upload(on, to, from, bytes, err);
}

static kith_status count_down(ki_backend *on, const void *from, void *to, size_t bytes, kith_error *err) {
    traffic.down += bytes;
    return traffic.type->memory.download(on, from, to, bytes, err);
}

/* The device with its copies counted, and rows in its memory. */
static void *put_there(ki_knn_device *d, ki_backend_type *counted, const kith_array *rows) {
    kith_error err;
    void *memory = NULL;
    const size_t bytes = (size_t)(rows->dim[0] * rows->dim[1]) * sizeof(float);
    assert_ok(ki_knn_device_open("cuda", d, &err), &err);
    assert_ok(d->backend->type->memory.alloc(d->backend, bytes, &memory, &err), &err);
    assert_ok(d->backend->type->memory.upload(d->backend, memory, rows->data, bytes, &err), &err);
    assert_ok(d->backend->type->memory.sync(d->backend, &err), &err);
    traffic = (struct traffic){.type = d->backend->type};
    *counted = *d->backend->type;
    counted->memory.upload = count_up;
    counted->memory.download = count_down;
    d->backend->type = counted;
    return memory;
}

static void take_away(ki_knn_device *d, void *memory) {
    d->backend->type = traffic.type;
    d->backend->type->memory.free(d->backend, memory);
    ki_knn_device_close(d);
}

/* Clusters far apart, so that rounding decides nothing: the host's, to the bit, from rows that are copied and from rows
 * that are there, which stay there: what goes to and fro is less than one copy of them. */
static void test_clusters(void **state) {
    (void)state;
    enum { N = 400, DIM = 300 };
    /* Among many random starts there are two of the same point: a cluster stays empty and is filled by hand. */
    static const struct {
        bool is_random, normalize;
        int64_t k;
    } ways[] = {{false, true, 7}, {false, false, 7}, {true, true, 100}};
    for (size_t way = 0; way < N_ROWS(ways); way++) {
        kith_array rows = rows_of(N, DIM, 8);
        kith_error err;
        kith_kmeans_result found[3];
        ki_knn_device d;
        ki_backend_type counted;
        ki_rows r;
        void *memory = put_there(&d, &counted, &rows);
        assert_ok(ki_rows_init(&rows, "rows", &r, &err), &err);
        for (int w = 0; w < 3; w++) {
            KITH_OPTIONS(kith_kmeans_options, o);
            o.n_clusters = ways[way].k;
            o.seed = 5;
            o.is_random_start = ways[way].is_random;
            o.normalize = ways[way].normalize;
            r.there = w == 2 ? memory : NULL;
            traffic.up = traffic.down = 0;
            assert_ok(ki_kmeans_run(&r, w ? &d : &(ki_knn_device){0}, &o, &found[w], &err), &err);
        }
        if (!(traffic.up + traffic.down < N * DIM * sizeof(float)))
            fail_msg("%zu bytes up, %zu down; the rows are %zu", traffic.up, traffic.down,
                     N * DIM * sizeof(float));
        for (int w = 1; w < 3; w++) {
            assert_int_equal(found[0].n_iterations, found[w].n_iterations);
            assert_int_equal(found[0].n_refilled, found[w].n_refilled);
            assert_memory_equal(found[0].cluster, found[w].cluster, N * sizeof *found[0].cluster);
            assert_memory_equal(found[0].centroids.data, found[w].centroids.data,
                                (size_t)ways[way].k * DIM * sizeof(float));
            assert_true(found[0].objective == found[w].objective);
        }
        assert_int_equal(found[0].n_refilled > 0, ways[way].k == 100);
        for (int w = 0; w < 3; w++) kith_kmeans_result_release(&found[w]);
        take_away(&d, memory);
        kith_array_release(&rows);
    }
}

static int stop(void *user, int64_t done, int64_t all) {
    (void)done, (void)all;
    return ++*(int *)user > 1;
}

static void test_refusals(void **state) {
    (void)state;
    kith_array rows = rows_of(8000, 2, 9);
    kith_error err = {0};
    kith_gallery *g = NULL;
    int n_calls = 0;
    kith_neighbor *lists = ki_alloc(1000, sizeof *lists);
    kith_array one = {KITH_F32, 2, {1, 2}, rows.data};
    kith_knn_options o = {.size = sizeof(kith_knn_options), .device = "cuda:99"};
    assert_int_equal(kith_gallery_new(&rows, &o, &g, &err), KITH_EINVAL);
    o.device = "cude";
    assert_int_equal(kith_gallery_new(&rows, &o, &g, &err), KITH_ENOTFOUND);
    o.device = "cuda:one";
    assert_int_equal(kith_gallery_new(&rows, &o, &g, &err), KITH_EINVAL);
    assert_string_equal(err.message, "device 'cuda:one'; wanted a name, or a name and a number as in cuda:1");
    o.device = "cuda:0";
    assert_ok(kith_gallery_new(&rows, &o, &g, &err), &err);
    kith_gallery_free(g);
    o = (kith_knn_options){
        .size = sizeof(kith_knn_options), .device = "cuda", .progress = stop, .user = &n_calls};
    assert_ok(kith_gallery_new(&rows, &o, &g, &err), &err);
    assert_int_equal(kith_gallery_search(g, &one, NULL, 7169, lists, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "7169 neighbours on a CUDA device; wanted 1 to 7168");
    n_calls = 1;
    assert_int_equal(kith_gallery_search(g, &one, NULL, 3, lists, &err), KITH_ECANCELED);
    kith_gallery_free(g);
    ki_free(lists);
    kith_array_release(&rows);
}

/* Every allocation on the host in turn. */
static void test_without_memory(void **state) {
    (void)state;
    kith_array rows = rows_of(50, 4, 10);
    int64_t labels[50];
    for (int i = 0; i < 50; i++) labels[i] = i % 5;
    const kith_retrieval_input in = {.embedding = &rows, .labels = labels, .n_labels = 50};
    KITH_OPTIONS(kith_retrieval_options, o);
    o.device = "cuda";
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        kith_retrieval found = {0};
        kith_error err = {0};
        kith_memory_stats before, after;
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        const kith_status status = kith_retrieval_run(&in, &o, &found, &err);
        ki_alloc_fail_after(-1);
        kith_retrieval_release(&found);
        kith_memory_stats_get(&after);
        assert_int_equal(before.live_bytes, after.live_bytes);
        if (status == KITH_OK) break;
        if (status != KITH_ENOMEM) fail_msg("allocation %lld: %s", (long long)n, err.message);
        n_failed++;
    }
    assert_true(n_failed > 10);
    kith_array_release(&rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_the_hosts),
        cmocka_unit_test(test_tiles_and_left_out),
        cmocka_unit_test(test_ranks_are_the_hosts),
        cmocka_unit_test(test_rows_that_are_there),
        cmocka_unit_test(test_device_beside),
        cmocka_unit_test(test_components),
        cmocka_unit_test(test_retrieval),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, has_device, NULL);
}
