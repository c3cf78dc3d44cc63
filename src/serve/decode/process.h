/* One decoding process: started, looked after, ended. */
#ifndef KI_DECODE_PROCESS_H
#define KI_DECODE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Zero-initialise. */
typedef struct ki_decode_process {
    pid_t pid; /* 0: there is none */
    int fd;    /* the socket to it */
} ki_decode_process;

/* Start `PROGRAM serve --decode-images`, and wait until it is locked in (sandbox.h) with so much memory. The calling thread must outlive
 * it: it ends with that. */
kith_status ki_decode_process_start(const char *program, uint64_t memory_bytes, ki_decode_process *process,
                                    kith_error *err);
/* At once, and wait for it. Fine when there is none. */
void ki_decode_process_end(ki_decode_process *process);
/* Is there none, or one that has ended? Not while it is asked something. */
bool ki_decode_process_is_gone(const ki_decode_process *process);

#endif
