/* The first failure among threads of a parallel loop, whose body cannot return one. */
#ifndef KI_SEARCH_FAILURE_H
#define KI_SEARCH_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

typedef struct ki_failure {
    atomic_bool is_taken; /* by the thread that writes the error */
    atomic_int status;
    kith_error error;
} ki_failure;

static inline void ki_failure_set(ki_failure *f, kith_status status, const kith_error *error) {
    if (status == KITH_OK || atomic_exchange(&f->is_taken, true)) return;
    f->error = *error;
    atomic_store(&f->status, (int)status);
}
/* For loops: is there reason to stop? */
static inline bool ki_failure_is_set(ki_failure *f) { return atomic_load(&f->is_taken); }
/* After the loop. */
static inline kith_status ki_failure_get(ki_failure *f, kith_error *err) {
    const kith_status status = (kith_status)atomic_load(&f->status);
    if (status != KITH_OK && err) *err = f->error;
    return status;
}

#endif
