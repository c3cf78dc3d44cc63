/* Concatenation of channels. In the blocked layout a source whose channels fill whole blocks is one run of
 * memory per image: forward copies runs, backward sums the gradient parts of all consumers, applies the ReLU
 * masks of the sources if asked, and writes each source's share, all in one pass. Sources that do not fill
 * whole blocks use a simple loop. */
#include <string.h>

#include "backend/cpu/cpu.h"

typedef struct concat {
    ki_kernel base;
    int n_src;
    int64_t mb, hw, c[KI_MAX_SRC], c_total;
    bool is_whole; /* every source fills whole blocks */
    unsigned masked;
    ki_binding b;
} concat;

static void concat_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status concat_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    concat *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_concat, sizeof *k, &k, err));
    k->n_src = spec->n_src;
    k->mb = spec->dst.shape.dim[0];
    k->c_total = spec->dst.shape.dim[1];
    k->hw = spec->dst.shape.n_dims == 4 ? spec->dst.shape.dim[2] * spec->dst.shape.dim[3] : 1;
    k->masked = spec->masked_src;
    k->is_whole = true;
    for (int s = 0; s < k->n_src; s++) {
        k->c[s] = spec->src[s].shape.dim[1];
        k->is_whole &= spec->dst.layout == KI_PLAIN || k->c[s] % cpu_block() == 0;
    }
    *ret_info = (ki_kernel_info){.backward_reads_dst = k->masked != 0, .joins = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status concat_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((concat *)kernel)->b = *binding;
    return KITH_OK;
}

static void forward_images(void *context, int64_t begin, int64_t end) {
    const concat *k = context;
    float *dst = k->b.dst;
    for (int64_t n = begin; n < end; n++) {
        float *at = dst + n * k->c_total * k->hw;
        for (int s = 0; s < k->n_src; s++) {
            const int64_t run = k->c[s] * k->hw;
            memcpy(at, (const float *)k->b.src[s] + n * run, (size_t)run * sizeof(float));
            at += run;
        }
    }
}

static void forward_odd_images(void *context, int64_t begin, int64_t end) {
    const concat *k = context;
    float *dst = k->b.dst;
    const int64_t padded = cpu_padded(k->c_total), block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        int64_t to = 0;
        for (int s = 0; s < k->n_src; s++) {
            for (int64_t c = 0; c < k->c[s]; c++, to++) {
                const float *from =
                    (const float *)k->b.src[s] + cpu_native_at(n, c, 0, cpu_padded(k->c[s]), k->hw);
                float *at = dst + cpu_native_at(n, to, 0, padded, k->hw);
                for (int64_t i = 0; i < k->hw; i++) at[i * block] = from[i * block];
            }
        }
        for (; to < padded; to++) {
            float *at = dst + cpu_native_at(n, to, 0, padded, k->hw);
            for (int64_t i = 0; i < k->hw; i++) at[i * block] = 0;
        }
    }
}

static kith_status concat_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    concat *k = (concat *)kernel;
    ki_parallel_for(k->mb, 1, k->is_whole ? forward_images : forward_odd_images, k);
    return KITH_OK;
}

static void backward_images(void *context, int64_t begin, int64_t end) {
    const concat *k = context;
    const float *dst = k->b.dst;
    for (int64_t n = begin; n < end; n++) {
        int64_t at = n * k->c_total * k->hw;
        for (int s = 0; s < k->n_src; s++) {
            const int64_t run = k->c[s] * k->hw;
            if (k->b.diff_src[s]) {
                const float *parts[KI_MAX_SRC];
                for (int p = 0; p < k->b.n_diff_dst; p++) parts[p] = (const float *)k->b.diff_dst[p] + at;
                cpu_join_range(k->b.n_diff_dst, parts, k->masked >> s & 1 ? dst + at : NULL,
                               (float *)k->b.diff_src[s] + n * run, run);
            }
            at += run;
        }
    }
}

static float odd_gradient(const concat *k, int64_t at, bool is_masked) {
    if (is_masked && !(((const float *)k->b.dst)[at] > 0)) return 0;
    float sum = 0;
    for (int p = 0; p < k->b.n_diff_dst; p++) sum += ((const float *)k->b.diff_dst[p])[at];
    return sum;
}

static void backward_odd_images(void *context, int64_t begin, int64_t end) {
    const concat *k = context;
    const int64_t block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        int64_t from = 0;
        for (int s = 0; s < k->n_src; from += k->c[s], s++) {
            float *diff = k->b.diff_src[s];
            if (!diff) continue;
            for (int64_t c = 0; c < cpu_padded(k->c[s]); c++) {
                float *to = diff + cpu_native_at(n, c, 0, cpu_padded(k->c[s]), k->hw);
                const int64_t at = cpu_native_at(n, from + c, 0, cpu_padded(k->c_total), k->hw);
                for (int64_t i = 0; i < k->hw; i++)
                    to[i * block] = c < k->c[s] ? odd_gradient(k, at + i * block, k->masked >> s & 1) : 0;
            }
        }
    }
}

static kith_status concat_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    concat *k = (concat *)kernel;
    ki_parallel_for(k->mb, 1, k->is_whole ? backward_images : backward_odd_images, k);
    return KITH_OK;
}

const ki_kernel_type cpu_concat = {.create = concat_create,
                                   .bind = concat_bind,
                                   .forward = concat_forward,
                                   .backward = concat_backward,
                                   .free = concat_free};
