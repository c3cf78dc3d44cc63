/* Maps in and out: between plain rows of float and a map in device memory (number.h says in which type). */
#ifndef KI_CUDA_LAYOUT_MAP_H
#define KI_CUDA_LAYOUT_MAP_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Row-major [mb, c, h, w] float and a map with `row` pixels from row to row; channels from c to c_filled of the map are set to zero. */
cudaError_t ki_cuda_import_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h, int64_t w,
                               const float *plain, void *map, int64_t pitch, int64_t row, int64_t c_filled);
cudaError_t ki_cuda_export_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h, int64_t w,
                               const void *map, int64_t pitch, int64_t row, float *plain);

#ifdef __cplusplus
}
#endif

#endif
