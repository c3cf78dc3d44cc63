/* KI_SIMD before a function: compiled for AVX-512, AVX2 and the plain machine. Only for loops on integers
 * or on independent floats without contraction-sensitive sums: the three must agree to the bit. */
#ifndef KI_SIMD_H
#define KI_SIMD_H

#include "core/sanitizer.h"

#define KI_SIMD KI_CLONES("avx512f", "avx2")

#endif
