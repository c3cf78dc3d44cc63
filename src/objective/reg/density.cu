/* Density adaptivity on the device (density.c has the formulas). */
#include "objective/reg/density.h"

#include "objective/cuda/classes.h"
#include "objective/cuda/reg.cuh"

namespace {

enum { THREADS = 256 };

struct density {
    double eta;
    bool correlation, relative;
    const float *alpha, *d0; /* by label */
    const double *now;       /* original densities of the batch, by its classes; NULL: use d0 */
    float *diff_alpha;       /* NULL: not learned */
    const float *weight;
};

/* Of the class at a place in the batch's list. */
__device__ double power_of(const ki_cuda_classes &c, const density &o, int at) {
    const double d = o.now ? o.now[at] : (double)o.d0[c.label[at]];
    return d > 0 ? pow(d, o.eta) : 0;
}

/* The factor of original densities: 1, or 1 divided by their mean over the batch's classes. */
__device__ double density_scale(const ki_cuda_classes &c, const density &o, int n, double *room) {
    if (!o.relative) return 1;
    double sum = 0;
    for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x) sum += power_of(c, o, e);
    sum = ki_block_sum(sum, room);
    return sum > 0 ? (double)n / sum : 1;
}

/* A block for each class c: its share of the value (0 past the last class), and the factor of x_i - mean. t_e = r_e
 * a_c - r_c a_e over all classes e. */
__global__ void density_rows(ki_cuda_classes c, const double *spread, density o, double *row_value,
                             double *factor) {
    KI_SHARED_ARRAY(double, room, 33);
    const int at = (int)blockIdx.x, n = *c.n;
    if (at >= n) {
        if (threadIdx.x == 0) row_value[at] = 0;
        return;
    }
    const double a = (double)o.alpha[c.label[at]];
    double squares = 0, pull = 0;
    if (o.correlation) {
        const double scale = density_scale(c, o, n, room), r = scale * power_of(c, o, at);
        for (int e = (int)threadIdx.x; e < n; e += (int)blockDim.x) {
            const double r_e = scale * power_of(c, o, e);
            const double t = r_e * a - r * (double)o.alpha[c.label[e]];
            squares += t * t;
            pull += r_e * t;
        }
        squares = ki_block_sum(squares, room);
        pull = ki_block_sum(pull, room);
    }
    if (threadIdx.x != 0) return;
    const double off = spread[at] - a, share = 1 / ((double)n * (double)n);
    row_value[at] = (off * off - a) / (double)n + share * squares;
    factor[at] = 4 * off / ((double)n * (double)c.count[at]);
    if (o.diff_alpha)
        o.diff_alpha[c.label[at]] += *o.weight * (float)((-2 * off - 1) / (double)n + 4 * share * pull);
}

/* diff += weight * factor of the class * (x - mean). */
__global__ void density_back(ki_cuda_classes c, const float *x, int64_t n, int dim, const float *mean,
                             const double *factor, const float *weight, float *diff) {
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    const int32_t i = (int32_t)(at / dim), k = (int32_t)(at % dim), mine = c.of[i];
    diff[at] += *weight * (float)factor[mine] * (x[at] - mean[(int64_t)mine * dim + k]);
}

struct places {
    ki_cuda_classes classes;
    float *mean;
    double *spread, *factor, *row_value;
    float *now_unit,
        *now_mean; /* of pooled features, where the batch's own densities are the original ones */
    double *now;
};

bool reads_pooled(const ki_cuda_reg_in *in) { return in->tap[KI_TAP_POOLED].data != NULL; }

places place(const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    places at = {};
    at.classes = ki_cuda_classes_place(room, in->m);
    at.mean = ki_cuda_scratch_floats(room, in->m * in->tap[KI_TAP_EMBEDDING].cols);
    at.spread = ki_cuda_scratch_doubles(room, in->m);
    at.factor = ki_cuda_scratch_doubles(room, in->m);
    at.row_value = ki_cuda_scratch_doubles(room, in->m);
    if (!reads_pooled(in)) return at;
    const int64_t n = in->m * in->tap[KI_TAP_POOLED].cols;
    at.now_unit = ki_cuda_scratch_floats(room, n);
    at.now_mean = ki_cuda_scratch_floats(room, n);
    at.now = ki_cuda_scratch_doubles(room, in->m);
    return at;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    ki_cuda_scratch room = {};
    (void)ret_self, (void)err;
    place(in, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const ki_density_settings *o = static_cast<const ki_density_settings *>(in->settings);
    const ki_cuda_param &alpha = in->param[KI_DENSITY_ALPHA], &d0 = in->param[KI_DENSITY_D0];
    const ki_cuda_tap &tap = in->tap[KI_TAP_EMBEDDING];
    const float *x = ki_tap_floats(tap);
    const int64_t m = in->m, dim = tap.cols;
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const places at = place(in, &room);
    const density own = {o->eta,   o->correlation, o->relative, alpha.value,
                         d0.value, at.now,         alpha.diff,  in->weight};
    (void)self;
    KI_CUDA(ki_cuda_classes_find(in->label, m, &at.classes, in->stream));
    if (at.now) {
        const int64_t wide = in->tap[KI_TAP_POOLED].cols;
        const float *pooled = ki_tap_floats(in->tap[KI_TAP_POOLED]);
        if (o->d0_unit)
            KI_CUDA(ki_cuda_rows_normalize(pooled, m, wide, at.now_unit, NULL, NULL, NULL, in->stream));
        KI_CUDA(ki_cuda_classes_measure(&at.classes, o->d0_unit ? at.now_unit : pooled, m, wide, at.now_mean,
                                        at.now, in->stream));
    }
    KI_CUDA(ki_cuda_classes_measure(&at.classes, x, m, dim, at.mean, at.spread, in->stream));
    KI_CUDA(KI_LAUNCH(density_rows, (unsigned)m, 128, 0, in->stream, at.classes, at.spread, own, at.row_value,
                      at.factor));
    KI_CUDA(ki_cuda_rows_total(at.row_value, m, in->value, in->stream));
    KI_CUDA(KI_LAUNCH(density_back, (unsigned)((m * dim + THREADS - 1) / THREADS), THREADS, 0, in->stream,
                      at.classes, x, m * dim, dim, at.mean, at.factor, in->weight, ki_tap_diff(tap)));
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_density = {.open = reg_open, .launch = reg_launch};
