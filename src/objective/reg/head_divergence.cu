/* The divergence of heads on the device (head_divergence.c has the formulas). */
#include "objective/reg/head_divergence.h"

#include "objective/cuda/pairwise.h"
#include "objective/cuda/reg.cuh"

namespace {

struct view {
    int n, heads; /* rows: heads of images in turn */
    float margin;
    bool is_self;

    __device__ bool is_active(int i, int j, float s) const {
        return i % heads != j % heads && (!is_self || i / heads == j / heads) && s > margin;
    }
};

/* row_sum [2, n]: what is above the margin, and how many are. */
__global__ void divergence_sums(view v, const float *s, double *row_sum) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    double sum = 0, count = 0;
    for (int j = (int)threadIdx.x; j < v.n; j += (int)blockDim.x) {
        const float over = s[(int64_t)i * v.n + j];
        if (!v.is_active(i, j, over)) continue;
        sum += (double)(over - v.margin);
        count += 1;
    }
    sum = ki_block_sum(sum, room);
    count = ki_block_sum(count, room);
    if (threadIdx.x == 0) row_sum[i] = sum, row_sum[v.n + i] = count;
}

__global__ void divergence_finish(const double *row_sum, int n, float *share, double *value) {
    KI_SHARED_ARRAY(double, room, 33);
    double total[2];
    for (int k = 0; k < 2; k++) {
        double part = 0;
        for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) part += row_sum[k * n + i];
        total[k] = ki_block_sum(part, room);
    }
    if (threadIdx.x != 0) return;
    *value = total[1] > 0 ? total[0] / total[1] : 0;
    *share = total[1] > 0 ? (float)(1 / total[1]) : 0;
}

/* dL/ds in place of s. */
__global__ void divergence_back(view v, const float *share, float *s) {
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * v.n;
    for (int j = (int)threadIdx.x; j < v.n; j += (int)blockDim.x)
        s[row + j] = v.is_active(i, j, s[row + j]) ? *share : 0;
}

struct memory {
    float *s;    /* [n, n] */
    double *row; /* [2, n] */
    float *share;
};

memory place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    const int64_t n = in->m * in->heads;
    memory at;
    at.s = ki_cuda_scratch_floats(room, n * n);
    at.row = ki_cuda_scratch_doubles(room, 2 * n);
    at.share = ki_cuda_scratch_floats(room, 1);
    return at;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

cudaError_t queue(const ki_cuda_reg_in *in, const memory &at) {
    const ki_head_divergence_settings *o = static_cast<const ki_head_divergence_settings *>(in->settings);
    const ki_cuda_tap &x = in->tap[KI_TAP_EMBEDDING];
    const int64_t n = in->m * in->heads, dim = x.cols / in->heads;
    const view v = {(int)n, (int)in->heads, (float)o->margin, o->pairs == KI_HEAD_PAIRS_SELF};
    cudaError_t error = ki_cuda_pairwise(KI_PAIRWISE_INNER, ki_tap_floats(x), n, dim, NULL, at.s, in->stream);
    if (error != cudaSuccess) return error;
    KI_LAUNCH_TRY(divergence_sums, (unsigned)n, 128, 0, in->stream, v, at.s, at.row);
    KI_LAUNCH_TRY(divergence_finish, 1, 256, 0, in->stream, at.row, n, at.share, in->value);
    KI_LAUNCH_TRY(divergence_back, (unsigned)n, 128, 0, in->stream, v, at.share, at.s);
    return ki_cuda_pairwise_back(KI_PAIRWISE_INNER, ki_tap_floats(x), at.s, n, dim, NULL, in->weight, true,
                                 ki_tap_diff(x), in->stream);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    (void)self;
    KI_CUDA(queue(in, place(in, &room)));
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_head_divergence = {.open = reg_open, .launch = reg_launch};
