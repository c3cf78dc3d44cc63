/* Between row-major [mb, c, h, w] float and maps [mb, h, row, pitch]: tiles of 32 x 32 are transposed in shared memory,
 * so that both sides are read and written along their rows. */
#include "backend/cuda/layout/map.h"
#include "backend/cuda/number.cuh"

namespace {

enum { TILE = 32, ROWS = 8 };

/* The layout of one image on both sides. */
struct image_form {
    int64_t c, hw, w, pitch, row, map_pixels;
};

__device__ __forceinline__ int64_t map_at(const image_form &f, int64_t image, int64_t pixel) {
    return (image * f.map_pixels + pixel / f.w * f.row + pixel % f.w) * f.pitch;
}

/* Block: (pixel tile, channel tile, image). */
template <typename T>
__global__ void import_tile(const float *plain, T *map, image_form f, int64_t c_filled) {
    const int64_t c = f.c, hw = f.hw;
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
            map[map_at(f, image, pixel) + channel] = from_float<T>(tile[threadIdx.x * (TILE + 1) + k]);
    }
}

template <typename T>
__global__ void export_tile(const T *map, float *plain, image_form f) {
    const int64_t c = f.c, hw = f.hw;
    KI_SHARED_ARRAY(float, tile, TILE *(TILE + 1));
    const int64_t image = blockIdx.z, c0 = (int64_t)blockIdx.y * TILE, p0 = (int64_t)blockIdx.x * TILE;
    for (int k = (int)threadIdx.y; k < TILE; k += ROWS) {
        const int64_t channel = c0 + threadIdx.x, pixel = p0 + k;
        tile[k * (TILE + 1) + threadIdx.x] =
            channel < c && pixel < hw ? to_float(map[map_at(f, image, pixel) + channel]) : 0;
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

image_form form_of(int64_t c, int64_t h, int64_t w, int64_t pitch, int64_t row) {
    return image_form{c, h * w, w, pitch, row, h * row};
}

template <typename T>
cudaError_t import_map(cudaStream_t stream, int64_t mb, const image_form &f, const float *plain, T *map,
                       int64_t c_filled) {
    for (int64_t i = 0; i < mb; i += MAX_IMAGES) {
        const int64_t images = mb - i < MAX_IMAGES ? mb - i : MAX_IMAGES;
        KI_LAUNCH_TRY(import_tile<T>, grid_of(images, c_filled, f.hw), dim3(TILE, ROWS), 0, stream,
                      plain + i * f.c * f.hw, map + i * f.map_pixels * f.pitch, f, c_filled);
    }
    return cudaSuccess;
}

template <typename T>
cudaError_t export_map(cudaStream_t stream, int64_t mb, const image_form &f, const T *map, float *plain) {
    for (int64_t i = 0; i < mb; i += MAX_IMAGES) {
        const int64_t images = mb - i < MAX_IMAGES ? mb - i : MAX_IMAGES;
        KI_LAUNCH_TRY(export_tile<T>, grid_of(images, f.c, f.hw), dim3(TILE, ROWS), 0, stream,
                      map + i * f.map_pixels * f.pitch, plain + i * f.c * f.hw, f);
    }
    return cudaSuccess;
}

} // namespace

extern "C" cudaError_t ki_cuda_import_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h,
                                          int64_t w, const float *plain, void *map, int64_t pitch,
                                          int64_t row, int64_t c_filled) {
    const image_form f = form_of(c, h, w, pitch, row);
    return is_bf16 ? import_map(stream, mb, f, plain, static_cast<ki_bf16 *>(map), c_filled)
                   : import_map(stream, mb, f, plain, static_cast<float *>(map), c_filled);
}

extern "C" cudaError_t ki_cuda_export_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t h,
                                          int64_t w, const void *map, int64_t pitch, int64_t row,
                                          float *plain) {
    const image_form f = form_of(c, h, w, pitch, row);
    return is_bf16 ? export_map(stream, mb, f, static_cast<const ki_bf16 *>(map), plain)
                   : export_map(stream, mb, f, static_cast<const float *>(map), plain);
}
