/* Devices as plugins: the real program with the emulated CUDA device in a file, and files that are no plugin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/plugin.h"
#include "kith/array.h"
#include "kith/log.h"
#include "knn/device.h"
#include "objective/engine.h"
#include "support/testing.h"

static char output[65536], folder[256];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* The program with KITH_PLUGINS set, its words on stdout and stderr together. */
#define kith(plugins, words) run("KITH_PLUGINS='%s' %s %s 2>&1", plugins, testing_program(), words)

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

/* The tests lie in build/test, the emulated plugin in build/test/plugins. */
static const char *emulated(void) {
    static char path[4096];
    if (!*path) {
        assert_runs(run("cd \"$(dirname %s)\"/test/plugins && pwd -P", testing_program()));
        snprintf(path, sizeof path, "%.*s", (int)strcspn(output, "\n"), output);
    }
    return path;
}

/* Every plugin folder made here is new. */
static const char *make_folder(const char *name) {
    snprintf(folder, sizeof folder, "%s/%s", testing_folder(), name);
    assert_runs(run("mkdir -p %s", folder));
    return folder;
}

static void test_program_runs_on_a_plugin(void **state) {
    (void)state;
    char cpu[256], cuda[256];
    snprintf(cpu, sizeof cpu, "%s/cpu.npy", testing_folder());
    snprintf(cuda, sizeof cuda, "%s/cuda.npy", testing_folder());
    assert_runs(kith(emulated(), "list devices"));
    assert_says("emulated");
    assert_runs(run("%s embed --backbone convnet4 --generate 4 -o %s 2>&1", testing_program(), cpu));
    assert_runs(run("KITH_PLUGINS='%s' %s embed --backbone convnet4 --generate 4 --device cuda -o %s 2>&1",
                    emulated(), testing_program(), cuda));
    assert_says("float32 [4, ");
    assert_runs(run("test \"$(wc -c < %s)\" = \"$(wc -c < %s)\"", cpu, cuda));
}

/* The plugin's copy of the objective's tables knows the library's methods: loss, miner and regularizer. */
static void test_objective_on_a_plugin(void **state) {
    (void)state;
    enum { M = 12, DIM = 5 };
    char x[256], y[256], recipe[256];
    float value[M * DIM];
    int64_t label[M];
    kith_error err = {0};
    for (int i = 0; i < M * DIM; i++) value[i] = sinf((float)(3 * i)) + (i % DIM == 0 ? 1.f : 0.f);
    for (int i = 0; i < M; i++) label[i] = i % 4;
    const kith_array embedding = {KITH_F32, 2, {M, DIM}, value}, labels = {KITH_I64, 1, {M}, label};
    snprintf(x, sizeof x, "%s/x.npy", testing_folder());
    snprintf(y, sizeof y, "%s/y.npy", testing_folder());
    snprintf(recipe, sizeof recipe, "%s/recipe.yaml", testing_folder());
    assert_ok(kith_npy_write(x, &embedding, &err), &err);
    assert_ok(kith_npy_write(y, &labels, &err), &err);
    testing_write(recipe,
                  "objective: {loss: {name: raw}, miner: {name: vthm}, regularizers: [{name: norm_l2}]}\n");
    double total[2] = {0};
    for (int i = 0; i < 2; i++) {
        assert_runs(run("KITH_PLUGINS='%s' %s objective %s --embedding %s --labels %s --json --device %s",
                        emulated(), testing_program(), recipe, x, y, i ? "cuda" : "cpu"));
        const char *at = strstr(output, "\"total\": ");
        assert_non_null(at);
        total[i] = strtod(at + strlen("\"total\": "), NULL);
    }
    assert_true(total[0] > 0.1);
    if (!(fabs(total[0] - total[1]) <= 1e-5 * total[0]))
        fail_msg("%.9g on cpu, %.9g on cuda", total[0], total[1]);
}

static void test_missing_plugin_is_named(void **state) {
    (void)state;
    const char *empty = make_folder("empty");
    assert_int_not_equal(kith(empty, "embed --backbone convnet4 --generate 2 --device cuda"), 0);
    assert_says("there is no plugin ");
    assert_says("empty/libkith-cuda.so");
    assert_runs(kith(empty, "list devices")); /* the list says so too, and goes on */
    assert_says("not here: ");
}

static void test_what_is_no_plugin_is_refused(void **state) {
    (void)state;
    assert_runs(run("echo text > %s/libkith-cuda.so", make_folder("text")));
    assert_int_not_equal(kith(folder, "embed --backbone convnet4 --generate 2 --device cuda"), 0);
    assert_says("libkith-cuda.so: ");
    assert_runs(run("cp \"$(dirname %s)\"/src/libkith.so %s/libkith-cuda.so", testing_program(),
                    make_folder("library")));
    assert_int_not_equal(kith(folder, "embed --backbone convnet4 --generate 2 --device cuda"), 0);
    assert_says("is no plugin of kith");
}

static void test_plugin_without_a_device(void **state) {
    (void)state;
    static const char *const words[] = {"embed --backbone convnet4 --generate 2 --device cuda",
                                        "bench train --backbone convnet4 --steps 1 --device cuda"};
    char none[4200];
    snprintf(none, sizeof none, "%s/none", emulated());
    for (int empty = 0; empty < 2; empty++) {
        if (empty) setenv("KITH_NO_DEVICE", "empty", 1);
        for (size_t i = 0; i < N_ROWS(words); i++) {
            const int status = kith(none, words[i]);
            if (status != 1) fail_msg("exit status %d; wanted 1: %s", status, output);
            assert_says("none/libkith-cuda.so has nothing to offer");
        }
        assert_runs(kith(none, "list devices"));
        assert_says("not here: ");
    }
    unsetenv("KITH_NO_DEVICE");
}

/* A copy that was cut off: its headers are whole, its code is not. */
static void test_cut_plugin_is_refused(void **state) {
    (void)state;
    static const char *const sizes[] = {"40", "100", "5000", "100000"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_runs(run("head -c %s '%s'/libkith-cuda.so > %s/libkith-cuda.so", sizes[i], emulated(),
                        make_folder("cut")));
        const int status = kith(folder, "embed --backbone convnet4 --generate 2 --device cuda");
        if (status != 1) fail_msg("cut to %s bytes: exit status %d, wanted 1: %s", sizes[i], status, output);
        assert_says("libkith-cuda.so");
    }
}

/* Every folder that was looked in is named: which of them is right depends on where the program is. */
static void test_all_places_are_named(void **state) {
    (void)state;
    assert_int_not_equal(
        run("mkdir -p %s/bin && cp %s %s/bin/kith && %s/bin/kith embed --backbone convnet4 --generate 2 "
            "--device cuda 2>&1",
            testing_folder(), testing_program(), testing_folder(), testing_folder()),
        0);
    assert_says("/bin/kith/libkith-cuda.so");
    assert_says("/bin/../lib");
    char longest[4200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_not_equal(kith(longest, "embed --backbone convnet4 --generate 2 --device cuda"), 0);
    assert_says("KITH_PLUGINS");
}

static void test_plugin_of_another_build_is_refused(void **state) {
    (void)state;
    make_folder("other");
    /* One digit of the hash is another one. */
    assert_runs(run("sed 's/%.20s/%.19s-/' '%s'/libkith-cuda.so > %s/libkith-cuda.so", KITH_INTERFACE_HASH,
                    KITH_INTERFACE_HASH, emulated(), folder));
    assert_int_not_equal(kith(folder, "embed --backbone convnet4 --generate 2 --device cuda"), 0);
    assert_says("belongs to another build of kith");
}

/* Memory that the plugin's copy of the code takes and gives back is counted by the library. */
static void test_memory_is_counted_once(void **state) {
    (void)state;
    kith_memory_stats before, open, after;
    ki_backend *backend = NULL;
    kith_error err = {0};
    setenv("KITH_PLUGINS", emulated(), 1);
    kith_memory_stats_get(&before);
    if (ki_backend_open("cuda", NULL, &backend, &err) != KITH_OK) fail_msg("%s", err.message);
    kith_memory_stats_get(&open);
    assert_true(open.live_bytes > before.live_bytes);
    assert_non_null(ki_engine_of(backend));
    assert_non_null(ki_knn_device_of(backend));
    ki_backend_close(backend);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_runs_on_a_plugin),
        cmocka_unit_test(test_objective_on_a_plugin),
        cmocka_unit_test(test_missing_plugin_is_named),
        cmocka_unit_test(test_what_is_no_plugin_is_refused),
        cmocka_unit_test(test_plugin_without_a_device),
        cmocka_unit_test(test_cut_plugin_is_refused),
        cmocka_unit_test(test_all_places_are_named),
        cmocka_unit_test(test_plugin_of_another_build_is_refused),
        cmocka_unit_test(test_memory_is_counted_once),
    };
    return cmocka_run_group_tests_name("backend/plugin", tests, NULL, testing_tear_down);
}
