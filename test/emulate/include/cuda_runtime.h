/* The emulator's stand-in for CUDA's header of the same name. */
#include <cuda_runtime_api.h>
