/* The inner loops of the scan, in the best version this processor can run. Sums of codes and of lists are sums of integers, and
 * floats are multiplied and added in one order without fused steps, so all versions give the same bits. */
#ifndef KI_SEARCH_KERNEL_H
#define KI_SEARCH_KERNEL_H

#include <stdint.h>

enum {
    KI_SCAN_BLOCK = 32, /* places of a block */
    KI_SCAN_GROUP = 4,  /* dimensions looked up together */
    KI_SCAN_CALL = 64,  /* blocks estimated in a call at most */
    KI_LIST_PANEL = 64, /* lists side by side */
    KI_AXIS_PANEL = 64, /* axes side by side */
};

/* A block of 32 places:
 *   float32 [32]  offset
 *   float32 [32]  scale
 *   [bits, n_groups] pieces of 16 bytes, the lowest bit's plane first. A piece has 4 bits of each place, the plane's bits of
 *   dimensions 4 g … 4 g + 3, lowest first: byte 2 i has place i in its low half and place 16 + i in its high half,
 *   byte 2 i + 1 has places 8 + i and 24 + i. Sums of even and of odd bytes thus come out in the order of places. */
static inline int64_t ki_scan_block_bytes(int64_t n_groups, int bits) {
    return 2 * KI_SCAN_BLOCK * 4 + n_groups * bits * 16;
}
/* The piece's byte of a place, and the shift within it. */
static inline int ki_scan_byte(int place) { return place % 8 * 2 + place / 8 % 2; }
static inline int ki_scan_shift(int place) { return place / 16 * 4; }

/* What a query looks up: for every group the rounded sums of all 16 choices of its 4 values. */
typedef struct ki_scan_table {
    const uint8_t *entry; /* [n_groups, 16], aligned to 64 */
    int64_t n_groups;     /* a multiple of 4 */
    int bits;
    float step, shift; /* a sum T of entries stands for step * T + shift */
} ki_scan_table;

typedef struct ki_scan_kernel {
    const char *name;
    /* For place j of block i, with T = the sum over planes b of 2^b times the entries its pieces choose:
     * ret[32 i + j] = offset + scale * (step * T + shift); bit j of ret_mask[i]: ret[32 i + j] >= least.
     * n_blocks is at most KI_SCAN_CALL. */
    void (*estimate)(const ki_scan_table *table, const uint8_t *blocks, int64_t n_blocks, float least,
                     float *ret, uint32_t *ret_mask);
    /* ret[q * n_panels * 64 + l] = sum_k row[q * dim + k] * (list l)[k], for 64 lists side by side in a panel: value k of
     * list l at panels[((l / 16 * dim / 4 + k / 4) * 16 + l % 16) * 4 + k % 4]. row in -127 … 127, dim a multiple of 16. */
    void (*lists)(const int8_t *row, int64_t n_rows, const uint8_t *panels, int64_t n_panels, int64_t dim,
                  int32_t *ret);
    /* ret[j] = sum_k x[k] * axes[(j / 64 * dim + k) * 64 + j % 64], summed in the order of k; j < n_panels * 64. */
    void (*project)(const float *axes, const float *x, int64_t dim, int64_t n_panels, float *ret);
    /* x . y in float32, for estimates: 64 sums over every 64th product, folded in halves. dim a multiple of 16. */
    float (*dot)(const float *x, const float *y, int64_t dim);
    /* x . y, y . y and |x - y|^2 in float64, in the order of knn/rows.h. */
    void (*dots)(const float *x, const float *y, int64_t dim, double *ret_xy, double *ret_yy);
    double (*sqdist)(const float *x, const float *y, int64_t dim);
} ki_scan_kernel;

const ki_scan_kernel *ki_scan_kernel_best(void);
/* Every kernel this processor can run, NULL-terminated. */
const ki_scan_kernel *const *ki_scan_kernels(void);
/* Tests only: what ki_scan_kernel_best returns from now on; NULL: the best again. */
void ki_scan_kernel_force(const ki_scan_kernel *kernel);

#endif
