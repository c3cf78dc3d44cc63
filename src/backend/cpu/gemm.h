/* Products of plain matrices by oneDNN and OpenBLAS, on all threads, with the same bits for any number of them.
 *
 * Their own threads split a product at places that depend on how many there are. Here the destination is cut into tiles by its
 * sizes alone, and each tile is a product on one thread. */
#ifndef KI_BACKEND_CPU_GEMM_H
#define KI_BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/tiled.h"

/* c [m, n] = a [m, k] b [k, n], where a transposed one is stored the other way round. */
typedef struct cpu_gemm {
    int64_t m, n, k; /* each below 2^31 */
    bool transposes_a, transposes_b;
    bool adds; /* … plus what c holds */
    const float *a, *b;
    float *c;
    /* (optional) Called for each tile before its product, and after it while it is in the cache. */
    void (*begin)(const void *context, const ki_tiled_part *tile);
    void (*finish)(const void *context, const ki_tiled_part *tile);
    const void *context;
} cpu_gemm;

/* Call this before the first product, outside parallel work: memory for both libraries. */
kith_status cpu_gemm_prepare(kith_error *err);

void cpu_gemm_run(const cpu_gemm *gemm);

#endif
