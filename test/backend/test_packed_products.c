/* Products with packed weights, against sums in double: edges of every kind, nothing written beside dst, and rows that have the same bits
 * whatever is beside them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/packed.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "support/testing.h"

enum { GUARD = 64 }; /* numbers on both sides of dst */
static const float untouched = 12345;

typedef struct product {
    int64_t m, n, k;
    bool has_bias, across;
    float *a, *weights, *bias, *dst;
    cpu_packed packed;
} product;

static float *numbers(int64_t n, unsigned seed) {
    float *x = ki_alloc((size_t)n, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    return x;
}

static product product_of(int64_t m, int64_t n, int64_t k, bool has_bias, bool across) {
    product p = {m, n, k, has_bias, across, numbers(m * k, 1), numbers(n * k, 2), numbers(n, 3), NULL, {0}};
    kith_error err;
    assert_ok(cpu_packed_init(&p.packed, n, k, has_bias, &err), &err);
    cpu_packed_fill(&p.packed, p.weights, across, p.bias);
    p.dst = numbers(m * n + 2 * GUARD, 4);
    for (int64_t i = 0; i < m * n + 2 * GUARD; i++) p.dst[i] = untouched;
    return p;
}

static void release(product *p) {
    cpu_packed_release(&p->packed);
    ki_free(p->a);
    ki_free(p->weights);
    ki_free(p->bias);
    ki_free(p->dst);
}

static void run(const product *p, int64_t m, float *dst) {
    cpu_packed_run(&(cpu_packed_product){.with = &p->packed, .m = m, .a = p->a, .dst = dst});
}

static double wanted(const product *p, int64_t i, int64_t j) {
    double sum = p->has_bias ? (double)p->bias[j] : 0;
    for (int64_t k = 0; k < p->k; k++)
        sum += (double)p->a[i * p->k + k] * (double)p->weights[p->across ? k * p->n + j : j * p->k + k];
    return sum;
}

static void check(const product *p) {
    run(p, p->m, p->dst + GUARD);
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const double found = (double)p->dst[GUARD + i * p->n + j], sum = wanted(p, i, j);
            if (fabs(found - sum) > 2e-6 * (double)p->k + 1e-5)
                fail_msg("%lld x %lld x %lld at %lld, %lld: %.7g, wanted %.7g", (long long)p->m,
                         (long long)p->n, (long long)p->k, (long long)i, (long long)j, found, sum);
        }
    }
    for (int64_t i = 0; i < GUARD; i++) {
        assert_true(p->dst[i] == untouched);
        assert_true(p->dst[GUARD + p->m * p->n + i] == untouched);
    }
}

static void test_edges(void **state) {
    (void)state;
    static const int64_t ms[] = {1, 2, 3, 4, 5, 6, 7, 25, 98, 197}, ns[] = {1, 15, 16, 17, 63, 65, 80, 129},
                         ks[] = {1, 33};
    for (size_t m = 0; m < N_ROWS(ms); m++) {
        for (size_t n = 0; n < N_ROWS(ns); n++) {
            for (size_t k = 0; k < N_ROWS(ks); k++) {
                for (int how = 0; how < 4; how++) {
                    product p = product_of(ms[m], ns[n], ks[k], how & 1, how & 2);
                    check(&p);
                    release(&p);
                }
            }
        }
    }
}

/* Longer than a part of a sum, and not a multiple of one. */
static void test_long_sums(void **state) {
    (void)state;
    static const int64_t ks[] = {768, 769, 1600};
    for (size_t k = 0; k < N_ROWS(ks); k++) {
        product p = product_of(13, 70, ks[k], true, k & 1);
        check(&p);
        release(&p);
    }
}

static void test_same_bits(void **state) {
    (void)state;
    product p = product_of(301, 200, 900, true, false);
    float *again = numbers(p.m * p.n, 5);
    ki_threads_set(1);
    run(&p, p.m, p.dst);
    static const int64_t ms[] = {301, 300, 100, 7, 1};
    for (size_t i = 0; i < N_ROWS(ms); i++) {
        for (int threads = 1; threads <= 3; threads++) {
            ki_threads_set(threads);
            run(&p, ms[i], again);
            if (memcmp(p.dst, again, (size_t)(ms[i] * p.n) * sizeof *again) != 0)
                fail_msg("%lld rows with %d threads have other bits than 301 with one", (long long)ms[i],
                         threads);
        }
    }
    ki_threads_set(0);
    ki_free(again);
    release(&p);
}

/* What was packed before is gone. */
static void test_filled_anew(void **state) {
    (void)state;
    product p = product_of(9, 40, 50, true, false);
    for (int64_t i = 0; i < p.n * p.k; i++) p.weights[i] *= -2;
    for (int64_t i = 0; i < p.n; i++) p.bias[i] += 1;
    cpu_packed_fill(&p.packed, p.weights, false, p.bias);
    check(&p);
    release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_long_sums),
                                       cmocka_unit_test(test_same_bits), cmocka_unit_test(test_filled_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
