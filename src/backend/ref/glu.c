/* glu. With a and b the halves of a token: dst = a * sigmoid(a) * b. */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Items: tokens, here and below. */
static void forward_tokens(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t c = ki_shape_width(&k->spec.dst.shape);
    for (int64_t t = begin; t < end; t++) {
        const ki_real *a = (const ki_real *)k->binding.src[0] + t * 2 * c, *b = a + c;
        ki_real *dst = (ki_real *)k->binding.dst + t * c;
        for (int64_t i = 0; i < c; i++)
            dst[i] = (ki_real)((double)a[i] * sigmoid((double)a[i]) * (double)b[i]);
    }
}

static void backward_tokens(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t c = ki_shape_width(&k->spec.dst.shape);
    for (int64_t t = begin; t < end; t++) {
        const ki_real *a = (const ki_real *)k->binding.src[0] + t * 2 * c, *b = a + c;
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + t * c;
        ki_real *diff_a = (ki_real *)k->binding.diff_src[0] + t * 2 * c, *diff_b = diff_a + c;
        for (int64_t i = 0; i < c; i++) {
            const double x = (double)a[i], s = sigmoid(x), d = (double)diff_dst[i];
            diff_a[i] = (ki_real)(d * (double)b[i] * (s + x * s * (1 - s)));
            diff_b[i] = (ki_real)(d * x * s);
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_glu, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static void over_tokens(ki_kernel *kernel, ki_range_fn fn) {
    const ki_shape *s = &ki_ref_of(kernel)->spec.dst.shape;
    ki_parallel_for(ki_shape_rows(s), ki_ref_grain(20 * ki_shape_width(s)), fn, kernel);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    over_tokens(kernel, forward_tokens);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    if (ki_ref_of(kernel)->binding.diff_src[0]) over_tokens(kernel, backward_tokens);
    return KITH_OK;
}

const ki_kernel_type ki_ref_glu = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
