/* Comm: the processes of one job, its ranks, and what they tell each other.
 *
 * A job of `size` ranks works on one thing together: each rank does its share of the work, and the calls below put the
 * shares together. Every rank makes the same calls in the same order; a call returns when this rank has its result. A
 * comm is used by one thread at a time.
 *
 * Results are the same bits on every rank and in every repetition: sums are made in the order of the ranks, not in the
 * order in which messages arrive. With one rank every call returns at once and changes nothing.
 *
 * An implementation provides two functions on bytes, `gather` and `exchange`; everything else is made of them (comm.c).
 * Pointers are the host's; comm/device.h has the same for a device's memory. */
#ifndef KI_COMM_H
#define KI_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"

enum { KI_MOST_RANKS = 4096 };

typedef struct ki_comm ki_comm;

typedef struct ki_comm_type {
    const char *name; /* "mpi" */
    /* all = the ranks' own bytes side by side, in the order of the ranks; bytes[r] of rank r, `own` has bytes[rank].
     * `own` may lie in `all` where it belongs. */
    kith_status (*gather)(ki_comm *comm, const void *own, void *all, const size_t *bytes, kith_error *err);
    /* Rank r gets to_bytes[r] bytes of `to`, whose parts lie side by side; `from` gets what every rank sends here, in the
     * order of the ranks, from_bytes[r] of rank r. */
    kith_status (*exchange)(ki_comm *comm, const void *to, const size_t *to_bytes, void *from,
                            const size_t *from_bytes, kith_error *err);
} ki_comm_type;

/* Each implementation's own struct begins with this one. */
struct ki_comm {
    const ki_comm_type *type;
    int rank, size;
    int n_here, here; /* ranks on this machine, and the place of this one among them */
    int machine;      /* the lowest rank of this machine */
    bool has_agreed;  /* the last failure was returned by ki_comm_agree: every rank knows of it */
    bool is_lost;     /* another failure was: the job cannot go on, and its ranks cannot end together */
    void *scratch;    /* ki_comm_scratch */
    size_t scratch_bytes;
};

/* What a plugin for jobs offers (base/plugin.h): the comm of all ranks of this process's job. It is made once and lives as
 * long as the process. */
typedef struct ki_comm_plugin {
    kith_status (*open)(ki_comm **ret_comm, kith_error *err);
} ki_comm_plugin;

/* The comm of this process's job: one rank, unless the process was started by mpirun (or another starter that sets
 * OMPI_COMM_WORLD_SIZE or PMI_SIZE) with more. Then MPI's plugin is loaded. KITH_EUNSUPPORTED if that is not possible: a
 * job must not become several runs of one process each. The comm belongs to the process. */
kith_status ki_comm_open(ki_comm **ret_comm, kith_error *err);

/* For the files of this folder: memory of that many bytes, valid until the next call of this function. It stays, so that a
 * training step allocates nothing. */
kith_status ki_comm_scratch(ki_comm *comm, size_t bytes, void **ret_memory, kith_error *err);
/* For implementations: free what comm.c has made for it. */
void ki_comm_release(ki_comm *comm);

/* Is this the rank that writes files and talks to the user? */
static inline bool ki_comm_is_first(const ki_comm *comm) { return !comm || comm->rank == 0; }
static inline bool ki_comm_is_alone(const ki_comm *comm) { return !comm || comm->size == 1; }

/* Part `rank` of n things that are dealt out in order: *ret_n of them from *ret_first. Parts differ by one thing at most,
 * and the first ranks have the larger ones. */
void ki_comm_part(int64_t n, int rank, int size, int64_t *ret_first, int64_t *ret_n);
/* The same for this rank. */
void ki_comm_own(const ki_comm *comm, int64_t n, int64_t *ret_first, int64_t *ret_n);

/* The largest part of n things. */
int64_t ki_comm_most(const ki_comm *comm, int64_t n);

/* all = every rank's n_own items of `bytes` bytes, in the order of the ranks. counts [size] says how many items each
 * rank has: counts[rank] is n_own. */
kith_status ki_comm_gather(ki_comm *comm, const void *own, const int64_t *counts, size_t bytes, void *all,
                           kith_error *err);
/* The same for the first rank alone; all is NULL on the others. Any number of bytes. */
kith_status ki_comm_gather_first(ki_comm *comm, const void *own, const int64_t *counts, size_t bytes,
                                 void *all, kith_error *err);
/* One item of `bytes` bytes of every rank: all [size]. */
kith_status ki_comm_gather_each(ki_comm *comm, const void *own, size_t bytes, void *all, kith_error *err);
/* One number of every rank: all [size]. */
kith_status ki_comm_gather_counts(ki_comm *comm, int64_t own, int64_t *all, kith_error *err);
/* Everyone gets the first rank's bytes. */
kith_status ki_comm_broadcast(ki_comm *comm, void *data, size_t bytes, kith_error *err);
/* x [n] = the sum of all ranks' x: rank 0's first, then rank 1's and so on, added in double and rounded once. */
kith_status ki_comm_sum(ki_comm *comm, ki_real *x, int64_t n, kith_error *err);
/* Returns when every rank has come here. */
kith_status ki_comm_wait(ki_comm *comm, kith_error *err);

/* Every rank comes here with the status of what it did alone (and err filled in, when it failed), and all leave with
 * the same one, and the same line: that of the lowest rank that failed, or KITH_OK. */
kith_status ki_comm_agree(ki_comm *comm, kith_status status, kith_error *err);
/* In the same message: *flag becomes true on all ranks if it was on one. */
kith_status ki_comm_agree_on(ki_comm *comm, kith_status status, bool *flag, kith_error *err);

#endif
