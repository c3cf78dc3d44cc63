/* Conversions between number types: rounding, ranges, counts. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shape.h"
#include "kith/array.h"
#include "support/testing.h"

static kith_array doubles(double *values, int64_t n) {
    return (kith_array){.dtype = KITH_F64, .n_dims = 1, .dim = {n}, .data = values};
}

/* Every half and bfloat16 pattern survives the way to float64 and back. */
static void test_halves_there_and_back(void **state) {
    (void)state;
    static const kith_dtype types[] = {KITH_F16, KITH_BF16};
    static uint16_t patterns[65536];
    for (size_t t = 0; t < N_ROWS(types); t++) {
        for (int i = 0; i < 65536; i++) patterns[i] = (uint16_t)i;
        const kith_array halves = {.dtype = types[t], .n_dims = 1, .dim = {65536}, .data = patterns};
        kith_array wide = {0}, back = {0};
        kith_error err = {0};
        assert_ok(kith_array_convert(&halves, KITH_F64, &wide, &err), &err);
        assert_ok(kith_array_convert(&wide, types[t], &back, &err), &err);
        for (int i = 0; i < 65536; i++) {
            const uint16_t found = ((uint16_t *)back.data)[i];
            const bool both_nan =
                isnan(((double *)wide.data)[i]) &&
                isnan(types[t] == KITH_F16 ? ki_f16_to_float(found) : ki_bf16_to_float(found));
            if (found != i && !both_nan)
                fail_msg("%s %04x came back as %04x", kith_dtype_name(types[t]), (unsigned)i, found);
        }
        kith_array_release(&wide);
        kith_array_release(&back);
    }
}

/* Values between two halves go to the nearer, ties to the even one: against the definition. */
static void test_half_rounding(void **state) {
    (void)state;
    static const struct {
        double value;
        uint16_t bits;
    } rows[] = {
        {1 + 0x1p-11, 0x3c00},
        {1 + 0x1p-11 + 0x1p-40, 0x3c01},
        {1 + 3 * 0x1p-11, 0x3c02},
        {0x1p-25, 0x0000},
        {0x1p-25 + 0x1p-60, 0x0001},
        {3 * 0x1p-25, 0x0002},
        {0x1p-14 - 0x1p-25, 0x0400},
        {65519.99, 0x7bff},
        {-0.0, 0x8000},
        {-1.0 / 3, 0xb555},
        {1 - 0x1p-12, 0x3c00},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double value = rows[i].value;
        const kith_array array = doubles(&value, 1);
        kith_array half = {0};
        kith_error err = {0};
        assert_ok(kith_array_convert(&array, KITH_F16, &half, &err), &err);
        const uint16_t found = *(uint16_t *)half.data;
        if (found != rows[i].bits) fail_msg("%.17g became %04x, wanted %04x", value, found, rows[i].bits);
        kith_array_release(&half);
    }
}

static void test_what_does_not_fit(void **state) {
    (void)state;
    static const struct {
        double value;
        kith_dtype dtype;
        bool fits;
    } rows[] = {
        {65520, KITH_F16, false},
        {65519.9, KITH_F16, true},
        {1e39, KITH_F32, false},
        {1e39, KITH_BF16, false},
        {3.4e38, KITH_BF16, false},
        {3.38e38, KITH_BF16, true},
        {INFINITY, KITH_F32, true},
        {NAN, KITH_F16, true},
        {NAN, KITH_I32, false},
        {INFINITY, KITH_I64, false},
        {0x1p63, KITH_I64, false},
        {-0x1p63, KITH_I64, true},
        {1.5, KITH_I64, false},
        {2147483648.0, KITH_I32, false},
        {-2147483648.0, KITH_I32, true},
        {256, KITH_U8, false},
        {-1, KITH_U8, false},
        {255, KITH_U8, true},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double values[6] = {0, 0, 0, 0, rows[i].value, 0};
        const kith_array array = {.dtype = KITH_F64, .n_dims = 2, .dim = {2, 3}, .data = values};
        kith_array result = {0};
        kith_error err = {0};
        const kith_status status = kith_array_convert(&array, rows[i].dtype, &result, &err);
        const kith_status wanted = rows[i].fits ? KITH_OK : KITH_ENUMERIC;
        if (status != wanted)
            fail_msg("%g to %s: %s, wanted %s", rows[i].value, kith_dtype_name(rows[i].dtype),
                     kith_status_name(status), kith_status_name(wanted));
        if (!rows[i].fits && !strstr(err.message, "element [1, 1]")) fail_msg("no place in: %s", err.message);
        kith_array_release(&result);
    }
}

static void test_integers(void **state) {
    (void)state;
    int64_t values[] = {INT64_MIN, INT64_MAX, (1LL << 53) + 1, -7};
    kith_array array = {.dtype = KITH_I64, .n_dims = 1, .dim = {4}, .data = values}, result = {0};
    kith_error err = {0};
    assert_ok(kith_array_convert(&array, KITH_I64, &result, &err), &err);
    assert_memory_equal(result.data, values, sizeof values);
    kith_array_release(&result);
    assert_int_equal(kith_array_convert(&array, KITH_I32, &result, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "element [0] is -9223372036854775808, which does not fit int32");
    assert_ok(kith_array_convert(&array, KITH_F32, &result, &err), &err);
    assert_true(((float *)result.data)[3] == -7.0f);
    kith_array_release(&result);
}

static void test_counts(void **state) {
    (void)state;
    static const struct {
        kith_array array;
        int64_t count;
    } rows[] = {
        {{.n_dims = 0}, 1},
        {{.n_dims = 2, .dim = {3, 4}}, 12},
        {{.n_dims = 2, .dim = {3, 0}}, 0},
        {{.n_dims = 2, .dim = {3, -1}}, -1},
        {{.n_dims = 2, .dim = {1LL << 32, 1LL << 31}}, -1},
        {{.n_dims = 3, .dim = {0, 1LL << 32, 1LL << 31}}, -1},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++)
        assert_int_equal(kith_array_count(&rows[i].array), rows[i].count);
}

static void test_init_checks(void **state) {
    (void)state;
    kith_array array = {0};
    kith_error err = {0};
    assert_int_equal(kith_array_init(KITH_F32, 9, (const int64_t[9]){0}, &array, &err), KITH_EINVAL);
    assert_int_equal(kith_array_init(KITH_F32, -1, NULL, &array, &err), KITH_EINVAL);
    assert_int_equal(kith_array_init((kith_dtype)-1, 0, NULL, &array, &err), KITH_EINVAL);
    assert_int_equal(kith_array_init(KITH_F64, 1, (const int64_t[]){INT64_MAX / 4}, &array, &err),
                     KITH_EINVAL);
    assert_null(array.data);
    ki_alloc_fail_after(0);
    assert_int_equal(kith_array_init(KITH_F64, 1, (const int64_t[]){4}, &array, &err), KITH_ENOMEM);
    ki_alloc_fail_after(-1);
    kith_array_release(&array);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_there_and_back),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_init_checks),
    };
    return cmocka_run_group_tests_name("io/convert", tests, NULL, NULL);
}
