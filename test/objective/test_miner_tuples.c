/* N-pair tuples: what stays of each row, how often each column does, and the loss it makes. */
#include "base/rng.h"
#include "objective/cases.h"

enum { N_CLASSES = 4, EACH = 3, M = N_CLASSES * EACH, DIM = 3, N_STEPS = 3000 };

static void fill(ki_real *x, int32_t *label) {
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < M; i++) {
        label[i] = 7 + 1000 * (i % N_CLASSES); /* far apart, and not side by side */
        for (int k = 0; k < DIM; k++) x[i * DIM + k] = (ki_real)ki_rng_normal(&rng);
    }
}

/* ln(1 + sum over kept negatives of e^(s_n - s_p)), by the pairs that `weight` shows to be kept. */
static double npair_by_hand(const ki_real *s, const ki_real *weight, const int32_t *label) {
    double sum = 0;
    int n_pairs = 0;
    for (int i = 0; i < M; i++) {
        for (int p = 0; p < M; p++) {
            if (label[p] != label[i] || weight[i * M + p] == 0) continue;
            double others = 0;
            for (int n = 0; n < M; n++)
                if (label[n] != label[i] && weight[i * M + n] != 0)
                    others += exp((double)(s[i * M + n] - s[i * M + p]));
            sum += log1p(others);
            n_pairs++;
        }
    }
    return sum / n_pairs;
}

static void check(bool one_positive) {
    ki_real x[M * DIM];
    int32_t label[M];
    int kept[M * M] = {0};
    fill(x, label);
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of(one_positive ? "loss: {name: npair}\nminer: {name: tuples, positives: one}"
                                  : "loss: {name: npair}\nminer: tuples",
                     &sizes);
    for (int step = 0; step < N_STEPS; step++) {
        const ki_batch batch = {.m = M,
                                .label = label,
                                .step = (uint64_t)step,
                                .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
        ki_real *weight = NULL, *s = NULL;
        int64_t n = 0;
        kith_error err = {0};
        ki_result result;
        assert_ok(ki_objective_weights(m.objective, &batch, &weight, &s, &n, &err), &err);
        for (int i = 0; i < M; i++) {
            int of[N_CLASSES] = {0};
            for (int j = 0; j < M; j++)
                of[j % N_CLASSES] += weight[i * M + j] != 0, kept[i * M + j] += weight[i * M + j] != 0;
            for (int c = 0; c < N_CLASSES; c++)
                assert_int_equal(of[c], c != i % N_CLASSES || one_positive ? 1 : EACH - 1);
        }
        if (step < 20) {
            assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            const double wanted = npair_by_hand(s, weight, label);
            if (!(fabs(result.total - wanted) <= 1e-5 * wanted))
                fail_msg("step %d: %g, wanted %g", step, result.total, wanted);
        }
        ki_free(weight);
        ki_free(s);
    }
    made_free(&m);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            const bool is_own = i % N_CLASSES == j % N_CLASSES;
            if (i == j || (is_own && !one_positive)) continue;
            const double p = 1.0 / (is_own ? EACH - 1 : EACH), spread = sqrt(N_STEPS * p * (1 - p));
            if (!(fabs(kept[i * M + j] - N_STEPS * p) <= 5 * spread))
                fail_msg("row %d keeps column %d %d times of %d, wanted %.0f +- %.0f", i, j, kept[i * M + j],
                         N_STEPS, N_STEPS * p, spread);
        }
    }
}

static void test_all_positives(void **state) {
    (void)state;
    check(false);
}

static void test_one_positive(void **state) {
    (void)state;
    check(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_positives),
                                       cmocka_unit_test(test_one_positive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
