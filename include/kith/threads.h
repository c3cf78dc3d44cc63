/* How many threads kith computes with.
 *
 * Products, convolutions, losses and searches run on one pool for the process, OpenMP's; the number below is the number
 * of threads of that pool, for calls from the thread that sets it (other threads use the number of the process:
 * OMP_NUM_THREADS, or the number of cores). Threads that decode images are additional; options say how many
 * (n_workers).
 *
 * A child of fork() may use kith, unless another thread was inside a call of kith at that moment, and not with what lies on a
 * GPU or is open for writing. */
#ifndef KITH_THREADS_H
#define KITH_THREADS_H

#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number in use. Never more than the cores, memory limits and cgroups of the process allow. */
KITH_API int64_t kith_threads(void);

/* Use n; 0: as many as fit. KITH_EINVAL below 0 and above 256; KITH_ENOMEM when the system cannot create that many.
 * Nothing is changed then. */
KITH_API kith_status kith_threads_set(int64_t n, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
