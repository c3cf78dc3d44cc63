/* Threads and caches inside a real control group, as a container has one. Where none can be made (no root, a read-only mount) the
 * tests are skipped; test_cores.c has made-up ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/parallel.h"
#include "data/loader/cache.h"
#include "support/testing.h"

enum { MEMORY_MIB = 96, IMAGE_SIDE = 1024, N_IMAGES = 200 };

static char output[1 << 16];

/* What the other process does inside the group: say what it may use, and fill a cache that would like a gigabyte. */
static int report(void) {
    kith_error err;
    ki_cache *cache = NULL;
    ki_image image = {0};
    if (ki_cache_new(N_IMAGES, (size_t)1 << 30, NULL, &cache, &err) != KITH_OK) return 2;
    if (ki_image_shape(&image, IMAGE_SIDE, IMAGE_SIDE, 1, &err) != KITH_OK) return 2;
    memset(image.data, 7, (size_t)IMAGE_SIDE * IMAGE_SIDE);
    for (int64_t i = 0; i < N_IMAGES; i++) ki_cache_put(cache, i, &image);
    printf("cores %d threads %d each %d memory %lld part %lld cache %zu\n", ki_cores_allowed(), ki_threads(),
           ki_cores_each(2), (long long)ki_memory_allowed(), (long long)ki_memory_part((int64_t)512 << 20, 8),
           ki_cache_bytes(cache));
    ki_image_release(&image);
    ki_cache_free(cache);
    return 0;
}

/* Groups of the first version below our own, or one of the second; 77 when they cannot be made. */
static const char script[] =
    "n=kith-test-$$\n"
    "group() { sed -n \"s/^[0-9]*:\\(.*,\\)*$1\\(,.*\\)*://p\" /proc/self/cgroup; }\n"
    "make() { mkdir \"$1\" 2>/dev/null && made=\"$made $1\"; }\n"
    "set_to() { echo \"$2\" >\"$1\"; }\n"
    "end() { for g in $made; do rmdir \"$g\"; done; exit $1; }\n"
    "made=\n"
    "c=/sys/fs/cgroup/cpu$(group cpu)/$n m=/sys/fs/cgroup/memory$(group memory)/$n\n"
    "if make \"$c\" && make \"$m\"; then\n"
    "  set_to $c/cpu.cfs_period_us 100000 && set_to $c/cpu.cfs_quota_us 50000 && "
    "set_to $m/memory.limit_in_bytes $MEMORY || end 77\n"
    "else\n"
    "  end_of() { for g in $made; do rmdir \"$g\"; done; made=; }; end_of\n"
    "  v=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/$n c=$v m=$v\n"
    "  make \"$v\" || end 77\n"
    "  set_to $v/cpu.max '50000 100000' 2>/dev/null && set_to $v/memory.max $MEMORY 2>/dev/null || end 77\n"
    "fi\n"
    "sh -c 'echo $$ >$0/cgroup.procs && echo $$ >$1/cgroup.procs && exec \"$2\" report' $c $m \"$PROGRAM\"\n"
    "end $?\n";

static void test_a_container(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/group.sh", testing_folder());
    testing_write(path, script);
    const int status =
        testing_run(output, sizeof output, "unset OMP_NUM_THREADS; MEMORY=%lld PROGRAM='%s' sh '%s' 2>&1",
                    (long long)MEMORY_MIB << 20, testing_self(), path);
    if (status == 77) skip();
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    int cores = 0, threads = 0, each = 0;
    long long memory = 0, part = 0, cache = 0;
    if (sscanf(output, "cores %d threads %d each %d memory %lld part %lld cache %lld", &cores, &threads,
               &each, &memory, &part, &cache) != 6)
        fail_msg("%s", output);
    assert_int_equal(cores, 1); /* half a core */
    assert_int_equal(threads, 1);
    assert_int_equal(each, 1);
    assert_int_equal(memory, (long long)MEMORY_MIB << 20);
    assert_int_equal(part, (long long)MEMORY_MIB << 17);
    assert_in_range(cache, (MEMORY_MIB / 4) << 20, (MEMORY_MIB / 2) << 20);
}

int main(void) {
    if (testing_argument(1) && strcmp(testing_argument(1), "report") == 0) return report();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_container)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
