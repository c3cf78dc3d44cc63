/* Recipes: what is read, what is refused, printed and read back. */
#include "train/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "objective/objective.h"
#include "support/testing.h"

static const char minimal[] =
    "data: {root: photos}\n"
    "input: {resize: squash64, crop: 64}\n"
    "model: {backbone: convnet4}\n"
    "objective: {loss: binomial}\n"
    "optim: {steps: 10}\n";

static kith_status read_with(const char *text, const char *const *sets, size_t n_sets, ki_recipe **ret,
                             kith_error *err) {
    const ki_recipe_source source = {.text = text, .sets = sets, .n_sets = n_sets};
    return ki_recipe_read(&source, ret, err);
}

static ki_recipe *read_set(const char *set) {
    ki_recipe *recipe = NULL;
    kith_error err;
    assert_ok(read_with(minimal, &set, set ? 1 : 0, &recipe, &err), &err);
    return recipe;
}

static void test_reads_without_opening_the_data(void **state) {
    (void)state; /* "photos" is nowhere */
    ki_recipe *recipe = read_set(NULL);
    assert_string_equal(recipe->model.backbone, "convnet4");
    assert_int_equal(recipe->optim.schedule.steps, 10);
    ki_recipe_free(recipe);
}

/* Images without a named network start from general, if there is one. */
static void test_general_where_none_is_named(void **state) {
    (void)state;
    static const char text[] =
        "data: {root: photos}\ninput: {resize: squash64, crop: 64}\nobjective: {loss: binomial}\noptim: "
        "{steps: "
        "1}\n";
    char path[1024];
    ki_recipe *recipe = NULL;
    kith_error err = {0};
    assert_int_equal(setenv("KITH_MODELS", testing_folder(), 1), 0);
    assert_int_equal(read_with(text, NULL, 0, &recipe, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "neither a backbone nor a weights file"));
    snprintf(path, sizeof path, "%s/general.safetensors", testing_folder());
    testing_write(path, "");
    assert_ok(read_with(text, NULL, 0, &recipe, &err), &err);
    assert_string_equal(recipe->model.weights, path);
    ki_recipe_free(recipe);
    unsetenv("KITH_MODELS");
}

/* Effects are printed with every default, and read back the same. */
static void test_effects(void **state) {
    (void)state;
    kith_error err;
    ki_recipe *recipe = read_set("input.effects=[grey, {name: jitter, hue: 0.3}]"), *again = NULL;
    assert_int_equal(recipe->train.n_effects, 2);
    assert_int_equal(recipe->test.n_effects, 0);
    assert_non_null(strstr(recipe->text, "saturation: 0.4"));
    assert_ok(read_with(recipe->text, NULL, 0, &again, &err), &err);
    assert_string_equal(recipe->text, again->text);
    assert_memory_equal(recipe->train.effect, again->train.effect, sizeof again->train.effect);
    ki_recipe_free(again);
    again = read_set(NULL);
    assert_string_not_equal(ki_recipe_identity(recipe), ki_recipe_identity(again));
    assert_null(strstr(ki_recipe_identity(again), "effects"));
    ki_recipe_free(again);
    ki_recipe_free(recipe);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *set, *message, *hint;
    } rows[] = {
        {"modle.backbone=x", "unknown option 'modle'", "did you mean 'model'?"},
        {"data.rot=x", "data: unknown option 'rot'", "did you mean 'root'?"},
        {"input.effects=[{name: jiter}]", "unknown effect 'jiter'", "did you mean 'jitter'?"},
        {"input.crp=3", "input: unknown option 'crp'", "did you mean 'crop'?"},
        {"model.backbone=convnet5", "unknown backbone 'convnet5'", "did you mean 'convnet4'?"},
        {"model.settings={widht: 3}", "unknown option 'widht'", "did you mean 'width'?"},
        {"batch.clases=3", "batch: unknown option 'clases'", "did you mean 'classes'?"},
        {"objective.loss.name=binomal", "unknown loss 'binomal'", "did you mean 'binomial'?"},
        {"objective.loss.betta=3", "unknown option 'betta'", "did you mean 'beta'?"},
        {"objective.regularizers=[{name: hored}]", "unknown regularizer 'hored'", "did you mean 'horde'?"},
        {"optim.learning=3", "unknown option 'learning'", ""},
        {"optim.lr=fast", "lr is 'fast'", "wanted a number"},
        {"eval.evry=3", "eval: unknown option 'evry'", "did you mean 'every'?"},
        {"eval.views=11", "eval: views is '11'", "wanted a whole number: 1 … 10"},
        {"eval.k=[2, 1]", "k is a list of 2", ""},
        {"eval.k=[10, 20]", "begin with 1", ""},
        {"checkpoint.evry=3", "checkpoint: unknown option 'evry'", "did you mean 'every'?"},
        {"loader.wokers=3", "loader: unknown option 'wokers'", "did you mean 'workers'?"},
        {"device=cdua", "unknown device 'cdua'", "did you mean 'cuda'?"},
        {"optim.steps=0", "neither steps nor epochs", "optim: {steps: 5000}"},
        {"data.root=", "there is no root", "data.root"},
        {"seed", "--set seed: there is no '='", "optim.lr=1e-4"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_recipe *recipe = NULL;
        kith_error err = {0};
        const kith_status status = read_with(minimal, &rows[i].set, 1, &recipe, &err);
        if (status == KITH_OK) fail_msg("--set %s was taken", rows[i].set);
        if (!strstr(err.message, rows[i].message) || !strstr(err.hint, rows[i].hint))
            fail_msg("--set %s: '%s' (%s); wanted '%s' (%s)", rows[i].set, err.message, err.hint,
                     rows[i].message, rows[i].hint);
        assert_null(strchr(err.message, '\n'));
    }
}

/* Said before a run folder is made: folds hold out classes in one way only. */
/* Batches that cannot hold a pair of one class and an image of another are refused for losses that need one. */
static void test_batches_without_pairs(void **state) {
    (void)state;
    static const struct {
        const char *set[3], *message; /* NULL: it is taken */
    } rows[] = {
        {{"batch.images=1", "batch.classes=8"},
         "8 classes of 1 images; a pair loss wants at least 2 classes of 2"},
        {{"batch.images=8", "batch.classes=1"},
         "1 classes of 8 images; a pair loss wants at least 2 classes of 2"},
        {{"batch.images=2", "batch.classes=2"}, NULL},
        {{"batch.sampler=shuffled", "batch.size=2"}, "2 images; a pair loss wants at least 3"},
        {{"batch.sampler=shuffled", "batch.size=3"}, NULL},
        {{"batch.images=1", "batch.classes=2", "batch.views=2"}, NULL},
        {{"batch.images=1", "batch.classes=1", "batch.views=2"}, "1 classes of 1 images"},
        {{"batch.sampler=shuffled", "batch.size=2", "batch.views=2"}, NULL},
        {{"batch.sampler=shuffled", "batch.size=1", "batch.views=4"},
         "1 images; a pair loss wants at least 3"},
        {{"batch.images=1", "objective.loss=triplet", "objective.miner=semihard"}, "of 1 images"},
        {{"batch.images=1", "objective.loss=proxy_nca"}, NULL},
        {{"batch.images=1", "objective.memory={size: 256}"}, NULL},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_recipe *recipe = NULL;
        kith_error err = {0};
        size_t n = 0;
        while (n < 3 && rows[i].set[n]) n++;
        const kith_status status = read_with(minimal, rows[i].set, n, &recipe, &err);
        if (!rows[i].message) {
            assert_ok(status, &err);
        } else if (status != KITH_EINVAL || !strstr(err.message, rows[i].message)) {
            fail_msg("%s: status %d, '%s'; wanted '%s'", rows[i].set[0], (int)status, err.message,
                     rows[i].message);
        }
        ki_recipe_free(recipe);
    }
}

static void test_folds_beside_other_splits(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"folds=2", "data.validation=0.3"},
                                          {"folds=2", "data.split=split.csv"},
                                          {"folds=2", "data.folds=3"},
                                          {"data.folds=2", "data.validation=0.3"},
                                          {"data.folds=2", "data.split=split.csv"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_recipe *recipe = NULL;
        kith_error err = {0};
        if (read_with(minimal, rows[i], 2, &recipe, &err) == KITH_OK)
            fail_msg("--set %s --set %s was taken", rows[i][0], rows[i][1]);
        assert_non_null(strstr(err.message, "and folds are given; wanted one of them"));
    }
}

static void test_sections_are_needed(void **state) {
    (void)state;
    static const char *const texts[] = {"", "data: {root: x}\n", "- 3\n", "data: {root: x}\nmodel: 3\n"};
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        ki_recipe *recipe = NULL;
        kith_error err = {0};
        if (read_with(texts[i], NULL, 0, &recipe, &err) == KITH_OK) fail_msg("recipe %zu was taken", i);
        assert_true(err.message[0] != '\0');
    }
}

static void test_printed_recipe_reads_back_the_same(void **state) {
    (void)state;
    static const char *const sets[] = {
        "seed=7",
        "data.root='my photos: \"all\"'",
        "input.augment=resized",
        "input.scale=[0.2, 0.9]",
        "eval.k=[1, 10, 100]",
        "optim.name=rmsprop",
        "optim.schedule={name: step, at: [4, 8]}",
        "optim.multipliers={embedding: 10, bias: 2}",
        "objective.miner={name: vthm, margin: 0.2}",
        "objective.regularizers=[{name: joint_similarity}, {name: energy_confusion, weight: 0.13}]",
        "objective.regularizers.0.weight=0.5",
        "objective.memory={size: 64}",
    };
    for (size_t n = 0; n <= N_ROWS(sets); n++) {
        ki_recipe *once = NULL, *twice = NULL;
        kith_error err;
        assert_ok(read_with(minimal, sets, n, &once, &err), &err);
        assert_ok(read_with(once->text, NULL, 0, &twice, &err), &err);
        assert_string_equal(once->text, twice->text);
        assert_string_equal(ki_recipe_identity(once), ki_recipe_identity(twice));
        ki_recipe_free(once);
        ki_recipe_free(twice);
    }
}

static void test_every_method_reads_back(void **state) {
    (void)state;
    kith_error err;
    char set[5][96];
    const char *const list[] = {set[0], set[1], set[2], set[3], set[4]};
    for (size_t i = 0; ki_loss_at(i); i++) {
        ki_recipe *once = NULL, *twice = NULL;
        snprintf(set[0], sizeof set[0], "objective.loss=%s", ki_loss_at(i)->method.name);
        const ki_miner *miner = ki_miner_at(i);
        const ki_reg *reg = ki_reg_at(i);
        snprintf(set[1], sizeof set[1], "objective.miner=%s", miner ? miner->method.name : "all");
        snprintf(set[2], sizeof set[2], "objective.regularizers=[%s]", reg ? reg->method.name : "");
        /* The one that wants something of the network. */
        const bool wants_heads = reg && strcmp(reg->method.name, "head_divergence") == 0;
        snprintf(set[3], sizeof set[3], "model.heads=%d", wants_heads ? 2 : 1);
        snprintf(set[4], sizeof set[4], "teachers=[%s]",
                 reg && reg->counts_all ? "{weights: t.safetensors}" : "");
        assert_ok(read_with(minimal, list, 5, &once, &err), &err);
        assert_ok(read_with(once->text, NULL, 0, &twice, &err), &err);
        assert_string_equal(once->text, twice->text);
        ki_recipe_free(once);
        ki_recipe_free(twice);
    }
}

static void test_validation_is_held_out_by_default(void **state) {
    (void)state;
    static const struct {
        const char *set, *wanted;
    } rows[] = {{"seed=1", "validation: 0.2\n"},         {"data.validation=0", "validation: 0\n"},
                {"eval.select=last", "validation: 0\n"}, {"eval.select=test", "validation: 0\n"},
                {"folds=4", "validation: 0\n"},          {"data.folds=4", "validation: 0\n"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_recipe *recipe = read_set(rows[i].set);
        if (!strstr(recipe->text, rows[i].wanted))
            fail_msg("--set %s: wanted %s in\n%s", rows[i].set, rows[i].wanted, recipe->text);
        ki_recipe_free(recipe);
    }
}

static void test_same_run_or_another(void **state) {
    (void)state;
    static const struct {
        const char *set;
        bool is_same;
        const char *names;
    } rows[] = {{"loader.workers=7", true, ""},
                {"threads=3", true, ""},
                {"checkpoint.every=1", true, ""},
                {"log_every=3", true, ""},
                {"optim.lr=0.0001", true, ""}, /* the default, written otherwise */
                {"optim.lr=0.0002", false, "optim.lr is '0.0001' there and '0.0002' here"},
                {"seed=1", false, "seed"},
                {"objective.regularizers=[norm_l2]", false, "objective.regularizers"},
                {"model.settings={width: 32}", false, "model.settings"}};
    ki_recipe *plain = read_set(NULL);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_recipe *other = read_set(rows[i].set);
        kith_error err = {0};
        const kith_status status = ki_recipe_same(plain, other, "RUN", &err);
        const bool is_same_text = strcmp(ki_recipe_identity(plain), ki_recipe_identity(other)) == 0;
        if ((status == KITH_OK) != rows[i].is_same || is_same_text != rows[i].is_same)
            fail_msg("--set %s: %s; wanted %s", rows[i].set, status == KITH_OK ? "same" : err.message,
                     rows[i].is_same ? "the same" : "another");
        if (!strstr(err.message, rows[i].names)) fail_msg("%s: wanted %s", err.message, rows[i].names);
        ki_recipe_free(other);
    }
    ki_recipe_free(plain);
}

/* docs/training.md has a row for every key, with the default it has. */
static void test_every_key_is_documented(void **state) {
    (void)state;
    char *page = testing_read(KITH_SOURCE_DIR "/docs/training.md");
    const ki_recipe_section *section;
    for (size_t i = 0; (section = ki_recipe_section_at(i)); i++) {
        char title[64], row[256], text[160];
        snprintf(title, sizeof title, *section->name ? "\n### `%s`\n" : "\n### Top level\n", section->name);
        const char *begin = strstr(page, title);
        if (!begin) fail_msg("no section %s", title);
        const char *end = strstr(begin + 1, "\n### ");
        for (const ki_option *o = section->options; o->type != KI_OPTION_T_END; o++) {
            ki_option_default_text(o, text, sizeof text);
            snprintf(row, sizeof row, *text ? "\n| `%s` | `%s` |" : "\n| `%s` | %s |", o->name, text);
            const char *found = strstr(begin, row);
            if (!found || (end && found > end)) fail_msg("section %s has no row %s", section->name, row + 1);
        }
    }
    free(page);
}

static void test_no_memory(void **state) {
    (void)state;
    for (int64_t n = 0;; n++) {
        ki_recipe *recipe = NULL;
        kith_error err = {0};
        ki_alloc_fail_after(n);
        const kith_status status = read_with(minimal, NULL, 0, &recipe, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) {
            assert_ok(status, &err);
            ki_recipe_free(recipe);
            break;
        }
        assert_int_equal(status, KITH_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_without_opening_the_data),
        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_batches_without_pairs),
        cmocka_unit_test(test_folds_beside_other_splits),
        cmocka_unit_test(test_sections_are_needed),
        cmocka_unit_test(test_printed_recipe_reads_back_the_same),
        cmocka_unit_test(test_general_where_none_is_named),
        cmocka_unit_test(test_every_method_reads_back),
        cmocka_unit_test(test_validation_is_held_out_by_default),
        cmocka_unit_test(test_same_run_or_another),
        cmocka_unit_test(test_every_key_is_documented),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
