/* How often distance-weighted sampling draws each negative, beside the chances of its formula, and the triplets that its
 * draws make. */
#include "objective/cases.h"

enum { DIM = 5, N_NEGATIVES = 6, M = N_NEGATIVES + 2, N_STEPS = 6000 };

/* Distances of the negatives from the anchor: below the cutoff of 0.5, between, and beyond 1.4. */
static const double distance[N_NEGATIVES] = {0.3, 0.6, 0.9, 1.1, 1.3, 1.5};

/* The anchor and its one positive are the first axis; a negative lies at its distance in a plane of its own. */
static void fill(ki_real *x, int32_t *label) {
    for (int i = 0; i < M; i++) {
        label[i] = i < 2 ? 0 : i;
        for (int k = 0; k < DIM; k++) x[i * DIM + k] = 0;
        const double d = i < 2 ? 0 : distance[i - 2], inner = 1 - d * d / 2;
        x[i * DIM] = (ki_real)inner;
        x[i * DIM + 1 + i % (DIM - 1)] += (ki_real)sqrt(1 - inner * inner);
    }
}

static double chance(double d) {
    const double at = fmax(d, 0.5);
    return d < 1.4 ? pow(at, 2 - DIM) * pow(1 - at * at / 4, (3 - DIM) / 2.0) : 0;
}

static void test_distance_weighted(void **state) {
    (void)state;
    ki_real x[M * DIM];
    int32_t label[M];
    int drawn[N_NEGATIVES] = {0};
    double all = 0;
    fill(x, label);
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of(
        "loss: {name: contrastive, neg_margin: 100}\n"
        "miner: {name: distance_weighted, cutoff: 0.5, nonzero_loss_cutoff: 1.4}",
        &sizes);
    for (int step = 0; step < N_STEPS; step++) {
        const ki_batch batch = {.m = M,
                                .label = label,
                                .step = (uint64_t)step,
                                .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
        ki_real *weight = NULL;
        int64_t n = 0;
        int n_drawn = 0;
        kith_error err = {0};
        assert_ok(ki_objective_weights(m.objective, &batch, &weight, NULL, &n, &err), &err);
        assert_int_equal(n, M);
        for (int k = 0; k < N_NEGATIVES; k++) {
            const bool is_drawn = weight[k + 2] != 0;
            drawn[k] += is_drawn, n_drawn += is_drawn;
        }
        assert_int_equal(n_drawn, 1);
        ki_free(weight);
    }
    made_free(&m);
    for (int k = 0; k < N_NEGATIVES; k++) all += chance(distance[k]);
    for (int k = 0; k < N_NEGATIVES; k++) {
        const double p = chance(distance[k]) / all, wanted = p * N_STEPS, spread = sqrt(wanted * (1 - p));
        if (!(fabs(drawn[k] - wanted) <= 4 * spread))
            fail_msg("at distance %g: drawn %d times of %d, wanted %.0f +- %.0f", distance[k], drawn[k],
                     N_STEPS, wanted, spread);
    }
}

/* Two classes on opposite sides, each with one stranger beside it: the only negative within reach of its anchors, so that
 * every triplet is known however the draws fall. */
static void test_picked_triplets(void **state) {
    (void)state;
    enum { N = 8 };
    static const double angle[N] = {0, 20, 50, 180, 210, 235, 30, 205};
    static const int32_t label[N] = {0, 0, 0, 1, 1, 1, 2, 3};
    const double degree = acos(-1) / 180;
    ki_real x[N * 2];
    for (int i = 0; i < N; i++)
        x[2 * i] = (ki_real)cos(angle[i] * degree), x[2 * i + 1] = (ki_real)sin(angle[i] * degree);
    double wanted = 0;
    for (int a = 0; a < 6; a++) {
        for (int p = 0; p < 6; p++) {
            if (p == a || label[p] != label[a]) continue;
            const int n = 6 + label[a];
            wanted +=
                fmax(0, cos((angle[a] - angle[n]) * degree) - cos((angle[a] - angle[p]) * degree) + 0.1);
        }
    }
    const ki_sizes sizes = {.embedding = 2};
    made m = made_of(
        "loss: {name: triplet, margin: 0.1, distance: cosine, reduction: sum}\nminer: {name: "
        "distance_weighted}",
        &sizes);
    const ki_batch batch = {
        .m = N, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = N, .cols = 2}};
    kith_error err = {0};
    ki_result result;
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    if (!(fabs(result.total - wanted) <= 1e-5)) fail_msg("found %.7g, wanted %.7g", result.total, wanted);
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance_weighted),
                                       cmocka_unit_test(test_picked_triplets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
