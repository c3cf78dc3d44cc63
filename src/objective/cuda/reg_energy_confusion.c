/* reg/energy_confusion.c on the device.
 *
 * All pairs: with class means mu and spreads v (the mean squared distance to mu),
 *   E_IJ = v_I + v_J + |mu_I - mu_J|^2,   sum_J e_IJ (x_i - mu_J) = own_I (x_i - mu_I) + sum_J e_IJ (mu_I - mu_J)
 * where every difference is taken first, so that nothing need be centred.
 * Random pairs: how often each pair was drawn, and then a pass over the pairs. */
#include <string.h>

#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_classes.h"
#include "objective/cuda/reg_pairwise.h"
#include "objective/cuda/reg_rows.h"
#include "objective/cuda/reg_scratch.h"

typedef struct energy {
    ki_energy_form form;
    bool is_mean;
    int64_t pairs, m, dim;
} energy;

static energy energy_of(const ki_cuda_reg_in *in) {
    const char *form = ki_method_choice(in->method, in->settings, "form");
    return (energy){
        .form = strcmp(form, "linear") == 0  ? KI_ENERGY_LINEAR
                : strcmp(form, "log1p") == 0 ? KI_ENERGY_LOG1P
                                             : KI_ENERGY_LOG,
        .is_mean = strcmp(ki_method_choice(in->method, in->settings, "reduction"), "mean") == 0,
        .pairs = ki_method_int(in->method, in->settings, "pairs"),
        .m = in->m,
        .dim = in->edge[KI_TAP_EMBEDDING].shape.dim[1],
    };
}

typedef struct places {
    double *row_value, *row_items, *slope;
    float *square; /* [m, m]: of items or of classes */
    /* Random pairs. */
    int32_t *count;
    /* All pairs. */
    ki_cuda_classes classes;
    float *mean, *pull;
    double *spread, *own;
} places;

static places place(const energy *o, ki_cuda_scratch *room) {
    places at = {.row_value = ki_cuda_scratch_doubles(room, o->m),
                 .row_items = ki_cuda_scratch_doubles(room, o->m),
                 .slope = ki_cuda_scratch_doubles(room, 1),
                 .square = ki_cuda_scratch_floats(room, o->m * o->m)};
    if (o->pairs > 0) {
        at.count = ki_cuda_scratch_take(room, o->m * o->m, sizeof *at.count);
    } else {
        at.classes = ki_cuda_classes_place(room, o->m);
        at.mean = ki_cuda_scratch_floats(room, o->m * o->dim);
        at.pull = ki_cuda_scratch_floats(room, o->m * o->dim);
        at.spread = ki_cuda_scratch_doubles(room, o->m);
        at.own = ki_cuda_scratch_doubles(room, o->m);
    }
    return at;
}

static kith_status energy_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                               kith_error *err) {
    const energy o = energy_of(in);
    ki_cuda_scratch room = {0};
    (void)err;
    *ret_self = NULL;
    place(&o, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

static kith_status all_pairs(const ki_cuda_reg_in *in, const energy *o, const places *at, kith_error *err) {
    const float *x = in->tap[KI_TAP_EMBEDDING];
    const ki_cuda_classes *classes = &at->classes;
    KI_CUDA(ki_cuda_classes_find(in->label, o->m, classes, in->stream));
    KI_CUDA(ki_cuda_classes_measure(classes, x, o->m, o->dim, at->mean, at->spread, in->stream));
    KI_CUDA(ki_cuda_pairwise(KI_PAIRWISE_SQUARE, at->mean, o->m, o->dim, classes->n, at->square, in->stream));
    KI_CUDA(ki_cuda_energy_rows(classes, o->m, at->spread, o->form, o->is_mean, at->square, at->own,
                                at->row_value, at->row_items, in->stream));
    KI_CUDA(
        ki_cuda_energy_finish(o->m, o->form, at->row_value, at->row_items, in->value, at->slope, in->stream));
    KI_CUDA(ki_cuda_pairwise_back(KI_PAIRWISE_SQUARE, at->mean, at->square, o->m, o->dim, classes->n, NULL,
                                  false, at->pull, in->stream));
    KI_CUDA(ki_cuda_energy_back(classes, x, o->m, o->dim, at->mean, at->own, at->pull, at->slope, in->weight,
                                in->diff[KI_TAP_EMBEDDING], in->stream));
    return KITH_OK;
}

static kith_status random_pairs(const ki_cuda_reg_in *in, const energy *o, const places *at,
                                kith_error *err) {
    const float *x = in->tap[KI_TAP_EMBEDDING];
    const double share = o->is_mean ? 1 / (double)o->pairs : 1;
    KI_TRY(in->backend->type->zero(in->backend, at->count, (size_t)(o->m * o->m) * sizeof *at->count, err));
    KI_CUDA(ki_cuda_energy_draw(in->label, o->m, o->pairs, in->seed, in->step, at->count, in->stream));
    KI_CUDA(ki_cuda_pairwise(KI_PAIRWISE_SQUARE, x, o->m, o->dim, NULL, at->square, in->stream));
    KI_CUDA(ki_cuda_energy_pairs(at->square, at->count, o->m, o->form, share, at->row_value, at->row_items,
                                 in->stream));
    KI_CUDA(
        ki_cuda_energy_finish(o->m, o->form, at->row_value, at->row_items, in->value, at->slope, in->stream));
    KI_CUDA(ki_cuda_energy_pairs_back(at->square, at->count, o->m, o->form, share, at->slope, at->square,
                                      in->stream));
    KI_CUDA(ki_cuda_pairwise_back(KI_PAIRWISE_SQUARE, x, at->square, o->m, o->dim, NULL, in->weight, true,
                                  in->diff[KI_TAP_EMBEDDING], in->stream));
    return KITH_OK;
}

static kith_status energy_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const energy o = energy_of(in);
    ki_cuda_scratch room = {.base = scratch};
    const places at = place(&o, &room);
    (void)self;
    return o.pairs > 0 ? random_pairs(in, &o, &at, err) : all_pairs(in, &o, &at, err);
}

const ki_cuda_reg ki_cuda_reg_energy_confusion = {
    .name = "energy_confusion", .open = energy_open, .launch = energy_launch};
