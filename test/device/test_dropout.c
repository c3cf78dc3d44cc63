/* The dropout mask: its stream, its rate, steps and nodes apart. */
#include "device/dropout.h"

#include "support/testing.h"

/* The documented definition: element i is kept when word i of the stream is at least p * 2^32. */
static void test_mask_is_the_stream(void **state) {
    (void)state;
    const uint64_t seed = 0x123456789abcdef0u;
    const ki_dropout dropout = ki_dropout_at(seed, 3, 7, 0.3);
    ki_rng rng = ki_rng_at(seed, KI_RNG_DROPOUT, 3, 7);
    for (int64_t block = 0; block < 50; block++) {
        bool keep[4];
        ki_dropout_block(&dropout, block, keep);
        for (int i = 0; i < 4; i++) assert_int_equal(keep[i], ki_rng_u32(&rng) >= 1288490189u);
    }
}

static int count_kept(uint64_t step, uint32_t node, double p, int n_blocks) {
    const ki_dropout dropout = ki_dropout_at(1, step, node, p);
    int n = 0;
    for (int64_t block = 0; block < n_blocks; block++) {
        bool keep[4];
        ki_dropout_block(&dropout, block, keep);
        for (int i = 0; i < 4; i++) n += keep[i];
    }
    return n;
}

static void test_rate(void **state) {
    (void)state;
    assert_int_equal(count_kept(0, 0, 0, 1000), 4000);
    assert_in_range(count_kept(0, 0, 0.4, 25000), 59500, 60500); /* 60000 +- 3 sigma */
    assert_in_range(count_kept(0, 0, 0.9999999999, 1000), 0, 0);
    assert_true(ki_dropout_at(1, 0, 0, 0.75).scale == 4);
}

static void test_steps_and_nodes_differ(void **state) {
    (void)state;
    const ki_dropout rows[] = {ki_dropout_at(1, 0, 0, 0.5), ki_dropout_at(1, 1, 0, 0.5),
                               ki_dropout_at(1, 0, 1, 0.5), ki_dropout_at(2, 0, 0, 0.5)};
    for (size_t r = 1; r < N_ROWS(rows); r++) {
        int n_same = 0;
        for (int64_t block = 0; block < 1000; block++) {
            bool a[4], b[4];
            ki_dropout_block(&rows[0], block, a);
            ki_dropout_block(&rows[r], block, b);
            for (int i = 0; i < 4; i++) n_same += a[i] == b[i];
        }
        assert_in_range(n_same, 1850, 2150);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_is_the_stream),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_steps_and_nodes_differ),
    };
    return cmocka_run_group_tests_name("device/dropout", tests, NULL, NULL);
}
