/* reg/joint_similarity.c and reg/joint_mmd.c on the device: kernels of several layers. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_pairwise.h"
#include "objective/cuda/reg_rows.h"
#include "objective/cuda/reg_scratch.h"
#include "objective/reg/kernels.h"

_Static_assert((int)KI_MOST_LAYERS == KI_CUDA_MOST_LAYERS, "the kernels' limit is the method's");

typedef struct joint {
    ki_layers layers;
    ki_cuda_layers device;
} joint;

static kith_status place(const ki_cuda_reg_in *in, bool is_mmd, ki_cuda_scratch *room, joint *ret,
                         kith_error *err) {
    ki_layers *layers = &ret->layers;
    KI_TRY(ki_layers_read(in->settings, in->method->name, layers, err));
    ret->device = (ki_cuda_layers){.n = layers->n, .is_mmd = is_mmd};
    for (int i = 0; i < layers->n; i++) {
        ret->device.kind[i] = layers->kernel[i].kind;
        ret->device.mixed[i] = (int)layers->kernel[i].n;
        ret->device.degree[i] = (int)layers->kernel[i].degree;
        ret->device.given[i] = (float)layers->kernel[i].bandwidth;
        ret->device.s[i] = ki_cuda_scratch_floats(room, in->m * in->m);
    }
    ret->device.row_sum = ki_cuda_scratch_doubles(room, (layers->n + 1) * in->m);
    ret->device.sum = ki_cuda_scratch_doubles(room, layers->n + 1);
    ret->device.row_value = ki_cuda_scratch_doubles(room, in->m);
    return KITH_OK;
}

static kith_status joint_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                              kith_error *err) {
    ki_cuda_scratch room = {0};
    joint o;
    *ret_self = NULL;
    KI_TRY(place(in, false, &room, &o, err));
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

static ki_pairwise_measure measure_of(int kind) {
    return kind == KI_CUDA_GAUSSIAN  ? KI_PAIRWISE_SQUARE
           : kind == KI_CUDA_LAPLACE ? KI_PAIRWISE_L1
                                     : KI_PAIRWISE_INNER;
}

static kith_status run(const ki_cuda_reg_in *in, bool is_mmd, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {.base = scratch};
    joint o;
    KI_TRY(place(in, is_mmd, &room, &o, err));
    for (int i = 0; i < o.layers.n; i++) {
        const ki_tap tap = o.layers.tap[i];
        KI_CUDA(ki_cuda_pairwise(measure_of(o.device.kind[i]), in->tap[tap], in->m,
                                 in->edge[tap].shape.dim[1], NULL, o.device.s[i], in->stream));
    }
    KI_CUDA(ki_cuda_layers_rows(&o.device, in->label, in->m, in->value, in->stream));
    for (int i = 0; i < o.layers.n; i++) {
        const ki_tap tap = o.layers.tap[i];
        KI_CUDA(ki_cuda_pairwise_back(measure_of(o.device.kind[i]), in->tap[tap], o.device.s[i], in->m,
                                      in->edge[tap].shape.dim[1], NULL, in->weight, true, in->diff[tap],
                                      in->stream));
    }
    return KITH_OK;
}

static kith_status similarity_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return run(in, false, scratch, err);
}

static kith_status mmd_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return run(in, true, scratch, err);
}

const ki_cuda_reg ki_cuda_reg_joint_similarity = {
    .name = "joint_similarity", .open = joint_open, .launch = similarity_launch};
const ki_cuda_reg ki_cuda_reg_joint_mmd = {.name = "joint_mmd", .open = joint_open, .launch = mmd_launch};
