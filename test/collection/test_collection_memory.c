/* Memory ends at any moment of a change: a new collection leaves nothing, one that is there stays as it was, and both go on afterwards. */
#include "base/alloc.h"
#include "collection/made_collection.h"

static int set_up(void **state) {
    (void)state;
    made_photos("photos", 3, 4);
    made_photos("more", 4, 5);
    made_model("m.safetensors", 9);
    return 0;
}

/* Of thousands of allocations some: the first all, later ones further apart. */
static int64_t next(int64_t n) { return n + 1 + n / 8; }

static void assert_memory(kith_status status, const kith_error *err, int64_t n) {
    if (status != KITH_ENOMEM)
        fail_msg("allocation %lld: %s: %s", (long long)n, kith_status_name(status), err->message);
}

static kith_status make(kith_collection **ret, kith_error *err) {
    KITH_OPTIONS(kith_model_options, how);
    KITH_OPTIONS(kith_collection_options, options);
    how.weights = made_path("m.safetensors");
    options.model = &how;
    const kith_status status = kith_collection_create(made_path("n.kith"), &options, ret, err);
    return status == KITH_OK ? made_try_sync(*ret, "photos", NULL, NULL, err) : status;
}

static void test_new(void **state) {
    (void)state;
    int64_t n = 0;
    for (bool has_failed = true; has_failed; n = next(n)) {
        kith_error err = {0};
        kith_collection *c = NULL;
        ki_alloc_fail_after(n);
        const kith_status status = make(&c, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (has_failed && status != KITH_OK) assert_memory(status, &err, n);
        const bool is_made = c;
        kith_collection_free(c);
        /* An index that was made and could not be opened is empty, and there. */
        if (is_made && status != KITH_OK && made_is_there("n.kith"))
            fail_msg("allocation %lld: it is there", (long long)n);
        made_shell("rm -rf n.kith");
    }
    assert_true(n > 100);
}

/* One call of each kind. */
static kith_status change(kith_collection *c, int kind, kith_error *err) {
    int64_t n_removed = 0;
    kith_calibration curve;
    const char *path = made_path("more"), *const pattern = "glyph00002";
    const kith_sources sources = {.paths = &path, .n = 1, .split = KITH_SPLIT_ALL};
    if (kind == 0) return kith_collection_sync(c, &sources, NULL, NULL, err);
    if (kind == 1) return kith_collection_add(c, &path, 1, NULL, NULL, err);
    if (kind == 2) return kith_collection_remove(c, &pattern, 1, &n_removed, err);
    const kith_sources data = {.paths = &path, .n = 1, .kind = "folder", .split = KITH_SPLIT_ALL};
    return kith_collection_calibrate(c, &data, NULL, NULL, &curve, err);
}

static void test_changes(void **state) {
    (void)state;
    static const int64_t n_after[] = {20, 32, 8, 12};
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    const int64_t before = made_info(c).index.generation;
    kith_collection_free(c);
    for (int kind = 0; kind < 4; kind++) {
        int64_t n = 0;
        for (bool is_done = false; !is_done; n = next(n)) {
            kith_error err = {0};
            made_shell("rm -rf c.kith && cp -r p.kith c.kith");
            c = made_open("c.kith", KITH_INDEX_WRITE);
            ki_alloc_fail_after(n);
            const kith_status status = change(c, kind, &err);
            const bool has_failed = ki_alloc_failed();
            ki_alloc_fail_after(-1);
            is_done = !has_failed;
            if (status == KITH_OK) {
                assert_int_equal(made_info(c).index.n_items, n_after[kind]);
            } else {
                assert_memory(status, &err, n);
                /* The last commit or, where memory ended right after it, the next one. */
                const kith_collection_info now = made_info(c);
                const bool is_next = now.index.generation > before;
                assert_int_equal(now.index.n_items, is_next ? n_after[kind] : 12);
                assert_int_equal(now.n_sources, is_next && kind == 1 ? 2 : 1);
                if (is_next && kind == 2) { /* there is nothing left to remove */
                    kith_collection_free(c);
                    continue;
                }
                const char *source = is_next && kind == 0 ? "more" : "photos";
                assert_string_equal(now.sources[0], made_path(source));
                assert_ok(change(c, kind, &err), &err); /* by the same handle */
                assert_int_equal(made_info(c).index.n_items, n_after[kind]);
            }
            kith_collection_free(c);
        }
        if (n < 20) fail_msg("change %d has %lld allocations", kind, (long long)n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_new), cmocka_unit_test(test_changes)};
    return cmocka_run_group_tests_name("collection/memory", tests, set_up, testing_tear_down);
}
