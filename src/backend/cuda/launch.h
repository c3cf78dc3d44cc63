/* Launching kernels, the same way on a device and in the emulator (test/emulate).
 *
 *   cudaError_t error = KI_LAUNCH(scale<float>, grid, 256, 0, stream, src, dst, n);
 *
 * Grid and block are dim3 or a number; arguments are converted to the kernel's parameter types. The value is the
 * error of the launch, or one that an earlier launch left. Nothing waits for the kernel.
 *
 * KI_LAUNCH_TOGETHER: all blocks run at the same time and may wait for each other, in a loop around KI_SPIN(); a
 * grid that does not fit on the device at once is an error.
 *
 * Inside kernels: KI_SHARED(type, name) is the launch's dynamic shared memory, KI_SHARED_ARRAY(type, name, n)
 * an array of the block; the emulator fills both with garbage for each block. */
#ifndef KI_CUDA_LAUNCH_H
#define KI_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* The emulator's build brings its own. */
#ifndef KI_EMULATE

#define KI_SHARED(type, name)                                        \
    extern __shared__ __align__(16) unsigned char ki_shared_bytes[]; \
    type *name = reinterpret_cast<type *>(ki_shared_bytes)
#define KI_SHARED_ARRAY(type, name, n) __shared__ type name[n]

#define KI_SPIN() __nanosleep(20)

template <typename... P>
static inline cudaError_t ki_launch_exact(bool together, void (*kernel)(P...), dim3 grid, dim3 block,
                                          size_t shared_bytes, cudaStream_t stream, P... args) {
    const void *function = reinterpret_cast<const void *>(kernel);
    if (shared_bytes > 48 * 1024) {
        const cudaError_t error =
            cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
        if (error != cudaSuccess) return error;
    }
    void *pointers[] = {static_cast<void *>(&args)..., nullptr};
    return together ? cudaLaunchCooperativeKernel(function, grid, block, pointers, shared_bytes, stream)
                    : cudaLaunchKernel(function, grid, block, pointers, shared_bytes, stream);
}

template <typename... P, typename... A>
static inline cudaError_t ki_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                    cudaStream_t stream, A... args) {
    return ki_launch_exact<P...>(false, kernel, grid, block, shared_bytes, stream, static_cast<P>(args)...);
}

template <typename... P, typename... A>
static inline cudaError_t ki_launch_together(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                                             cudaStream_t stream, A... args) {
    return ki_launch_exact<P...>(true, kernel, grid, block, shared_bytes, stream, static_cast<P>(args)...);
}

#endif

/* Blocks of `threads` for n items of a kernel that strides over them: at least one, at most `most`. */
static inline unsigned ki_blocks(int64_t n, int threads, int64_t most) {
    const int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

#define KI_LAUNCH(...) ki_launch(__VA_ARGS__)
#define KI_LAUNCH_TOGETHER(...) ki_launch_together(__VA_ARGS__)

/* Return from a launcher when a launch failed. */
#define KI_LAUNCH_TRY(...)                                     \
    do {                                                       \
        const cudaError_t ki_launch_ = ki_launch(__VA_ARGS__); \
        if (ki_launch_ != cudaSuccess) return ki_launch_;      \
    } while (0)

#endif
