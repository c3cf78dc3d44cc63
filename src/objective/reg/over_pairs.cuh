/* What the regularizers over the pairs of a batch share on the device: the comparison of embeddings, a function of
 * each row of pairs, and the gradients. */
#ifndef KI_OBJECTIVE_OVER_PAIRS_CUH
#define KI_OBJECTIVE_OVER_PAIRS_CUH

#include "objective/cuda/pairwise.h"
#include "objective/cuda/reg.cuh"

struct ki_cuda_over_pairs {
    float *s;           /* [m, m]; becomes dL/ds */
    double *row;        /* [3, m] */
    float *coefficient; /* memory for two numbers */
};

static inline ki_cuda_over_pairs ki_over_pairs_place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    ki_cuda_over_pairs at;
    at.s = ki_cuda_scratch_floats(room, in->m * in->m);
    at.row = ki_cuda_scratch_doubles(room, 3 * in->m);
    at.coefficient = ki_cuda_scratch_floats(room, 2);
    return at;
}

static inline kith_status ki_over_pairs_open(const ki_cuda_reg_in *in, void **ret_self,
                                             size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    ki_over_pairs_place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

/* The term does the part in between: it queues the value, and replaces s by dL/ds. */
typedef cudaError_t (*ki_over_pairs_fn)(const ki_cuda_reg_in *in, const ki_cuda_over_pairs *at);

static inline kith_status ki_over_pairs_launch(const ki_cuda_reg_in *in, ki_pairwise_measure measure,
                                               ki_over_pairs_fn middle, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const ki_cuda_over_pairs at = ki_over_pairs_place(in, &room);
    const ki_cuda_tap &x = in->tap[KI_TAP_EMBEDDING];
    KI_CUDA(ki_cuda_pairwise(measure, ki_tap_floats(x), in->m, x.cols, NULL, at.s, in->stream));
    KI_CUDA(middle(in, &at));
    KI_CUDA(ki_cuda_pairwise_back(measure, ki_tap_floats(x), at.s, in->m, x.cols, NULL, in->weight, true,
                                  ki_tap_diff(x), in->stream));
    return KITH_OK;
}

#endif
