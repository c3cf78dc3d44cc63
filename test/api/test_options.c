/* Options of programs that were compiled with another version's headers: fewer fields, more fields, none set up. */
#include <stdlib.h>
#include <string.h>

#include "kith/kith.h"
#include "support/testing.h"

static float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.8F, 0.7F, 0.6F};
static const kith_array rows = {KITH_F32, 2, {5, 2}, x};

static kith_status cluster(const void *options, kith_error *err) {
    kith_kmeans_result result = {0};
    const kith_status status = kith_kmeans(&rows, options, &result, err);
    kith_kmeans_result_release(&result);
    return status;
}

/* A program that knows n_clusters only, its struct in exactly as much memory (ASan sees a byte more). */
static void test_a_smaller_struct_gets_the_other_defaults(void **state) {
    (void)state;
    kith_error err;
    struct {
        size_t size;
        int64_t n_clusters;
    } *old = malloc(sizeof *old);
    kith_kmeans_options_init((void *)old, sizeof *old);
    assert_int_equal(old->size, sizeof *old);
    old->n_clusters = 2;
    assert_ok(cluster(old, &err), &err); /* 0 iterations would be refused */
    free(old);
}

/* A program of a later version: fine as long as it does not use what is new. */
static void test_a_larger_struct(void **state) {
    (void)state;
    kith_error err;
    struct {
        kith_kmeans_options known;
        uint64_t added;
    } later;
    memset(&later, 0xff, sizeof later);
    kith_kmeans_options_init(&later.known, sizeof later);
    assert_int_equal(later.added, 0);
    later.known.n_clusters = 2;
    assert_ok(cluster(&later, &err), &err);
    later.added = 1;
    assert_int_equal(cluster(&later, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "kith_kmeans_options has "));
    assert_non_null(strstr(err.hint, "newer kith"));
}

static void test_options_that_were_not_set_up(void **state) {
    (void)state;
    kith_error err;
    const kith_kmeans_options none = {.n_clusters = 2};
    assert_int_equal(cluster(&none, &err), KITH_EINVAL);
    assert_string_equal(err.hint, "call kith_kmeans_options_init first");
}

static void test_no_options_are_the_defaults(void **state) {
    (void)state;
    kith_error err;
    const int64_t labels[] = {0, 0, 1, 1, 1};
    const kith_retrieval_input input = {.embedding = &rows, .labels = labels, .n_labels = 5};
    KITH_OPTIONS(kith_retrieval_options, options);
    kith_retrieval one, other;
    assert_ok(kith_retrieval_run(&input, NULL, &one, &err), &err);
    assert_ok(kith_retrieval_run(&input, &options, &other, &err), &err);
    assert_int_equal(one.n_k, other.n_k);
    assert_memory_equal(&one.mean, &other.mean, sizeof one.mean);
    kith_retrieval_release(&one);
    kith_retrieval_release(&other);
}

/* Parts of options are pointers, so that a part may grow without moving what is behind it. */
static void test_parts_of_options(void **state) {
    (void)state;
    kith_error err;
    const int64_t labels[] = {0, 0, 1, 1, 1};
    const kith_retrieval_input input = {.embedding = &rows, .labels = labels, .n_labels = 5};
    KITH_OPTIONS(kith_judge_options, judge);
    KITH_OPTIONS(kith_kmeans_options, kmeans);
    kith_judgement j;
    kmeans.n_clusters = 3;
    judge.kmeans = &kmeans;
    judge.has_intervals = false;
    assert_ok(kith_judge_run(&input, &judge, &j, &err), &err);
    assert_int_equal(j.kmeans.n_clusters, 3);
    assert_true(j.has_retrieval && !j.has_intervals);
    kith_judgement_release(&j);
    kmeans.size = 0;
    assert_int_equal(kith_judge_run(&input, &judge, &j, &err), KITH_EINVAL);
}

/* An old program has less memory for the struct than the library knows fields. */
static void test_init_writes_no_further_than_told(void **state) {
    (void)state;
    _Alignas(kith_transform) unsigned char bytes[sizeof(kith_transform) + 8];
    memset(bytes, 0xa5, sizeof bytes);
    kith_transform_init((kith_transform *)(void *)bytes, 24);
    for (size_t i = 24; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xa5);
    kith_transform_init((kith_transform *)(void *)bytes, 4); /* not even a size: nothing is written */
    kith_transform_init(NULL, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_smaller_struct_gets_the_other_defaults),
        cmocka_unit_test(test_a_larger_struct),
        cmocka_unit_test(test_options_that_were_not_set_up),
        cmocka_unit_test(test_no_options_are_the_defaults),
        cmocka_unit_test(test_parts_of_options),
        cmocka_unit_test(test_init_writes_no_further_than_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
