/* The CUDA backend as far as it goes: what the build or the machine lacks is said, copies come back,
 * and a network is refused by the name of what is missing. */
#include "nn/plan.h"
#include "support/testing.h"

#include <string.h>

static void test_missing_cuda_is_said(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    if (ki_backend_open("cuda", NULL, &backend, &err) == KITH_OK) {
        ki_backend_close(backend);
        skip();
    }
    assert_int_equal(err.status, KITH_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "CUDA"));
    assert_true(err.hint[0] != '\0');
}

static void test_maps_come_back(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    if (ki_backend_open("cuda", NULL, &backend, &err) != KITH_OK) skip();
    float host[2 * 3 * 4 * 5], back[2 * 3 * 4 * 5] = {0};
    for (int i = 0; i < 120; i++) host[i] = (float)i;
    ki_edge edge = {.shape = KI_SHAPE4(2, 3, 4, 5), .layout = KI_NATIVE};
    edge.bytes = backend->type->edge_bytes(backend, &edge.shape, edge.layout);
    void *ptr = NULL;
    assert_ok(backend->type->alloc(backend, edge.bytes, &ptr, &err), &err);
    assert_ok(backend->type->import(backend, &edge, ptr, host, &err), &err);
    assert_ok(backend->type->export(backend, &edge, ptr, back, &err), &err);
    assert_memory_equal(host, back, sizeof host);
    backend->type->free(backend, ptr);
    ki_backend_close(backend);
}

static void test_a_missing_kernel_is_named(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    if (ki_backend_open("cuda", NULL, &backend, &err) != KITH_OK) skip();
    ki_graph *graph = NULL;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    assert_ok(ki_graph_new(&graph, &err), &err);
    const int x = ki_graph_input(graph, 3, 8, 8);
    const int y =
        ki_graph_lrn(graph, "norm", x, (ki_lrn_attr){.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1});
    ki_graph_tap(graph, y, "map");
    assert_ok(ki_params_new(graph, backend, &params, &err), &err);
    const ki_plan_options options = {.mb = 2, .mode = KI_INFER, .taps = {"map"}};
    if (backend->type->kernels[KI_OP_LRN]) skip();
    assert_int_equal(ki_plan_new(graph, params, backend, &options, &plan, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "node norm: backend cuda has no kernel for lrn");
    ki_params_free(params);
    ki_graph_free(graph);
    ki_backend_close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_cuda_is_said),
        cmocka_unit_test(test_maps_come_back),
        cmocka_unit_test(test_a_missing_kernel_is_named),
    };
    return cmocka_run_group_tests_name("backend/cuda", tests, NULL, NULL);
}
