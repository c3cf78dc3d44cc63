/* Shapes, number types, and conversions of half floats. */
#include "base/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
    size_t bytes;
    const char *name;
} dtypes[] = {
    [KITH_F32] = {4, "float32"},   [KITH_F64] = {8, "float64"}, [KITH_F16] = {2, "float16"},
    [KITH_BF16] = {2, "bfloat16"}, [KITH_I32] = {4, "int32"},   [KITH_I64] = {8, "int64"},
    [KITH_U8] = {1, "uint8"},
};

static bool is_dtype(kith_dtype dtype) { return (size_t)dtype < sizeof dtypes / sizeof dtypes[0]; }

size_t kith_dtype_bytes(kith_dtype dtype) { return is_dtype(dtype) ? dtypes[dtype].bytes : 0; }
const char *kith_dtype_name(kith_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "unknown type";
}

int64_t ki_shape_count(const ki_shape *shape) {
    int64_t n = 1;
    for (int i = 0; i < shape->n_dims; i++) {
        if (shape->dim[i] < 0 || __builtin_mul_overflow(n, shape->dim[i], &n)) return -1;
    }
    return n;
}

int64_t ki_shape_rows(const ki_shape *shape) {
    return shape->n_dims == 3 ? shape->dim[0] * shape->dim[1] : shape->dim[0];
}

int64_t ki_shape_width(const ki_shape *shape) { return shape->dim[shape->n_dims - 1]; }

bool ki_shape_equal(const ki_shape *a, const ki_shape *b) {
    if (a->n_dims != b->n_dims) return false;
    for (int i = 0; i < a->n_dims; i++) {
        if (a->dim[i] != b->dim[i]) return false;
    }
    return true;
}

const char *ki_shape_text(const ki_shape *shape, char *buf, size_t buf_bytes) {
    size_t used = (size_t)ki_snprintf(buf, buf_bytes, "[");
    for (int i = 0; i < shape->n_dims && used < buf_bytes; i++)
        used += (size_t)ki_snprintf(buf + used, buf_bytes - used, "%s%lld", i ? ", " : "",
                                    (long long)shape->dim[i]);
    if (used < buf_bytes) ki_snprintf(buf + used, buf_bytes - used, "]");
    return buf;
}

static float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float ki_bf16_to_float(uint16_t half) { return float_from_bits((uint32_t)half << 16); }

uint16_t ki_float_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40); /* keep NaN a NaN */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* Adding 0.5 rounds a float below 2^-14 to multiples of 2^-24, the steps of small halves; others lose 13 bits of their fraction, and
 * a carry into the exponent is right. */
uint16_t ki_float_to_f16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000u) return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000u) {
        const float shifted = float_from_bits(bits) + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    return (uint16_t)(sign | ((bits - 0x38000000u + 0xfffu + (bits >> 13 & 1)) >> 13));
}

float ki_f16_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) return float_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent) return float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float tiny = (float)fraction * 0x1p-24f;
    return sign ? -tiny : tiny;
}
