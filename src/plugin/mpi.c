/* MPI as a plugin: the ranks that mpirun started, and the two symbols that libkith-mpi.so exports.
 *
 * Only the thread that opened the comm calls MPI. Counts are MPI's ints, so messages of 2 GiB and more go rank by rank in
 * pieces.
 *
 * When the process ends, MPI is ended with it, unless the job is lost (ki_comm.is_lost): a rank that ends without doing so
 * makes mpirun stop all others, which may be waiting for it. */
#include <limits.h>
#include <mpi.h>
#include <string.h>

#include "base/plugin.h"
#include "comm/comm.h"

static ki_comm job;

static kith_status fail_mpi(int code, const char *what, kith_error *err) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return ki_fail(err, KITH_EIO, "%s between ranks: %.300s", what, text);
}

#define TRY_MPI(call, what)                                          \
    do {                                                             \
        const int code_ = (call);                                    \
        if (code_ != MPI_SUCCESS) return fail_mpi(code_, what, err); \
    } while (0)

/* As MPI wants them; false: too large for one call. */
static bool fits(const size_t *bytes, int size, int *count, int *at) {
    size_t sum = 0;
    for (int r = 0; r < size; r++) {
        if (bytes[r] > INT_MAX || sum > INT_MAX) return false;
        count[r] = (int)bytes[r];
        at[r] = (int)sum;
        sum += bytes[r];
    }
    return sum <= INT_MAX;
}

static kith_status gather_large(const ki_comm *comm, const void *own, char *all, const size_t *bytes,
                                kith_error *err) {
    enum { MOST = 1 << 30 };
    for (int r = 0; r < comm->size; r++) {
        char *part = all;
        for (int q = 0; q < r; q++) part += bytes[q];
        if (r == comm->rank && own != part) memmove(part, own, bytes[r]);
        for (size_t done = 0; done < bytes[r]; done += MOST) {
            const size_t left = bytes[r] - done;
            TRY_MPI(MPI_Bcast(part + done, left < MOST ? (int)left : MOST, MPI_BYTE, r, MPI_COMM_WORLD),
                    "gathering");
        }
    }
    return KITH_OK;
}

static kith_status gather(ki_comm *comm, const void *own, void *all, const size_t *bytes, kith_error *err) {
    int count[KI_MOST_RANKS], at[KI_MOST_RANKS];
    if (!fits(bytes, comm->size, count, at)) return gather_large(comm, own, all, bytes, err);
    const bool is_there = own == (const char *)all + at[comm->rank];
    TRY_MPI(MPI_Allgatherv(is_there ? MPI_IN_PLACE : own, count[comm->rank], MPI_BYTE, all, count, at,
                           MPI_BYTE, MPI_COMM_WORLD),
            "gathering");
    return KITH_OK;
}

static kith_status exchange(ki_comm *comm, const void *to, const size_t *to_bytes, void *from,
                            const size_t *from_bytes, kith_error *err) {
    int out[KI_MOST_RANKS], out_at[KI_MOST_RANKS], in[KI_MOST_RANKS], in_at[KI_MOST_RANKS];
    if (!fits(to_bytes, comm->size, out, out_at) || !fits(from_bytes, comm->size, in, in_at))
        return ki_fail(err, KITH_EUNSUPPORTED, "an exchange of 2 GiB between ranks; wanted less");
    TRY_MPI(MPI_Alltoallv(to, out, out_at, MPI_BYTE, from, in, in_at, MPI_BYTE, MPI_COMM_WORLD),
            "exchanging");
    return KITH_OK;
}

static const ki_comm_type type = {.name = "mpi", .gather = gather, .exchange = exchange};

static kith_status open(ki_comm **ret, kith_error *err) {
    int given = 0;
    MPI_Comm here = MPI_COMM_NULL;
    TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given), "starting");
    TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "starting");
    job.type = &type;
    TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &job.rank), "starting");
    TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &job.size), "starting");
    TRY_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here), "starting");
    TRY_MPI(MPI_Comm_size(here, &job.n_here), "starting");
    TRY_MPI(MPI_Comm_rank(here, &job.here), "starting");
    job.machine = job.rank;
    TRY_MPI(MPI_Bcast(&job.machine, 1, MPI_INT, 0, here), "starting");
    TRY_MPI(MPI_Comm_free(&here), "starting");
    *ret = &job;
    return KITH_OK;
}

__attribute__((destructor)) static void end(void) {
    int has_begun = 0, has_ended = 0;
    if (job.is_lost || MPI_Initialized(&has_begun) != MPI_SUCCESS || !has_begun) return;
    if (MPI_Finalized(&has_ended) == MPI_SUCCESS && !has_ended) MPI_Finalize();
}

static const ki_comm_plugin plugin = {.open = open};

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    ki_process_adopt(process);
    return &plugin;
}
