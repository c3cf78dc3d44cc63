/* Moments on the device: blocks of columns, one matrix product and one pass each. */
#include "objective/cuda/moments.h"

#include <math.h>

#include "backend/cuda/cuda.h"
#include "objective/reg/orders.h"

enum { LEAST_BLOCK = 256 };

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t n_rows(const ki_cuda_moments *o) { return o->m * o->hw; }
static int64_t n_blocks(const ki_cuda_moments *o) { return (o->padded + o->block - 1) / o->block; }

static void set_chains(ki_cuda_moments *o) {
    const ki_cuda_chain all = {.m = o->m,
                               .hw = o->hw,
                               .dim = o->dim,
                               .scale = (float)(1 / sqrt((double)o->dim)),
                               .diff_is_bf16 = o->type == KI_NUMBER_BF16};
    o->n_w = ki_moments_projections(o->orders, o->cascaded);
    o->n_chains = 0;
    for (int k = o->cascaded ? o->orders : 2, first = 0; k <= o->orders; first += k, k++) {
        ki_cuda_chain *chain = &o->chain[o->n_chains++];
        *chain = all;
        chain->first = first;
        chain->n = k;
        chain->least = o->cascaded ? 2 : k;
    }
}

void ki_cuda_moments_place(ki_cuda_moments *o, ki_cuda_scratch *room) {
    const size_t bytes = ki_number_bytes(o->type);
    set_chains(o);
    o->padded = round_up(o->dim, KI_CUDA_PAD);
    const bool is_float = o->type == KI_NUMBER_FLOAT;
    const double column_bytes = (double)n_rows(o) * o->n_w * (double)(sizeof(float) + (is_float ? 0 : bytes));
    const double fitting = (double)o->most_bytes / column_bytes;
    o->block = o->padded;
    if (fitting < (double)o->padded) {
        const int64_t most = (int64_t)fitting > LEAST_BLOCK ? (int64_t)fitting : LEAST_BLOCK;
        const int64_t n = (o->padded + most - 1) / most;
        o->block = round_up((o->padded + n - 1) / n, LEAST_BLOCK);
    }
    if (o->block > o->padded) o->block = o->padded;
    const int64_t n_p = n_rows(o) * o->n_w * o->block;
    o->p = ki_cuda_scratch_floats(room, n_p);
    o->diff_p = is_float ? o->p : ki_cuda_scratch_take(room, n_p, bytes);
    o->packed = ki_cuda_scratch_take(room, o->c * o->n_w * o->padded, bytes);
    for (int k = 2; k <= o->orders; k++) o->g[k] = ki_cuda_scratch_floats(room, o->m * o->padded);
    o->diff_f = n_blocks(o) > 1 ? ki_cuda_scratch_floats(room, n_rows(o) * o->c) : NULL;
}

/* Columns [begin, begin + width) of all projections. */
typedef struct span {
    int64_t begin, width, pitch;
    const void *w; /* [c, pitch], packed_pitch from row to row */
} span;

static span span_of(const ki_cuda_moments *o, int64_t index) {
    const int64_t begin = index * o->block, left = o->padded - begin;
    const int64_t width = left < o->block ? left : o->block;
    return (span){.begin = begin,
                  .width = width,
                  .pitch = o->n_w * width,
                  .w = (const char *)o->packed + (size_t)(o->n_w * begin) * ki_number_bytes(o->type)};
}

static int64_t packed_pitch(const ki_cuda_moments *o) { return o->n_w * o->padded; }

static ki_cuda_chain chain_of(const ki_cuda_moments *o, int i, const span *s) {
    ki_cuda_chain chain = o->chain[i];
    chain.begin = s->begin;
    chain.width = s->width;
    chain.pitch = s->pitch;
    chain.p = o->p;
    chain.diff_p = o->diff_p;
    return chain;
}

static kith_status project(const ki_cuda_moments *o, const span *s, kith_error *err) {
    return ki_cuda_gemm(o->backend, false, false, n_rows(o), s->pitch, o->c, 1, o->f, o->type, o->f_pitch,
                        s->w, packed_pitch(o), 0, o->p, KI_NUMBER_FLOAT, s->pitch, err);
}

kith_status ki_cuda_moments_forward(const ki_cuda_moments *o, kith_error *err) {
    ki_cuda_pack pack = {.n = o->n_w, .rows = o->c, .dim = o->dim, .padded = o->padded, .block = o->block};
    for (int t = 0; t < o->n_w; t++) pack.src[t] = o->w[t];
    KI_CUDA(ki_cuda_product_pack(&pack, o->type == KI_NUMBER_BF16, o->packed, o->stream));
    for (int64_t b = 0; b < n_blocks(o); b++) {
        const span s = span_of(o, b);
        KI_TRY(project(o, &s, err));
        for (int i = 0; i < o->n_chains; i++) {
            ki_cuda_chain chain = chain_of(o, i, &s);
            for (int k = 2; k <= o->orders; k++) chain.g[k] = o->g[k];
            chain.g_pitch = o->padded;
            KI_CUDA(ki_cuda_product_pool(&chain, o->stream));
        }
    }
    return KITH_OK;
}

/* What dL/dp says of the projections. */
static kith_status weights_back(const ki_cuda_moments *o, const span *s, float *const *diff_w,
                                kith_error *err) {
    const int64_t left = o->dim - s->begin, n = left < s->width ? left : s->width;
    for (int t = 0; t < o->n_w && n > 0; t++) {
        const char *diff_p = (const char *)o->diff_p + (size_t)(t * s->width) * ki_number_bytes(o->type);
        if (diff_w[t])
            KI_TRY(ki_cuda_gemm(o->backend, true, false, o->c, n, n_rows(o), 1, o->f, o->type, o->f_pitch,
                                diff_p, s->pitch, 1, diff_w[t] + s->begin, KI_NUMBER_FLOAT, o->dim, err));
    }
    return KITH_OK;
}

kith_status ki_cuda_moments_backward(const ki_cuda_moments *o, float *const *diff_g, int64_t diff_g_pitch,
                                     float *const *diff_w, bool add, void *diff_f, int64_t diff_f_pitch,
                                     kith_error *err) {
    const int64_t last = n_blocks(o) - 1;
    for (int64_t b = last; b >= 0; b--) {
        const span s = span_of(o, b);
        if (b < last) KI_TRY(project(o, &s, err));
        for (int i = 0; i < o->n_chains; i++) {
            ki_cuda_chain chain = chain_of(o, i, &s);
            for (int k = 2; k <= o->orders; k++) chain.g[k] = diff_g[k];
            chain.g_pitch = diff_g_pitch;
            KI_CUDA(ki_cuda_product_back(&chain, o->stream));
        }
        KI_TRY(weights_back(o, &s, diff_w, err));
        void *dst = last > 0 ? o->diff_f : diff_f;
        const bool adds = last > 0 ? b < last : add;
        KI_TRY(ki_cuda_gemm(o->backend, false, true, n_rows(o), o->c, s.pitch, 1, o->diff_p, o->type, s.pitch,
                            s.w, packed_pitch(o), adds ? 1 : 0, dst, last > 0 ? KI_NUMBER_FLOAT : o->type,
                            last > 0 ? o->c : diff_f_pitch, err));
    }
    if (last > 0)
        KI_CUDA(ki_cuda_product_store(o->diff_f, n_rows(o), o->c, o->c, add, o->type == KI_NUMBER_BF16,
                                      diff_f, diff_f_pitch, o->stream));
    return KITH_OK;
}
