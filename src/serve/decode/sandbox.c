/* Limits and a filter of system calls (seccomp), written by hand: a list of numbers does not need a library (docs/adr/0070). */
#include "serve/decode/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/text.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
/* The next statement only if the loaded number is this one. */
#define IF_EQUAL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1)
#define ALLOW(call) IF_EQUAL(SYS_##call), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(call, why) IF_EQUAL(SYS_##call), RETURN(SECCOMP_RET_ERRNO | (why))
/* Memory, but none that can be executed: the third argument has no PROT_EXEC. */
#define ALLOW_WITHOUT_EXEC(call)                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), LOAD(args[2]),                 \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), RETURN(SECCOMP_RET_ALLOW), \
        RETURN(SECCOMP_RET_KILL_PROCESS)
/* Threads of this process, no other processes. */
#define ALLOW_THREADS                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4), LOAD(args[0]),                     \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1), RETURN(SECCOMP_RET_ALLOW), \
        RETURN(SECCOMP_RET_KILL_PROCESS)

static const struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    ALLOW(read),
    ALLOW(write),
    ALLOW(futex),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(clock_gettime),
    ALLOW(clock_nanosleep),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(rt_sigaction), /* the C library, when the first thread is made */
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(set_robust_list),
    ALLOW(exit),
    ALLOW(exit_group),
#ifdef SYS_rseq
    ALLOW(rseq),
#endif
#if KI_ASAN || KI_TSAN
    ALLOW(sigaltstack), /* threads of a sanitizer */
    ALLOW(prctl),
    ALLOW(readlink),
    ALLOW(gettimeofday),
    ALLOW(nanosleep),
#else
    REFUSE(prctl, EPERM), /* names of threads */
#endif
    ALLOW_WITHOUT_EXEC(mmap),
    ALLOW_WITHOUT_EXEC(mprotect),
    ALLOW_THREADS,
#ifdef SYS_clone3
    REFUSE(clone3, ENOSYS), /* its flags cannot be seen from here; the C library then uses clone */
#endif
    /* Libraries look for settings and for the number of cores, and do without. */
    REFUSE(openat, EACCES),
    REFUSE(newfstatat, EACCES),
    REFUSE(readlinkat, EACCES),
    REFUSE(sched_setaffinity, EPERM),
    REFUSE(sysinfo, EPERM),
#ifdef SYS_open
    REFUSE(open, EACCES),
    REFUSE(stat, EACCES),
    REFUSE(access, EACCES),
    REFUSE(readlink, EACCES),
#endif
    RETURN(SECCOMP_RET_KILL_PROCESS),
};

static kith_status limit(int what, uint64_t most, kith_error *err) {
    const struct rlimit both = {most, most};
    if (setrlimit((__rlimit_resource_t)what, &both) == 0) return KITH_OK;
    return ki_fail(err, KITH_EUNSUPPORTED, "a decoder's limits cannot be set: %s", strerror(errno));
}

/* Addresses that the process has now: those of libraries that reserve many count, too. */
static uint64_t address_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%llu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

kith_status ki_sandbox_enter(uint64_t memory_bytes, kith_error *err) {
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0],
                                       .filter = (struct sock_filter *)(uintptr_t)filter};
    if (ARCHITECTURE == 0)
        return ki_fail(err, KITH_EUNSUPPORTED, "images are not decoded safely on this kind of processor");
    mallopt(M_ARENA_MAX, 1); /* each thread's arena would take 64 MiB of the addresses below */
    /* A sanitizer's shadow is larger than any limit. */
    const uint64_t now = address_bytes();
    if (!KI_SANITIZED) KI_TRY(limit(RLIMIT_AS, now + memory_bytes, err));
    KI_TRY(limit(RLIMIT_CORE, 0, err));
    KI_TRY(limit(RLIMIT_FSIZE, 0, err));
    KI_TRY(limit(RLIMIT_NOFILE, 0, err));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return ki_fail(err, KITH_EUNSUPPORTED, "the kernel does not filter system calls: %s",
                       strerror(errno));
    return KITH_OK;
}
