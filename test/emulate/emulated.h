/* What twins of library calls and tests say to the emulator. */
#ifndef KI_EMULATE_EMULATED_H
#define KI_EMULATE_EMULATED_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Host work that stands for device work: run now or, while the stream is being captured, at each launch of
 * the graph. args is copied. */
cudaError_t ki_emulate_run(cudaStream_t stream, void (*fn)(void *args), const void *args, size_t bytes);

/* Bytes the emulated device has; at first 16 GiB. */
void ki_emulate_memory(size_t bytes);
/* Bytes of shared memory a block may ask for; at first 227 KiB. */
void ki_emulate_shared(size_t bytes);
/* Kernels launched so far: a captured launch counts when it runs. */
long ki_emulate_launches(void);

#ifdef __cplusplus
}
#endif
#endif
