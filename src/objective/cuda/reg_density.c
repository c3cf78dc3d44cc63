/* reg/density.c on the device. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_classes.h"
#include "objective/cuda/reg_rows.h"
#include "objective/cuda/reg_scratch.h"

typedef struct places {
    ki_cuda_classes classes;
    float *mean;
    double *spread, *factor, *row_value;
} places;

static places place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    const int64_t m = in->m, dim = in->edge[KI_TAP_EMBEDDING].shape.dim[1];
    return (places){.classes = ki_cuda_classes_place(room, m),
                    .mean = ki_cuda_scratch_floats(room, m * dim),
                    .spread = ki_cuda_scratch_doubles(room, m),
                    .factor = ki_cuda_scratch_doubles(room, m),
                    .row_value = ki_cuda_scratch_doubles(room, m)};
}

static kith_status density_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                                kith_error *err) {
    ki_cuda_scratch room = {0};
    (void)err;
    *ret_self = NULL;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

static kith_status density_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    enum { ALPHA, D0 };
    ki_cuda_scratch room = {.base = scratch};
    const places at = place(in, &room);
    const int64_t m = in->m, dim = in->edge[KI_TAP_EMBEDDING].shape.dim[1];
    const float *x = in->tap[KI_TAP_EMBEDDING];
    const ki_cuda_density density = {.eta = ki_method_real(in->method, in->settings, "eta"),
                                     .correlation = ki_method_bool(in->method, in->settings, "correlation"),
                                     .relative = ki_method_bool(in->method, in->settings, "relative"),
                                     .alpha = in->param[ALPHA].value,
                                     .d0 = in->param[D0].value,
                                     .diff_alpha = in->param[ALPHA].diff,
                                     .weight = in->weight};
    (void)self;
    KI_CUDA(ki_cuda_classes_find(in->label, m, &at.classes, in->stream));
    KI_CUDA(ki_cuda_classes_measure(&at.classes, x, m, dim, at.mean, at.spread, in->stream));
    KI_CUDA(ki_cuda_density_rows(&at.classes, m, at.spread, &density, at.row_value, at.factor, in->stream));
    KI_CUDA(ki_cuda_rows_total(at.row_value, m, in->value, in->stream));
    KI_CUDA(ki_cuda_density_back(&at.classes, x, m, dim, at.mean, at.factor, in->weight,
                                 in->diff[KI_TAP_EMBEDDING], in->stream));
    return KITH_OK;
}

const ki_cuda_reg ki_cuda_reg_density = {.name = "density", .open = density_open, .launch = density_launch};
