/* kith_hash is SHA-256: the examples of FIPS 180-4, and a text added piece by piece. */
#include <string.h>

#include "kith/eval.h"
#include "support/testing.h"

static void check(const char *text, size_t piece, const char *wanted) {
    kith_hash hash = {0};
    char hex[65];
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i += piece) kith_hash_add(&hash, text + i, n - i < piece ? n - i : piece);
    kith_hash_finish(&hash, hex);
    assert_string_equal(hex, wanted);
}

static void test_examples(void **state) {
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char wanted[] = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
    check("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t piece = 1; piece <= sizeof two_blocks; piece++) check(two_blocks, piece, wanted);
}

static void test_a_million_letters(void **state) {
    (void)state;
    kith_hash hash = {0};
    char hex[65], letters[1000];
    memset(letters, 'a', sizeof letters);
    for (int i = 0; i < 1000; i++) kith_hash_add(&hash, letters, sizeof letters);
    kith_hash_finish(&hash, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_a_million_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
