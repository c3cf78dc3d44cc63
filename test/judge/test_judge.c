/* Judging vectors: by their roles, with as many clusters as classes, and by a device without memory. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "judge/judge.h"
#include "kith/data.h"
#include "knn/pca.h"
#include "support/testing.h"

enum { N = 40, CLASSES = 4, DIM = 5 };

/* Rows around the centres of their classes. */
static ki_vectors vectors_of(uint32_t salt, int64_t dim) {
    ki_vectors v = {0};
    kith_error err = {0};
    assert_ok(ki_vectors_init(NULL, false, N, dim, &v, &err), &err);
    for (int64_t i = 0; i < N; i++) {
        v.label[i] = 10 * (i % CLASSES);
        v.item[i] = i;
        ki_rng rng = ki_rng_at(1, KI_RNG_TEST, salt, (uint32_t)i);
        for (int64_t k = 0; k < dim; k++) {
            ki_rng centre = ki_rng_at(2, KI_RNG_TEST, (uint32_t)(i % CLASSES), (uint32_t)k);
            v.host[i * dim + k] = (float)(ki_rng_normal(&centre) + 0.7 * ki_rng_normal(&rng));
        }
    }
    v.n = N;
    return v;
}

/* The roles of the rows decide who looks for whom. */
static void test_roles(void **state) {
    (void)state;
    ki_vectors v = vectors_of(1, DIM);
    kith_judgement by_role, by_list;
    kith_error err = {0};
    int64_t query[N], gallery[N], n_query = 0, n_gallery = 0;
    KITH_OPTIONS(kith_judge_options, options);
    assert_ok(ki_alloc_or(&v.role, N, sizeof *v.role, "roles", &err), &err);
    for (int64_t i = 0; i < N; i++) {
        v.role[i] = (uint8_t)(i % 5 == 0 ? KITH_ROLE_QUERY : i % 7 == 0 ? KITH_ROLE_BOTH : KITH_ROLE_GALLERY);
        if (v.role[i] != KITH_ROLE_GALLERY) query[n_query++] = i;
        if (v.role[i] != KITH_ROLE_QUERY) gallery[n_gallery++] = i;
    }
    const kith_array rows = {KITH_F32, 2, {N, DIM}, v.host};
    const kith_retrieval_input lists = {.embedding = &rows,
                                        .labels = v.label,
                                        .n_labels = N,
                                        .query = query,
                                        .n_query = n_query,
                                        .gallery = gallery,
                                        .n_gallery = n_gallery};
    ki_judge_options all;
    assert_ok(ki_judge_options_take(&options, &all, &err), &err);
    assert_ok(ki_judge_vectors(&v, &all, NULL, &by_role, &err), &err);
    assert_ok(kith_judge_run(&lists, &options, &by_list, &err), &err);
    assert_int_equal(by_role.retrieval.n_query, n_query);
    assert_int_equal(by_role.retrieval.n_gallery, n_gallery);
    assert_memory_equal(&by_role.retrieval.mean, &by_list.retrieval.mean, sizeof by_role.retrieval.mean);
    assert_true(by_role.clustering.nmi == by_list.clustering.nmi);
    assert_int_equal(by_role.kmeans.n_clusters, CLASSES);
    kith_judgement_release(&by_role);
    kith_judgement_release(&by_list);
    ki_vectors_release(&v);
}

/* Clusters are of the rows that are query or gallery, each once. */
static void test_clusters_of_some_rows(void **state) {
    (void)state;
    ki_vectors v = vectors_of(1, DIM);
    kith_judgement some, same;
    kith_error err = {0};
    int64_t first[20];
    KITH_OPTIONS(kith_judge_options, options);
    options.has_retrieval = false;
    for (int i = 0; i < 20; i++) first[i] = i;
    const kith_array all = {KITH_F32, 2, {N, DIM}, v.host}, half = {KITH_F32, 2, {20, DIM}, v.host};
    const kith_retrieval_input listed = {.embedding = &all,
                                         .labels = v.label,
                                         .n_labels = N,
                                         .query = first,
                                         .n_query = 20,
                                         .gallery = first,
                                         .n_gallery = 20},
                               alone = {.embedding = &half, .labels = v.label, .n_labels = 20};
    assert_ok(kith_judge_run(&listed, &options, &some, &err), &err);
    assert_ok(kith_judge_run(&alone, &options, &same, &err), &err);
    assert_false(some.has_retrieval);
    assert_true(some.kmeans_objective == same.kmeans_objective);
    assert_true(some.clustering.f1 == same.clustering.f1);
    ki_vectors_release(&v);
}

/* A device that has no memory for anything. */
static int n_asked;

static kith_status no_load(ki_backend *backend, const ki_panels *panels, ki_device_tile tile,
                           ki_device_rows **ret_rows, kith_error *err) {
    (void)backend, (void)panels, (void)tile, (void)ret_rows;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "rows");
}

static void unload(ki_backend *backend, ki_device_rows *rows) {
    (void)backend;
    assert_null(rows);
}

static kith_status no_scatter(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                              kith_error *err) {
    (void)backend, (void)rows, (void)mean, (void)ret;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "sums");
}

static kith_status no_hold(ki_backend *backend, const ki_rows *rows, const double *norm, float **ret_there,
                           kith_error *err) {
    (void)backend, (void)rows, (void)norm, (void)ret_there;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "rows");
}

static kith_status no_mean(ki_backend *backend, const ki_rows *rows, double *ret_mean, double *ret_squares,
                           kith_error *err) {
    (void)backend, (void)rows, (void)ret_mean, (void)ret_squares;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "sums");
}

static kith_status no_spread(ki_backend *backend, const ki_rows *rows, const double *mean, const double *q,
                             int64_t n_q, double *ret_back, double *ret_inner, kith_error *err) {
    (void)backend, (void)rows, (void)mean, (void)q, (void)n_q, (void)ret_back, (void)ret_inner;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "sums");
}

static kith_status no_project(ki_backend *backend, const ki_rows *rows, const double *mean, const double *by,
                              int64_t n_by, float *ret, kith_error *err) {
    (void)backend, (void)rows, (void)mean, (void)by, (void)n_by, (void)ret;
    n_asked++;
    return ki_fail_memory(err, 1 << 30, "sums");
}

static const ki_knn_device_type full_type = {.load = no_load,
                                             .unload = unload,
                                             .hold = no_hold,
                                             .mean = no_mean,
                                             .scatter = no_scatter,
                                             .spread = no_spread,
                                             .project = no_project};

/* Then the host does it, with the same result. */
static void test_a_device_without_memory(void **state) {
    (void)state;
    ki_vectors v = vectors_of(1, DIM);
    const ki_knn_device full = {.type = &full_type}, none = {0};
    kith_judgement there, here;
    kith_error err = {0};
    ki_judge_options options;
    assert_ok(ki_judge_options_take(NULL, &options, &err), &err);
    ki_judge_input input = {.labels = v.label, .n_labels = N, .device = &full};
    assert_ok(ki_judge_rows(&v, &full, &input.rows, &err), &err);
    input.rows.there = v.host; /* as if it lay there */
    assert_ok(ki_judge_run(&input, &options, &there, &err), &err);
    assert_true(n_asked > 0);
    input.device = &none;
    input.rows.there = NULL;
    assert_ok(ki_judge_run(&input, &options, &here, &err), &err);
    assert_memory_equal(there.retrieval.query, here.retrieval.query, N * sizeof *here.retrieval.query);
    assert_true(there.kmeans_objective == here.kmeans_objective);
    kith_judgement_release(&there);
    input.device = &full;
    options.has_retrieval = false; /* clustering is the first to ask */
    n_asked = 0;
    assert_ok(ki_judge_run(&input, &options, &there, &err), &err);
    assert_int_equal(n_asked, 1);
    assert_true(there.kmeans_objective == here.kmeans_objective);
    kith_judgement_release(&there);
    kith_judgement_release(&here);

    for (int m = 0; m < 2; m++) {
        const kith_pca_options wanted = {.size = sizeof(kith_pca_options),
                                         .n_components = 2,
                                         .method = m ? KITH_PCA_RANDOMIZED : KITH_PCA_EXACT};
        kith_pca pca[2];
        kith_array projected[2];
        n_asked = 0;
        for (int w = 0; w < 2; w++) {
            const ki_knn_device *device = w ? &full : NULL;
            assert_ok(ki_pca_fit(&input.rows, device, &wanted, &pca[w], &err), &err);
            assert_ok(ki_pca_apply(&pca[w], &input.rows, device, &projected[w], &err), &err);
        }
        assert_int_equal(n_asked, 3); /* the mean, the sums (once), the projection */
        assert_memory_equal(projected[0].data, projected[1].data, N * 2 * sizeof(float));
        for (int w = 0; w < 2; w++) {
            kith_pca_release(&pca[w]);
            kith_array_release(&projected[w]);
        }
    }
    ki_vectors_release(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_roles),
                                       cmocka_unit_test(test_clusters_of_some_rows),
                                       cmocka_unit_test(test_a_device_without_memory)};
    return cmocka_run_group_tests_name("judge/judge", tests, NULL, NULL);
}
