/* State that exists once per process: the memory counts and the log callback.
 *
 * A device's plugin is linked with its own copy of core's code. When it is loaded it adopts the record of the
 * library that loads it. So memory is counted in one place, whichever copy takes or frees it, and log lines reach the
 * callback that the program has set. */
#ifndef KI_PROCESS_H
#define KI_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kith/log.h"

typedef struct ki_process {
    /* base/alloc.c */
    atomic_uint_least64_t n_allocations, live_bytes, peak_bytes;
    atomic_int_least64_t fail_after;
    atomic_bool has_failed;
    /* base/log.c */
    kith_log_fn log_fn;
    void *log_user;
    kith_log_level log_least;
    pthread_mutex_t log_lock;
} ki_process;

/* The record in use: this copy's own until another one is adopted. */
ki_process *ki_process_now(void);
/* Call it before this copy of the code allocates memory. The record must live as long as the process. */
void ki_process_adopt(ki_process *process);

#endif
