/* Several processes and threads at one index: one writes, the others read what they opened. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "made_index.h"

static char folder[4096];

/* This program again, doing one of the actions below with the folder. A child that is only forked would have OpenMP's pool of
 * threads and none of the threads. *ret_out (may be NULL): what it prints. */
static pid_t start(const char *action, int *ret_out) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (dup2(ends[1], 1) < 0) _exit(1);
        execl(testing_self(), testing_self(), action, folder, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    if (ret_out)
        *ret_out = ends[0];
    else
        close(ends[0]);
    return child;
}

static int hold(void) {
    kith_error err;
    kith_index *index = NULL;
    if (kith_index_open(folder, KITH_INDEX_WRITE, &index, &err) != KITH_OK) return 1;
    if (write(1, "y", 1) != 1) return 2;
    pause();
    return 3;
}

/* Commit and compact as fast as it goes. */
static int be_busy(void) {
    kith_error err;
    kith_index *index = NULL;
    if (kith_index_open(folder, KITH_INDEX_WRITE, &index, &err) != KITH_OK) return 1;
    for (int64_t i = 0; i < 1000; i++) {
        if (made_try_add(index, 1200 + i, 1, &err) != KITH_OK) return 2;
        if ((i % 5 == 4 ? kith_index_compact(index, NULL, &err) : kith_index_commit(index, NULL, &err)) !=
            KITH_OK)
            return 3;
    }
    kith_index_free(index);
    return 0;
}

/* Make it; the one that does keeps it for a moment. 7: refused, as another has it. */
static int make(void) {
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = MADE_DIM;
    const kith_status status = kith_index_create(folder, &options, &index, &err);
    if (status != KITH_OK) return status == KITH_EINVAL ? 7 : 1;
    if (made_try_add(index, 0, 5, &err) != KITH_OK) return 2;
    if (kith_index_commit(index, NULL, &err) != KITH_OK) return 3;
    kith_index_free(index);
    return 0;
}

static kith_index *begin(const char *name, int64_t n) {
    kith_error err;
    snprintf(folder, sizeof folder, "%s", made_path(name));
    kith_index *index = made_create(folder, KITH_COSINE);
    made_add(index, 0, n);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

/* One of several makes it, the others are told, and nothing of what the one committed is lost. */
static void test_several_make_it(void **state) {
    (void)state;
    enum { N = 4 };
    for (int round = 0; round < 25; round++) {
        kith_error err;
        pid_t child[N];
        int n_made = 0;
        char name[32];
        snprintf(name, sizeof name, "race%d.kith", round);
        snprintf(folder, sizeof folder, "%s", made_path(name));
        if (round % 2) assert_int_equal(mkdir(folder, 0777), 0);
        for (int i = 0; i < N; i++) child[i] = start("make", NULL);
        for (int i = 0; i < N; i++) {
            int status = 0;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
            n_made += WEXITSTATUS(status) == 0;
        }
        assert_int_equal(n_made, 1);
        kith_index *index = NULL;
        kith_index_info info;
        assert_ok(kith_index_open(folder, KITH_INDEX_READ, &index, &err), &err);
        kith_index_info_get(index, &info);
        assert_int_equal(info.n_items, 5);
        kith_index_free(index);
    }
}

/* In this process and in another one, and free again after the holder is killed. */
static void test_the_second_writer_is_told(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = begin("writers.kith", 10), *second = NULL;
    assert_int_equal(kith_index_open(folder, KITH_INDEX_WRITE, &second, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is being written by another process"));
    assert_string_equal(err.hint, "wait until it has ended; reading is possible meanwhile");
    kith_index_free(index);
    int out = -1;
    const pid_t child = start("hold", &out);
    char yes = 0;
    assert_int_equal(read(out, &yes, 1), 1);
    assert_int_equal(yes, 'y');
    assert_int_equal(kith_index_open(folder, KITH_INDEX_WRITE, &second, &err), KITH_EINVAL);
    index = made_open(folder, KITH_INDEX_READ); /* reading is possible */
    kith_index_free(index);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    kith_index_free(made_open(folder, KITH_INDEX_WRITE));
    close(out);
}

/* A reader's answers stay the same while a writer adds, removes and compacts, also of what it has not read yet. */
static void test_a_reader_keeps_its_snapshot(void **state) {
    (void)state;
    kith_error err;
    kith_index *writer = begin("snapshot.kith", 1500), *fresh = made_open(folder, KITH_INDEX_READ);
    kith_index *reader = made_open(folder, KITH_INDEX_READ);
    uint64_t before = 0, now = 0;
    bool is_current = false;
    assert_ok(made_digest(reader, &before, &err), &err);
    assert_ok(kith_index_is_current(reader, &is_current, &err), &err);
    assert_true(is_current);
    for (int64_t i = 0; i < 4; i++) {
        const int64_t id = i * 3;
        made_add(writer, 1500 + i * 400, 400);
        assert_ok(kith_index_remove(writer, &id, 1, &err), &err);
        assert_ok(i == 2 ? kith_index_compact(writer, NULL, &err) : kith_index_commit(writer, NULL, &err),
                  &err);
        assert_ok(made_digest(reader, &now, &err), &err);
        assert_int_equal(now, before);
    }
    assert_ok(kith_index_is_current(reader, &is_current, &err), &err);
    assert_false(is_current);
    assert_ok(made_digest(fresh, &now, &err),
              &err); /* reads its files only now, when they have no names any more */
    assert_int_equal(now, before);
    kith_index_free(fresh);
    kith_index_free(reader);
    reader = made_open(folder, KITH_INDEX_READ);
    assert_int_equal(made_info(reader).n_items, 1500 + 1600 - 4);
    kith_index_free(reader);
    kith_index_free(writer);
}

/* Opening while another process commits and compacts as fast as it can: always a whole commit. */
static void test_opening_while_it_is_written(void **state) {
    (void)state;
    kith_error err;
    kith_index_free(begin("busy.kith", 1200));
    const pid_t child = start("busy", NULL);
    enum { SEEN = 40 }; /* different commits */
    int64_t last = 0;
    int n_seen = 0, status = 0;
    kith_status found = KITH_OK;
    bool is_growing = true, is_done = false;
    while (found == KITH_OK && is_growing && n_seen < SEEN &&
           !(is_done = waitpid(child, &status, WNOHANG) != 0)) {
        kith_index *index = NULL;
        found = kith_index_open(folder, KITH_INDEX_READ, &index, &err);
        if (found != KITH_OK) break;
        const int64_t n = made_info(index).n_items;
        is_growing = n >= last;
        n_seen += n != last;
        last = n;
        kith_index_item item = {0};
        found = kith_index_item_get(index, n - 1, &item, &err);
        kith_index_item_release(&item);
        kith_index_free(index);
    }
    if (!is_done) kill(child, SIGKILL);
    if (!is_done) waitpid(child, &status, 0);
    assert_ok(found, &err);
    assert_true(is_growing);
    assert_int_equal(is_done ? status : 0, 0);
    assert_int_equal(n_seen, SEEN);
    kith_index *index = made_open(folder, KITH_INDEX_WRITE);
    int64_t bytes = 0;
    assert_ok(kith_index_check(index, NULL, &bytes, &err), &err);
    kith_index_free(index);
}

/* One handle, many threads, from the first question on, which reads columns and vectors. */
typedef struct asking {
    const kith_index *index;
    uint64_t digest;
    kith_status status;
} asking;

static void *ask(void *context) {
    asking *a = context;
    kith_error err;
    a->status = made_digest(a->index, &a->digest, &err);
    return NULL;
}

static void test_threads_share_a_reader(void **state) {
    (void)state;
    kith_error err;
    enum { THREADS = 4 };
    kith_index *index = begin("threads.kith", 400);
    uint64_t wanted = 0;
    assert_ok(made_digest(index, &wanted, &err), &err);
    kith_index_free(index);
    index = made_open(folder, KITH_INDEX_READ);
    pthread_t thread[THREADS];
    asking a[THREADS];
    for (int i = 0; i < THREADS; i++) {
        a[i] = (asking){.index = index};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(a[i].status, KITH_OK);
        assert_int_equal(a[i].digest, wanted);
    }
    kith_index_free(index);
}

/* As someone who may read the folder and not write it; as the superuser, who may do everything, become somebody else. */
static int read_only(void) {
    kith_error err;
    kith_index *index = NULL;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 77;
    if (kith_index_open(folder, KITH_INDEX_READ, &index, &err) != KITH_OK) return 1;
    uint64_t digest = 0;
    const kith_status status = made_digest(index, &digest, &err);
    kith_index_free(index);
    if (status != KITH_OK) return 2;
    if (kith_index_open(folder, KITH_INDEX_WRITE, &index, &err) != KITH_EIO) return 3;
    if (!strstr(err.message, "lock: Permission denied")) return 4;
    char path[8192];
    snprintf(path, sizeof path, "%s/new.kith", folder);
    if (made_try_create(path, KITH_COSINE, &index, &err) != KITH_EIO) return 5;
    return strstr(err.message, "new.kith: Permission denied") ? 0 : 6;
}

static void test_a_folder_that_is_read_only(void **state) {
    (void)state;
    char lock[8192];
    kith_index_free(begin("readonly.kith", 50));
    snprintf(lock, sizeof lock, "%s/lock", folder);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(chmod(testing_folder(), 0755), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    const pid_t child = start("read", NULL);
    int status = 0;
    waitpid(child, &status, 0);
    chmod(folder, 0755);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(WIFEXITED(status));
}

/* Stopped on request: the last commit is there. */
static int stop(void *user, int64_t n_done, int64_t n_all) {
    (void)user, (void)n_done, (void)n_all;
    return 1;
}

static void test_stopping(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = begin("stop.kith", 300);
    KITH_OPTIONS(kith_work_options, options);
    options.progress = stop;
    made_add(index, 300, 10);
    assert_int_equal(kith_index_compact(index, &options, &err), KITH_ECANCELED);
    float row[MADE_DIM] = {1};
    const kith_array array = {KITH_F32, 2, {1, MADE_DIM}, row};
    assert_int_equal(kith_index_add(index, &array, NULL, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "an earlier change of"));
    assert_int_equal(made_info(index).n_items, 300);
    int64_t bytes = 0;
    assert_int_equal(kith_index_check(index, &options, &bytes, &err), KITH_ECANCELED);
    kith_index_free(index);
    index = made_open(folder, KITH_INDEX_READ);
    assert_int_equal(made_info(index).n_items, 300);
    kith_index_free(index);
}

int main(void) {
    const char *action = testing_argument(1), *given = testing_argument(2);
    if (given) {
        snprintf(folder, sizeof folder, "%s", given);
        if (strcmp(action, "make") == 0) return make();
        return strcmp(action, "hold") == 0 ? hold() : strcmp(action, "busy") == 0 ? be_busy() : read_only();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_make_it),
        cmocka_unit_test(test_the_second_writer_is_told),
        cmocka_unit_test(test_a_reader_keeps_its_snapshot),
        cmocka_unit_test(test_opening_while_it_is_written),
        cmocka_unit_test(test_threads_share_a_reader),
        cmocka_unit_test(test_a_folder_that_is_read_only),
        cmocka_unit_test(test_stopping),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
