/* kith_array_convert: one element at a time through int64 or double, whichever holds the source exactly. It
 * is simple rather than fast, because conversion happens when a file is read, not in a step. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/array.h"
#include "base/shape.h"

/* An element as read: exact in one of the two. */
typedef struct number {
    bool is_int;
    int64_t whole;
    double real;
} number;

static number number_at(const kith_array *array, int64_t i) {
    const void *data = array->data;
    switch (array->dtype) {
    case KITH_F32: return (number){.real = (double)((const float *)data)[i]};
    case KITH_F64: return (number){.real = ((const double *)data)[i]};
    case KITH_F16: return (number){.real = (double)ki_f16_to_float(((const uint16_t *)data)[i])};
    case KITH_BF16: return (number){.real = (double)ki_bf16_to_float(((const uint16_t *)data)[i])};
    case KITH_I32: return (number){.is_int = true, .whole = ((const int32_t *)data)[i]};
    case KITH_I64: return (number){.is_int = true, .whole = ((const int64_t *)data)[i]};
    case KITH_U8: return (number){.is_int = true, .whole = ((const uint8_t *)data)[i]};
    }
    return (number){0};
}

/* The nearest number with `bits` fraction bits and exponents from `least` up (ties to even). Exact
 * arithmetic in double: one rounding only, also for subnormal results. */
static double round_to(double value, int bits, int least) {
    if (value == 0 || !isfinite(value)) return value;
    int exponent = ilogb(value);
    if (exponent < least) exponent = least;
    return ldexp(rint(ldexp(value, bits - exponent)), exponent - bits);
}

/* `value` is already a half number. */
static uint16_t half_bits(double value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    if (isinf(value)) return (uint16_t)(sign | 0x7c00);
    const double size = fabs(value);
    if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)(size * 0x1p24));
    const int exponent = ilogb(size);
    return (uint16_t)(sign | (exponent + 15) << 10 | (int)((ldexp(size, -exponent) - 1) * 1024));
}

/* false: the type cannot hold the number. */
static bool put_float(const kith_array *array, int64_t i, number x) {
    const double value = x.is_int ? (double)x.whole : x.real;
    switch (array->dtype) {
    case KITH_F64: ((double *)array->data)[i] = value; return true;
    case KITH_F32: {
        const float f = x.is_int ? (float)x.whole : (float)value;
        ((float *)array->data)[i] = f;
        return isfinite(f) || !isfinite(value);
    }
    case KITH_F16: {
        const double rounded = round_to(value, 10, -14);
        if (isfinite(value) && fabs(rounded) > 65504) return false;
        ((uint16_t *)array->data)[i] = half_bits(rounded);
        return true;
    }
    case KITH_BF16: {
        const double rounded = round_to(value, 7, -126);
        if (isfinite(value) && fabs(rounded) > 0x1.fep127) return false;
        ((uint16_t *)array->data)[i] = ki_float_to_bf16((float)rounded);
        return true;
    }
    case KITH_I32:
    case KITH_I64:
    case KITH_U8: break;
    }
    return false;
}

static bool put_int(const kith_array *array, int64_t i, number x) {
    int64_t whole = x.whole;
    if (!x.is_int) {
        /* written so that NaN fails; 2^63 itself does not fit, -2^63 does */
        if (!(x.real >= -0x1p63 && x.real < 0x1p63) || rint(x.real) != x.real) return false;
        whole = (int64_t)x.real;
    }
    switch (array->dtype) {
    case KITH_I64: ((int64_t *)array->data)[i] = whole; return true;
    case KITH_I32:
        ((int32_t *)array->data)[i] = (int32_t)whole;
        return whole >= INT32_MIN && whole <= INT32_MAX;
    case KITH_U8: ((uint8_t *)array->data)[i] = (uint8_t)whole; return whole >= 0 && whole <= UINT8_MAX;
    case KITH_F32:
    case KITH_F64:
    case KITH_F16:
    case KITH_BF16: break;
    }
    return false;
}

static kith_status fail_element(kith_error *err, const kith_array *array, int64_t i, number x,
                                kith_dtype dtype) {
    ki_shape place = {.n_dims = array->n_dims};
    for (int d = array->n_dims - 1; d >= 0; d--) {
        place.dim[d] = i % array->dim[d];
        i /= array->dim[d];
    }
    char text[200];
    ki_shape_text(&place, text, sizeof text);
    if (x.is_int)
        return ki_fail(err, KITH_ENUMERIC, "element %s is %lld, which does not fit %s", text,
                       (long long)x.whole, kith_dtype_name(dtype));
    return ki_fail(err, KITH_ENUMERIC, "element %s is %.9g, which does not fit %s", text, x.real,
                   kith_dtype_name(dtype));
}

kith_status kith_array_convert(const kith_array *array, kith_dtype dtype, kith_array *ret_array,
                               kith_error *err) {
    KI_NEED(err, array, ret_array);
    size_t bytes = 0;
    KI_TRY(ki_array_check(array, &bytes, err));
    kith_array converted = {0};
    KI_TRY(ki_array_alloc(dtype, array->n_dims, array->dim, &converted, err));
    if (dtype == array->dtype) {
        if (bytes) memcpy(converted.data, array->data, bytes);
        *ret_array = converted;
        return KITH_OK;
    }
    const bool to_int = dtype == KITH_I32 || dtype == KITH_I64 || dtype == KITH_U8;
    const int64_t n = kith_array_count(array);
    for (int64_t i = 0; i < n; i++) {
        const number x = number_at(array, i);
        if (to_int ? put_int(&converted, i, x) : put_float(&converted, i, x)) continue;
        kith_array_release(&converted);
        return fail_element(err, array, i, x, dtype);
    }
    *ret_array = converted;
    return KITH_OK;
}
