/* What has to happen before the libraries that kith uses are initialised, or instead of it.
 *
 * OpenBLAS allocates a buffer for every core while it is loaded, and tries for ever if it gets none, even under
 * `kith --version`. A function of the program itself runs before those of all libraries (.preinit_array). It
 * checks whether there is memory for the buffers. At that time nothing is set up: no environ, no stdio, only
 * system calls.
 *
 * In gcc's OpenMP runtime a thread that waits spins for milliseconds. If other programs want the core, the thread
 * that it waits for cannot run in the meantime. The runtime reads from the environment how long to spin when it
 * is loaded, so the program starts itself again with another value (docs/adr/0008). So does OpenBLAS with its kernels. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"

/* The number at the beginning of an environment variable; 0 if there is none. */
static long number_in(char **environment, const char *name) {
    const size_t n = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, n) != 0 || (*environment)[n] != '=') continue;
        long number = 0;
        for (const char *c = *environment + n + 1; *c >= '0' && *c <= '9' && number < 10000; c++)
            number = 10 * number + *c - '0';
        return number;
    }
    return 0;
}

/* Threads that OpenBLAS takes buffers for. */
static long blas_threads(char **environment) {
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
    enum { MOST = 128 }; /* Debian's build */
    cpu_set_t set;
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    long n = MOST;
    if (bytes > 0) {
        memset((char *)&set + bytes, 0, sizeof set - (size_t)bytes);
        n = CPU_COUNT(&set) < MOST ? CPU_COUNT(&set) : MOST;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const long asked = number_in(environment, names[i]);
        if (asked > 0) return asked < n ? asked : n;
    }
    return n;
}

/* System calls by number, because a sanitizer's versions of the functions are not ready yet. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void look_for_memory(
    int argc, char **argv, char **environment) {
    static const char line[] =
        "kith: no memory to start with: BLAS wants 128 MiB of addresses for every core (raise the limit, "
        "ulimit -v, or set OMP_NUM_THREADS=1)\n";
    (void)argc, (void)argv;
    /* Without reserving memory: this asks only whether there are enough addresses, not whether there is
     * enough memory. */
    const size_t bytes = (size_t)blas_threads(environment) * ((size_t)129 << 20);
    const long room = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room != -1) {
        syscall(SYS_munmap, room, bytes);
        return;
    }
    syscall(SYS_write, STDERR_FILENO, line, sizeof line - 1);
    syscall(SYS_exit_group, CLI_FAILURE);
}

typedef void (*first_fn)(int argc, char **argv, char **environment);
__attribute__((section(".preinit_array"), used)) static const first_fn first = look_for_memory;

/* Processors from before SSSE3. Of AMD's, OpenBLAS takes the kernels that use 3DNow!, which virtual machines of that name
 * do not have, and the program would end with an illegal instruction. Those of the Prescott need SSE3 alone. */
static bool is_old(void) {
#if defined(__x86_64__)
    return !__builtin_cpu_supports("ssse3");
#else
    return false;
#endif
}

void cli_wait_shortly(char **argv) {
    char path[PATH_MAX];
    /* What is set is the user's choice, or ours. */
    const bool spins = !getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT");
    const bool guesses = is_old() && !getenv("OPENBLAS_CORETYPE");
    if (!spins && !guesses) return;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || (spins && setenv("GOMP_SPINCOUNT", "10000", 1) != 0) ||
        (guesses && setenv("OPENBLAS_CORETYPE", "Prescott", 1) != 0))
        return;
    path[n] = '\0';
    execv(path, argv); /* returns only if it fails: then threads wait as they do by default */
}
