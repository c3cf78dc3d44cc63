/* Threads. One pool for the process: OpenMP's, which oneDNN and OpenBLAS share (docs/adr).
 *
 * ki_parallel_for splits [0, n) into at most ki_threads() runs of consecutive items, never smaller
 * than `grain` items. A body must not let its result depend on where the cuts fall: sums across
 * items are made over fixed blocks (KI_SUM_BLOCK), in order, so that results are the same for any
 * number of threads. */
#ifndef KI_PARALLEL_H
#define KI_PARALLEL_H

#include <stdint.h>

typedef void (*ki_range_fn)(void *context, int64_t begin, int64_t end);

void ki_parallel_for(int64_t n, int64_t grain, ki_range_fn fn, void *context);

/* Threads in use: the process's choice, else all cores allowed to it. */
int ki_threads(void);
/* 0 = all cores allowed to the process. */
void ki_threads_set(int n);

#endif
