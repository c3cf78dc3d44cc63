/* grn (formulas: backend/ref/grn.c), run by run (channels.h): a pass for the norms and one that uses them, and in backward a pass for the
 * sums and one for the gradient. */
#include <math.h>

#include "backend/cpu/channels.h"

/* The workspace, in inference the scratch: the norms [mb, padded], and r = 1 / (mean norm + eps) [mb]. The scratch of backward: sums over the pixels of diff_dst * src and of
 * diff_dst [mb, padded], and what pulls at all norms of a row [mb]. All in double; padding is 0. */
typedef struct grn {
    ki_kernel base;
    bool trains;
    int64_t mb, c, hw, padded;
    double eps, *norm, *rate, *along, *sum, *pull;
    ki_binding b;
} grn;

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    grn *k = NULL;
    const ki_shape *s = &spec->dst.shape;
    KI_TRY(ki_kernel_new(backend, &cpu_grn, sizeof *k, &k, err));
    k->mb = s->dim[0];
    k->c = s->dim[1];
    k->hw = s->dim[2] * s->dim[3];
    k->padded = cpu_padded(k->c);
    k->eps = spec->attr->grn.eps;
    k->trains = spec->mode == KI_TRAIN;
    const size_t norms = (size_t)(k->mb * (k->padded + 1)) * sizeof(double),
                 sums = (size_t)(k->mb * (2 * k->padded + 1)) * sizeof(double);
    *ret_info = (ki_kernel_info){.workspace_bytes = k->trains ? norms : 0,
                                 .scratch_bytes = k->trains ? sums : norms,
                                 .backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    grn *k = (grn *)kernel;
    k->b = *binding;
    k->norm = k->trains ? binding->workspace : binding->scratch;
    k->rate = k->norm + k->mb * k->padded;
    k->along = binding->scratch;
    k->sum = k->along + k->mb * k->padded;
    k->pull = k->sum + k->mb * k->padded;
    return KITH_OK;
}

/* Items: runs, here and below. */
static void norm_runs(void *context, int64_t begin, int64_t end) {
    const grn *k = context;
    double unused[CPU_MOST_BLOCK];
    for (int64_t r = begin; r < end; r++) {
        const float *src = (const float *)k->b.src[0] + r * cpu_block() * k->hw;
        double *norm = k->norm + r * cpu_block();
        cpu_sum_run(src, src, k->hw, norm, unused);
        for (int64_t i = 0; i < cpu_block(); i++) norm[i] = sqrt(norm[i]);
    }
}

static void forward_runs(void *context, int64_t begin, int64_t end) {
    const grn *k = context;
    const float *gamma = k->b.param[KI_W].value, *beta = k->b.param[KI_B].value;
    const int64_t per_image = k->padded / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++) {
        const int64_t n = r / per_image, first = r % per_image * cpu_block();
        cpu_mix mix = {.x = (const float *)k->b.src[0] + r * length, .dst = (float *)k->b.dst + r * length};
        for (int64_t i = 0; i < cpu_channels_of(k->c, first); i++) {
            mix.a[i] =
                (float)((double)gamma[first + i] * k->norm[n * k->padded + first + i] * k->rate[n] + 1);
            mix.c[i] = beta[first + i];
        }
        cpu_mix_run(&mix, k->hw);
    }
}

static void sum_runs(void *context, int64_t begin, int64_t end) {
    const grn *k = context;
    const int64_t length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++)
        cpu_sum_run((const float *)k->b.diff_dst[0] + r * length, (const float *)k->b.src[0] + r * length,
                    k->hw, k->along + r * cpu_block(), k->sum + r * cpu_block());
}

static void backward_runs(void *context, int64_t begin, int64_t end) {
    const grn *k = context;
    const float *gamma = k->b.param[KI_W].value;
    const int64_t per_image = k->padded / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++) {
        const int64_t n = r / per_image, first = r % per_image * cpu_block();
        cpu_mix mix = {.x = (const float *)k->b.diff_dst[0] + r * length,
                       .y = (const float *)k->b.src[0] + r * length,
                       .dst = (float *)k->b.diff_src[0] + r * length};
        for (int64_t i = 0; i < cpu_channels_of(k->c, first); i++) {
            const int64_t at = n * k->padded + first + i;
            const double g = (double)gamma[first + i], rate = k->rate[n];
            mix.a[i] = (float)(g * k->norm[at] * rate + 1);
            mix.b[i] = k->norm[at] > 0 ? (float)(rate * (g * k->along[at] - k->pull[n]) / k->norm[at]) : 0;
        }
        cpu_mix_run(&mix, k->hw);
    }
}

static void over_runs(grn *k, ki_range_fn fn) {
    ki_parallel_for(k->mb * (k->padded / cpu_block()), 4096 / (cpu_block() * k->hw) + 1, fn, k);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    grn *k = (grn *)kernel;
    over_runs(k, norm_runs);
    for (int64_t n = 0; n < k->mb; n++) {
        double sum = 0;
        for (int64_t c = 0; c < k->c; c++) sum += k->norm[n * k->padded + c];
        k->rate[n] = 1 / (sum / (double)k->c + k->eps);
    }
    over_runs(k, forward_runs);
    return KITH_OK;
}

static void add_param_diffs(const grn *k) {
    float *diff_gamma = k->b.param[KI_W].diff, *diff_beta = k->b.param[KI_B].diff;
    for (int64_t c = 0; c < k->c; c++) {
        double gamma = 0, beta = 0;
        for (int64_t n = 0; n < k->mb; n++) {
            gamma += k->norm[n * k->padded + c] * k->rate[n] * k->along[n * k->padded + c];
            beta += k->sum[n * k->padded + c];
        }
        if (diff_gamma) diff_gamma[c] += (float)gamma;
        if (diff_beta) diff_beta[c] += (float)beta;
    }
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    grn *k = (grn *)kernel;
    over_runs(k, sum_runs);
    add_param_diffs(k);
    if (!k->b.diff_src[0]) return KITH_OK;
    const float *gamma = k->b.param[KI_W].value;
    for (int64_t n = 0; n < k->mb; n++) {
        double pull = 0;
        for (int64_t c = 0; c < k->c; c++)
            pull += (double)gamma[c] * k->along[n * k->padded + c] * k->norm[n * k->padded + c];
        k->pull[n] = k->rate[n] * pull / (double)k->c;
    }
    over_runs(k, backward_runs);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_grn = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
