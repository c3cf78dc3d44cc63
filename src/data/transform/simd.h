/* KI_SIMD before a function: compiles it for AVX-512, AVX2 and the baseline. Use it only for loops over
 * integers, or over independent floats without sums that change when the compiler fuses operations: all three
 * must give the same bits. */
#ifndef KI_SIMD_H
#define KI_SIMD_H

#include "base/sanitizer.h"

#define KI_SIMD KI_CLONES("avx512f", "avx2")

#endif
