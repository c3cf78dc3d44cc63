/* Every loss behind a miner that drops pairs, in float64: the gradient is still the derivative of the value. A loss that
 * gave a dropped pair a gradient would be right on every batch without a miner. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"

enum { M = 10, DIM = 4, CLASSES = 4 };

static ki_real x[M * DIM];
static int32_t label[M];
static const ki_sizes sizes = {.n_classes = CLASSES, .embedding = DIM};
static const ki_batch batch = {
    .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};

/* Points about their class's, which lie on axes. */
static void fill(double spread) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < M; i++) {
        label[i] = i % 3; /* class 3 has a proxy and no item */
        for (int k = 0; k < DIM; k++)
            x[i * DIM + k] = (ki_real)(spread * ki_rng_normal(&rng) + (k == label[i] ? 1 : 0.5));
    }
}

static double evaluate(made *m, ki_result *ret) {
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m->objective, &batch, ret, &err), &err);
    return ret->total;
}

/* Counts coordinates of which the difference says something, and those of them that are wrong. */
static void check(const char *recipe, made *m, int *n_checked, int *n_bad) {
    ki_result result;
    ki_real gradient[M * DIM];
    double most = 0;
    const double middle = evaluate(m, &result), step = 1e-6;
    for (int i = 0; i < M * DIM; i++) {
        gradient[i] = result.diff[KI_TAP_EMBEDDING][i];
        most = fmax(most, fabs((double)gradient[i]));
    }
    for (int i = 0; i < M * DIM; i++) {
        const ki_real old = x[i];
        x[i] = old + (ki_real)step;
        const double above = evaluate(m, &result);
        x[i] = old - (ki_real)step;
        const double below = evaluate(m, &result);
        x[i] = old;
        const double bend = fabs(above + below - 2 * middle) / (2 * step),
                     slope = (above - below) / (2 * step);
        if (bend > 1e-3 * most + 1e-9) continue; /* a kink, or a pair that came or went */
        ++*n_checked;
        if (fabs(slope - (double)gradient[i]) > 1e-5 * most + 1e-9) {
            if (!*n_bad)
                print_error("%s\nembedding[%d]: gradient %.10g, difference %.10g\n", recipe, i,
                            (double)gradient[i], slope);
            ++*n_bad;
        }
    }
}

static void check_loss(const ki_loss *loss, double spread, const char *miner) {
    char recipe[256];
    /* Circle's paper holds the paces constant, which is no derivative. */
    snprintf(recipe, sizeof recipe, "loss: {name: %s%s}\nminer: {name: pair_margin, %s}", loss->method.name,
             strcmp(loss->method.name, "circle") == 0 ? ", detach: false, gamma: 4" : "", miner);
    fill(spread);
    made m = made_of(recipe, &sizes);
    ki_result result;
    evaluate(&m, &result);
    const int64_t n_all = loss->is_proxy ? M * CLASSES * ki_objective_centers(m.objective) : M * (M - 1);
    const int64_t n_kept = result.n_pos + result.n_neg;
    if (!(n_kept > 0 && n_kept < n_all))
        fail_msg("%s: %lld of %lld pairs kept", recipe, (long long)n_kept, (long long)n_all);
    int n_checked = 0, n_bad = 0;
    check(recipe, &m, &n_checked, &n_bad);
    made_free(&m);
    if (n_bad || n_checked < M * DIM / 2)
        fail_msg("%s: %d of %d coordinates wrong, wanted 0 of at least %d", recipe, n_bad, n_checked,
                 M * DIM / 2);
}

static void test_gradients_behind_a_miner(void **state) {
    (void)state;
    for (size_t i = 0; ki_loss_at(i); i++) {
        check_loss(ki_loss_at(i), 1, "pos_margin: 0.9, neg_margin: 1.3"); /* classes in each other's way */
        check_loss(ki_loss_at(i), 0.2,
                   "pos_margin: 0.05, neg_margin: 0.7"); /* near positives kept, far negatives not */
    }
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients_behind_a_miner)};
    return cmocka_run_group_tests_name("objective/mined (float64)", tests, NULL, NULL);
}
