/* The built-in data set: the same bytes for the same seed, and too hard for raw pixels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "data/dataset/dataset.h"
#include "data/miniature.h"
#include "data/synth/glyph.h"
#include "kith/log.h"

static void write_set(const char *dir, const kith_synth_options *s) {
    kith_error err = {0};
    assert_ok(kith_synth_write(dir, s, NULL, NULL, &err), &err);
}

static char output[4096];

static void test_same_seed_same_bytes(void **state) {
    (void)state;
    KITH_OPTIONS(kith_synth_options, s);
    s.n_classes = 20;
    s.n_images = 3;
    for (int round = 0; round < 2; round++) {
        s.colour = s.background = round;
        char first[4096], second[4096], third[4096];
        snprintf(first, sizeof first, "%s", in_folder("first%d", round));
        snprintf(second, sizeof second, "%s", in_folder("second%d", round));
        snprintf(third, sizeof third, "%s", in_folder("third%d", round));
        s.seed = 1;
        ki_threads_set(1);
        write_set(first, &s);
        ki_threads_set(3);
        write_set(second, &s);
        ki_threads_set(0);
        s.seed = 2;
        write_set(third, &s);
        assert_int_equal(testing_run(output, sizeof output, "diff -r '%s' '%s'", first, second), 0);
        assert_int_equal(testing_run(output, sizeof output, "diff -rq '%s' '%s' | wc -l", first, third), 0);
        assert_string_equal(output, "60\n"); /* every file differs */
    }
}

/* The hash pins the files themselves: a change here changes every published result on this set. */
static void test_known_bytes(void **state) {
    (void)state;
    static const struct {
        bool colour, background;
        double noise, jitter;
        uint64_t hash;
    } rows[] = {{false, false, 10, 1, 0x2c3a1bc0cb4eb8bbu},
                {false, true, 0, 1, 0x202fd5c2a8336372u},
                {true, true, 25, 0.5, 0x3436f6e6b46f8905u}};
    ki_image image = {0};
    kith_error err = {0};
    for (size_t r = 0; r < N_ROWS(rows); r++) {
        KITH_OPTIONS(kith_synth_options, s);
        s.colour = rows[r].colour, s.background = rows[r].background;
        s.noise = rows[r].noise, s.jitter = rows[r].jitter;
        uint64_t hash = 1469598103934665603u;
        for (uint32_t c = 0; c < 30; c++) {
            const ki_glyph glyph = ki_glyph_make(s.seed, c);
            assert_ok(ki_glyph_draw(&glyph, &s, c, 5, &image, &err), &err);
            for (int i = 0; i < 64 * 64 * (s.colour ? 3 : 1); i++)
                hash = (hash ^ image.data[i]) * 1099511628211u;
        }
        print_message("hash 0x%016jx\n", (uintmax_t)hash);
#if defined(__x86_64__) && defined(__GLIBC__) /* another libm may round a sine the other way */
        assert_true(hash == rows[r].hash);
#endif
    }
    ki_image_release(&image);
}

/* Recall@1 of nearest neighbours on pixels among 60 classes, plain and with brightness and contrast
 * taken out. */
static void test_pixels_fail(void **state) {
    (void)state;
    enum { CLASSES = 60, PER = 8, N = CLASSES * PER, SIDE = 64, DIM = SIDE * SIDE };
    KITH_OPTIONS(kith_synth_options, s);
    ki_image image = {0};
    kith_error err = {0};
    float *x = malloc(sizeof(float) * N * DIM);
    assert_non_null(x);
    for (int k = 0; k < N; k++) {
        const uint32_t c = (uint32_t)(CLASSES + k / PER);
        const ki_glyph glyph = ki_glyph_make(s.seed, c);
        assert_ok(ki_glyph_draw(&glyph, &s, c, (uint32_t)(k % PER), &image, &err), &err);
        for (int i = 0; i < DIM; i++) x[k * DIM + i] = (float)image.data[i] / 255;
    }
    for (int normalised = 0; normalised < 2; normalised++) {
        for (int k = 0; k < N && normalised; k++) {
            float *row = x + k * DIM;
            double mean = 0, size = 0;
            for (int i = 0; i < DIM; i++) mean += (double)row[i] / DIM;
            for (int i = 0; i < DIM; i++) size += ((double)row[i] - mean) * ((double)row[i] - mean);
            for (int i = 0; i < DIM; i++) row[i] = (float)(((double)row[i] - mean) / sqrt(size));
        }
        int n_right = 0;
        for (int a = 0; a < N; a++) {
            float best = INFINITY;
            int nearest = -1;
            for (int b = 0; b < N; b++) {
                if (a == b) continue;
                float d = 0;
                for (int k = 0; k < DIM && d < best; k += 512) {
                    float part = 0;
                    for (int j = k; j < k + 512; j++) {
                        const float e = x[a * DIM + j] - x[b * DIM + j];
                        part += e * e;
                    }
                    d += part;
                }
                if (d < best) best = d, nearest = b;
            }
            n_right += nearest / PER == a / PER;
        }
        const double recall = (double)n_right / N;
        print_message("R@1 of %s pixels: %.3f\n", normalised ? "normalised" : "plain", recall);
        if (recall >= 0.5) fail_msg("R@1 of pixels is %.3f; wanted under 0.5", recall);
        if (recall <= 0.05) fail_msg("R@1 of pixels is %.3f: the classes have nothing in common", recall);
    }
    free(x);
    ki_image_release(&image);
}

/* With a steady hand a class is one picture. */
static void test_no_jitter(void **state) {
    (void)state;
    KITH_OPTIONS(kith_synth_options, s);
    s.jitter = s.noise = 0;
    ki_image a = {0}, b = {0};
    kith_error err = {0};
    const ki_glyph glyph = ki_glyph_make(1, 0);
    assert_ok(ki_glyph_draw(&glyph, &s, 0, 1, &a, &err), &err);
    assert_ok(ki_glyph_draw(&glyph, &s, 0, 2, &b, &err), &err);
    /* the same shape in other ink: darkest where the other is darkest */
    int n_ink = 0, n_both = 0;
    int least_a = 255, least_b = 255, most_a = 0, most_b = 0;
    for (int i = 0; i < 64 * 64; i++) {
        if (a.data[i] < least_a) least_a = a.data[i];
        if (b.data[i] < least_b) least_b = b.data[i];
        if (a.data[i] > most_a) most_a = a.data[i];
        if (b.data[i] > most_b) most_b = b.data[i];
    }
    for (int i = 0; i < 64 * 64; i++) {
        const bool ink_a = a.data[i] < (least_a + most_a) / 2, ink_b = b.data[i] < (least_b + most_b) / 2;
        n_ink += ink_a || ink_b;
        n_both += ink_a && ink_b;
    }
    assert_true(n_ink > 50 && n_ink < 2500);
    assert_true(n_both > n_ink * 3 / 4);
    ki_image_release(&a);
    ki_image_release(&b);
}

static int stop_now(void *user, int64_t n_done, int64_t n_all) {
    return (void)user, (void)n_done, (void)n_all, 1;
}

static void test_nothing_half_written(void **state) {
    (void)state;
    KITH_OPTIONS(kith_synth_options, s);
    kith_error err = {0};
    s.n_classes = 40;
    s.n_images = 1;
    assert_int_equal(kith_synth_write(in_folder("stopped"), &s, stop_now, NULL, &err), KITH_ECANCELED);
    assert_int_not_equal(access(in_folder("stopped"), F_OK), 0);
    assert_int_equal(testing_run(output, sizeof output, "ls -d %s*", in_folder("stopped")), 2);
    put_text(in_folder("taken/file"), "x");
    assert_int_equal(kith_synth_write(in_folder("taken"), &s, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "taken is not empty"));
    make_folders(in_folder("vacant/"));
    write_set(in_folder("vacant/"), &s); /* empty, with a slash behind */
    s.side = 8;
    assert_int_equal(kith_synth_write(in_folder("small"), &s, NULL, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "side is 8; wanted 16 … 512");
    assert_int_equal(
        kith_synth_write("/proc/nowhere/x",
                         &(kith_synth_options){
                             .size = sizeof(kith_synth_options), .n_classes = 1, .n_images = 1, .side = 16},
                         NULL, NULL, &err),
        KITH_EIO);
}

static void test_no_memory(void **state) {
    (void)state;
    KITH_OPTIONS(kith_synth_options, s);
    s.n_classes = 2;
    s.n_images = 2;
    s.side = 16;
    ki_threads_set(1);
    bool has_failed = true;
    int64_t n = 0;
    for (; has_failed && n < 100; n++) {
        kith_memory_stats before, after;
        kith_memory_stats_get(&before);
        kith_error err = {0};
        char dir[4096];
        snprintf(dir, sizeof dir, "%s", in_folder("memory%d", (int)n));
        ki_alloc_fail_after(n);
        const kith_status status = kith_synth_write(dir, &s, NULL, NULL, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
        assert_int_equal(access(dir, F_OK) == 0, !has_failed);
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
    ki_threads_set(0);
    assert_false(has_failed);
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_bytes), cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_pixels_fail),          cmocka_unit_test(test_no_jitter),
        cmocka_unit_test(test_nothing_half_written), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("data/synth", tests, NULL, NULL);
}
