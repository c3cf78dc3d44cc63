/* The two products of a pair loss beside plain sums in double: batches on both sides of a strip's size, and rows of
 * weights that are full, nearly empty, or crowded with numbers that matter only together. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "objective/pair/product.h"
#include "support/testing.h"

enum { DIM = 6, MOST = 300, LD = MOST + 4 };

static ki_real x[MOST * DIM], h[MOST * LD], s[MOST * LD], dst[MOST * DIM], before[MOST * DIM];
static const int64_t sizes[] = {1, 5, 31, 32, 33, 64, 65, 100, 256, 257, 290};

static void fill_x(void) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < MOST * DIM; i++) {
        x[i] = (ki_real)ki_rng_normal(&rng);
        before[i] = (ki_real)ki_rng_normal(&rng);
    }
}

static void test_gram(void **state) {
    (void)state;
    fill_x();
    for (size_t k = 0; k < N_ROWS(sizes); k++) {
        const int64_t m = sizes[k];
        for (int64_t i = 0; i < MOST * LD; i++) s[i] = -1000;
        ki_gram(x, m, DIM, s, LD);
        for (int64_t i = 0; i < MOST; i++) {
            for (int64_t j = 0; j < LD; j++) {
                double wanted = i < m && j < m ? 0 : -1000, size = 0;
                for (int64_t d = 0; d < DIM && i < m && j < m; d++) {
                    const double term = (double)x[i * DIM + d] * (double)x[j * DIM + d];
                    wanted += term, size += fabs(term);
                }
                if (!(fabs((double)s[i * LD + j] - wanted) <= 1e-6 * size))
                    fail_msg("%lld rows: [%lld, %lld] is %.9g, wanted %.9g", (long long)m, (long long)i,
                             (long long)j, (double)s[i * LD + j], wanted);
            }
        }
    }
}

/* Weights of row i: 1 in the middle, where x is 0 so that its rounding hides nothing, and `small` in every `every`-th
 * column. The other x are positive: what is left out adds up. */
static void fill_h(int64_t m, int64_t n, int64_t every, ki_real small) {
    fill_x();
    for (int64_t i = 0; i < MOST * DIM; i++) x[i] = ki_fabs(x[i]);
    for (int64_t d = 0; d < DIM; d++) x[n / 2 * DIM + d] = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < LD; j++) h[i * LD + j] = j < n && j % every == i % every ? small : 0;
        h[i * LD + n / 2] = i % 2 ? 1 : -1;
    }
}

/* What is left out is at most four units in the last place of the row's largest weight, times the largest |x|. */
static void check_weighted(int64_t m, int64_t n, ki_real scale, bool add, const char *what) {
    double most_x = 0;
    for (int64_t i = 0; i < n * DIM; i++) most_x = fmax(most_x, fabs((double)x[i]));
    for (int64_t i = 0; i < MOST * DIM; i++) dst[i] = add ? 0 : before[i];
    ki_weighted_rows(ki_vec_get(), h, LD, m, n, x, DIM, scale, add, dst);
    for (int64_t i = 0; i < MOST; i++) {
        for (int64_t d = 0; d < DIM; d++) {
            double wanted = i < m || add ? 0 : (double)before[i * DIM + d], size = 0;
            for (int64_t j = 0; j < n && i < m; j++) {
                const double term = (double)scale * (double)h[i * LD + j] * (double)x[j * DIM + d];
                wanted += term, size += fabs(term);
            }
            const double left_out = size > 0 ? 4 * fabs((double)scale) * most_x : 0;
            const double allowed = (left_out + (double)n * size) * (double)KI_REAL_EPS;
            if (!(fabs((double)dst[i * DIM + d] - wanted) <= allowed))
                fail_msg("%s, [%lld, %lld]: row %lld, %lld is %.9g, wanted %.9g (off by %.2g, at most %.2g)",
                         what, (long long)m, (long long)n, (long long)i, (long long)d,
                         (double)dst[i * DIM + d], wanted, fabs((double)dst[i * DIM + d] - wanted), allowed);
        }
    }
}

/* += adds to what was there. */
static void test_adding(void **state) {
    (void)state;
    for (int64_t every = 1; every <= 50; every += 49) {
        const int64_t m = 40, n = 100;
        ki_real without[MOST * DIM];
        fill_h(m, n, every, (ki_real)0.5);
        ki_weighted_rows(ki_vec_get(), h, LD, m, n, x, DIM, 1, false, without);
        for (int64_t i = 0; i < m * DIM; i++) dst[i] = before[i];
        ki_weighted_rows(ki_vec_get(), h, LD, m, n, x, DIM, 1, true, dst);
        for (int64_t i = 0; i < m * DIM; i++) {
            const double wanted = (double)before[i] + (double)without[i];
            if (!(fabs((double)dst[i] - wanted) <= 1e-5 * fmax(1, fabs(wanted))))
                fail_msg("every %lld: number %lld is %.9g, wanted %.9g", (long long)every, (long long)i,
                         (double)dst[i], wanted);
        }
    }
}

static void test_weighted_rows(void **state) {
    (void)state;
    static const int64_t columns[] = {1, 63, 64, 65, 128, 290};
    /* In units in the last place of the row's largest, above and below each limit that is tried. */
    static const double small[] = {0, 0.49, 0.51, 0.03, 0.032, 0.0078, 0.0079, 0.001, 100, 1e5};
    static const int64_t every[] = {1, 3, 5, 70};
    for (size_t a = 0; a < N_ROWS(sizes); a++) {
        for (size_t b = 0; b < N_ROWS(columns); b++) {
            for (size_t k = 0; k < N_ROWS(small) * N_ROWS(every); k++) {
                const double size = small[k / N_ROWS(every)];
                char what[64];
                snprintf(what, sizeof what, "every %lld is %g units", (long long)every[k % N_ROWS(every)],
                         size);
                fill_h(sizes[a], columns[b], every[k % N_ROWS(every)], (ki_real)(size * (double)KI_REAL_EPS));
                check_weighted(sizes[a], columns[b], k % 2 ? 1 : -2, k % 3 == 0, what);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gram), cmocka_unit_test(test_adding),
                                       cmocka_unit_test(test_weighted_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
