/* Threads. One pool for the process: OpenMP's, which oneDNN and OpenBLAS share (docs/adr).
 *
 * ki_parallel_for splits [0, n) into at most ki_threads() runs of consecutive items, never smaller
 * than `grain` items. A body must not let its result depend on where the cuts fall: sums across
 * items are made over fixed blocks (KI_SUM_BLOCK), in order, so that results are the same for any
 * number of threads. A child of fork computes, too. */
#ifndef KI_PARALLEL_H
#define KI_PARALLEL_H

#include <stdint.h>

#include "base/error.h"

/* The most threads allowed: Debian's OpenBLAS has buffers for this many. */
enum { KI_MOST_THREADS = 256 };

typedef void (*ki_range_fn)(void *context, int64_t begin, int64_t end);

void ki_parallel_for(int64_t n, int64_t grain, ki_range_fn fn, void *context);

/* Threads in use: what the calling thread or the process has set, else ki_cores' choice (base/cores.h). OpenMP's
 * runtime ends the process when it cannot create a thread, so the threads are tried first. If some cannot be created,
 * fewer are used and a warning says so. */
int ki_threads(void);

/* 0 = as base/cores.h chooses. */
void ki_threads_set(int n);

/* The same for a number that a user asked for: KITH_EINVAL above KI_MOST_THREADS or below 0, KITH_ENOMEM when the
 * system cannot create that many. Nothing is changed then. A number above that of the cores is used, because another
 * number would change the bits of a training run; a warning says that it is slow (docs/adr/0008). */
kith_status ki_threads_ask(int64_t n, kith_error *err);

#endif
