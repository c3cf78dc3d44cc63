/* Facts of photos: every field in both byte orders and all containers, what is no fact, and hostile bytes. */
#include "data/image/facts.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "data/image/image.h"
#include "made_exif.h"
#include "support/testing.h"

static const uint8_t jpeg_head[] = {0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0};

/* Of exactly so many bytes, so that a sanitizer sees what lies behind them. */
static ki_photo_facts facts_of(const uint8_t *bytes, size_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    ki_photo_facts facts;
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    ki_photo_facts_read(exact, n, &facts);
    free(exact);
    return facts;
}

/* In a JPEG, behind a segment of another kind. */
static ki_photo_facts facts_of_block(const uint8_t *block, size_t n) {
    static uint8_t bytes[1 << 17];
    memcpy(bytes, jpeg_head, sizeof jpeg_head);
    const size_t n_app1 = made_app1(block, n, bytes + sizeof jpeg_head);
    return facts_of(bytes, sizeof jpeg_head + n_app1);
}

static ki_photo_facts facts_of_made(const made_exif *x) {
    uint8_t block[MADE_EXIF_BYTES];
    return facts_of_block(block, made_block(x, block));
}

static void assert_all(const ki_photo_facts *f) {
    assert_string_equal(f->taken, "2021-05-03T14:07:22+02:00");
    assert_string_equal(f->camera, "Canon EOS R6");
    assert_string_equal(f->lens, "RF24-105mm F4 L IS USM");
    assert_true(fabs(f->latitude + 33.85875) < 1e-9);
    assert_true(fabs(f->longitude - 151.2) < 1e-9);
    assert_true(f->altitude == 58.5);
}

static void assert_none(const ki_photo_facts *f) {
    assert_string_equal(f->taken, "");
    assert_string_equal(f->camera, "");
    assert_string_equal(f->lens, "");
    assert_true(isnan(f->latitude) && isnan(f->longitude) && isnan(f->altitude));
}

static void test_both_orders(void **state) {
    (void)state;
    for (int big = 0; big < 2; big++) {
        made_exif x;
        made_all(&x, big);
        const ki_photo_facts f = facts_of_made(&x);
        assert_all(&f);
    }
}

static size_t put_box(uint8_t *to, const char *name, const uint8_t *contents, size_t n) {
    made_be(to, n + 8, 4);
    memcpy(to + 4, name, 4);
    if (n > 0) memmove(to + 8, contents, n);
    return n + 8;
}

static void test_containers(void **state) {
    (void)state;
    made_exif x;
    uint8_t block[MADE_EXIF_BYTES], bytes[2 * MADE_EXIF_BYTES] = {0};
    made_all(&x, true);
    const size_t n = made_block(&x, block);
    /* PNG: behind the pixels */
    memcpy(bytes, "\x89PNG\r\n\x1a\n\0\0\0\3IDATabc\0\0\0\0", 23);
    made_be(bytes + 23, n, 4);
    memcpy(bytes + 27, "eXIf", 4);
    memcpy(bytes + 31, block, n);
    ki_photo_facts f = facts_of(bytes, 31 + n + 4);
    assert_all(&f);
    /* WebP: chunks of an odd length are padded; some writers put Exif before the block */
    memcpy(bytes, "RIFF\0\0\0\0WEBPVP8 \3\0\0\0abc\0EXIF", 28);
    bytes[28] = (uint8_t)((n + 6) & 255), bytes[29] = (uint8_t)((n + 6) >> 8), bytes[30] = bytes[31] = 0;
    memcpy(bytes + 32, "Exif\0\0", 6);
    memcpy(bytes + 38, block, n);
    f = facts_of(bytes, 38 + n);
    assert_all(&f);
    /* HEIC: ftyp, meta (iinf with two items, iloc), then the item: four bytes, "Exif", the block */
    uint8_t infe[64] = {2, 0, 0, 0, 0, 7, 0, 0}, iinf[256] = {0, 0, 0, 0, 0, 2}, meta[1024] = {0},
            iloc[64] = {0};
    size_t n_iinf = 6, n_meta = 4;
    memcpy(infe + 8, "hvc1", 5);
    n_iinf += put_box(iinf + n_iinf, "infe", infe, 13);
    infe[5] = 9;
    memcpy(infe + 8, "Exif", 5);
    n_iinf += put_box(iinf + n_iinf, "infe", infe, 13);
    n_meta += put_box(meta + n_meta, "iinf", iinf, n_iinf);
    iloc[4] = 0x44; /* offset and length of 4 bytes */
    made_be(iloc + 6, 1, 2);
    made_be(iloc + 8, 9, 2);
    made_be(iloc + 12, 1, 2); /* extents, behind the number of the data reference */
    const size_t offset = 16 + 8 + n_meta + 8 + 22;
    made_be(iloc + 14, offset, 4);
    made_be(iloc + 18, 4 + 6 + n, 4);
    n_meta += put_box(meta + n_meta, "iloc", iloc, 22);
    memset(bytes, 0, sizeof bytes);
    size_t at = put_box(bytes, "ftyp", (const uint8_t *)"heic\0\0\0\0", 8);
    at += put_box(bytes + at, "meta", meta, n_meta);
    assert_int_equal(at, offset);
    memcpy(bytes + at, "\0\0\0\6Exif\0\0", 10);
    memcpy(bytes + at + 10, block, n);
    f = facts_of(bytes, at + 10 + n);
    assert_all(&f);
    for (size_t k = 0; k < at + 10 + n; k++) facts_of(bytes, k);
}

static void test_cameras(void **state) {
    (void)state;
    static const char *const rows[][3] = {{"NIKON CORPORATION", "NIKON D750", "NIKON D750"},
                                          {"OLYMPUS IMAGING CORP.  ", "E-M10", "OLYMPUS E-M10"},
                                          {"Apple", "iPhone 12", "Apple iPhone 12"},
                                          {"", "DMC-FZ50", "DMC-FZ50"},
                                          {"SONY", "", "SONY"},
                                          {"samsung", "SAMSUNG EK-GC100", "SAMSUNG EK-GC100"},
                                          {"  two  words ", "x", "two words x"},
                                          {"bad\x01", "\xff\xfe", ""},
                                          {"Möwe", "1", "Möwe 1"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        made_exif x = {.is_big_endian = i % 2 == 0};
        made_ascii(&x, 0, 0x10f, rows[i][0]);
        made_ascii(&x, 0, 0x110, rows[i][1]);
        const ki_photo_facts f = facts_of_made(&x);
        assert_string_equal(f.camera, rows[i][2]);
    }
}

static void test_dates(void **state) {
    (void)state;
    static const char *const rows[][3] = {{"2021:05:03 14:07:22", "", "2021-05-03T14:07:22"},
                                          {"2021-05-03 14:07:22", "Z", "2021-05-03T14:07:22"},
                                          {"2021:05:03 14:07:22", "-09:30", "2021-05-03T14:07:22-09:30"},
                                          {"2021:05:03 14:07:22", "+25:00", "2021-05-03T14:07:22"},
                                          {"0000:00:00 00:00:00", "", ""},
                                          {"2021:13:03 14:07:22", "", ""},
                                          {"2021:02:30 14:07:22", "", ""},
                                          {"2021:05:03 24:07:22", "", ""},
                                          {"2021:05:03", "", ""},
                                          {"    :  :     :  :  ", "", ""},
                                          {"2021x05y03 14:07:22", "", ""}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        made_exif x = {.is_big_endian = i % 2 == 0};
        made_ascii(&x, 1, 0x9003, rows[i][0]);
        if (*rows[i][1]) made_ascii(&x, 1, 0x9011, rows[i][1]);
        const ki_photo_facts f = facts_of_made(&x);
        assert_string_equal(f.taken, rows[i][2]);
    }
}

static ki_photo_facts at_place(const char *ns, const uint32_t lat[6], const char *ew, const uint32_t lon[6]) {
    made_exif x = {0};
    made_ascii(&x, 2, 1, ns);
    made_rational(&x, 2, 2, lat, 3);
    made_ascii(&x, 2, 3, ew);
    made_rational(&x, 2, 4, lon, 3);
    return facts_of_made(&x);
}

static void test_places(void **state) {
    (void)state;
    const uint32_t ten[6] = {10, 1, 30, 1, 0, 1}, none[6] = {0, 0, 0, 0, 0, 0}, zero[6] = {0, 1, 0, 1, 0, 1},
                   far[6] = {91, 1, 0, 1, 0, 1}, huge[6] = {UINT32_MAX, 1, UINT32_MAX, 1, UINT32_MAX, 1},
                   by_zero[6] = {10, 1, 30, 0, 0, 1}, open_minutes[6] = {10, 1, 0, 0, 0, 0};
    ki_photo_facts f = at_place("N", ten, "W", ten);
    assert_true(f.latitude == 10.5 && f.longitude == -10.5 && isnan(f.altitude));
    f = at_place("S", zero, "W", ten);
    assert_true(f.latitude == 0 && !signbit(f.latitude));
    f = at_place("N", open_minutes, "E", ten);
    assert_true(f.latitude == 10);
    const struct {
        const char *ns, *ew;
        const uint32_t *lat, *lon;
    } bad[] = {{"N", "E", none, none}, {"N", "E", zero, zero},   {"N", "E", far, ten},
               {"N", "E", huge, huge}, {"X", "E", ten, ten},     {"", "E", ten, ten},
               {"NN", "E", ten, ten},  {"N", "E", ten, by_zero}, {"N", "E", ten, none},
               {"E", "N", ten, ten}};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        f = at_place(bad[i].ns, bad[i].lat, bad[i].ew, bad[i].lon);
        assert_true(isnan(f.latitude) && isnan(f.longitude));
    }
}

/* Cut everywhere, and with each byte another one: something or nothing is found, and nothing else happens. */
static void test_damaged(void **state) {
    (void)state;
    made_exif x;
    uint8_t block[MADE_EXIF_BYTES];
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    made_all(&x, false);
    const size_t n = made_block(&x, block);
    for (size_t k = 0; k < n; k++) facts_of_block(block, k);
    for (size_t k = 0; k < n; k++) {
        const uint8_t was = block[k];
        for (int bit = 0; bit < 8; bit++) {
            block[k] = (uint8_t)(was ^ 1u << bit);
            const ki_photo_facts f = facts_of_block(block, n);
            assert_true(strlen(f.camera) < sizeof f.camera && !(f.latitude > 90));
        }
        block[k] = was;
    }
    for (int i = 0; i < 20000; i++) {
        uint8_t other[MADE_EXIF_BYTES];
        memcpy(other, block, n);
        for (int k = 0; k < 8; k++) other[ki_rng_below(&rng, (uint32_t)n)] = (uint8_t)ki_rng_below(&rng, 256);
        facts_of_block(other, n);
    }
}

/* Directories that name themselves, counts and offsets of 32 bits. */
static void test_hostile(void **state) {
    (void)state;
    made_exif x;
    uint8_t block[MADE_EXIF_BYTES];
    made_all(&x, true);
    size_t n = made_block(&x, block);
    for (size_t at = 10; at < 10 + 4 * 12; at += 12) { /* EXIF and GPS are the first directory again */
        if (block[at] == 0x87 || block[at] == 0x88) made_be(block + at + 8, 8, 4);
    }
    ki_photo_facts f = facts_of_block(block, n);
    assert_string_equal(f.camera, "Canon EOS R6");
    assert_true(isnan(f.latitude));
    n = made_block(&x, block);
    made_be(block + 8, 65535, 2); /* entries */
    f = facts_of_block(block, n);
    assert_string_equal(f.camera, "Canon EOS R6");
    n = made_block(&x, block);
    made_be(block + 4, 0xfffffffe, 4); /* the first directory */
    f = facts_of_block(block, n);
    assert_none(&f);
    n = made_block(&x, block);
    made_be(block + 10 + 4, 0xffffffff, 4); /* the maker's length */
    f = facts_of_block(block, n);
    assert_string_equal(f.camera, "Canon EOS R6");
    f = facts_of((const uint8_t *)"", 0);
    assert_none(&f);
    ki_photo_facts_read(NULL, 0, &f);
    assert_none(&f);
    ki_photo_facts_of_file("/nowhere/at all.jpg", &f);
    assert_none(&f);
}

/* HEIC: items without bytes by the million must not take minutes. */
static void test_many_extents(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    uint8_t *bytes = calloc(N + 200, 1), infe[16] = {2, 0, 0, 0, 0xff, 0xff, 0, 0},
            iinf[64] = {0, 0, 0, 0, 0, 1};
    assert_non_null(bytes);
    memcpy(infe + 8, "Exif", 5);
    const size_t n_iinf = 6 + put_box(iinf + 6, "infe", infe, 13);
    size_t at = put_box(bytes, "ftyp", (const uint8_t *)"heic\0\0\0\0", 8);
    uint8_t *meta = bytes + at;
    size_t n = 12 + put_box(meta + 12, "iinf", iinf, n_iinf);
    uint8_t *iloc = meta + n;
    memset(iloc + 8, 0, 4);
    memcpy(iloc + 4, "iloc", 4);
    made_be(iloc + 14, 65535, 2);
    memset(iloc + 16, 0xfe, N - n - 100); /* items of 65,278 extents of nothing */
    made_be(iloc, N - n - 84, 4);
    made_be(meta, N, 4);
    memcpy(meta + 4, "meta", 4);
    const ki_photo_facts f = facts_of(bytes, at + N);
    assert_none(&f);
    free(bytes);
}

/* Every file of test/corpus/facts: ok_ has facts, none_ has not. */
static void test_corpus(void **state) {
    (void)state;
    char folder[4096];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/test/corpus/facts", KITH_SOURCE_DIR);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char path[8192];
        ki_photo_facts f;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        ki_photo_facts_of_file(path, &f);
        if (strncmp(e->d_name, "ok_", 3) == 0)
            assert_all(&f);
        else
            assert_none(&f);
        n++;
    }
    closedir(dir);
    assert_true(n >= 5);
}

/* KITH_MAKE_CORPUS=FOLDER writes it. */
static void make_corpus(const char *folder) {
    for (int big = 0; big < 2; big++) {
        made_exif x;
        uint8_t bytes[MADE_EXIF_BYTES + 64], block[MADE_EXIF_BYTES];
        char path[4096];
        made_all(&x, big);
        const size_t n = made_block(&x, block);
        memcpy(bytes, jpeg_head, sizeof jpeg_head);
        const size_t n_all = sizeof jpeg_head + made_app1(block, n, bytes + sizeof jpeg_head);
        snprintf(path, sizeof path, "%s/ok_%s.jpg", folder, big ? "big" : "little");
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(bytes, 1, n_all, out), n_all);
        fclose(out);
    }
}

int main(void) {
    if (getenv("KITH_MAKE_CORPUS")) make_corpus(getenv("KITH_MAKE_CORPUS"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_orders), cmocka_unit_test(test_containers),
        cmocka_unit_test(test_cameras),     cmocka_unit_test(test_dates),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_hostile),     cmocka_unit_test(test_many_extents),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
