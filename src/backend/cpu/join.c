/* Sums of gradient parts, masked by ReLU: one pass over memory for any number of parts. */
#include "backend/cpu/cpu.h"

/* A chunk that stays in the first cache while several parts are added to it. */
enum { CHUNK = 2048 };

CPU_WIDE static void mask_chunk(const float *a, const float *mask, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = mask[i] > 0 ? a[i] : 0;
}
CPU_WIDE static void add_chunk(const float *a, const float *b, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = a[i] + b[i];
}
CPU_WIDE static void add_mask_chunk(const float *a, const float *b, const float *mask, float *dst,
                                    int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = mask[i] > 0 ? a[i] + b[i] : 0;
}
CPU_WIDE static void add3_chunk(const float *a, const float *b, const float *c, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = a[i] + b[i] + c[i];
}
CPU_WIDE static void add3_mask_chunk(const float *a, const float *b, const float *c, const float *mask,
                                     float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = mask[i] > 0 ? a[i] + b[i] + c[i] : 0;
}
CPU_WIDE static void add4_chunk(const float *a, const float *b, const float *c, const float *d, float *dst,
                                int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = (a[i] + b[i]) + (c[i] + d[i]);
}
CPU_WIDE static void add4_mask_chunk(const float *a, const float *b, const float *c, const float *d,
                                     const float *mask, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = mask[i] > 0 ? (a[i] + b[i]) + (c[i] + d[i]) : 0;
}
CPU_WIDE static void copy_chunk(const float *a, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = a[i];
}
CPU_WIDE void cpu_accumulate(float *dst, const float *src, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] += src[i];
}

static void join_few(int n_parts, const float *const *p, const float *mask, float *dst, int64_t at,
                     int64_t n) {
    float *out = dst + at;
    const float *m = mask ? mask + at : NULL;
    switch (n_parts) {
    case 1:
        if (m)
            mask_chunk(p[0] + at, m, out, n);
        else if (p[0] != dst)
            copy_chunk(p[0] + at, out, n);
        break;
    case 2:
        if (m)
            add_mask_chunk(p[0] + at, p[1] + at, m, out, n);
        else
            add_chunk(p[0] + at, p[1] + at, out, n);
        break;
    case 3:
        if (m)
            add3_mask_chunk(p[0] + at, p[1] + at, p[2] + at, m, out, n);
        else
            add3_chunk(p[0] + at, p[1] + at, p[2] + at, out, n);
        break;
    default:
        if (m)
            add4_mask_chunk(p[0] + at, p[1] + at, p[2] + at, p[3] + at, m, out, n);
        else
            add4_chunk(p[0] + at, p[1] + at, p[2] + at, p[3] + at, out, n);
        break;
    }
}

void cpu_join_range(int n_parts, const float *const *parts, const float *mask, float *dst, int64_t n) {
    if (n_parts <= 4) {
        join_few(n_parts, parts, mask, dst, 0, n);
        return;
    }
    /* More than four parts: sum into a separate chunk, since dst may be any one of the parts. */
    float sum[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t m = n - at < CHUNK ? n - at : CHUNK;
        add4_chunk(parts[0] + at, parts[1] + at, parts[2] + at, parts[3] + at, sum, m);
        for (int p = 4; p < n_parts; p++) cpu_accumulate(sum, parts[p] + at, m);
        if (mask)
            mask_chunk(sum, mask + at, dst + at, m);
        else
            copy_chunk(sum, dst + at, m);
    }
}

typedef struct join_args {
    int n_parts;
    const float *parts[KI_MAX_SRC];
    const float *mask;
    float *dst;
} join_args;

static void join_range(void *context, int64_t begin, int64_t end) {
    const join_args *a = context;
    const float *parts[KI_MAX_SRC];
    for (int p = 0; p < a->n_parts; p++) parts[p] = a->parts[p] + begin;
    cpu_join_range(a->n_parts, parts, a->mask ? a->mask + begin : NULL, a->dst + begin, end - begin);
}

kith_status cpu_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                     const void *mask, void *dst, kith_error *err) {
    (void)backend, (void)err;
    join_args a = {.n_parts = n_parts, .mask = mask, .dst = dst};
    for (int p = 0; p < n_parts; p++) a.parts[p] = parts[p];
    ki_parallel_for(cpu_count(edge), 4096, join_range, &a);
    return KITH_OK;
}
