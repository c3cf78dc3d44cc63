/* Sigmoid and the normal distribution in float, written so that compilers make vector code of a loop around them. */
#ifndef KI_BACKEND_CPU_ACT_MATH_H
#define KI_BACKEND_CPU_ACT_MATH_H

#include "base/fast_exp.h"

#define CPU_INLINE static inline __attribute__((always_inline))

CPU_INLINE float cpu_sigmoid(float x) {
    const float t = ki_fast_exp(x < 0 ? x : -x);
    return (x < 0 ? t : 1) / (1 + t);
}

/* sqrt(2 pi) times the density of the standard normal distribution. */
CPU_INLINE float cpu_normal_density(float x) { return ki_fast_exp(-0.5f * x * x); }

/* The standard normal distribution function, (1 + erf(x / sqrt 2)) / 2, from cpu_normal_density of x; to 2e-7. Below 0 it is the
 * density times a polynomial in t = 1 / (1 + 0.3 |x|), which was fitted to that quotient with a relative error of 8e-8. */
CPU_INLINE float cpu_normal_below(float x, float density) {
    const float t = 1 / (1 + 0.3f * (x < 0 ? -x : x));
    float p = 0.0033394857f;
    p = p * t + 0.0209898073f;
    p = p * t - 0.1300991625f;
    p = p * t + 0.1790585609f;
    p = p * t - 0.0373657048f;
    p = p * t + 0.1226661280f;
    p = p * t + 0.1011623815f;
    p = p * t + 0.1206131801f;
    p = p * t + 0.1196357012f;
    const float tail = p * t * density;
    return x < 0 ? tail : 1 - tail;
}

#endif
