/* One cache for the ranks of a machine, and what becomes of it where they cannot share. Ranks are threads: what a rank hears of
 * the others can be changed, and calls of the system can fail for one of them. Also run under ThreadSanitizer. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/loader/cache.h"
#include "data/loader/shared.h"
#include "support/thread_ranks.h"

enum { ITEMS = 60, SIDE = 32, PIXELS = SIDE * SIDE * 3, ROOMY = 1 << 20, NARROW = 100 << 10 };

#define TESTING_ALONE /* the fallocate below is that of the whole program */

/* Instead of the system's: so many calls of this thread succeed, then the memory is at its end. Negative: all do. */
static _Thread_local int n_granted = -1;

int fallocate(int file, int mode, off_t at, off_t bytes) {
    if (n_granted == 0) return errno = ENOSPC, -1;
    if (n_granted > 0) n_granted--;
    return (int)syscall(SYS_fallocate, file, mode, at, bytes);
}

typedef struct job job;
struct job {
    size_t budget;
    bool all_put_all;                                              /* not each its own items */
    void (*change)(job *j, int rank, ki_shared_place *all, int n); /* what a rank hears */
    int stranger;                                                  /* a file of `change` */
    int n_granted; /* how often a rank that is short gets memory */
    bool is_short[THREAD_RANKS_MOST];
    kith_status status[THREAD_RANKS_MOST];
    bool is_shared[THREAD_RANKS_MOST];
    int64_t n_kept[THREAD_RANKS_MOST], n_found[THREAD_RANKS_MOST], n_pages_of_two[THREAD_RANKS_MOST], n_wrong;
    size_t bytes[THREAD_RANKS_MOST];
};

static job *current;

static kith_status changed_gather(ki_comm *comm, const void *own, void *all, const size_t *bytes,
                                  kith_error *err) {
    const kith_status status = thread_gather(comm, own, all, bytes, err);
    if (bytes[0] == sizeof(ki_shared_place)) current->change(current, comm->rank, all, comm->size);
    return status;
}

static const ki_comm_type changed_type = {
    .name = "changed", .gather = changed_gather, .exchange = thread_exchange};

static bool is_kept(const ki_cache *cache, int item) {
    ki_image kept;
    if (!ki_cache_get(cache, item, &kept)) return false;
    if (kept.w != SIDE || kept.data[0] != item + 1 || kept.data[PIXELS - 1] != item + 1)
        __atomic_fetch_add(&current->n_wrong, 1, __ATOMIC_RELAXED);
    return true;
}

/* A rank that fails to get pages must not take away those of another image. */
static int64_t count_pages_of_two(const ki_cache *cache) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    ki_image a, b;
    int64_t n = 0;
    for (int i = 0; i < ITEMS; i++) {
        for (int k = 0; k < ITEMS; k++) {
            if (i == k || !ki_cache_get(cache, i, &a) || !ki_cache_get(cache, k, &b)) continue;
            n += (uintptr_t)(a.data + PIXELS + KI_IMAGE_SLACK - 1) / page == (uintptr_t)b.data / page;
        }
    }
    return n;
}

/* Each rank puts every size-th item, or all; then all look for all. */
static void work(ki_comm *comm, void *user) {
    job *j = user;
    const int rank = comm->rank;
    ki_cache *cache = NULL;
    ki_image image = {0};
    kith_error err;
    if (j->change) comm->type = &changed_type;
    if (j->is_short[rank]) n_granted = j->n_granted;
    j->status[rank] = ki_cache_new(ITEMS, j->budget, comm, &cache, &err);
    if (j->status[rank] != KITH_OK) return;
    if (ki_image_shape(&image, SIDE, SIDE, 3, &err) != KITH_OK) return;
    for (int i = 0; i < ITEMS; i++) {
        if (!j->all_put_all && i % comm->size != rank) continue;
        memset(image.data, i + 1, PIXELS);
        ki_cache_put(cache, i, &image);
    }
    ki_comm_wait(comm, &err);
    for (int i = 0; i < ITEMS; i++) j->n_found[rank] += is_kept(cache, i);
    j->n_pages_of_two[rank] = count_pages_of_two(cache);
    j->is_shared[rank] = ki_cache_is_shared(cache);
    j->n_kept[rank] = ki_cache_count(cache);
    j->bytes[rank] = ki_cache_bytes(cache);
    ki_comm_wait(comm, &err);
    ki_image_release(&image);
    ki_cache_free(cache);
}

static void run(job *j, int size) {
    current = j;
    thread_ranks_run(size, work, j);
    for (int r = 0; r < size; r++) assert_int_equal(j->status[r], KITH_OK);
    assert_int_equal(j->n_wrong, 0);
}

static void test_ranks_share_a_cache(void **state) {
    (void)state;
    for (int size = 2; size <= 4; size++) {
        job j = {.budget = ROOMY};
        run(&j, size);
        for (int r = 0; r < size; r++) {
            assert_true(j.is_shared[r]);
            assert_int_equal(j.n_kept[r], ITEMS);
            assert_int_equal(j.n_found[r], ITEMS);
            assert_int_equal(j.n_pages_of_two[r], 0);
        }
    }
}

/* ---- a place with another file ---- */

static void other_inode(job *j, int rank, ki_shared_place *all, int n) {
    (void)j, (void)n;
    if (rank == 1) all[0].inode++;
}

static void other_device(job *j, int rank, ki_shared_place *all, int n) {
    (void)j, (void)n;
    if (rank == 1) all[0].device++;
}

/* Rank 1 is sent to the stranger's file, and told that this is the one. */
static void to_stranger(job *j, int rank, ki_shared_place *all, int n) {
    struct stat info;
    (void)n;
    if (rank != 1 || fstat(j->stranger, &info) != 0) return;
    all[0].descriptor = j->stranger;
    all[0].device = info.st_dev;
    all[0].inode = info.st_ino;
}

static int make_stranger(size_t bytes, int seals) {
    const int file = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)bytes), 0);
    assert_int_equal(fcntl(file, F_ADD_SEALS, seals), 0);
    return file;
}

/* No rank shares, all keep something, and together no more than the budget. */
static void assert_on_heap(const job *j, int size) {
    size_t sum = 0;
    for (int r = 0; r < size; r++) {
        assert_false(j->is_shared[r]);
        assert_true(j->n_kept[r] > 0);
        sum += j->bytes[r];
    }
    if (sum > j->budget) fail_msg("%zu bytes in all caches, more than %zu", sum, j->budget);
}

/* One rank that cannot have the memory: then none has it, or the machine's budget would be spent more than once. */
static void test_another_file_is_refused(void **state) {
    (void)state;
    const int shrink = F_SEAL_SHRINK;
    const struct {
        void (*change)(job *j, int rank, ki_shared_place *all, int n);
        size_t bytes;
        int seals;
    } rows[] = {
        {other_inode, 0, 0},
        {other_device, 0, 0},
        {to_stranger, NARROW / 2, shrink}, /* behind its end is no memory */
        {to_stranger, NARROW, 0},          /* it could be made shorter */
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        job j = {.budget = NARROW, .all_put_all = true, .change = rows[i].change};
        j.stranger = make_stranger(rows[i].bytes, rows[i].seals);
        run(&j, 3);
        close(j.stranger);
        assert_on_heap(&j, 3);
    }
}

/* ---- the budget is the machine's ---- */

static void apart(job *j, int rank, ki_shared_place *all, int n) {
    (void)j, (void)rank;
    for (int r = 0; r < n; r++) all[r].processes = (uint64_t)r + 1;
}

static void in_pairs(job *j, int rank, ki_shared_place *all, int n) {
    (void)j, (void)rank;
    for (int r = 0; r < n; r++) all[r].processes = (uint64_t)r / 2 + 1;
}

static void on_other_machines(job *j, int rank, ki_shared_place *all, int n) {
    (void)j, (void)rank;
    for (int r = 0; r < n; r++) all[r].machine[0] = (char)('a' + r);
}

/* Ranks in containers of one machine do not see each other's processes, but its memory is one. */
static void test_containers_of_a_machine(void **state) {
    (void)state;
    job j = {.budget = NARROW, .all_put_all = true, .change = apart};
    run(&j, 4);
    assert_on_heap(&j, 4);
    j = (job){.budget = NARROW, .all_put_all = true, .change = in_pairs};
    run(&j, 4);
    for (int r = 0; r < 4; r++) {
        assert_true(j.is_shared[r]);
        assert_true(j.n_kept[r] > 0);
        if (j.bytes[r] > NARROW / 2) fail_msg("%zu bytes for two of four ranks", j.bytes[r]);
    }
    assert_int_equal(j.bytes[0], j.bytes[1]);
    assert_int_equal(j.bytes[2], j.bytes[3]);
}

static void test_machines_have_a_budget_each(void **state) {
    (void)state;
    job j = {.budget = NARROW, .all_put_all = true, .change = on_other_machines};
    run(&j, 2);
    for (int r = 0; r < 2; r++) {
        assert_false(j.is_shared[r]);
        assert_true(j.bytes[r] > NARROW / 2 && j.bytes[r] <= NARROW);
    }
}

/* ---- no memory left ---- */

/* To write to a page that the system does not have kills the process. So a rank asks for pages first: of its first call it gets
 * the index, then three images. The other rank goes on, and both find what there is. */
static void test_no_memory_for_an_image(void **state) {
    (void)state;
    job j = {.budget = ROOMY, .is_short = {true}, .n_granted = 4};
    run(&j, 2);
    for (int r = 0; r < 2; r++) {
        assert_true(j.is_shared[r]);
        assert_int_equal(j.n_kept[r], 3 + ITEMS / 2);
        assert_int_equal(j.n_found[r], 3 + ITEMS / 2);
    }
}

/* A rank without memory for the index has no file; another's is taken. */
static void test_no_memory_for_the_index(void **state) {
    (void)state;
    job j = {.budget = ROOMY, .is_short = {true}};
    run(&j, 2);
    for (int r = 0; r < 2; r++) {
        assert_true(j.is_shared[r]);
        assert_int_equal(j.n_found[r], ITEMS / 2);
    }
    j = (job){.budget = NARROW, .all_put_all = true, .is_short = {true, true}};
    run(&j, 2);
    assert_on_heap(&j, 2);
}

/* To make a file larger than ulimit -f kills the process. */
static void test_limit_of_files(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = NARROW - 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    job j = {.budget = NARROW, .all_put_all = true};
    run(&j, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_on_heap(&j, 2);
}

/* A budget of less than a page has no room for pages of its own. */
static void test_tiny_budget(void **state) {
    (void)state;
    job j = {.budget = 1000};
    run(&j, 2);
    for (int r = 0; r < 2; r++) assert_int_equal(j.n_found[r], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_share_a_cache),     cmocka_unit_test(test_another_file_is_refused),
        cmocka_unit_test(test_containers_of_a_machine), cmocka_unit_test(test_machines_have_a_budget_each),
        cmocka_unit_test(test_no_memory_for_an_image),  cmocka_unit_test(test_no_memory_for_the_index),
        cmocka_unit_test(test_limit_of_files),          cmocka_unit_test(test_tiny_budget),
    };
    return cmocka_run_group_tests_name("data/cache ranks", tests, NULL, NULL);
}
