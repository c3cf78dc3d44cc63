/* OpenBLAS and memory. It packs matrices into buffers of its own, one for each thread that is inside a call, and
 * keeps them for good. When the system has no memory for a new one, it tries again for ever: no error, no end.
 * So the buffers are taken beforehand, where an error can still be returned. */
#ifndef KI_BLAS_H
#define KI_BLAS_H

#include <stdint.h>

#include "core/error.h"

/* To be called before BLAS or LAPACK, outside parallel work: afterwards `n_callers` threads (at least 1) may call
 * at once on the present ki_threads() without OpenBLAS asking for memory. KITH_ENOMEM when there is none. Does
 * nothing when that was done before, or with another BLAS. */
kith_status ki_blas_prepare(int64_t n_callers, kith_error *err);

#endif
