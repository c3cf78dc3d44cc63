/* Principal components: the defining equations, and the randomised path against the exact one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/knn.h"
#include "support/testing.h"

/* Rows whose variance falls from column to column, then mixed by a fixed rotation-like map. */
static kith_array falling(int64_t n, int64_t dim, double fall) {
    kith_array a;
    kith_error err;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &a, &err), &err);
    float *x = a.data;
    for (int64_t i = 0; i < n; i++) {
        ki_rng rng = ki_rng_at(2, KI_RNG_TEST, 20, (uint32_t)i);
        double scale = 1, last = 0;
        for (int64_t k = 0; k < dim; k++, scale *= fall) {
            const double value = 3 * scale * ki_rng_normal(&rng);
            x[i * dim + k] = (float)(value + 0.3 * last + 5 + (double)k);
            last = value;
        }
    }
    return a;
}

static void check_equations(const kith_array *a, const kith_pca *p) {
    const int64_t n = a->dim[0], dim = a->dim[1], m = p->components.dim[0];
    const double *v = p->components.data, *mean = p->mean.data, *variance = p->variance.data;
    double *cov = calloc((size_t)(dim * dim), sizeof *cov);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < dim; k++)
            for (int64_t l = 0; l < dim; l++)
                cov[k * dim + l] += ((double)((float *)a->data)[i * dim + k] - mean[k]) *
                                    ((double)((float *)a->data)[i * dim + l] - mean[l]) / (double)(n - 1);
    for (int64_t j = 0; j < m; j++) {
        for (int64_t i = 0; i <= j; i++) {
            double dot = 0;
            for (int64_t k = 0; k < dim; k++) dot += v[i * dim + k] * v[j * dim + k];
            if (fabs(dot - (i == j)) > 1e-9)
                fail_msg("components %d and %d: product %g", (int)i, (int)j, dot);
        }
        for (int64_t k = 0; k < dim; k++) {
            double cv = 0;
            for (int64_t l = 0; l < dim; l++) cv += cov[k * dim + l] * v[j * dim + l];
            if (fabs(cv - variance[j] * v[j * dim + k]) > 1e-8 * variance[0])
                fail_msg("component %d entry %d: C v = %.12g, lambda v = %.12g", (int)j, (int)k, cv,
                         variance[j] * v[j * dim + k]);
        }
    }
    free(cov);
}

static void test_equations_hold(void **state) {
    (void)state;
    kith_array a = falling(1300, 24, 0.8), z;
    kith_pca p;
    kith_error err;
    assert_ok(
        kith_pca_fit(&a, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = 24}, &p, &err),
        &err);
    check_equations(&a, &p);
    double sum = 0;
    for (int j = 0; j < 24; j++) sum += ((double *)p.variance.data)[j];
    if (fabs(sum - p.total_variance) > 1e-9 * sum)
        fail_msg("variances sum to %.12g, total %.12g", sum, p.total_variance);
    /* Projection onto all components keeps distances. */
    assert_ok(kith_pca_apply(&p, &a, &z, &err), &err);
    const float *x = a.data, *y = z.data;
    for (int i = 1; i < 50; i++) {
        double d = 0, e = 0;
        for (int k = 0; k < 24; k++) {
            d += pow((double)(x[i * 24 + k] - x[k]), 2);
            e += pow((double)(y[i * 24 + k] - y[k]), 2);
        }
        if (fabs(d - e) > 1e-4 * d) fail_msg("row %d: distance %.9g, projected %.9g", i, d, e);
    }
    kith_array_release(&z);
    kith_pca_release(&p);
    kith_array_release(&a);
}

/* Whitened rows have variance 1 and no covariance; a component without variance is 0, not noise. */
static void test_whitened(void **state) {
    (void)state;
    enum { N = 1300, DIM = 24 };
    kith_array a = falling(N, DIM, 0.8), z;
    kith_pca p;
    kith_error err;
    for (int i = 0; i < N; i++) ((float *)a.data)[i * DIM + 3] = 2; /* one direction less */
    assert_ok(
        kith_pca_fit(
            &a, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = DIM, .whiten = true},
            &p, &err),
        &err);
    assert_ok(kith_pca_apply(&p, &a, &z, &err), &err);
    const float *y = z.data;
    for (int j = 0; j < DIM; j++) {
        for (int k = 0; k <= j; k++) {
            double sum = 0;
            for (int i = 0; i < N; i++) sum += (double)y[i * DIM + j] * (double)y[i * DIM + k];
            const double wanted = j == k && j < DIM - 1 ? 1 : 0;
            if (fabs(sum / (N - 1) - wanted) > 1e-5)
                fail_msg("components %d and %d: covariance %g, wanted %g", j, k, sum / (N - 1), wanted);
        }
    }
    kith_array_release(&z);
    kith_pca_release(&p);
    kith_array_release(&a);
}

static void test_randomized_meets_exact(void **state) {
    (void)state;
    kith_array a = falling(900, 200, 0.93);
    kith_pca p[2];
    kith_error err;
    assert_ok(
        kith_pca_fit(&a,
                     &(kith_pca_options){
                         .size = sizeof(kith_pca_options), .n_components = 12, .method = KITH_PCA_EXACT},
                     p, &err),
        &err);
    assert_ok(
        kith_pca_fit(&a,
                     &(kith_pca_options){
                         .size = sizeof(kith_pca_options), .n_components = 12, .method = KITH_PCA_RANDOMIZED},
                     p + 1, &err),
        &err);
    for (int j = 0; j < 12; j++) {
        const double exact = ((double *)p[0].variance.data)[j], found = ((double *)p[1].variance.data)[j];
        if (fabs(found - exact) > 1e-4 * exact) fail_msg("variance %d: %.9g, exact %.9g", j, found, exact);
        double dot = 0;
        for (int k = 0; k < 200; k++)
            dot +=
                ((double *)p[0].components.data)[j * 200 + k] * ((double *)p[1].components.data)[j * 200 + k];
        if (dot < 0.999) fail_msg("component %d: cosine with the exact one %.6f", j, dot);
    }
    kith_pca_release(p);
    kith_pca_release(p + 1);
    kith_array_release(&a);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    kith_array a = falling(1500, 300, 0.98);
    kith_error err;
    for (int method = KITH_PCA_EXACT; method <= KITH_PCA_RANDOMIZED; method++) {
        kith_pca p[2];
        for (int t = 0; t < 2; t++) {
            ki_threads_set(t ? 3 : 1);
            assert_ok(kith_pca_fit(&a,
                                   &(kith_pca_options){.size = sizeof(kith_pca_options),
                                                       .n_components = 30,
                                                       .method = (kith_pca_method)method},
                                   p + t, &err),
                      &err);
        }
        ki_threads_set(0);
        assert_memory_equal(p[0].components.data, p[1].components.data, 30 * 300 * sizeof(double));
        kith_pca_release(p);
        kith_pca_release(p + 1);
    }
    kith_array_release(&a);
}

static void test_bad_input_is_named(void **state) {
    (void)state;
    kith_array a = falling(10, 4, 0.9);
    kith_pca p;
    kith_error err;
    assert_int_equal(
        kith_pca_fit(&a, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = 5}, &p, &err),
        KITH_EINVAL);
    assert_string_equal(err.message, "5 components of 10 rows of 4 values; wanted 1 to 4");
    a.dim[0] = 1;
    assert_int_equal(
        kith_pca_fit(&a, &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = 1}, &p, &err),
        KITH_EINVAL);
    a.dim[0] = 10;
    kith_array_release(&a);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    kith_array a = falling(200, 30, 0.9);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        kith_pca p = {0};
        kith_array z = {0};
        kith_error err;
        ki_alloc_fail_after(n);
        kith_status status = kith_pca_fit(
            &a,
            &(kith_pca_options){
                .size = sizeof(kith_pca_options), .n_components = 3, .method = KITH_PCA_RANDOMIZED},
            &p, &err);
        if (status == KITH_OK) status = kith_pca_apply(&p, &a, &z, &err);
        ki_alloc_fail_after(-1);
        kith_pca_release(&p);
        kith_array_release(&z);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        n_failed++;
    }
    assert_true(n_failed > 10);
    kith_array_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equations_hold),         cmocka_unit_test(test_whitened),
        cmocka_unit_test(test_randomized_meets_exact), cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_bad_input_is_named),     cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
