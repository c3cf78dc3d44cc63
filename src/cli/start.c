/* What has to happen before the libraries that kith stands on set themselves up, or in place of it.
 *
 * OpenBLAS takes a buffer for every core while it is loaded and tries for ever when it gets none, even under
 * `kith --version`. The program's own first function runs before that of any library (.preinit_array), so it looks
 * whether the buffers can be had. Nothing is set up then: no environ, no stdio, only calls to the system.
 *
 * OpenMP's runtime of gcc lets a thread that waits spin for milliseconds. Where other programs want the core, the
 * thread that it waits for is not running meanwhile. How long it spins is read from the environment when the
 * runtime is loaded, so the program starts itself once more with another value (docs/adr/0008). */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"

/* The number a variable of the environment begins with; 0 without one. */
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

/* System calls by number: a sanitizer's versions of the functions are not ready yet either. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void look_for_memory(
    int argc, char **argv, char **environment) {
    static const char line[] =
        "kith: no memory to start with: BLAS wants 128 MiB of addresses for every core (raise the limit, "
        "ulimit -v, or set OMP_NUM_THREADS=1)\n";
    (void)argc, (void)argv;
    /* Not reserved: only whether there are addresses for so much is asked, not whether memory would do. */
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

void cli_wait_shortly(char **argv) {
    char path[PATH_MAX];
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return; /* the user's choice, or ours */
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || setenv("GOMP_SPINCOUNT", "10000", 1) != 0) return;
    path[n] = '\0';
    execv(path, argv); /* returns only where it cannot be done: then threads wait as they do by default */
}
