/* Collections: made, synced, added to, removed from, measured, opened again; and what is left after failures. */
#include <signal.h>
#include <sys/resource.h>

#include "collection/made_collection.h"
#include "kith/experimental/found.h"

/* Twelve photos of three classes, and two models. */
static int set_up(void **state) {
    (void)state;
    made_shell("rm -rf *");
    made_photos("photos", 3, 4);
    made_model("m.safetensors", 9);
    made_model("other.safetensors", 8);
    return 0;
}

static void assert_items(kith_collection *collection, int64_t wanted) {
    assert_int_equal(made_info(collection).index.n_items, wanted);
}

static void test_create_and_sync(void **state) {
    (void)state;
    kith_error err = {0};
    kith_collection *c = made_collection("p.kith", "m.safetensors"), *again = NULL;
    assert_items(c, 0);
    kith_sync_report report = made_sync(c, "photos");
    assert_int_equal(report.n_files, 12);
    assert_int_equal(report.n_added, 12);
    assert_int_equal(report.reason, KITH_SYNC_FINE);
    assert_int_equal(report.measured, KITH_OK);
    kith_sync_report_release(&report);
    const kith_collection_info info = made_info(c);
    assert_int_equal(info.index.n_items, 12);
    assert_int_equal(info.index.dim, MADE_DIM);
    assert_int_equal(info.n_sources, 1);
    assert_string_equal(info.sources[0], made_path("photos"));
    assert_string_equal(info.model, made_path("m.safetensors"));
    assert_null(info.kind);
    assert_null(info.folder);
    assert_null(info.false_match_rates);
    assert_int_equal(info.split, KITH_SPLIT_ALL);
    /* A second answer leaves the first alone. */
    assert_ptr_equal(made_info(c).sources, info.sources);
    assert_int_equal(kith_collection_create(made_path("p.kith"), NULL, &again, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is an index already"));
    assert_null(strstr(err.hint, "--"));
    kith_collection_free(c);
    assert_true(made_is_there("p.kith/manifest.json"));
}

static void test_reopened(void **state) {
    (void)state;
    kith_error err;
    int64_t n_bytes = 0;
    kith_model *model = NULL, *twice = NULL;
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_READ);
    assert_items(c, 12);
    assert_ok(kith_collection_check(c, NULL, &n_bytes, &err), &err);
    assert_true(n_bytes > 12 * MADE_DIM * 4);
    assert_ok(kith_collection_model(c, &model, &err), &err);
    assert_int_equal(kith_model_dim(model), MADE_DIM);
    assert_ok(kith_collection_model(c, &twice, &err), &err);
    assert_ptr_equal(model, twice);
    assert_int_equal(made_try_sync(c, NULL, NULL, NULL, &err), KITH_EINVAL); /* opened for reading */
    assert_items(c, 12);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_WRITE);
    report = made_sync(c, NULL);
    assert_int_equal(report.n_same, 12);
    kith_sync_report_release(&report);
    kith_collection_free(c);
}

/* A model that is open already is used if it made the index, and is the caller's to free. */
static void test_shared_model(void **state) {
    (void)state;
    kith_error err;
    static const char *const files[] = {"m.safetensors", "other.safetensors"};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(c);
    for (size_t i = 0; i < N_ROWS(files); i++) {
        kith_model *shared = NULL, *found = NULL;
        KITH_OPTIONS(kith_model_options, how);
        KITH_OPTIONS(kith_collection_open_options, options);
        how.weights = made_path(files[i]);
        assert_ok(kith_model_open(&how, &shared, &err), &err);
        options.shared = shared;
        assert_ok(kith_collection_open(made_path("p.kith"), &options, &c, &err), &err);
        assert_ok(kith_collection_model(c, &found, &err), &err);
        if ((found == shared) != (i == 0)) fail_msg("%s: it is %staken", files[i], i ? "" : "not ");
        kith_collection_free(c);
        assert_int_equal(kith_model_dim(shared), MADE_DIM);
        kith_model_free(shared);
    }
}

/* A model that was moved is found where it is said to be, and from the next change on by itself; another model is refused. */
static void test_model_elsewhere(void **state) {
    (void)state;
    kith_error err;
    kith_model *model = NULL;
    kith_sync_report report = {0};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(c);
    made_shell("mv m.safetensors moved.safetensors");
    c = made_open("p.kith", KITH_INDEX_WRITE);
    assert_int_equal(kith_collection_model(c, &model, &err), KITH_EIO);
    assert_non_null(strstr(err.hint, "say where"));
    kith_collection_free(c);
    KITH_OPTIONS(kith_model_options, how);
    KITH_OPTIONS(kith_collection_open_options, options);
    options.mode = KITH_INDEX_WRITE;
    options.model = &how;
    how.weights = made_path("other.safetensors");
    assert_ok(kith_collection_open(made_path("p.kith"), &options, &c, &err), &err);
    assert_int_equal(made_try_sync(c, NULL, NULL, &report, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "was made with model"));
    kith_collection_free(c);
    how.weights = made_path("moved.safetensors");
    assert_ok(kith_collection_open(made_path("p.kith"), &options, &c, &err), &err);
    report = made_sync(c, NULL);
    assert_int_equal(report.n_same, 12);
    kith_sync_report_release(&report);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_READ);
    assert_ok(kith_collection_model(c, &model, &err), &err);
    assert_string_equal(made_info(c).model, made_path("moved.safetensors"));
    kith_collection_free(c);
}

static void test_add_and_remove(void **state) {
    (void)state;
    kith_error err = {0};
    int64_t n_removed = 0, *ids = NULL, n = 0;
    kith_sync_report report;
    const char *const patterns[] = {"glyph00002", "glyph00001/*3.png"}, *const nothing[] = {"oak/"};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    assert_int_equal(kith_collection_remove(c, nothing, 1, &n_removed, &err), KITH_ENOTFOUND);
    assert_ok(kith_collection_remove(c, patterns, 2, &n_removed, &err), &err);
    assert_int_equal(n_removed, 5);
    report = made_sync(c, NULL);
    assert_int_equal(report.n_same, 7);
    assert_int_equal(report.n_excluded, 5);
    kith_sync_report_release(&report);
    /* One of them again, and a folder of its own; the class of the first is that of its folder. */
    made_shell("mkdir -p more/owl && cp photos/glyph00000/00000.png more/owl/1.png");
    const char *const paths[] = {made_path("photos/glyph00002/00001.png"), made_path("more")};
    assert_ok(kith_collection_add(c, paths, 2, NULL, &report, &err), &err);
    assert_int_equal(report.n_added, 2);
    kith_sync_report_release(&report);
    assert_ok(kith_index_ids(kith_collection_index(c), "label = owl or label = glyph00002", &ids, &n, &err),
              &err);
    assert_int_equal(n, 2);
    kith_ids_free(ids);
    assert_int_equal(made_info(c).n_sources, 2);
    assert_string_equal(made_info(c).sources[1], made_path("more"));
    kith_collection_free(c);
}

/* A data set has its own list: files beside it are refused. */
static void test_data_set(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    const char *path = made_path("photos");
    const kith_sources sources = {&path, 1, "folder", KITH_SPLIT_TEST};
    kith_collection *c = made_collection("d.kith", "m.safetensors");
    assert_ok(kith_collection_sync(c, &sources, NULL, &report, &err), &err);
    assert_int_equal(report.n_added, 4);
    kith_sync_report_release(&report);
    const kith_collection_info info = made_info(c);
    assert_string_equal(info.kind, "folder");
    assert_int_equal(info.split, KITH_SPLIT_TEST);
    assert_int_equal(kith_collection_add(c, &path, 1, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "the index holds a data set (folder)"));
    report = made_sync(c, NULL);
    assert_int_equal(report.n_same, 4);
    kith_sync_report_release(&report);
    kith_collection_free(c);
    /* So is a recipe, and what it names. */
    char recipe[1200];
    snprintf(recipe, sizeof recipe, "data: {root: %s}\n", made_path("photos"));
    testing_write(made_path("r.yaml"), recipe);
    c = made_collection("r.kith", "m.safetensors");
    report = made_sync(c, "r.yaml");
    assert_int_equal(report.n_added, 12);
    kith_sync_report_release(&report);
    assert_int_equal(kith_collection_add(c, &path, 1, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "r.yaml); wanted one of files and folders"));
    kith_collection_free(c);
}

/* Rows of 12 classes: enough labels for false-match rates. */
static void fill_rows(float *rows, kith_index_item *items, int64_t n) {
    static char label[12][8];
    for (int64_t i = 0; i < n; i++) {
        const int64_t class_ = i % 12;
        snprintf(label[class_], sizeof label[class_], "c%02d", (int)class_);
        for (int64_t k = 0; k < MADE_DIM; k++)
            rows[i * MADE_DIM + k] = (k == class_) + 2 * (float)((i * 7919 + k * 104729) % 997) / 997;
        items[i] = (kith_index_item){.label = label[class_], .bytes = -1, .mtime_ns = -1};
    }
}

static void test_rows(void **state) {
    (void)state;
    enum { N = 180 };
    kith_error err;
    kith_model *model = NULL;
    kith_collection *c = NULL;
    kith_sync_report report;
    kith_calibration curve;
    float rows[N * MADE_DIM];
    kith_index_item items[N];
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = MADE_DIM;
    options.folder = made_path("photos");
    fill_rows(rows, items, N);
    kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {N, MADE_DIM}, .data = rows};
    assert_ok(kith_collection_create(made_path("v.kith"), &options, &c, &err), &err);
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, &report, &err), &err);
    assert_int_equal(report.n_added, N);
    assert_int_equal(report.measured, KITH_OK);
    const kith_collection_info info = made_info(c);
    assert_int_equal(info.index.n_items, N);
    assert_int_equal(info.n_sources, 0);
    assert_null(info.model);
    assert_string_equal(info.folder, made_path("photos"));
    assert_non_null(info.false_match_rates);
    assert_string_equal(info.false_match_rates->source, "index");
    assert_int_equal(kith_collection_model(c, &model, &err), KITH_ENOTFOUND);
    assert_int_equal(made_try_sync(c, "photos", NULL, &report, &err), KITH_ENOTFOUND);
    assert_items(c, N);
    assert_ok(kith_collection_calibrate(c, NULL, NULL, NULL, &curve, &err), &err);
    assert_int_equal(curve.n_classes, 12);
    /* Rows of another size: refused, and what is there stays. */
    array = (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {1, 3}, .data = rows};
    assert_int_equal(kith_collection_add_rows(c, &array, NULL, NULL, NULL, &err), KITH_ESHAPE);
    assert_items(c, N);
    kith_collection_free(c);
    assert_true(made_is_there("v.kith"));
    /* A model that makes others. */
    KITH_OPTIONS(kith_model_options, how);
    how.weights = made_path("m.safetensors");
    options.model = &how;
    options.dim = 3;
    assert_int_equal(kith_collection_create(made_path("w.kith"), &options, &c, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "the vectors have 3 values, the model makes 16"));
    assert_false(made_is_there("w.kith"));
}

/* No room for the curve of false-match rates: the items are there, the report says why, and the same handle measures later. */
static void test_not_measured(void **state) {
    (void)state;
    enum { N = 150 };
    kith_error err;
    kith_collection *c = NULL;
    kith_sync_report report;
    kith_calibration curve;
    struct rlimit before, little;
    float rows[N * MADE_DIM];
    kith_index_item items[N];
    const kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {N, MADE_DIM}, .data = rows};
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = MADE_DIM;
    fill_rows(rows, items, N);
    assert_ok(kith_collection_create(made_path("v.kith"), &options, &c, &err), &err);
    getrlimit(RLIMIT_FSIZE, &before);
    little = before;
    little.rlim_cur = 16500; /* more than the vectors take, less than the curve */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    const kith_status status = kith_collection_add_rows(c, &array, items, NULL, &report, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_ok(status, &err);
    assert_int_equal(report.measured, KITH_EIO);
    assert_non_null(strstr(report.measured_error.message, "cannot write"));
    assert_items(c, N);
    assert_null(made_info(c).false_match_rates);
    assert_ok(kith_collection_calibrate(c, NULL, NULL, NULL, &curve, &err), &err);
    assert_non_null(made_info(c).false_match_rates);
    kith_collection_free(c);
}

static void test_calibrate(void **state) {
    (void)state;
    kith_error err;
    kith_calibration curve;
    const char *path = made_path("photos"), *nowhere = made_path("nowhere");
    const kith_sources data = {.paths = &path, .n = 1, .split = KITH_SPLIT_ALL},
                       wrong = {.paths = &nowhere, .n = 1, .split = KITH_SPLIT_ALL};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    assert_int_equal(kith_collection_calibrate(c, NULL, NULL, NULL, &curve, &err), KITH_ENOTFOUND);
    assert_int_equal(kith_collection_calibrate(c, &wrong, NULL, NULL, &curve, &err), KITH_EIO);
    assert_null(made_info(c).false_match_rates);
    assert_ok(kith_collection_calibrate(c, &data, NULL, NULL, &curve, &err), &err);
    assert_int_equal(curve.n_same, 18);
    assert_int_equal(curve.n_different, 48);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_READ);
    assert_string_equal(made_info(c).false_match_rates->source, "data");
    kith_collection_free(c);
}

/* A source that is gone, most of the items gone: said by reason, nothing changes, and the handle goes on. */
static void test_reasons(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    KITH_OPTIONS(kith_sync_options, half);
    half.most_removed = 0.5;
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, NULL, NULL, &report, &err), KITH_EINVAL);
    assert_int_equal(report.reason, KITH_SYNC_NO_SOURCES);
    report = made_sync(c, "photos"); /* what failed can be done again */
    assert_int_equal(report.n_added, 12);
    kith_sync_report_release(&report);
    made_shell("mv photos elsewhere");
    assert_int_equal(made_try_sync(c, NULL, NULL, &report, &err), KITH_EIO);
    assert_int_equal(report.reason, KITH_SYNC_SOURCE_MISSING);
    assert_null(strstr(err.hint, "--"));
    made_photos("few", 1, 2);
    assert_int_equal(made_try_sync(c, "few", &half, &report, &err), KITH_EINVAL);
    assert_int_equal(report.reason, KITH_SYNC_MOST_REMOVED);
    assert_int_equal(report.n_files, 0);
    assert_null(strstr(err.hint, "--"));
    /* Neither the items nor the sources are those of what failed, now and after the next commit. */
    assert_items(c, 12);
    assert_string_equal(made_info(c).sources[0], made_path("photos"));
    const char *const pattern = "glyph00000/00000.png";
    int64_t n_removed = 0;
    assert_ok(kith_collection_remove(c, &pattern, 1, &n_removed, &err), &err);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_WRITE);
    assert_items(c, 11);
    assert_string_equal(made_info(c).sources[0], made_path("photos"));
    report = made_sync(c, "few");
    assert_int_equal(report.n_removed, 10);
    assert_int_equal(report.n_moved, 1);    /* the first two photos of the first class, … */
    assert_int_equal(report.n_excluded, 1); /* … of which one was removed by hand */
    kith_sync_report_release(&report);
    kith_collection_free(c);
}

/* What was to be the first sync fails: nothing is left, but for a folder that was there before. */
static void test_failed_first_sync(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    made_shell("mkdir bad empty.kith && echo no > bad/a.png");
    kith_collection *c = made_collection("b.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "bad", NULL, &report, &err), KITH_EFORMAT);
    assert_int_equal(report.reason, KITH_SYNC_NOTHING_READ);
    assert_non_null(strstr(err.message, "no image of 1 could be read; the first: "));
    assert_null(kith_collection_index(c));
    kith_collection_free(c);
    assert_false(made_is_there("b.kith"));
    c = made_collection("n.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "nowhere", NULL, NULL, &err), KITH_EIO);
    kith_collection_free(c);
    assert_false(made_is_there("n.kith"));
    c = made_collection("empty.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "nowhere", NULL, NULL, &err), KITH_EIO);
    kith_collection_free(c);
    assert_true(made_is_there("empty.kith"));
    made_shell("test -z \"$(ls -A empty.kith)\"");
}

/* What is removed after a first sync that failed is what the collection made: not a file that came into its folder meanwhile. */
static void test_failed_first_sync_beside_a_file(void **state) {
    (void)state;
    kith_error err;
    made_shell("mkdir bad mine.kith && echo no > bad/a.png");
    static const char *const names[] = {"mine.kith", "own.kith"};
    static const char *const photos[] = {"bad", "nowhere"};
    for (int i = 0; i < 2; i++) {
        char command[128];
        kith_collection *c = made_collection(names[i], "m.safetensors");
        snprintf(command, sizeof command, "echo keep > %s/notes.txt", names[i]);
        made_shell(command);
        assert_int_not_equal(made_try_sync(c, photos[i], NULL, NULL, &err), KITH_OK);
        kith_collection_free(c);
        snprintf(command, sizeof command, "test \"$(ls -A %s)\" = notes.txt", names[i]);
        made_shell(command);
    }
}

/* A first sync fails, and then the caller commits by the index: that stays. Nobody else can before the collection is freed. */
static void test_failed_first_sync_then_a_commit(void **state) {
    (void)state;
    kith_error err;
    kith_index_info info;
    float row[MADE_DIM] = {1};
    const kith_array rows = {.dtype = KITH_F32, .n_dims = 2, .dim = {1, MADE_DIM}, .data = row};
    made_shell("mkdir bad && echo no > bad/a.png");
    kith_collection *c = made_collection("own.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "nowhere", NULL, NULL, &err), KITH_EIO);
    assert_ok(kith_index_add(kith_collection_index(c), &rows, NULL, NULL, &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
    kith_collection_free(c);
    c = made_open("own.kith", KITH_INDEX_READ);
    kith_index_info_get(kith_collection_index(c), &info);
    assert_int_equal(info.n_items, 1);
    kith_collection_free(c);

    c = made_collection("other.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "bad", NULL, NULL, &err), KITH_EFORMAT);
    kith_index *other = NULL;
    assert_int_equal(kith_index_open(made_path("other.kith"), KITH_INDEX_WRITE, &other, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is being written by another"));
    kith_collection_free(c);
    assert_false(made_is_there("other.kith"));
}

/* Items that the caller committed itself are not taken away by a sync that fails. */
static void test_failed_sync_after_a_commit(void **state) {
    (void)state;
    kith_error err;
    float row[MADE_DIM] = {1};
    kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {1, MADE_DIM}, .data = row};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    assert_ok(kith_index_add(kith_collection_index(c), &array, NULL, NULL, &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
    assert_int_equal(made_try_sync(c, "nowhere", NULL, NULL, &err), KITH_EIO);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_READ);
    assert_items(c, 1);
    kith_collection_free(c);
}

static int stop_after(void *user, int64_t n_done, int64_t n_all) {
    (void)n_all;
    return n_done >= *(const int64_t *)user;
}

/* Stopped, what was done is committed, and the next sync does the rest. */
static void test_stopped(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    int64_t limit = 513;
    made_photos("many", 3, 200);
    KITH_OPTIONS(kith_sync_options, options);
    options.progress = stop_after;
    options.user = &limit;
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    assert_int_equal(made_try_sync(c, "many", &options, &report, &err), KITH_ECANCELED);
    assert_int_equal(report.n_added, 512); /* parts of so many */
    kith_sync_report_release(&report);
    kith_collection_free(c);
    c = made_open("p.kith", KITH_INDEX_WRITE);
    report = made_sync(c, NULL);
    assert_int_equal(report.n_same, 512);
    assert_int_equal(report.n_added, 88);
    kith_sync_report_release(&report);
    kith_collection_free(c);
}

static int take_room(void *user, int64_t n_done, int64_t n_all) {
    (void)user, (void)n_done, (void)n_all;
    const struct rlimit none = {0, RLIM_INFINITY};
    made_shell("if [ -f p.kith/lock ]; then rm p.kith/lock && mkdir p.kith/lock; fi");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    return 0;
}

/* Nothing can be written: no file may grow, and a writer cannot make its lock, as on a full disk. Reading goes on, and so does the
 * same handle when there is room again. */
static void test_full_disk(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    struct rlimit before;
    int64_t n_bytes = 0;
    KITH_OPTIONS(kith_sync_options, options);
    options.progress = take_room;
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    made_photos("others", 4, 5); /* 12 of them are those of photos */
    void (*const was)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const kith_status status = made_try_sync(c, "others", &options, &report, &err);
    const kith_status checked = kith_collection_check(c, NULL, &n_bytes, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, was);
    assert_int_equal(status, KITH_EIO);
    assert_int_equal(checked, KITH_OK);
    assert_items(c, 12);
    made_shell("rmdir p.kith/lock");
    report = made_sync(c, "others");
    assert_int_equal(report.n_files, 20);
    kith_sync_report_release(&report);
    assert_items(c, 20);
    kith_collection_free(c);
}

static int take_away(void *user, int64_t n_done, int64_t n_all) {
    (void)user, (void)n_done, (void)n_all;
    made_shell("rm -rf p.kith");
    return 0;
}

/* The index is deleted under a change: every function says so, and none crashes. */
static void test_index_gone(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    kith_found found = {0};
    kith_duplicates groups = {0};
    kith_calibration curve;
    char path[256];
    int64_t n = 0;
    const kith_query_part part = {.id = 0, .weight = 1};
    KITH_OPTIONS(kith_search_request, r);
    r.parts = &part;
    r.n_parts = 1;
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    assert_ok(kith_collection_search(c, &r, 1, NULL, &found, &err), &err);
    made_photos("others", 4, 5); /* 12 of them are those of photos */
    KITH_OPTIONS(kith_sync_options, options);
    options.progress = take_away;
    assert_int_not_equal(made_try_sync(c, "others", &options, &report, &err), KITH_OK);
    assert_null(kith_collection_index(c));
    assert_int_not_equal(kith_collection_check(c, NULL, &n, &err), KITH_OK);
    assert_int_not_equal(kith_collection_picture(c, 0, path, sizeof path, &err), KITH_OK);
    assert_int_not_equal(kith_collection_duplicates(c, NULL, &groups, &err), KITH_OK);
    assert_int_not_equal(kith_found_fill(c, &found, &err), KITH_OK);
    assert_int_not_equal(kith_collection_calibrate(c, NULL, NULL, NULL, &curve, &err), KITH_OK);
    kith_json *json = NULL;
    assert_ok(kith_json_new(&json, &err), &err);
    kith_json_object_begin(json);
    kith_found_write(c, &found, json);
    kith_json_object_end(json);
    const char *text = NULL;
    assert_ok(kith_json_finish(json, &text, &err), &err);
    if (!strstr(text, "\"id\"")) fail_msg("no hits in %s", text);
    kith_json_free(json);
    kith_found_release(&found);
    kith_found again = {0};
    assert_int_not_equal(kith_collection_search(c, &r, 1, NULL, &again, &err), KITH_OK);
    kith_found_release(&again);
    kith_collection_free(c);
}

/* Wrong options and names. */
static void test_refusals(void **state) {
    (void)state;
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_model_options, how);
    KITH_OPTIONS(kith_collection_options, options);
    assert_int_equal(kith_collection_create(made_path("x.kith"), &options, &c, &err),
                     KITH_EINVAL); /* no dim */
    options.model = &how;
    how.backbone = "convnet4"; /* random weights have no name */
    assert_int_equal(kith_collection_create(made_path("x.kith"), &options, &c, &err), KITH_EINVAL);
    how.weights = made_path("none.safetensors");
    assert_int_equal(kith_collection_create(made_path("x.kith"), &options, &c, &err), KITH_EIO);
    how.weights = made_path("m.safetensors");
    how.backbone = NULL;
    options.folder = made_path("none");
    assert_int_equal(kith_collection_create(made_path("x.kith"), &options, &c, &err), KITH_EIO);
    assert_false(made_is_there("x.kith"));
    assert_int_equal(kith_collection_open(made_path("x.kith"), NULL, &c, &err), KITH_EIO);
    c = made_collection("p.kith", "m.safetensors");
    const char *const two[] = {made_path("photos"), made_path("photos/glyph00000")};
    const kith_sources sets = {two, 2, "folder", KITH_SPLIT_ALL}, none = {two, 0, NULL, KITH_SPLIT_ALL};
    assert_int_equal(kith_collection_sync(c, &sets, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "wanted one data set"));
    assert_int_equal(kith_collection_sync(c, &none, NULL, NULL, &err), KITH_EINVAL);
    kith_collection_free(c);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup(test, set_up)
    const struct CMUnitTest tests[] = {EACH(test_create_and_sync),
                                       EACH(test_reopened),
                                       EACH(test_shared_model),
                                       EACH(test_model_elsewhere),
                                       EACH(test_add_and_remove),
                                       EACH(test_data_set),
                                       EACH(test_rows),
                                       EACH(test_not_measured),
                                       EACH(test_calibrate),
                                       EACH(test_reasons),
                                       EACH(test_failed_first_sync),
                                       EACH(test_failed_first_sync_beside_a_file),
                                       EACH(test_failed_first_sync_then_a_commit),
                                       EACH(test_failed_sync_after_a_commit),
                                       EACH(test_stopped),
                                       EACH(test_full_disk),
                                       EACH(test_index_gone),
                                       EACH(test_refusals)};
    const int n_failed = cmocka_run_group_tests_name("collection", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
