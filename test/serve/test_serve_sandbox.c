/* A process in the sandbox: what it still can do, and what ends it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "serve/decode/sandbox.h"
#include "support/testing.h"

/* Run fn in a process that is locked in; its exit status, or minus the signal that ended it. */
static int run_inside(int (*fn)(void)) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        kith_error err;
        const int result = ki_sandbox_enter(64 << 20, &err) == KITH_OK ? fn() : 99;
        syscall(SYS_exit_group, result);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int open_a_file(void) { return open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES ? 0 : 1; }
static int look_at_a_file(void) {
    struct stat info;
    return stat("/etc/passwd", &info) < 0 ? 0 : 1;
}
static int take_some_memory(void) {
    char *p = malloc(8 << 20);
    if (!p) return 1;
    memset(p, 1, 8 << 20);
    free(p);
    return 0;
}
static int take_much_memory(void) { return malloc((size_t)1 << 30) ? 1 : 0; }
static void *add_one(void *context) {
    ++*(int *)context;
    return NULL;
}
static int make_a_thread(void) {
    pthread_t thread;
    int n = 0;
    if (pthread_create(&thread, NULL, add_one, &n) != 0) return 1;
    pthread_join(thread, NULL);
    return n == 1 ? 0 : 2;
}

static void test_what_it_can_do(void **state) {
    (void)state;
    assert_int_equal(run_inside(open_a_file), 0);
    assert_int_equal(run_inside(look_at_a_file), 0);
    assert_int_equal(run_inside(take_some_memory), 0);
    assert_int_equal(run_inside(make_a_thread), 0);
    if (!KI_ASAN && !KI_TSAN) assert_int_equal(run_inside(take_much_memory), 0);
}

static int make_a_process(void) { return (int)fork(); }
static int run_a_program(void) {
    char *const arguments[] = {NULL};
    return execve("/bin/true", arguments, arguments);
}
static int make_a_socket(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static int kill_the_parent(void) { return kill(getppid(), 0); }
static int trace(void) { return (int)syscall(SYS_ptrace, 0, 0, 0, 0); }
static int make_code(void) {
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}
static int turn_into_code(void) {
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static void test_what_ends_it(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int (*fn)(void);
    } row[] = {{"a process", make_a_process},
               {"a program", run_a_program},
               {"a socket", make_a_socket},
               {"a signal", kill_the_parent},
               {"ptrace", trace},
               {"code", make_code},
               {"memory as code", turn_into_code}};
    for (size_t i = 0; i < N_ROWS(row); i++) {
        const int found = run_inside(row[i].fn);
        if (found != -SIGSYS) fail_msg("%s: %d, wanted %d", row[i].name, found, -SIGSYS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_it_can_do),
                                       cmocka_unit_test(test_what_ends_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
