/* Between row-major [mb, c, hw] float and maps [mb, hw, c]: tiles of 32 x 32 turned in shared memory, so that
 * both sides are read and written along their rows. */
#include "backend/cuda/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { TILE = 32, ROWS = 8 };

/* Block: (pixel tile, channel tile, image). */
template <typename T>
__global__ void import_tile(const float *plain, T *map, int64_t c, int64_t hw, int64_t pitch,
                            int64_t c_filled) {
    KI_SHARED_ARRAY(float, tile, TILE *(TILE + 1));
    const int64_t image = blockIdx.z, c0 = (int64_t)blockIdx.y * TILE, p0 = (int64_t)blockIdx.x * TILE;
    for (int k = (int)threadIdx.y; k < TILE; k += ROWS) {
        const int64_t channel = c0 + k, pixel = p0 + threadIdx.x;
        tile[k * (TILE + 1) + threadIdx.x] =
            channel < c && pixel < hw ? plain[(image * c + channel) * hw + pixel] : 0;
    }
    __syncthreads();
    for (int k = (int)threadIdx.y; k < TILE; k += ROWS) {
        const int64_t channel = c0 + threadIdx.x, pixel = p0 + k;
        if (channel < c_filled && pixel < hw)
            map[(image * hw + pixel) * pitch + channel] = from_float<T>(tile[threadIdx.x * (TILE + 1) + k]);
    }
}

template <typename T>
__global__ void export_tile(const T *map, float *plain, int64_t c, int64_t hw, int64_t pitch) {
    KI_SHARED_ARRAY(float, tile, TILE *(TILE + 1));
    const int64_t image = blockIdx.z, c0 = (int64_t)blockIdx.y * TILE, p0 = (int64_t)blockIdx.x * TILE;
    for (int k = (int)threadIdx.y; k < TILE; k += ROWS) {
        const int64_t channel = c0 + threadIdx.x, pixel = p0 + k;
        tile[k * (TILE + 1) + threadIdx.x] =
            channel < c && pixel < hw ? to_float(map[(image * hw + pixel) * pitch + channel]) : 0;
    }
    __syncthreads();
    for (int k = (int)threadIdx.y; k < TILE; k += ROWS) {
        const int64_t channel = c0 + k, pixel = p0 + threadIdx.x;
        if (channel < c && pixel < hw)
            plain[(image * c + channel) * hw + pixel] = tile[threadIdx.x * (TILE + 1) + k];
    }
}

dim3 grid_of(int64_t images, int64_t c, int64_t hw) {
    return dim3((unsigned)((hw + TILE - 1) / TILE), (unsigned)((c + TILE - 1) / TILE), (unsigned)images);
}

const int64_t MAX_IMAGES = 65535; /* of a grid's third side */

template <typename T>
cudaError_t import_map(cudaStream_t stream, int64_t mb, int64_t c, int64_t hw, const float *plain, T *map,
                       int64_t pitch, int64_t c_filled) {
    for (int64_t i = 0; i < mb; i += MAX_IMAGES) {
        const int64_t images = mb - i < MAX_IMAGES ? mb - i : MAX_IMAGES;
        KI_LAUNCH_TRY(import_tile<T>, grid_of(images, c_filled, hw), dim3(TILE, ROWS), 0, stream,
                      plain + i * c * hw, map + i * hw * pitch, c, hw, pitch, c_filled);
    }
    return cudaSuccess;
}

template <typename T>
cudaError_t export_map(cudaStream_t stream, int64_t mb, int64_t c, int64_t hw, const T *map, int64_t pitch,
                       float *plain) {
    for (int64_t i = 0; i < mb; i += MAX_IMAGES) {
        const int64_t images = mb - i < MAX_IMAGES ? mb - i : MAX_IMAGES;
        KI_LAUNCH_TRY(export_tile<T>, grid_of(images, c, hw), dim3(TILE, ROWS), 0, stream,
                      map + i * hw * pitch, plain + i * c * hw, c, hw, pitch);
    }
    return cudaSuccess;
}

} // namespace

extern "C" cudaError_t ki_cuda_import_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c,
                                          int64_t hw, const float *plain, void *map, int64_t pitch,
                                          int64_t c_filled) {
    return is_bf16 ? import_map(stream, mb, c, hw, plain, static_cast<ki_bf16 *>(map), pitch, c_filled)
                   : import_map(stream, mb, c, hw, plain, static_cast<float *>(map), pitch, c_filled);
}

extern "C" cudaError_t ki_cuda_export_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c,
                                          int64_t hw, const void *map, int64_t pitch, float *plain) {
    return is_bf16 ? export_map(stream, mb, c, hw, static_cast<const ki_bf16 *>(map), pitch, plain)
                   : export_map(stream, mb, c, hw, static_cast<const float *>(map), pitch, plain);
}
