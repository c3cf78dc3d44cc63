/* The loader: the same batches whatever the threads and the cache, unreadable files, stopping, budget. Also
 * run under ThreadSanitizer (the tsan preset). */
#include "data/loader/loader.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/loader/cache.h"
#include "data/miniature.h"
#include "io/yaml.h"
#include "kith/log.h"

enum { N_CLASSES = 12, PER_CLASS = 7, SIDE = 40, CROP = 24 };

/* 84 PNG files; pixel values name class and image. Made once. */
static const char *make_images(void) {
    static char root[4096];
    if (root[0]) return root;
    snprintf(root, sizeof root, "%s", in_folder("images"));
    ki_image image = {0};
    ki_bytes bytes = {0};
    kith_error err = {0};
    for (int c = 0; c < N_CLASSES; c++) {
        for (int i = 0; i < PER_CLASS; i++) {
            assert_ok(ki_image_shape(&image, SIDE, SIDE, 3, &err), &err);
            for (int p = 0; p < SIDE * SIDE * 3; p++) image.data[p] = (uint8_t)(p * (c + 1) + 31 * i);
            assert_ok(ki_png_encode(&image, &bytes, &err), &err);
            put_bytes(in_folder("images/c%02d/%d.png", c, i), bytes.data, bytes.n);
        }
    }
    ki_image_release(&image);
    ki_bytes_release(&bytes);
    return root;
}

static kith_dataset *open_images(const char *root) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(kith_dataset_open("folder", root, &set, &err), &err);
    assert_ok(kith_dataset_split_first(set, kith_dataset_n_classes(set), &err), &err); /* all train */
    return set;
}

static ki_loader_settings random_settings(void) {
    ki_loader_settings s = {.seed = 5, .n_workers = 2, .most_bad = -1};
    kith_transform_init(&s.transform, sizeof s.transform);
    s.transform.resize_to = 32;
    s.transform.crop = KITH_CROP_RANDOM;
    s.transform.crop_to = CROP;
    s.transform.mirror = true;
    return s;
}

static ki_sampler *make_sampler(const kith_dataset *set, const ki_sampler_settings *settings) {
    int64_t *items = NULL, n = 0;
    kith_error err = {0};
    assert_ok(ki_dataset_select(set, KITH_SPLIT_TRAIN, &items, &n, &err), &err);
    int32_t *labels = ki_alloc((size_t)n, sizeof *labels);
    for (int64_t i = 0; i < n; i++) labels[i] = set->item[items[i]].label;
    ki_sampler *sampler = NULL;
    assert_ok(ki_sampler_new(settings, 3, items, labels, n, &sampler, &err), &err);
    ki_free(items);
    ki_free(labels);
    return sampler;
}

static ki_sampler_settings balanced(void) {
    ki_sampler_settings s;
    ki_options_default(ki_sampler_options, &s);
    s.classes = 4;
    s.images = 3;
    return s;
}

static ki_loader *make_loader(const kith_dataset *set, const ki_loader_settings *settings,
                              const ki_sampler_state *at) {
    const ki_sampler_settings batches = balanced();
    ki_sampler *sampler = make_sampler(set, &batches);
    ki_loader *loader = NULL;
    kith_error err = {0};
    if (at) assert_ok(ki_sampler_restore(sampler, at, &err), &err);
    assert_ok(ki_loader_new(set, sampler, 12, settings, &loader, &err), &err);
    return loader;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* Hash of the next n batches, everything in them. */
static uint64_t hash_batches(ki_loader *loader, int n, size_t item_bytes, ki_sampler_state *ret_after) {
    uint64_t hash = 1469598103934665603u;
    for (int b = 0; b < n; b++) {
        ki_loader_batch batch;
        kith_error err = {0};
        assert_ok(ki_loader_next(loader, &batch, &err), &err);
        assert_int_equal(batch.n, 12);
        hash = hash_bytes(hash, batch.data, 12 * item_bytes);
        hash = hash_bytes(hash, batch.label, 12 * sizeof *batch.label);
        hash = hash_bytes(hash, batch.item, 12 * sizeof *batch.item);
        hash = hash_bytes(hash, &batch.epoch, sizeof batch.epoch);
        if (ret_after) *ret_after = batch.after;
    }
    return hash;
}

static void add_effects(kith_transform *t) {
    static const char list[] = "[randaugment, {name: jitter, p: 0.5}, grey, {name: blur, kernel: 5}, erase]";
    ki_arena arena = {0};
    ki_value *root = NULL;
    kith_error err = {0};
    assert_ok(ki_yaml_parse(list, sizeof list - 1, "effects", &arena, &root, &err), &err);
    assert_ok(ki_effects_parse(root, t, &err), &err);
    ki_arena_release(&arena);
}

/* Three epochs of nine batches. */
enum { N_BATCHES = 27 };

static void test_same_whatever_the_threads(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    static const kith_crop crops[] = {KITH_CROP_RANDOM, KITH_CROP_RESIZED, KITH_CROP_MULTISCALE,
                                      KITH_CROP_RANDOM};
    for (size_t k = 0; k < N_ROWS(crops); k++) {
        for (int format = 0; format < 2; format++) {
            uint64_t first = 0;
            const size_t item_bytes = CROP * CROP * 3 * (format == KI_BATCH_FLOAT ? 4 : 1);
            for (int round = 0; round < 8; round++) {
                ki_loader_settings s = random_settings();
                s.format = (ki_batch_format)format;
                s.transform.crop = crops[k];
                if (k == 3) add_effects(&s.transform);
                if (crops[k] == KITH_CROP_MULTISCALE) s.transform.scale[0] = 0.8, s.transform.scale[1] = 1.8;
                s.n_workers = 1 + round % 4 * 2;
                s.n_ahead = 1 + round % 3;
                s.cache_bytes = round < 3 ? 0 : round < 5 ? 40000 : 1 << 20;
                ki_loader *loader = make_loader(set, &s, NULL);
                const uint64_t hash = hash_batches(loader, N_BATCHES, item_bytes, NULL);
                ki_loader_free(loader);
                if (round == 0) first = hash;
                if (hash != first)
                    fail_msg("%d workers, cache %d: other batches", (int)s.n_workers, (int)s.cache_bytes);
            }
        }
    }
    kith_dataset_free(set);
}

/* Cut and mirrored by hand, whole images are the crops the loader would have cut. */
static void test_whole_images(void **state) {
    (void)state;
    enum { WHOLE = 32 };
    kith_dataset *set = open_images(make_images());
    ki_loader_settings s = random_settings();
    for (int channels = 1; channels <= 3; channels += 2) {
        kith_error err = {0};
        s.transform.channels = channels;
        s.format = KI_BATCH_BYTES;
        ki_loader *crops = make_loader(set, &s, NULL);
        s.format = KI_BATCH_WHOLE;
        ki_loader *whole = make_loader(set, &s, NULL);
        int n_mirrored = 0;
        for (int b = 0; b < N_BATCHES; b++) {
            ki_loader_batch x, y;
            assert_ok(ki_loader_next(crops, &x, &err), &err);
            assert_ok(ki_loader_next(whole, &y, &err), &err);
            assert_null(x.window);
            assert_int_equal(x.n, y.n);
            for (int64_t i = 0; i < x.n; i++) {
                const uint8_t *crop = (const uint8_t *)x.data + i * CROP * CROP * channels;
                const uint8_t *image = (const uint8_t *)y.data + i * WHOLE * WHOLE * channels;
                const int32_t *w = y.window + 3 * i;
                n_mirrored += w[2];
                for (int at = 0; at < CROP * CROP * channels; at++) {
                    const int c = at % channels, h = at / channels % CROP, v = at / channels / CROP;
                    const int from_x = w[0] + (w[2] ? CROP - 1 - h : h), from_y = w[1] + v;
                    assert_int_equal(crop[at], image[(from_y * WHOLE + from_x) * channels + c]);
                }
            }
        }
        assert_in_range(n_mirrored, 12 * N_BATCHES / 4, 12 * N_BATCHES * 3 / 4);
        ki_loader_free(crops);
        ki_loader_free(whole);
    }
    s.transform.resize = KITH_RESIZE_SHORTER;
    kith_error err = {0};
    const ki_sampler_settings batches = balanced();
    ki_loader *loader = NULL;
    assert_int_equal(ki_loader_new(set, make_sampler(set, &batches), 12, &s, &loader, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "no common size"));
    kith_dataset_free(set);
}

static void test_epochs_differ(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    ki_loader_settings s = random_settings();
    ki_loader *loader = make_loader(set, &s, NULL);
    const size_t item_bytes = CROP * CROP * 3 * 4;
    const uint64_t one = hash_batches(loader, 9, item_bytes, NULL),
                   two = hash_batches(loader, 9, item_bytes, NULL);
    assert_true(one != two);
    ki_loader_free(loader);
    s.seed = 6;
    loader = make_loader(set, &s, NULL);
    assert_true(hash_batches(loader, 9, item_bytes, NULL) != one);
    ki_loader_free(loader);
    kith_dataset_free(set);
}

/* Stopped behind any batch and begun again from its state, the rest is the same. */
/* Several views of an image are cut from it each by its own random numbers. */
static void test_views_differ(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    const ki_loader_settings settings = random_settings();
    ki_sampler_settings batches = balanced();
    ki_loader *loader = NULL;
    ki_loader_batch batch;
    kith_error err = {0};
    batches.images = 1;
    batches.views = 3;
    ki_sampler *sampler = make_sampler(set, &batches);
    assert_ok(ki_loader_new(set, sampler, ki_sampler_batch_size(&batches), &settings, &loader, &err), &err);
    assert_ok(ki_loader_next(loader, &batch, &err), &err);
    assert_int_equal(batch.n, 12);
    const size_t n = 3 * CROP * CROP;
    const float *x = batch.data;
    int n_same = 0;
    for (int i = 0; i < 12; i++) {
        assert_int_equal(batch.item[i], batch.item[i / 3 * 3]);
        assert_int_equal(batch.label[i], batch.label[i / 3 * 3]);
        for (int j = i / 3 * 3; j < i; j++)
            n_same += memcmp(x + (size_t)i * n, x + (size_t)j * n, n * sizeof *x) == 0;
    }
    if (n_same > 2) fail_msg("%d of 12 pairs of views are the same", n_same); /* 162 views are possible */
    ki_loader_free(loader);
    kith_dataset_free(set);
}

static void test_resume(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    const ki_loader_settings s = random_settings();
    const size_t item_bytes = CROP * CROP * 3 * 4;
    for (int cut = 1; cut < N_BATCHES; cut += 4) {
        ki_loader *loader = make_loader(set, &s, NULL);
        ki_sampler_state after;
        hash_batches(loader, cut, item_bytes, &after);
        const uint64_t want = hash_batches(loader, 10, item_bytes, NULL);
        ki_loader_free(loader);
        loader = make_loader(set, &s, &after);
        assert_true(hash_batches(loader, 10, item_bytes, NULL) == want);
        ki_loader_free(loader);
    }
    kith_dataset_free(set);
}

static void test_second_epoch_does_not_decode(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    ki_loader_settings s = random_settings();
    s.cache_bytes = 1 << 20;
    ki_loader *loader = make_loader(set, &s, NULL);
    hash_batches(loader, 15, CROP * CROP * 3 * 4, NULL);
    const int64_t n_decoded = ki_loader_stats_get(loader).n_decoded;
    hash_batches(loader, 30, CROP * CROP * 3 * 4, NULL);
    const ki_loader_stats stats = ki_loader_stats_get(loader);
    assert_int_equal(stats.n_decoded, n_decoded);
    assert_in_range(n_decoded, 84, 90); /* two threads may decode the same file at once */
    assert_true(stats.n_from_cache > 30 * 12);
    ki_loader_free(loader);
    kith_dataset_free(set);
}

/* All memory of the loader: buffers, scratch and at most the budget. */
static void test_budget(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    static const size_t budgets[] = {0, 100, 10000, 100000, 10000000};
    for (size_t i = 0; i < N_ROWS(budgets); i++) {
        ki_loader_settings s = random_settings();
        s.cache_bytes = budgets[i];
        ki_loader *loader = make_loader(set, &s, NULL);
        kith_memory_stats at_start, later;
        hash_batches(loader, 1, CROP * CROP * 3 * 4, NULL);
        kith_memory_stats_get(&at_start);
        hash_batches(loader, 40, CROP * CROP * 3 * 4, NULL);
        kith_memory_stats_get(&later);
        const size_t used = ki_loader_stats_get(loader).cache_bytes;
        if (used > budgets[i]) fail_msg("%zu bytes used of %zu", used, budgets[i]);
        if (budgets[i] == 10000000) assert_true(used > 84 * 32 * 32 * 3);
        /* scratch may still grow to its final size after the first batch */
        assert_true(later.live_bytes < at_start.live_bytes + budgets[i] + 100000);
        ki_loader_free(loader);
    }
    kith_dataset_free(set);
}

/* A cache filled from many threads at once stays within its budget and keeps what it took. */
typedef struct filling {
    ki_cache *cache;
    int first;
} filling;

static void *fill_cache(void *context) {
    filling *f = context;
    ki_image image = {0};
    kith_error err = {0};
    if (ki_image_shape(&image, 16, 16, 3, &err) != KITH_OK) return NULL;
    for (int i = 0; i < 200; i++) {
        const int item = (f->first + i * 7) % 100;
        memset(image.data, item, 16 * 16 * 3);
        ki_cache_put(f->cache, item, &image);
        ki_image kept;
        if (ki_cache_get(f->cache, item, &kept) && (kept.data[0] != item || kept.data[767] != item))
            f->first = -1;
    }
    ki_image_release(&image);
    return NULL;
}

static void test_cache_threads(void **state) {
    (void)state;
    kith_error err = {0};
    ki_cache *cache = NULL;
    assert_ok(ki_cache_new(100, 50000, NULL, &cache, &err), &err);
    pthread_t threads[4];
    filling work[4];
    for (int i = 0; i < 4; i++) {
        work[i] = (filling){cache, i * 25};
        assert_int_equal(pthread_create(&threads[i], NULL, fill_cache, &work[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(work[i].first >= 0);
    }
    assert_true(ki_cache_bytes(cache) <= 50000);
    assert_true(ki_cache_count(cache) > 40 && ki_cache_count(cache) < 60);
    ki_cache_free(cache);
}

static const char *make_damaged(void) {
    static char root[4096];
    if (root[0]) return root;
    make_images();
    snprintf(root, sizeof root, "%s", in_folder("damaged"));
    char output[256];
    assert_int_equal(testing_run(output, sizeof output, "cp -r %s %s", make_images(), root), 0);
    put_text(in_folder("damaged/c03/2.png"), "no image");
    put_image(in_folder("damaged/c03/3.png"), "bad_checksum.png");
    put_image(in_folder("damaged/c07/6.png"), "bad_bomb.png");
    return root;
}

static void test_bad_images_are_replaced(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_damaged());
    uint64_t first = 0;
    for (int workers = 1; workers <= 4; workers++) {
        ki_loader_settings s = random_settings();
        s.n_workers = workers;
        s.cache_bytes = workers == 3 ? 0 : 1 << 20;
        ki_loader *loader = make_loader(set, &s, NULL);
        const uint64_t hash = hash_batches(loader, N_BATCHES, CROP * CROP * 3 * 4, NULL);
        if (workers == 1) first = hash;
        assert_true(hash == first);
        assert_int_equal(ki_loader_n_bad(loader), 3);
        for (int64_t i = 0; i < 3; i++) assert_non_null(strstr(ki_loader_bad(loader, i), ".png: "));
        assert_null(ki_loader_bad(loader, 3));
        ki_loader_free(loader);
    }
    kith_dataset_free(set);
}

static void test_too_many_bad_images(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_damaged());
    ki_loader_settings s = random_settings();
    s.most_bad = 2;
    ki_loader *loader = make_loader(set, &s, NULL);
    kith_error err = {0};
    kith_status status = KITH_OK;
    ki_loader_batch batch;
    for (int b = 0; b < 12 && status == KITH_OK; b++) status = ki_loader_next(loader, &batch, &err);
    assert_int_equal(status, KITH_EFORMAT);
    assert_non_null(
        strstr(err.message, "images that cannot be read: 3, more than the 2 allowed; the last is "));
    assert_int_equal(ki_loader_next(loader, &batch, &err), KITH_EFORMAT); /* and it stays so */
    ki_loader_free(loader);
    kith_dataset_free(set);
}

/* Nothing of its class can replace an image: it is said which class, and what to do. */
static void test_a_class_without_images(void **state) {
    (void)state;
    char output[256];
    assert_int_equal(testing_run(output, sizeof output, "cp -r %s %s", make_images(), in_folder("empty")), 0);
    for (int i = 0; i < PER_CLASS; i++) put_text(in_folder("empty/c05/%d.png", i), "no image");
    kith_dataset *set = open_images(in_folder("empty"));
    const ki_loader_settings s = random_settings(); /* any number may be bad */
    ki_loader *loader = make_loader(set, &s, NULL);
    kith_error err = {0};
    kith_status status = KITH_OK;
    ki_loader_batch batch;
    for (int b = 0; b < 100 && status == KITH_OK; b++) status = ki_loader_next(loader, &batch, &err);
    assert_int_equal(status, KITH_EFORMAT);
    assert_string_equal(err.message, "no image of the class 'c05' can be read");
    assert_non_null(strstr(err.hint, "--doctor -o"));
    ki_loader_free(loader);
    kith_dataset_free(set);
}

static void test_stop_at_any_moment(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    for (int i = 0; i < 60; i++) {
        ki_loader_settings s = random_settings();
        s.n_workers = 1 + i % 5;
        s.cache_bytes = i & 1 ? 1 << 20 : 0;
        ki_loader *loader = make_loader(set, &s, NULL);
        if (i % 3) hash_batches(loader, i % 7, CROP * CROP * 3 * 4, NULL);
        if (i % 4 == 0) usleep((useconds_t)(i * 50));
        ki_loader_free(loader);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    kith_dataset_free(set);
}

static void test_no_memory(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    const ki_sampler_settings batches = balanced();
    bool has_failed = true;
    int64_t n = 0;
    for (; has_failed && n < 200; n++) {
        kith_memory_stats before, after;
        kith_memory_stats_get(&before);
        ki_loader_settings s = random_settings();
        s.n_workers = 1;
        s.n_ahead = 1;
        ki_sampler *sampler = make_sampler(set, &batches);
        ki_loader *loader = NULL;
        kith_error err = {0};
        ki_loader_batch batch;
        ki_alloc_fail_after(n);
        kith_status status = ki_loader_new(set, sampler, 12, &s, &loader, &err);
        if (status == KITH_OK) status = ki_loader_next(loader, &batch, &err);
        ki_loader_free(loader);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        /* a failure while the batch after this one was made is no failure of this one */
        if (!has_failed)
            assert_int_equal(status, KITH_OK);
        else
            assert_true(status == KITH_ENOMEM || status == KITH_OK);
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
    assert_false(has_failed);
    assert_true(n > 15);
    kith_dataset_free(set);
}

/* ---- the public reader ---- */

static kith_transform centre(void) {
    KITH_OPTIONS(kith_transform, t);
    t.resize_to = 32;
    t.crop_to = CROP;
    return t;
}

static void test_reader_of_folders(void **state) {
    (void)state;
    const kith_transform t = centre();
    const char *paths[2] = {NULL, NULL};
    char one[4200];
    snprintf(one, sizeof one, "%s/c11/0.png", make_damaged());
    paths[0] = make_damaged();
    paths[1] = one;
    kith_error err = {0};
    kith_image_reader *reader = NULL;
    const kith_image_reader_options s = {
        .size = sizeof(kith_image_reader_options), .batch = 10, .n_workers = 3, .most_bad = -1};
    assert_ok(kith_image_reader_new(paths, 2, &t, &s, &reader, &err), &err);
    assert_int_equal(kith_image_reader_count(reader), 85);
    int64_t n = 0, n_tried = 0;
    char last[4200] = "";
    for (;;) {
        kith_image_batch batch;
        assert_ok(kith_image_reader_next(reader, &batch, &err), &err);
        if (batch.n == 0) break;
        for (int64_t i = 0; i < batch.n; i++) {
            const bool is_last = n + i == 81; /* the file named on its own comes last */
            if (!is_last)
                assert_true(strcmp(last, batch.path[i]) < 0);
            else
                assert_string_equal(batch.path[i], one);
            snprintf(last, sizeof last, "%s", batch.path[i]);
            /* the class is the folder below the one that was named */
            assert_int_equal(kith_image_reader_label(reader, i) < 0, is_last);
        }
        n += batch.n;
        assert_true(batch.n_tried > n_tried);
        n_tried = batch.n_tried;
    }
    assert_int_equal(n, 82);
    assert_int_equal(n_tried, 85);
    assert_int_equal(kith_image_reader_n_bad(reader), 3);
    assert_non_null(kith_image_reader_bad(reader, 2));
    kith_image_reader_free(reader);
}

/* Pixels of the reader are those of decoding and transforming by hand, in the list's order. */
static void test_reader_of_data_set(void **state) {
    (void)state;
    kith_dataset *set = open_images(make_images());
    const kith_transform t = centre();
    kith_error err = {0};
    kith_image_reader *reader = NULL;
    assert_ok(kith_image_reader_dataset(set, KITH_SPLIT_TRAIN, &t, NULL, &reader, &err), &err);
    ki_image image = {0}, base = {0};
    ki_bytes bytes = {0};
    ki_transform_scratch scratch = {0};
    float item[3 * CROP * CROP];
    int64_t at = 0;
    for (;;) {
        kith_image_batch batch;
        assert_ok(kith_image_reader_next(reader, &batch, &err), &err);
        if (batch.n == 0) break;
        for (int64_t i = 0; i < batch.n; i++, at++) {
            const ki_decode how = {0};
            ki_rng rng = ki_rng_at(0, KI_RNG_AUGMENT, 0, 0);
            assert_ok(ki_dataset_pixels(set, at, &how, &bytes, &image, &err), &err);
            assert_ok(ki_transform_base(&t, NULL, &image, &scratch, &base, &err), &err);
            const ki_draw draw = ki_transform_draw(&t, base.w, base.h, &rng);
            assert_ok(ki_transform_float(&t, &base, &draw, &scratch, item, &err), &err);
            assert_memory_equal(batch.data + i * 3 * CROP * CROP, item, sizeof item);
            assert_int_equal(kith_image_reader_label(reader, i), at / PER_CLASS);
        }
    }
    assert_int_equal(at, 84);
    ki_image_release(&image);
    ki_image_release(&base);
    ki_bytes_release(&bytes);
    ki_transform_scratch_release(&scratch);
    kith_image_reader_free(reader);
    kith_dataset_free(set);
}

static void test_reader_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    kith_image_reader *reader = NULL;
    kith_transform t = centre();
    const char *absent[] = {"/nowhere/x.jpg"};
    assert_int_equal(kith_image_reader_new(absent, 1, &t, NULL, &reader, &err), KITH_EIO);
    assert_string_equal(err.message, "/nowhere/x.jpg: there is no such file or folder");
    make_folders(in_folder("bare/"));
    const char *bare[] = {in_folder("bare")};
    assert_int_equal(kith_image_reader_new(bare, 1, &t, NULL, &reader, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "holds no images"));
    t.mirror = true;
    const char *good[] = {make_images()};
    assert_int_equal(kith_image_reader_new(good, 1, &t, NULL, &reader, &err), KITH_EINVAL);
    const kith_image_reader_options strict = {.size = sizeof(kith_image_reader_options), .most_bad = 0};
    const char *damaged[] = {make_damaged()};
    t.mirror = false;
    assert_ok(kith_image_reader_new(damaged, 1, &t, &strict, &reader, &err), &err);
    kith_image_batch batch;
    kith_status status = KITH_OK;
    for (int i = 0; i < 10 && status == KITH_OK; i++) status = kith_image_reader_next(reader, &batch, &err);
    assert_int_equal(status, KITH_EFORMAT);
    kith_image_reader_free(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_whatever_the_threads),
        cmocka_unit_test(test_whole_images),
        cmocka_unit_test(test_epochs_differ),
        cmocka_unit_test(test_views_differ),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_second_epoch_does_not_decode),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_cache_threads),
        cmocka_unit_test(test_bad_images_are_replaced),
        cmocka_unit_test(test_too_many_bad_images),
        cmocka_unit_test(test_a_class_without_images),
        cmocka_unit_test(test_stop_at_any_moment),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_reader_of_folders),
        cmocka_unit_test(test_reader_of_data_set),
        cmocka_unit_test(test_reader_refusals),
    };
    return cmocka_run_group_tests_name("data/loader", tests, NULL, NULL);
}
