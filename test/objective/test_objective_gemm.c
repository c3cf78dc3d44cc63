/* Matrix products beside plain sums in double, at inner dimensions on both sides of every cut; of none, too. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/gemm.h"
#include "support/testing.h"

enum { MARGIN = 3 };                       /* numbers between rows that no product may touch */
static const ki_real untouched = 123456.0; /* in them */

typedef struct matrix {
    int64_t rows, cols, ld;
    ki_real *at;
} matrix;

static matrix matrix_of(ki_rng *rng, int64_t rows, int64_t cols) {
    matrix m = {.rows = rows, .cols = cols, .ld = cols + MARGIN};
    m.at = ki_alloc((size_t)(rows * m.ld), sizeof *m.at);
    for (int64_t i = 0; i < rows * m.ld; i++)
        m.at[i] = i % m.ld < cols ? (ki_real)ki_rng_normal(rng) : untouched;
    return m;
}

static double entry(const matrix *m, bool transpose, int64_t row, int64_t col) {
    return (double)(transpose ? m->at[col * m->ld + row] : m->at[row * m->ld + col]);
}

static void check(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha,
                  double beta, bool is_one) {
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, (uint32_t)k, (uint32_t)(m * 64 + n));
    const matrix a = matrix_of(&rng, transpose_a ? k : m, transpose_a ? m : k);
    const matrix b = matrix_of(&rng, transpose_b ? n : k, transpose_b ? k : n);
    const matrix before = matrix_of(&rng, m, n), c = matrix_of(&rng, m, n);
    for (int64_t i = 0; i < m * c.ld; i++) c.at[i] = beta != 0 ? before.at[i] : (ki_real)NAN;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = n; j < c.ld; j++) c.at[i * c.ld + j] = untouched;
    }
    if (is_one)
        ki_gemm_one(transpose_b, m, n, k, (ki_real)alpha, a.at, a.ld, b.at, b.ld, (ki_real)beta, c.at, c.ld);
    else
        ki_gemm(transpose_a, transpose_b, m, n, k, (ki_real)alpha, a.at, a.ld, b.at, b.ld, (ki_real)beta,
                c.at, c.ld);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < c.ld; j++) {
            double wanted = beta != 0 ? beta * (double)before.at[i * c.ld + j] : 0, size = fabs(wanted);
            if (j >= n) {
                assert_true(c.at[i * c.ld + j] == untouched);
                continue;
            }
            for (int64_t l = 0; l < k; l++) {
                const double term = alpha * entry(&a, transpose_a, i, l) * entry(&b, transpose_b, l, j);
                wanted += term, size += fabs(term);
            }
            const double found = (double)c.at[i * c.ld + j];
            if (!(fabs(found - wanted) <= 1e-6 * size))
                fail_msg("%s%s%s [%lld, %lld], %lld inside: [%lld, %lld] is %.9g, wanted %.9g",
                         is_one ? "one" : "all", transpose_a ? " a^T" : "", transpose_b ? " b^T" : "",
                         (long long)m, (long long)n, (long long)k, (long long)i, (long long)j, found, wanted);
        }
    }
    ki_free(a.at), ki_free(b.at), ki_free(before.at), ki_free(c.at);
}

static void test_products(void **state) {
    (void)state;
    static const int64_t inner[] = {0,   1,   2,   31,  255, 256, 257,  287,  288,  289,  480, 511,
                                    512, 513, 543, 544, 767, 768, 1023, 1024, 1025, 1300, 1536};
    static const double scales[][2] = {{1, 0}, {1, 1}, {-2, 0}, {0.5, 3}};
    for (size_t i = 0; i < N_ROWS(inner); i++) {
        for (size_t s = 0; s < N_ROWS(scales); s++) {
            for (int t = 0; t < 4; t++)
                check(t & 1, t & 2, 5, 7, inner[i], scales[s][0], scales[s][1], false);
            for (int t = 0; t < 2; t++) check(false, t, 7, 5, inner[i], scales[s][0], scales[s][1], true);
        }
    }
}

/* OpenBLAS cuts a long inner dimension elsewhere with threads than without: the cuts are ours, and so the bits the same. */
static void test_threads_do_not_matter(void **state) {
    (void)state;
    enum { M = 160, N = 150 };
    static const int64_t inner[] = {255, 256, 257, 300, 480, 511, 512, 513, 700, 767, 1000, 1300};
    static ki_real c[2][M * N];
    const int n_before = ki_threads();
    for (size_t i = 0; i < N_ROWS(inner); i++) {
        ki_rng rng = ki_rng_at(6, KI_RNG_TEST, (uint32_t)inner[i], 0);
        const matrix a = matrix_of(&rng, M, inner[i]), b = matrix_of(&rng, N, inner[i]);
        for (int with = 0; with < 2; with++) {
            ki_threads_set(with ? 2 : 1);
            ki_gemm(false, true, M, N, inner[i], 1, a.at, a.ld, b.at, b.ld, 0, c[with], N);
        }
        if (memcmp(c[0], c[1], sizeof c[0]) != 0)
            fail_msg("%lld inside: other bits with 2 threads than with 1", (long long)inner[i]);
        ki_free(a.at), ki_free(b.at);
    }
    ki_threads_set(n_before);
}

/* No row or no column: nothing is read or written, whatever the pointers are. */
static void test_nothing_to_multiply(void **state) {
    (void)state;
    ki_real c = untouched;
    static const int64_t sizes[][2] = {{0, 4}, {4, 0}, {0, 0}};
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        ki_gemm(false, true, sizes[i][0], sizes[i][1], 600, 1, NULL, 600, NULL, 600, 0, &c, 4);
        ki_gemm_one(true, sizes[i][0], sizes[i][1], 600, 1, NULL, 600, NULL, 600, 0, &c, 4);
        assert_true(c == untouched);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_threads_do_not_matter),
                                       cmocka_unit_test(test_nothing_to_multiply)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
