/* One cache for the ranks of a machine, and what becomes of it where they cannot share. Ranks are threads: what a rank hears of
 * the others can be changed, and calls of the system can fail for one of them. Also run under ThreadSanitizer. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/loader/cache.h"
#include "data/loader/shared.h"
#include "support/thread_ranks.h"

enum { ITEMS = 60, SIDE = 32, PIXELS = SIDE * SIDE * 3, ROOMY = 1 << 20, NARROW = 100 << 10 };

typedef struct job job;
struct job {
    size_t budget;
    bool all_put_all;                                              /* not each its own items */
    void (*change)(job *j, int rank, ki_shared_place *all, int n); /* what a rank hears */
    int stranger;                                                  /* a file of `change` */
    kith_status status[THREAD_RANKS_MOST];
    bool is_shared[THREAD_RANKS_MOST];
    int64_t n_kept[THREAD_RANKS_MOST], n_found[THREAD_RANKS_MOST], n_wrong;
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

/* Each rank puts every size-th item, or all; then all look for all. */
static void work(ki_comm *comm, void *user) {
    job *j = user;
    const int rank = comm->rank;
    ki_cache *cache = NULL;
    ki_image image = {0};
    kith_error err;
    if (j->change) comm->type = &changed_type;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_share_a_cache),
        cmocka_unit_test(test_another_file_is_refused),
        cmocka_unit_test(test_containers_of_a_machine),
        cmocka_unit_test(test_machines_have_a_budget_each),
    };
    return cmocka_run_group_tests_name("data/cache ranks", tests, NULL, NULL);
}
