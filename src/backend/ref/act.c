/* act: the functions of device/op.h and their slopes, in double. A hard function has the slope of its outer side at a corner. */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef double function(double x);

static const double half_root = 0.70710678118654752, root_2_by_pi = 0.79788456080286536;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double sigmoid_slope(double x) { return sigmoid(x) * (1 - sigmoid(x)); }

static double gelu(double x) { return x * (1 + erf(x * half_root)) / 2; }
static double gelu_slope(double x) {
    return (1 + erf(x * half_root)) / 2 + x * exp(-x * x / 2) * root_2_by_pi / 2;
}

static double gelu_tanh(double x) { return x * (1 + tanh(root_2_by_pi * (x + 0.044715 * x * x * x))) / 2; }
static double gelu_tanh_slope(double x) {
    const double t = tanh(root_2_by_pi * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x * (1 - t * t) * root_2_by_pi * (1 + 3 * 0.044715 * x * x) / 2;
}

static double quick_gelu(double x) { return x * sigmoid(1.702 * x); }
static double quick_gelu_slope(double x) { return sigmoid(1.702 * x) + 1.702 * x * sigmoid_slope(1.702 * x); }

static double silu(double x) { return x * sigmoid(x); }
static double silu_slope(double x) { return sigmoid(x) + x * sigmoid_slope(x); }

static double hard_sigmoid(double x) { return fmin(fmax(x / 6 + 0.5, 0), 1); }
static double hard_sigmoid_slope(double x) { return x > -3 && x < 3 ? 1.0 / 6 : 0; }

static double hard_swish(double x) { return x * hard_sigmoid(x); }
static double hard_swish_slope(double x) { return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5; }

static const struct {
    function *value, *slope;
} rows[] = {[KI_ACT_GELU] = {gelu, gelu_slope},
            [KI_ACT_GELU_TANH] = {gelu_tanh, gelu_tanh_slope},
            [KI_ACT_QUICK_GELU] = {quick_gelu, quick_gelu_slope},
            [KI_ACT_SILU] = {silu, silu_slope},
            [KI_ACT_SIGMOID] = {sigmoid, sigmoid_slope},
            [KI_ACT_HARD_SWISH] = {hard_swish, hard_swish_slope},
            [KI_ACT_HARD_SIGMOID] = {hard_sigmoid, hard_sigmoid_slope}};

static void forward_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *src = k->binding.src[0];
    ki_real *dst = k->binding.dst;
    function *value = rows[k->attr.act.how].value;
    for (int64_t i = begin; i < end; i++) dst[i] = (ki_real)value((double)src[i]);
}

static void backward_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *src = k->binding.src[0], *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0];
    function *slope = rows[k->attr.act.how].slope;
    for (int64_t i = begin; i < end; i++)
        diff_src[i] = (ki_real)((double)diff_dst[i] * slope((double)src[i]));
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_act, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    (void)err;
    ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(20), forward_items, kernel);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    (void)err;
    if (k->binding.diff_src[0])
        ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(20), backward_items, kernel);
    return KITH_OK;
}

const ki_kernel_type ki_ref_act = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
