/* KI_SIMD before a function: compiled for AVX-512, AVX2 and the plain machine, chosen when the program
 * starts. Only for loops on integers or on independent floats without contraction-sensitive sums: the
 * three must agree to the bit. Thread sanitizer cannot start a program that chooses functions so. */
#ifndef KI_SIMD_H
#define KI_SIMD_H

#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KI_SIMD
#endif
#endif
#ifndef KI_SIMD
#define KI_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define KI_SIMD
#endif

#endif
