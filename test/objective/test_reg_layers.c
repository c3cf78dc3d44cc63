/* What `layers` and `kernels` of a recipe become: taps and kernels, whatever the caller's memory held before. */
#include "objective/cases.h"
#include "objective/reg/kernels.h"

static void test_layers(void **state) {
    (void)state;
    enum { P = KI_TAP_BIT(KI_TAP_POOLED), E = KI_TAP_BIT(KI_TAP_EMBEDDING), L = KI_TAP_BIT(KI_TAP_LOGITS) };
    static const struct {
        const char *text;
        unsigned taps;
        ki_layer_kernel last; /* of the last layer */
    } rows[] = {
        {"{}", P | E | L, {KI_LAYER_GAUSSIAN, 1, 0, 2}},
        {"layers: [pooled, embedding]", P | E, {KI_LAYER_GAUSSIAN, 3, 0, 2}},
        {"layers: [logits]", L, {KI_LAYER_GAUSSIAN, 3, 0, 2}},
        {"{layers: [embedding], kernels: laplace}", E, {KI_LAYER_LAPLACE, 3, 0, 2}},
        {"{layers: [embedding], kernels: poly}", E, {KI_LAYER_POLY, 3, 1, 2}},
        {"{layers: [logits], kernels: exp}", L, {KI_LAYER_MGF, 3, 1, 2}},
        {"{layers: [pooled, logits], kernels: [mgf, {kind: poly, n: 4, bandwidth: 2.5, degree: 3}]}",
         P | L,
         {KI_LAYER_POLY, 4, 2.5, 3}},
        {"{layers: [embedding, pooled], kernels: [poly, ~]}", P | E, {KI_LAYER_GAUSSIAN, 3, 0, 2}},
        {"{layers: [embedding, pooled], kernels: [~, laplace]}", P | E, {KI_LAYER_LAPLACE, 3, 0, 2}},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        ki_value *root = NULL;
        kith_error err = {0};
        unsigned taps = ~0u;
        ki_layers layers;
        memset(&layers, 0x55, sizeof layers);
        assert_ok(ki_yaml_parse(rows[i].text, strlen(rows[i].text), "recipe", &arena, &root, &err), &err);
        const ki_layers_options options = {.layers = ki_value_get(root, "layers"),
                                           .kernels = ki_value_get(root, "kernels")};
        assert_ok(ki_layers_taps(&options, "joint_mmd", &taps, &err), &err);
        if (taps != rows[i].taps) fail_msg("%s: taps %#x, wanted %#x", rows[i].text, taps, rows[i].taps);
        assert_ok(ki_layers_read(&options, "joint_mmd", &layers, &err), &err);
        const ki_layer_kernel found = layers.kernel[layers.n - 1], wanted = rows[i].last;
        if (found.kind != wanted.kind || found.n != wanted.n || found.bandwidth != wanted.bandwidth ||
            found.degree != wanted.degree)
            fail_msg("%s: kind %d, n %lld, bandwidth %g, degree %lld; wanted %d, %lld, %g, %lld",
                     rows[i].text, found.kind, (long long)found.n, found.bandwidth, (long long)found.degree,
                     wanted.kind, (long long)wanted.n, wanted.bandwidth, (long long)wanted.degree);
        ki_arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
