/* How a new embedding layer starts: within the bound of its rule, and nearly up to it. */
#include <math.h>
#include <string.h>

#include "base/start.h"
#include "net/model_file.h"
#include "support/testing.h"

enum { WIDTH = 64, DIM = 48 };

static double largest(const ki_params *params, const char *name) {
    ki_real values[WIDTH * DIM];
    kith_error err = {0};
    const ki_param *param = ki_params_find(params, name);
    double most = 0;
    assert_non_null(param);
    assert_ok(ki_params_get(params, param, values, &err), &err);
    for (int64_t i = 0; i < param->n; i++) most = fmax(most, fabs((double)values[i]));
    return most;
}

static void test_bounds(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double bound;
        bool draws_bias;
    } rows[] = {{NULL, 6.0 / WIDTH, false},
                {"he", 6.0 / WIDTH, false},
                {"glorot", 6.0 / (WIDTH + DIM), false},
                {"caffe", 3.0 / WIDTH, false},
                {"torch", 1.0 / WIDTH, true}};
    ki_backend *backend = NULL;
    kith_error err = {0};
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_net net = {0};
        ki_params *params = NULL;
        const kith_model_options options = {.backbone = "convnet4",
                                            .settings = "width=64",
                                            .embedding = DIM,
                                            .embedding_init = rows[i].name,
                                            .seed = 3};
        assert_ok(ki_model_file_open(&options, backend, &net, &params, NULL, &err), &err);
        const double bound = sqrt(rows[i].bound), weight = largest(params, "embedding.weight");
        const double bias = largest(params, "embedding.bias");
        if (!(weight <= bound && weight > 0.99 * bound))
            fail_msg("%s: weights reach %g, wanted %g", rows[i].name, weight, bound);
        if (!(rows[i].draws_bias ? bias > 0.8 * bound && bias <= bound : bias == 0))
            fail_msg("%s: biases reach %g", rows[i].name, bias);
        ki_params_free(params);
        ki_net_release(&net);
    }
    ki_net net = {0};
    ki_params *params = NULL;
    const kith_model_options wrong = {.backbone = "convnet4", .embedding = DIM, .embedding_init = "glorott"};
    assert_int_equal(ki_model_file_open(&wrong, backend, &net, &params, NULL, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "unknown embedding_init 'glorott'");
    assert_non_null(strstr(err.hint, "glorot"));
    ki_backend_close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
