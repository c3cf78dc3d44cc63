/* An index as its users see it: what goes in comes out, in the same order as exact search gives it, whatever came between. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "knn/rows.h"
#include "made_index.h"
#include "search/index_handle.h"
#include "search/local/local.h"

/* Rounded once: the gallery's own squared distances are less exact where they cancel. */
static double distance(const float *x, const float *y) {
    const ki_rows a = {KITH_F32, 1, MADE_DIM, x, NULL}, b = {KITH_F32, 1, MADE_DIM, y, NULL};
    return (float)ki_rows_sqdist(&a, 0, &b, 0);
}

/* The hits of made row `query` and the others after it must be those of kith_gallery_search over the ids in `ids`. */
static void assert_same_lists(const kith_index *index, const int64_t *ids, int64_t n, kith_metric metric,
                              int64_t k, bool exact) {
    kith_error err;
    enum { QUERIES = 5 };
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows), query[QUERIES * MADE_DIM];
    for (int64_t i = 0; i < n; i++) made_row(ids[i], rows + i * MADE_DIM);
    for (int i = 0; i < QUERIES; i++) made_row(ids[(i * 37) % n], query + i * MADE_DIM);
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows},
                     asked = {KITH_F32, 2, {QUERIES, MADE_DIM}, query};
    KITH_OPTIONS(kith_knn_options, knn);
    knn.metric = metric;
    kith_gallery *gallery = NULL;
    assert_ok(kith_gallery_new(&array, &knn, &gallery, &err), &err);
    kith_neighbor *wanted = malloc((size_t)(QUERIES * k) * sizeof *wanted);
    assert_ok(kith_gallery_search(gallery, &asked, NULL, k, wanted, &err), &err);
    KITH_OPTIONS(kith_search_options, options);
    options.k = k;
    options.exact = exact;
    kith_hits hits = {0};
    assert_ok(kith_index_search(index, &asked, &options, &hits, &err), &err);
    assert_int_equal(hits.n_queries, QUERIES);
    for (int64_t i = 0; i < QUERIES; i++) {
        assert_int_equal(hits.begin[i + 1] - hits.begin[i], k < n ? k : n);
        for (int64_t j = 0; j < k && j < n; j++) {
            const kith_hit *hit = &hits.hits[hits.begin[i] + j];
            const kith_neighbor *w = &wanted[i * k + j];
            if (hit->id != ids[w->index])
                fail_msg("query %d, hit %d: id %lld score %.9g, wanted %lld score %.9g", (int)i, (int)j,
                         (long long)hit->id, hit->score, (long long)ids[w->index], w->score);
            const double score = metric == KITH_SQEUCLIDEAN
                                     ? distance(query + i * MADE_DIM, rows + w->index * MADE_DIM)
                                     : w->score;
            if (hit->score != score) fail_msg("score %.9g, wanted %.9g", hit->score, score);
        }
    }
    kith_hits_release(&hits);
    kith_gallery_free(gallery);
    free(wanted);
    free(rows);
}

static int64_t all_ids(const kith_index *index, const char *where, int64_t **ret_ids) {
    kith_error err;
    int64_t n = 0;
    assert_ok(kith_index_ids(index, where, ret_ids, &n, &err), &err);
    return n;
}

static void assert_item(const kith_index *index, int64_t id) {
    kith_error err;
    made_item made;
    kith_index_item item = {0};
    made_known(id, &made);
    assert_ok(kith_index_item_get(index, id, &item, &err), &err);
    assert_int_equal(item.id, id);
    assert_string_equal(item.path, made.path);
    if (made.item.label)
        assert_string_equal(item.label, made.item.label);
    else
        assert_null(item.label);
    assert_string_equal(item.hash, made.hash);
    assert_int_equal(item.bytes, made.item.bytes);
    assert_int_equal(item.mtime_ns, made.item.mtime_ns);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(item.values[i].type, made.values[i].type);
        if (made.values[i].type == KITH_VALUE_INT)
            assert_int_equal(item.values[i].integer, made.values[i].integer);
        else if (made.values[i].type == KITH_VALUE_REAL)
            assert_true(item.values[i].real == made.values[i].real);
        else if (made.values[i].type == KITH_VALUE_TEXT)
            assert_string_equal(item.values[i].text, made.values[i].text);
    }
    kith_index_item_release(&item);
}

static void test_what_goes_in_comes_out(void **state) {
    (void)state;
    kith_error err;
    const char *path = made_path("a.kith");
    kith_index *index = made_create(path, KITH_COSINE);
    made_add(index, 0, 300);
    made_add(index, 300, 100);
    assert_int_equal(made_info(index).n_items, 0); /* not committed */
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_info(index).n_items, 400);
    kith_index_free(index);

    index = made_open(path, KITH_INDEX_READ);
    const kith_index_info info = made_info(index);
    assert_int_equal(info.n_items, 400);
    assert_int_equal(info.n_segments, 1);
    assert_int_equal(info.dim, MADE_DIM);
    assert_int_equal(info.tier, KITH_TIER_EXACT);
    assert_string_equal(info.model, "0123abcd");
    assert_string_equal(info.preprocess, "squash256");
    for (int64_t id = 0; id < 400; id += 7) assert_item(index, id);
    float rows[2 * MADE_DIM], wanted[MADE_DIM];
    const int64_t ids[] = {399, 5};
    assert_ok(kith_index_vectors(index, ids, 2, rows, &err), &err);
    made_row(5, wanted);
    assert_memory_equal(rows + MADE_DIM, wanted, sizeof wanted);
    int64_t bytes = 0;
    assert_ok(kith_index_check(index, NULL, &bytes, &err), &err);
    assert_int_equal(bytes, info.file_bytes);
    kith_index_item item;
    assert_int_equal(kith_index_item_get(index, 400, &item, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "has no item with id 400"));
    kith_index_free(index);
}

/* Many commits with additions and removals, against a plain list of what must be there. */
static void churn(kith_metric metric) {
    kith_error err;
    const char *path = made_path("churn.kith");
    kith_index *index = made_create(path, metric);
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    enum { MOST = 6000 };
    int64_t ids[MOST], n = 0, next = 0;
    for (int round = 0; round < 30; round++) {
        const int64_t n_new = ki_rng_below(&rng, round % 5 == 0 ? 900 : 20);
        made_add(index, next, n_new);
        for (int64_t i = 0; i < n_new; i++) ids[n++] = next++;
        for (int64_t i = 0, n_gone = ki_rng_below(&rng, 40); i < n_gone && n > 60; i++) {
            const int64_t at = ki_rng_below(&rng, (uint32_t)n);
            assert_ok(kith_index_remove(index, &ids[at], 1, &err), &err);
            memmove(ids + at, ids + at + 1, (size_t)(n - at - 1) * sizeof *ids);
            n--;
        }
        if (round % 12 == 11)
            assert_ok(kith_index_compact(index, NULL, &err), &err);
        else
            assert_ok(kith_index_commit(index, NULL, &err), &err);
        const kith_index_info info = made_info(index);
        assert_int_equal(info.n_items, n);
        if (round % 12 == 11) assert_int_equal(info.n_removed, 0);
        if (round % 12 == 11) assert_int_equal(info.n_segments, 1);
        assert_in_range(info.n_segments, 0, 8);
        if (n == 0) continue;
        if (round % 6 == 5) { /* another handle sees the same */
            kith_index_free(index);
            index = made_open(path, KITH_INDEX_WRITE);
        }
        int64_t *found = NULL;
        assert_int_equal(all_ids(index, NULL, &found), n);
        assert_memory_equal(found, ids, (size_t)n * sizeof *ids);
        kith_ids_free(found);
        assert_same_lists(index, ids, n, metric, 10, false);
        assert_item(index, ids[n / 2]);
    }
    assert_same_lists(index, ids, n, metric, n + 3, true);
    assert_true(n > 1000);
    kith_index_free(index);
}

static void test_churn_cosine(void **state) { (void)state, churn(KITH_COSINE); }
static void test_churn_inner(void **state) { (void)state, churn(KITH_INNER); }
static void test_churn_sqeuclidean(void **state) { (void)state, churn(KITH_SQEUCLIDEAN); }

static kith_index *committed(const char *name, int64_t n) {
    kith_error err;
    kith_index *index = made_create(made_path(name), KITH_COSINE);
    made_add(index, 0, n);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

static void test_pages_limits_and_selves(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("pages.kith", 500);
    float query[2 * MADE_DIM];
    made_row(10, query);
    made_row(20, query + MADE_DIM);
    const kith_array asked = {KITH_F32, 2, {2, MADE_DIM}, query};
    kith_hits all = {0}, part = {0};
    KITH_OPTIONS(kith_search_options, options);
    options.k = INT64_MAX;
    assert_ok(kith_index_search(index, &asked, &options, &all, &err), &err);
    assert_int_equal(all.begin[1], 500);
    assert_int_equal(all.begin[2], 1000);
    assert_int_equal(all.hits[0].id, 10);
    /* pages are pieces of the whole list */
    options.k = 30;
    options.offset = 480;
    assert_ok(kith_index_search(index, &asked, &options, &part, &err), &err);
    assert_int_equal(part.begin[1], 20);
    assert_int_equal(part.hits[19].id, all.hits[499].id);
    assert_int_equal(part.hits[20].id, all.hits[980].id);
    kith_hits_release(&part);
    options.offset = 500;
    assert_ok(kith_index_search(index, &asked, &options, &part, &err), &err);
    assert_int_equal(part.begin[2], 0);
    kith_hits_release(&part);
    /* all within a limit, also when they are more than are looked for at first */
    options.offset = 0;
    options.k = INT64_MAX;
    options.has_limit = true;
    options.limit = all.hits[299].score;
    assert_ok(kith_index_search(index, &asked, &options, &part, &err), &err);
    assert_int_equal(part.begin[1], 300);
    assert_memory_equal(part.hits, all.hits, 300 * sizeof *all.hits);
    kith_hits_release(&part);
    options.k = 7;
    assert_ok(kith_index_search(index, &asked, &options, &part, &err), &err);
    assert_int_equal(part.begin[1], 7);
    kith_hits_release(&part);
    /* the query itself */
    KITH_OPTIONS(kith_search_options, other);
    const int64_t self[] = {10, -1};
    other.self = self;
    assert_ok(kith_index_search(index, &asked, &other, &part, &err), &err);
    assert_int_equal(part.begin[1], 10);
    assert_int_equal(part.hits[0].id, all.hits[1].id);
    assert_int_equal(part.hits[10].id, 20);
    kith_hits_release(&part);
    kith_hits_release(&all);
    kith_index_free(index);
}

/* k hits where k items are left, however few. */
static void test_filters_return_k(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("few.kith", 2000);
    float query[MADE_DIM];
    made_row(1, query);
    const kith_array asked = {KITH_F32, 2, {1, MADE_DIM}, query};
    KITH_OPTIONS(kith_search_options, options);
    options.where = "id in (1999, 3, 500) or label = tern and year = 2016 and place = Texel";
    int64_t *ids = NULL;
    const int64_t n = all_ids(index, options.where, &ids);
    assert_in_range(n, 4, 200);
    options.k = 2000;
    kith_hits hits = {0};
    assert_ok(kith_index_search(index, &asked, &options, &hits, &err), &err);
    assert_int_equal(hits.begin[1], n);
    assert_int_equal(hits.n_allowed, n);
    kith_hits_release(&hits);
    options.where = "id = 77777";
    assert_ok(kith_index_search(index, &asked, &options, &hits, &err), &err);
    assert_int_equal(hits.begin[1], 0);
    kith_hits_release(&hits);
    options.where = "yaer = 2016";
    assert_int_equal(kith_index_search(index, &asked, &options, &hits, &err), KITH_EINVAL);
    assert_string_equal(err.message, "where: character 1: unknown column 'yaer'");
    assert_non_null(strstr(err.hint, "year"));
    kith_ids_free(ids);
    kith_index_free(index);
}

/* One query or many, one thread or several: the same lists. */
static void test_threads_do_not_matter(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("threads.kith", 3000);
    float query[40 * MADE_DIM];
    for (int i = 0; i < 40; i++) made_row(i * 71, query + i * MADE_DIM);
    const kith_array asked = {KITH_F32, 2, {40, MADE_DIM}, query};
    KITH_OPTIONS(kith_search_options, options);
    options.where = "not label = gull";
    kith_hits one = {0}, other = {0};
    const int64_t before = kith_threads();
    options.n_threads = 1;
    assert_ok(kith_index_search(index, &asked, &options, &one, &err), &err);
    for (int64_t n = 2; n <= 5; n++) {
        options.n_threads = n;
        assert_ok(kith_index_search(index, &asked, &options, &other, &err), &err);
        assert_memory_equal(one.hits, other.hits, 400 * sizeof *one.hits);
        kith_hits_release(&other);
        for (int i = 0; i < 40; i += 13) {
            const kith_array single = {KITH_F32, 2, {1, MADE_DIM}, query + i * MADE_DIM};
            assert_ok(kith_index_search(index, &single, &options, &other, &err), &err);
            assert_memory_equal(one.hits + i * 10, other.hits, 10 * sizeof *one.hits);
            kith_hits_release(&other);
        }
    }
    assert_int_equal(kith_threads(), before);
    kith_hits_release(&one);
    kith_index_free(index);
}

static void test_columns_come_later(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("later.kith", 1500);
    assert_ok(kith_index_column_add(index, "stars", KITH_VALUE_INT, &err), &err);
    assert_ok(kith_index_column_add(index, "stars", KITH_VALUE_INT, &err), &err);
    assert_int_equal(kith_index_column_add(index, "stars", KITH_VALUE_TEXT, &err), KITH_EINVAL);
    assert_int_equal(kith_index_column_add(index, "path", KITH_VALUE_TEXT, &err), KITH_EINVAL);
    assert_int_equal(kith_index_column_add(index, "1st", KITH_VALUE_TEXT, &err), KITH_EINVAL);
    float row[MADE_DIM];
    made_row(1500, row);
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, row};
    const kith_value values[4] = {{0}, {0}, {0}, {.type = KITH_VALUE_INT, .integer = 5}};
    const kith_index_item item = {.bytes = -1, .mtime_ns = -1, .values = values};
    assert_ok(kith_index_add(index, &array, &item, NULL, &err), &err);
    /* also while rows are pending */
    assert_ok(kith_index_column_add(index, "owner", KITH_VALUE_TEXT, &err), &err);
    const kith_value more[5] = {{0}, {0}, {0}, {0}, {.type = KITH_VALUE_TEXT, .text = "Ann"}};
    const kith_index_item next = {.bytes = -1, .mtime_ns = -1, .values = more};
    assert_ok(kith_index_add(index, &array, &next, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    for (int compact = 0; compact < 2; compact++) {
        if (compact) assert_ok(kith_index_compact(index, NULL, &err), &err);
        int64_t *ids = NULL;
        assert_int_equal(all_ids(index, "stars = 5", &ids), 1);
        assert_int_equal(ids[0], 1500);
        kith_ids_free(ids);
        assert_int_equal(all_ids(index, "stars != 5", &ids), 0);
        kith_ids_free(ids);
        assert_int_equal(all_ids(index, "not stars = 5", &ids), 1501);
        kith_ids_free(ids);
        assert_int_equal(all_ids(index, "owner like A%", &ids), 1);
        assert_int_equal(ids[0], 1501);
        kith_ids_free(ids);
    }
    kith_index_free(index);
}

static void test_wrong_values_are_refused(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("wrong.kith", 3);
    float row[MADE_DIM + 1] = {1};
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, row}, wide = {KITH_F32, 2, {1, MADE_DIM + 1}, row};
    kith_value values[3] = {{.type = KITH_VALUE_TEXT, .text = "2020"}};
    const kith_index_item item = {.bytes = -1, .mtime_ns = -1, .values = values};
    assert_int_equal(kith_index_add(index, &array, &item, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "item 0: column 'year' holds values of type integer; found text");
    values[0] = (kith_value){0};
    values[1] = (kith_value){.type = KITH_VALUE_REAL, .real = NAN};
    assert_int_equal(kith_index_add(index, &array, &item, NULL, &err), KITH_EINVAL);
    assert_int_equal(kith_index_add(index, &wide, NULL, NULL, &err), KITH_ESHAPE);
    row[3] = INFINITY;
    assert_int_equal(kith_index_add(index, &array, NULL, NULL, &err), KITH_ENUMERIC);
    const int64_t ids[] = {1, 9};
    assert_int_equal(kith_index_remove(index, ids, 2, &err), KITH_ENOTFOUND);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_info(index).n_items, 3); /* nothing of all that was taken */
    assert_int_equal(kith_index_expect(index, "other", NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "was made with model 0123abcd; this one is other"));
    assert_ok(kith_index_expect(index, "0123abcd", "squash256", &err), &err);
    kith_index_free(index);
}

static void test_notes_and_curves(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("notes.kith", 3);
    char *path = strdup(made_path("notes2.kith"));
    kith_index_free(index);
    index = made_create(path, KITH_COSINE);
    const kith_calibration curve = {.metric = KITH_COSINE,
                                    .source = "test",
                                    .n_classes = 20,
                                    .n_same = 500,
                                    .n_different = 5000,
                                    .n = 3,
                                    .threshold = {0.6, 0.8, 0.9},
                                    .fmr = {0.1, 0.01, 0.001},
                                    .tmr = {0.9, 0.75, 0.5}};
    assert_null(kith_index_calibration(index));
    assert_ok(kith_index_note_set(index, "root", "Bilder/Möwen \"2020\"", &err), &err);
    assert_ok(kith_index_note_set(index, "root", "photos", &err), &err);
    assert_ok(kith_index_note_set(index, "umlaut", "Möwen \"\n", &err), &err);
    assert_int_equal(kith_index_note_set(index, "bad", "\xff", &err), KITH_EINVAL);
    assert_ok(kith_index_calibrate(index, &curve, &err), &err);
    kith_calibration wrong = curve;
    wrong.threshold[1] = 0.5;
    assert_int_equal(kith_index_calibrate(index, &wrong, &err), KITH_EFORMAT);
    wrong = curve;
    wrong.metric = KITH_INNER;
    assert_int_equal(kith_index_calibrate(index, &wrong, &err), KITH_EINVAL);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
    index = made_open(path, KITH_INDEX_READ);
    assert_string_equal(kith_index_note(index, "root"), "photos");
    assert_string_equal(kith_index_note(index, "umlaut"), "Möwen \"\n");
    assert_null(kith_index_note(index, "bad"));
    assert_true(made_info(index).is_calibrated);
    const kith_calibration *stored = kith_index_calibration(index);
    assert_non_null(stored);
    assert_memory_equal(stored, &curve, sizeof curve);
    kith_index_free(index);
    index = made_open(path, KITH_INDEX_WRITE);
    assert_ok(kith_index_calibrate(index, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_false(made_info(index).is_calibrated);
    assert_null(kith_index_calibration(index));
    kith_index_free(index);
    free(path);
}

static void test_files_are_compared(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = committed("sync.kith", 200);
    const int64_t removed[] = {3};
    assert_ok(kith_index_remove(index, removed, 1, &err), &err);
    assert_ok(kith_index_restamp(index, 4, 77, 88, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    for (int compact = 0; compact < 2; compact++) {
        if (compact) assert_ok(kith_index_compact(index, NULL, &err), &err);
        made_item made[6];
        const int64_t of[] = {0, 1, 2, 3, 4};
        kith_file_stamp files[6];
        for (int i = 0; i < 5; i++) {
            made_known(of[i], &made[i]);
            files[i] = (kith_file_stamp){made[i].path, made[i].item.bytes, made[i].item.mtime_ns};
        }
        files[1].bytes++;    /* another size, and the date of before */
        files[2].mtime_ns++; /* and the other way round */
        files[4].bytes = 77;
        files[4].mtime_ns = 88;
        files[5] = (kith_file_stamp){"new.jpg", 1, 1};
        kith_file_state states[6];
        int64_t ids[6], *gone = NULL, n_gone = 0;
        assert_ok(kith_index_compare(index, files, 6, states, ids, &gone, &n_gone, &err), &err);
        static const kith_file_state wanted[] = {KITH_FILE_SAME, KITH_FILE_CHANGED, KITH_FILE_CHANGED,
                                                 KITH_FILE_NEW,  KITH_FILE_SAME,    KITH_FILE_NEW};
        static const int64_t wanted_ids[] = {0, 1, 2, -1, 4, -1};
        for (int i = 0; i < 6; i++) {
            assert_int_equal(states[i], wanted[i]);
            assert_int_equal(ids[i], wanted_ids[i]);
        }
        assert_int_equal(n_gone, 195);
        assert_int_equal(gone[0], 5);
        kith_ids_free(gone);
    }
    kith_index_free(index);
}

/* Many small additions stay few segments. */
static void test_single_additions(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made_create(made_path("single.kith"), KITH_COSINE);
    for (int64_t i = 0; i < 40; i++) {
        made_add(index, i, 1);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
    }
    assert_int_equal(made_info(index).n_segments, 1);
    made_add(index, 40, 3000);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    made_add(index, 3040, 1);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_info(index).n_segments, 2);
    int64_t ids[3041];
    for (int64_t i = 0; i < 3041; i++) ids[i] = i;
    assert_same_lists(index, ids, 3041, KITH_COSINE, 12, false);
    kith_index_free(index);
}

/* Large segments are copied by kith_index_compact alone. */
static void test_large_segments(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made_create(made_path("large.kith"), KITH_COSINE);
    ki_local_of(index->store)->writer->large_rows = 2500;
    for (int64_t i = 0; i < 4; i++) { /* 1500, then 3000, which is large, then the same once more */
        made_add(index, i * 1500, 1500);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
        assert_int_equal(made_info(index).n_segments, 1 + i / 2);
    }
    int64_t ids[6000];
    for (int64_t i = 0; i < 6000; i++) ids[i] = i;
    assert_same_lists(index, ids, 6000, KITH_COSINE, 12, false);
    assert_ok(kith_index_compact(index, NULL, &err), &err);
    assert_int_equal(made_info(index).n_segments, 1);
    assert_same_lists(index, ids, 6000, KITH_COSINE, 12, false);
    kith_index_free(index);
}

/* Without memory: one error each time, nothing lost, and the last commit is there. */
static kith_status work(const char *path, kith_error *err) {
    kith_index *index = NULL;
    uint64_t digest = 0;
    int64_t *gone = NULL, n_gone = 0, id = 5, bytes = 0, found = -1;
    kith_file_state file_state;
    const kith_file_stamp file = {"2015/picture-0.jpg", 1, 1};
    const char *const labels[] = {"auk", NULL}, *const columns[] = {"place"};
    const kith_value values[] = {{.type = KITH_VALUE_TEXT, .text = "Sylt"}, {0}};
    kith_status status = kith_index_open(path, KITH_INDEX_WRITE, &index, err);
    if (status == KITH_OK) status = made_digest(index, &digest, err);
    if (status == KITH_OK)
        status = kith_index_compare(index, &file, 1, &file_state, &found, &gone, &n_gone, err);
    if (status == KITH_OK) status = made_try_add(index, 100, 20, err);
    if (status == KITH_OK) status = kith_index_column_add(index, "extra", KITH_VALUE_TEXT, err);
    if (status == KITH_OK) status = kith_index_remove(index, &id, 1, err);
    if (status == KITH_OK) status = kith_index_restamp(index, 6, 7, 8, err);
    if (status == KITH_OK) status = kith_index_label(index, (int64_t[]){6, 9}, 2, labels, err);
    if (status == KITH_OK) status = kith_index_set(index, (int64_t[]){8, 9}, 2, columns, 1, values, err);
    if (status == KITH_OK) status = kith_index_note_set(index, "a", "b", err);
    if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    if (status == KITH_OK) status = kith_index_check(index, NULL, &bytes, err);
    kith_ids_free(gone);
    kith_index_free(index);
    return status;
}

static void test_failing_allocations(void **state) {
    (void)state;
    kith_error err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s", made_path("memory.kith"));
    made_exact_numbers = 50 * MADE_DIM; /* with codes */
    kith_index *index = made_create(path, KITH_COSINE);
    made_add(index, 0, 100);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
    int n_failed = 0;
    for (int64_t n = 0;; n += 1 + n / 40) {
        ki_alloc_fail_after(n);
        const kith_status status = work(path, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) {
            assert_ok(status, &err);
            break;
        }
        /* A lack of memory that only tidying up meets is no failure. */
        if (status != KITH_OK && status != KITH_ENOMEM) fail_msg("allocation %d: %s", (int)n, err.message);
        if (status != KITH_OK) assert_true(strlen(err.message) > 10);
        n_failed++;
        index = made_open(path, KITH_INDEX_READ);
        const int64_t n_items = made_info(index).n_items;
        if (n_items != 100 && n_items != 119) fail_msg("allocation %d: %d items", (int)n, (int)n_items);
        kith_index_free(index);
        if (n_items == 100) continue;
        snprintf(path, sizeof path, "%s", made_path("memory.kith")); /* it was committed: begin anew */
        index = made_create(path, KITH_COSINE);
        made_add(index, 0, 100);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
        kith_index_free(index);
    }
    assert_true(n_failed > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_goes_in_comes_out),
        cmocka_unit_test(test_churn_cosine),
        cmocka_unit_test(test_churn_inner),
        cmocka_unit_test(test_churn_sqeuclidean),
        cmocka_unit_test(test_pages_limits_and_selves),
        cmocka_unit_test(test_filters_return_k),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_columns_come_later),
        cmocka_unit_test(test_wrong_values_are_refused),
        cmocka_unit_test(test_notes_and_curves),
        cmocka_unit_test(test_files_are_compared),
        cmocka_unit_test(test_single_additions),
        cmocka_unit_test(test_large_segments),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
