/* Which job this process belongs to. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/plugin.h"
#include "base/text.h"
#include "comm/comm.h"

static ki_comm alone = {.size = 1, .n_here = 1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ki_comm *opened; /* NULL: not asked for yet */

/* How many ranks the starter says that there are; 1 without a starter. */
static int64_t n_ranks_told(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    int64_t n = 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text && ki_parse_int64(text, &n)) return n;
    }
    return 1;
}

static kith_status open_job(int64_t n_told, ki_comm **ret, kith_error *err) {
    static const ki_plugin_ask ask = {.name = "mpi",
                                      .what = "training over ranks",
                                      .makes = "MPI is (libopenmpi-dev)",
                                      .needs = "the MPI it was built with (Debian: libopenmpi3)",
                                      .instead = "start kith without mpirun"};
    const void *record = NULL;
    ki_comm *comm = NULL;
    KI_TRY(ki_plugin_open(&ask, &record, err));
    KI_TRY(((const ki_comm_plugin *)record)->open(&comm, err));
    if (comm->size > KI_MOST_RANKS)
        return ki_fail(err, KITH_EUNSUPPORTED, "a job of %d ranks; at most %d are possible", comm->size,
                       KI_MOST_RANKS);
    if (comm->size == n_told) return *ret = comm, KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "MPI has %d ranks, and the job was started with %lld", comm->size,
            (long long)n_told);
    return ki_hint(err, KITH_EUNSUPPORTED,
                   "start kith with the mpirun of the MPI that libkith-mpi.so was built with");
}

kith_status ki_comm_open(ki_comm **ret_comm, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n = n_ranks_told();
    pthread_mutex_lock(&lock);
    if (!opened && n > 1)
        status = open_job(n, &opened, err);
    else if (!opened)
        opened = &alone;
    *ret_comm = opened;
    pthread_mutex_unlock(&lock);
    return status;
}
