/* Products of small matrices that are in the caches, on one thread: what attention is made of. BLAS packs both sides for every
 * call; here the caller packs the right side once and uses it for many products.
 *
 * Panels: a matrix [k, n] as groups of 16 columns, each [k, 16], the last one filled up with zeros. */
#ifndef KI_CPU_PRODUCTS_H
#define KI_CPU_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_PANEL = 16,
    CPU_STRIPE = 6, /* rows of the left side that are computed together */
};

static inline int64_t cpu_panels_up(int64_t n) { return (n + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL; }

/* x [n, c] with rows `pitch` apart, as panels of [n, c] (cpu_panels_up(c) * n numbers), and those of its transpose [c, n]. */
void cpu_panels(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst);
void cpu_panels_of_transpose(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst);

/* dst [m, cpu_panels_up(n)] = a * b, or += with `adds`. Element (i, k) of a is a[i * a_row + k * a_k]; b is panels. Rows of a and
 * dst are read and written up to the next multiple of CPU_STRIPE. dst_pitch is a multiple of CPU_PANEL. */
typedef struct cpu_product {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_k;
    const float *b;
    float *dst;
    int64_t dst_pitch;
    bool adds;
} cpu_product;

void cpu_multiply(const cpu_product *p);

#endif
