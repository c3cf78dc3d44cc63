/* Properties of the samplers, over thousands of seeds and random class sizes. */
#include "data/sampler/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/log.h"
#include "support/testing.h"

enum { MOST_ITEMS = 4000, MOST_CLASSES = 200 };

typedef struct world {
    int64_t item[MOST_ITEMS];
    int32_t label[MOST_ITEMS];
    int64_t n;
    int n_classes;
    int64_t size[MOST_CLASSES];
} world;

/* Classes of 1 to `most` images; items are numbered 1000 + i, labels are spread out. */
static void make_world(world *w, uint64_t seed, int n_classes, int most) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 0, 0);
    *w = (world){.n_classes = n_classes};
    for (int c = 0; c < n_classes; c++) {
        w->size[c] = 1 + ki_rng_below(&rng, (uint32_t)most);
        for (int64_t i = 0; i < w->size[c]; i++) {
            w->item[w->n] = 1000 + w->n;
            w->label[w->n++] = 3 * c + 1;
        }
    }
}

static int class_of(const world *w, int64_t item) { return (w->label[item - 1000] - 1) / 3; }

static ki_sampler_settings settings_of(int row) {
    ki_sampler_settings s;
    ki_options_default(ki_sampler_options, &s);
    s.sampler = row;
    return s;
}

static ki_sampler *new_sampler(const ki_sampler_settings *s, uint64_t seed, const world *w) {
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    assert_ok(ki_sampler_new(s, seed, w->item, w->label, w->n, &sampler, &err), &err);
    return sampler;
}

static ki_sampler_batch next(ki_sampler *sampler) {
    ki_sampler_batch b;
    kith_error err = {0};
    assert_ok(ki_sampler_next(sampler, &b, &err), &err);
    return b;
}

/* What balanced promises about one epoch; returns its batches. */
static int64_t check_epoch(ki_sampler *sampler, const world *w, const ki_sampler_settings *s,
                           uint32_t epoch) {
    static int times[MOST_ITEMS];
    memset(times, 0, sizeof times);
    int drawn[MOST_CLASSES] = {0};
    int64_t n_batches = 0;
    kith_error err = {0};
    ki_sampler_batch b = next(sampler); /* moves on to the epoch */
    assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
    for (int64_t number = 0; number < n_batches; number++) {
        if (number > 0) b = next(sampler);
        assert_int_equal(b.epoch, epoch);
        assert_int_equal(b.number, number);
        assert_int_equal(b.n, s->classes * s->images);
        assert_int_equal(b.first, number * b.n);
        bool in_batch[MOST_CLASSES] = {false};
        for (int64_t g = 0; g < s->classes; g++) {
            const int64_t *group = b.item + g * s->images;
            const int c = class_of(w, group[0]);
            if (in_batch[c]) fail_msg("class %d twice in batch %d", c, (int)number);
            in_batch[c] = true;
            for (int64_t j = 0; j < s->images; j++) {
                assert_int_equal(class_of(w, group[j]), c);
                /* nothing a second time before everything once, and so on round by round */
                if (times[group[j] - 1000] != drawn[c] / w->size[c])
                    fail_msg("item %d of class %d for the %dth time as draw %d of %d images", (int)group[j],
                             c, times[group[j] - 1000] + 1, drawn[c], (int)w->size[c]);
                times[group[j] - 1000]++;
                drawn[c]++;
                for (int64_t k = 0; k < j && w->size[c] >= s->images; k++) assert_true(group[k] != group[j]);
            }
        }
    }
    for (int64_t i = 0; i < w->n; i++) {
        const bool takes_part = s->small == KI_SMALL_REPEAT || w->size[class_of(w, w->item[i])] >= s->images;
        if (takes_part != (times[i] > 0)) fail_msg("item %d came %d times", (int)i, times[i]);
    }
    return n_batches;
}

static void test_balanced_over_seeds(void **state) {
    (void)state;
    static world w;
    int64_t n_batches = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 1, 0);
        make_world(&w, seed, 2 + (int)ki_rng_below(&rng, 20), 1 + (int)ki_rng_below(&rng, 30));
        ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced);
        s.images = 1 + ki_rng_below(&rng, 6);
        s.small = (int)ki_rng_below(&rng, 2);
        int64_t n_able = 0;
        for (int c = 0; c < w.n_classes; c++) n_able += s.small == KI_SMALL_REPEAT || w.size[c] >= s.images;
        if (n_able == 0) continue;
        s.classes = 1 + ki_rng_below(&rng, (uint32_t)n_able);
        ki_sampler *sampler = new_sampler(&s, seed, &w);
        for (uint32_t epoch = 0; epoch < 2; epoch++) n_batches += check_epoch(sampler, &w, &s, epoch);
        ki_sampler_free(sampler);
    }
    print_message("%d batches\n", (int)n_batches);
    assert_true(n_batches > 50000);
}

/* One class with nearly all images: the epoch is as long as that class needs. */
static void test_balanced_with_a_giant(void **state) {
    (void)state;
    static world w;
    make_world(&w, 1, 12, 4);
    for (int i = 0; i < 500; i++) {
        w.item[w.n] = 1000 + w.n;
        w.label[w.n++] = 1;
        w.size[0]++;
    }
    /* items of a class need not lie together */
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced);
    s.classes = 6;
    s.images = 3;
    ki_sampler *sampler = new_sampler(&s, 4, &w);
    assert_int_equal(check_epoch(sampler, &w, &s, 0), (w.size[0] + 2) / 3);
    ki_sampler_free(sampler);
}

/* Each pair of classes should meet equally often: 20 of 40 classes per batch, 10 groups a class. */
static void test_balanced_mixes(void **state) {
    (void)state;
    static world w;
    w = (world){.n_classes = 40};
    for (int i = 0; i < 800; i++) {
        w.item[i] = 1000 + i;
        w.label[i] = 3 * (i / 20) + 1;
    }
    w.n = 800;
    for (int c = 0; c < 40; c++) w.size[c] = 20;
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced);
    s.classes = 20;
    s.images = 2;
    ki_sampler *sampler = new_sampler(&s, 9, &w);
    static int met[40][40];
    enum { EPOCHS = 400 };
    for (int b = 0; b < EPOCHS * 20; b++) {
        const ki_sampler_batch batch = next(sampler);
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < i; j++) {
                const int a = class_of(&w, batch.item[2 * i]), c = class_of(&w, batch.item[2 * j]);
                met[a][c]++, met[c][a]++;
            }
        }
    }
    /* 8000 batches, chance 20 * 19 / (40 * 39) each */
    const double want = 8000.0 * 20 * 19 / (40 * 39), spread = sqrt(want);
    for (int a = 0; a < 40; a++) {
        for (int c = 0; c < a; c++) {
            if (fabs(met[a][c] - want) > 5 * spread)
                fail_msg("classes %d and %d met %d times; wanted about %g", a, c, met[a][c], want);
        }
    }
    ki_sampler_free(sampler);
}

static void test_shuffled_over_seeds(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        make_world(&w, seed, 5, 40);
        ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_shuffled);
        s.size = 1 + (int64_t)(seed % 7);
        s.partial = seed & 1;
        if (w.n < s.size && !s.partial) continue;
        ki_sampler *sampler = new_sampler(&s, seed, &w);
        int times[200] = {0};
        int64_t n_batches = 0, n = 0;
        kith_error err = {0};
        assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
        for (int64_t b = 0; b < n_batches; b++) {
            const ki_sampler_batch batch = next(sampler);
            for (int64_t i = 0; i < batch.n; i++) assert_int_equal(times[batch.item[i] - 1000]++, 0);
            n += batch.n;
        }
        assert_int_equal(n, s.partial ? w.n : w.n / s.size * s.size);
        assert_int_equal(next(sampler).epoch, 1);
        ki_sampler_free(sampler);
    }
}

static void test_whole_classes_over_seeds(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        make_world(&w, seed, 12, 25);
        ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_whole_classes);
        s.size = 10 + (int64_t)(seed % 30);
        s.cut = seed % 3 == 0;
        ki_sampler *sampler = new_sampler(&s, seed, &w);
        int times[400] = {0};
        int64_t n_batches = 0, n = 0;
        kith_error err = {0};
        assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
        for (int64_t b = 0; b < n_batches; b++) {
            const ki_sampler_batch batch = next(sampler);
            int64_t in_batch[MOST_CLASSES] = {0};
            assert_true(batch.n >= 1 && batch.n <= s.size);
            if (s.cut && n_batches > 1) assert_int_equal(batch.n, s.size);
            for (int64_t i = 0; i < batch.n; i++) {
                assert_int_equal(times[batch.item[i] - 1000]++, 0);
                in_batch[class_of(&w, batch.item[i])]++;
            }
            for (int c = 0; c < w.n_classes && !s.cut; c++) {
                if (in_batch[c] && in_batch[c] != w.size[c] && w.size[c] <= s.size)
                    fail_msg("%d of the %d images of a class", (int)in_batch[c], (int)w.size[c]);
            }
            n += batch.n;
        }
        if (!s.cut)
            assert_int_equal(n, w.n);
        else
            assert_true(w.n - n < s.size);
        ki_sampler_free(sampler);
    }
}

/* Restored anywhere, a sampler goes on with the same batches. */
static void test_save_and_restore(void **state) {
    (void)state;
    static world w;
    make_world(&w, 3, 20, 30);
    static const int rows[] = {KI_SAMPLER_ROW_balanced, KI_SAMPLER_ROW_shuffled, KI_SAMPLER_ROW_whole_classes,
                               KI_SAMPLER_ROW_sequential};
    for (size_t r = 0; r < N_ROWS(rows); r++) {
        ki_sampler_settings s = settings_of(rows[r]);
        s.classes = 5;
        s.images = 4;
        s.size = 20;
        ki_sampler *first = new_sampler(&s, 11, &w), *second = new_sampler(&s, 11, &w);
        kith_error err = {0};
        for (int b = 0; b < 60; b++) {
            const ki_sampler_state at = ki_sampler_save(first);
            const ki_sampler_batch want = next(first);
            assert_ok(ki_sampler_restore(second, &at, &err), &err);
            const ki_sampler_batch got = next(second);
            assert_int_equal(got.n, want.n);
            assert_int_equal(got.epoch, want.epoch);
            assert_memory_equal(got.item, want.item, (size_t)want.n * sizeof *want.item);
        }
        ki_sampler_state wrong = ki_sampler_save(first);
        wrong.seed = 12;
        assert_int_equal(ki_sampler_restore(second, &wrong, &err), KITH_EINVAL);
        wrong.seed = 11;
        wrong.number = 100000;
        assert_int_equal(ki_sampler_restore(second, &wrong, &err), KITH_EINVAL);
        ki_sampler_free(first);
        ki_sampler_free(second);
    }
}

/* The same batches with every item as often as it has views, side by side; and so again after restoring. */
static void test_views(void **state) {
    (void)state;
    static world w;
    kith_error err = {0};
    static const int rows[] = {KI_SAMPLER_ROW_balanced, KI_SAMPLER_ROW_shuffled, KI_SAMPLER_ROW_whole_classes,
                               KI_SAMPLER_ROW_sequential};
    make_world(&w, 5, 30, 9);
    for (size_t r = 0; r < N_ROWS(rows); r++) {
        ki_sampler_settings s = settings_of(rows[r]);
        s.classes = 6, s.images = 2, s.size = 20;
        const int64_t once = ki_sampler_batch_size(&s);
        ki_sampler *plain = new_sampler(&s, 7, &w);
        s.views = 3;
        assert_int_equal(ki_sampler_batch_size(&s), 3 * once);
        ki_sampler *views = new_sampler(&s, 7, &w), *again = new_sampler(&s, 7, &w);
        for (int i = 0; i < 40; i++) { /* some epochs */
            const ki_sampler_state before = ki_sampler_save(views);
            const ki_sampler_batch a = next(plain), b = next(views);
            assert_ok(ki_sampler_restore(again, &before, &err), &err);
            const ki_sampler_batch c = next(again);
            assert_int_equal(b.n, 3 * a.n);
            assert_int_equal(b.epoch, a.epoch);
            assert_int_equal(b.number, a.number);
            assert_int_equal(b.first, 3 * a.first); /* a place, and random numbers, of its own for each */
            for (int64_t k = 0; k < b.n; k++) assert_int_equal(b.item[k], a.item[k / 3]);
            assert_int_equal(c.n, b.n);
            assert_memory_equal(c.item, b.item, (size_t)b.n * sizeof *b.item);
        }
        ki_sampler_free(plain);
        ki_sampler_free(views);
        ki_sampler_free(again);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static world w;
    make_world(&w, 3, 5, 1);
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced);
    assert_int_equal(ki_sampler_new(&s, 1, w.item, w.label, w.n, &sampler, &err), KITH_EINVAL);
    assert_string_equal(err.message, "batch (balanced): 64 classes per batch asked of 5");
    assert_string_equal(err.hint, "set batch.classes to at most 5");
    s.classes = 5;
    s.small = KI_SMALL_DROP;
    assert_int_equal(ki_sampler_new(&s, 1, w.item, w.label, w.n, &sampler, &err), KITH_EINVAL);
    assert_int_equal(ki_sampler_new(&s, 1, w.item, w.label, 0, &sampler, &err), KITH_EINVAL);
    s = settings_of(KI_SAMPLER_ROW_shuffled);
    assert_ok(ki_sampler_new(&s, 1, w.item, w.label, w.n, &sampler, &err), &err);
    ki_sampler_batch b;
    assert_int_equal(ki_sampler_next(sampler, &b, &err), KITH_EINVAL);
    assert_string_equal(err.message, "batch (shuffled): 5 images do not fill one batch of 100");
    ki_sampler_free(sampler);
}

static void test_no_memory(void **state) {
    (void)state;
    static world w;
    make_world(&w, 3, 20, 30);
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_balanced);
    s.classes = 5;
    bool has_failed = true;
    for (int64_t n = 0; has_failed && n < 100; n++) {
        kith_memory_stats before, after;
        kith_memory_stats_get(&before);
        ki_sampler *sampler = NULL;
        kith_error err = {0};
        ki_sampler_batch b;
        ki_alloc_fail_after(n);
        kith_status status = ki_sampler_new(&s, 1, w.item, w.label, w.n, &sampler, &err);
        if (status == KITH_OK) status = ki_sampler_next(sampler, &b, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
        ki_sampler_free(sampler);
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
    assert_false(has_failed);
}

/* How many runs of 5 neighbours the batches of an epoch touch, together; every image comes once. */
static int64_t count_runs(const world *w, const ki_sampler_settings *s) {
    bool seen[MOST_ITEMS] = {false};
    int64_t n_runs = 0, n_rising = 0, last = -1;
    ki_sampler *sampler = new_sampler(s, 1, w);
    for (int64_t left = w->n; left > 0;) {
        const ki_sampler_batch b = next(sampler);
        bool run[MOST_ITEMS] = {false};
        for (int64_t i = 0; i < b.n; i++, left--) {
            const int64_t item = b.item[i] - 1000;
            if (seen[item]) fail_msg("item %d twice", (int)item);
            seen[item] = true;
            n_rising += item > last;
            last = item;
            run[item / 5] = true;
        }
        for (int64_t k = 0; k < MOST_ITEMS; k++) n_runs += run[k];
    }
    ki_sampler_free(sampler);
    if (n_rising < w->n / 4 || n_rising > 3 * w->n / 4) fail_msg("%d of %d rise", (int)n_rising, (int)w->n);
    return n_runs;
}

/* With a buffer, batches are read from fewer places. */
static void test_shuffled_by_buffer(void **state) {
    (void)state;
    static world w;
    make_world(&w, 3, 60, 30);
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_shuffled);
    s.size = 20;
    s.partial = true;
    const int64_t n_plain = count_runs(&w, &s);
    s.buffer = 40;
    const int64_t n_near = count_runs(&w, &s);
    print_message("%d runs, and %d of plain batches\n", (int)n_near, (int)n_plain);
    assert_true(4 * n_near < 3 * n_plain);
    /* One that holds all changes nothing. */
    s.buffer = w.n;
    ki_sampler *sampler = new_sampler(&s, 1, &w);
    s.buffer = 0;
    ki_sampler *plain = new_sampler(&s, 1, &w);
    for (int k = 0; k < 5; k++) {
        const ki_sampler_batch a = next(sampler), b = next(plain);
        assert_memory_equal(a.item, b.item, (size_t)a.n * sizeof *a.item);
    }
    ki_sampler_free(sampler);
    ki_sampler_free(plain);
}

/* Batches of different classes, `images` of each; how often each class came in `n_epochs`. */
static void count_classes(const world *w, const ki_sampler_settings *s, int n_epochs, double *ret_often) {
    ki_sampler *sampler = new_sampler(s, 5, w);
    int64_t n_batches = 0, n = 0;
    kith_error err = {0};
    for (int c = 0; c < w->n_classes; c++) ret_often[c] = 0;
    for (int e = 0; e < n_epochs; e++) {
        ki_sampler_batch b = next(sampler);
        assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
        for (int64_t number = 0; number < n_batches; number++) {
            if (number > 0) b = next(sampler);
            assert_int_equal(b.n, s->classes * s->images);
            bool is_in[MOST_CLASSES] = {false};
            for (int64_t i = 0; i < b.n; i++) {
                const int c = class_of(w, b.item[i]);
                if (i % s->images == 0 && is_in[c]) fail_msg("class %d twice", c);
                if (i % s->images == 0) ret_often[c]++, n++;
                if (i % s->images && class_of(w, b.item[i - 1]) != c)
                    fail_msg("image %d of another class", (int)i);
                is_in[c] = true;
            }
        }
    }
    for (int c = 0; c < w->n_classes; c++) ret_often[c] /= (double)n;
    ki_sampler_free(sampler);
}

/* With power 1 all classes come alike often; with less, large ones more often, as their weights say. */
static void test_weighted(void **state) {
    (void)state;
    static world w;
    static double often[MOST_CLASSES];
    static const double powers[] = {1, 0.5, 0};
    make_world(&w, 7, 60, 30);
    for (size_t k = 0; k < N_ROWS(powers); k++) {
        ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_weighted);
        s.classes = 2;
        s.power = powers[k];
        double all = 0, worst = 0;
        for (int c = 0; c < w.n_classes; c++) all += pow((double)w.size[c], 1 - powers[k]);
        count_classes(&w, &s, 100, often);
        for (int c = 0; c < w.n_classes; c++) {
            const double wanted = pow((double)w.size[c], 1 - powers[k]) / all;
            worst = fmax(worst, fabs(often[c] - wanted) / sqrt(wanted));
        }
        print_message("power %g: %.4f\n", powers[k], worst);
        assert_true(worst < 0.03); /* of 22,000 draws five standard deviations */
    }
    /* All classes in every batch, though one has nearly all the weight. */
    for (int i = 0; i < 2000; i++) {
        w.item[w.n] = 1000 + w.n;
        w.label[w.n++] = 1;
        w.size[0]++;
    }
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_weighted);
    s.classes = w.n_classes;
    s.power = 0;
    count_classes(&w, &s, 1, often);
    for (int c = 0; c < w.n_classes; c++) assert_true(fabs(often[c] * w.n_classes - 1) < 1e-9);
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    s.small = KI_SMALL_DROP;
    assert_int_equal(ki_sampler_new(&s, 1, w.item, w.label, w.n, &sampler, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "batch (weighted): 60 classes per batch asked of "));
}

/* Every batch has classes of exactly `supers` super-classes, the same number of each; an epoch shows every image. */
static void check_hierarchical(const world *w, const ki_sampler_settings *s, const int32_t *supers,
                               int per_super) {
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    assert_ok(ki_sampler_new_of(s, 9, w->item, w->label, supers, w->n, &sampler, &err), &err);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        bool seen[MOST_ITEMS] = {false};
        int64_t n_batches = 0;
        ki_sampler_batch b = next(sampler);
        assert_ok(ki_sampler_n_batches(sampler, &n_batches, &err), &err);
        assert_int_equal(b.epoch, epoch);
        for (int64_t number = 0; number < n_batches; number++) {
            if (number > 0) b = next(sampler);
            assert_int_equal(b.n, s->classes * s->images);
            bool is_in[MOST_CLASSES] = {false};
            int n_of[MOST_CLASSES] = {0};
            for (int64_t i = 0; i < b.n; i++) {
                const int c = class_of(w, b.item[i]);
                seen[b.item[i] - 1000] = true;
                if (i % s->images) continue;
                if (is_in[c]) fail_msg("class %d twice", c);
                is_in[c] = true;
                n_of[supers[b.item[i] - 1000]]++;
            }
            int n_supers = 0;
            for (int c = 0; c < MOST_CLASSES; c++) {
                if (n_of[c] && n_of[c] != per_super) fail_msg("%d classes of super-class %d", n_of[c], c);
                n_supers += n_of[c] > 0;
            }
            assert_int_equal(n_supers, s->supers);
        }
        for (int64_t i = 0; i < w->n; i++) {
            if (!seen[i]) fail_msg("item %d did not come", (int)i);
        }
    }
    ki_sampler_free(sampler);
}

static void test_hierarchical(void **state) {
    (void)state;
    static world w;
    static int32_t supers[MOST_ITEMS];
    for (uint64_t seed = 0; seed < 200; seed++) {
        make_world(&w, seed, 60, 12);
        /* Super-classes of 10 classes, or one of half of them, or of 4 to 20 */
        for (int64_t i = 0; i < w.n; i++) {
            const int c = class_of(&w, w.item[i]);
            supers[i] = seed % 2 ? c / 10 : c < 30 ? 7 : c < 50 ? 3 : c < 54 ? 1 : 2;
        }
        ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_hierarchical);
        s.supers = 1 + (int64_t)seed % 3;
        s.classes = 4 * s.supers;
        check_hierarchical(&w, &s, supers, 4);
    }
    /* Those with too few classes are joined: 5 and 1, and the last three go to the one before. */
    make_world(&w, 1, 20, 5);
    for (int64_t i = 0; i < w.n; i++) {
        const int c = class_of(&w, w.item[i]);
        supers[i] = c < 5 ? 0 : c < 6 ? 1 : c < 17 ? 2 : 3;
    }
    ki_sampler_settings s = settings_of(KI_SAMPLER_ROW_hierarchical);
    ki_sampler *sampler = NULL;
    kith_error err = {0};
    s.classes = 12;
    assert_ok(ki_sampler_new_of(&s, 1, w.item, w.label, supers, w.n, &sampler, &err), &err);
    assert_int_equal(sampler->n_supers, 2);
    assert_int_equal(sampler->super[0]->n_classes, 6);
    assert_int_equal(sampler->super[1]->n_classes, 14);
    ki_sampler_free(sampler);
    static const struct {
        int64_t classes, supers;
        bool has_supers;
        const char *text;
    } bad[] = {
        {12, 2, false, "batch (hierarchical): the data has no super-classes"},
        {13, 2, true, "13 classes from 2 super-classes per batch; wanted as many from each"},
        {30, 2, true, "2 super-classes per batch asked of 1 that have 15 classes"},
        {60, 2, true, "2 super-classes per batch asked of 0 that have 30 classes"},
    };
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        s.classes = bad[i].classes;
        s.supers = bad[i].supers;
        assert_int_equal(
            ki_sampler_new_of(&s, 1, w.item, w.label, bad[i].has_supers ? supers : NULL, w.n, &sampler, &err),
            KITH_EINVAL);
        if (!strstr(err.message, bad[i].text)) fail_msg("'%s'; wanted '%s'", err.message, bad[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffled_by_buffer),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_balanced_over_seeds),
        cmocka_unit_test(test_balanced_with_a_giant),
        cmocka_unit_test(test_balanced_mixes),
        cmocka_unit_test(test_shuffled_over_seeds),
        cmocka_unit_test(test_whole_classes_over_seeds),
        cmocka_unit_test(test_save_and_restore),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("data/sampler", tests, NULL, NULL);
}
