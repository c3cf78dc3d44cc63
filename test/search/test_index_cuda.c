/* The exact search of an index on a device: the hits of the host, with and without a filter, after rows were removed. */
#include <math.h>

#include "knn/device.h"
#include "made_index.h"

enum { N = 700, QUERIES = 9 };

static int has_device(void **state) {
    (void)state;
    ki_knn_device device;
    kith_error err;
    if (ki_knn_device_open("cuda", &device, &err) != KITH_OK) exit(77);
    ki_knn_device_close(&device);
    return 0;
}

/* Two segments, of which some rows are removed. */
static kith_index *make_index(kith_metric metric) {
    const char *path = made_path("i.kith");
    kith_error err;
    kith_index *index = made_create(path, metric);
    int64_t removed[N / 5];
    made_add(index, 0, N / 2);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    made_add(index, N / 2, N - N / 2);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    for (int i = 0; i < N / 5; i++) removed[i] = 5 * i + 1;
    assert_ok(kith_index_remove(index, removed, N / 5, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
    return made_open(path, KITH_INDEX_READ);
}

static void assert_same(const kith_index *index, const kith_array *query, kith_search_options options,
                        const char *what) {
    kith_error err;
    kith_hits host = {0}, device = {0};
    assert_ok(kith_index_search(index, query, &options, &host, &err), &err);
    options.device = "cuda";
    assert_ok(kith_index_search(index, query, &options, &device, &err), &err);
    assert_true(device.is_exact);
    assert_int_equal(device.n_allowed, host.n_allowed);
    for (int q = 0; q <= QUERIES; q++) assert_int_equal(device.begin[q], host.begin[q]);
    for (int64_t i = 0; i < host.begin[QUERIES]; i++) {
        const kith_hit *a = &host.hits[i], *b = &device.hits[i];
        if (a->id != b->id || !(fabs(a->score - b->score) < 1e-4))
            fail_msg("%s, hit %d: id %lld score %.9g on the host, id %lld score %.9g on the device", what,
                     (int)i, (long long)a->id, a->score, (long long)b->id, b->score);
    }
    kith_hits_release(&host);
    kith_hits_release(&device);
}

static void test_hits_are_the_hosts(void **state) {
    (void)state;
    float rows[QUERIES * MADE_DIM];
    int64_t self[QUERIES];
    const kith_array query = {KITH_F32, 2, {QUERIES, MADE_DIM}, rows};
    for (int i = 0; i < QUERIES; i++) {
        made_row(48 + 50 * i, rows + i * MADE_DIM); /* each has a twin */
        self[i] = i == 3 ? -1 : 48 + 50 * i;
    }
    for (int metric = 0; metric < 3; metric++) {
        kith_index *index = make_index((kith_metric)metric);
        KITH_OPTIONS(kith_search_options, options);
        assert_same(index, &query, options, "all");
        options.self = self;
        assert_same(index, &query, options, "without themselves");
        options.where = "label = tern and year >= 2018";
        assert_same(index, &query, options, "a filter");
        options.k = N;
        options.offset = 3;
        assert_same(index, &query, options, "all hits of a filter, from the fourth on");
        options.where = "label = none";
        assert_same(index, &query, options, "a filter that lets nothing through");
        kith_index_free(index);
    }
}

static void test_devices_that_are_not_there(void **state) {
    (void)state;
    float row[MADE_DIM];
    kith_error err;
    kith_hits hits = {0};
    const kith_array query = {KITH_F32, 2, {1, MADE_DIM}, row};
    made_row(3, row);
    kith_index *index = make_index(KITH_COSINE);
    KITH_OPTIONS(kith_search_options, options);
    options.device = "abacus";
    assert_int_equal(kith_index_search(index, &query, &options, &hits, &err), KITH_ENOTFOUND);
    options.device = "cuda";
    assert_ok(kith_index_search(index, &query, &options, &hits, &err), &err);
    kith_hits_release(&hits);
    options.device = "cuda:0";
    assert_int_equal(kith_index_search(index, &query, &options, &hits, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the index is searched on cuda already; wanted the same, found cuda:0");
    options.device = NULL;
    assert_ok(kith_index_search(index, &query, &options, &hits, &err), &err);
    kith_hits_release(&hits);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hits_are_the_hosts),
                                       cmocka_unit_test(test_devices_that_are_not_there)};
    return cmocka_run_group_tests(tests, has_device, testing_tear_down);
}
