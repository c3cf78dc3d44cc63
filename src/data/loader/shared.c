/* Memory that the ranks of one machine have together.
 *
 * Every rank makes a file in memory (memfd_create) and says where it is: process, descriptor, and on which machine. The file of the
 * lowest rank of a machine becomes everybody's: the others open it through /proc. The file has no name, so it is gone with the
 * last process that uses it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"
#include "data/loader/cache.h"

/* Where a rank's file is. Processes see each other in /proc if machine and process namespace are the same. */
typedef struct place {
    char machine[40];
    uint64_t processes;
    int64_t process, descriptor; /* -1: there is no file */
} place;

static int make_file(size_t bytes) {
    const int file = memfd_create("kith cache", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    /* Nobody can make it shorter under those who have it mapped. */
    if (bytes <= INT64_MAX && ftruncate(file, (off_t)bytes) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return file;
    close(file);
    return -1;
}

static place place_of(int file) {
    place p = {.process = getpid(), .descriptor = file};
    struct stat info;
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    const size_t n = id ? fread(p.machine, 1, sizeof p.machine - 1, id) : 0;
    if (id) fclose(id);
    if (n == 0 || stat("/proc/self/ns/pid", &info) != 0) p.descriptor = -1;
    p.processes = p.descriptor < 0 ? 0 : (uint64_t)info.st_ino;
    return p;
}

static bool is_near(const place *a, const place *b) {
    return a->processes == b->processes && memcmp(a->machine, b->machine, sizeof a->machine) == 0;
}

/* The lowest rank of this machine that has a file; -1: none. */
static int first_here(const place *all, int size, int rank, int *ret_n_here) {
    int first = -1;
    *ret_n_here = 0;
    for (int r = 0; r < size; r++) {
        if (!is_near(&all[r], &all[rank])) continue;
        (*ret_n_here)++;
        if (first < 0 && all[r].descriptor >= 0) first = r;
    }
    return first;
}

static void *map_file(const place *from, size_t bytes) {
    char path[64];
    ki_snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)from->process,
                (long long)from->descriptor);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

kith_status ki_shared_take(ki_comm *comm, size_t bytes, void **ret_memory, int *ret_n_here, kith_error *err) {
    kith_status status;
    int64_t ones[KI_MOST_RANKS];
    place *all = NULL;
    int n_here = 1;
    void *memory = NULL;
    *ret_memory = NULL;
    *ret_n_here = 1;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    const int file = make_file(bytes);
    const place own = place_of(file);
    for (int r = 0; r < comm->size; r++) ones[r] = 1;
    KI_CHECK(ki_comm_agree(comm, ki_alloc_or(&all, (size_t)comm->size, sizeof *all, "places of memory", err),
                           err));
    KI_CHECK(ki_comm_gather(comm, &own, ones, sizeof own, all, err));
    const int first = first_here(all, comm->size, comm->rank, &n_here);
    if (n_here > 1 && first >= 0) memory = map_file(&all[first], bytes);
    KI_CHECK(ki_comm_wait(comm, err)); /* the first's file must be there until all have opened it */
    *ret_memory = memory;
    *ret_n_here = n_here;
    memory = NULL;
done:
    ki_shared_give(memory, bytes);
    if (file >= 0) close(file);
    ki_free(all);
    return status;
}

void ki_shared_give(void *memory, size_t bytes) {
    if (memory) munmap(memory, bytes);
}
