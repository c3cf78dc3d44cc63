/* Runs of one block of channels: the loops, compiled for each size of a block, so that its channels stay in registers; and the
 * padding of maps. */
#include "backend/cpu/channels.h"

/* Pixels of a sum in float. */
enum { SHORT = 64 };

#define RUN static inline __attribute__((always_inline))

RUN void mix_one(const float *x, const cpu_mix *m, float *dst, int64_t hw, int block) {
    float a[CPU_MOST_BLOCK], c[CPU_MOST_BLOCK];
    for (int i = 0; i < block; i++) a[i] = m->a[i], c[i] = m->c[i];
    for (int64_t p = 0; p < hw * block; p += block) {
        for (int i = 0; i < block; i++) dst[p + i] = a[i] * x[p + i] + c[i];
    }
}

RUN void mix_two(const float *x, const float *y, const cpu_mix *m, float *dst, int64_t hw, int block) {
    float a[CPU_MOST_BLOCK], b[CPU_MOST_BLOCK], c[CPU_MOST_BLOCK];
    for (int i = 0; i < block; i++) a[i] = m->a[i], b[i] = m->b[i], c[i] = m->c[i];
    for (int64_t p = 0; p < hw * block; p += block) {
        for (int i = 0; i < block; i++) dst[p + i] = a[i] * x[p + i] + b[i] * y[p + i] + c[i];
    }
}

RUN void mix(const cpu_mix *m, int64_t hw, int block) {
    if (m->y)
        mix_two(m->x, m->y, m, m->dst, hw, block);
    else
        mix_one(m->x, m, m->dst, hw, block);
}

RUN void sums(const float *x, const float *y, int64_t hw, double *products, double *plain, int block) {
    for (int i = 0; i < block; i++) products[i] = plain[i] = 0;
    for (int64_t from = 0; from < hw; from += SHORT) {
        const int64_t to = from + SHORT < hw ? from + SHORT : hw;
        float along[CPU_MOST_BLOCK] = {0}, sum[CPU_MOST_BLOCK] = {0};
        for (int64_t p = from * block; p < to * block; p += block) {
            for (int i = 0; i < block; i++) along[i] += x[p + i] * y[p + i], sum[i] += x[p + i];
        }
        for (int i = 0; i < block; i++) products[i] += (double)along[i], plain[i] += (double)sum[i];
    }
}

#define SIZES(block)                                                                                \
    CPU_WIDE static void mix_##block(const cpu_mix *m, int64_t hw) { mix(m, hw, block); }           \
    CPU_WIDE static void sums_##block(const float *x, const float *y, int64_t hw, double *products, \
                                      double *plain) {                                              \
        sums(x, y, hw, products, plain, block);                                                     \
    }
SIZES(16)
SIZES(8)
SIZES(1)
#undef SIZES

void cpu_mix_run(const cpu_mix *m, int64_t hw) {
    void (*const run)(const cpu_mix *, int64_t) = cpu_block() == 16  ? mix_16
                                                  : cpu_block() == 8 ? mix_8
                                                                     : mix_1;
    run(m, hw);
}

void cpu_sum_run(const float *x, const float *y, int64_t hw, double *ret_products, double *ret_sums) {
    void (*const run)(const float *, const float *, int64_t, double *, double *) = cpu_block() == 16 ? sums_16
                                                                                   : cpu_block() == 8
                                                                                       ? sums_8
                                                                                       : sums_1;
    run(x, y, hw, ret_products, ret_sums);
}

void cpu_clear_padding(const ki_edge *edge, float *map) {
    const ki_shape *s = &edge->shape;
    if (edge->layout != KI_NATIVE) return;
    const int64_t padded = cpu_padded(s->dim[1]), hw = s->dim[2] * s->dim[3], block = cpu_block();
    for (int64_t n = 0; n < s->dim[0]; n++) {
        for (int64_t c = s->dim[1]; c < padded; c++) {
            float *at = map + cpu_native_at(n, c, 0, padded, hw);
            for (int64_t i = 0; i < hw; i++) at[i * block] = 0;
        }
    }
}
