/* k-means against plain Lloyd iterations in float64, and its start against k-means++'s probabilities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "knn/kmeans.h"
#include "support/testing.h"

static kith_array blobs(int64_t n, int64_t dim, int64_t n_blobs, double spread, uint32_t stream) {
    kith_array a;
    kith_error err;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &a, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        ki_rng centre = ki_rng_at(3, KI_RNG_TEST, stream, 1000 + (uint32_t)(i % n_blobs));
        ki_rng noise = ki_rng_at(3, KI_RNG_TEST, stream + 1, (uint32_t)i);
        for (int64_t k = 0; k < dim; k++)
            ((float *)a.data)[i * dim + k] = (float)(ki_rng_normal(&centre) + spread * ki_rng_normal(&noise));
    }
    return a;
}

static double sqdist(const float *x, const double *c, int64_t dim) {
    double sum = 0;
    for (int64_t k = 0; k < dim; k++) sum += ((double)x[k] - c[k]) * ((double)x[k] - c[k]);
    return sum;
}

/* Plain Lloyd from given rows; returns the objective after n_iterations updates. */
static double plain_lloyd(const kith_array *a, const int64_t *start, int64_t n_clusters, int64_t n_iterations,
                          int32_t *cluster) {
    const int64_t n = a->dim[0], dim = a->dim[1];
    const float *x = a->data;
    double *c = calloc((size_t)(n_clusters * dim), sizeof *c), objective = 0;
    for (int64_t j = 0; j < n_clusters; j++)
        for (int64_t k = 0; k < dim; k++) c[j * dim + k] = (double)x[start[j] * dim + k];
    for (int64_t t = 0; t <= n_iterations; t++) {
        objective = 0;
        for (int64_t i = 0; i < n; i++) {
            double least = INFINITY;
            for (int64_t j = 0; j < n_clusters; j++) {
                const double d = sqdist(x + i * dim, c + j * dim, dim);
                if (d < least) least = d, cluster[i] = (int32_t)j;
            }
            objective += least;
        }
        if (t == n_iterations) break;
        for (int64_t j = 0; j < n_clusters; j++) {
            int64_t size = 0;
            double sum[64] = {0};
            for (int64_t i = 0; i < n; i++) {
                if (cluster[i] != j) continue;
                size++;
                for (int64_t k = 0; k < dim; k++) sum[k] += (double)x[i * dim + k];
            }
            for (int64_t k = 0; size && k < dim; k++) c[j * dim + k] = (double)(float)(sum[k] / (double)size);
        }
    }
    free(c);
    return objective;
}

static void test_equals_plain_lloyd(void **state) {
    (void)state;
    kith_array a = blobs(3000, 24, 60, 0.9, 1);
    int64_t start[70];
    int32_t *wanted = calloc(3000, sizeof *wanted);
    kith_error err;
    assert_ok(ki_kmeans_random(3000, 70, 5, 0, start, &err), &err);
    double before = INFINITY;
    for (int64_t t = 1; t <= 12; t++) {
        KITH_OPTIONS(kith_kmeans_options, o);
        o.n_clusters = 70;
        o.is_random_start = true, o.seed = 5, o.normalize = false, o.n_iterations = t;
        kith_kmeans_result r;
        assert_ok(kith_kmeans(&a, &o, &r, &err), &err);
        const double objective = plain_lloyd(&a, start, 70, t, wanted);
        if (!(fabs(r.objective - objective) <= 1e-6 * objective))
            fail_msg("after %d iterations: objective %.9g, wanted %.9g", (int)t, r.objective, objective);
        int n_other = 0;
        for (int i = 0; i < 3000; i++) n_other += r.cluster[i] != wanted[i];
        if (n_other > 2) fail_msg("after %d iterations: %d of 3000 rows in another cluster", (int)t, n_other);
        assert_true(r.objective <= before);
        before = r.objective;
        kith_kmeans_result_release(&r);
    }
    free(wanted);
    kith_array_release(&a);
}

static void test_finds_clear_clusters(void **state) {
    (void)state;
    kith_array a = blobs(2000, 32, 40, 0.05, 2);
    KITH_OPTIONS(kith_kmeans_options, o);
    o.n_clusters = 40;
    o.n_restarts = 5;
    kith_kmeans_result r;
    kith_error err;
    assert_ok(kith_kmeans(&a, &o, &r, &err), &err);
    for (int i = 40; i < 2000; i++) assert_int_equal(r.cluster[i], r.cluster[i % 40]);
    for (int c = 0; c < 40; c++) assert_int_equal(r.size[c], 50);
    kith_kmeans_result_release(&r);
    kith_array_release(&a);
}

static void test_small_and_degenerate(void **state) {
    (void)state;
    kith_array a = blobs(50, 6, 50, 0.5, 3);
    kith_error err;
    kith_kmeans_result r;
    KITH_OPTIONS(kith_kmeans_options, o);
    o.n_clusters = 50;
    o.normalize = false;
    assert_ok(kith_kmeans(&a, &o, &r, &err), &err); /* every row its own cluster */
    assert_true(r.objective == 0);
    kith_kmeans_result_release(&r);
    o.n_clusters = 1;
    assert_ok(kith_kmeans(&a, &o, &r, &err), &err);
    assert_int_equal(r.size[0], 50);
    kith_kmeans_result_release(&r);
    /* Three different rows, five clusters. */
    for (int i = 3; i < 50; i++)
        memcpy((float *)a.data + i * 6, (float *)a.data + i % 3 * 6, 6 * sizeof(float));
    o.n_clusters = 5;
    assert_ok(kith_kmeans(&a, &o, &r, &err), &err);
    assert_true(r.objective < 1e-9);
    kith_kmeans_result_release(&r);
    o.n_clusters = 51;
    assert_int_equal(kith_kmeans(&a, &o, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "51 clusters for 50 rows; wanted 1 to 50");
    kith_array_release(&a);
}

/* 990 rows at one point and 10 far ones, a random start among the many: most clusters start empty. */
static void test_empty_clusters_are_refilled(void **state) {
    (void)state;
    kith_array a = blobs(1000, 4, 1000, 1.0, 4);
    for (int i = 0; i < 990; i++)
        for (int k = 0; k < 4; k++) ((float *)a.data)[i * 4 + k] = 1;
    KITH_OPTIONS(kith_kmeans_options, o);
    o.n_clusters = 11;
    o.is_random_start = true, o.normalize = false;
    kith_kmeans_result r;
    kith_error err;
    assert_ok(kith_kmeans(&a, &o, &r, &err), &err);
    assert_true(r.n_refilled > 0);
    assert_true(r.objective < 1e-9);
    for (int c = 0; c < 11; c++) assert_true(r.size[c] > 0);
    kith_kmeans_result_release(&r);
    kith_array_release(&a);
}

/* Rows at 0, 1, 3 and 6 on a line, three centres: the probability of each set of three, worked out from
 * the definition, against 4000 runs. Two of the three are drawn in one batch. */
static void test_start_has_the_probabilities_of_plus_plus(void **state) {
    (void)state;
    const double at[] = {0, 1, 3, 6};
    float x[] = {0, 1, 3, 6};
    double wanted[4] = {0}; /* by the one left out */
    for (int a = 0; a < 4; a++) {
        double sum_b = 0;
        for (int b = 0; b < 4; b++) sum_b += (at[b] - at[a]) * (at[b] - at[a]);
        for (int b = 0; b < 4; b++) {
            const double p_b = (at[b] - at[a]) * (at[b] - at[a]) / sum_b;
            double w[4], sum_c = 0;
            for (int c = 0; c < 4; c++) {
                w[c] = fmin((at[c] - at[a]) * (at[c] - at[a]), (at[c] - at[b]) * (at[c] - at[b]));
                sum_c += w[c];
            }
            for (int c = 0; c < 4; c++)
                if (w[c] > 0 && p_b > 0) wanted[6 - a - b - c] += 0.25 * p_b * w[c] / sum_c;
        }
    }
    const ki_rows rows = {KITH_F32, 4, 1, x, NULL};
    ki_kmeans_data data = {.n = 4, .dim = 1, .x = x};
    kith_error err;
    assert_ok(ki_panels_init(&rows, KITH_SQEUCLIDEAN, NULL, &data.panels, &err), &err);
    enum { RUNS = 4000 };
    int found[4] = {0};
    for (int run = 0; run < RUNS; run++) {
        int64_t row[3];
        assert_ok(ki_kmeans_plus_plus(&data, 3, (uint64_t)run, 0, row, &err), &err);
        found[6 - row[0] - row[1] - row[2]]++;
    }
    ki_panels_release(&data.panels);
    double chi2 = 0;
    for (int i = 0; i < 4; i++) chi2 += pow(found[i] - RUNS * wanted[i], 2) / (RUNS * wanted[i]);
    if (chi2 > 16.3) /* 0.999 of chi-squared with 3 degrees of freedom */
        fail_msg("chi-squared %.1f: found %d %d %d %d, wanted %.0f %.0f %.0f %.0f", chi2, found[0], found[1],
                 found[2], found[3], RUNS * wanted[0], RUNS * wanted[1], RUNS * wanted[2], RUNS * wanted[3]);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    kith_array a = blobs(4000, 20, 100, 1.0, 6);
    kith_kmeans_result r[2];
    kith_error err;
    for (int t = 0; t < 2; t++) {
        KITH_OPTIONS(kith_kmeans_options, o);
        o.n_clusters = 150;
        o.n_restarts = 2;
        ki_threads_set(t ? 3 : 1);
        assert_ok(kith_kmeans(&a, &o, r + t, &err), &err);
    }
    ki_threads_set(0);
    assert_memory_equal(r[0].centroids.data, r[1].centroids.data, 150 * 20 * sizeof(float));
    assert_memory_equal(r[0].cluster, r[1].cluster, 4000 * sizeof *r[0].cluster);
    assert_true(r[0].objective == r[1].objective);
    kith_kmeans_result_release(r);
    kith_kmeans_result_release(r + 1);
    kith_array_release(&a);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    kith_array a = blobs(300, 5, 10, 1.0, 7);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        KITH_OPTIONS(kith_kmeans_options, o);
        o.n_clusters = 20;
        o.n_iterations = 3;
        kith_kmeans_result r;
        kith_error err;
        ki_alloc_fail_after(n);
        const kith_status status = kith_kmeans(&a, &o, &r, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) {
            kith_kmeans_result_release(&r);
            break;
        }
        assert_int_equal(status, KITH_ENOMEM);
        n_failed++;
    }
    assert_true(n_failed > 20);
    kith_array_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_plain_lloyd),
        cmocka_unit_test(test_finds_clear_clusters),
        cmocka_unit_test(test_small_and_degenerate),
        cmocka_unit_test(test_empty_clusters_are_refilled),
        cmocka_unit_test(test_start_has_the_probabilities_of_plus_plus),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
