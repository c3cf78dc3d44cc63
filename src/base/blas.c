/* Takes OpenBLAS's buffers before a call needs them, so that a lack of memory is an error and not a hang. */
#include "base/blas.h"

#include <pthread.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/parallel.h"

/* The pool of buffers, declared as in OpenBLAS's own header. The symbols are weak because other libraries do
 * not have them. */
extern void *blas_memory_alloc(int unused) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));

/* One buffer is 128 MiB of addresses on x86-64; only the part that is used takes memory. A little more is
 * asked for, because the process will need other memory soon. */
static const size_t buffer_bytes = (size_t)(128 + 16) << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_prepared;

static kith_status hold(int n, kith_error *err) {
    kith_status status = KITH_OK;
    void *held[2 * KI_MOST_THREADS];
    int n_held = 0;
    while (n_held < n && status == KITH_OK) {
        status = ki_room_or(buffer_bytes, "a buffer of BLAS", err);
        if (status == KITH_OK) held[n_held++] = blas_memory_alloc(0);
    }
    while (n_held > 0) blas_memory_free(held[--n_held]);
    return status;
}

kith_status ki_blas_prepare(int64_t n_callers, kith_error *err) {
    if (!blas_memory_alloc || !blas_memory_free || !openblas_get_num_threads) return KITH_OK;
    const int n_threads = ki_threads(), n_now = openblas_get_num_threads();
    /* Each of OpenBLAS's own threads holds a buffer; threads that it has not started yet will take theirs
     * from the same pool. */
    int n = n_callers < n_threads ? (int)n_callers : n_threads;
    if (n < 1) n = 1;
    if (n_threads > n_now) n += n_threads - n_now;
    kith_status status = KITH_OK;
    pthread_mutex_lock(&lock);
    if (n > n_prepared) status = hold(n, err);
    if (n > n_prepared && status == KITH_OK) n_prepared = n;
    pthread_mutex_unlock(&lock);
    if (status != KITH_OK)
        ki_hint(err, status, "free memory or raise the limit (ulimit -v); fewer threads need less");
    return status;
}
