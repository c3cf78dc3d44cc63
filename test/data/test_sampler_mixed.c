/* The sampler over several data sets: what every batch holds, over many seeds, weights and sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/sampler/sampler.h"
#include "support/testing.h"

enum { MOST_ITEMS = 4000, MOST_PARTS = 4 };

typedef struct world {
    int64_t item[MOST_ITEMS];
    int32_t label[MOST_ITEMS];
    int64_t n;
    ki_sampler_part part[MOST_PARTS];
    size_t n_parts;
} world;

/* A set of n_classes classes of n_each items; n_classes 0: n_each items without a class. Items are numbered 1000 + i. */
static void add_part(world *w, int n_classes, int n_each, double weight) {
    ki_sampler_part *part = &w->part[w->n_parts];
    *part = (ki_sampler_part){.first = w->n, .has_classes = n_classes > 0, .weight = weight};
    const int n = n_classes > 0 ? n_classes * n_each : n_each;
    for (int i = 0; i < n; i++) {
        w->item[w->n] = 1000 + w->n;
        w->label[w->n++] = (int32_t)(1000 * (w->n_parts + 1)) + (n_classes > 0 ? i / n_each : 0);
    }
    part->n = n;
    w->n_parts++;
}

static ki_sampler_settings settings_of(int row, int64_t classes, int64_t images, int64_t size) {
    ki_sampler_settings s;
    ki_options_default(ki_sampler_options, &s);
    s.sampler = row;
    s.classes = classes, s.images = images, s.size = size;
    return s;
}

static kith_status try_sampler(const ki_sampler_settings *s, uint64_t seed, const world *w, ki_sampler **ret,
                               kith_error *err) {
    return ki_sampler_new_mixed(s, seed, w->item, w->label, w->part, w->n_parts, ret, err);
}

static ki_sampler *new_sampler(const ki_sampler_settings *s, uint64_t seed, const world *w) {
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    assert_ok(try_sampler(s, seed, w, &sampler, &err), &err);
    return sampler;
}

static ki_sampler_batch next(ki_sampler *sampler) {
    ki_sampler_batch b;
    kith_error err = {0};
    assert_ok(ki_sampler_next(sampler, &b, &err), &err);
    return b;
}

static size_t part_of(const world *w, int64_t item) {
    size_t p = 0;
    while (item - 1000 >= w->part[p].first + w->part[p].n) p++;
    return p;
}

/* Items of each set in a batch; classes of sets with labels have `images` items, all different, and the sets without come last. */
static void count_batch(const world *w, const ki_sampler_batch *b, int64_t images, int64_t n_unlabelled,
                        int64_t *ret) {
    memset(ret, 0, MOST_PARTS * sizeof *ret);
    for (int64_t i = 0; i < b->n; i++) {
        const size_t p = part_of(w, b->item[i]);
        ret[p]++;
        assert_int_equal(w->part[p].has_classes, i < b->n - n_unlabelled);
        for (int64_t j = 0; j < i; j++) assert_int_not_equal(b->item[i], b->item[j]);
        if (!images || !w->part[p].has_classes) continue;
        int64_t same = 0;
        for (int64_t j = 0; j < b->n; j++) same += w->label[b->item[j] - 1000] == w->label[b->item[i] - 1000];
        assert_int_equal(same, images);
    }
}

static void check_counts(const world *w, const ki_sampler_settings *s, int64_t images,
                         const int64_t wanted[MOST_PARTS], int64_t n_unlabelled) {
    for (uint64_t seed = 0; seed < 20; seed++) {
        ki_sampler *sampler = new_sampler(s, seed, w);
        int64_t n_batches = 0, found[MOST_PARTS];
        kith_error err = {0};
        assert_int_equal(ki_sampler_n_unlabelled(sampler), n_unlabelled);
        assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
        assert_int_equal(n_batches, w->n / ki_sampler_batch_size(s));
        for (int64_t b = 0; b < 2 * n_batches + 1; b++) {
            const ki_sampler_batch batch = next(sampler);
            assert_int_equal(batch.n, ki_sampler_batch_size(s));
            assert_int_equal(batch.epoch, b / n_batches);
            assert_int_equal(batch.number, b % n_batches);
            assert_int_equal(batch.first, b % n_batches * batch.n);
            count_batch(w, &batch, images, n_unlabelled, found);
            for (size_t p = 0; p < w->n_parts; p++) {
                if (found[p] != wanted[p])
                    fail_msg("seed %llu, batch %lld: %lld items of set %zu, wanted %lld",
                             (unsigned long long)seed, (long long)b, (long long)found[p], p,
                             (long long)wanted[p]);
            }
        }
        ki_sampler_free(sampler);
    }
}

static void test_balanced_with_and_without_classes(void **state) {
    (void)state;
    static world w;
    add_part(&w, 20, 10, 2);
    add_part(&w, 0, 150, 1);
    add_part(&w, 30, 8, 1);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced, 8, 4, 0);
    check_counts(&w, &s, 4, (const int64_t[]){16, 8, 8, 0}, 8);
}

static void test_shuffled(void **state) {
    (void)state;
    static world w;
    add_part(&w, 0, 100, 1);
    add_part(&w, 20, 10, 1);
    add_part(&w, 0, 500, 3);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_shuffled, 0, 0, 25);
    check_counts(&w, &s, 0, (const int64_t[]){5, 5, 15, 0}, 20);
}

/* Without weights, by the numbers of images: 200, 600 and 40. */
static void test_weights_are_numbers_of_images(void **state) {
    (void)state;
    static world w;
    add_part(&w, 20, 10, 0);
    add_part(&w, 0, 600, 0);
    add_part(&w, 0, 40, 0);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_shuffled, 0, 0, 42);
    check_counts(&w, &s, 0, (const int64_t[]){10, 30, 2, 0}, 32);
}

/* A set of next to no weight still has its place. */
static void test_everybody_has_a_place(void **state) {
    (void)state;
    static world w;
    add_part(&w, 20, 10, 1e6);
    add_part(&w, 10, 4, 1e-3);
    add_part(&w, 0, 50, 1e-3);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced, 6, 4, 0);
    check_counts(&w, &s, 4, (const int64_t[]){16, 4, 4, 0}, 4);
}

/* Sets without classes alone, and one set. */
static void test_no_classes_at_all(void **state) {
    (void)state;
    static world w;
    add_part(&w, 0, 90, 0);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced, 4, 4, 0);
    check_counts(&w, &s, 0, (const int64_t[]){16, 0, 0, 0}, 16);
}

/* With weights as many as images, an epoch shows next to everything once. */
static void test_an_epoch_shows_the_images(void **state) {
    (void)state;
    static world w;
    add_part(&w, 30, 10, 0);
    add_part(&w, 0, 100, 0);
    static int seen[MOST_ITEMS];
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_shuffled, 0, 0, 20);
    ki_sampler *sampler = new_sampler(&s, 3, &w);
    for (int b = 0; b < 20; b++) {
        const ki_sampler_batch batch = next(sampler);
        for (int64_t i = 0; i < batch.n; i++) seen[batch.item[i] - 1000]++;
    }
    for (int64_t i = 0; i < w.n; i++) assert_int_equal(seen[i], 1);
    ki_sampler_free(sampler);
}

/* A batch depends on its place alone: a sampler that is restored there gives it, and another seed gives another. */
static void test_a_batch_is_a_function_of_its_place(void **state) {
    (void)state;
    static world w;
    add_part(&w, 12, 6, 1);
    add_part(&w, 0, 90, 1);
    const ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced, 6, 3, 0);
    ki_sampler *a = new_sampler(&s, 5, &w), *b = new_sampler(&s, 5, &w), *other = new_sampler(&s, 6, &w);
    kith_error err = {0};
    bool differs = false;
    int64_t first[18];
    memcpy(first, next(other).item, sizeof first);
    ki_sampler_free(other);
    other = new_sampler(&s, 6, &w);
    for (int i = 0; i < 40; i++) {
        const ki_sampler_state at = ki_sampler_save(a);
        const ki_sampler_batch x = next(a), z = next(other);
        assert_ok(ki_sampler_restore(b, &at, &err), &err);
        const ki_sampler_batch y = next(b);
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.item, y.item, (size_t)x.n * sizeof *x.item);
        /* The next epoch begins otherwise. */
        if (at.epoch == 1 && at.number == 0) assert_true(memcmp(z.item, first, sizeof first) != 0);
        differs |= memcmp(x.item, z.item, (size_t)x.n * sizeof *x.item) != 0;
    }
    assert_true(differs);
    ki_sampler_free(a), ki_sampler_free(b), ki_sampler_free(other);
}

static void refused(const world *w, ki_sampler_settings s, const char *line) {
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    assert_int_equal(try_sampler(&s, 1, w, &sampler, &err), KITH_EINVAL);
    if (!strstr(err.message, line)) fail_msg("found: %s\nwanted: %s", err.message, line);
    assert_null(sampler);
}

/* Views repeat the places of every set, and those without classes are still the last. */
static void test_views(void **state) {
    (void)state;
    static world w;
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced, 8, 2, 0);
    add_part(&w, 20, 10, 1);
    add_part(&w, 0, 90, 1);
    ki_sampler *plain = new_sampler(&s, 3, &w);
    s.views = 2;
    ki_sampler *views = new_sampler(&s, 3, &w);
    assert_true(ki_sampler_n_unlabelled(plain) > 0);
    assert_int_equal(ki_sampler_n_unlabelled(views), 2 * ki_sampler_n_unlabelled(plain));
    for (int i = 0; i < 60; i++) {
        const ki_sampler_batch a = next(plain), b = next(views);
        assert_int_equal(b.n, 2 * a.n);
        for (int64_t k = 0; k < b.n; k++) {
            assert_int_equal(b.item[k], a.item[k / 2]);
            const bool has_class = w.part[part_of(&w, b.item[k])].has_classes;
            assert_int_equal(has_class, k < b.n - ki_sampler_n_unlabelled(views));
        }
    }
    ki_sampler_free(plain);
    ki_sampler_free(views);
}

static void test_mistakes(void **state) {
    (void)state;
    static world w, few, none, many;
    add_part(&w, 20, 10, 1);
    add_part(&w, 0, 90, 1);
    refused(&w, settings_of(KI_SAMPLER_ROW_whole_classes, 0, 0, 20),
            "this sampler takes one data set with classes");
    refused(&w, settings_of(KI_SAMPLER_ROW_sequential, 0, 0, 20),
            "this sampler takes one data set with classes");
    add_part(&few, 20, 10, 1);
    add_part(&few, 0, 5, 1);
    refused(&few, settings_of(KI_SAMPLER_ROW_shuffled, 0, 0, 20),
            "data.1: 5 images; its part of every batch is 10");
    add_part(&few, 3, 4, 8);
    refused(&few, settings_of(KI_SAMPLER_ROW_balanced, 10, 2, 0),
            "data.2: batch (balanced): 8 classes per batch asked of 3");
    add_part(&none, 20, 10, 1);
    add_part(&none, 0, 0, 1);
    refused(&none, settings_of(KI_SAMPLER_ROW_shuffled, 0, 0, 20), "data.1 has no image to train on");
    for (int i = 0; i < 4; i++) add_part(&many, 10, 10, 1);
    refused(&many, settings_of(KI_SAMPLER_ROW_balanced, 3, 2, 0), "4 data sets share 3 classes of a batch");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_balanced_with_and_without_classes),
                                       cmocka_unit_test(test_shuffled),
                                       cmocka_unit_test(test_weights_are_numbers_of_images),
                                       cmocka_unit_test(test_everybody_has_a_place),
                                       cmocka_unit_test(test_no_classes_at_all),
                                       cmocka_unit_test(test_an_epoch_shows_the_images),
                                       cmocka_unit_test(test_a_batch_is_a_function_of_its_place),
                                       cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests_name("data/sampler of several sets", tests, NULL, NULL);
}
