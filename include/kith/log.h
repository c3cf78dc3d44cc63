/* Log lines and process-wide counters.
 *
 * The library never prints. Messages beyond a result (a skipped file, a fallback that was used) go to one
 * callback for the process; without a callback the lines are dropped. */
#ifndef KITH_LOG_H
#define KITH_LOG_H

#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kith_log_level { KITH_LOG_DEBUG, KITH_LOG_INFO, KITH_LOG_WARNING } kith_log_level;

/* `line` has no newline and is valid only during the call. May be called from any thread, one call
 * at a time. */
typedef void (*kith_log_fn)(void *user, kith_log_level level, const char *line);

/* Set the callback (NULL drops the lines) and the lowest level that reaches it. Do not call this while other
 * threads are inside the library. */
KITH_API void kith_log_set(kith_log_fn fn, void *user, kith_log_level least);

/* Heap use of the library itself, all threads together. */
typedef struct kith_memory_stats {
    uint64_t n_allocations; /* calls that allocated memory since the process began */
    uint64_t live_bytes;    /* allocated and not yet freed */
    uint64_t peak_bytes;    /* the most live_bytes has been */
} kith_memory_stats;

/* As it is now. Any thread may ask. */
KITH_API void kith_memory_stats_get(kith_memory_stats *ret_stats);

#ifdef __cplusplus
}
#endif
#endif
