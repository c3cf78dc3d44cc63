/* kith train over ranks on the emulated device, as a user types it: ranks follow one process, repeat to the bit, resume with another
 * number of ranks, and say in one line what is missing for NCCL. */
#include "train/rank_runs.h"

enum { MOST_WORDS = 8192 };

/* Beside the program: build/test/plugins has the emulated device, build/test/nccl the stand-ins for libnccl. */
static const char *build_folder(void) {
    static char folder[2048];
    if (!*folder) {
        assert_int_equal(
            testing_run(folder, sizeof folder, "cd \"$(dirname %s)\" && pwd -P", testing_program()), 0);
        folder[strcspn(folder, "\n")] = '\0';
    }
    return folder;
}

/* The variables of a command: where both plugins are, and more. */
static const char *with(const char *more) {
    static char words[MOST_WORDS];
    static bool is_made;
    if (!is_made && testing_run(rank_runs_said, sizeof rank_runs_said,
                                "mkdir %s/plugins && ln -s '%s'/test/plugins/libkith-cuda.so %s/plugins/ && "
                                "{ ln -s \"$(ls '%s'/lib*/kith/libkith-mpi.so '%s'/lib/*/kith/libkith-mpi.so "
                                "2>/dev/null | head -1)\" %s/plugins/libkith-mpi.so || true; }",
                                testing_folder(), build_folder(), testing_folder(), build_folder(),
                                build_folder(), testing_folder()) != 0)
        fail_msg("%s", rank_runs_said);
    is_made = true;
    snprintf(words, sizeof words, "KITH_PLUGINS=%s/plugins %s", testing_folder(), more);
    return words;
}

static void need_ranks(void) {
    if (!mpirun_is_there()) skip();
}

#define CUDA "--set device=cuda --set deterministic=true --set eval.select=last --set checkpoint.keep=100 "
#define STEPS CUDA "--set optim.steps=8 "

static void test_ranks_follow_one_process(void **state) {
    (void)state;
    need_ranks();
    rank_runs_train(with(""), 1, "one", STEPS);
    rank_runs_train(with("KITH_COMM=host"), 2, "two", STEPS);
    rank_runs_train(with("KITH_COMM=host"), 3, "three", STEPS);
    rank_runs_near("two", "one", 1e-3);
    rank_runs_near("three", "one", 1e-3);
    rank_runs_train(with("KITH_COMM=host"), 3, "again", STEPS);
    tiny_assert_same("three", "again", "model.safetensors");
    tiny_assert_same("three", "again", "test/embedding.npy");
}

static void test_resume_with_another_number_of_ranks(void **state) {
    (void)state;
    need_ranks();
    if (testing_run(rank_runs_said, sizeof rank_runs_said,
                    "cd %s && rm three/result.json three/checkpoints/step-00000008* && cp -r three back",
                    testing_folder()) != 0)
        fail_msg("%s", rank_runs_said);
    rank_runs_train(with("KITH_COMM=host"), 2, "three", STEPS "--resume");
    rank_runs_near("three", "one", 1e-3);
    rank_runs_train(with(""), 1, "back", STEPS "--resume");
    rank_runs_near("back", "one", 1e-3);
}

/* Proxies and HORDE, the last batch of an epoch smaller. */
static void test_proxies_and_moments(void **state) {
    (void)state;
    need_ranks();
    static const char more[] = STEPS
        "--set 'objective={loss: proxy_anchor, regularizers: [{name: horde, orders: 3, dimension: 16, "
        "embedding: 6}]}' "
        "--set 'batch={sampler: shuffled, size: 10, partial: true}' ";
    rank_runs_train(with(""), 1, "terms", more);
    rank_runs_train(with("KITH_COMM=host"), 2, "terms2", more);
    rank_runs_near("terms2", "terms", 2e-3);
}

/* Numbers that are not finite end the job on all ranks, in one line. */
static void test_a_failure_is_told_once(void **state) {
    (void)state;
    need_ranks();
    const int status =
        rank_runs_try(with("KITH_COMM=host"), 2, "bad",
                      STEPS "--set optim.name=sgd --set optim.lr=1000000 --set model.bn=frozen");
    const char *first = strstr(rank_runs_said, "kith: ");
    if (status == 0 || !first || strstr(first + 1, "kith: ") || !strstr(first, "not a finite number"))
        fail_msg("status %d: %s", status, rank_runs_said);
}

static void assert_says(int status, const char *words) {
    if (status == 0 || !strstr(rank_runs_said, words)) fail_msg("status %d: %s", status, rank_runs_said);
}

/* Without a library the ranks go through host memory, and say so once. */
static void test_without_nccl(void **state) {
    (void)state;
    need_ranks();
    static const char none[] = "KITH_NCCL=/nowhere/libnccl.so.2";
    char asked[256];
    rank_runs_train(with(none), 2, "none", STEPS);
    tiny_assert_same("two", "none", "model.safetensors");
    const char *first = strstr(rank_runs_said, "through host memory, which is slower: NCCL (KITH_NCCL): ");
    if (!first || strstr(first + 1, "through host memory")) fail_msg("it says: %s", rank_runs_said);
    snprintf(asked, sizeof asked, "%s KITH_COMM=nccl", none);
    assert_says(rank_runs_try(with(asked), 2, "never", STEPS), "NCCL (KITH_NCCL): /nowhere/libnccl.so.2");
    assert_true(!tiny_exists("never", "recipe.yaml"));
}

/* One rank is enough to hear what is wrong with a library. */
static void says_of(const char *library, const char *more, const char *words) {
    char variables[4096];
    snprintf(variables, sizeof variables, "KITH_COMM=nccl KITH_NCCL='%s'/test/nccl/%s %s", build_folder(),
             library, more);
    assert_says(rank_runs_try(with(variables), 1, "never", STEPS), words);
}

static void test_libraries_that_do_not_fit(void **state) {
    (void)state;
    says_of("part/libnccl.so.2", "", "has no ncclGroupEnd: it is not NCCL, or too old");
    says_of("libnccl.so.2", "KITH_FAKE_NCCL=old", "is NCCL version 2804; wanted 20900 (2.9) or later");
    says_of("libnccl.so.2", "KITH_FAKE_NCCL=init", "NCCL: unhandled cuda error (init");
    assert_says(rank_runs_try(with("KITH_COMM=rings"), 1, "never", STEPS),
                "KITH_COMM is 'rings'; wanted nccl or host");
    assert_true(!tiny_exists("never", "recipe.yaml"));
    says_of("libnccl.so.2", "KITH_FAKE_NCCL=sum", "NCCL: unhandled cuda error (all_reduce");
}

static void test_a_teacher_and_images_without_a_class(void **state) {
    (void)state;
    need_ranks();
    char arguments[4600];
    snprintf(arguments, sizeof arguments, STEPS "%s", rank_runs_taught());
    rank_runs_train(with(""), 1, "taught", arguments);
    rank_runs_train(with("KITH_COMM=host"), 3, "taught-3", arguments);
    rank_runs_near("taught-3", "taught", 1e-3);
}

int main(void) {
#ifndef KI_EMULATE_TESTS
    return 77;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks_follow_one_process),
                                       cmocka_unit_test(test_resume_with_another_number_of_ranks),
                                       cmocka_unit_test(test_proxies_and_moments),
                                       cmocka_unit_test(test_a_teacher_and_images_without_a_class),
                                       cmocka_unit_test(test_a_failure_is_told_once),
                                       cmocka_unit_test(test_without_nccl),
                                       cmocka_unit_test(test_libraries_that_do_not_fit)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
