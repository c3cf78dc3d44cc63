/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the function
 * all random numbers are made of. One source for the host and for kernels, so that both draw the same words. */
#ifndef KI_PHILOX_H
#define KI_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define KI_PHILOX_FUNCTION static __host__ __device__ __forceinline__
#else
#define KI_PHILOX_FUNCTION static inline
#endif

/* The block of four words at a counter. */
KI_PHILOX_FUNCTION void ki_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret_words[0] = c0;
    ret_words[1] = c1;
    ret_words[2] = c2;
    ret_words[3] = c3;
}

#endif
