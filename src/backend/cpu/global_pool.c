/* Global pooling from blocked maps to plain rows: average, maximum (first of equals), their sum, or what gem.h has. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/gem.h"

typedef struct global_pool {
    ki_kernel base;
    int64_t mb, c, hw;
    ki_global_pool how;
    bool trains;
    ki_binding b;
} global_pool;

static void global_pool_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status global_pool_create(ki_backend *backend, const ki_kernel_spec *spec,
                                      ki_kernel_info *ret_info, ki_kernel **ret_kernel, kith_error *err) {
    global_pool *k = NULL;
    const ki_shape *s = &spec->src[0].shape;
    KI_TRY(ki_kernel_new(backend, &cpu_global_pool, sizeof *k, &k, err));
    k->mb = s->dim[0];
    k->c = s->dim[1];
    k->hw = s->dim[2] * s->dim[3];
    k->how = spec->attr->global_pool.how;
    k->trains = spec->wants_diff_params;
    const bool gem = k->how == KI_GLOBAL_GEM;
    const size_t each = gem ? 3 * sizeof(float) : k->how == KI_GLOBAL_AVG ? 0 : sizeof(int32_t);
    *ret_info = (ki_kernel_info){.workspace_bytes = (size_t)(k->mb * cpu_padded(k->c)) * each,
                                 .backward_reads_src = gem};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status global_pool_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((global_pool *)kernel)->b = *binding;
    return KITH_OK;
}

/* Compiled for each size of a block, so that its channels stay in registers. */
static inline __attribute__((always_inline)) void pool_channels(const float *src, int64_t hw, int block,
                                                                float *sum, float *most, int32_t *place) {
    for (int i = 0; i < block; i++) {
        sum[i] = 0;
        most[i] = src[i];
        place[i] = 0;
    }
    for (int64_t p = 0; p < hw; p++) {
        for (int i = 0; i < block; i++) {
            const float x = src[p * block + i];
            sum[i] += x;
            place[i] = x > most[i] ? (int32_t)p : place[i];
            most[i] = x > most[i] ? x : most[i];
        }
    }
}

/* Only the sums, in so many chains of additions, because each addition waits for the one before it. */
static inline __attribute__((always_inline)) void sum_channels(const float *src, int64_t hw, int block,
                                                               float *sum) {
    enum { CHAINS = 4 };
    float part[CHAINS][CPU_MOST_BLOCK] = {{0}};
    int64_t p = 0;
    for (; p + CHAINS <= hw; p += CHAINS) {
        for (int k = 0; k < CHAINS; k++) {
            for (int i = 0; i < block; i++) part[k][i] += src[(p + k) * block + i];
        }
    }
    for (; p < hw; p++) {
        for (int i = 0; i < block; i++) part[0][i] += src[p * block + i];
    }
    for (int i = 0; i < block; i++) sum[i] = (part[0][i] + part[1][i]) + (part[2][i] + part[3][i]);
}

CPU_WIDE static void sum_16(const float *src, int64_t hw, float *sum) { sum_channels(src, hw, 16, sum); }
CPU_WIDE static void sum_8(const float *src, int64_t hw, float *sum) { sum_channels(src, hw, 8, sum); }
static void sum_1(const float *src, int64_t hw, float *sum) { sum_channels(src, hw, 1, sum); }

static void average_images(void *context, int64_t begin, int64_t end) {
    const global_pool *k = context;
    const int64_t padded = cpu_padded(k->c), block = cpu_block();
    void (*const add)(const float *, int64_t, float *) = block == 16 ? sum_16 : block == 8 ? sum_8 : sum_1;
    for (int64_t n = begin; n < end; n++) {
        for (int64_t c = 0; c < k->c; c += block) {
            float sum[CPU_MOST_BLOCK];
            add((const float *)k->b.src[0] + (n * padded + c) * k->hw, k->hw, sum);
            float *dst = (float *)k->b.dst + n * k->c + c;
            for (int64_t i = 0; i < block && c + i < k->c; i++) dst[i] = sum[i] / (float)k->hw;
        }
    }
}

CPU_WIDE static void pool_16(const float *src, int64_t hw, float *sum, float *most, int32_t *place) {
    pool_channels(src, hw, 16, sum, most, place);
}
CPU_WIDE static void pool_8(const float *src, int64_t hw, float *sum, float *most, int32_t *place) {
    pool_channels(src, hw, 8, sum, most, place);
}
static void pool_1(const float *src, int64_t hw, float *sum, float *most, int32_t *place) {
    pool_channels(src, hw, 1, sum, most, place);
}

static void forward_images(void *context, int64_t begin, int64_t end) {
    const global_pool *k = context;
    const int64_t padded = cpu_padded(k->c), block = cpu_block();
    void (*const pool)(const float *, int64_t, float *, float *, int32_t *) = block == 16  ? pool_16
                                                                              : block == 8 ? pool_8
                                                                                           : pool_1;
    for (int64_t n = begin; n < end; n++) {
        for (int64_t c = 0; c < k->c; c += block) {
            float sum[CPU_MOST_BLOCK], most[CPU_MOST_BLOCK];
            int32_t place[CPU_MOST_BLOCK];
            pool((const float *)k->b.src[0] + (n * padded + c) * k->hw, k->hw, sum, most, place);
            float *dst = (float *)k->b.dst + n * k->c + c;
            const int64_t n_here = k->c - c < block ? k->c - c : block;
            for (int64_t i = 0; i < n_here; i++) {
                const float average = sum[i] / (float)k->hw;
                dst[i] = k->how == KI_GLOBAL_MAX ? most[i] : average + most[i];
            }
            if (k->b.workspace)
                memcpy((int32_t *)k->b.workspace + n * padded + c, place, (size_t)block * sizeof *place);
        }
    }
}

static cpu_gem gem_of(const global_pool *k) {
    return (cpu_gem){.mb = k->mb,
                     .c = k->c,
                     .hw = k->hw,
                     .src = k->b.src[0],
                     .p = k->b.param[KI_W].value,
                     .dst = k->b.dst,
                     .saved = k->b.workspace,
                     .diff_dst = k->b.diff_dst[0],
                     .diff_src = k->b.diff_src[0],
                     .diff_p = k->trains ? k->b.param[KI_W].diff : NULL};
}

static kith_status global_pool_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const cpu_gem gem = gem_of((global_pool *)kernel);
    if (gem.p) {
        cpu_gem_forward(&gem);
        return KITH_OK;
    }
    const global_pool *k = (global_pool *)kernel;
    ki_parallel_for(k->mb, 1, k->how == KI_GLOBAL_AVG ? average_images : forward_images, kernel);
    return KITH_OK;
}

static void backward_images(void *context, int64_t begin, int64_t end) {
    const global_pool *k = context;
    const int64_t padded = cpu_padded(k->c), block = cpu_block();
    const size_t block_bytes = (size_t)block * sizeof(float);
    for (int64_t n = begin; n < end; n++) {
        for (int64_t c = 0; c < padded; c += block) {
            float each[CPU_MOST_BLOCK] = {0}, whole[CPU_MOST_BLOCK] = {0};
            for (int64_t i = 0; i < block && c + i < k->c; i++) {
                const float diff = ((const float *)k->b.diff_dst[0])[n * k->c + c + i];
                if (k->how != KI_GLOBAL_MAX) each[i] = diff / (float)k->hw;
                if (k->how != KI_GLOBAL_AVG) whole[i] = diff;
            }
            float *to = (float *)k->b.diff_src[0] + (n * padded + c) * k->hw;
            for (int64_t p = 0; p < k->hw; p++) memcpy(to + p * block, each, block_bytes);
            if (k->how == KI_GLOBAL_AVG) continue;
            const int32_t *place = (const int32_t *)k->b.workspace + n * padded + c;
            for (int64_t i = 0; i < block && c + i < k->c; i++) to[(int64_t)place[i] * block + i] += whole[i];
        }
    }
}

static kith_status global_pool_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const cpu_gem gem = gem_of((global_pool *)kernel);
    if (gem.p) {
        cpu_gem_backward(&gem);
        return KITH_OK;
    }
    if (gem.diff_src) ki_parallel_for(((global_pool *)kernel)->mb, 1, backward_images, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_global_pool = {.create = global_pool_create,
                                        .bind = global_pool_bind,
                                        .forward = global_pool_forward,
                                        .backward = global_pool_backward,
                                        .free = global_pool_free};
