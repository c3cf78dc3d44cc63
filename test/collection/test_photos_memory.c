/* Memory ends at any moment while photos are opened, synced, listed or renewed: what was there stays, and the next call goes on. */
#include "base/alloc.h"
#include "collection/made_collection.h"

enum { N_ALL = 12 };

static int set_up(void **state) {
    (void)state;
    setenv("KITH_MODELS", made_path("models"), 1);
    setenv("XDG_CACHE_HOME", made_path("caches"), 1);
    made_shell("mkdir models");
    made_photos("photos", 3, 4);
    made_model("models/general.safetensors", 9);
    made_model("other.safetensors", 8);
    return 0;
}

/* Of thousands of allocations some: the first all, later ones further apart. */
static int64_t next(int64_t n) { return n + 1 + n / 8; }

static int64_t count_items(const char *index) {
    kith_error err;
    kith_index *opened = NULL;
    kith_index_info info;
    assert_ok(kith_index_open(index, KITH_INDEX_READ, &opened, &err), &err);
    kith_index_info_get(opened, &info);
    kith_index_free(opened);
    return info.n_items;
}

/* All that is done with photos. */
static kith_status use_photos(kith_error *err) {
    kith_photos *photos = NULL;
    kith_cache *cache = NULL;
    kith_cache_removed removed;
    kith_status status = kith_photos_open(made_path("photos"), NULL, &photos, err);
    if (status == KITH_OK) status = kith_photos_sync(photos, NULL, NULL, err);
    if (status == KITH_OK) status = kith_cache_open(NULL, &cache, err);
    if (status == KITH_OK) status = kith_cache_limit(cache, 0, &removed, err);
    kith_cache_free(cache);
    kith_photos_free(photos);
    return status;
}

static void test_photos(void **state) {
    (void)state;
    int64_t n = 0;
    for (bool has_failed = true; has_failed; n = next(n)) {
        kith_error err = {0};
        kith_photos *photos = NULL;
        made_shell("rm -rf caches");
        ki_alloc_fail_after(n);
        const kith_status status = use_photos(&err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("allocation %lld: %s: %s", (long long)n, kith_status_name(status), err.message);
        assert_ok(kith_photos_open(made_path("photos"), NULL, &photos, &err), &err);
        assert_ok(kith_photos_sync(photos, NULL, NULL, &err), &err);
        assert_int_equal(count_items(kith_photos_index(photos)), N_ALL);
        kith_photos_free(photos);
    }
    assert_true(n > 100);
}

static void test_renew(void **state) {
    (void)state;
    int64_t n = 0, n_renewed = 0;
    char before[65];
    kith_collection *c = made_collection("p.kith", "models/general.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    snprintf(before, sizeof before, "%s", made_info(c).index.model);
    kith_collection_free(c);
    KITH_OPTIONS(kith_model_options, o);
    o.weights = made_path("other.safetensors");
    char other[1024];
    snprintf(other, sizeof other, "%s", o.weights);
    o.weights = other;
    for (bool has_failed = true; has_failed; n = next(n)) {
        kith_error err = {0};
        made_shell("rm -rf c.kith .c.kith.renewed && cp -r p.kith c.kith");
        ki_alloc_fail_after(n);
        const kith_status status = kith_collection_renew(made_path("c.kith"), &o, NULL, NULL, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("allocation %lld: %s: %s", (long long)n, kith_status_name(status), err.message);
        /* The one or the other, whole. */
        c = made_open("c.kith", KITH_INDEX_READ);
        const bool is_new = strcmp(made_info(c).index.model, before) != 0;
        assert_int_equal(made_info(c).index.n_items, N_ALL);
        kith_collection_free(c);
        if (is_new != (status == KITH_OK)) fail_msg("allocation %lld: new is %d", (long long)n, is_new);
        if (!is_new) assert_ok(kith_collection_renew(made_path("c.kith"), &o, NULL, NULL, &err), &err);
        n_renewed++;
    }
    assert_true(n > 100 && n_renewed > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_photos), cmocka_unit_test(test_renew)};
    return cmocka_run_group_tests_name("photos/memory", tests, set_up, testing_tear_down);
}
