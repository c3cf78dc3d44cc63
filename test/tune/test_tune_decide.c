/* What decides: differences over classes, whether one is more than chance, and which photos a fold or a part of them has. The scores are lines of
 * tried.jsonl written here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "support/testing.h"
#include "tune/tune.h"

enum { N_CLASSES = 12, N_PHOTOS = 4 };

/* A tuning with scores of the pretrained model (way 0) and of another, class by class, in all folds of the second partition. */
static void open_tune(ki_tune *t, const kith_tune_options *options, const double gain_recall[N_CLASSES],
                      const double gain_precision[N_CLASSES]) {
    char text[65536] = "", path[4096];
    kith_error err = {0};
    *t = (ki_tune){.options = options, .file = -1, .lock = -1};
    snprintf(t->folder, sizeof t->folder, "%s", testing_folder());
    snprintf(path, sizeof path, "%s/list.csv", testing_folder());
    strcat(text, "path,label,split\n");
    for (int i = 0; i < N_CLASSES * N_PHOTOS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d.png,class%02d,train\n", i,
                 i / N_PHOTOS);
    testing_write(path, text);
    for (int i = 0; i < N_CLASSES * N_PHOTOS; i++) { /* never read */
        char photo[4096];
        snprintf(photo, sizeof photo, "%s/%d.png", testing_folder(), i);
        testing_write(photo, "");
    }
    assert_ok(kith_dataset_open("csv", path, &t->set, &err), &err);
    t->n_train_classes = N_CLASSES;
    t->learn.n = N_CLASSES * N_PHOTOS;
    assert_ok(ki_alloc_or(&t->learn.item, (size_t)t->learn.n, sizeof *t->learn.item, "items", &err), &err);
    assert_ok(ki_zalloc_or(&t->is_sound, (size_t)t->learn.n, sizeof *t->is_sound, "items", &err), &err);
    for (int64_t i = 0; i < t->learn.n; i++) t->learn.item[i] = i, t->is_sound[i] = true;
    assert_ok(ki_tune_make_folds(t, 0, 3, &t->folds[0], &err), &err);
    assert_ok(ki_tune_make_folds(t, 1, 4, &t->folds[1], &err), &err);
    t->n_ways = 2;
    snprintf(t->way[0].name, sizeof t->way[0].name, "as it is");
    snprintf(t->way[1].name, sizeof t->way[1].name, "other");
    t->way[1].complexity = 1;
    snprintf(path, sizeof path, "%s/tried.jsonl", testing_folder());
    text[0] = '\0';
    for (int w = 0; w < 2 && gain_recall; w++) {
        for (int c = 0; c < N_CLASSES; c++) {
            const int fold = t->folds[1].fold_of[c * N_PHOTOS];
            char name[256];
            const ki_tune_trial trial = {
                .way = &t->way[w], .folds = &t->folds[1], .fold = fold, .part = {.share = 1}};
            /* Two queries of each class; a line each, and only the first line of a name counts, so a fold is one line. */
            if (c > 0) {
                bool is_there = false;
                for (int b = 0; b < c; b++) is_there |= t->folds[1].fold_of[b * N_PHOTOS] == fold;
                if (is_there) continue;
            }
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "{\"trial\": \"%s\", \"mark\": 0, \"classes\": [",
                     ki_tune_trial_name(&trial, name, sizeof name));
            const char *comma = "";
            for (int d = 0; d < N_CLASSES; d++) {
                if (t->folds[1].fold_of[d * N_PHOTOS] != fold) continue;
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s[%d, 10, %g, %g]", comma, d,
                         10 * (0.5 + w * gain_recall[d]), 10 * (0.4 + w * gain_precision[d]));
                comma = ", ";
            }
            strcat(text, "], \"seconds\": 1}\n");
        }
    }
    testing_write(path, text);
    assert_ok(ki_tune_state_open(t, &err), &err);
}

static void close_tune(ki_tune *t) {
    ki_tune_close(t);
    ki_tune_state_close(t);
}

static bool is_better(const double recall[N_CLASSES], const double precision[N_CLASSES],
                      ki_tune_difference *ret) {
    static const kith_tune_options options = {.size = sizeof options};
    ki_tune t;
    open_tune(&t, &options, recall, precision);
    const bool better = ki_tune_is_better(&t, 1, 15, ret);
    close_tune(&t);
    return better;
}

static void fill(double values[N_CLASSES], double middle, double spread) {
    for (int c = 0; c < N_CLASSES; c++) values[c] = middle + (c % 2 ? spread : -spread);
}

static void test_more_than_chance(void **state) {
    (void)state;
    static const struct {
        double recall, precision, spread;
        bool is_better;
    } rows[] = {
        {0.05, 0.05, 0.02, true},   /* clearly */
        {0.05, 0.05, 0.2, false},   /* the same, between classes that vary a lot */
        {-0.05, 0.2, 0.02, false},  /* a better order, and the first hit is worse */
        {-0.005, 0.1, 0.02, true},  /* a better order, and a fall of R@1 that says nothing */
        {0, 0.1, 0.01, true},       /* a better order, and the first hit is as good */
        {-0.05, -0.05, 0.02, false} /* worse */
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double recall[N_CLASSES], precision[N_CLASSES];
        ki_tune_difference d = {0};
        fill(recall, rows[i].recall, rows[i].spread);
        fill(precision, rows[i].precision, rows[i].spread);
        const bool better = is_better(recall, precision, &d);
        assert_int_equal(d.n, N_CLASSES);
        if (fabs(d.mean - (rows[i].recall + rows[i].precision) / 2) > 1e-9)
            fail_msg("row %zu: mean %g", i, d.mean);
        const double error = rows[i].spread * sqrt(12.0 / 11) / sqrt(12);
        if (fabs(d.error - error) > 1e-9) fail_msg("row %zu: error %g, wanted %g", i, d.error, error);
        if (fabs(d.recall_error - error) > 1e-9)
            fail_msg("row %zu: error of R@1 %g, wanted %g", i, d.recall_error, error);
        if (better != rows[i].is_better) fail_msg("row %zu: %d", i, better);
    }
}

static void test_folds_hold_whole_classes(void **state) {
    (void)state;
    static const kith_tune_options options = {.size = sizeof options};
    ki_tune t;
    kith_error err = {0};
    open_tune(&t, &options, NULL, NULL);
    int n[4] = {0};
    for (int i = 0; i < N_CLASSES * N_PHOTOS; i++) {
        const int fold = t.folds[1].fold_of[i];
        assert_in_range(fold, 0, 3);
        assert_int_equal(fold, t.folds[1].fold_of[i / N_PHOTOS * N_PHOTOS]);
        n[fold]++;
    }
    for (int f = 0; f < 4; f++) assert_int_equal(n[f], N_CLASSES / 4 * N_PHOTOS);
    ki_items train = {0}, held = {0};
    assert_ok(ki_tune_select(&t, &t.folds[1], 2, false, NULL, &train, &err), &err);
    assert_ok(ki_tune_select(&t, &t.folds[1], 2, true, NULL, &held, &err), &err);
    assert_int_equal(train.n, 9 * N_PHOTOS);
    assert_int_equal(held.n, 3 * N_PHOTOS);
    for (int64_t i = 0; i < held.n; i++) {
        for (int64_t j = 0; j < train.n; j++) assert_int_not_equal(held.item[i], train.item[j]);
    }
    ki_free(train.item);
    ki_free(held.item);
    close_tune(&t);
}

static bool has(const ki_items *items, int64_t item) {
    for (int64_t i = 0; i < items->n; i++) {
        if (items->item[i] == item) return true;
    }
    return false;
}

/* A part has its number of classes or photos, and the quarter is in the half. */
static void test_parts(void **state) {
    (void)state;
    static const kith_tune_options options = {.size = sizeof options};
    static const struct {
        ki_tune_part part;
        int n;
    } rows[] = {{{0.25, false}, 3 * N_PHOTOS},
                {{0.5, false}, 5 * N_PHOTOS},
                {{1, false}, 9 * N_PHOTOS},
                {{0.5, true}, 9 * 2},
                {{0.1, true}, 9 * 2}};
    ki_tune t;
    kith_error err = {0};
    ki_items before = {0};
    open_tune(&t, &options, NULL, NULL);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_items part = {0};
        assert_ok(ki_tune_select(&t, &t.folds[1], 0, false, &rows[i].part, &part, &err), &err);
        if (part.n != rows[i].n) fail_msg("row %zu: %d photos, wanted %d", i, (int)part.n, rows[i].n);
        for (int64_t k = 0; k < before.n && !rows[i].part.of_photos; k++)
            assert_true(has(&part, before.item[k]));
        ki_free(before.item);
        before = part;
    }
    ki_free(before.item);
    close_tune(&t);
}

/* Without scores of parts it says why there are none. */
static void test_no_advice(void **state) {
    (void)state;
    static const kith_tune_options options = {.size = sizeof options};
    static const struct {
        const char *objective, *advice;
        int n_classes;
    } rows[] = {{NULL, "learns nothing", N_CLASSES},
                {"{name: triplet}", "there was no time", N_CLASSES},
                {"{name: triplet}", "there are too few classes", 1}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_tune t;
        kith_error err = {0};
        open_tune(&t, &options, NULL, NULL);
        t.best = 1;
        t.is_over = true;
        t.way[1].objective = rows[i].objective;
        t.learn.n = (int64_t)rows[i].n_classes * N_PHOTOS;
        assert_ok(ki_tune_curve(&t, &err), &err);
        if (!strstr(t.advice, rows[i].advice)) fail_msg("row %zu: %s", i, t.advice);
        close_tune(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_chance),
                                       cmocka_unit_test(test_folds_hold_whole_classes),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_no_advice)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
