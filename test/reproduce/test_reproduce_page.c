/* The page from made-up results against the stored one, the arithmetic in it, and its failures. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kith/experimental/reproduce.h"
#include "reproduce/page.h"
#include "reproduce/sample.h"
#include "support/testing.h"
#include "train/recipe.h"

#define GOLDEN KITH_SOURCE_DIR "/test/golden/reproduce"

static char output[1 << 16];

static void assert_same_text(const char *found_path, const char *wanted_path) {
    if (testing_run(output, sizeof output, "diff '%s' '%s'", wanted_path, found_path) != 0)
        fail_msg("%s differs: %s", found_path, output);
}

static kith_reproduce_options options_of(void) {
    static char page[4096], pictures[4096];
    KITH_OPTIONS(kith_reproduce_options, o);
    o.list = GOLDEN "/tables.yaml";
    snprintf(page, sizeof page, "%s/page.md", testing_folder());
    snprintf(pictures, sizeof pictures, "%s/pictures", testing_folder());
    o.out = GOLDEN "/results";
    o.notes = GOLDEN "/notes.md";
    o.page = page;
    o.pictures = pictures;
    return o;
}

static void test_page_is_the_stored_one(void **state) {
    (void)state;
    kith_error err = {0};
    const kith_reproduce_options o = options_of();
    char path[8192];
    assert_ok(kith_reproduce_table(&o, &err), &err);
    assert_same_text(o.page, GOLDEN "/page.md");
    static const char *const pictures[] = {"plain-better", "better-orders", "summary", "gains"};
    for (size_t i = 0; i < N_ROWS(pictures); i++) {
        char wanted[4096];
        snprintf(path, sizeof path, "%s/%s.svg", o.pictures, pictures[i]);
        snprintf(wanted, sizeof wanted, GOLDEN "/pictures/%s.svg", pictures[i]);
        assert_same_text(path, wanted);
    }
    /* Nothing to draw, no file. */
    snprintf(path, sizeof path, "%s/nothing.svg", o.pictures);
    assert_null(fopen(path, "r"));
    snprintf(path, sizeof path, "%s/no-orders.svg", o.pictures);
    assert_null(fopen(path, "r"));
}

/* The page says which step's model the figures are of, as the results say. */
static void test_how_models_were_chosen(void **state) {
    (void)state;
    static const struct {
        const char *edit, *wants;
    } rows[] = {{"*", "for the model of the step that scored best on validation classes. ±"},
                {"plain-*",
                 "for the model at the end of a run or, in runs with validation classes, of the step that "
                 "scored best on those. ±"}};
    char results[4096];
    kith_error err = {0};
    kith_reproduce_options o = options_of();
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        snprintf(results, sizeof results, "%s/chosen%zu", testing_folder(), i);
        if (testing_run(output, sizeof output,
                        "cp -r '" GOLDEN "/results' %s && sed -i 's/\"selection\": \"last\"/\"selection\": "
                        "\"validation\"/' %s/%s",
                        results, results, rows[i].edit) != 0)
            fail_msg("%s", output);
        o.out = results;
        assert_ok(kith_reproduce_table(&o, &err), &err);
        char *page = testing_read(o.page);
        if (!strstr(page, rows[i].wants)) fail_msg("no '%s' in: %.1500s", rows[i].wants, page);
        free(page);
    }
}

#define D16 "dddddddddddddddd"
#define F16 "ffffffffffffffff"

/* A page of the stored results, of which `edit` (shell, inside their folder) has changed some. To be freed. */
static char *page_of_edited(const char *name, const char *edit) {
    static char results[4096];
    kith_error err = {0};
    kith_reproduce_options o = options_of();
    snprintf(results, sizeof results, "%s/%s", testing_folder(), name);
    if (testing_run(output, sizeof output, "cp -r '" GOLDEN "/results' '%s' && cd '%s' && %s", results,
                    results, edit) != 0)
        fail_msg("%s", output);
    o.out = results;
    assert_ok(kith_reproduce_table(&o, &err), &err);
    return testing_read(o.page);
}

static void assert_has(const char *page, const char *wanted) {
    if (!strstr(page, wanted)) fail_msg("no '%s' in: %.6000s", wanted, page);
}

/* Results of two data sets are never in one mean: those of the other data are left out, by name. */
static void test_other_data_is_left_out(void **state) {
    (void)state;
    char *page = page_of_edited("other-data", "sed -i 's/" D16 D16 D16 D16 "/" F16 F16 F16 F16
                                              "/; s/\"1\": 0.5[0-9]*/\"1\": 0.05/' "
                                              "plain-seed2.json");
    assert_has(page, "| plain | 2 | 55."); /* seeds 0 and 1 */
    assert_has(page, "* plain: left out, of other data (`ffffffffffff`): seed 2.\n");
    assert_has(page, "8 runs.");
    assert_has(page, "1 more result is of other data and left out of every mean");
    free(page);
}

/* A row and a baseline of different data have no gain and no order. */
static void test_no_gain_over_other_data(void **state) {
    (void)state;
    char *page =
        page_of_edited("other-row", "sed -i 's/" D16 D16 D16 D16 "/" F16 F16 F16 F16 "/' better-seed*.json");
    assert_has(page, "| better | 3 | 57.7 ± 0.5 | other data than plain |");
    if (strstr(page, "+2.4")) fail_msg("a gain over other data in: %.4000s", page);
    assert_has(page, "| – | other data |\n");
    assert_has(page, "* better: of other data (`ffffffffffff`) than most rows (`dddddddddddd`).\n");
    free(page);
}

static int count_of(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

/* What was measured is drawn, and nothing else: the validation curve with a mark at every step, two lone test points as marks
 * without a line, and no panel for classes that nobody scored. */
static void test_curves_where_measured(void **state) {
    (void)state;
    char *page = page_of_edited(
        "measured",
        "sed -i 's/\"curves\": .*/\"curves\": {\"validation\": [[0, 0.4], [500, 0.5], [1000, 0.6], "
        "[1500, 0.55]], \"test\": [[0, 0.43], [1500, 0.55]]}}/' plain-*.json better-*.json");
    char path[8192];
    snprintf(path, sizeof path, "%s/plain-better.svg", options_of().pictures);
    char *drawing = testing_read(path);
    if (strstr(drawing, "R@1 of seen classes")) fail_msg("a panel of seen classes: %s", drawing);
    assert_has(drawing, "R@1 of validation classes, percent");
    assert_has(drawing, "R@1 of test classes, percent");
    assert_int_equal(count_of(drawing, "L"), 2 * 3); /* a line of four points for each of two rows */
    assert_int_equal(count_of(drawing, "<circle"), 2 * (4 + 2));
    assert_has(page, "## Seen and unseen classes\n"); /* the orders' drawing has seen ones */
    free(drawing);
    free(page);
}

static void near(const char *what, double found, double wanted) {
    if (!(fabs(found - wanted) < 1e-6)) fail_msg("%s is %.9g, wanted %.9g", what, found, wanted);
}

/* Numbers of make_results.py. */
static void test_arithmetic(void **state) {
    (void)state;
    kith_error err = {0};
    ki_list list = {0};
    ki_outcomes all = {0};
    assert_ok(ki_list_read(GOLDEN "/tables.yaml", &list, &err), &err);
    assert_ok(ki_outcomes_read(GOLDEN "/results", &all, &err), &err);
    const ki_noise noise = ki_noise_of(&list, &all, "recall.1");
    near("the noise", noise.deviation, 0.0038987177379);
    assert_int_equal(noise.freedom, 5);
    const ki_sample plain = ki_sample_of(&list, &all, ki_list_find(&list, "plain"), "recall.1");
    const ki_sample better = ki_sample_of(&list, &all, ki_list_find(&list, "better"), "recall.1");
    const ki_sample same = ki_sample_of(&list, &all, ki_list_find(&list, "same"), "recall.1");
    const ki_sample orders = ki_sample_of(&list, &all, ki_list_find(&list, "better-all"), "recall.1");
    const ki_sample missing = ki_sample_of(&list, &all, ki_list_find(&list, "missing"), "recall.1");
    near("plain", plain.estimate.mean, 0.553);
    near("its interval", plain.estimate.high - plain.estimate.mean, 0.007452495009726);
    near("a gain's interval", ki_difference_half(&noise, &better, &plain), 0.008182964510575);
    near("another's", ki_difference_half(&noise, &same, &plain), 0.011572459391273);
    assert_int_equal(orders.n, 2);
    assert_int_equal(missing.n, 0);
    assert_int_equal(ki_compare(&noise, &better, &plain), KI_AGREES);
    assert_int_equal(ki_compare(&noise, &plain, &better), KI_DISAGREES);
    assert_int_equal(ki_compare(&noise, &same, &plain), KI_WITHIN_NOISE);
    assert_int_equal(ki_compare(&noise, &plain, &missing), KI_UNKNOWN);
    /* Without rows of several seeds the queries' own spread is taken. */
    const ki_noise none = {.deviation = NAN};
    near("from queries", ki_difference_half(&none, &better, &plain), 0.0125 * sqrt(2));
    ki_outcomes_release(&all);
    ki_list_release(&list);
}

static void test_notes_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"words\n<!-- top -->\n", "there is text before the first block"},
        {"<!-- top -->\na\n<!-- top -->\nb\n", "block top is there twice"},
        {"<!-- nowhere -->\na\n", "the page has no place for block nowhere"},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/notes.md", testing_folder());
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        kith_reproduce_options o = options_of();
        o.notes = path;
        testing_write(path, rows[i].text);
        assert_int_equal(kith_reproduce_table(&o, &err), KITH_EFORMAT);
        if (!strstr(err.message, rows[i].wanted)) fail_msg("'%s', wanted '%s'", err.message, rows[i].wanted);
    }
    /* A comment that is no block stays text. */
    kith_error err = {0};
    kith_reproduce_options o = options_of();
    o.notes = path;
    testing_write(path, "<!-- top -->\n<!-- a word or two -->\nWords.\n");
    assert_ok(kith_reproduce_table(&o, &err), &err);
    char *page = testing_read(o.page);
    assert_non_null(strstr(page, "<!-- a word or two -->\nWords.\n"));
    free(page);
}

/* What an overview shows is the gain of a row over its baseline. */
static void test_overviews_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"summary: {name: s, rows: [{method: A, row: b}]}\n", "summary: unknown row 'b'"},
        {"summary: {name: s, rows: [{method: A, row: a}]}\n", "summary: row a has no baseline to gain over"},
        {"summary: {name: ../s, rows: [{method: A, row: c}]}\n", "wanted a name for a file"},
        {"summary: [a]\n", "wanted a map"},
        {"gains: {name: g, series: [{title: A, rows: [c, a]}]}\n",
         "gains: row a has no baseline to gain over"},
        {"gains: {series: [{title: A, rows: [c]}]}\n", "gains is called ''; wanted a name for a file"},
        {"gains: {name: g, series: [{title: A, rows: c}]}\n", "gains: rows is"},
        {"curves: [{name: g, orders: b}]\n", "g: unknown row 'b'"},
        {"curves: [{name: g, variants: b}]\n", "g: unknown row 'b'"},
    };
    char path[4096], text[1024];
    snprintf(path, sizeof path, "%s/overview.yaml", testing_folder());
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_list list = {0};
        snprintf(text, sizeof text, "rows: [{name: a}, {name: c, baseline: a}]\n%s", rows[i].text);
        testing_write(path, text);
        assert_int_not_equal(ki_list_read(path, &list, &err), KITH_OK);
        if (!strstr(err.message, rows[i].wanted)) fail_msg("'%s', wanted '%s'", err.message, rows[i].wanted);
        ki_list_release(&list);
    }
}

static void test_nothing_yet(void **state) {
    (void)state;
    kith_error err = {0};
    kith_reproduce_options o = options_of();
    o.out = "/nowhere/at/all";
    o.notes = NULL;
    assert_ok(kith_reproduce_table(&o, &err), &err);
    char *page = testing_read(o.page);
    assert_non_null(strstr(page, "0 runs."));
    /* No results, no overview. */
    assert_null(strstr(page, "| method |"));
    assert_non_null(strstr(page, "## Losses\n\nNot run yet: plain, worse.\n"));
    assert_non_null(strstr(page, "| better > plain | +3.0 | – | not known yet |"));
    free(page);
}

/* A page that cannot be made leaves the old one. */
static void test_out_of_memory(void **state) {
    (void)state;
    const kith_reproduce_options o = options_of();
    kith_status status = KITH_ENOMEM;
    int n = 0;
    testing_write(o.page, "old\n");
    for (; status != KITH_OK && n < 5000; n++) {
        kith_error err = {0};
        ki_alloc_fail_after(n);
        status = kith_reproduce_table(&o, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        assert_true(err.message[0] != '\0');
        char *page = testing_read(o.page);
        assert_string_equal(page, "old\n");
        free(page);
    }
    assert_int_equal(status, KITH_OK);
    assert_true(n > 20);
    assert_same_text(o.page, GOLDEN "/page.md");
}

/* Files of anybody's: numbers that are none, steps that go back, curves that are no lists. */
static void test_odd_curves(void **state) {
    (void)state;
    static const char *const curves[] = {
        "{\"seen\": [[0, 0.1], [\"x\", 2], [5], 7, [3, 0.2], [1, 0.4], [1e300, 1e300]], \"test\": \"no\"}",
        "{\"seen\": [[0, 0.5]], \"test\": [[0, 0.5], [0, 0.5]]}",
        "{}",
        "{\"seen\": null, \"test\": {}}",
        "{\"variants\": 3}",
        "{\"variants\": {\"seen\": [1, 2]}}",
        "{\"variants\": {\"seen\": {\"order_2\": 7, \"b\": [[0, 1], 3]}, \"test\": null}}"};
    char folder[4096], path[8192], text[2048];
    kith_error err = {0};
    kith_reproduce_options o = options_of();
    snprintf(folder, sizeof folder, "%s/odd", testing_folder());
    assert_int_equal(0, testing_run(output, sizeof output, "mkdir -p %s", folder));
    o.out = folder;
    for (size_t i = 0; i < N_ROWS(curves); i++) {
        snprintf(path, sizeof path, "%s/plain-seed0.json", folder);
        snprintf(
            text, sizeof text,
            "{\"row\": \"plain\", \"recipe\": \"plain\", \"seed\": 0, \"experiment_sha256\": \"e\", "
            "\"recipe_sha256\": \"c\", \"result\": {\"test\": {\"recall\": {\"1\": 0.5}}}, \"curves\": %s}",
            curves[i]);
        testing_write(path, text);
        assert_ok(kith_reproduce_table(&o, &err), &err);
        if (i > 0) continue;
        snprintf(path, sizeof path, "%s/plain-better.svg", o.pictures);
        char *svg = testing_read(path);
        assert_null(strstr(svg, "nan"));
        assert_null(strstr(svg, "inf"));
        free(svg);
    }
}

/* Every row of the shipped lists is a recipe that `kith train` would take, changed as the row says; every recipe of
 * the folder is in the list of tables. */
static void check_list(const char *folder, int least) {
    char path[1024];
    kith_error err = {0};
    ki_list list = {0};
    int n = 0;
    snprintf(path, sizeof path, "%s/tables.yaml", folder);
    assert_ok(ki_list_read(path, &list, &err), &err);
    for (size_t i = 0; i < list.n_rows; i++) {
        const ki_list_row *row = &list.row[i];
        const char *sets[64];
        size_t n_sets = 0;
        ki_recipe *recipe = NULL;
        if (*row->of) continue;
        for (const ki_value *v = list.set ? list.set->first : NULL; v; v = v->next) sets[n_sets++] = v->text;
        for (const ki_value *v = row->set ? row->set->first : NULL; v; v = v->next) sets[n_sets++] = v->text;
        snprintf(path, sizeof path, "%s/%s.yaml", folder, *row->recipe ? row->recipe : row->name);
        if (ki_recipe_read(&(ki_recipe_source){.path = path, .sets = sets, .n_sets = n_sets}, &recipe,
                           &err) != KITH_OK)
            fail_msg("%s: %s (%s)", row->name, err.message, err.hint);
        /* What a search holds out leaves 50 classes. */
        if (!recipe->eval.test && recipe->batch.classes > 50)
            fail_msg("%s: %lld classes in a batch, of 50", row->name, (long long)recipe->batch.classes);
        bool is_run = false;
        for (size_t k = 0; k < list.n_passes; k++) {
            for (const ki_value *v = list.pass[k].groups->first; v; v = v->next)
                is_run |= strcmp(v->text, row->group) == 0;
        }
        if (!is_run) fail_msg("no pass of the order has group %s of %s", row->group, row->name);
        ki_recipe_free(recipe);
        n++;
    }
    if (n < least) fail_msg("%d rows, wanted at least %d", n, least);
    ki_list_release(&list);
}

static void test_shipped_lists(void **state) {
    (void)state;
    check_list(KITH_SOURCE_DIR "/research/recipes/cub", 68);
    check_list(KITH_SOURCE_DIR "/research/recipes/cub/search/setup", 6);
    check_list(KITH_SOURCE_DIR "/research/recipes/cub/search/methods", 35);
    check_list(KITH_SOURCE_DIR "/research/recipes/cub/fair", 13);
    check_list(KITH_SOURCE_DIR "/research/recipes/omniglot", 9);
    kith_error err = {0};
    ki_list list = {0}, fair = {0};
    assert_ok(ki_list_read(KITH_SOURCE_DIR "/research/recipes/cub/tables.yaml", &list, &err), &err);
    assert_ok(ki_list_read(KITH_SOURCE_DIR "/research/recipes/cub/fair/tables.yaml", &fair, &err), &err);
    DIR *dir = opendir(KITH_SOURCE_DIR "/research/recipes/cub");
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(e->d_name, "."), e->d_name);
        if (!strstr(e->d_name, ".yaml") || strcmp(name, "tables") == 0) continue;
        bool is_listed = ki_list_find(&list, name) != NULL;
        for (size_t i = 0; i < fair.n_rows; i++)
            is_listed |=
                strncmp(fair.row[i].recipe, "../", 3) == 0 && strcmp(fair.row[i].recipe + 3, name) == 0;
        if (!is_listed) fail_msg("%s is in no table", name);
    }
    closedir(dir);
    ki_list_release(&list);
    ki_list_release(&fair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_is_the_stored_one),
        cmocka_unit_test(test_how_models_were_chosen),
        cmocka_unit_test(test_other_data_is_left_out),
        cmocka_unit_test(test_no_gain_over_other_data),
        cmocka_unit_test(test_curves_where_measured),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_notes_are_checked),
        cmocka_unit_test(test_overviews_are_checked),
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_odd_curves),
        cmocka_unit_test(test_shipped_lists),
    };
    return cmocka_run_group_tests_name("reproduce/page", tests, NULL, testing_tear_down);
}
