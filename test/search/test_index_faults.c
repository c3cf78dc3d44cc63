/* Every file call of a change to an index fails once, or is short, or is the last one before the process is killed. Afterwards the
 * index is the last commit or the next one, whole, and goes on to the next one.
 *
 * The changes are made by this program itself, run again with a library that fails calls (docs/adr/0006). A part of the calls is
 * tried; KITH_FAULTS=all tries every one. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "made_index.h"

/* ---- what the other process does: one change ---- */

static kith_status change(const char *step, const char *path, kith_error *err) {
    kith_index *index = NULL;
    const int64_t ids[] = {1, 4, 1105, 30};
    const char *const labels[] = {"labelled", NULL}, *const columns[] = {"place"};
    const kith_value values[] = {{.type = KITH_VALUE_TEXT, .text = "Sylt"}, {0}, {0}};
    kith_status status = KITH_OK;
    if (strcmp(step, "create") == 0) {
        status = made_try_create(path, KITH_COSINE, &index, err);
        if (status == KITH_OK) status = made_try_add(index, 0, 90, err);
        if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    } else {
        status = kith_index_open(path, KITH_INDEX_WRITE, &index, err);
        if (status == KITH_OK && strcmp(step, "change") == 0) { /* merges the last segment */
            status = made_try_add(index, 1300, 60, err);
            if (status == KITH_OK) status = kith_index_remove(index, ids, 3, err);
            if (status == KITH_OK) status = kith_index_restamp(index, 7, 5, 6, err);
            if (status == KITH_OK) status = kith_index_move(index, 9, "moved", "to", 5, 6, err);
            if (status == KITH_OK) status = kith_index_move(index, 1109, "moved too", "to", 5, 6, err);
            if (status == KITH_OK) status = kith_index_label(index, (int64_t[]){9, 14}, 2, labels, err);
            if (status == KITH_OK)
                status = kith_index_set(index, (int64_t[]){9, 1106, 1301}, 3, columns, 1, values, err);
            if (status == KITH_OK) status = kith_index_exclude(index, ids + 3, 1, err);
            if (status == KITH_OK) status = kith_index_note_set(index, "a", "b", err);
            if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
        }
        if (status == KITH_OK && strcmp(step, "compact") == 0) status = kith_index_compact(index, NULL, err);
    }
    kith_index_free(index);
    return status;
}

static int act(const char *step, const char *path) {
    kith_error err = {0};
    const kith_status status = change(step, path, &err);
    if (status == KITH_OK) return 0;
    fprintf(stderr, "%s\n", err.message);
    return strlen(err.message) > 10 && !strchr(err.message, '\n') ? 1 : 3;
}

/* ---- what this one looks for ---- */

static char folder[4096], output[1 << 16];

/* The state before the change, or nothing. */
static void prepare(const char *step) {
    kith_error err;
    snprintf(folder, sizeof folder, "%s", made_path("faults.kith"));
    if (strcmp(step, "create") == 0) return;
    kith_index *index = made_create(folder, KITH_COSINE);
    made_add(index, 0, 1100);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    made_add(index, 1100, 200);
    const int64_t ids[] = {10, 20, 1110};
    assert_ok(kith_index_remove(index, ids, 3, &err), &err);
    assert_ok(kith_index_move(index, 12, "moved before", "to", 5, 6, &err), &err);
    assert_ok(kith_index_exclude(index, &(int64_t){31}, 1, &err), &err);
    assert_ok(kith_index_label(index, (int64_t[]){12, 13}, 2, (const char *const[]){"a", "b"}, &err), &err);
    assert_ok(kith_index_set(index, (int64_t[]){15}, 1, (const char *const[]){"weight"}, 1,
                             &(kith_value){.type = KITH_VALUE_REAL, .real = -0.0}, &err),
              &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
}

/* Of the index as it is: a digest, 0 when there is none. */
static uint64_t look(const char *what) {
    kith_error err;
    kith_index *index = NULL;
    char manifest[8192];
    snprintf(manifest, sizeof manifest, "%s/manifest.json", folder);
    if (access(manifest, F_OK) != 0) return 0;
    if (kith_index_open(folder, KITH_INDEX_READ, &index, &err) != KITH_OK)
        fail_msg("%s: %s", what, err.message);
    uint64_t digest = 0;
    int64_t bytes = 0;
    if (made_digest(index, &digest, &err) != KITH_OK) fail_msg("%s: %s", what, err.message);
    if (kith_index_check(index, NULL, &bytes, &err) != KITH_OK) fail_msg("%s: %s", what, err.message);
    const int64_t generation = made_info(index).generation;
    kith_index_free(index);
    return digest + (uint64_t)generation;
}

/* Files besides the manifest's and the lock. */
static int n_files(void) {
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (const struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int run(const char *step, const char *kind, int at) {
    return testing_run(output, sizeof output,
                       "rm -f '%s/log'; exec env LD_PRELOAD=%s FAULT_ROOT='%s' FAULT_KIND=%s FAULT_AT=%d "
                       "FAULT_LOG='%s/log' timeout 20 '%s' %s '%s'",
                       testing_folder(), testing_fault_io(), testing_folder(), kind, at, testing_folder(),
                       testing_self(), step, folder);
}

static int n_calls(const char *kind) {
    char path[8192], key[64];
    snprintf(path, sizeof path, "%s/log", testing_folder());
    snprintf(key, sizeof key, "calls %s ", kind);
    char *log = testing_read(path), *found = strstr(log, key);
    const int n = found ? atoi(found + strlen(key)) : 0;
    free(log);
    return n;
}

/* What must hold after the fault, whatever it was. */
static void judge(const char *what, const char *step, const char *kind, int status, uint64_t before,
                  uint64_t after, int n_after) {
    const bool is_kill = strcmp(kind, "kill") == 0,
               is_mild = strcmp(kind, "short") == 0 || strcmp(kind, "eintr") == 0;
    const uint64_t found = look(what);
    /* The empty commit of a new index counts, too. */
    const bool is_create = strcmp(step, "create") == 0;
    if (found != before && found != after && !is_create)
        fail_msg("%s: neither the last commit nor the next", what);
    if (status == 0 && found != after) fail_msg("%s: success, and not the next commit", what);
    if (is_mild && status != 0) fail_msg("%s: %s", what, output);
    if (!is_kill && status != 0 && status != 1) fail_msg("%s: exit status %d: %s", what, status, output);
    if (is_create) return;
    /* It goes on: the same change again, or what is left of it, and nothing lies about. */
    kith_error err;
    if (found == before && change(step, folder, &err) != KITH_OK)
        fail_msg("%s, again: %s", what, err.message);
    kith_index *index = made_open(folder, KITH_INDEX_WRITE);
    kith_index_free(index);
    if (look(what) != after) fail_msg("%s: done again, it is another index", what);
    if (n_files() != n_after) fail_msg("%s: %d files; wanted %d", what, n_files(), n_after);
}

static void torture(const char *step) {
    static const char *const kinds[] = {"kill", "eio", "enospc", "emfile", "eintr", "short"};
    if (KI_ASAN || KI_TSAN) skip(); /* such a library must be loaded first itself */
    const char *wish = getenv("KITH_FAULTS");
    const int most = wish && strcmp(wish, "all") == 0 ? 1 << 30 : 7;
    prepare(step);
    const uint64_t before = look("before");
    assert_int_equal(run(step, "none", 0), 0);
    const uint64_t after = look("after");
    const int n_after = n_files();
    assert_true(before != after);
    int count[N_ROWS(kinds)], n_runs = 0;
    for (size_t i = 0; i < N_ROWS(kinds); i++) count[i] = n_calls(kinds[i]);
    for (size_t i = 0; i < N_ROWS(kinds); i++) {
        assert_true(count[i] > 5);
        const int tries = count[i] < most ? count[i] : most;
        for (int t = 0; t < tries; t++, n_runs++) {
            const int at = 1 + (int)((int64_t)t * count[i] / tries);
            char what[200];
            snprintf(what, sizeof what, "%s, %s at call %d of %d", step, kinds[i], at, count[i]);
            prepare(step);
            const int status = run(step, kinds[i], at);
            judge(what, step, kinds[i], status, before, after, n_after);
        }
    }
    print_message("%s: %d faults\n", step, n_runs);
}

/* A new folder is on the disk only after the folder that it lies in has been synced. When that fails, nothing is left. */
static void test_a_new_index_syncs_its_parent(void **state) {
    (void)state;
    if (KI_ASAN || KI_TSAN) skip();
    char log[8192], wanted[8192];
    snprintf(log, sizeof log, "%s/log", testing_folder());
    snprintf(wanted, sizeof wanted, "failed open %s\n", testing_folder());
    prepare("create");
    assert_int_equal(run("create", "none", 0), 0);
    const int n = n_calls("eio");
    for (int at = 1; at <= n; at++) {
        prepare("create");
        const int status = run("create", "eio", at);
        char *text = testing_read(log);
        const bool is_parent = strstr(text, wanted) != NULL;
        free(text);
        if (!is_parent) continue;
        assert_int_equal(status, 1);
        if (access(folder, F_OK) == 0) fail_msg("%s is left", folder);
        return;
    }
    fail_msg("none of %d calls opens %s", n, testing_folder());
}

static void test_create(void **state) { (void)state, torture("create"); }
static void test_change(void **state) { (void)state, torture("change"); }
static void test_compact(void **state) { (void)state, torture("compact"); }

int main(void) {
    made_exact_numbers = 1000 * MADE_DIM; /* what is created is exact, what is changed has codes */
    if (testing_argument(2)) return act(testing_argument(1), testing_argument(2));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_index_syncs_its_parent),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_compact),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
