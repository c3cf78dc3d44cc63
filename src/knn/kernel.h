/* The two inner loops, in the best version this processor can run. */
#ifndef KI_KNN_KERNEL_H
#define KI_KNN_KERNEL_H

#include <stdint.h>

enum {
    KI_PANEL = 16,  /* rows side by side in a panel */
    KI_STRIPE = 8,  /* rows on the left of one product */
    KI_GROUP = 48,  /* columns computed at a time: three panels */
    KI_BLOCK = 384, /* rows of a block: the right side stays in the second-level cache */
    KI_CHUNK = 128, /* terms summed separately before they are added to the sum: bounds the rounding */
    KI_MASK_WORDS = KI_BLOCK / 64,
};

typedef struct ki_knn_kernel {
    const char *name;
    /* out[r * KI_BLOCK + c] = sum_k left[k * KI_PANEL + r] * right(c)[k], r < KI_STRIPE,
     * c < n_groups * KI_GROUP. left points at the first or second half of a panel; right at panels of
     * dim * KI_PANEL floats each, three per group. out is 64-byte aligned. */
    void (*product)(const float *left, const float *right, int64_t dim, int64_t n_groups, float *out);
    /* Bit c of ret_row: s[c] >= row_least. Bit c of ret_col: s[c] >= col_least[c]. c < KI_BLOCK. */
    void (*compare)(const float *s, float row_least, const float *col_least, uint64_t *ret_row,
                    uint64_t *ret_col);
    /* As compare without the columns. */
    void (*compare_row)(const float *s, float row_least, uint64_t *ret_row);
    /* Move keys above the pivot to the front and the others after them; the order within each part is kept.
     * scratch [n]. Returns how many are above. */
    int64_t (*partition)(uint64_t *keys, int64_t n, uint64_t pivot, uint64_t *scratch);
} ki_knn_kernel;

const ki_knn_kernel *ki_knn_kernel_best(void);
/* Every kernel this processor can run, NULL-terminated (for tests). */
const ki_knn_kernel *const *ki_knn_kernels(void);

#endif
