/* A program with a race: scripts/check-cuda.sh believes racecheck only where it finds this one. */
#include "backend/cuda/launch.h"

namespace {

__global__ void race(float *dst) {
    KI_SHARED_ARRAY(float, room, 64);
    room[threadIdx.x] = (float)threadIdx.x;
    dst[threadIdx.x] = room[63 - threadIdx.x]; /* no barrier before it */
}

} // namespace

int main() {
    void *dst = nullptr;
    if (cudaMalloc(&dst, 64 * sizeof(float)) != cudaSuccess) return 77;
    if (KI_LAUNCH(race, 1, 64, 0, nullptr, static_cast<float *>(dst)) != cudaSuccess) return 1;
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
