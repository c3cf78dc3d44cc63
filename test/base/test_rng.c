/* Random numbers: published answers, streams, evenness, moments. */
#include "base/rng.h"

#include "support/testing.h"

/* Known answers of Philox4x32-10 published with Random123. */
static void test_philox_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        uint32_t words[4];
        ki_philox(rows[i].counter, rows[i].key, words);
        assert_memory_equal(words, rows[i].words, sizeof words);
    }
}

static void test_streams_differ_and_repeat(void **state) {
    (void)state;
    ki_rng a = ki_rng_at(7, KI_RNG_INIT, 1, 2), b = ki_rng_at(7, KI_RNG_INIT, 1, 2);
    ki_rng c = ki_rng_at(7, KI_RNG_INIT, 1, 3);
    int n_same = 0;
    for (int i = 0; i < 100; i++) {
        const uint32_t word = ki_rng_u32(&a);
        assert_int_equal(word, ki_rng_u32(&b));
        n_same += word == ki_rng_u32(&c);
    }
    assert_int_equal(n_same, 0);
}

static void test_below_is_even(void **state) {
    (void)state;
    int count[7] = {0};
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < 70000; i++) count[ki_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++) assert_in_range(count[i], 9600, 10400);
}

static void test_normal_moments(void **state) {
    (void)state;
    double sum = 0, squares = 0;
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 1, 0);
    for (int i = 0; i < 100000; i++) {
        const double x = ki_rng_normal(&rng);
        sum += x;
        squares += x * x;
    }
    assert_true(sum / 1e5 > -0.02 && sum / 1e5 < 0.02);
    assert_true(squares / 1e5 > 0.98 && squares / 1e5 < 1.02);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_streams_differ_and_repeat),
        cmocka_unit_test(test_below_is_even),
        cmocka_unit_test(test_normal_moments),
    };
    return cmocka_run_group_tests_name("base/rng", tests, NULL, NULL);
}
