/* The same picture, resized, saved again, mirrored and cut, apart from other pictures of the same thing. */
#include "kith/duplicates.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "kith/data.h"
#include "search/signature.h"
#include "support/testing.h"

static char output[65536];

static const char *in_folder(const char *name) {
    static char path[8][1024];
    static int at;
    char *to = path[at = (at + 1) % 8];
    snprintf(to, sizeof path[0], "%s/%s", testing_folder(), name);
    return to;
}

static void read_image(const char *path, ki_image *image) {
    kith_error err = {0};
    ki_bytes bytes = {0};
    assert_ok(ki_bytes_read(&bytes, path, &err), &err);
    assert_ok(ki_image_decode(bytes.data, bytes.n, &(ki_decode){0}, image, &err), &err);
    ki_bytes_release(&bytes);
}

/* What happens to a picture on its way through the world. */
typedef struct change {
    const char *name;
    double size;                     /* factor */
    double left, top, width, height; /* what is kept, of 0 to 1 */
    bool mirrored;
    int quality; /* of JPEG */
} change;

static const change changes[] = {
    {"halved", 0.5, 0, 0, 1, 1, false, 95},
    {"enlarged", 1.7, 0, 0, 1, 1, false, 95},
    {"saved again", 1, 0, 0, 1, 1, false, 40},
    {"mirrored", 1, 0, 0, 1, 1, true, 95},
    {"cut", 1, 0.025, 0.025, 0.95, 0.95, false, 95},
    {"cut left", 1, 0.05, 0, 0.95, 1, false, 95},
    {"all of it", 0.6, 0.02, 0.03, 0.95, 0.95, true, 40},
};

static void change_image(const ki_image *src, const change *c, const char *path) {
    kith_error err = {0};
    ki_resampler scratch = {0};
    ki_image part = {0}, turned = {0};
    ki_bytes jpeg = {0};
    const ki_rect from = {(int32_t)(src->w * c->left), (int32_t)(src->h * c->top),
                          (int32_t)(src->w * c->width), (int32_t)(src->h * c->height)};
    const int32_t w = (int32_t)(from.w * c->size), h = (int32_t)(from.h * c->size);
    assert_ok(ki_resample(&scratch, src, from, w, h, (ki_rect){0, 0, w, h}, KITH_FILTER_BICUBIC, &part, &err),
              &err);
    assert_ok(ki_image_shape(&turned, w, h, part.channels, &err), &err);
    for (int32_t y = 0; y < h; y++) {
        for (int32_t x = 0; x < w; x++)
            memcpy(turned.data + (y * w + (c->mirrored ? w - 1 - x : x)) * part.channels,
                   part.data + (y * w + x) * part.channels, (size_t)part.channels);
    }
    assert_ok(ki_jpeg_encode(&turned, c->quality, &jpeg, &err), &err);
    assert_ok(ki_file_write(path, jpeg.data, jpeg.n, &err), &err);
    ki_resampler_release(&scratch);
    ki_image_release(&part);
    ki_image_release(&turned);
    ki_bytes_release(&jpeg);
}

static void sign(const char *path, ki_signature *signature) {
    kith_error err = {0};
    ki_resampler scratch = {0};
    ki_image image = {0}, small = {0};
    read_image(path, &image);
    assert_ok(ki_signature_make(&image, &scratch, &small, signature, &err), &err);
    ki_resampler_release(&scratch);
    ki_image_release(&image);
    ki_image_release(&small);
}

/* Of n pictures: how many of the changed ones are not found again, and how many pairs of different pictures are taken for the
 * same. */
static void judge(const char *const *paths, int n, int *ret_missed, int *ret_false) {
    static ki_signature signature[128];
    ki_signature changed;
    bool mirrored;
    *ret_missed = *ret_false = 0;
    assert_true(n <= 128);
    for (int i = 0; i < n; i++) {
        ki_image image = {0};
        read_image(paths[i], &image);
        sign(paths[i], &signature[i]);
        for (size_t c = 0; c < N_ROWS(changes); c++) {
            change_image(&image, &changes[c], in_folder("changed.jpg"));
            sign(in_folder("changed.jpg"), &changed);
            const double likeness = ki_signature_likeness(&signature[i], &changed, &mirrored);
            if (likeness >= KI_SIGNATURE_SAME && mirrored == changes[c].mirrored) continue;
            print_message("%s %s: likeness %.4f%s\n", paths[i], changes[c].name, likeness,
                          mirrored ? ", mirrored" : "");
            ++*ret_missed;
        }
        ki_image_release(&image);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            const double likeness = ki_signature_likeness(&signature[i], &signature[k], &mirrored);
            if (likeness < KI_SIGNATURE_SAME) continue;
            print_message("%s and %s: likeness %.4f\n", paths[i], paths[k], likeness);
            ++*ret_false;
        }
    }
}

static int list_images(const char *folder, int least_step, int most, kith_dataset **set, const char **paths) {
    kith_error err = {0};
    int n = 0;
    assert_ok(kith_dataset_open_files(&folder, 1, set, &err), &err);
    for (int64_t i = 0; i < kith_dataset_count(*set) && n < most; i += least_step)
        paths[n++] = kith_dataset_item(*set, i).path;
    return n;
}

/* Unsteady drawings of the same sign are hard: from afar they differ by little more than a cut does. */
static void test_drawings(void **state) {
    (void)state;
    kith_dataset *set = NULL;
    const char *paths[64];
    int n_missed = 0, n_false = 0;
    assert_int_equal(testing_run(output, sizeof output,
                                 "cd %s && rm -rf glyphs && %s synth glyphs --classes 8 --images 8 --size 96",
                                 testing_folder(), testing_program()),
                     0);
    const int n = list_images(in_folder("glyphs"), 1, 64, &set, paths);
    judge(paths, n, &n_missed, &n_false);
    kith_dataset_free(set);
    assert_int_equal(n, 64);
    assert_int_equal(n_false, 0);
    assert_int_equal(n_missed, 0);
}

/* Photos of one kind of bird. One of them is there twice, brighter the second time. */
static void test_photos(void **state) {
    (void)state;
    const char *folder = testing_shared("data/CUB_200_2011/images/002.Laysan_Albatross");
    kith_dataset *set = NULL;
    const char *paths[64];
    int n_missed = 0, n_false = 0;
    if (!folder) skip();
    const int n = list_images(folder, 1, 60, &set, paths);
    judge(paths, n, &n_missed, &n_false);
    kith_dataset_free(set);
    assert_int_equal(n, 60);
    assert_int_equal(n_false, 1);
    assert_int_equal(n_missed, 0);
}

/* Form, colour and nothing at all. */
static void test_what_is_not_the_same(void **state) {
    (void)state;
    kith_error err = {0};
    ki_resampler scratch = {0};
    ki_image image = {0}, small = {0};
    ki_signature one, wide, red, blank, black, none = {0};
    bool mirrored;
    read_image(in_folder("glyphs/glyph00000/00000.png"), &image);
    assert_ok(ki_signature_make(&image, &scratch, &small, &one, &err), &err);
    wide = one;
    wide.aspect *= 1.5F;
    assert_true(ki_signature_likeness(&one, &wide, &mirrored) == -1);
    red = one;
    memset(red.colour, 40, sizeof red.colour);
    assert_true(ki_signature_likeness(&one, &red, &mirrored) == -1);
    assert_true(ki_signature_likeness(&one, &none, &mirrored) == -1);
    assert_true(ki_signature_likeness(&one, &one, &mirrored) > 0.9999);
    assert_false(mirrored);
    memset(image.data, 200, (size_t)image.w * (size_t)image.h * (size_t)image.channels);
    assert_ok(ki_signature_make(&image, &scratch, &small, &blank, &err), &err);
    memset(image.data, 20, (size_t)image.w * (size_t)image.h * (size_t)image.channels);
    assert_ok(ki_signature_make(&image, &scratch, &small, &black, &err), &err);
    assert_true(ki_signature_likeness(&blank, &blank, &mirrored) == 1);
    assert_true(ki_signature_likeness(&blank, &black, &mirrored) == -1);
    assert_true(ki_signature_likeness(&one, &blank, &mirrored) == -1);
    ki_resampler_release(&scratch);
    ki_image_release(&image);
    ki_image_release(&small);
}

/* Two pictures in the same white frame, which is most of what can be seen from afar. */
static void test_frames(void **state) {
    (void)state;
    kith_error err = {0};
    ki_resampler scratch = {0};
    ki_image image = {0}, small = {0};
    ki_signature lying, standing;
    bool mirrored;
    for (int is_standing = 0; is_standing < 2; is_standing++) {
        assert_ok(ki_image_shape(&image, 96, 96, 1, &err), &err);
        for (int y = 0; y < 96; y++) {
            for (int x = 0; x < 96; x++) {
                const int along = is_standing ? y : x, across = is_standing ? x : y;
                const bool is_frame = x < 12 || x >= 84 || y < 12 || y >= 84;
                const bool is_bar = along >= 28 && along < 68 && across >= 44 && across < 52;
                image.data[y * 96 + x] = is_frame ? 255 : is_bar ? 130 : 90;
            }
        }
        assert_ok(ki_signature_make(&image, &scratch, &small, is_standing ? &standing : &lying, &err), &err);
    }
    const double likeness = ki_signature_likeness(&lying, &standing, &mirrored);
    if (likeness > 0.8) fail_msg("a lying and a standing bar in a frame: likeness %.4f", likeness);
    assert_true(ki_signature_likeness(&lying, &lying, &mirrored) > 0.9999);
    ki_resampler_release(&scratch);
    ki_image_release(&image);
    ki_image_release(&small);
}

/* A whole index: 24 drawings, of which three were changed and one copied. */
static void test_an_index(void **state) {
    (void)state;
    kith_error err = {0};
    ki_image image = {0};
    kith_index *index = NULL;
    kith_duplicates found = {0};
    if (testing_run(
            output, sizeof output,
            "cd %s && rm -rf g i.kith m.safetensors && %s synth g --classes 6 --images 4 --size 96 && "
            "cp g/glyph00004/00000.png g/glyph00005/copy.png && echo no > g/glyph00005/00001.png",
            testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    static const char *const names[] = {"g/glyph00000/half.jpg", "g/glyph00001/again.jpg",
                                        "g/glyph00002/mirror.jpg"};
    static const int which[] = {0, 2, 3};
    for (int i = 0; i < 3; i++) {
        char from[64];
        snprintf(from, sizeof from, "g/glyph%05d/00000.png", i);
        read_image(in_folder(from), &image);
        change_image(&image, &changes[which[i]], in_folder(names[i]));
    }
    ki_image_release(&image);
    if (testing_run(output, sizeof output,
                    "cd %s && %s embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save "
                    "m.safetensors && "
                    "%s index g -o i.kith --model m.safetensors",
                    testing_folder(), testing_program(), testing_program()) != 0)
        fail_msg("%s", output);
    assert_ok(kith_index_open(in_folder("i.kith"), KITH_INDEX_READ, &index, &err), &err);
    KITH_OPTIONS(kith_duplicates_options, options);
    assert_ok(kith_duplicates_find(index, &options, &found, &err), &err);
    assert_int_equal(found.n_groups, 4);
    assert_int_equal(found.begin[4], 8);
    assert_int_equal(found.n_looked_at, 27);
    assert_int_equal(found.n_unread, 0);
    int n_copies = 0, n_mirrored = 0;
    for (int64_t i = 0; i < 8; i++) {
        const bool is_first = i % 2 == 0;
        if (is_first) assert_true(found.pictures[i].likeness == 1);
        n_copies += !is_first && found.pictures[i].is_same_file;
        n_mirrored += found.pictures[i].is_mirrored;
    }
    assert_int_equal(n_copies, 1);
    assert_int_equal(n_mirrored, 1);
    kith_duplicates_release(&found);
    /* The copy's original is not of its class, so that each class alone has none. */
    options.where = "label = glyph00005";
    assert_ok(kith_duplicates_find(index, &options, &found, &err), &err);
    assert_int_equal(found.n_groups, 0);
    assert_int_equal(found.n_looked_at, 4);
    kith_duplicates_release(&found);
    options.where = NULL;
    options.least = 1.5;
    assert_int_equal(kith_duplicates_find(index, &options, &found, &err), KITH_EINVAL);
    kith_index_free(index);
}

/* A data set: the copy lies in the test classes, as its original does, and in another class. */
static void test_a_data_set(void **state) {
    (void)state;
    assert_int_equal(testing_run(output, sizeof output, "cd %s && %s data g --duplicates", testing_folder(),
                                 testing_program()),
                     0);
    if (!strstr(output,
                ", in several classes\n  test        g/glyph00004/00000.png\n  test        "
                "g/glyph00005/copy.png\n") ||
        !strstr(output,
                "g: 4 groups of 8 pictures that are the same, of 27 looked at; 0 in training and test, 1 in "
                "several "
                "classes\n"))
        fail_msg("%s", output);
    assert_int_equal(
        testing_run(output, sizeof output,
                    "cd %s && cp g/glyph00000/half.jpg g/glyph00005 && %s data g --duplicates --json",
                    testing_folder(), testing_program()),
        0);
    if (!strstr(output,
                "\"in_training_and_test\": true, \"in_several_classes\": true, \"pictures\": [{\"path\": "
                "\"g/glyph00000"))
        fail_msg("%s", output);
}

/* As a user types it. */
static void test_the_command(void **state) {
    (void)state;
    assert_int_equal(
        testing_run(output, sizeof output, "cd %s && %s search i.kith --duplicates --html d.html",
                    testing_folder(), testing_program()),
        0);
    if (!strstr(output, "group 1\n  first ") || !strstr(output, "  same file     1.0000 ") ||
        !strstr(output, " pictures that are the same, of 27 looked at\nd.html: the groups as pictures\n"))
        fail_msg("%s", output);
    assert_int_equal(testing_run(output, sizeof output, "cd %s && %s search i.kith --duplicates --json",
                                 testing_folder(), testing_program()),
                     0);
    if (!strstr(output, "{\"looked_at\": 27, \"unreadable\": 0, \"groups\": [[{\"id\": "))
        fail_msg("%s", output);
    assert_int_equal(testing_run(output, sizeof output, "cd %s && %s search i.kith g --duplicates",
                                 testing_folder(), testing_program()),
                     2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawings),
                                       cmocka_unit_test(test_photos),
                                       cmocka_unit_test(test_what_is_not_the_same),
                                       cmocka_unit_test(test_frames),
                                       cmocka_unit_test(test_an_index),
                                       cmocka_unit_test(test_the_command),
                                       cmocka_unit_test(test_a_data_set)};
    const int n_failed = cmocka_run_group_tests_name("search/duplicates", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
