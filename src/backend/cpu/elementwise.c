/* ReLU alone (where it could not be fused), and the sum of two maps followed by ReLU. */
#include <string.h>

#include "backend/cpu/cpu.h"

typedef struct elementwise {
    ki_kernel base;
    int64_t n;
    bool has_relu;
    ki_binding b;
} elementwise;

static void elementwise_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status elementwise_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((elementwise *)kernel)->b = *binding;
    return KITH_OK;
}

CPU_WIDE static void relu_chunk(const float *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = src[i] > 0 ? src[i] : 0;
}
CPU_WIDE static void add_chunk(const float *a, const float *b, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = a[i] + b[i];
}
CPU_WIDE static void add_relu_chunk(const float *a, const float *b, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float sum = a[i] + b[i];
        dst[i] = sum > 0 ? sum : 0;
    }
}

static kith_status relu_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    elementwise *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_relu, sizeof *k, &k, err));
    k->n = cpu_count(&spec->dst);
    *ret_info = (ki_kernel_info){.backward_reads_dst = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static void relu_forward_range(void *context, int64_t begin, int64_t end) {
    const elementwise *k = context;
    relu_chunk((const float *)k->b.src[0] + begin, (float *)k->b.dst + begin, end - begin);
}

static kith_status relu_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_parallel_for(((elementwise *)kernel)->n, 4096, relu_forward_range, kernel);
    return KITH_OK;
}

static void relu_backward_range(void *context, int64_t begin, int64_t end) {
    const elementwise *k = context;
    const float *const part = (const float *)k->b.diff_dst[0] + begin;
    cpu_join_range(1, &part, (const float *)k->b.dst + begin, (float *)k->b.diff_src[0] + begin, end - begin);
}

static kith_status relu_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_parallel_for(((elementwise *)kernel)->n, 4096, relu_backward_range, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_relu = {.create = relu_create,
                                 .bind = elementwise_bind,
                                 .forward = relu_forward,
                                 .backward = relu_backward,
                                 .free = elementwise_free};

static kith_status add_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    elementwise *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_add, sizeof *k, &k, err));
    k->n = cpu_count(&spec->dst);
    k->has_relu = spec->has_relu;
    *ret_info = (ki_kernel_info){.shares_diff = true, .mask_in_join = spec->has_relu};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static void add_forward_range(void *context, int64_t begin, int64_t end) {
    const elementwise *k = context;
    const float *a = (const float *)k->b.src[0] + begin, *b = (const float *)k->b.src[1] + begin;
    if (k->has_relu)
        add_relu_chunk(a, b, (float *)k->b.dst + begin, end - begin);
    else
        add_chunk(a, b, (float *)k->b.dst + begin, end - begin);
}

static kith_status add_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_parallel_for(((elementwise *)kernel)->n, 4096, add_forward_range, kernel);
    return KITH_OK;
}

/* Never called: the gradient is shared. */
static kith_status add_backward(ki_kernel *kernel, kith_error *err) {
    (void)kernel;
    return ki_fail(err, KITH_EINTERNAL, "add shares its gradient");
}

const ki_kernel_type cpu_add = {.create = add_create,
                                .bind = elementwise_bind,
                                .forward = add_forward,
                                .backward = add_backward,
                                .free = elementwise_free,
                                .fuses_relu = true};
