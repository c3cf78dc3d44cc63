/* gate: a pass over the map in either direction, run by run (channels.h). The gradient of the factors is the sum over the pixels. */
#include "backend/cpu/channels.h"

typedef struct gate {
    ki_kernel base;
    int64_t mb, c, hw;
    ki_binding b;
} gate;

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    gate *k = NULL;
    const ki_shape *s = &spec->dst.shape;
    KI_TRY(ki_kernel_new(backend, &cpu_gate, sizeof *k, &k, err));
    k->mb = s->dim[0];
    k->c = s->dim[1];
    k->hw = s->dim[2] * s->dim[3];
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((gate *)kernel)->b = *binding;
    return KITH_OK;
}

/* x to dst times the factors of a run. */
static void scale_run(const gate *k, int64_t n, int64_t first, const float *x, float *dst) {
    cpu_mix mix = {.x = x, .dst = dst};
    const float *factor = (const float *)k->b.src[1] + n * k->c + first;
    for (int64_t i = 0; i < cpu_channels_of(k->c, first); i++) mix.a[i] = factor[i];
    cpu_mix_run(&mix, k->hw);
}

/* Items: runs, here and below. */
static void forward_runs(void *context, int64_t begin, int64_t end) {
    const gate *k = context;
    const int64_t per_image = cpu_padded(k->c) / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++)
        scale_run(k, r / per_image, r % per_image * cpu_block(), (const float *)k->b.src[0] + r * length,
                  (float *)k->b.dst + r * length);
}

static void backward_runs(void *context, int64_t begin, int64_t end) {
    const gate *k = context;
    const int64_t per_image = cpu_padded(k->c) / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++) {
        const int64_t n = r / per_image, first = r % per_image * cpu_block();
        const float *diff_dst = (const float *)k->b.diff_dst[0] + r * length;
        if (k->b.diff_src[1]) {
            double products[CPU_MOST_BLOCK], unused[CPU_MOST_BLOCK];
            float *diff = (float *)k->b.diff_src[1] + n * k->c + first;
            cpu_sum_run(diff_dst, (const float *)k->b.src[0] + r * length, k->hw, products, unused);
            for (int64_t i = 0; i < cpu_channels_of(k->c, first); i++) diff[i] = (float)products[i];
        }
        if (k->b.diff_src[0]) scale_run(k, n, first, diff_dst, (float *)k->b.diff_src[0] + r * length);
    }
}

static void over_runs(ki_kernel *kernel, ki_range_fn fn) {
    const gate *k = (gate *)kernel;
    ki_parallel_for(k->mb * (cpu_padded(k->c) / cpu_block()), 4096 / (cpu_block() * k->hw) + 1, fn, kernel);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    over_runs(kernel, forward_runs);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    over_runs(kernel, backward_runs);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_gate = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
