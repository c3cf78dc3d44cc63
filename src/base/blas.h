/* OpenBLAS and memory. It packs matrices into buffers of its own, one for each thread that is inside a call, and
 * never frees them. If the system has no memory for a new one, OpenBLAS tries again for ever and returns no
 * error. So the buffers are taken beforehand, where an error can still be returned. */
#ifndef KI_BLAS_H
#define KI_BLAS_H

#include <stdint.h>

#include "base/error.h"

/* Call this before BLAS or LAPACK, outside parallel work. Afterwards `n_callers` threads (at least 1) may call at
 * once, with the present ki_threads(), and OpenBLAS asks for no more memory. KITH_ENOMEM when there is not
 * enough. Does nothing when this was done before, or with another BLAS. */
kith_status ki_blas_prepare(int64_t n_callers, kith_error *err);

#endif
