/* Another model of the same name: the one that an index was made with is kept, and an index can be embedded anew. */
#include "collection/made_collection.h"

enum { N_CLASSES = 12, N_IMAGES = 10, N_ALL = N_CLASSES * N_IMAGES, FIRST_PART = 96 };

static int begin(void **state) {
    (void)state;
    setenv("KITH_MODELS", made_path("models"), 1);
    setenv("XDG_CACHE_HOME", made_path("caches"), 1);
    made_shell("rm -rf * .[a-z]* && mkdir models caches");
    made_model("models/general.safetensors", 1);
    made_photos("photos", N_CLASSES, N_IMAGES);
    return 0;
}

/* An index by the name `general`. */
static void make(const char *name) {
    kith_error err;
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_collection_options, options);
    options.model = &model;
    assert_ok(kith_collection_create(made_path(name), &options, &collection, &err), &err);
    kith_sync_report report = made_sync(collection, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(collection);
}

/* Search for a photo; the score of the best hit, and its path's end. */
static kith_status search(const char *name, double *ret_score, kith_error *err) {
    kith_found found = {0};
    kith_collection *collection = made_open(name, KITH_INDEX_READ);
    KITH_OPTIONS(kith_search_request, request);
    const kith_query_part part = {
        .id = -1, .image = {.path = made_path("photos/glyph00002/00003.png")}, .weight = 1};
    request.parts = &part;
    request.n_parts = 1;
    const kith_status status = kith_collection_search(collection, &request, 1, NULL, &found, err);
    if (status == KITH_OK && found.n_hits > 0) {
        *ret_score = found.hits[0].score;
        assert_non_null(strstr(found.hits[0].item.path, "glyph00002/00003.png"));
    }
    kith_found_release(&found);
    kith_collection_free(collection);
    return status;
}

static kith_status renew(const char *name, const char *model, kith_sync_report *report, kith_error *err) {
    KITH_OPTIONS(kith_model_options, o);
    if (model) o.weights = made_path(model);
    return kith_collection_renew(made_path(name), &o, NULL, report, err);
}

static void test_the_old_model_is_kept(void **state) {
    (void)state;
    double score = 0;
    kith_error err = {0};
    make("p.kith");
    made_shell("test $(ls caches/kith/models | wc -l) = 1");
    made_model("models/general.safetensors", 2);
    assert_ok(search("p.kith", &score, &err), &err);
    assert_true(score > 0.9999);
    /* A sync adds vectors of the old one. */
    made_shell(
        "cp photos/glyph00001/00001.png photos/glyph00001/new.png; printf x >> photos/glyph00001/new.png");
    kith_collection *collection = made_open("p.kith", KITH_INDEX_WRITE);
    kith_sync_report report = made_sync(collection, NULL);
    assert_int_equal(report.n_added, 1);
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    /* Also where no general is installed any more. */
    made_shell("rm models/general.safetensors");
    assert_ok(search("p.kith", &score, &err), &err);
    /* Without it nothing is mixed: a line says what to do. */
    made_model("models/general.safetensors", 2);
    made_shell("rm -r caches/kith/models");
    assert_int_equal(search("p.kith", &score, &err), KITH_EINVAL);
    assert_non_null(strstr(err.hint, "--renew-model"));
    collection = made_open("p.kith", KITH_INDEX_WRITE);
    assert_int_equal(made_try_sync(collection, NULL, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.hint, "--renew-model"));
    kith_collection_free(collection);
}

/* A kept file that is not what its name says is not used. */
static void test_a_kept_model_is_checked(void **state) {
    (void)state;
    double score = 0;
    kith_error err = {0};
    make("p.kith");
    made_model("models/general.safetensors", 2);
    made_shell("cd caches/kith/models && cp ../../../models/general.safetensors $(ls)");
    assert_int_equal(search("p.kith", &score, &err), KITH_EINVAL);
}

/* An index can be made where the cache cannot; a model that is named by its file is not kept. */
static void test_what_is_not_kept(void **state) {
    (void)state;
    kith_collection *collection = made_collection("named.kith", "models/general.safetensors");
    kith_collection_free(collection);
    assert_false(made_is_there("caches/kith"));
    setenv("XDG_CACHE_HOME", made_path("models/general.safetensors"), 1);
    make("p.kith");
    assert_true(made_is_there("p.kith"));
}

static void test_renewed(void **state) {
    (void)state;
    double score = 0;
    char before[65];
    int64_t n_removed = 0;
    kith_error err = {0};
    kith_sync_report report;
    const char *pattern = "glyph00000/00001.png";
    make("p.kith");
    kith_collection *collection = made_open("p.kith", KITH_INDEX_WRITE);
    assert_ok(kith_collection_remove(collection, &pattern, 1, &n_removed, &err), &err);
    assert_ok(kith_index_note_set(kith_collection_index(collection), "mine", "a note", &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(collection), NULL, &err), &err);
    snprintf(before, sizeof before, "%s", made_info(collection).index.model);
    /* Nobody else writes it. */
    assert_int_equal(renew("p.kith", NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is being written by another process"));
    kith_collection_free(collection);
    testing_write(made_path("p.kith/mine.txt"), "a file of the user's");
    made_model("models/general.safetensors", 2);
    kith_collection *reader = made_open("p.kith", KITH_INDEX_READ);
    assert_ok(renew("p.kith", NULL, &report, &err), &err);
    assert_int_equal(report.n_added, N_ALL - 1);
    assert_int_equal(report.n_excluded, 1);
    kith_sync_report_release(&report);
    /* Who had it open goes on with what it was, and learns that there is another commit. */
    bool is_current = true;
    int64_t *ids = NULL, n = 0;
    assert_ok(kith_index_is_current(kith_collection_index(reader), &is_current, &err), &err);
    assert_false(is_current);
    assert_ok(kith_index_ids(kith_collection_index(reader), NULL, &ids, &n, &err), &err);
    assert_int_equal(n, N_ALL - 1);
    const int64_t last = ids[n - 1];
    kith_ids_free(ids);
    kith_collection_free(reader);
    /* The new one: another model, the same sources, what was removed by hand stays out, notes and files of users stay. */
    made_shell(
        "test $(ls caches/kith/models | wc -l) = 2; rm -r caches/kith/models; test \"$(ls -A | grep "
        "renewed)\" = ''; cat p.kith/mine.txt");
    assert_ok(search("p.kith", &score, &err), &err);
    assert_true(score > 0.9999);
    collection = made_open("p.kith", KITH_INDEX_WRITE);
    const kith_collection_info info = made_info(collection);
    assert_string_not_equal(info.index.model, before);
    assert_int_equal(info.index.n_items, N_ALL - 1);
    assert_int_equal(info.n_sources, 1);
    assert_ok(kith_index_ids(kith_collection_index(collection), NULL, &ids, &n, &err), &err);
    assert_true(ids[0] > last); /* no id means another photo than before */
    kith_ids_free(ids);
    assert_string_equal(kith_index_note(kith_collection_index(collection), "mine"), "a note");
    report = made_sync(collection, NULL);
    assert_int_equal(report.n_same, N_ALL - 1);
    assert_int_equal(report.n_excluded, 1);
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    /* It was made where it lies: it can be moved with its photos, as any other. */
    made_shell("mkdir away && mv photos p.kith away");
    collection = made_open("away/p.kith", KITH_INDEX_READ);
    assert_non_null(strstr(made_info(collection).sources[0], "/away/photos"));
    kith_collection_free(collection);
}

/* Stops when the first part is committed. */
static int stop(void *user, int64_t n_done, int64_t n_all) {
    (void)user, (void)n_all;
    return n_done > FIRST_PART;
}

/* What candidates are found by is the index's, not the model's. */
static void test_a_renewal_keeps_the_first_values(void **state) {
    (void)state;
    kith_error err;
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_collection_options, options);
    options.model = &model;
    options.first = MADE_DIM / 2;
    assert_ok(kith_collection_create(made_path("p.kith"), &options, &collection, &err), &err);
    kith_sync_report report = made_sync(collection, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    made_model("models/general.safetensors", 2);
    assert_ok(renew("p.kith", NULL, NULL, &err), &err);
    collection = made_open("p.kith", KITH_INDEX_READ);
    assert_int_equal(made_info(collection).index.first, MADE_DIM / 2);
    kith_collection_free(collection);
}

static void test_a_renewal_that_fails_changes_nothing(void **state) {
    (void)state;
    double score = 0;
    kith_error err = {0};
    kith_sync_report report;
    make("p.kith");
    made_model("other.safetensors", 2);
    KITH_OPTIONS(kith_model_options, o);
    KITH_OPTIONS(kith_sync_options, how);
    o.weights = made_path("other.safetensors");
    how.progress = stop;
    how.eager = true;
    assert_int_equal(kith_collection_renew(made_path("p.kith"), &o, &how, NULL, &err), KITH_ECANCELED);
    assert_ok(search("p.kith", &score, &err), &err);
    assert_true(score > 0.9999);
    made_shell("mv photos gone");
    assert_int_equal(kith_collection_renew(made_path("p.kith"), &o, NULL, NULL, &err), KITH_EIO);
    made_shell("mv gone photos");
    assert_ok(search("p.kith", &score, &err), &err);
    assert_int_equal(renew("p.kith", "none.safetensors", NULL, &err), KITH_EIO);
    assert_int_equal(renew("nowhere.kith", NULL, NULL, &err), KITH_EIO);
    assert_int_equal(kith_collection_renew("postgresql://host/base", NULL, NULL, NULL, &err),
                     KITH_EUNSUPPORTED);
    /* The same again goes on with what was embedded. */
    assert_ok(renew("p.kith", "other.safetensors", &report, &err), &err);
    assert_int_equal(report.n_same + report.n_added, N_ALL);
    assert_int_equal(report.n_same, FIRST_PART);
    kith_sync_report_release(&report);
    assert_ok(search("p.kith", &score, &err), &err);
    assert_true(score > 0.9999);
}

static void check_shape(const char *name, int64_t side, const char *pool) {
    kith_error err = {0};
    kith_model *model = NULL;
    kith_model_info info;
    kith_collection *collection = made_open(name, KITH_INDEX_READ);
    assert_ok(kith_collection_model(collection, &model, &err), &err);
    kith_model_info_get(model, &info);
    assert_int_equal(info.height, side);
    assert_int_equal(info.width, side);
    assert_string_equal(info.pool, pool);
    kith_collection_free(collection);
}

/* What the caller leaves open is as the index has it; another size takes the resizing with it; another model begins anew. */
static void test_what_is_remembered(void **state) {
    (void)state;
    kith_error err = {0};
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_collection_options, options);
    model.side = 48;
    model.pool = "max";
    options.model = &model;
    assert_ok(kith_collection_create(made_path("p.kith"), &options, &collection, &err), &err);
    kith_sync_report report = made_sync(collection, "photos");
    kith_sync_report_release(&report);
    char words[512], again[512];
    snprintf(words, sizeof words, "%s", made_info(collection).index.preprocess);
    kith_collection_free(collection);
    made_model("models/general.safetensors", 2);
    assert_ok(renew("p.kith", NULL, NULL, &err), &err);
    check_shape("p.kith", 48, "max");
    collection = made_open("p.kith", KITH_INDEX_READ);
    snprintf(again, sizeof again, "%s", made_info(collection).index.preprocess);
    kith_collection_free(collection);
    assert_string_equal(again, words);
    KITH_OPTIONS(kith_model_options, o);
    o.side = 56;
    assert_ok(kith_collection_renew(made_path("p.kith"), &o, NULL, NULL, &err), &err);
    check_shape("p.kith", 56, "max");
    collection = made_open("p.kith", KITH_INDEX_READ);
    assert_non_null(strstr(made_info(collection).index.preprocess, "squash512")); /* 256 at 28 pixels */
    kith_collection_free(collection);
    made_model("other.safetensors", 3);
    assert_ok(renew("p.kith", "other.safetensors", NULL, &err), &err);
    check_shape("p.kith", 28, "avg");
}

/* A file of the user's that has the same name as the model in the box is not that model. */
static void test_an_own_file_of_that_name(void **state) {
    (void)state;
    kith_error err = {0};
    const char *file = NULL;
    made_shell("mkdir own");
    made_model("own/general.safetensors", 3);
    kith_collection *collection = made_collection("p.kith", "own/general.safetensors");
    kith_sync_report report = made_sync(collection, "photos");
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    made_model("own/general.safetensors", 4);
    assert_ok(renew("p.kith", NULL, NULL, &err), &err);
    collection = made_open("p.kith", KITH_INDEX_READ);
    file = made_info(collection).model;
    assert_non_null(strstr(file, "/own/general.safetensors"));
    kith_collection_free(collection);
    /* Said to lie elsewhere, the index's model is no name any more. */
    make("q.kith");
    made_shell("cp models/general.safetensors own/general.safetensors");
    KITH_OPTIONS(kith_model_options, where);
    KITH_OPTIONS(kith_collection_open_options, how);
    where.weights = made_path("own/general.safetensors");
    how.mode = KITH_INDEX_WRITE;
    how.model = &where;
    assert_ok(kith_collection_open(made_path("q.kith"), &how, &collection, &err), &err);
    made_shell("cp photos/glyph00001/00001.png photos/new.png; printf x >> photos/new.png");
    report = made_sync(collection, NULL);
    assert_int_equal(report.n_added, 1);
    kith_sync_report_release(&report);
    kith_collection_free(collection);
    assert_ok(renew("q.kith", NULL, NULL, &err), &err);
    collection = made_open("q.kith", KITH_INDEX_READ);
    assert_non_null(strstr(made_info(collection).model, "/own/general.safetensors"));
    kith_collection_free(collection);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_old_model_is_kept, begin),
        cmocka_unit_test_setup(test_a_kept_model_is_checked, begin),
        cmocka_unit_test_setup(test_what_is_not_kept, begin),
        cmocka_unit_test_setup(test_renewed, begin),
        cmocka_unit_test_setup(test_a_renewal_keeps_the_first_values, begin),
        cmocka_unit_test_setup(test_a_renewal_that_fails_changes_nothing, begin),
        cmocka_unit_test_setup(test_what_is_remembered, begin),
        cmocka_unit_test_setup(test_an_own_file_of_that_name, begin),
    };
    return cmocka_run_group_tests_name("renew", tests, NULL, testing_tear_down);
}
