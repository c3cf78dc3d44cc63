/* The weights' gradient of depthwise convolutions on blocked maps. One row of the kernel in one block of channels is a piece of
 * work: its sums stay in registers while a row of the map passes, and are then added to those of the rows before. */
#include "backend/cpu/depthwise.h"

#include <string.h>

#include "backend/cpu/cpu.h"

enum { MOST_WIDTH = 7 };

/* Rows of the two maps, and how a kernel of `kw` moves over them. */
typedef struct row {
    const float *src, *diff;
    int64_t iw, ow, sw, pw;
} row;

/* The columns of diff whose whole window is inside the source: from *ret_begin to *ret_end. */
static void inner_columns(const row *r, int64_t kw, int64_t *ret_begin, int64_t *ret_end) {
    const int64_t begin = (r->pw + r->sw - 1) / r->sw, last = r->iw - kw + r->pw;
    int64_t end = last < 0 ? 0 : last / r->sw + 1;
    if (end > r->ow) end = r->ow;
    *ret_begin = begin < r->ow ? begin : r->ow;
    *ret_end = end > *ret_begin ? end : *ret_begin;
}

/* sum [kw, block] += what the columns from begin to end of a row give, of which some of the window may be outside. */
static void add_border(const row *r, int kw, int block, int64_t begin, int64_t end, float *sum) {
    for (int64_t x = begin; x < end; x++) {
        for (int k = 0; k < kw; k++) {
            const int64_t at = x * r->sw - r->pw + k;
            if (at < 0 || at >= r->iw) continue;
            for (int i = 0; i < block; i++)
                sum[k * block + i] += r->diff[x * block + i] * r->src[at * block + i];
        }
    }
}

/* The same where the whole window is inside; compiled for each width and block, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void add_inner(const row *r, int kw, int block, int64_t begin,
                                                            int64_t end, float *sum) {
    float part[MOST_WIDTH * CPU_MOST_BLOCK] = {0};
    for (int64_t x = begin; x < end; x++) {
        const float *diff = r->diff + x * block, *src = r->src + (x * r->sw - r->pw) * block;
        for (int k = 0; k < kw; k++) {
            for (int i = 0; i < block; i++) part[k * block + i] += diff[i] * src[k * block + i];
        }
    }
    for (int i = 0; i < kw * block; i++) sum[i] += part[i];
}

#define INNER(kw, block)                                                                              \
    CPU_WIDE static void inner_##kw##_##block(const row *r, int64_t begin, int64_t end, float *sum) { \
        add_inner(r, kw, block, begin, end, sum);                                                     \
    }
INNER(3, 16)
INNER(5, 16)
INNER(7, 16)
INNER(3, 8)
INNER(5, 8)
INNER(7, 8)
INNER(3, 1)
INNER(5, 1)
INNER(7, 1)
#undef INNER

typedef void inner_fn(const row *r, int64_t begin, int64_t end, float *sum);

static inner_fn *inner_of(int64_t kw, int64_t block) {
    static inner_fn *const fns[3][3] = {{inner_3_1, inner_5_1, inner_7_1},
                                        {inner_3_8, inner_5_8, inner_7_8},
                                        {inner_3_16, inner_5_16, inner_7_16}};
    return fns[block == 16 ? 2 : block == 8][(kw - 3) / 2];
}

/* Items: rows of the kernel in blocks of channels. */
static void weights_rows(void *context, int64_t begin, int64_t end) {
    const cpu_depthwise *d = context;
    const ki_conv_attr *a = d->attr;
    const int64_t block = cpu_block(), padded = cpu_padded(d->c);
    inner_fn *inner = inner_of(a->kw, block);
    for (int64_t item = begin; item < end; item++) {
        const int64_t c = item / a->kh * block, ky = item % a->kh,
                      n_here = d->c - c < block ? d->c - c : block;
        float sum[MOST_WIDTH * CPU_MOST_BLOCK] = {0};
        for (int64_t i = 0; i < d->mb * d->oh; i++) {
            const int64_t n = i / d->oh, y = i % d->oh, sy = y * a->sh - a->ph + ky;
            if (sy < 0 || sy >= d->ih) continue;
            const row r = {.src = d->src + cpu_native_at(n, c, sy * d->iw, padded, d->ih * d->iw),
                           .diff = d->diff_dst + cpu_native_at(n, c, y * d->ow, padded, d->oh * d->ow),
                           .iw = d->iw,
                           .ow = d->ow,
                           .sw = a->sw,
                           .pw = a->pw};
            int64_t first = 0, past = 0;
            inner_columns(&r, a->kw, &first, &past);
            add_border(&r, (int)a->kw, (int)block, 0, first, sum);
            inner(&r, first, past, sum);
            add_border(&r, (int)a->kw, (int)block, past, d->ow, sum);
        }
        for (int64_t k = 0; k < n_here * a->kw; k++) {
            const int64_t i = k / a->kw, kx = k % a->kw;
            d->diff_weights[((c + i) * a->kh + ky) * a->kw + kx] += sum[kx * block + i];
        }
    }
}

/* Items: blocks of channels. */
static void bias_blocks(void *context, int64_t begin, int64_t end) {
    const cpu_depthwise *d = context;
    const int64_t block = cpu_block(), padded = cpu_padded(d->c), pixels = d->oh * d->ow;
    for (int64_t c = begin * block; c < end * block; c += block) {
        const int64_t n_here = d->c - c < block ? d->c - c : block;
        for (int64_t n = 0; n < d->mb; n++) {
            const float *diff = d->diff_dst + cpu_native_at(n, c, 0, padded, pixels);
            float sum[CPU_MOST_BLOCK] = {0};
            for (int64_t p = 0; p < pixels; p++) {
                for (int64_t i = 0; i < block; i++) sum[i] += diff[p * block + i];
            }
            for (int64_t i = 0; i < n_here; i++) d->diff_bias[c + i] += sum[i];
        }
    }
}

bool cpu_is_depthwise(const ki_conv_attr *a, int64_t ic) {
    return a->groups > 1 && a->groups == ic && a->oc == ic && (a->kw == 3 || a->kw == 5 || a->kw == 7);
}

void cpu_depthwise_grad(const cpu_depthwise *depthwise) {
    cpu_depthwise d = *depthwise;
    const int64_t n_blocks = cpu_padded(d.c) / cpu_block();
    if (d.diff_weights) ki_parallel_for(n_blocks * d.attr->kh, 1, weights_rows, &d);
    if (d.diff_bias) ki_parallel_for(n_blocks, 1, bias_blocks, &d);
}
