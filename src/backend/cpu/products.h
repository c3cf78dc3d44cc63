/* Products of matrices that are in the caches, on one thread: what attention and products with packed weights (packed.h) are made of.
 * BLAS packs both sides for every call; here the caller packs the right side once and uses it for many products.
 *
 * Panels: a matrix [k, n] as groups of 16 columns, each [k, 16], the last one filled up with zeros. */
#ifndef KI_CPU_PRODUCTS_H
#define KI_CPU_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_PANEL = 16,
    CPU_STRIPE = 6, /* rows of the left side that are computed together; fewer at the end */
};

static inline int64_t cpu_panels_up(int64_t n) { return (n + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL; }

/* x [n, c] with rows `pitch` apart, as panels of [n, c] (cpu_panels_up(c) * n numbers), and those of its transpose [c, n]. */
void cpu_panels(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst);
void cpu_panels_of_transpose(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst);

/* dst [m, n] = bias + a * b, or += with `adds`. Element (i, k) of a is a[i * a_row + k * a_k]; b is panels, of n columns or more: a
 * caller whose dst has room for whole panels may let n count all of their columns. Each element is one sum in the order of k,
 * whatever m and n are. */
typedef struct cpu_product {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_k;
    const float *b;
    int64_t b_panel;   /* from one panel to the next, for a part of longer ones; 0: k * CPU_PANEL */
    const float *bias; /* [n] up to whole panels; NULL: zeros */
    float *dst;
    int64_t dst_pitch;
    bool adds;
} cpu_product;

void cpu_multiply(const cpu_product *p);

#endif
