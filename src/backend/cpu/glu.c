/* glu: one pass over the tokens in either direction; backward computes the sigmoid again. */
#include "backend/cpu/act_math.h"
#include "backend/cpu/cpu.h"

typedef struct glu {
    ki_kernel base;
    int64_t n, c; /* tokens, and numbers of one in dst */
    ki_binding b;
} glu;

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    glu *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_glu, sizeof *k, &k, err));
    k->n = ki_shape_rows(&spec->dst.shape);
    k->c = ki_shape_width(&spec->dst.shape);
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((glu *)kernel)->b = *binding;
    return KITH_OK;
}

CPU_WIDE static void forward_token(const float *a, const float *b, float *dst, int64_t c) {
    for (int64_t i = 0; i < c; i++) dst[i] = a[i] * cpu_sigmoid(a[i]) * b[i];
}

CPU_WIDE static void backward_token(const float *a, const float *b, const float *diff_dst, float *diff_a,
                                    float *diff_b, int64_t c) {
    for (int64_t i = 0; i < c; i++) {
        const float s = cpu_sigmoid(a[i]), gate = a[i] * s;
        diff_a[i] = diff_dst[i] * b[i] * (s + gate * (1 - s));
        diff_b[i] = diff_dst[i] * gate;
    }
}

static void forward_tokens(void *context, int64_t begin, int64_t end) {
    const glu *k = context;
    for (int64_t t = begin; t < end; t++) {
        const float *a = (const float *)k->b.src[0] + t * 2 * k->c;
        forward_token(a, a + k->c, (float *)k->b.dst + t * k->c, k->c);
    }
}

static void backward_tokens(void *context, int64_t begin, int64_t end) {
    const glu *k = context;
    for (int64_t t = begin; t < end; t++) {
        const float *a = (const float *)k->b.src[0] + t * 2 * k->c;
        float *diff_a = (float *)k->b.diff_src[0] + t * 2 * k->c;
        backward_token(a, a + k->c, (const float *)k->b.diff_dst[0] + t * k->c, diff_a, diff_a + k->c, k->c);
    }
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const glu *k = (glu *)kernel;
    (void)err;
    ki_parallel_for(k->n, 4096 / k->c + 1, forward_tokens, kernel);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const glu *k = (glu *)kernel;
    (void)err;
    if (k->b.diff_src[0]) ki_parallel_for(k->n, 4096 / k->c + 1, backward_tokens, kernel);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_glu = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
