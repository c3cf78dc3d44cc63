/* Facets: counts of values by hand, of segments, changes and filters; ranges, dates; the same without the store's own counting. */
#include <math.h>

#include "base/alloc.h"
#include "made_index.h"
#include "search/index_handle.h"

enum { N = 1500 };
static kith_index *fresh;

static void commit(kith_index *index) {
    kith_error err;
    assert_ok(kith_index_commit(index, NULL, &err), &err);
}

static int set_up(void **state) {
    (void)state;
    kith_error err;
    const kith_value dates[] = {{.type = KITH_VALUE_TEXT, .text = "2020-01-31T10:00:00"},
                                {.type = KITH_VALUE_TEXT, .text = "2020-02-01T10:00:00+02:00"},
                                {.type = KITH_VALUE_TEXT, .text = "2020-01-31T23:00:00"},
                                {.type = KITH_VALUE_TEXT, .text = "2019-05-05T00:00:00"}};
    fresh = made_create(made_path("facets.kith"), KITH_COSINE);
    made_add(fresh, 0, 1200);
    commit(fresh);
    made_add(fresh, 1200, N - 1200);
    assert_ok(kith_index_remove(fresh, (int64_t[]){5, 1300}, 2, &err), &err);
    assert_ok(kith_index_column_add(fresh, "taken", KITH_VALUE_TEXT, &err), &err);
    assert_ok(
        kith_index_set(fresh, (int64_t[]){1, 2, 3, 1400}, 4, (const char *const[]){"taken"}, 1, dates, &err),
        &err);
    assert_ok(kith_index_label(fresh, (int64_t[]){7, 8}, 2, (const char *const[]){"heron", "heron"}, &err),
              &err);
    commit(fresh);
    return 0;
}

static int tear_down(void **state) {
    kith_index_free(fresh);
    return testing_tear_down(state);
}

static kith_facets facets(const char *column, const char *where, int64_t most) {
    kith_error err;
    kith_facets f = {0};
    assert_ok(kith_index_facets(fresh, column, where, most, &f, &err), &err);
    return f;
}

/* What a filter finds for each value is what is counted. */
static void assert_like_filter(const char *column, const kith_facets *f, const char *where) {
    int64_t sum = 0;
    for (int64_t i = 0; i < f->n_values; i++) {
        const kith_facet_value *v = &f->values[i];
        char one[300];
        kith_error err;
        int64_t *ids = NULL, n = 0;
        if (v->text)
            snprintf(one, sizeof one, "%s = '%s' and %s", column, v->text, where);
        else if (v->low == v->high)
            snprintf(one, sizeof one, "%s = %.17g and %s", column, v->low, where);
        else
            snprintf(one, sizeof one, "%s >= %.17g and %s < %.17g and %s", column, v->low, column, v->high,
                     where);
        assert_ok(kith_index_ids(fresh, one, &ids, &n, &err), &err);
        kith_ids_free(ids);
        if (n != v->n) fail_msg("%s: %lld counted, %lld found", one, (long long)v->n, (long long)n);
        assert_true(n > 0);
        sum += n;
    }
    assert_true(sum <= f->n_items);
    if (f->n_distinct <= f->n_values || f->type != KITH_VALUE_TEXT) assert_int_equal(sum, f->n_items);
}

static void test_texts(void **state) {
    (void)state;
    kith_facets f = facets("label", NULL, 10);
    assert_int_equal(f.n_allowed, N - 2);
    assert_int_equal(f.n_distinct, 6);
    assert_int_equal(f.n_values, 6);
    assert_string_equal(f.values[5].text, "heron");
    assert_int_equal(f.values[5].n, 2);
    for (int i = 1; i < 6; i++) assert_true(f.values[i].n <= f.values[i - 1].n);
    assert_like_filter("label", &f, "id >= 0");
    kith_facets_release(&f);
    f = facets("label", "year >= 2020", 2);
    assert_int_equal(f.n_values, 2);
    assert_int_equal(f.n_distinct, 6);
    assert_like_filter("label", &f, "year >= 2020");
    kith_facets_release(&f);
    f = facets("place", "place = nowhere", 2);
    assert_int_equal(f.n_values + f.n_items + f.n_allowed, 0);
    kith_facets_release(&f);
}

static void test_numbers(void **state) {
    (void)state;
    kith_facets f = facets("year", NULL, 10);
    assert_int_equal(f.n_values, 10);
    assert_true(f.values[0].low == 2015 && f.values[0].high == 2015 && f.least == 2015 && f.most == 2024);
    assert_like_filter("year", &f, "id >= 0");
    kith_facets_release(&f);
    f = facets("year", "label = tern", 3);
    assert_true(f.n_values <= 3 && f.n_distinct == 10);
    assert_true(f.values[0].low == 2015 && f.values[0].high == 2020);
    assert_like_filter("year", &f, "label = tern");
    kith_facets_release(&f);
    f = facets("weight", NULL, 8);
    assert_true(f.n_values <= 8 && f.n_values >= 3 && f.values[0].low == -2 && f.values[0].high == -1.5);
    assert_like_filter("weight", &f, "id >= 0");
    kith_facets_release(&f);
    f = facets("weight", NULL, 1); /* -2 to 2 is no one round range from 0 on */
    assert_true(f.n_values >= 1 && f.n_values <= 2);
    kith_facets_release(&f);
}

/* By day, month or year, in their order. */
static void test_dates(void **state) {
    (void)state;
    kith_facets f = facets("taken", NULL, 3);
    assert_true(f.are_dates);
    assert_int_equal(f.n_values, 3);
    assert_string_equal(f.values[0].text, "2019-05-05");
    assert_string_equal(f.values[1].text, "2020-01-31");
    assert_int_equal(f.values[1].n, 2);
    kith_facets_release(&f);
    f = facets("taken", "taken >= 2020", 1);
    assert_int_equal(f.n_values, 1);
    assert_string_equal(f.values[0].text, "2020");
    assert_int_equal(f.values[0].n, 3);
    assert_int_equal(f.n_allowed, 3);
    kith_facets_release(&f);
    f = facets("taken", "taken >= 2020", 2);
    assert_int_equal(f.n_distinct, 2);
    kith_facets_release(&f);
}

static void test_without_counting(void **state) {
    (void)state;
    static const char *const columns[] = {"label", "year", "weight", "taken"};
    ki_store_type slow = *fresh->store->type;
    const ki_store_type *fast = fresh->store->type;
    slow.count = NULL;
    for (size_t i = 0; i < N_ROWS(columns); i++) {
        kith_facets a = facets(columns[i], "id < 900", 7);
        fresh->store->type = &slow;
        kith_facets b = facets(columns[i], "id < 900", 7);
        fresh->store->type = fast;
        assert_int_equal(a.n_values, b.n_values);
        assert_int_equal(a.n_allowed, b.n_allowed);
        for (int64_t k = 0; k < a.n_values; k++) {
            assert_int_equal(a.values[k].n, b.values[k].n);
            assert_true(a.values[k].low == b.values[k].low);
            if (a.values[k].text) assert_string_equal(a.values[k].text, b.values[k].text);
        }
        kith_facets_release(&a);
        kith_facets_release(&b);
    }
}

static void test_what_is_refused(void **state) {
    (void)state;
    kith_error err;
    kith_facets f = {0};
    assert_int_equal(kith_index_facets(fresh, "colour", NULL, 3, &f, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "no column 'colour'"));
    assert_int_equal(kith_index_facets(fresh, "year", NULL, 0, &f, &err), KITH_EINVAL);
    assert_int_equal(kith_index_facets(fresh, "year", "nonsense", 3, &f, &err), KITH_EINVAL);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_index_facets(fresh, "taken", "label != x", 1, &f, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) kith_facets_release(&f);
        if (!has_failed) break;
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        n_failed++;
    }
    assert_true(n_failed > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_dates), cmocka_unit_test(test_without_counting),
                                       cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
