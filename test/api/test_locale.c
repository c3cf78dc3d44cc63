/* A host program may have set any locale: numbers in files and texts have a point all the same, and are read as such.
 * The locale is made for the test, so that no other needs to be installed. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KITH_EXPERIMENTAL
#include "kith/kith.h"
#include "support/testing.h"

static char output[8192];

static const char comma[] =
    "LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n"
    "LC_COLLATE\ncopy \"POSIX\"\nEND LC_COLLATE\n"
    "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\nEND LC_NUMERIC\n"
    "LC_MONETARY\ncopy \"POSIX\"\nEND LC_MONETARY\n"
    "LC_MESSAGES\ncopy \"POSIX\"\nEND LC_MESSAGES\n"
    "LC_TIME\ncopy \"POSIX\"\nEND LC_TIME\n";

static int make_locale(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/comma.txt", testing_folder());
    testing_write(path, comma);
    testing_run(output, sizeof output, "cd %s && localedef -c -i comma.txt -f ANSI_X3.4-1968 ./xx_XX",
                testing_folder());
    setenv("LOCPATH", testing_folder(), 1);
    return 0;
}

/* Whether numbers have a comma from now on. */
static void use_comma(void) {
    char text[16];
    if (!setlocale(LC_ALL, "xx_XX")) {
        print_message("no locale with a comma can be made here: %s\n", output);
        skip();
    }
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5"); /* printf follows it, so there is something to see */
}

static int use_c(void **state) {
    (void)state;
    setlocale(LC_ALL, "C");
    return 0;
}

static const char *path_of(const char *name) {
    static char path[2][512];
    static int i;
    i = !i;
    snprintf(path[i], sizeof path[i], "%s/%s", testing_folder(), name);
    return path[i];
}

static void assert_same_files(const char *a, const char *b) {
    char *one = testing_read(path_of(a)), *two = testing_read(path_of(b));
    assert_string_equal(one, two);
    free(one);
    free(two);
}

/* What one could not do: open again what was saved. */
static void test_a_saved_model_opens_again(void **state) {
    (void)state;
    kith_error err;
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, options);
    options.backbone = "convnet4";
    options.settings = "width=8";
    options.embedding = 4;
    use_comma();
    assert_ok(kith_model_open(&options, &model, &err), &err);
    assert_ok(kith_model_save(model, path_of("m.safetensors"), &err), &err);
    kith_model_free(model);
    KITH_OPTIONS(kith_model_options, saved);
    saved.weights = path_of("m.safetensors");
    assert_ok(kith_model_open(&saved, &model, &err), &err);
    kith_model_info info;
    kith_model_info_get(model, &info);
    assert_true(info.preprocess.std[0] > 0);
    kith_model_free(model);
}

static char *recipe_text(void) {
    kith_error err;
    char *text = NULL;
    KITH_OPTIONS(kith_train_options, options);
    options.recipe_text =
        "data: {root: x}\nmodel: {backbone: convnet4}\nobjective: {loss: {name: binomial}}\noptim: {lr: "
        "0.00025, steps: 10}\n";
    assert_ok(kith_train_recipe(&options, &text, &err), &err);
    return text;
}

static void test_recipes(void **state) {
    (void)state;
    char *plain = recipe_text();
    assert_non_null(strstr(plain, "0.00025"));
    use_comma();
    char *other = recipe_text();
    assert_string_equal(plain, other);
    kith_string_free(plain);
    kith_string_free(other);
}

static void draw(const char *name) {
    kith_error err;
    double places[] = {0, 0.25, 1.125, 3, -2.5, 0.75};
    const kith_array map = {KITH_F64, 2, {3, 2}, places};
    KITH_OPTIONS(kith_map_drawing, drawing);
    drawing.map = &map;
    assert_ok(kith_map_draw(&drawing, path_of(name), NULL, &err), &err);
}

static void plot(const char *name) {
    kith_error err;
    kith_objective *objective = NULL;
    const kith_objective_sizes sizes = {.embedding = 2};
    float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.8F};
    const int64_t labels[] = {0, 0, 1, 1};
    kith_batch batch = {.n = 4, .labels = labels};
    batch.tap[KITH_TAP_EMBEDDING] = (kith_batch_tap){.data = x, .rows = 4, .cols = 2};
    assert_ok(kith_objective_new("loss: {name: binomial, alpha: 2.5}", &sizes, 1, &objective, &err), &err);
    assert_ok(kith_objective_plot(objective, &batch, path_of(name), &err), &err);
    kith_objective_free(objective);
}

static void test_pictures(void **state) {
    (void)state;
    draw("a.svg");
    plot("c.svg");
    use_comma();
    draw("b.svg");
    plot("d.svg");
    assert_same_files("a.svg", "b.svg");
    assert_same_files("c.svg", "d.svg");
}

static void write_json(const char *name) {
    kith_error err;
    kith_json *json = NULL;
    const char *text = NULL;
    assert_ok(kith_json_new(&json, &err), &err);
    kith_json_array_begin(json);
    kith_json_real(json, 0.1);
    kith_json_real(json, 1e-300);
    kith_json_real(json, 1234567.25);
    kith_json_real32(json, 0.1F);
    kith_json_array_end(json);
    assert_ok(kith_json_finish(json, &text, &err), &err);
    testing_write(path_of(name), text);
    kith_json_free(json);
}

static void test_json(void **state) {
    (void)state;
    write_json("a.json");
    use_comma();
    write_json("b.json");
    assert_same_files("a.json", "b.json");
}

/* Every default and range of every method, as kith list prints them. */
static void list(const char *name) {
    FILE *file = fopen(path_of(name), "w");
    kith_list_kind kind;
    kith_list_entry entry;
    kith_list_option option;
    assert_non_null(file);
    for (int64_t k = 0; kith_list_kind_at(k, &kind); k++) {
        for (int64_t i = 0; kith_list_entry_at(kind.name, i, &entry); i++) {
            for (int64_t o = 0; kith_list_option_at(kind.name, i, o, &option); o++)
                fprintf(file, "%s %s %s %s\n", entry.name, option.name, option.default_text, option.range);
        }
    }
    assert_int_equal(fclose(file), 0);
}

static void test_listings(void **state) {
    (void)state;
    list("a.txt");
    use_comma();
    list("b.txt");
    assert_same_files("a.txt", "b.txt");
}

static void test_messages(void **state) {
    (void)state;
    kith_error err;
    float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.8F, 0.7F, 0.6F};
    const kith_array rows = {KITH_F32, 2, {5, 2}, x};
    kith_array map = {0};
    KITH_OPTIONS(kith_tsne_options, options);
    options.perplexity = 2.5;
    use_comma();
    assert_int_equal(kith_tsne(&rows, &options, &map, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "perplexity 2.5 for 5 rows; wanted 1 to 1.333");
}

/* What a thread of the host had chosen is as it was. */
static void test_the_host_keeps_its_locale(void **state) {
    (void)state;
    char text[16];
    use_comma();
    kith_string_free(recipe_text());
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_saved_model_opens_again, use_c),
        cmocka_unit_test_teardown(test_recipes, use_c),
        cmocka_unit_test_teardown(test_pictures, use_c),
        cmocka_unit_test_teardown(test_json, use_c),
        cmocka_unit_test_teardown(test_listings, use_c),
        cmocka_unit_test_teardown(test_messages, use_c),
        cmocka_unit_test_teardown(test_the_host_keeps_its_locale, use_c),
    };
    return cmocka_run_group_tests(tests, make_locale, testing_tear_down);
}
