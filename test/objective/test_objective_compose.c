/* Every loss with every miner and every regularizer: they evaluate, and the whole is the sum of its
 * parts, in value and in every gradient. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"

enum { M = 20, D = 8, C = 6, H = 3, W = 5, N_CLASSES = 7 };

static ki_real x[M * D], pooled[M * C], map[M * C * H * H], weight[D * C], teacher[M * W];
static int32_t label[M];
static const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = D, .pooled = C, .map = C, .teacher = {W}};

static ki_batch make_batch(void) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < M; i++) {
        label[i] = i / 4;
        for (int k = 0; k < D; k++) x[i * D + k] = (ki_real)(ki_rng_normal(&rng) + 2 * (k == label[i]));
    }
    for (int i = 0; i < M * C; i++) pooled[i] = (ki_real)fabs(ki_rng_normal(&rng));
    for (int i = 0; i < M * C * H * H; i++) map[i] = (ki_real)fabs(ki_rng_normal(&rng));
    for (int i = 0; i < D * C; i++) weight[i] = (ki_real)ki_rng_normal(&rng);
    for (int i = 0; i < M * W; i++) teacher[i] = (ki_real)ki_rng_normal(&rng);
    ki_batch batch = {.m = M, .label = label};
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = x, .rows = M, .cols = D};
    batch.tap[KI_TAP_POOLED] = (ki_tap_data){.data = pooled, .rows = M, .cols = C};
    batch.tap[KI_TAP_MAP] = (ki_tap_data){.data = map, .rows = M, .cols = C * H * H, .c = C, .hw = H * H};
    batch.tap[KI_TAP_WEIGHT] = (ki_tap_data){.data = weight, .rows = D, .cols = C};
    batch.tap[KI_TAP_TEACHER] = (ki_tap_data){.data = teacher, .rows = M, .cols = W};
    return batch;
}

/* Everything an evaluation gives, laid out in one vector: value, gradients at taps, at parameters. */
enum { MOST = 1 << 18 };
typedef struct all {
    int64_t n;
    double *v;
} all;

static bool evaluate(const char *recipe, all *ret) {
    kith_error err = {0};
    made m = made_of(recipe, &sizes);
    const ki_batch batch = make_batch();
    ki_result result;
    const kith_status status = ki_objective_evaluate(m.objective, &batch, &result, &err);
    if (status == KITH_EUNSUPPORTED) {
        made_free(&m);
        return false;
    }
    if (status != KITH_OK) fail_msg("%s\n%s (%s)", recipe, err.message, err.hint);
    ret->n = 0;
    ret->v[ret->n++] = result.total;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        const int64_t n = batch.tap[tap].rows * batch.tap[tap].cols;
        for (int64_t i = 0; i < n; i++) {
            double v = result.diff[tap] ? (double)result.diff[tap][i] : 0;
            if (tap == KI_TAP_EMBEDDING && result.diff_stopped) v += (double)result.diff_stopped[i];
            ret->v[ret->n++] = v;
        }
    }
    for (size_t i = 0; ki_objective_param(m.objective, i); i++) {
        const ki_state *param = ki_objective_param(m.objective, i);
        for (int64_t k = 0; param->diff && k < param->count && ret->n < MOST; k++)
            ret->v[ret->n++] = (double)param->diff[k];
    }
    for (int64_t i = 0; i < ret->n; i++) {
        if (!isfinite(ret->v[i])) fail_msg("%s\nentry %lld is %g", recipe, (long long)i, ret->v[i]);
    }
    made_free(&m);
    return true;
}

/* A regularizer with options that fit the small batch. */
static const char *reg_options(const char *name) {
    if (strcmp(name, "horde") == 0) return ", orders: 3, dimension: 5, embedding: 4";
    return "";
}

static void test_every_combination(void **state) {
    (void)state;
    all base = {0}, one = {0}, some = {0};
    base.v = ki_alloc(MOST, sizeof *base.v);
    one.v = ki_alloc(MOST, sizeof *one.v);
    some.v = ki_alloc(MOST, sizeof *some.v);
    int n = 0, n_refused = 0;
    char recipe[512];
    for (size_t l = 0; ki_loss_at(l); l++) {
        for (size_t k = 0; ki_miner_at(k); k++) {
            for (size_t r = 0; ki_reg_at(r); r++) {
                const char *reg = ki_reg_at(r)->method.name;
                all *const out[] = {&base, &one, &some};
                static const double weights[] = {0, 1, 0.7};
                bool is_refused = false;
                for (int w = 0; w < 3; w++) {
                    snprintf(recipe, sizeof recipe,
                             "loss: {name: %s}\nminer: {name: %s}\nregularizers: [{name: %s, weight: %g%s}]",
                             ki_loss_at(l)->method.name, ki_miner_at(k)->method.name, reg, weights[w],
                             reg_options(reg));
                    is_refused |= !evaluate(recipe, out[w]);
                }
                n++;
                n_refused += is_refused;
                if (is_refused) continue;
                double error = 0, size = 0;
                for (int64_t i = 0; i < some.n; i++) {
                    const double wanted = base.v[i] + 0.7 * (one.v[i] - base.v[i]);
                    error += (some.v[i] - wanted) * (some.v[i] - wanted);
                    size += base.v[i] * base.v[i] + one.v[i] * one.v[i];
                }
                if (!(sqrt(error) <= 1e-6 * sqrt(size) + 1e-9))
                    fail_msg("%s: the whole differs from the sum of its parts by %.3g of %.3g", recipe,
                             sqrt(error), sqrt(size));
            }
        }
    }
    print_message("%d combinations, %d refused with a reason\n", n, n_refused);
    assert_true(n_refused * 10 < n);
    ki_free(base.v);
    ki_free(one.v);
    ki_free(some.v);
}

/* Three terms together are the three alone. */
static void test_terms_add_up(void **state) {
    (void)state;
    static const char *const loss = "loss: {name: raw}\nminer: {name: vthm, margin: 0.5}\n";
    static const char *const none = "loss: {name: none}\n";
    static const char *const reg =
        "regularizers: [{name: energy_confusion, weight: 0.3, form: log}, "
        "{name: energy_confusion, weight: 2, normalize: true}]";
    char text[512];
    all a = {0}, b = {0}, c = {0};
    a.v = ki_alloc(MOST, sizeof *a.v);
    b.v = ki_alloc(MOST, sizeof *b.v);
    c.v = ki_alloc(MOST, sizeof *c.v);
    snprintf(text, sizeof text, "%s%s", loss, reg);
    evaluate(text, &a);
    evaluate(loss, &b);
    snprintf(text, sizeof text, "%s%s", none, reg);
    evaluate(text, &c);
    double error = 0, size = 0;
    for (int64_t i = 0; i < a.n; i++) {
        error += pow(a.v[i] - b.v[i] - c.v[i], 2);
        size += pow(a.v[i], 2);
    }
    if (!(error <= 1e-12 * size)) fail_msg("the sum differs by %.3g of %.3g", sqrt(error), sqrt(size));
    ki_free(a.v);
    ki_free(b.v);
    ki_free(c.v);
}

/* Batches that a sampler should not give, but may: nothing but finite numbers. */
static void test_degenerate_batches(void **state) {
    (void)state;
    static ki_real zero[M * D], big[M * D], one_point[M * D];
    static int32_t same[M], distinct[M];
    char recipe[256];
    int n = 0;
    for (int i = 0; i < M; i++) distinct[i] = i % N_CLASSES;
    for (int i = 0; i < M * D; i++)
        big[i] = (ki_real)((i % 13 - 6) * 1e15), one_point[i] = (ki_real)(i % D - 3);
    const struct {
        const ki_real *x;
        const int32_t *label;
        int64_t m;
    } batches[] = {{zero, same, M},
                   {zero, distinct, M},
                   {big, distinct, M},
                   {one_point, same, M},
                   {one_point, distinct, M},
                   {one_point, distinct, 1},
                   {zero, distinct, 1},
                   {x, distinct, 2},
                   {x, same, 2},
                   {x, distinct, N_CLASSES},
                   {x, same, M},
                   {x, distinct, M}};
    make_batch();
    for (size_t l = 0; ki_loss_at(l); l++) {
        for (size_t k = 0; ki_miner_at(k); k++) {
            snprintf(recipe, sizeof recipe,
                     "loss: {name: %s}\nminer: {name: %s}\nregularizers: [{name: energy_confusion}]",
                     ki_loss_at(l)->method.name, ki_miner_at(k)->method.name);
            made m = made_of(recipe, &sizes);
            for (size_t b = 0; b < N_ROWS(batches); b++) {
                kith_error err = {0};
                ki_result result;
                const ki_batch batch = {
                    .m = batches[b].m,
                    .label = batches[b].label,
                    .tap[KI_TAP_EMBEDDING] = {.data = batches[b].x, .rows = batches[b].m, .cols = D}};
                assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
                if (!isfinite(result.term[0].value))
                    fail_msg("%s on batch %zu: value %g", recipe, b, result.term[0].value);
                for (int64_t i = 0; i < batch.m * D; i++) {
                    if (!isfinite(result.diff[KI_TAP_EMBEDDING][i]))
                        fail_msg("%s on batch %zu: gradient[%lld] is %g", recipe, b, (long long)i,
                                 (double)result.diff[KI_TAP_EMBEDDING][i]);
                }
                n++;
            }
            made_free(&m);
        }
    }
    print_message("%d degenerate evaluations\n", n);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination),
        cmocka_unit_test(test_terms_add_up),
        cmocka_unit_test(test_degenerate_batches),
    };
    return cmocka_run_group_tests_name("objective/compose", tests, NULL, NULL);
}
