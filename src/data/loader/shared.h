/* Memory that the ranks of one machine have together (docs/adr/0103).
 *
 * It is a file in memory without a name, so it is gone with the last process that has it. */
#ifndef KI_SHARED_H
#define KI_SHARED_H

#include "comm/comm.h"

typedef struct ki_shared {
    char *memory; /* zeros at the beginning; NULL: there is none */
    size_t bytes;
    int file;
    int n_here;    /* ranks on this machine, whether they share or not */
    int n_sharing; /* ranks that have this memory; 1 when there is none */
} ki_shared;

/* Where a rank's file is, and how to know it again: what the ranks tell each other. */
typedef struct ki_shared_place {
    char machine[40];            /* its boot id; empty: not known */
    uint64_t processes;          /* the namespace in which `process` is a number; 0: not known */
    int64_t process, descriptor; /* descriptor -1: there is no file */
    uint64_t device, inode;
} ki_shared_place;

/* Every rank calls this with the same numbers. Either all ranks of a machine that see each other's processes get the memory, or
 * none of them does. It is no error when there is none. The first `ready` bytes can be used at once, the others after
 * ki_shared_fill. */
kith_status ki_shared_take(ki_comm *comm, size_t bytes, size_t ready, ki_shared *ret_shared, kith_error *err);
void ki_shared_give(ki_shared *shared); /* without memory: nothing to do */

/* Rounded up to whole pages. */
size_t ki_shared_pages(size_t bytes);
/* Have the system provide these bytes, which are whole pages; false: it has no more. To touch bytes that were not provided may
 * kill the process (SIGBUS). A page belongs to one caller: a failed call may take back pages that were not yet written. */
bool ki_shared_fill(const ki_shared *shared, size_t at, size_t bytes);

#endif
