/* Every public function refuses NULL pointers and negative numbers: the calls are made from the headers (scripts/api-calls.sh),
 * so that no function can be forgotten. Each runs in a process of its own, since a crash is what is looked for. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KITH_EXPERIMENTAL
#include "kith/kith.h"
#include "support/testing.h"

typedef enum kind { NULL_POINTER, NEGATIVE, ALL_WRONG } kind;

/* What a call may be given that others may not, and says so in its header. */
static const char *const fine[] = {
    "kith_array_release.array",
    "kith_cache_folder.given",
    "kith_cache_open.folder",
    "kith_cache_remove.which",
    "kith_collection_add.ret_report",
    "kith_collection_add_rows.items",
    "kith_collection_add_rows.ret_report",
    "kith_collection_add_rows.work",
    "kith_collection_calibrate.data",
    "kith_collection_identify.ret_report",
    "kith_collection_renew.model",
    "kith_collection_renew.ret_report",
    "kith_collection_sync.ret_report",
    "kith_collection_sync.sources",
    "kith_dataset_open.kind",
    "kith_dataset_open_features.labels",
    "kith_gallery_search.self",
    "kith_index_add.items",
    "kith_index_add.ret_ids",
    "kith_index_calibrate.calibration",
    "kith_index_calibrate_own.beside",
    "kith_index_expect.model",
    "kith_index_expect.preprocess",
    "kith_index_facets.where",
    "kith_index_ids.where",
    "kith_index_move.bytes",
    "kith_index_move.label",
    "kith_index_move.mtime_ns",
    "kith_index_restamp.mtime_ns",
    "kith_index_search_expanded.expansion_options",
    "kith_index_search_reciprocal.reciprocal_options",
    "kith_json_int.value",
    "kith_labels_read.labels",
    "kith_map_draw.ret_report",
    "kith_model_card_write.out",
    "kith_model_embed_files.ret_status",
    "kith_model_find.name",
    "kith_names_export.ret_report",
    "kith_objective_weights.ret_similarity",
    "kith_photos_sync.ret_report",
    "kith_reciprocal_rerank.self",
    "kith_reproduce_run.ret_summary",
    "kith_same.curve",
    "kith_train_run.ret_result",
    "kith_transform_check.all_of_them",
    "kith_tsne.ret_divergence",
    "kith_tune_run.ret_result",
};

typedef struct call {
    const char *function, *argument;
    kind kind;
    bool has_status;
    kith_status (*run)(kith_error *ret_err);
} call;

/* Zeros that any pointer may point to; a list of strings in it ends at once. */
static _Alignas(64) unsigned char scratch[1 << 20];

/* One function per call. */
#define CALL_STATUS(function, argument, kind, expression)                    \
    static kith_status function##_##argument##_##kind(kith_error *ret_err) { \
        kith_error err = {0};                                                \
        const kith_status status = expression;                               \
        *ret_err = err;                                                      \
        return status;                                                       \
    }
#define CALL_OTHER(function, argument, kind, expression)                     \
    static kith_status function##_##argument##_##kind(kith_error *ret_err) { \
        (void)ret_err;                                                       \
        (void)(expression);                                                  \
        return KITH_OK;                                                      \
    }
#include "api_calls.h"
#undef CALL_STATUS
#undef CALL_OTHER

static const call calls[] = {
#define CALL_STATUS(function, argument, kind, expression) \
    {#function, #argument, kind, true, function##_##argument##_##kind},
#define CALL_OTHER(function, argument, kind, expression) \
    {#function, #argument, kind, false, function##_##argument##_##kind},
#include "api_calls.h"
#undef CALL_STATUS
#undef CALL_OTHER
};

/* A pointer to options may be NULL: the defaults. */
static bool is_options(const call *c) {
    static const char *const names[] = {"options", "transform", "facts", "drawing"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        if (strcmp(c->argument, names[i]) == 0) return true;
    }
    return false;
}

static bool is_fine(const call *c) {
    char name[160];
    snprintf(name, sizeof name, "%s.%s", c->function, c->argument);
    for (size_t i = 0; i < N_ROWS(fine); i++) {
        if (strcmp(name, fine[i]) == 0) return true;
    }
    return false;
}

/* 0: as it should be; else why not is written to the pipe. */
static void judge(const call *c, int out) {
    kith_error err = {0};
    const kith_status status = c->run(&err);
    const bool is_named = c->kind != NULL_POINTER || strstr(err.message, " is NULL");
    if (!c->has_status || (status == KITH_EINVAL && is_named)) _exit(0);
    dprintf(out, "gave %s (%s)", kith_status_name(status), err.message);
    _exit(1);
}

/* Runs the call apart; true when it was refused as it should be. */
static bool is_refused(const call *c, char *ret_why, size_t bytes) {
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL); /* CMocka catches them */
        signal(SIGFPE, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        alarm(20);
        judge(c, ends[1]);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], ret_why, bytes - 1);
    close(ends[0]);
    ret_why[n > 0 ? n : 0] = '\0';
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) snprintf(ret_why, bytes, "died of signal %d", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_bad_arguments(void **state) {
    (void)state;
    int n_wrong = 0, n_run = 0;
    for (size_t i = 0; i < N_ROWS(calls); i++) {
        const call *c = &calls[i];
        char why[512];
        if (is_fine(c) || (c->kind == NULL_POINTER && is_options(c))) continue;
        n_run++;
        if (is_refused(c, why, sizeof why)) continue;
        print_error("%s with %s %s: %s\n", c->function, c->argument, c->kind == NEGATIVE ? "-1" : "NULL",
                    why);
        n_wrong++;
    }
    if (n_wrong) fail_msg("%d of %d calls were not refused", n_wrong, n_run);
    assert_in_range(n_run, 300, 5000); /* the list is not empty */
}

/* The exceptions are arguments that exist. */
static void test_exceptions_exist(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(fine); i++) {
        bool is_there = false;
        for (size_t k = 0; k < N_ROWS(calls); k++) {
            char name[160];
            snprintf(name, sizeof name, "%s.%s", calls[k].function, calls[k].argument);
            is_there |= strcmp(name, fine[i]) == 0;
        }
        if (!is_there) fail_msg("%s is in the list and in no header", fine[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_exceptions_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
