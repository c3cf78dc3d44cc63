/* Every rank makes a file in memory (memfd_create) and says where it is: process, descriptor, and on which machine. The file of
 * the lowest rank becomes everybody's who can see that process: they open it through /proc.
 *
 * What /proc shows may be another file: it may be mounted for another process namespace, where the number is a stranger's. So the
 * place says which file it is, and a rank looks before it opens and again before it maps. */
#include "data/loader/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"

/* The system gives a file in memory its pages when they are first touched, and kills who touches one that it cannot give. */
static bool fill(int file, size_t at, size_t bytes) {
    int rc;
    do {
        rc = fallocate(file, 0, (off_t)at, (off_t)bytes);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* To make a file longer than the user allows would kill the process (SIGXFSZ). */
static bool is_allowed(size_t bytes) {
    struct rlimit limit;
    return bytes <= INT64_MAX && getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

static int make_file(size_t bytes, size_t ready) {
    const int file = is_allowed(bytes) ? memfd_create("kith cache", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file < 0) return -1;
    /* Nobody can make it shorter under those who have it mapped. */
    if (ftruncate(file, (off_t)bytes) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && fill(file, 0, ready))
        return file;
    close(file);
    return -1;
}

static ki_shared_place place_of(int file) {
    ki_shared_place p = {.process = getpid(), .descriptor = -1};
    struct stat processes, info;
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    const size_t n = id ? fread(p.machine, 1, sizeof p.machine - 1, id) : 0;
    if (id) fclose(id);
    if (n == 0 || stat("/proc/self/ns/pid", &processes) != 0) return p;
    p.processes = processes.st_ino; /* a rank without a file, too: it may have another's */
    if (file < 0 || fstat(file, &info) != 0) return p;
    p.descriptor = file;
    p.device = info.st_dev;
    p.inode = info.st_ino;
    return p;
}

/* Who a rank shares with. */
typedef struct group {
    int n_here; /* ranks on its machine: their memory is one */
    int n_near; /* of them, those that see each other's processes */
    int first;  /* the lowest of these that has a file; -1: none */
    bool is_near[KI_MOST_RANKS];
} group;

static void find_group(const ki_shared_place *all, int size, int rank, group *g) {
    const ki_shared_place *own = &all[rank];
    g->n_here = g->n_near = 0;
    g->first = -1;
    for (int r = 0; r < size; r++) {
        const bool is_here = memcmp(all[r].machine, own->machine, sizeof own->machine) == 0;
        g->is_near[r] = is_here && all[r].processes == own->processes;
        g->n_here += is_here;
        g->n_near += g->is_near[r];
        if (g->is_near[r] && g->first < 0 && all[r].descriptor >= 0) g->first = r;
    }
}

static bool is_that_file(const struct stat *info, const ki_shared_place *place, size_t bytes) {
    return info->st_dev == place->device && info->st_ino == place->inode && S_ISREG(info->st_mode) &&
           (uint64_t)info->st_size == bytes;
}

/* The file at that place; -1: it is not there, or another one is. */
static int open_file(const ki_shared_place *from, size_t bytes) {
    char path[64];
    struct stat info;
    ki_snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)from->process,
                (long long)from->descriptor);
    /* To open a stranger's device could have an effect on it. */
    if (stat(path, &info) != 0 || !is_that_file(&info, from, bytes)) return -1;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return -1;
    const int seals = fcntl(file, F_GET_SEALS);
    if (fstat(file, &info) == 0 && is_that_file(&info, from, bytes) && seals >= 0 && (seals & F_SEAL_SHRINK))
        return file;
    close(file);
    return -1;
}

static void map(const ki_shared_place *from, size_t bytes, ki_shared *to) {
    const int file = open_file(from, bytes);
    if (file < 0) return;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED) {
        close(file);
        return;
    }
    to->memory = memory;
    to->bytes = bytes;
    to->file = file;
}

kith_status ki_shared_take(ki_comm *comm, size_t bytes, size_t ready, ki_shared *ret_shared,
                           kith_error *err) {
    kith_status status;
    int64_t each[KI_MOST_RANKS];
    group g;
    ki_shared_place *all = NULL;
    ki_shared shared = {.n_here = 1, .n_sharing = 1};
    *ret_shared = shared;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    const int file = make_file(bytes, ready);
    const ki_shared_place own = place_of(file);
    KI_CHECK(ki_comm_agree(comm, ki_alloc_or(&all, (size_t)comm->size, sizeof *all, "places of memory", err),
                           err));
    KI_CHECK(ki_comm_gather_each(comm, &own, sizeof own, all, err));
    find_group(all, comm->size, comm->rank, &g);
    if (g.n_near > 1 && g.first >= 0) map(&all[g.first], bytes, &shared);
    /* Ranks without it would take memory beside it. This also waits: the first's file must be there until all have opened it. */
    KI_CHECK(ki_comm_gather_counts(comm, shared.memory != NULL, each, err));
    for (int r = 0; r < comm->size; r++) {
        if (g.is_near[r] && !each[r]) ki_shared_give(&shared);
    }
    shared.n_here = g.n_here;
    if (shared.memory) shared.n_sharing = g.n_near;
    *ret_shared = shared;
    shared = (ki_shared){0};
done:
    ki_shared_give(&shared);
    if (file >= 0) close(file);
    ki_free(all);
    return status;
}

void ki_shared_give(ki_shared *shared) {
    if (!shared->memory) return;
    munmap(shared->memory, shared->bytes);
    close(shared->file);
    shared->memory = NULL;
}

size_t ki_shared_pages(size_t bytes) { return ki_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE)); }

bool ki_shared_fill(const ki_shared *shared, size_t at, size_t bytes) {
    return fill(shared->file, at, bytes);
}
