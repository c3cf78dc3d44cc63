/* Patches as rows, and their product with the gradient of the output, pixel by pixel of it. */
#include "backend/cpu/patches.h"

#include <string.h>

#include "backend/cpu/gemm.h"

bool cpu_is_patches(const ki_kernel_spec *spec) {
    const ki_conv_attr *a = &spec->attr->conv;
    return spec->src[0].layout != KI_NATIVE && spec->dst.layout == KI_NATIVE && spec->dst.pitch == 0 &&
           a->groups <= 1 && a->kh == a->sh && a->kw == a->sw && a->kh > 1 && a->ph == 0 && a->pw == 0;
}

static int64_t n_pixels(const cpu_patches *p) { return p->oh * p->ow; }
static int64_t patch_size(const cpu_patches *p) { return p->ic * p->kh * p->kw; }

size_t cpu_patches_scratch_bytes(const cpu_patches *p) {
    return (size_t)(n_pixels(p) * (patch_size(p) + p->oc)) * sizeof(float);
}

typedef struct image {
    const cpu_patches *p;
    int64_t n;
    float *rows, *diffs; /* [pixels, patch_size], [pixels, oc] */
} image;

/* Items: pixels of the output. */
static void lay_rows(void *context, int64_t begin, int64_t end) {
    const image *at = context;
    const cpu_patches *p = at->p;
    for (int64_t i = begin; i < end; i++) {
        const int64_t y = i / p->ow * p->kh, x = i % p->ow * p->kw;
        float *row = at->rows + i * patch_size(p);
        for (int64_t c = 0; c < p->ic; c++) {
            const float *map = p->src + (at->n * p->ic + c) * p->ih * p->iw;
            for (int64_t k = 0; k < p->kh; k++, row += p->kw)
                memcpy(row, map + (y + k) * p->iw + x, (size_t)p->kw * sizeof *row);
        }
        for (int64_t c = 0; c < p->oc; c++)
            at->diffs[i * p->oc + c] =
                p->diff_dst[cpu_native_at(at->n, c, i, cpu_padded(p->oc), n_pixels(p))];
    }
}

/* Items: channels of the output. */
static void sum_bias(void *context, int64_t begin, int64_t end) {
    const image *at = context;
    for (int64_t c = begin; c < end; c++) {
        double sum = 0;
        for (int64_t i = 0; i < n_pixels(at->p); i++) sum += (double)at->diffs[i * at->p->oc + c];
        at->p->diff_bias[c] += (float)sum;
    }
}

void cpu_patches_grad(const cpu_patches *p) {
    image at = {.p = p, .rows = p->scratch, .diffs = p->scratch + n_pixels(p) * patch_size(p)};
    const cpu_gemm product = {.m = p->oc,
                              .n = patch_size(p),
                              .k = n_pixels(p),
                              .transposes_a = true,
                              .adds = true,
                              .a = at.diffs,
                              .b = at.rows,
                              .c = p->diff_weights};
    for (at.n = 0; at.n < p->mb; at.n++) {
        ki_parallel_for(n_pixels(p), 16, lay_rows, &at);
        if (p->diff_weights) cpu_gemm_run(&product);
        if (p->diff_bias) ki_parallel_for(p->oc, 32, sum_bias, &at);
    }
}
