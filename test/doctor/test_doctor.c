/* What the doctor finds in a folder that has one of everything, what it leaves out, and what it does when it cannot work. */
#include "kith/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/image/image.h"
#include "data/miniature.h"
#include "doctor/doctor.h"

/* Noise: every seed is another picture. */
static void put_noise(const char *path, int w, int h, uint64_t seed) {
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    ki_rng rng = ki_rng_at(seed, KI_RNG_AUGMENT, 0, 0);
    assert_ok(ki_image_shape(&image, w, h, 3, &err), &err);
    for (int i = 0; i < w * h * 3; i++) image.data[i] = (uint8_t)(ki_rng_u32(&rng) >> 24);
    assert_ok(ki_png_encode(&image, &file, &err), &err);
    put_bytes(path, file.data, file.n);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

static void put_class(const char *folder, int n, uint64_t seed) {
    for (int i = 0; i < n; i++) put_noise(in_folder("%s/%d.png", folder, i), 48, 48, seed + (uint64_t)i);
}

/* Classes of 6 images, and: a file that is cut off, one picture in two classes, one in test and in training, one twice in a class, one of
 * 20 pixels, one of 400 x 48, a GIF, a class with one image, an empty class. */
static void make_ward(void) {
    put_class("ward/train/ant", 6, 100);
    put_class("ward/train/bee", 6, 200);
    put_class("ward/test/cat", 6, 300);
    put_image(in_folder("ward/train/ant/cut.jpg"), "bad_cut.jpg");
    put_noise(in_folder("ward/train/ant/both.png"), 48, 48, 1);
    put_noise(in_folder("ward/train/bee/both.png"), 48, 48, 1);
    put_noise(in_folder("ward/train/bee/leak.png"), 48, 48, 302); /* test/cat/2.png */
    put_noise(in_folder("ward/test/cat/twice.png"), 48, 48, 303); /* test/cat/3.png */
    put_noise(in_folder("ward/train/ant/small.png"), 20, 20, 2);
    put_noise(in_folder("ward/train/ant/wide.png"), 400, 48, 3);
    put_image(in_folder("ward/train/ant/film.gif"), "bad_gif.png");
    put_noise(in_folder("ward/train/dog/1.png"), 48, 48, 4);
}

static kith_dataset *open_set(const char *path) {
    kith_error err = {0};
    kith_dataset *set = NULL;
    assert_ok(kith_dataset_open(NULL, path, &set, &err), &err);
    return set;
}

static int64_t number_of(const kith_dataset *set, const char *end) {
    for (int64_t i = 0; i < kith_dataset_count(set); i++) {
        const char *path = kith_dataset_item(set, i).path;
        if (strlen(path) >= strlen(end) && strcmp(path + strlen(path) - strlen(end), end) == 0) return i;
    }
    fail_msg("no %s in the data set", end);
    return -1;
}

static const kith_finding *only(const kith_findings *found, kith_finding_kind kind) {
    const kith_finding *one = NULL;
    for (int64_t i = 0; i < found->n; i++) {
        if (found->findings[i].kind == kind) one = &found->findings[i];
    }
    if (!one || found->n_of[kind] != 1)
        fail_msg("%d findings of the kind %s; wanted 1", (int)found->n_of[kind],
                 kith_finding_kind_name(kind));
    return one;
}

static void assert_out(const kith_findings *found, const kith_dataset *set, const char *end, bool is_out) {
    const int64_t why = found->why_out[number_of(set, end)];
    if ((why >= 0) != is_out)
        fail_msg("%s is %s: %s", end, why >= 0 ? "left out" : "kept",
                 why >= 0 ? found->findings[why].text : "");
}

static void assert_text(const kith_finding *f, const char *text) {
    if (!strstr(f->text, text)) fail_msg("no '%s' in: %s", text, f->text);
}

static void assert_says(const kith_findings *found, const char *text) {
    for (int64_t i = 0; i < found->n; i++) {
        if (strcmp(found->findings[i].text, text) == 0) return;
    }
    fail_msg("no finding says '%s'", text);
}

static void examine(const kith_dataset *set, const kith_doctor_options *options, kith_findings *ret) {
    kith_error err = {0};
    assert_ok(kith_dataset_examine(set, options, ret, &err), &err);
}

static void test_one_of_everything(void **state) {
    (void)state;
    make_ward();
    kith_dataset *set = open_set(in_folder("ward"));
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    examine(set, &options, &found);
    assert_text(only(&found, KITH_FINDING_UNREADABLE), "cut.jpg: JPEG: ");
    assert_int_equal(found.n_of[KITH_FINDING_CONFLICT], 2); /* the leak is of another class as well */
    assert_says(&found, "train/ant/both.png and train/bee/both.png: the same file in several classes");
    assert_text(only(&found, KITH_FINDING_TINY), "train/ant/small.png has only 20 x 20 pixels");
    assert_text(only(&found, KITH_FINDING_EXTREME),
                "wide.png is 8.33 times as wide as it is high: 400 x 48 pixels");
    assert_text(only(&found, KITH_FINDING_SINGLE), "the class dog has one image: train/dog/1.png");
    assert_text(only(&found, KITH_FINDING_NOT_READ), "not read: 1 GIF; the first is ");
    assert_text(only(&found, KITH_FINDING_DUPLICATE), "test/cat/3.png and test/cat/twice.png: the same file");
    assert_int_equal(found.n_of[KITH_FINDING_LEAK], 1);
    assert_int_equal(found.n_items, kith_dataset_count(set));
    assert_int_equal(found.n_out, 5);
    assert_out(&found, set, "ant/cut.jpg", true);
    assert_out(&found, set, "ant/both.png", true);
    assert_out(&found, set, "bee/both.png", true);
    assert_out(&found, set, "bee/leak.png", true);
    assert_out(&found, set, "cat/2.png", false);
    assert_out(&found, set, "cat/3.png", false);
    assert_out(&found, set, "cat/twice.png", true);
    assert_out(&found, set, "ant/small.png", false);
    for (int64_t i = 1; i < found.n; i++)
        assert_true(found.findings[i - 1].severity >= found.findings[i].severity);
    kith_findings_release(&found);
    kith_findings_release(&found);
    kith_dataset_free(set);
}

/* The same picture in the same class: a leak, and no conflict. */
static void test_a_leak_within_a_class(void **state) {
    (void)state;
    put_class("leaky/train/ant", 3, 500);
    put_class("leaky/test/ant", 3, 502); /* its first picture is the last one of training */
    kith_dataset *set = open_set(in_folder("leaky"));
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    examine(set, &options, &found);
    assert_text(only(&found, KITH_FINDING_LEAK),
                "train/ant/2.png (train) and test/ant/0.png (test): the same file in test and in training");
    assert_int_equal(found.n_of[KITH_FINDING_CONFLICT], 0);
    assert_int_equal(found.n_out, 1);
    assert_out(&found, set, "train/ant/2.png", true);
    kith_findings_release(&found);
    kith_dataset_free(set);
}

enum { DIM = 4, N_CLASS = 8 };

/* Vectors at four places: 8 of ant, 8 of bee, 8 of cat (test), 8 of dog (test); `wrong` ant lies among the bees, and the first dog among the cats. */
static kith_array vectors_of(const kith_dataset *set, int64_t wrong) {
    kith_error err = {0};
    kith_array rows = {0};
    const int64_t n = kith_dataset_count(set);
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, DIM}, &rows, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        float *row = (float *)rows.data + i * DIM;
        ki_rng rng = ki_rng_at(7, KI_RNG_AUGMENT, (uint32_t)i, 0);
        int64_t at = kith_dataset_item(set, i).label;
        if (i == wrong) at = 1;
        if (i == number_of(set, "dog/0.png")) at = 2;
        for (int k = 0; k < DIM; k++)
            row[k] = (k == at ? 1.0f : 0.0f) + 0.4f * (float)(ki_rng_u32(&rng) >> 8) / (float)(1 << 24);
    }
    return rows;
}

static void test_labels_by_vectors(void **state) {
    (void)state;
    put_class("zoo/train/ant", N_CLASS, 600);
    put_class("zoo/train/bee", N_CLASS, 700);
    put_class("zoo/test/cat", N_CLASS, 800);
    put_class("zoo/test/dog", N_CLASS, 900);
    kith_dataset *set = open_set(in_folder("zoo"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    kith_array rows = vectors_of(set, number_of(set, "ant/3.png"));
    /* Two of one class with one vector, and one on either side of the test. */
    float *data = rows.data;
    memcpy(data + number_of(set, "bee/0.png") * DIM, data + number_of(set, "bee/1.png") * DIM,
           DIM * sizeof *data);
    options.vectors = &rows;
    options.near = 0.999999;
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_MISLABELLED], 2);
    assert_out(&found, set, "ant/3.png", true);
    assert_out(&found, set, "dog/0.png", false); /* of the test split: only said */
    assert_text(&found.findings[0], " % of its neighbours are ");
    assert_text(only(&found, KITH_FINDING_NEAR),
                "train/bee/0.png and train/bee/1.png look almost the same (cosine 1.000)");
    assert_int_equal(found.n_out, 1);
    kith_findings_release(&found);
    memcpy(data + number_of(set, "bee/0.png") * DIM, data + number_of(set, "cat/1.png") * DIM,
           DIM * sizeof *data);
    options.wrong = 2; /* that bee lies among the cats, and would be left out */
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_MISLABELLED], 0);
    assert_text(only(&found, KITH_FINDING_NEAR_LEAK), "look almost the same");
    kith_findings_release(&found);
    options.wrong = 0.3;
    examine(set, &options, &found);
    const int64_t n_mislabelled = found.n_of[KITH_FINDING_MISLABELLED],
                  n_near = found.n_of[KITH_FINDING_NEAR] + found.n_of[KITH_FINDING_NEAR_LEAK];
    kith_findings_release(&found);
    /* Vectors alone, also of a set whose pictures are gone. */
    assert_int_equal(remove(in_folder("zoo/train/ant/1.png")), 0);
    for (int n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = ki_doctor_by_vectors(set, &options, &found, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM) fail_msg("allocation %d: %s", n, err.message);
        if (status != KITH_OK) continue;
        assert_int_equal(found.n, n_mislabelled + n_near);
        assert_int_equal(found.n_of[KITH_FINDING_MISLABELLED], n_mislabelled);
        assert_out(&found, set, "ant/3.png", true);
        kith_findings_release(&found);
        if (!has_failed) break;
    }
    put_noise(in_folder("zoo/train/ant/1.png"), 48, 48, 601);
    kith_array_release(&rows);
    kith_dataset_free(set);
}

/* Only some items have vectors: the numbers say which. */
static void test_vectors_of_some(void **state) {
    (void)state;
    kith_dataset *set = open_set(in_folder("zoo"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    int64_t items[] = {2, 3};
    float values[2][2] = {{1, 0}, {1, 0}};
    kith_array rows = {.dtype = KITH_F32, .n_dims = 2, .dim = {2, 2}, .data = values};
    options.vectors = &rows;
    assert_int_equal(kith_dataset_examine(set, &options, &found, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "2 vectors for 32 items"));
    options.vector_items = items;
    examine(set, &options, &found);
    const kith_finding *near = only(&found, KITH_FINDING_NEAR);
    assert_int_equal(near->n, 2);
    assert_int_equal(found.items[near->begin] + found.items[near->begin + 1], 5);
    kith_findings_release(&found);
    items[1] = 32;
    assert_int_equal(kith_dataset_examine(set, &options, &found, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "vector 1 is of item 32; the data set has 32"));
    kith_dataset_free(set);
}

static void test_the_list(void **state) {
    (void)state;
    kith_dataset *set = open_set(in_folder("ward"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    examine(set, &options, &found);
    assert_ok(kith_findings_write(&found, set, in_folder("clean.csv"), &err), &err);
    char *text = testing_read(in_folder("clean.csv"));
    assert_non_null(strstr(text, "\"ward/train/ant/0.png\",\"ant\",train\n"));
    assert_null(strstr(text, "leak.png"));
    free(text);
    kith_dataset *clean = open_set(in_folder("clean.csv"));
    assert_int_equal(kith_dataset_count(clean), found.n_items - found.n_out);
    assert_int_equal(kith_dataset_item(clean, number_of(clean, "cat/1.png")).split, KITH_SPLIT_TEST);
    kith_findings again = {0};
    examine(clean, &options, &again);
    assert_int_equal(again.n_of_severity[KITH_SEVERITY_ERROR], 0);
    assert_int_equal(again.n_out, 0);
    kith_findings_release(&again);
    /* Elsewhere paths are absolute. */
    put_bytes(in_folder("other/x"), "", 0);
    assert_ok(kith_findings_write(&found, set, in_folder("other/clean.csv"), &err), &err);
    text = testing_read(in_folder("other/clean.csv"));
    assert_non_null(strstr(text, "\"/"));
    free(text);
    kith_dataset *wrong = open_set(in_folder("zoo"));
    assert_int_equal(kith_findings_write(&found, wrong, in_folder("no.csv"), &err), KITH_EINVAL);
    kith_dataset_free(wrong);
    kith_findings_release(&found);
    kith_dataset_free(clean);
    kith_dataset_free(set);
}

static int stop_at_once(void *user, int64_t n_done, int64_t n_all) {
    assert_true(n_done <= n_all);
    return ++*(int *)user >= 2;
}

static void test_what_cannot_be(void **state) {
    (void)state;
    kith_dataset *set = open_set(in_folder("ward"));
    kith_findings found = {0};
    kith_error err = {0};
    int n_told = 0;
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    options.most_ratio = 0.5;
    assert_int_equal(kith_dataset_examine(set, &options, &found, &err), KITH_EINVAL);
    options.most_ratio = 5;
    options.progress = stop_at_once;
    options.user = &n_told;
    assert_int_equal(kith_dataset_examine(set, &options, &found, &err), KITH_ECANCELED);
    options.progress = NULL;
    for (int n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_dataset_examine(set, &options, &found, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) {
            kith_findings_release(&found);
            if (!has_failed) break;
        } else if (status != KITH_ENOMEM) {
            fail_msg("allocation %d failed and gave %s: %s", n, kith_status_name(status), err.message);
        }
    }
    kith_dataset_free(set);
}

/* A class with many images, small drawings, and rows of numbers. */
static void test_whole_sets(void **state) {
    (void)state;
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < (c == 1 ? 45 : 2); i++)
            put_noise(in_folder("small/%d/%d.png", c, i), 24, 24, (uint64_t)(1000 + 50 * c + i));
    kith_dataset *set = open_set(in_folder("small"));
    examine(set, &options, &found);
    assert_text(only(&found, KITH_FINDING_UNEVEN),
                "the class 1 has 45 images, 22.5 times those of the median class, which has 2");
    assert_text(only(&found, KITH_FINDING_TINY), "49 of 49 images have a side under 32 pixels");
    kith_findings_release(&found);
    kith_dataset_free(set);
    assert_null(kith_finding_kind_name((kith_finding_kind)KITH_N_FINDING_KINDS));
    assert_string_equal(kith_severity_name(KITH_SEVERITY_WARNING), "warning");
}

/* A picture of squares of random greys, each `cell` pixels wide: the larger, the less fine detail. */
static void put_squares(const char *path, int side, int cell, uint64_t seed, bool is_smooth) {
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    assert_ok(ki_image_shape(&image, side, side, 1, &err), &err);
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            double sum = 0, weights = 0;
            for (int k = 0; k < 4; k++) {
                const int cx = x / cell + (k & 1), cy = y / cell + (k >> 1);
                const double fx = (double)(x % cell) / cell, fy = (double)(y % cell) / cell;
                const double w = is_smooth ? ((k & 1) ? fx : 1 - fx) * ((k >> 1) ? fy : 1 - fy)
                                 : k == 0  ? 1
                                           : 0;
                ki_rng rng = ki_rng_at(seed, KI_RNG_AUGMENT, (uint32_t)cx, (uint32_t)cy);
                sum += w * (ki_rng_u32(&rng) >> 24);
                weights += w;
            }
            image.data[y * side + x] = (uint8_t)(sum / weights);
        }
    }
    assert_ok(ki_png_encode(&image, &file, &err), &err);
    put_bytes(path, file.data, file.n);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

static void test_blurred(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++)
        put_squares(in_folder("soft/ant/%d.png", i), 160, 3, (uint64_t)(i + 1), false);
    put_squares(in_folder("soft/ant/soft.png"), 160, 32, 99, true);
    put_squares(in_folder("soft/ant/plain.png"), 160, 160, 98, false); /* one grey: neither */
    put_squares(in_folder("soft/ant/little.png"), 40, 40, 97, true);   /* too small to tell */
    kith_dataset *set = open_set(in_folder("soft"));
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    options.no_vectors = true;
    examine(set, &options, &found);
    const kith_finding *f = only(&found, KITH_FINDING_BLURRED);
    assert_text(f, "soft.png is blurred: its sharpness is ");
    assert_true(f->score < 0.33 && f->severity == KITH_SEVERITY_NOTE && f->example == -1);
    assert_out(&found, set, "soft.png", false);
    kith_findings_release(&found);
    options.blurred = 0;
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_BLURRED], 0);
    kith_findings_release(&found);
    kith_dataset_free(set);
}

enum { N_ODD = 4, WIDE = 16 };

/* Vectors around one place for each class; of the images named odd*, and of some in every class, around two other places. */
static kith_array odd_vectors(const kith_dataset *set) {
    kith_error err = {0};
    kith_array rows = {0};
    const int64_t n = kith_dataset_count(set);
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, WIDE}, &rows, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const kith_item item = kith_dataset_item(set, i);
        const bool is_odd = strstr(item.path, "odd") != NULL;
        float *row = (float *)rows.data + i * WIDE;
        ki_rng rng = ki_rng_at(11, KI_RNG_AUGMENT, (uint32_t)i, 0);
        row[is_odd ? WIDE - 1 : item.label] = 1;
        for (int k = 0; k < WIDE; k++) row[k] += 0.15f * (float)ki_rng_normal(&rng);
    }
    return rows;
}

/* Odd ones in four classes, which are near each other, and near nothing else. */
static void test_odd_ones_out(void **state) {
    (void)state;
    for (int c = 0; c < N_ODD; c++) {
        char folder[16];
        snprintf(folder, sizeof folder, "fair/%d", c);
        put_class(folder, 12, (uint64_t)(2000 + 100 * c));
        put_noise(in_folder("fair/%d/odd.png", c), 48, 48, (uint64_t)(2050 + 100 * c));
    }
    kith_dataset *set = open_set(in_folder("fair"));
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    kith_array rows = odd_vectors(set);
    options.vectors = &rows;
    options.near = 2;
    options.wrong = 2;
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_ODD], N_ODD);
    for (int64_t i = 0; i < found.n; i++) {
        const kith_finding *f = &found.findings[i];
        if (f->kind != KITH_FINDING_ODD) continue;
        assert_text(f, "odd.png is unlike the rest: ");
        assert_true(f->score > 2.5 && f->n_out == 0 && f->n == 1);
        /* compared with one of its own class */
        assert_int_equal(kith_dataset_item(set, f->example).label,
                         kith_dataset_item(set, found.items[f->begin]).label);
    }
    assert_int_equal(found.n_out, 0);
    kith_findings_release(&found);
    options.odd = 0;
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_ODD], 0);
    kith_findings_release(&found);
    kith_array_release(&rows);
    kith_dataset_free(set);
}

/* Labels with every tenth one wrong: those are found, with the class they look like and a picture of it. */
static void test_wrong_labels_are_estimated(void **state) {
    (void)state;
    enum { EACH = 20 };
    for (int c = 0; c < N_ODD; c++) {
        char folder[16];
        snprintf(folder, sizeof folder, "mixed/%d", c);
        put_class(folder, EACH, (uint64_t)(5000 + 100 * c));
    }
    kith_dataset *set = open_set(in_folder("mixed"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    kith_array rows = {0};
    const int64_t n = kith_dataset_count(set);
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, WIDE}, &rows, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        ki_rng rng = ki_rng_at(12, KI_RNG_AUGMENT, (uint32_t)i, 0);
        float *row = (float *)rows.data + i * WIDE;
        row[(kith_dataset_item(set, i).label + (i % 10 == 0)) % N_ODD] = 1;
        for (int k = 0; k < WIDE; k++) row[k] += 0.2f * (float)ki_rng_normal(&rng);
    }
    options.vectors = &rows;
    options.near = 2;
    examine(set, &options, &found);
    assert_int_equal(found.n_of[KITH_FINDING_MISLABELLED], n / 10);
    for (int64_t i = 0; i < found.n_of[KITH_FINDING_MISLABELLED]; i++) {
        const kith_finding *f = &found.findings[i];
        const int64_t item = found.items[f->begin];
        assert_int_equal(item % 10, 0);
        assert_int_equal(f->label, (kith_dataset_item(set, item).label + 1) % N_ODD);
        assert_int_equal(kith_dataset_item(set, f->example).label, f->label);
        assert_true(f->score > 0.7 && f->score <= 1);
    }
    kith_findings_release(&found);
    kith_array_release(&rows);
    kith_dataset_free(set);
}

static void test_the_page(void **state) {
    (void)state;
    kith_dataset *set = open_set(in_folder("ward"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    KITH_OPTIONS(kith_findings_page, page);
    options.no_vectors = true;
    examine(set, &options, &found);
    page.title = "a <ward> & \"more\"";
    assert_ok(kith_findings_page_write(&found, set, &page, in_folder("ward.html"), &err), &err);
    char *text = testing_read(in_folder("ward.html"));
    assert_non_null(strstr(text, "<h1>What is wrong with a &lt;ward&gt; &amp; &quot;more&quot;</h1>"));
    assert_non_null(strstr(text, "default-src 'none'; img-src data:"));
    for (int64_t i = 0; i < found.n; i++) {
        char id[64];
        snprintf(id, sizeof id, "id=\"%s\"", kith_finding_kind_name(found.findings[i].kind));
        if (!strstr(text, id)) fail_msg("no section %s", id);
    }
    assert_non_null(strstr(text, "cut.jpg: JPEG: "));
    assert_non_null(strstr(text, "alt=\"picture 1 of 2, class cat\""));
    assert_non_null(strstr(text, "left out</span>"));
    assert_null(strstr(text, "http://"));
    assert_null(strstr(text, "<script"));
    free(text);
    /* Fewer pictures; the others are lines. */
    page.most_shown = 1;
    assert_ok(kith_findings_page_write(&found, set, &page, in_folder("ward.html"), &err), &err);
    text = testing_read(in_folder("ward.html"));
    assert_non_null(strstr(text, "1 more, without pictures"));
    free(text);
    kith_dataset *wrong = open_set(in_folder("zoo"));
    assert_int_equal(kith_findings_page_write(&found, wrong, &page, in_folder("ward.html"), &err),
                     KITH_EINVAL);
    kith_dataset_free(wrong);
    assert_int_equal(kith_findings_page_write(&found, set, &page, in_folder("no/such/x.html"), &err),
                     KITH_EIO);
    for (int n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_findings_page_write(&found, set, &page, in_folder("ward.html"), &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status != KITH_OK && status != KITH_ENOMEM) fail_msg("allocation %d: %s", n, err.message);
        if (!has_failed) break;
    }
    kith_findings_release(&found);
    kith_dataset_free(set);
}

static void test_what_was_measured(void **state) {
    (void)state;
    kith_finding_measured m;
    const kith_finding_kind kinds[] = {KITH_FINDING_MISLABELLED, KITH_FINDING_ODD, KITH_FINDING_BLURRED,
                                       KITH_FINDING_DUPLICATE};
    for (size_t k = 0; k < N_ROWS(kinds); k++) {
        assert_true(kith_finding_measured_at(kinds[k], 0, &m));
        for (int64_t i = 0; kith_finding_measured_at(kinds[k], i, &m); i++)
            assert_true(m.set && m.n_right <= m.n_named && m.n_named <= m.n_images && m.n_planted > 0);
    }
    assert_false(kith_finding_measured_at(KITH_FINDING_EMPTY, 0, &m));
    assert_false(kith_finding_measured_at(KITH_FINDING_ODD, -1, &m));
}

/* What needs memory by vectors, where each allocation fails once. */
static void test_no_memory_for_vectors(void **state) {
    (void)state;
    kith_dataset *set = open_set(in_folder("fair"));
    kith_findings found = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    kith_array rows = odd_vectors(set);
    options.vectors = &rows;
    for (int n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_dataset_examine(set, &options, &found, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) {
            kith_findings_release(&found);
            if (!has_failed) break;
        } else if (status != KITH_ENOMEM) {
            fail_msg("allocation %d failed and gave %s: %s", n, kith_status_name(status), err.message);
        }
    }
    kith_array_release(&rows);
    kith_dataset_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_everything),
        cmocka_unit_test(test_a_leak_within_a_class),
        cmocka_unit_test(test_labels_by_vectors),
        cmocka_unit_test(test_vectors_of_some),
        cmocka_unit_test(test_the_list),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_whole_sets),
        cmocka_unit_test(test_blurred),
        cmocka_unit_test(test_odd_ones_out),
        cmocka_unit_test(test_wrong_labels_are_estimated),
        cmocka_unit_test(test_the_page),
        cmocka_unit_test(test_what_was_measured),
        cmocka_unit_test(test_no_memory_for_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
