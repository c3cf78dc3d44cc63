/* A linear map of the embedding that gives a teacher's, on the device (match.h has the formulas). */
#include "objective/reg/match.h"

#include "backend/cuda/gemm/gemm.h"
#include "objective/cuda/reg.cuh"

namespace {

/* A block for each row: its share of the value, and weight * dL/d(unit y). */
__global__ void match_cosine(const float *unit, const float *wanted, int m, int w, const float *weight,
                             float *diff, double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t row = (int64_t)blockIdx.x * w;
    double sum = 0;
    for (int k = (int)threadIdx.x; k < w; k += (int)blockDim.x) {
        sum += (double)unit[row + k] * (double)wanted[row + k];
        diff[row + k] = -(*weight / (float)m) * wanted[row + k];
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) row_value[blockIdx.x] = (1 - sum) / m;
}

/* The same of the squared distance: y becomes weight * dL/dy. */
__global__ void match_squared(float *y, const float *wanted, int m, int w, const float *weight,
                              double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t row = (int64_t)blockIdx.x * w;
    const double scale = 1 / ((double)m * w);
    double sum = 0;
    for (int k = (int)threadIdx.x; k < w; k += (int)blockDim.x) {
        const double off = (double)y[row + k] - (double)wanted[row + k];
        sum += off * off;
        y[row + k] = (float)((double)*weight * 2 * scale * off);
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) row_value[blockIdx.x] = scale * sum;
}

/* A thread for each column: the sum over rows, in their order. */
__global__ void add_columns(const float *diff_y, int m, int w, float *diff) {
    const int k = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (k >= w) return;
    double sum = 0;
    for (int i = 0; i < m; i++) sum += (double)diff_y[(int64_t)i * w + k];
    diff[k] += (float)sum;
}

struct buffers {
    float *y, *unit, *wanted, *diff_unit; /* [m, w]; the last three: form cosine */
    float *norm;                          /* [m] */
    double *row_value;                    /* [m] */
};

const ki_match_settings *settings_of(const ki_cuda_reg_in *in) {
    return static_cast<const ki_match_settings *>(in->settings);
}

const ki_cuda_tap &teacher_of(const ki_cuda_reg_in *in) {
    return in->tap[ki_tap_of_teacher((int)settings_of(in)->teacher)];
}

buffers place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    const int64_t n = in->m * teacher_of(in).cols;
    buffers at = {};
    at.y = ki_cuda_scratch_floats(room, n);
    at.row_value = ki_cuda_scratch_doubles(room, in->m);
    if (settings_of(in)->form != KI_MATCH_COSINE) return at;
    at.unit = ki_cuda_scratch_floats(room, n);
    at.wanted = ki_cuda_scratch_floats(room, n);
    at.diff_unit = ki_cuda_scratch_floats(room, n);
    at.norm = ki_cuda_scratch_floats(room, in->m);
    return at;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

/* The value; y becomes weight * dL/dy. */
cudaError_t compare(const ki_cuda_reg_in *in, const buffers &at) {
    const ki_cuda_tap &t = teacher_of(in);
    const int64_t m = in->m, w = t.cols;
    if (settings_of(in)->form == KI_MATCH_SQUARED) {
        KI_LAUNCH_TRY(match_squared, (unsigned)m, 128, 0, in->stream, at.y, ki_tap_floats(t), m, w,
                      in->weight, at.row_value);
    } else {
        cudaError_t error = ki_cuda_rows_normalize(at.y, m, w, at.unit, at.norm, NULL, NULL, in->stream);
        if (error != cudaSuccess) return error;
        error = ki_cuda_rows_normalize(ki_tap_floats(t), m, w, at.wanted, NULL, NULL, NULL, in->stream);
        if (error != cudaSuccess) return error;
        KI_LAUNCH_TRY(match_cosine, (unsigned)m, 128, 0, in->stream, at.unit, at.wanted, m, w, in->weight,
                      at.diff_unit, at.row_value);
        error = ki_cuda_rows_normalize_backward(at.unit, at.norm, at.diff_unit, NULL, m, w, false, at.y,
                                                in->stream);
        if (error != cudaSuccess) return error;
    }
    return ki_cuda_rows_total(at.row_value, m, in->value, in->stream);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const buffers at = place(in, &room);
    const ki_cuda_tap &x = in->tap[KI_TAP_EMBEDDING];
    const ki_cuda_param &weight = in->param[KI_MATCH_WEIGHT], &bias = in->param[KI_MATCH_BIAS];
    const int64_t m = in->m, d = x.cols, w = teacher_of(in).cols;
    (void)self;
    KI_TRY(ki_cuda_gemm_bias(in->backend, false, true, m, w, d, ki_tap_floats(x), KI_NUMBER_FLOAT, d,
                             weight.value, d, bias.value, at.y, KI_NUMBER_FLOAT, w, err));
    KI_CUDA(compare(in, at));
    if (weight.diff) {
        KI_TRY(ki_cuda_gemm(in->backend, true, false, w, d, m, 1, at.y, KI_NUMBER_FLOAT, w, ki_tap_floats(x),
                            d, 1, weight.diff, KI_NUMBER_FLOAT, d, err));
        KI_CUDA(
            KI_LAUNCH(add_columns, (unsigned)((w + 127) / 128), 128, 0, in->stream, at.y, m, w, bias.diff));
    }
    return ki_cuda_gemm(in->backend, false, false, m, d, w, 1, at.y, KI_NUMBER_FLOAT, w, weight.value, d, 1,
                        ki_tap_diff(x), KI_NUMBER_FLOAT, d, err);
}

} // namespace

const ki_cuda_reg ki_cuda_reg_match = {.open = reg_open, .launch = reg_launch};
