/* The same collection made by the program and from C has the same bytes. Another maker is another column of functions: it makes each of
 * these collections at the same path, which is moved aside before the next one begins, because an index notes its place. */
#include "collection/made_collection.h"

/* 216 photos of 12 classes, so that false-match rates are measured; a few more; a model; vectors with labels and a table. */
static int set_up(void **state) {
    (void)state;
    made_photos("photos", 12, 18);
    made_photos("more", 3, 5);
    made_model("m.safetensors", 9);
    made_shell("mkdir bad && echo no > bad/a.png");
    return 0;
}

static void program(const char *arguments) {
    char output[8192];
    const int status = testing_run(output, sizeof output, "cd %s && %s index %s", testing_folder(),
                                   testing_program(), arguments);
    if (status != 0) fail_msg("kith index %s: exit status %d: %s", arguments, status, output);
}

static void sync_with(kith_collection *c, const char *name, const char *kind, kith_split split) {
    kith_error err;
    const char *path = name ? made_path(name) : NULL;
    const kith_sources sources = {&path, 1, kind, split};
    assert_ok(kith_collection_sync(c, name ? &sources : NULL, NULL, NULL, &err), &err);
}

/* ---- photos, brought up to date ---- */

static void change_photos(void) {
    made_shell(
        "rm photos/glyph00003/*1.png && mv photos/glyph00001/00000.png photos/glyph00002/moved.png && "
        "cp photos/glyph00004/00000.png photos/glyph00005/00000.png && touch -d 2002-02-02 "
        "photos/glyph00005/00000.png && "
        "touch -d 2001-01-01 photos/glyph00006/00000.png");
}

static void photos_by_program(void) {
    program("photos -o x.kith --model m.safetensors");
    change_photos();
    program("x.kith --sync");
    program("x.kith --remove 'glyph00007/' --remove '*3.png'");
    program("x.kith --add more photos/glyph00007/00001.png");
    program("x.kith --sync");
}

static void photos_by_c(void) {
    kith_error err;
    int64_t n = 0;
    const char *const patterns[] = {"glyph00007/", "*3.png"};
    const char *const paths[] = {made_path("more"), made_path("photos/glyph00007/00001.png")};
    kith_collection *c = made_collection("x.kith", "m.safetensors");
    sync_with(c, "photos", NULL, KITH_SPLIT_ALL);
    change_photos();
    sync_with(c, NULL, NULL, KITH_SPLIT_ALL);
    assert_ok(kith_collection_remove(c, patterns, 2, &n, &err), &err);
    assert_ok(kith_collection_add(c, paths, 2, NULL, NULL, &err), &err);
    sync_with(c, NULL, NULL, KITH_SPLIT_ALL);
    kith_collection_free(c);
}

/* ---- a part of a data set, by another metric, with other options of the model, measured on other data ---- */

static void part_by_program(void) {
    program(
        "photos -o x.kith --model m.safetensors --dataset folder --split test --metric inner --recall 0.9 "
        "--tap pooled --resize shorter40 --crop 32");
    program("x.kith --calibrate more --split all");
}

static void part_by_c(void) {
    kith_error err;
    kith_calibration curve;
    kith_collection *c = NULL;
    const char *path = made_path("more");
    const kith_sources data = {.paths = &path, .n = 1, .split = KITH_SPLIT_ALL};
    KITH_OPTIONS(kith_model_options, how);
    KITH_OPTIONS(kith_collection_options, options);
    how.weights = made_path("m.safetensors");
    how.tap = "pooled";
    how.resize = "shorter40";
    how.height = how.width = 32;
    options.model = &how;
    options.metric = KITH_INNER;
    options.recall = 0.9;
    assert_ok(kith_collection_create(made_path("x.kith"), &options, &c, &err), &err);
    sync_with(c, "photos", "folder", KITH_SPLIT_TEST);
    assert_ok(kith_collection_calibrate(c, &data, NULL, NULL, &curve, &err), &err);
    kith_collection_free(c);
}

/* ---- vectors with labels and a table ---- */

enum { N_ROWS_MADE = 168 };

/* Fourteen rows of each of 12 classes, from their numbers alone. */
static void make_rows(float *rows) {
    for (int64_t i = 0; i < N_ROWS_MADE * MADE_DIM; i++)
        rows[i] = (i % MADE_DIM == i / MADE_DIM / 14) + 0.01f * (float)(i * 7 % 13);
}

static void write_vectors(void) {
    kith_error err;
    float rows[N_ROWS_MADE * MADE_DIM];
    make_rows(rows);
    const kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {N_ROWS_MADE, MADE_DIM}, .data = rows};
    assert_ok(kith_npy_write(made_path("e.npy"), &array, &err), &err);
    made_shell(
        "(echo path,label,year; for i in $(seq 0 167); do echo photos/$i.png,c$((i / 14)),$((2000 + i)); "
        "done) > items.csv");
}

static void vectors_by_program(void) {
    write_vectors();
    program("e.npy -o x.kith --meta items.csv");
}

static void vectors_by_c(void) {
    kith_error err;
    kith_collection *c = NULL;
    float rows[N_ROWS_MADE * MADE_DIM];
    char path[N_ROWS_MADE][24], label[N_ROWS_MADE][8];
    kith_value year[N_ROWS_MADE];
    kith_index_item items[N_ROWS_MADE];
    const kith_column column = {"year", KITH_VALUE_INT};
    make_rows(rows);
    for (int i = 0; i < N_ROWS_MADE; i++) {
        snprintf(path[i], sizeof path[i], "photos/%d.png", i);
        snprintf(label[i], sizeof label[i], "c%d", i / 14);
        year[i] = (kith_value){.type = KITH_VALUE_INT, .integer = 2000 + i};
        items[i] = (kith_index_item){
            .path = path[i], .label = label[i], .bytes = -1, .mtime_ns = -1, .values = &year[i]};
    }
    const kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {N_ROWS_MADE, MADE_DIM}, .data = rows};
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = MADE_DIM;
    options.columns = &column;
    options.n_columns = 1;
    options.folder = testing_folder();
    assert_ok(kith_collection_create(made_path("x.kith"), &options, &c, &err), &err);
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, NULL, &err), &err);
    kith_collection_free(c);
}

/* ---- all of them ---- */

static void assert_same(void (*by_program)(void), void (*by_c)(void)) {
    char output[8192];
    made_shell("rm -rf *.kith by_* && cp -a photos kept");
    by_program();
    made_shell("mv x.kith by_program && rm -rf photos && mv kept photos && cp -a photos kept");
    by_c();
    made_shell("mv x.kith by_c && rm -rf photos && mv kept photos");
    if (testing_run(output, sizeof output, "cd %s && diff -r by_program by_c && ls by_c", testing_folder()) !=
        0)
        fail_msg("%s", output);
    if (!strstr(output, "manifest.json")) fail_msg("nothing was compared: %s", output);
    made_shell("grep -q '\"calibration\"' by_c/manifest.json"); /* false-match rates are part of it */
}

static void test_photos(void **state) {
    (void)state;
    assert_same(photos_by_program, photos_by_c);
}

static void test_part(void **state) {
    (void)state;
    assert_same(part_by_program, part_by_c);
}

static void test_vectors(void **state) {
    (void)state;
    assert_same(vectors_by_program, vectors_by_c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_photos), cmocka_unit_test(test_part),
                                       cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests_name("collection/same_bytes", tests, set_up, testing_tear_down);
}
