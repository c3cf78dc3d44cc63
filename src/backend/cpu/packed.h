/* Products with weights that stay the same for many rows: they are packed into panels (products.h) once after each change, and the rows of
 * the other side are read where they are. So a product may be cut into tiles as small as one likes, which cost no further packing, and a
 * row has the same bits whatever rows are beside it and whatever the number of threads. */
#ifndef KI_BACKEND_CPU_PACKED_H
#define KI_BACKEND_CPU_PACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tiled.h"

/* The right side [k, n] of products. All zero is an empty one. */
typedef struct cpu_packed {
    int64_t n, k;
    float *panels;
    float *bias; /* [n] and zeros up to whole panels; NULL: there is none */
} cpu_packed;

/* Whether the processor, or what ONEDNN_MAX_CPU_ISA leaves of it, has vectors that make panels the faster way. Otherwise gemm.h is. */
bool cpu_packs(void);

kith_status cpu_packed_init(cpu_packed *packed, int64_t n, int64_t k, bool has_bias, kith_error *err);
void cpu_packed_release(cpu_packed *packed);

/* Packs weights [n, k], the usual ones of a layer, or with `across` [k, n]. The bias [n] is copied if there is room for one. */
void cpu_packed_fill(cpu_packed *packed, const float *weights, bool across, const float *bias);

/* dst [m, n] = a [m, k] times the packed weights, plus their bias. */
typedef struct cpu_packed_product {
    const cpu_packed *with;
    int64_t m;
    const float *a;
    float *dst;
    /* (optional) Called for each tile while it is in the cache. */
    void (*finish)(const void *context, const ki_tiled_part *tile);
    const void *context;
} cpu_packed_product;

void cpu_packed_run(const cpu_packed_product *product);

#endif
