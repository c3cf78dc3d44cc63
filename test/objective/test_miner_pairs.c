/* Which pairs each miner keeps, beside its rule written out. The points have whole coordinates: every product and squared
 * distance is exact, many are equal, and some lie right on a margin. */
#include "objective/cases.h"

enum { M = 14, DIM = 2 };

/* Three classes of several items, one of two in the same place, and two items alone in theirs. */
static const int32_t label[M] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 0};
static const ki_real x[M * DIM] = {0, 0, 1, 0, 2, 1,  0, 2,  1, 1, 3, 1, -1, 2,
                                   2, 2, 0, 1, 1, -1, 1, -1, 2, 0, 4, 3, 0,  0};

static int kind_of(int i, int j) {
    return i == j ? KI_PAIR_NONE : label[i] == label[j] ? KI_PAIR_POSITIVE : KI_PAIR_NEGATIVE;
}
static double inner(int i, int j) {
    return (double)(x[i * DIM] * x[j * DIM] + x[i * DIM + 1] * x[j * DIM + 1]);
}
static double square(int i, int j) { return inner(i, i) + inner(j, j) - 2 * inner(i, j); }

static bool all_keeps(int i, int j) { return kind_of(i, j) != KI_PAIR_NONE; }

/* Margin 1: negatives above the least similar positive - 1, positives below the most similar negative + 1. */
static bool vthm_keeps(int i, int j) {
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k < M; k++) {
        if (kind_of(i, k) == KI_PAIR_POSITIVE) least = fmin(least, inner(i, k));
        if (kind_of(i, k) == KI_PAIR_NEGATIVE) most = fmax(most, inner(i, k));
    }
    if (kind_of(i, j) == KI_PAIR_POSITIVE) return inner(i, j) < most + 1;
    return kind_of(i, j) == KI_PAIR_NEGATIVE && inner(i, j) > least - 1;
}

/* The first of the farthest positives, the first of the nearest negatives, if there are both. */
static bool hard_keeps(int i, int j) {
    int farthest = -1, nearest = -1;
    for (int k = 0; k < M; k++) {
        if (kind_of(i, k) == KI_PAIR_POSITIVE && (farthest < 0 || square(i, k) > square(i, farthest)))
            farthest = k;
        if (kind_of(i, k) == KI_PAIR_NEGATIVE && (nearest < 0 || square(i, k) < square(i, nearest)))
            nearest = k;
    }
    return farthest >= 0 && nearest >= 0 && (j == farthest || j == nearest);
}

/* Margin 4: some triplet of anchor i with j in it has D_ap < D_an < D_ap + 4. */
static bool semihard_keeps(int i, int j) {
    for (int k = 0; k < M; k++) {
        const int p = kind_of(i, j) == KI_PAIR_POSITIVE ? j : k, n = p == j ? k : j;
        if (kind_of(i, p) == KI_PAIR_POSITIVE && kind_of(i, n) == KI_PAIR_NEGATIVE &&
            square(i, n) > square(i, p) && square(i, n) < square(i, p) + 4)
            return true;
    }
    return false;
}

/* Positives beyond a distance of 1, negatives within 2. */
static bool pair_margin_keeps(int i, int j) {
    return kind_of(i, j) == KI_PAIR_POSITIVE ? square(i, j) > 1
                                             : kind_of(i, j) == KI_PAIR_NEGATIVE && square(i, j) < 4;
}

/* A loss that gives every pair it sees a weight: what has none was dropped, and that is 0 to the last bit. */
static const char *const weighs_all =
    "loss: {name: contrastive, pos_margin: -4, neg_margin: 1000, reduction: sum, normalize: false}\n";

static void check(const char *miner, bool (*keeps)(int i, int j)) {
    const ki_sizes sizes = {.embedding = DIM};
    const ki_batch batch = {
        .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
    char recipe[256];
    snprintf(recipe, sizeof recipe, "%sminer: %s", weighs_all, miner);
    made m = made_of(recipe, &sizes);
    kith_error err = {0};
    ki_result result;
    ki_real *weight = NULL;
    int64_t n = 0, n_kept[3] = {0};
    assert_ok(ki_objective_weights(m.objective, &batch, &weight, NULL, &n, &err), &err);
    assert_int_equal(n, M);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            const bool is_kept = weight[i * M + j] != 0, wanted = keeps(i, j);
            if (is_kept != wanted)
                fail_msg("%s: pair (%d, %d) is %s", miner, i, j, is_kept ? "kept" : "dropped");
            n_kept[kind_of(i, j)] += wanted;
        }
    }
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    assert_int_equal(result.n_pos, n_kept[KI_PAIR_POSITIVE]);
    assert_int_equal(result.n_neg, n_kept[KI_PAIR_NEGATIVE]);
    ki_free(weight);
    made_free(&m);
}

static void test_kept_pairs(void **state) {
    (void)state;
    check("all", all_keeps);
    check("{name: vthm, margin: 1}", vthm_keeps);
    check("hard", hard_keeps);
    check("{name: semihard, margin: 4}", semihard_keeps);
    check("{name: pair_margin, pos_margin: 1, neg_margin: 2}", pair_margin_keeps);
}

/* The triplets of a semi-hard window, which is open at both ends, in the two losses that see triplets. */
static bool in_window(int a, int p, int n) {
    return kind_of(a, p) == KI_PAIR_POSITIVE && kind_of(a, n) == KI_PAIR_NEGATIVE &&
           square(a, n) > square(a, p) && square(a, n) < square(a, p) + 4;
}

static double triplet_sum(void) {
    double sum = 0;
    for (int i = 0; i < M * M * M; i++) {
        const int a = i / M / M, p = i / M % M, n = i % M;
        if (in_window(a, p, n)) sum += fmax(0, square(a, p) - square(a, n) + 2.5);
    }
    return sum;
}

static double angular_mean(void) {
    const double tangent = tan(20 * acos(-1) / 180), t2 = tangent * tangent;
    double sum = 0;
    int n_pairs = 0;
    for (int i = 0; i < M * M; i++) {
        const int a = i / M, p = i % M;
        double others = 0;
        for (int n = 0; n < M; n++) {
            if (in_window(a, p, n))
                others += exp(4 * t2 * (inner(a, n) + inner(p, n)) - 2 * (1 + t2) * inner(a, p));
        }
        sum += log1p(others);
        n_pairs += others > 0;
    }
    return sum / n_pairs;
}

static void test_triplets_of_a_window(void **state) {
    (void)state;
    const struct {
        const char *loss;
        double wanted;
    } rows[] = {{"{name: triplet, margin: 2.5, reduction: sum, normalize: false}", triplet_sum()},
                {"{name: angular, angle: 20, normalize: false}", angular_mean()}};
    const ki_sizes sizes = {.embedding = DIM};
    const ki_batch batch = {
        .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char recipe[256];
        kith_error err = {0};
        ki_result result;
        snprintf(recipe, sizeof recipe, "loss: %s\nminer: {name: semihard, margin: 4}", rows[i].loss);
        made m = made_of(recipe, &sizes);
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        if (!(fabs(result.total - rows[i].wanted) <= 1e-5 * rows[i].wanted))
            fail_msg("%s: found %.7g, wanted %.7g", rows[i].loss, result.total, rows[i].wanted);
        made_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept_pairs),
                                       cmocka_unit_test(test_triplets_of_a_window)};
    return cmocka_run_group_tests_name("objective/miner pairs", tests, NULL, NULL);
}
