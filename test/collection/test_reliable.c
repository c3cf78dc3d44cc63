/* How often hits are wrong, from a collection: measured with its labels, kept, told of hits, promised, and measured again. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "kith/eval.h"
#include "made_collection.h"

enum { N_LABELS = 16, N_EACH = 8, N = N_LABELS * N_EACH };

static float rows[2 * N * MADE_DIM];
static kith_index_item items[2 * N];
static char label[2 * N][16];

/* Pictures near the axis of their thing, some of them nearer to another. */
static void fill(int64_t n, int64_t n_labels) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t thing = i % n_labels;
        snprintf(label[i], sizeof label[i], "thing %d", (int)thing);
        for (int64_t k = 0; k < MADE_DIM; k++)
            rows[i * MADE_DIM + k] =
                (k == thing % MADE_DIM) + 1.6F * (float)((i * 7919 + k * 104729) % 997) / 997;
        items[i] = (kith_index_item){.label = label[i], .bytes = -1, .mtime_ns = -1};
    }
}

static kith_collection *made(const char *name, int64_t n, int64_t n_labels) {
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = MADE_DIM;
    fill(n, n_labels);
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows};
    assert_ok(kith_collection_create(made_path(name), &options, &c, &err), &err);
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, NULL, &err), &err);
    return c;
}

static kith_found ask(kith_collection *c, const kith_query_part *parts, int64_t n_parts, int64_t k) {
    kith_error err;
    kith_found found;
    KITH_OPTIONS(kith_search_request, request);
    request.parts = parts;
    request.n_parts = n_parts;
    request.k = k;
    assert_ok(kith_collection_search(c, &request, 1, NULL, &found, &err), &err);
    return found;
}

static kith_query_part part_of(const float *row) {
    return (kith_query_part){.id = -1, .row = row, .weight = 1};
}

static void test_hits(void **state) {
    (void)state;
    kith_error err;
    kith_reliability r;
    kith_collection *c = made("hits.kith", N, N_LABELS);
    assert_ok(kith_collection_reliability(c, &r, &err), &err);
    assert_int_equal(r.n_present, N);
    assert_int_equal(r.n_labels, N_LABELS);
    float asked[MADE_DIM];
    for (int k = 0; k < MADE_DIM; k++) asked[k] = rows[k] * 0.9F + rows[N_LABELS * MADE_DIM + k] * 0.1F;
    const kith_query_part one = part_of(asked), both[2] = {part_of(asked), part_of(rows)};
    kith_found ten = ask(c, &one, 1, 10), two = ask(c, &one, 1, 2);
    assert_int_equal(ten.n_hits, 10);
    for (int64_t i = 0; i < ten.n_hits; i++) {
        const kith_found_hit *hit = &ten.hits[i];
        if (!(hit->error_rate > 0 && hit->error_rate_low <= hit->error_rate &&
              hit->error_rate <= hit->error_rate_high && hit->error_rate_high <= 1))
            fail_msg("hit %d: %g in %g to %g", (int)i, hit->error_rate, hit->error_rate_low,
                     hit->error_rate_high);
    }
    /* However many are asked for. */
    for (int64_t i = 0; i < two.n_hits; i++) assert_true(two.hits[i].error_rate == ten.hits[i].error_rate);
    kith_found_release(&two);
    two = ask(c, both, 2, 2); /* a sum is no query like those of the trials */
    for (int64_t i = 0; i < two.n_hits; i++) assert_int_not_equal(isnan(two.hits[i].error_rate), 0);
    kith_found_release(&two);
    const kith_query_part item = {.id = 5, .weight = 1};
    two = ask(c, &item, 1, 2); /* an item is no hit of itself */
    assert_int_equal(two.hits[0].item.id, 5);
    assert_int_not_equal(isnan(two.hits[0].error_rate), 0);
    assert_int_equal(isnan(two.hits[1].error_rate), 0);
    kith_found_release(&two);
    kith_found_release(&ten);
    kith_collection_free(c);
}

/* A filter leaves hits out that others are measured by: by the label it may leave out all that are right. */
static void test_filters(void **state) {
    (void)state;
    static const struct {
        const char *where;
        bool is_told;
    } rows_of[] = {{NULL, true},
                   {"year > 0", true},
                   {"label = 'thing 3'", false},
                   {"year > 0 and not (year > 5 or label = x)", false},
                   {"id > 20", false},
                   {"path like '%x%'", false},
                   {"year > 0 or group = 7", false}};
    kith_error err;
    kith_found found;
    kith_collection *c = made("filters.kith", 2 * N, N_LABELS);
    kith_index *index = kith_collection_index(c);
    const char *const columns[] = {"year", "group"};
    for (int i = 0; i < 2; i++)
        assert_ok(kith_index_column_add(index, columns[i], KITH_VALUE_INT, &err), &err);
    for (int64_t id = 0; id < 2 * N; id++) {
        const kith_value values[] = {{.type = KITH_VALUE_INT, .integer = 3},
                                     {.type = KITH_VALUE_INT, .integer = 7}};
        assert_ok(kith_index_set(index, &id, 1, columns, 2, values, &err), &err);
    }
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    const kith_query_part one = part_of(rows);
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++) {
        KITH_OPTIONS(kith_search_request, request);
        request.parts = &one;
        request.n_parts = 1;
        request.k = 3;
        request.where = rows_of[i].where;
        assert_ok(kith_collection_search(c, &request, 1, NULL, &found, &err), &err);
        for (int64_t k = 0; k < found.n_hits; k++) {
            if (found.hits[k].score < 1 - 1e-6 && isnan(found.hits[k].error_rate) == rows_of[i].is_told)
                fail_msg("%s: %g", rows_of[i].where ? rows_of[i].where : "all", found.hits[k].error_rate);
        }
        kith_found_release(&found);
        request.precision = 0.2;
        request.unknown = 0;
        if (!request.where) continue;
        assert_int_equal(kith_collection_search(c, &request, 1, NULL, &found, &err), KITH_EINVAL);
        assert_string_equal(err.message, "precision is for searches without a filter: the trials had none");
    }
    kith_collection_free(c);
}

static kith_status promise(kith_collection *c, double precision, double complete, kith_rerank_method rerank,
                           kith_found *ret, kith_error *err) {
    KITH_OPTIONS(kith_search_request, request);
    const kith_query_part one = part_of(rows);
    request.parts = &one;
    request.n_parts = 1;
    request.k = 24;
    request.precision = precision;
    request.complete = complete;
    request.rerank = rerank;
    request.unknown = 0;
    return kith_collection_search(c, &request, 1, NULL, ret, err);
}

static void test_promises(void **state) {
    (void)state;
    static const double none = (double)NAN;
    kith_error err;
    kith_found found;
    kith_collection *c = made("promises.kith", 2 * N, N_LABELS);
    assert_int_equal(promise(c, 0.9999, none, KITH_RERANK_NONE, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message,
                        "precision 0.9999 takes trials of 29956 items without an error, and 10 labels "
                        "with two items; the index has 256 such trials");
    assert_int_equal(promise(c, 0.5, 0.5, KITH_RERANK_NONE, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "precision and complete are both given; wanted one");
    assert_int_equal(promise(c, 1.5, none, KITH_RERANK_NONE, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "precision is 1.5; wanted a part above 0 and below 1");
    assert_int_equal(promise(c, 0.2, none, KITH_RERANK_EXPANSION, &found, &err), KITH_EINVAL);
    assert_ok(promise(c, 0.2, none, KITH_RERANK_NONE, &found, &err), &err);
    const int64_t n_loose = found.n_hits;
    kith_found_release(&found);
    assert_ok(promise(c, none, 0.5, KITH_RERANK_NONE, &found, &err), &err);
    assert_true(found.n_hits > 0 && n_loose > 0 && n_loose <= 24);
    kith_found_release(&found);
    kith_collection_free(c);
    /* Without labels there is nothing to promise by. */
    c = made("few.kith", N, 9);
    assert_int_equal(promise(c, 0.99, none, KITH_RERANK_NONE, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message,
                        "precision 0.99 takes trials of 299 items without an error, and 10 labels with "
                        "two items; the index has 0 such trials");
    kith_collection_free(c);
}

static void set_note(const char *name, const char *text) {
    kith_error err;
    kith_index *index = NULL;
    assert_ok(kith_index_open(made_path(name), KITH_INDEX_WRITE, &index, &err), &err);
    assert_ok(kith_index_note_set(index, "reliability", text, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
}

/* Damaged text is one error, and the next change measures again, even a small one. */
static void test_damaged(void **state) {
    (void)state;
    kith_error err;
    kith_found found;
    kith_reliability r;
    kith_collection_free(made("damaged.kith", N, N_LABELS));
    set_note("damaged.kith", "{\"version\": 1, \"metric\": \"cosine\"");
    kith_collection *c = made_open("damaged.kith", KITH_INDEX_WRITE);
    assert_int_equal(kith_collection_reliability(c, &r, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "the note of how often hits are wrong is damaged"));
    KITH_OPTIONS(kith_search_request, request);
    const kith_query_part one = part_of(rows);
    request.parts = &one;
    request.n_parts = 1;
    assert_int_equal(kith_collection_search(c, &request, 1, NULL, &found, &err), KITH_EFORMAT);
    kith_found_release(&found);
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, rows};
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, NULL, &err), &err);
    assert_ok(kith_collection_reliability(c, &r, &err), &err);
    assert_int_equal(r.n_present, N + 1);
    kith_collection_free(c);
}

/* Measured again when a tenth has changed; when the labels are gone, nothing is known. */
static void test_again(void **state) {
    (void)state;
    kith_error err;
    kith_reliability r;
    kith_collection *c = made("again.kith", N, N_LABELS);
    kith_array array = {KITH_F32, 2, {4, MADE_DIM}, rows};
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, NULL, &err), &err);
    assert_ok(kith_collection_reliability(c, &r, &err), &err);
    assert_int_equal(r.n_present, N); /* 4 of 128 are few */
    array.dim[0] = 20;
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, NULL, &err), &err);
    assert_ok(kith_collection_reliability(c, &r, &err), &err);
    assert_int_equal(r.n_present, N + 24);
    int64_t *ids = NULL, n = 0;
    assert_ok(kith_index_ids(kith_collection_index(c), "label != 'thing 0'", &ids, &n, &err), &err);
    assert_ok(kith_index_remove(kith_collection_index(c), ids, n, &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
    kith_ids_free(ids);
    assert_ok(kith_collection_add_rows(c, &array, NULL, NULL, NULL, &err), &err);
    assert_int_equal(kith_collection_reliability(c, &r, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "it takes 10 labels with two items each"));
    kith_collection_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hits), cmocka_unit_test(test_promises),
                                       cmocka_unit_test(test_filters), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_again)};
    const int n_failed = cmocka_run_group_tests_name("collection/reliable", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
