/* Images: the corpus, refusals, limits, round trips. */
#include "data/image/heif_order.h"
#include "data/image/image.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kith/array.h"
#include "kith/log.h"
#include "support/hostile.h"
#include "support/testing.h"

static const ki_decode plain = {.background = {40, 90, 200}};

static const char *corpus(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/test/corpus/image/%s", KITH_SOURCE_DIR, name);
    return path;
}

/* Decode from a block of exactly the file's size: the sanitizer then sees reads behind the end. */
static kith_status decode(const char *name, const ki_decode *how, ki_image *image, kith_error *err) {
    ki_bytes bytes = {0};
    assert_ok(ki_bytes_read(&bytes, corpus(name), err), err);
    uint8_t *exact = malloc(bytes.n ? bytes.n : 1);
    assert_non_null(exact);
    memcpy(exact, bytes.data, bytes.n);
    const kith_status status = ki_image_decode(exact, bytes.n, how, image, err);
    int32_t w = 0, h = 0;
    if (status == KITH_OK && how->least_side == 0) {
        assert_ok(ki_image_probe(exact, bytes.n, &w, &h, err), err);
        assert_int_equal(w, image->w);
        assert_int_equal(h, image->h);
    } else {
        ki_image_probe(exact, bytes.n, &w, &h, NULL);
    }
    free(exact);
    ki_bytes_release(&bytes);
    return status;
}

/* Chroma upsampling and colour conversion may differ by a rounding between versions of libjpeg. */
static void assert_close(const char *name, const ki_image *image, const kith_array *want) {
    assert_int_equal(want->n_dims, 3);
    if (image->h != want->dim[0] || image->w != want->dim[1] || image->channels != want->dim[2])
        fail_msg("%s is %dx%d with %d channels; wanted %dx%d with %d", name, image->w, image->h,
                 image->channels, (int)want->dim[1], (int)want->dim[0], (int)want->dim[2]);
    const int most = strstr(name, ".jpg") || strstr(name, "lossy") ? 2 : 0;
    const uint8_t *pixels = want->data;
    for (int64_t i = 0; i < kith_array_count(want); i++) {
        if (abs(image->data[i] - pixels[i]) > most)
            fail_msg("%s: byte %d is %d; wanted %d (± %d)", name, (int)i, image->data[i], pixels[i], most);
    }
}

static bool is_heif(const char *name) { return strstr(name, ".heic") || strstr(name, ".avif"); }

static void test_corpus(void **state) {
    (void)state;
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    DIR *dir = opendir(corpus(""));
    assert_non_null(dir);
    int n_ok = 0, n_bad = 0;
    ki_image image = {0};
    for (struct dirent *file; (file = readdir(dir));) {
        const char *name = file->d_name;
        kith_error err = {0};
        if (is_heif(name) && !KITH_HEIF) continue;
        if (strncmp(name, "ok_", 3) == 0) {
            char path[4096];
            kith_array want = {0};
            snprintf(path, sizeof path, "%s/test/golden/data/decode/%s.npy", KITH_SOURCE_DIR, name);
            assert_ok(kith_npy_read(path, &want, &err), &err);
            if (decode(name, &plain, &image, &err) != KITH_OK)
                fail_msg("%s was refused: %s", name, err.message);
            assert_close(name, &image, &want);
            kith_array_release(&want);
            n_ok++;
        } else if (strncmp(name, "bad_", 4) == 0) {
            if (decode(name, &plain, &image, &err) == KITH_OK)
                fail_msg("%s was read; it must be refused", name);
            assert_true(err.message[0] != '\0');
            print_message("%s: %s\n", name, err.message);
            n_bad++;
        }
    }
    closedir(dir);
    ki_image_release(&image);
    print_message("%d read, %d refused\n", n_ok, n_bad);
    assert_true(n_ok >= (KITH_HEIF ? 35 : 33) && n_bad >= 17);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

/* A chunk of 67 bytes' file says that it holds a gigabyte. */
static void test_png_promises(void **state) {
    (void)state;
    kith_memory_stats before, after;
    ki_image image = {0};
    kith_error err = {0};
    kith_memory_stats_get(&before);
    assert_int_equal(decode("bad_exif_length.png", &plain, &image, &err), KITH_EFORMAT);
    kith_memory_stats_get(&after);
    assert_true(after.n_allocations - before.n_allocations > 4); /* libpng's memory is counted */
    if (after.peak_bytes - before.live_bytes > 16 << 20)
        fail_msg("%zu bytes of memory", (size_t)(after.peak_bytes - before.live_bytes));
    ki_image_release(&image);
}

static void test_refusals_say_why(void **state) {
    (void)state;
    static const struct {
        const char *name;
        kith_status status;
        const char *text;
    } rows[] =
    { {"bad_bomb.jpg", KITH_EINVAL, "JPEG: the image is 65000 x 65000 pixels; the limit is 100000000 pixels"},
      {"bad_bomb.png", KITH_EINVAL, "PNG: the image is 60000 x 60000 pixels; the limit is 100000000 pixels"},
      {"bad_cut.jpg", KITH_EFORMAT, "JPEG: the file ends before the image does"},
      {"bad_cut.png", KITH_EFORMAT, "PNG: the file ends before the image does"},
      {"bad_animated.webp", KITH_EUNSUPPORTED, "WebP: animated images are not read"},
      {"bad_empty.jpg", KITH_EFORMAT, "the file is empty"},
      {"bad_gif.png", KITH_EUNSUPPORTED, "the file is a GIF; read are " KI_IMAGE_FORMATS},
      {"bad_text.jpg", KITH_EUNSUPPORTED, "the file begins with byte 0x6e and is none of " KI_IMAGE_FORMATS},
#if KITH_HEIF
      {"bad_bomb.heic", KITH_EINVAL,
       "HEIF: the image is 30000 x 30000 pixels; the limit is 100000000 pixels"},
      {"bad_bomb.avif", KITH_EINVAL,
       "HEIF: the image is 30000 x 30000 pixels; the limit is 100000000 pixels"},
      {"bad_film.heic", KITH_EUNSUPPORTED, "the file is a video; read are " KI_IMAGE_FORMATS},
#endif
    };
    ki_image image = {0};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        assert_int_equal(decode(rows[i].name, &plain, &image, &err), rows[i].status);
        assert_string_equal(err.message, rows[i].text);
    }
    ki_image_release(&image);
}

/* A pipe among the images that nobody writes into is not waited for. */
static void test_a_pipe_is_no_image(void **state) {
    (void)state;
    ki_bytes bytes = {0};
    kith_error err = {0};
    char path[600];
    snprintf(path, sizeof path, "%s/pipe.jpg", testing_folder());
    assert_int_equal(0, mkfifo(path, 0600));
    alarm(20); /* ends the program if it waits after all */
    assert_int_equal(ki_bytes_read(&bytes, path, &err), KITH_EIO);
    alarm(0);
    if (!strstr(err.message, "it is a pipe, wanted a file")) fail_msg("%s", err.message);
}

/* What --check and training would refuse for its size, a look at the header refuses too. */
static void test_the_header_tells_of_bombs(void **state) {
    (void)state;
    static const char *const names[] = {"bad_bomb.jpg", "bad_bomb.png", "bad_bomb.heic", "bad_bomb.avif"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        ki_bytes bytes = {0};
        kith_error err = {0};
        int32_t w = 0, h = 0;
        if (is_heif(names[i]) && !KITH_HEIF) continue;
        assert_ok(ki_bytes_read(&bytes, corpus(names[i]), &err), &err);
        const kith_status status = ki_image_probe(bytes.data, bytes.n, &w, &h, &err);
        if (status != KITH_EINVAL || !strstr(err.message, "the limit is 100000000 pixels"))
            fail_msg("%s: %s %s", names[i], kith_status_name(status), err.message);
        ki_bytes_release(&bytes);
    }
}

static void test_pixel_limit(void **state) {
    (void)state;
    ki_image image = {0};
    kith_error err = {0};
    static const char *const names[] = {"ok_rgb.jpg", "ok_rgb.png", "ok_lossless.webp"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        const ki_decode at = {.most_pixels = 27 * 18}, below = {.most_pixels = 27 * 18 - 1};
        assert_ok(decode(names[i], &at, &image, &err), &err);
        assert_int_equal(decode(names[i], &below, &image, &err), KITH_EINVAL);
    }
    ki_image_release(&image);
}

/* 27 x 18: half is 14 x 9, a quarter 7 x 5, an eighth 4 x 3. */
static void test_scaled_decode(void **state) {
    (void)state;
    static const struct {
        int32_t least, w, h;
    } rows[] = {{0, 27, 18}, {18, 27, 18}, {10, 27, 18}, {9, 14, 9},
                {6, 14, 9},  {5, 7, 5},    {3, 4, 3},    {1, 4, 3}};
    ki_image image = {0};
    kith_error err = {0};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const ki_decode how = {.least_side = rows[i].least};
        assert_ok(decode("ok_rgb.jpg", &how, &image, &err), &err);
        assert_int_equal(image.w, rows[i].w);
        assert_int_equal(image.h, rows[i].h);
        assert_int_equal(image.full_w, 27);
        assert_int_equal(image.full_h, 18);
        assert_ok(decode("ok_exif_6.jpg", &how, &image, &err), &err); /* stands on its side */
        assert_int_equal(image.w, rows[i].h);
        assert_int_equal(image.h, rows[i].w);
        assert_int_equal(image.full_w, 18);
    }
    ki_image_release(&image);
}

static void test_png_round_trip(void **state) {
    (void)state;
    ki_image image = {0}, back = {0};
    ki_bytes bytes = {0};
    kith_error err = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        assert_ok(ki_image_shape(&image, 31, 17, channels, &err), &err);
        for (int i = 0; i < 31 * 17 * channels; i++) image.data[i] = (uint8_t)(i * 37);
        assert_ok(ki_png_encode(&image, &bytes, &err), &err);
        assert_ok(ki_image_decode(bytes.data, bytes.n, &plain, &back, &err), &err);
        assert_int_equal(back.channels, channels);
        assert_memory_equal(back.data, image.data, 31 * 17 * (size_t)channels);
    }
    ki_image_release(&image);
    ki_image_release(&back);
    ki_bytes_release(&bytes);
}

/* A smooth image comes back nearly as it went in. */
static void test_jpeg_round_trip(void **state) {
    (void)state;
    ki_image image = {0}, back = {0};
    ki_bytes bytes = {0};
    kith_error err = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int32_t side = 8; side <= 200; side += 64) {
            assert_ok(ki_image_shape(&image, side, side + 3, channels, &err), &err);
            for (int32_t i = 0; i < side * (side + 3); i++) {
                for (int c = 0; c < channels; c++)
                    image.data[i * channels + c] = (uint8_t)(40 + 80 * c / 3 + 150 * (i % side) / side);
            }
            assert_ok(ki_jpeg_encode(&image, 95, &bytes, &err), &err);
            assert_ok(ki_image_decode(bytes.data, bytes.n, &plain, &back, &err), &err);
            assert_int_equal(back.channels, channels);
            assert_int_equal(back.w, side);
            assert_int_equal(back.h, side + 3);
            for (int32_t i = 0; i < side * (side + 3) * channels; i++) {
                if (abs(back.data[i] - image.data[i]) > 8)
                    fail_msg("%d channels, byte %d: %d; wanted %d", channels, i, back.data[i], image.data[i]);
            }
        }
    }
    /* Every allocation may fail, and later ones go on in the same bytes. */
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = ki_jpeg_encode(&image, 95, &bytes, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
    assert_ok(ki_image_decode(bytes.data, bytes.n, &plain, &back, &err), &err);
    ki_image_release(&image);
    ki_image_release(&back);
    ki_bytes_release(&bytes);
}

/* Every allocation of a decode may fail: an error, nothing lost, nothing half-made. */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const names[] = {"ok_rgb.jpg", "ok_cmyk_adobe.jpg", "ok_exif_6.jpg", "ok_rgba.png",
                                        "ok_alpha.webp"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        ki_bytes bytes = {0};
        kith_error err = {0};
        assert_ok(ki_bytes_read(&bytes, corpus(names[i]), &err), &err);
        bool has_failed = true;
        for (int64_t n = 0; has_failed && n < 50; n++) {
            kith_memory_stats before, after;
            kith_memory_stats_get(&before);
            ki_image image = {0};
            ki_alloc_fail_after(n);
            const kith_status status = ki_image_decode(bytes.data, bytes.n, &plain, &image, &err);
            has_failed = ki_alloc_failed();
            ki_alloc_fail_after(-1);
            assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
            ki_image_release(&image);
            kith_memory_stats_get(&after);
            assert_int_equal(after.live_bytes, before.live_bytes);
        }
        assert_false(has_failed);
        ki_bytes_release(&bytes);
    }
}

static void test_cut_anywhere(void **state) {
    (void)state;
    static const char *const names[] = {
        "ok_rgb.jpg",
        "ok_progressive.jpg",
        "ok_interlaced.png",
        "ok_lossy.webp",
#if KITH_HEIF
        "ok_lossy_irot_90.heic",
        "ok_lossy_alpha.avif",
#endif
    };
    ki_image image = {0};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        ki_bytes bytes = {0};
        kith_error err = {0};
        assert_ok(ki_bytes_read(&bytes, corpus(names[i]), &err), &err);
        int n_read = 0;
        for (size_t n = 0; n < bytes.n; n++) {
            uint8_t *exact = malloc(n + 1);
            memcpy(exact, bytes.data, n);
            n_read += ki_image_decode(exact, n, &plain, &image, &err) == KITH_OK;
            free(exact);
        }
        print_message("%s: %d of %zu cuts still read\n", names[i], n_read, bytes.n);
        assert_int_equal(n_read, 0);
        ki_bytes_release(&bytes);
    }
    ki_image_release(&image);
}

/* Which of two orders a file's properties have, by its bytes alone: those of libheif 1.15, or the standard's. The first is mended into the
 * second. Cut off or damaged anywhere, nothing outside of the bytes is touched. */
static void test_order_of_properties(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool turns_first;
    } row[] = {{"ok_lossy_irot_first.heic", true}, {"ok_lossy_irot_first.avif", true},
               {"ok_lossy_irot_90.heic", false},   {"ok_lossy_irot_90.avif", false},
               {"ok_lossy_444.heic", false},       {"ok_rgb.jpg", false}};
    for (size_t i = 0; i < N_ROWS(row); i++) {
        ki_bytes bytes = {0};
        kith_error err = {0};
        assert_ok(ki_bytes_read(&bytes, corpus(row[i].name), &err), &err);
        if (ki_heif_turns_first(bytes.data, bytes.n, NULL) != row[i].turns_first)
            fail_msg("%s: wanted %d", row[i].name, row[i].turns_first);
        uint8_t *mended = malloc(bytes.n);
        memcpy(mended, bytes.data, bytes.n);
        ki_heif_turns_first(bytes.data, bytes.n, mended);
        assert_false(ki_heif_turns_first(mended, bytes.n, NULL));
        assert_int_equal(memcmp(mended, bytes.data, bytes.n) != 0, row[i].turns_first);
        free(mended);
        int n_still = 0;
        for (size_t n = 0; n < bytes.n; n++) {
            uint8_t *exact = malloc(n + 1);
            memcpy(exact, bytes.data, n);
            n_still += ki_heif_turns_first(exact, n, NULL);
            if (n > 0) exact[n / 2] ^= (uint8_t)(1 << n % 8);
            uint8_t *copy = malloc(n + 1);
            memcpy(copy, exact, n);
            ki_heif_turns_first(exact, n, copy);
            free(copy);
            free(exact);
        }
        assert_true(row[i].turns_first ? n_still > 0 : n_still == 0);
        ki_bytes_release(&bytes);
    }
}

/* Passes over the pixels and their number are limited together: a small image may have many scans, a large one may not. */
static void test_scans_and_pixels(void **state) {
    (void)state;
    static const struct {
        int side, n_scans;
        const char *why; /* NULL: it is decoded */
    } row[] = {{64, 200, NULL},
               {64, 201, "more than 200 scans of 64 x 64 pixels"},
               {7000, 20, NULL},
               {7000, 21, "more than 20 scans of 7000 x 7000 pixels"}};
    for (size_t i = 0; i < N_ROWS(row); i++) {
        hostile_file f = hostile_jpeg(row[i].side, row[i].n_scans);
        ki_image image = {0};
        kith_error err = {0};
        const ki_decode how = {.least_side = 1};
        const kith_status status = ki_image_decode(f.bytes, f.n, &how, &image, &err);
        if (!row[i].why) {
            assert_ok(status, &err);
        } else {
            assert_int_equal(status, KITH_EFORMAT);
            if (!strstr(err.message, row[i].why)) fail_msg("'%s', wanted '%s'", err.message, row[i].why);
        }
        ki_image_release(&image);
        free(f.bytes);
    }
}

/* What decoding will take is known from the header, and is not less than what it takes. */
static void test_bytes_of_decoding(void **state) {
    (void)state;
    DIR *folder = opendir(corpus(""));
    int n_tried = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "ok_", 3) != 0 || is_heif(entry->d_name)) continue;
        ki_bytes bytes = {0};
        ki_image image = {0};
        kith_error err = {0};
        int64_t needed = 0;
        assert_ok(ki_bytes_read(&bytes, corpus(entry->d_name), &err), &err);
        assert_ok(ki_image_decode_bytes(bytes.data, bytes.n, &plain, &needed, &err), &err);
        assert_ok(ki_image_decode(bytes.data, bytes.n, &plain, &image, &err), &err);
        if (needed < (int64_t)image.w * image.h * image.channels)
            fail_msg("%s: %lld bytes for %d x %d", entry->d_name, (long long)needed, image.w, image.h);
        n_tried++;
        ki_image_release(&image);
        ki_bytes_release(&bytes);
    }
    closedir(folder);
    assert_true(n_tried > 15);
    /* Coefficients of three channels, two bytes each, and an eighth of the pixels across and down. */
    hostile_file f = hostile_jpeg(800, 5);
    const ki_decode small = {.least_side = 64};
    int64_t needed = 0;
    kith_error err = {0};
    assert_ok(ki_image_decode_bytes(f.bytes, f.n, &small, &needed, &err), &err);
    assert_int_equal(needed, 3 * 2 * 800 * 800 + 3 * 100 * 100);
    free(f.bytes);
}

/* Whatever the file is called, the message names what it is. */
static void test_other_formats_are_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } rows[] = {{"GIF89a..........", 16, "a GIF"},
                {"BM\x36\x10\0\0\0\0\0\0\x36\0\0\0\x28\0", 16, "a BMP"},
                {"BMW is a car.....", 16, NULL},
                {"II*\0\x08\0\0\0........", 16, "a TIFF or a camera's raw file"},
                {"MM\0*\0\0\0\x08........", 16, "a TIFF or a camera's raw file"},
                {"II*\0\x10\0\0\0CR\2\0....", 16, "a camera's raw file (CR2)"},
                {"\0\0\0\x18"
                 "ftypcrx \0\0\0\1",
                 16, "a camera's raw file (CR3)"},
                {"FUJIFILMCCD-RAW ", 16, "a camera's raw file (RAF)"},
                {"\0\0\0\x14"
                 "ftypqt  \0\0\0\0",
                 16, "a video"},
                {"RIFF\0\1\0\0AVI LIST", 16, "a video"},
                {"%PDF-1.4 .......", 16, "a PDF"},
                {"GI", 2, NULL}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        int32_t w = 0, h = 0;
        char wanted[200];
        if (rows[i].what)
            snprintf(wanted, sizeof wanted, "the file is %s; read are " KI_IMAGE_FORMATS, rows[i].what);
        else
            snprintf(wanted, sizeof wanted,
                     "the file begins with byte 0x%02x and is none of " KI_IMAGE_FORMATS,
                     (unsigned)(unsigned char)rows[i].bytes[0]);
        const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
        assert_int_equal(ki_image_probe(bytes, rows[i].n, &w, &h, &err), KITH_EUNSUPPORTED);
        assert_string_equal(err.message, wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_promises),
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_refusals_say_why),
        cmocka_unit_test(test_pixel_limit),
        cmocka_unit_test(test_the_header_tells_of_bombs),
        cmocka_unit_test(test_a_pipe_is_no_image),
        cmocka_unit_test(test_scaled_decode),
        cmocka_unit_test(test_png_round_trip),
        cmocka_unit_test(test_jpeg_round_trip),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_scans_and_pixels),
        cmocka_unit_test(test_bytes_of_decoding),
        cmocka_unit_test(test_other_formats_are_named),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_order_of_properties),
    };
    return cmocka_run_group_tests_name("data/image", tests, NULL, NULL);
}
