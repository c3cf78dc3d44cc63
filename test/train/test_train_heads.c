/* Training an ensemble of heads as a user does: the terms are logged, a stopped run ends in the same bits, the model's
 * file is the ensemble, and plain weights start one. */
#include "train/whole.h"

static char output[TINY_OUTPUT];

/* The last may be left out. */
static const char *const sets[] = {"model.heads=2", "model.map_channels=12", "model.embedding_bias=false",
                                   ("objective={loss: {name: contrastive, form: horde}, regularizers: "
                                    "[{name: head_divergence, weight: 0.5}, "
                                    "{name: horde, weight: 0.25, orders: 3, dimension: 16, embedding: 8}]}"),
                                   "eval.select=last"};

static kith_status train_heads(const char *out, int64_t n_sets, bool resume, stopper stop, kith_error *err) {
    return train_sets(out, resume, stop, sets, n_sets, err);
}

static void test_resume(void **state) {
    (void)state;
    kith_error err;
    assert_ok(train_heads("heads", (int64_t)N_ROWS(sets) - 1, false, never, &err), &err);
    char *log = tiny_read("heads", "log.jsonl");
    assert_non_null(strstr(log, "\"head_divergence\""));
    free(log);
    static const int64_t stops[] = {1, 9, 30};
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        const kith_status status =
            train_heads(out, (int64_t)N_ROWS(sets) - 1, false, (stopper){.stop_at = stops[i]}, &err);
        if (stops[i] < 30) assert_int_equal(status, KITH_ECANCELED);
        assert_ok(train_heads(out, (int64_t)N_ROWS(sets) - 1, true, never, &err), &err);
        assert_same_end("heads", out);
    }
}

/* The ensemble's embedding is the first order: 8 numbers, then two orders of 8. */
static void test_all_orders(void **state) {
    (void)state;
    kith_error err;
    assert_ok(train_heads("orders", (int64_t)N_ROWS(sets), false, never, &err), &err);
    char *card = tiny_read("orders", "result.json");
    assert_non_null(strstr(card, "\"all_orders_white\""));
    assert_non_null(strstr(card, "24 numbers, after a PCA to 8 fitted on training images"));
    free(card);
}

static void test_the_model_is_the_ensemble(void **state) {
    (void)state;
    kith_tensors *tensors = NULL;
    kith_error err = {0};
    kith_array view;
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("heads"));
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_string_equal(kith_tensors_metadata(tensors, "kith.heads"), "2");
    assert_ok(kith_tensors_get(tensors, "embedding.weight", &view, &err), &err);
    assert_int_equal(view.dim[0], 4);
    assert_ok(kith_tensors_get(tensors, "map.weight", &view, &err), &err);
    assert_int_equal(view.dim[0], 12);
    assert_int_equal(view.dim[1], 32);
    kith_tensors_free(tensors);
    /* The program embeds with it, and gets what the run stored of its test images. */
    assert_int_equal(
        0, testing_run(output, sizeof output, "cd %s && %s eval heads --data tiny --metrics retrieval",
                       testing_folder(), testing_program()));
    assert_non_null(strstr(output, "R@1"));
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *sets, *line;
    } rows[] = {
        {"--set model.heads=3", "model: embedding size is 8; wanted a multiple of the 3 heads"},
        {"--set 'objective.regularizers=[{name: head_divergence}]'",
         "head_divergence compares the heads of an ensemble, and the model has one"},
        {"--set model.heads=2 --set 'objective.regularizers=[{name: energy_confusion}]'",
         "energy_confusion stops at the embedding layer, which 2 heads share"},
        {"--set model.heads=0", "heads"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_not_equal(0, tiny_train(output, "refused", rows[i].sets));
        if (!strstr(output, rows[i].line))
            fail_msg("%s: wanted '%s', found: %s", rows[i].sets, rows[i].line, output);
    }
}

/* A plain network's file, trained here, starts both the network and its attention: without a step, they are what it has. */
static void test_plain_weights_start_an_ensemble(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors *plain = NULL, *heads = NULL;
    kith_array a, b;
    char path[4200], arguments[9000];
    make_whole();
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("whole"));
    /* The file's embedding layer is of 8 numbers, and so is that of each of two heads. */
    snprintf(arguments, sizeof arguments,
             "--set model.weights=%s --set model.heads=2 --set model.embedding=16 --set optim.lr=0 --set "
             "model.bn=frozen",
             path);
    if (tiny_train(output, "from-plain", arguments) != 0) fail_msg("%s", output);
    assert_ok(kith_tensors_open(path, &plain, &err), &err);
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("from-plain"));
    assert_ok(kith_tensors_open(path, &heads, &err), &err);
    static const char *const names[][2] = {{"conv3.weight", "attention.conv3.weight"},
                                           {"bn3.running_var", "attention.bn3.running_var"},
                                           {"conv3.weight", "conv3.weight"},
                                           {"embedding.weight", "embedding.weight"}};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        assert_ok(kith_tensors_get(plain, names[i][0], &a, &err), &err);
        assert_ok(kith_tensors_get(heads, names[i][1], &b, &err), &err);
        assert_int_equal(kith_array_count(&a), kith_array_count(&b));
        assert_memory_equal(a.data, b.data, (size_t)kith_array_count(&a) * sizeof(float));
    }
    kith_tensors_free(plain);
    kith_tensors_free(heads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_the_model_is_the_ensemble),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_plain_weights_start_an_ensemble),
    };
    return cmocka_run_group_tests_name("train/heads", tests, NULL, testing_tear_down);
}
