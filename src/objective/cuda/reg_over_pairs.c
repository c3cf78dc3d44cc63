/* The regularizers that are a sum over pairs of embeddings, on the device: reg/entropy.c, reg/intra_class.c,
 * reg/global_orthogonal.c. What they compare, what a row of pairs says, and back. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_pairwise.h"
#include "objective/cuda/reg_rows.h"
#include "objective/cuda/reg_scratch.h"

typedef struct places {
    float *s; /* [m, m]; becomes dL/ds */
    double *row;
    float *coefficient;
} places;

static places place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    return (places){.s = ki_cuda_scratch_floats(room, in->m * in->m),
                    .row = ki_cuda_scratch_doubles(room, 3 * in->m),
                    .coefficient = ki_cuda_scratch_floats(room, 2)};
}

static kith_status pairs_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                              kith_error *err) {
    ki_cuda_scratch room = {0};
    (void)err;
    *ret_self = NULL;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

/* The middle of the way: value, and dL/ds in place of s. */
typedef kith_status (*middle)(const ki_cuda_reg_in *in, const places *at, kith_error *err);

static kith_status run(const ki_cuda_reg_in *in, ki_pairwise_measure measure, middle fn, void *scratch,
                       kith_error *err) {
    ki_cuda_scratch room = {.base = scratch};
    const places at = place(in, &room);
    const float *x = in->tap[KI_TAP_EMBEDDING];
    const int64_t dim = in->edge[KI_TAP_EMBEDDING].shape.dim[1];
    KI_CUDA(ki_cuda_pairwise(measure, x, in->m, dim, NULL, at.s, in->stream));
    KI_TRY(fn(in, &at, err));
    KI_CUDA(ki_cuda_pairwise_back(measure, x, at.s, in->m, dim, NULL, in->weight, true,
                                  in->diff[KI_TAP_EMBEDDING], in->stream));
    return KITH_OK;
}

static kith_status entropy_middle(const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const double eta = ki_method_real(in->method, in->settings, "eta");
    KI_CUDA(ki_cuda_entropy_rows(at->s, in->m, eta, at->s, at->row, in->stream));
    KI_CUDA(ki_cuda_rows_total(at->row, in->m, in->value, in->stream));
    return KITH_OK;
}

static kith_status intra_class_middle(const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    KI_CUDA(ki_cuda_intra_class_rows(at->s, in->label, in->m, at->s, at->row, in->stream));
    KI_CUDA(ki_cuda_rows_total(at->row, in->m, in->value, in->stream));
    return KITH_OK;
}

static kith_status orthogonal_middle(const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    KI_CUDA(ki_cuda_orthogonal(at->s, in->label, in->m, in->edge[KI_TAP_EMBEDDING].shape.dim[1], at->s,
                               at->row, at->coefficient, in->value, in->stream));
    return KITH_OK;
}

static kith_status entropy_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return run(in, KI_PAIRWISE_SQUARE, entropy_middle, scratch, err);
}

static kith_status intra_class_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return run(in, KI_PAIRWISE_SQUARE, intra_class_middle, scratch, err);
}

static kith_status orthogonal_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return run(in, KI_PAIRWISE_INNER, orthogonal_middle, scratch, err);
}

const ki_cuda_reg ki_cuda_reg_entropy = {.name = "entropy", .open = pairs_open, .launch = entropy_launch};
const ki_cuda_reg ki_cuda_reg_intra_class = {
    .name = "intra_class", .open = pairs_open, .launch = intra_class_launch};
const ki_cuda_reg ki_cuda_reg_global_orthogonal = {
    .name = "global_orthogonal", .open = pairs_open, .launch = orthogonal_launch};
