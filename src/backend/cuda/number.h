/* The types of numbers in device memory, for C and for kernels (number.cuh has their arithmetic). */
#ifndef KI_CUDA_NUMBER_H
#define KI_CUDA_NUMBER_H

#include <stddef.h>

/* double is for matrix products only. */
typedef enum ki_number { KI_NUMBER_FLOAT, KI_NUMBER_BF16, KI_NUMBER_DOUBLE } ki_number;

static inline size_t ki_number_bytes(ki_number type) {
    return type == KI_NUMBER_BF16 ? 2 : type == KI_NUMBER_DOUBLE ? 8 : 4;
}

#endif
