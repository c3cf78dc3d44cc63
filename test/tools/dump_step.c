/* One training step of a backbone, everything written to a safetensors file: the tool behind
 * test/golden/net/judge_step.py.
 *
 *     dump_step BACKBONE WEIGHTS|- SETTINGS|- INPUT.npy frozen|batch OUT.safetensors [POOL]
 *
 * The file has diff.embedding, param/NAME (before the step), grad/NAME and tap/NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kith/model.h"
#include "net/model_file.h"
#include "nn/plan.h"

static kith_error err;
static kith_tensors_writer *writer;

static void check(kith_status status) {
    if (status == KITH_OK) return;
    fprintf(stderr, "dump_step: %s\n", err.message);
    exit(1);
}

/* The writer borrows arrays until the file is saved, so they are freed only when the process ends. */
static float *add(const char *prefix, const char *name, const ki_shape *shape) {
    char full[256];
    kith_array *array = calloc(1, sizeof *array);
    if (!array) abort();
    snprintf(full, sizeof full, "%s%s", prefix, name);
    check(kith_array_init(KITH_F32, shape->n_dims, shape->dim, array, &err));
    check(kith_tensors_writer_add(writer, full, array, &err));
    return array->data;
}

static void fill(float *values, int64_t n) {
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 1, 0);
    for (int64_t i = 0; i < n; i++) values[i] = (float)ki_rng_normal(&rng);
}

int main(int argc, char **argv) {
    if (argc != 7 && argc != 8) {
        fprintf(stderr,
                "usage: dump_step BACKBONE WEIGHTS|- SETTINGS|- INPUT.npy frozen|batch OUT.safetensors "
                "[POOL]\n");
        return 2;
    }
    kith_array input = {0};
    check(kith_npy_read(argv[4], &input, &err));
    if (input.dtype != KITH_F32 || input.n_dims != 4) return 2;
    const int64_t batch = input.dim[0];
    const kith_model_options options = {.size = sizeof(kith_model_options),
                                        .backbone = argv[1],
                                        .weights = strcmp(argv[2], "-") ? argv[2] : NULL,
                                        .settings = strcmp(argv[3], "-") ? argv[3] : NULL,
                                        .pool = argc == 8 ? argv[7] : NULL,
                                        .channels = input.dim[1],
                                        .height = input.dim[2],
                                        .width = input.dim[3],
                                        .embedding = 128,
                                        .classes = KITH_NONE,
                                        .seed = 5};
    ki_backend *backend = NULL;
    ki_net net;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    check(ki_backend_open("cpu", NULL, &backend, &err));
    check(ki_model_file_open(&options, backend, &net, &params, NULL, &err));
    const ki_plan_options plan_options = {.mb = batch,
                                          .mode = KI_TRAIN,
                                          .frozen_bn = strcmp(argv[5], "frozen") == 0,
                                          .taps = {"map", "pooled", "embedding"},
                                          .grad_taps = {"embedding"}};
    check(ki_plan_new(net.graph, params, backend, &plan_options, &plan, &err));
    check(kith_tensors_writer_new(&writer, &err));
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *param = ki_params_at(params, i);
        check(ki_params_get(params, param, add("param/", param->name, &param->shape), &err));
    }
    const ki_shape diff = KI_SHAPE2(batch, 128);
    float *grad = add("", "diff.embedding", &diff);
    fill(grad, ki_shape_count(&diff));
    check(ki_plan_set_input(plan, input.data, &err));
    check(ki_plan_forward(plan, &err));
    for (int i = 0; plan_options.taps[i]; i++) {
        ki_shape shape;
        check(ki_plan_tap_shape(plan, plan_options.taps[i], &shape, &err));
        check(ki_plan_read(plan, plan_options.taps[i], add("tap/", plan_options.taps[i], &shape), &err));
    }
    check(ki_params_zero_diffs(params, &err));
    check(ki_plan_set_grad(plan, "embedding", grad, &err));
    check(ki_plan_backward(plan, &err));
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *param = ki_params_at(params, i);
        if (param->trained)
            check(ki_params_get_diff(params, param, add("grad/", param->name, &param->shape), &err));
    }
    check(kith_tensors_writer_save(writer, argv[6], &err));
    return 0;
}
