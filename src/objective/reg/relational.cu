/* Similarities like a teacher's on the device (relational.h has the formulas). */
#include "objective/reg/relational.h"

#include "objective/cuda/pairwise.h"
#include "objective/cuda/reg.cuh"
#include "objective/cuda/row.cuh"

namespace {

struct view {
    int m;
    bool is_square;
    double share; /* of a head in s */
    double temperature, teacher_temperature;
};

/* A block for each row i. s becomes dL/ds. */
__global__ void relational_square(view v, const float *t, float *s, double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * v.m;
    const double scale = v.m > 1 ? 1 / ((double)v.m * (v.m - 1)) : 0;
    double sum = 0;
    KI_COLUMNS(j, v.m) {
        const double off = j == i ? 0 : v.share * (double)s[row + j] - (double)t[row + j];
        sum += off * off;
        s[row + j] = (float)(2 * v.share * scale * off);
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) row_value[i] = scale * sum;
}

__global__ void relational_softmax(view v, const float *t, float *s, double *row_value) {
    KI_SHARED_ARRAY(double, room, KI_ROOM);
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * v.m;
    const double a = v.share / v.temperature, b = 1 / v.teacher_temperature;
    float most[2] = {-FLT_MAX, -FLT_MAX};
    KI_COLUMNS(j, v.m) {
        if (j == i) continue;
        most[0] = s[row + j] > most[0] ? s[row + j] : most[0];
        most[1] = t[row + j] > most[1] ? t[row + j] : most[1];
    }
    ki_block_maxima(most, room);
    double sum[2] = {0, 0};
    KI_COLUMNS(j, v.m) {
        if (j == i) continue;
        sum[0] += (double)expf((float)(a * ((double)s[row + j] - (double)most[0])));
        sum[1] += (double)expf((float)(b * ((double)t[row + j] - (double)most[1])));
    }
    ki_block_sums(sum, room);
    const double between = v.m > 1 ? log(sum[0]) - log(sum[1]) : 0;
    double value[1] = {0};
    KI_COLUMNS(j, v.m) {
        if (j == i) {
            s[row + j] = 0;
            continue;
        }
        const double of_student = a * ((double)s[row + j] - (double)most[0]);
        const double of_teacher = b * ((double)t[row + j] - (double)most[1]);
        const double q = (double)expf((float)of_student) / sum[0],
                     p = (double)expf((float)of_teacher) / sum[1];
        value[0] += p * (of_teacher - of_student + between);
        s[row + j] = (float)(a / v.m * (q - p));
    }
    ki_block_sums(value, room);
    if (threadIdx.x == 0) row_value[i] = value[0] / v.m;
}

struct buffers {
    float *s, *t;      /* [m, m] */
    float *unit;       /* [m, w] */
    double *row_value; /* [m] */
};

const ki_relational_settings *settings_of(const ki_cuda_reg_in *in) {
    return static_cast<const ki_relational_settings *>(in->settings);
}

const ki_cuda_tap &teacher_of(const ki_cuda_reg_in *in) {
    return in->tap[ki_tap_of_teacher((int)settings_of(in)->teacher)];
}

buffers place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    buffers at;
    at.s = ki_cuda_scratch_floats(room, in->m * in->m);
    at.t = ki_cuda_scratch_floats(room, in->m * in->m);
    at.unit = ki_cuda_scratch_floats(room, in->m * teacher_of(in).cols);
    at.row_value = ki_cuda_scratch_doubles(room, in->m);
    return at;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

cudaError_t queue(const ki_cuda_reg_in *in, const buffers &at) {
    const ki_relational_settings *o = settings_of(in);
    const ki_cuda_tap &x = in->tap[KI_TAP_EMBEDDING], &teacher = teacher_of(in);
    const view v = {(int)in->m, o->form == KI_RELATIONAL_SQUARE, 1 / (double)in->heads, o->temperature,
                    o->teacher_temperature};
    cudaError_t error = ki_cuda_rows_normalize(ki_tap_floats(teacher), in->m, teacher.cols, at.unit, NULL,
                                               NULL, NULL, in->stream);
    if (error != cudaSuccess) return error;
    error = ki_cuda_pairwise(KI_PAIRWISE_INNER, at.unit, in->m, teacher.cols, NULL, at.t, in->stream);
    if (error != cudaSuccess) return error;
    error = ki_cuda_pairwise(KI_PAIRWISE_INNER, ki_tap_floats(x), in->m, x.cols, NULL, at.s, in->stream);
    if (error != cudaSuccess) return error;
    if (v.is_square)
        KI_LAUNCH_TRY(relational_square, (unsigned)in->m, 128, 0, in->stream, v, at.t, at.s, at.row_value);
    else
        KI_LAUNCH_TRY(relational_softmax, (unsigned)in->m, 128, 0, in->stream, v, at.t, at.s, at.row_value);
    error = ki_cuda_rows_total(at.row_value, in->m, in->value, in->stream);
    if (error != cudaSuccess) return error;
    return ki_cuda_pairwise_back(KI_PAIRWISE_INNER, ki_tap_floats(x), at.s, in->m, x.cols, NULL, in->weight,
                                 true, ki_tap_diff(x), in->stream);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    (void)self;
    KI_CUDA(queue(in, place(in, &room)));
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_relational = {.open = reg_open, .launch = reg_launch};
