/* What an optimizer promises beside its arithmetic: few runs, state that carries over to the bit,
 * threads that do not show, sleeping groups, refusals, and no memory left behind. */
#include "base/alloc.h"
#include "base/parallel.h"
#include "kith/log.h"
#include "net/hashed.h"
#include "optim/golden.h"
#include "optim/groups.h"

static ki_optim_settings parse(ki_arena *arena, const char *text) {
    ki_optim_settings settings;
    golden_settings(text, arena, &settings);
    return settings;
}

static void test_one_run_without_rules(void **state) {
    (void)state;
    const struct {
        const char *recipe;
        int n_runs;
    } rows[] = {
        {"{}", 3}, /* groups have norms of their own */
        {"{multipliers: {backbone: 2}}", 3},
        {"{decay_multipliers: {bias: 0}}", 3}, /* of no decay */
        {"{weight_decay: 1, decay_multipliers: {bias: 0}}", 4},
        {"{multipliers: {backbone: 0}}", 2},
        {"{multipliers: {conv1.bias: 0}}", 3},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        golden_run run;
        ki_optim *optim = NULL;
        golden_init(&run, "ref");
        const ki_optim_settings settings = parse(&arena, rows[i].recipe);
        assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err), &err);
        if (ki_optim_n_runs(optim) != rows[i].n_runs)
            fail_msg("%s: %d runs, wanted %d", rows[i].recipe, ki_optim_n_runs(optim), rows[i].n_runs);
        ki_optim_free(optim);
        golden_release(&run);
        ki_arena_release(&arena);
    }
}

static const char *const recipes[] = {
    "{name: adam, lr: 1e-2, clip: 1, weight_decay: 0.1, multipliers: {bias: 2}}",
    "{name: adamw, lr: 1e-2, weight_decay: 0.1, head_only: 5}",
    "{name: sgd, lr: 1e-2, nesterov: true}",
    "{name: sgd, lr: 1e-2, momentum: 0}",
    "{name: rmsprop, lr: 1e-2, momentum: 0.9}",
};
enum { RESUME_STEPS = 8, RESUME_AT = 3 };

/* Carry the number of updates and all arrays over to a new optimizer, by name. */
static void carry_over(ki_optim *from, ki_optim *to) {
    kith_error err = {0};
    assert_int_equal(ki_optim_n_states(from), ki_optim_n_states(to));
    ki_optim_steps_set(to, ki_optim_steps(from));
    for (int i = 0; i < ki_optim_n_states(from); i++) {
        ki_real value[GOLDEN_N];
        assert_string_equal(ki_optim_state_name(from, i), ki_optim_state_name(to, i));
        assert_int_equal(ki_optim_state_count(from, i), ki_optim_state_count(to, i));
        assert_ok(ki_optim_state_get(from, i, value, &err), &err);
        assert_ok(ki_optim_state_set(to, i, value, &err), &err);
    }
}

static void run_steps(const char *recipe, int resume_at, ki_real *ret_value) {
    kith_error err = {0};
    ki_arena arena = {0};
    golden_run run;
    ki_optim *optim = NULL;
    kith_tensors *file = golden_open();
    const float *diffs = golden_floats(file, "diffs");
    golden_init(&run, "cpu");
    const ki_optim_settings settings = parse(&arena, recipe);
    assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err), &err);
    golden_upload(&run, run.value, golden_floats(file, "value"));
    for (int t = 0; t < RESUME_STEPS; t++) {
        if (t == resume_at) {
            ki_optim *next = NULL;
            assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &next, &err), &err);
            carry_over(optim, next);
            ki_optim_free(optim);
            optim = next;
        }
        golden_upload(&run, run.diff, diffs + (ptrdiff_t)t * GOLDEN_N);
        assert_ok(ki_optim_update(optim, 1e-2, &err), &err);
    }
    assert_int_equal(ki_optim_steps(optim), RESUME_STEPS);
    memcpy(ret_value, run.value, GOLDEN_N * sizeof *ret_value);
    ki_optim_free(optim);
    golden_release(&run);
    kith_tensors_free(file);
    ki_arena_release(&arena);
}

static void test_resume_gives_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(recipes); i++) {
        ki_real through[GOLDEN_N], resumed[GOLDEN_N];
        run_steps(recipes[i], -1, through);
        run_steps(recipes[i], RESUME_AT, resumed);
        if (memcmp(through, resumed, sizeof through) != 0) fail_msg("%s: other bits", recipes[i]);
    }
}

/* ref, cpu with one thread and cpu with three, on runs long enough to be split. */
static void test_backends_and_threads(void **state) {
    (void)state;
    enum { N = 100003, N_FIRST = 33333 };
    static float value[3][N], diff[N];
    for (size_t r = 0; r < N_ROWS(recipes); r++) {
        for (int way = 0; way < 3; way++) {
            kith_error err = {0};
            ki_arena arena = {0};
            ki_backend *backend = NULL;
            ki_optim *optim = NULL;
            ki_threads_set(way == 2 ? 3 : 1);
            hashed_fill("value", value[way], N, -1, 1);
            assert_ok(ki_backend_open(way ? "cpu" : "ref", NULL, &backend, &err), &err);
            const ki_optim_settings settings = parse(&arena, recipes[r]);
            const ki_optim_param params[] = {
                {.name = "conv.weight", .n = N_FIRST, .value = value[way], .diff = diff},
                {.name = "conv.bias",
                 .n = N - N_FIRST,
                 .value = value[way] + N_FIRST,
                 .diff = diff + N_FIRST}};
            assert_ok(ki_optim_new(backend, params, 2, &settings, &optim, &err), &err);
            for (int t = 0; t < 7; t++) {
                char name[16];
                snprintf(name, sizeof name, "diff %d", t);
                hashed_fill(name, diff, N, -1, 1);
                assert_ok(ki_optim_update(optim, 1e-2, &err), &err);
            }
            ki_optim_free(optim);
            ki_backend_close(backend);
            ki_arena_release(&arena);
        }
        ki_threads_set(0);
        if (memcmp(value[1], value[2], sizeof value[1]) != 0)
            fail_msg("%s: one thread and three give other bits", recipes[r]);
        const double error = testing_relative_l2(value[1], value[0], N);
        if (!(error < 1e-6)) fail_msg("%s: cpu is off ref by %.3g", recipes[r], error);
    }
}

static void test_a_sleeping_group_is_untouched(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    golden_run run;
    ki_optim *optim = NULL;
    golden_init(&run, "cpu");
    const ki_optim_settings settings = parse(&arena, "{weight_decay: 0.1, head_only: 2}");
    assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err), &err);
    for (int i = 0; i < GOLDEN_N; i++) run.value[i] = run.diff[i] = 1;
    for (int t = 0; t < 3; t++) {
        assert_int_equal(ki_schedule_at(&settings.schedule, t, 10).head_only, t < 2);
        assert_ok(ki_optim_update(optim, 0.5, &err), &err);
        const bool moved = run.value[0] != 1 || run.value[41] != 1;
        if (moved != (t == 2)) fail_msg("step %d: the backbone is %g", t, (double)run.value[0]);
        assert_true(run.value[42] != 1); /* embedding */
        assert_true(run.value[53] != 1); /* proxies */
    }
    ki_optim_free(optim);
    golden_release(&run);
    ki_arena_release(&arena);
}

/* A parameter's own multiplier counts beside the recipe's. */
static void test_own_multiplier(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    golden_run run;
    ki_optim *optim = NULL;
    golden_init(&run, "ref");
    run.param[3].lr = 100;
    const ki_optim_settings settings = parse(&arena, "{name: sgd, momentum: 0, multipliers: {proxies: 2}}");
    assert_ok(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err), &err);
    for (int i = 0; i < GOLDEN_N; i++) run.value[i] = run.diff[i] = 1;
    assert_ok(ki_optim_update(optim, 0.25, &err), &err);
    golden_check_close("ref", "own", "the embedding", (double)run.value[42], 1 - 0.25, 1e-6);
    golden_check_close("ref", "own", "a proxy", (double)run.value[60], 1 - 0.25 * 200, 1e-6);
    ki_optim_free(optim);
    golden_release(&run);
    ki_arena_release(&arena);
}

static void test_refusals(void **state) {
    (void)state;
    const struct {
        const char *recipe, *message, *hint;
    } rows[] = {
        {"{name: adm}", "optim: unknown optimizer 'adm'", "did you mean 'adam'?"},
        {"{name: [adam]}", "optim: name is a list", ""},
        {"adam", "optim (adam) is 'adam'; wanted a map of options", ""},
        {"{learning_rate: 1}", "optim (adam): unknown option 'learning_rate'", ""},
        {"{name: sgd, beta1: 0.9}", "optim (sgd): unknown option 'beta1'", ""},
        {"{name: sgd, momentun: 0.9}", "optim (sgd): unknown option 'momentun'", "did you mean 'momentum'?"},
        {"{name: sgd, momentum: 0, nesterov: true}", "nesterov is true and momentum is 0", "0.9"},
        {"{beta1: 1}", "optim (adam): beta1 is '1'", "0 … 0.999999"},
        {"{lr: fast}", "optim (adam): lr is 'fast'", "a number"},
        {"{steps: 10, epochs: 2}", "both steps and epochs", ""},
        {"{accumulate: 0}", "accumulate is '0'", "1 … "},
        {"{multipliers: [1]}", "optim.multipliers is a list", "{embedding: 10}"},
        {"{multipliers: {embedding: -1}}", "optim.multipliers: embedding is '-1'", "at least 0"},
        {"{decay_multipliers: {embedding: none}}", "optim.decay_multipliers: embedding is 'none'", ""},
        {"{schedule: {name: cosin}}", "optim.schedule: name is 'cosin'", "constant|step|cosine"},
        {"{schedule: linear}", "optim.schedule: name is 'linear'", "constant|step|cosine"},
        {"{schedule: step}", "step without at", "at: [20, 40]"},
        {"{schedule: {name: step, at: 5}}", "at is '5'", "a list"},
        {"{schedule: {name: step, at: [5, 3]}}", "at is '3'", "rising"},
        {"{schedule: {name: step, at: [0]}}", "at is '0'", "over 0"},
        {"{schedule: {name: cosine, at: [5]}}", "at does nothing in schedule cosine", "name: step"},
        {"{schedule: {name: step, at: [5], final: 0}}", "final does nothing in schedule step", "cosine"},
        {"{schedule: {gamma: 1}}", "optim.schedule: unknown option 'gamma'", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        ki_value *root = NULL;
        ki_optim_settings settings;
        assert_ok(ki_yaml_parse(rows[i].recipe, strlen(rows[i].recipe), "recipe", &arena, &root, &err), &err);
        if (ki_optim_parse(root, &settings, &err) == KITH_OK) fail_msg("%s was taken", rows[i].recipe);
        if (!strstr(err.message, rows[i].message) || !strstr(err.hint, rows[i].hint))
            fail_msg("%s: '%s' (%s), wanted '%s' (%s)", rows[i].recipe, err.message, err.hint,
                     rows[i].message, rows[i].hint);
        ki_arena_release(&arena);
    }
}

/* What patterns fit, and that rules are multiplied whatever their order. */
static void test_patterns(void **state) {
    (void)state;
    const struct {
        const char *recipe, *param;
        bool is_objective;
        double lr;
    } rows[] = {
        {"{multipliers: {'layer4.*': 2}}", "layer4.0.conv1.weight", false, 2},
        {"{multipliers: {'layer4.*': 2}}", "layer3.0.conv1.weight", false, 1},
        {"{multipliers: {'*.bias': 3}}", "layer4.0.conv1.bias", false, 3},
        {"{multipliers: {'*.bias': 3}}", "layer4.0.conv1.biases", false, 1},
        {"{multipliers: {'blocks.[0-3].*': 5}}", "blocks.3.attn.qkv.weight", false, 5},
        {"{multipliers: {'blocks.[0-3].*': 5}}", "blocks.4.attn.qkv.weight", false, 1},
        {"{multipliers: {'blocks.[0-3].*': 5}}", "blocks.13.attn.qkv.weight", false, 1},
        {"{multipliers: {'blocks.[0-3]': 5}}", "blocks.2.mlp.fc1.weight", false,
         5}, /* the layer that it lies in */
        {"{multipliers: {'blocks.[0-3]': 5}}", "blocks.21.mlp.fc1.weight", false, 1},
        {"{multipliers: {'conv?': 7}}", "conv2.weight", false, 7},
        {"{multipliers: {'*': 2}}", "horde.projection", true, 2},
        {"{multipliers: {'*.bias': 3, bias: 2, backbone: 5}}", "conv1.bias", false, 30},
        {"{multipliers: {backbone: 5, bias: 2, '*.bias': 3}}", "conv1.bias", false, 30},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        double lr = 0, decay = 0;
        const ki_optim_settings settings = parse(&arena, rows[i].recipe);
        const ki_optim_param param = {.name = rows[i].param, .is_objective = rows[i].is_objective};
        ki_optim_multipliers(&settings, &param, &lr, &decay);
        if (lr != rows[i].lr || decay != 1)
            fail_msg("%s gives %s %g and decay %g; wanted %g", rows[i].recipe, rows[i].param, lr, decay,
                     rows[i].lr);
        ki_arena_release(&arena);
    }
}

static void test_a_rule_for_nothing_is_refused(void **state) {
    (void)state;
    const struct {
        const char *recipe, *found, *hint;
    } rows[] = {
        {"{multipliers: {embeding: 10}}", "'embeding'", "did you mean 'embedding'?"},
        {"{multipliers: {embed: 10}}", "'embed'", ""}, /* a layer's name is whole */
        {"{decay_multipliers: {conv2: 10}}", "'conv2'", "did you mean 'conv1'?"},
        {"{multipliers: {conv1.wieght: 1}}", "'conv1.wieght'", "did you mean 'conv1.weight'?"},
        {"{multipliers: {regularizers: 1}}", "'regularizers'", "that is there"},
        {"{multipliers: {'layer9.*': 1}}", "'layer9.*'", "a pattern is for whole names; the first of "},
        {"{multipliers: {'*.wei': 1}}", "'*.wei'", "conv1.weight"}, /* whole names */
        {"{multipliers: {'conv[2-9]': 1}}", "'conv[2-9]'", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        golden_run run;
        ki_optim *optim = NULL;
        golden_init(&run, "ref");
        const ki_optim_settings settings = parse(&arena, rows[i].recipe);
        assert_int_equal(ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err),
                         KITH_ENOTFOUND);
        if (!strstr(err.message, rows[i].found) || !strstr(err.hint, rows[i].hint))
            fail_msg("%s: '%s' (%s), wanted %s (%s)", rows[i].recipe, err.message, err.hint, rows[i].found,
                     rows[i].hint);
        golden_release(&run);
        ki_arena_release(&arena);
    }
}

static void test_out_of_memory(void **state) {
    (void)state;
    ki_arena arena = {0};
    golden_run run;
    golden_init(&run, "cpu");
    const ki_optim_settings settings = parse(&arena, recipes[0]);
    int n_failures = 0;
    for (int64_t n = 0;; n++) {
        kith_error err = {0};
        kith_memory_stats before, after;
        ki_optim *optim = NULL;
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        const kith_status status =
            ki_optim_new(run.backend, run.param, GOLDEN_PARAMS, &settings, &optim, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) {
            ki_optim_free(optim);
            break;
        }
        kith_memory_stats_get(&after);
        assert_int_equal(status, KITH_ENOMEM);
        assert_null(optim);
        assert_int_equal(before.live_bytes, after.live_bytes);
        n_failures++;
    }
    assert_true(n_failures > 8);
    golden_release(&run);
    ki_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_run_without_rules),
        cmocka_unit_test(test_resume_gives_the_same_bits),
        cmocka_unit_test(test_backends_and_threads),
        cmocka_unit_test(test_a_sleeping_group_is_untouched),
        cmocka_unit_test(test_own_multiplier),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_a_rule_for_nothing_is_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
