/* Unpacking: the same bytes whatever the pieces they are asked for in, members one after another, and what is said of
 * streams that are cut off or damaged. */
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "io/inflate.h"
#include "kith/log.h"
#include "support/testing.h"

enum { N = 40000, MOST_PACKED = 3 * N, ZLIB = MAX_WBITS, GZIP = MAX_WBITS + 16 };

static unsigned char text[N], out[3 * N];

static void fill(void) {
    uint32_t v = 1;
    for (int i = 0; i < N; i++) v = v * 1664525u + 1013904223u, text[i] = (unsigned char)(v >> 28);
}

static size_t pack(int wrapper, unsigned char *to) {
    z_stream z = {.next_in = text, .avail_in = N, .next_out = to, .avail_out = MOST_PACKED};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, wrapper, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t n = MOST_PACKED - z.avail_out;
    deflateEnd(&z);
    return n;
}

/* Everything the stream has, in pieces of `piece` bytes; how much that was in *ret_n. */
static kith_status unpack(const void *packed, size_t n_packed, size_t piece, size_t *ret_n, kith_error *err) {
    ki_inflate *in = NULL;
    kith_status status = ki_inflate_new(packed, n_packed, "stream", &in, err);
    *ret_n = 0;
    memset(out, 0, sizeof out);
    for (size_t got = piece; status == KITH_OK && got == piece; *ret_n += got) {
        got = 0;
        if (*ret_n + piece > sizeof out) fail_msg("more than %zu bytes come out", *ret_n);
        status = ki_inflate_read(in, out + *ret_n, piece, &got, err);
    }
    ki_inflate_free(in);
    return status;
}

static void test_pieces(void **state) {
    (void)state;
    static unsigned char packed[2 * MOST_PACKED];
    static const size_t pieces[] = {1, 7, 4096, N - 1, N, N + 1};
    fill();
    for (int gzip = 0; gzip <= 1; gzip++) {
        const size_t n_packed = pack(gzip ? GZIP : ZLIB, packed);
        assert_int_equal(ki_inflate_is_gzip(packed, n_packed), gzip);
        for (size_t i = 0; i < N_ROWS(pieces); i++) {
            kith_error err = {0};
            size_t n = 0;
            assert_ok(unpack(packed, n_packed, pieces[i], &n, &err), &err);
            assert_int_equal(n, N);
            assert_memory_equal(out, text, N);
        }
    }
}

/* As gunzip holds it: another member goes on, anything else behind the end is not read. */
static void test_members(void **state) {
    (void)state;
    static unsigned char packed[3 * MOST_PACKED];
    kith_error err = {0};
    size_t n = 0, n_packed = pack(GZIP, packed);
    const size_t one = n_packed;
    n_packed += pack(GZIP, packed + n_packed);
    assert_ok(unpack(packed, n_packed, 1000, &n, &err), &err);
    assert_int_equal(n, 2 * N);
    assert_memory_equal(out, text, N);
    assert_memory_equal(out + N, text, N);
    static const char *const tails[] = {"", "\x1f", "\x1f!", "!\x8b", "tail"};
    for (size_t i = 0; i < N_ROWS(tails); i++) {
        memcpy(packed + one, tails[i], strlen(tails[i]) + 1);
        assert_ok(unpack(packed, one + strlen(tails[i]), 1000, &n, &err), &err);
        assert_int_equal(n, N);
    }
}

static void test_cut_off_and_damaged(void **state) {
    (void)state;
    static unsigned char packed[MOST_PACKED];
    const size_t n_packed = pack(ZLIB, packed);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    for (size_t cut = 0; cut < n_packed; cut += cut < 20 || cut > n_packed - 20 ? 1 : 997) {
        kith_error err = {0};
        size_t n = 0;
        assert_int_equal(unpack(packed, cut, N + 1, &n, &err), KITH_EFORMAT);
        if (!strstr(err.message, "stream is cut off")) fail_msg("cut at %zu: %s", cut, err.message);
    }
    kith_error err = {0};
    size_t n = 0;
    packed[0] ^= 0xff;
    assert_int_equal(unpack(packed, n_packed, N + 1, &n, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "stream is damaged: incorrect header check"));
    packed[0] ^= 0xff;
    packed[n_packed - 1] ^= 1; /* of the check sum */
    assert_int_equal(unpack(packed, n_packed, N + 1, &n, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "stream is damaged: incorrect data check"));
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

static void test_without_memory(void **state) {
    (void)state;
    static unsigned char packed[MOST_PACKED];
    const size_t n_packed = pack(ZLIB, packed);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    kith_status status = KITH_ENOMEM;
    for (int i = 0; status != KITH_OK; i++) {
        kith_error err = {0};
        size_t n = 0;
        ki_alloc_fail_after(i);
        status = unpack(packed, n_packed, 100, &n, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
        assert_in_range(i, 0, 20);
    }
}

static void test_what_can_be_made(void **state) {
    (void)state;
    assert_true(ki_inflate_can_make(10, 10 * 1032));
    assert_false(ki_inflate_can_make(10, 11 * 1032));
    assert_true(ki_inflate_can_make(0, 0));
    assert_false(ki_inflate_can_make(0, 1032));
    assert_false(ki_inflate_is_gzip("\x1f", 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_cut_off_and_damaged),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_what_can_be_made),
    };
    return cmocka_run_group_tests_name("io/inflate", tests, NULL, NULL);
}
