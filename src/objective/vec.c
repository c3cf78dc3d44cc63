/* Three copies of the same loops: for any machine, for x86-64-v3 (AVX2, FMA) and for x86-64-v4 (AVX-512).
 * target_clones would do this in one line, but gcc 12 does not vectorise an `omp simd` reduction inside a
 * clone. */
#include "objective/vec.h"

#include <string.h>

#include "base/fast_exp.h"

#if defined(__clang__)
/* clang leaves float min and max reductions scalar, and says so. */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

enum { KI_VEC_STRETCH = 256 };
#define KI_VEC_INLINE static inline __attribute__((always_inline))

#define KI_VEC(name) base_##name
#include "objective/vec_body.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif
#define KI_VEC(name) v3_##name
#include "objective/vec_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
#define KI_VEC(name) v4_##name
#include "objective/vec_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

const ki_vec *ki_vec_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        return &v4_table;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return &v3_table;
#endif
    return &base_table;
}
