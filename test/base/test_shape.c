/* Shapes and number types. */
#include "base/shape.h"

#include <math.h>
#include <string.h>

#include "support/testing.h"

static void test_count(void **state) {
    (void)state;
    assert_int_equal(ki_shape_count(&KI_SHAPE4(32, 3, 227, 227)), 32 * 3 * 227 * 227);
    assert_int_equal(ki_shape_count(&(ki_shape){0}), 1);
    assert_int_equal(ki_shape_count(&KI_SHAPE2(5, 0)), 0);
    assert_int_equal(ki_shape_count(&KI_SHAPE2(5, -1)), -1);
    assert_int_equal(ki_shape_count(&KI_SHAPE2((int64_t)1 << 32, (int64_t)1 << 31)), -1);
}

static void test_equal(void **state) {
    (void)state;
    assert_true(ki_shape_equal(&KI_SHAPE2(2, 3), &KI_SHAPE2(2, 3)));
    assert_false(ki_shape_equal(&KI_SHAPE2(2, 3), &KI_SHAPE2(3, 2)));
    assert_false(ki_shape_equal(&KI_SHAPE1(2), &KI_SHAPE2(2, 1)));
}

static void test_text_and_its_cut(void **state) {
    (void)state;
    char buf[64];
    assert_string_equal(ki_shape_text(&KI_SHAPE4(32, 3, 227, 227), buf, sizeof buf), "[32, 3, 227, 227]");
    assert_string_equal(ki_shape_text(&(ki_shape){0}, buf, sizeof buf), "[]");
    char tiny[6];
    memset(tiny, '#', sizeof tiny);
    assert_string_equal(ki_shape_text(&KI_SHAPE2(1000, 1000), tiny, 5), "[100");
    assert_int_equal(tiny[5], '#');
}

static void test_dtypes(void **state) {
    (void)state;
    assert_string_equal(kith_dtype_name(KITH_BF16), "bfloat16");
    assert_int_equal(kith_dtype_bytes(KITH_F64), 8);
    assert_int_equal(kith_dtype_bytes(KITH_U8), 1);
    assert_int_equal(kith_dtype_bytes((kith_dtype)99), 0);
    assert_string_equal(kith_dtype_name((kith_dtype)99), "unknown type");
}

static void test_f16(void **state) {
    (void)state;
    static const struct {
        uint16_t half;
        float value;
    } rows[] = {
        {0x0000, 0},
        {0x3c00, 1},
        {0xc000, -2},
        {0x7bff, 65504},
        {0x0400, 0x1p-14f},
        {0x0001, 0x1p-24f},
        {0x83ff, -0x1.ff8p-15f},
        {0x3555, 0x1.554p-2f},
        {0x7c00, INFINITY},
        {0xfc00, -INFINITY},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const float value = ki_f16_to_float(rows[i].half);
        if (value != rows[i].value)
            fail_msg("0x%04x: %a, wanted %a", rows[i].half, (double)value, (double)rows[i].value);
    }
    assert_true(signbit(ki_f16_to_float(0x8000)) && ki_f16_to_float(0x8000) == 0);
    assert_true(isnan(ki_f16_to_float(0x7e00)));
}

/* Every half is a float and comes back as itself. */
static void test_f16_round_trip(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        const float value = ki_f16_to_float((uint16_t)half);
        if (isnan(value))
            assert_true(isnan(ki_f16_to_float(ki_float_to_f16(value))));
        else
            assert_int_equal(ki_float_to_f16(value), half);
    }
}

/* Between every two neighbours: below the middle down, above it up, and the middle itself to the even one. */
static void test_f16_rounds_to_nearest_even(void **state) {
    (void)state;
    for (uint16_t half = 0; half < 0x7bff; half++) {
        const float low = ki_f16_to_float(half), high = ki_f16_to_float(half + 1);
        const float middle = low + (high - low) / 2;
        assert_int_equal(ki_float_to_f16(middle), half + (half & 1));
        assert_int_equal(ki_float_to_f16(nextafterf(middle, 0)), half);
        assert_int_equal(ki_float_to_f16(nextafterf(middle, INFINITY)), half + 1);
        assert_int_equal(ki_float_to_f16(-middle), 0x8000 | (half + (half & 1)));
    }
    assert_int_equal(ki_float_to_f16(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(ki_float_to_f16(65520), 0x7c00); /* half way to a number that there is not */
    assert_int_equal(ki_float_to_f16(-1e30f), 0xfc00);
}

/* Every bfloat16 is a float and comes back as itself. */
static void test_bf16_round_trip(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        const float value = ki_bf16_to_float((uint16_t)half);
        if (isnan(value))
            assert_true(isnan(ki_bf16_to_float(ki_float_to_bf16(value))));
        else
            assert_int_equal(ki_float_to_bf16(value), half);
    }
}

static void test_bf16_rounds_to_nearest_even(void **state) {
    (void)state;
    assert_int_equal(ki_float_to_bf16(0x1.01p0f), 0x3f80);     /* half way, down to even */
    assert_int_equal(ki_float_to_bf16(0x1.03p0f), 0x3f82);     /* half way, up to even */
    assert_int_equal(ki_float_to_bf16(0x1.010002p0f), 0x3f81); /* just above half way */
    assert_int_equal(ki_float_to_bf16(0x1.fffffep127f), 0x7f80);
    assert_int_equal(ki_float_to_bf16(-INFINITY), 0xff80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_text_and_its_cut),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_f16_round_trip),
        cmocka_unit_test(test_f16_rounds_to_nearest_even),
        cmocka_unit_test(test_bf16_round_trip),
        cmocka_unit_test(test_bf16_rounds_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
