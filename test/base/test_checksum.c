/* base/checksum.h: no changed byte goes unnoticed. */
#include <string.h>

#include "base/checksum.h"
#include "base/rng.h"
#include "support/testing.h"

enum { N = 100 };

static void fill(unsigned char *bytes) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < N; i++) bytes[i] = (unsigned char)(256 * ki_rng_double(&rng));
}

static void test_values_stay(void **state) {
    (void)state;
    /* Checkpoints hold them. */
    const struct {
        const char *text;
        uint64_t before, wanted;
    } rows[] = {{"", 0, 0xe5a0c71ef0ff91ae},
                {"a", 0, 0x42ec57b44391f198},
                {"a", 7, 0xe2bfdc17d7f3a9af},
                {"a text that is longer than one group of all lanes", 0, 0x9f75de3c392bd5e3}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const uint64_t found = ki_checksum(rows[i].text, strlen(rows[i].text), rows[i].before);
        if (found != rows[i].wanted)
            fail_msg("'%s': 0x%016llx; wanted 0x%016llx", rows[i].text, (unsigned long long)found,
                     (unsigned long long)rows[i].wanted);
    }
}

static void test_every_changed_byte(void **state) {
    (void)state;
    unsigned char bytes[N];
    fill(bytes);
    for (size_t n = 1; n <= N; n++) {
        const uint64_t whole = ki_checksum(bytes, n, 0);
        for (size_t i = 0; i < n; i++) {
            for (int change = 1; change < 256; change++) {
                bytes[i] ^= (unsigned char)change;
                if (ki_checksum(bytes, n, 0) == whole) fail_msg("byte %zu of %zu, change %d", i, n, change);
                bytes[i] ^= (unsigned char)change;
            }
        }
    }
}

static void test_lengths_and_what_came_before(void **state) {
    (void)state;
    const unsigned char zeros[N] = {0};
    uint64_t seen[2 * N];
    int n_seen = 0;
    for (size_t n = 0; n < N; n++) {
        seen[n_seen++] = ki_checksum(zeros, n, 0);
        seen[n_seen++] = ki_checksum(zeros, n, 1);
    }
    for (int i = 0; i < n_seen; i++) {
        for (int k = 0; k < i; k++) assert_true(seen[i] != seen[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_stay),
        cmocka_unit_test(test_every_changed_byte),
        cmocka_unit_test(test_lengths_and_what_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
