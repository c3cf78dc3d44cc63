/* Every kernel of the scan against plain sums, bit for bit. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "knn/rows.h"
#include "search/scan/kernel.h"
#include "support/testing.h"

enum { BLOCKS = 3, PLACES = BLOCKS * KI_SCAN_BLOCK };

static float number(ki_rng *rng) { return (float)ki_rng_normal(rng); }

/* The bit of a place's code in a plane, from the layout that kernel.h describes. */
static int code_bits(const uint8_t *block, int64_t n_groups, int plane, int64_t group, int place) {
    const uint8_t *piece = block + 256 + (plane * n_groups + group) * 16;
    const int byte = 2 * (place % 8) + (place / 8) % 2;
    return piece[byte] >> (place >= 16 ? 4 : 0) & 15;
}

static void check_estimate(int64_t n_groups, int bits) {
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, (uint32_t)n_groups, (uint32_t)bits);
    const int64_t bytes = ki_scan_block_bytes(n_groups, bits);
    uint8_t *blocks = ki_alloc(BLOCKS, (size_t)bytes), *entry = ki_alloc((size_t)n_groups, 16);
    for (int64_t i = 0; i < BLOCKS * bytes; i++) blocks[i] = (uint8_t)ki_rng_u32(&rng);
    for (int64_t i = 0; i < n_groups * 16; i++)
        entry[i] = (uint8_t)(ki_rng_u32(&rng) | 0xC0); /* large sums */
    for (int b = 0; b < BLOCKS; b++) {
        float *factor = (float *)(void *)(blocks + b * bytes);
        for (int j = 0; j < 2 * KI_SCAN_BLOCK; j++) factor[j] = number(&rng);
    }
    const ki_scan_table table = {
        .entry = entry, .n_groups = n_groups, .bits = bits, .step = 0.37F, .shift = -11.25F};
    const float least = 3;
    float wanted[PLACES];
    for (int i = 0; i < PLACES; i++) {
        const uint8_t *block = blocks + i / KI_SCAN_BLOCK * bytes;
        const float *factor = (const float *)(const void *)block;
        uint32_t sum = 0;
        for (int b = 0; b < bits; b++) {
            for (int64_t g = 0; g < n_groups; g++)
                sum += (uint32_t)entry[g * 16 + code_bits(block, n_groups, b, g, i % KI_SCAN_BLOCK)] << b;
        }
        volatile float product = table.step * (float)sum; /* rounded at every step */
        product = product + table.shift;
        product = factor[KI_SCAN_BLOCK + i % KI_SCAN_BLOCK] * product;
        wanted[i] = factor[i % KI_SCAN_BLOCK] + product;
    }
    for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
        float found[PLACES];
        uint32_t mask[BLOCKS];
        (*k)->estimate(&table, blocks, BLOCKS, least, found, mask);
        for (int i = 0; i < PLACES; i++) {
            if (memcmp(found + i, wanted + i, sizeof *found) != 0)
                fail_msg("%s, %lld groups, %d bits, place %d: %.9g, wanted %.9g", (*k)->name,
                         (long long)n_groups, bits, i, (double)found[i], (double)wanted[i]);
            assert_int_equal(mask[i / KI_SCAN_BLOCK] >> i % KI_SCAN_BLOCK & 1, wanted[i] >= least);
        }
    }
    ki_free(blocks);
    ki_free(entry);
}

static void test_estimates_are_the_same_bits(void **state) {
    (void)state;
    static const int64_t GROUPS[] = {4, 8, 32, 128, 256, 260, 516};
    for (size_t i = 0; i < N_ROWS(GROUPS); i++) {
        for (int bits = 1; bits <= 8; bits += bits < 3 ? 1 : 5) check_estimate(GROUPS[i], bits);
    }
}

static void check_lists(int64_t dim, int64_t n_rows, int64_t n_panels, bool is_extreme) {
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, (uint32_t)dim, (uint32_t)n_rows);
    const int64_t lists = n_panels * KI_LIST_PANEL;
    int8_t *rows = ki_alloc((size_t)n_rows, (size_t)dim);
    uint8_t *panels = ki_alloc((size_t)lists, (size_t)dim);
    int32_t *found = ki_alloc((size_t)(n_rows * lists), sizeof *found);
    for (int64_t i = 0; i < n_rows * dim; i++)
        rows[i] = (int8_t)(is_extreme ? -127 : (int)ki_rng_below(&rng, 255) - 127);
    for (int64_t i = 0; i < lists * dim; i++)
        panels[i] = (uint8_t)(is_extreme ? 255 : ki_rng_below(&rng, 256));
    for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
        (*k)->lists(rows, n_rows, panels, n_panels, dim, found);
        for (int64_t q = 0; q < n_rows; q++) {
            for (int64_t l = 0; l < lists; l++) {
                int64_t sum = 0;
                for (int64_t j = 0; j < dim; j++)
                    sum +=
                        rows[q * dim + j] * panels[((l / 16 * (dim / 4) + j / 4) * 16 + l % 16) * 4 + j % 4];
                if (found[q * lists + l] != sum)
                    fail_msg("%s, dim %lld, row %lld, list %lld: %d, wanted %lld", (*k)->name, (long long)dim,
                             (long long)q, (long long)l, found[q * lists + l], (long long)sum);
            }
        }
    }
    ki_free(rows);
    ki_free(panels);
    ki_free(found);
}

static void test_lists_are_the_same_sums(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 9; n++) check_lists(48, n, 2, false);
    check_lists(16, 4, 1, false);
    check_lists(512, 3, 1, false);
    check_lists(1024, 5, 1, true); /* sums of byte products that saturating steps would lose */
}

static void test_projections_are_the_same_bits(void **state) {
    (void)state;
    enum { MOST = 130, PANELS = 3 };
    static float axes[PANELS * MOST * KI_AXIS_PANEL];
    ki_rng rng = ki_rng_at(4, KI_RNG_TEST, 0, 0);
    float x[MOST];
    for (size_t i = 0; i < N_ROWS(axes); i++) axes[i] = number(&rng);
    for (int i = 0; i < MOST; i++) x[i] = number(&rng);
    for (int64_t dim = 1; dim <= MOST; dim += 43) {
        for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
            float found[PANELS * KI_AXIS_PANEL];
            (*k)->project(axes, x, dim, PANELS, found);
            for (int j = 0; j < PANELS * KI_AXIS_PANEL; j++) {
                float wanted = 0;
                for (int64_t i = 0; i < dim; i++) {
                    volatile float product = x[i] * axes[(j / 64 * dim + i) * 64 + j % 64];
                    wanted += product;
                }
                if (memcmp(found + j, &wanted, sizeof wanted) != 0)
                    fail_msg("%s, dim %lld, axis %d: %.9g, wanted %.9g", (*k)->name, (long long)dim, j,
                             (double)found[j], (double)wanted);
            }
        }
    }
}

static void test_dots_are_the_same_bits(void **state) {
    (void)state;
    for (int64_t dim = 16; dim <= 272; dim += 16) {
        float x[272], y[272], sum[64] = {0};
        ki_rng rng = ki_rng_at(4, KI_RNG_TEST, (uint32_t)dim, 0);
        for (int64_t i = 0; i < dim; i++) {
            x[i] = number(&rng), y[i] = number(&rng);
            volatile float product = x[i] * y[i];
            sum[i % 64] += product;
        }
        for (int n = 32; n > 0; n /= 2)
            for (int j = 0; j < n; j++) sum[j] += sum[j + n];
        for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
            const float found = (*k)->dot(x, y, dim);
            if (memcmp(&found, sum, sizeof found) != 0)
                fail_msg("%s, dim %lld: %.9g, wanted %.9g", (*k)->name, (long long)dim, (double)found,
                         (double)sum[0]);
        }
    }
}

static void test_scores_are_those_of_exact_search(void **state) {
    (void)state;
    for (int64_t dim = 1; dim < 70; dim++) {
        float x[70], y[70];
        ki_rng rng = ki_rng_at(3, KI_RNG_TEST, (uint32_t)dim, 0);
        for (int64_t i = 0; i < dim; i++) x[i] = number(&rng), y[i] = number(&rng);
        const ki_rows a = {KITH_F32, 1, dim, x, NULL}, b = {KITH_F32, 1, dim, y, NULL};
        const double wanted[3] = {ki_rows_dot(&a, 0, &b, 0), ki_rows_dot(&b, 0, &b, 0),
                                  ki_rows_sqdist(&a, 0, &b, 0)};
        for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
            double found[3];
            (*k)->dots(x, y, dim, &found[0], &found[1]);
            found[2] = (*k)->sqdist(x, y, dim);
            for (int i = 0; i < 3; i++) {
                if (memcmp(found + i, wanted + i, sizeof *found) != 0)
                    fail_msg("%s, dim %lld, number %d: %.17g, wanted %.17g", (*k)->name, (long long)dim, i,
                             found[i], wanted[i]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimates_are_the_same_bits),
        cmocka_unit_test(test_lists_are_the_same_sums),
        cmocka_unit_test(test_projections_are_the_same_bits),
        cmocka_unit_test(test_dots_are_the_same_bits),
        cmocka_unit_test(test_scores_are_those_of_exact_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
