/* e^x in float, written so that compilers make vector code of a loop around it. */
#ifndef KI_FAST_EXP_H
#define KI_FAST_EXP_H

#include <stdint.h>
#include <string.h>

/* To about 1 ulp: x = k ln 2 + r, |r| <= ln(2)/2, a degree-6 polynomial for e^r (coefficients of Cephes' expf), 2^k in
 * two factors, so that subnormal results are right. */
static inline __attribute__((always_inline)) float ki_fast_exp(float x) {
    x = x > -104.0f ? x : -104.0f;
    x = x < 88.72f ? x : 88.72f;
    const float k = __builtin_rintf(x * 1.44269504088896341f);
    const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t whole = (int32_t)k, half = whole / 2;
    const int32_t bits_1 = (half + 127) << 23, bits_2 = (whole - half + 127) << 23;
    float scale_1, scale_2;
    memcpy(&scale_1, &bits_1, sizeof scale_1);
    memcpy(&scale_2, &bits_2, sizeof scale_2);
    return p * scale_1 * scale_2;
}

#endif
