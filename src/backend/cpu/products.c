/* Products of matrices in the caches. The loop is written once, with the compilers' vector types, and compiled for several
 * instruction sets. All versions add in the same order; those with fused multiply-add round differently from those without. */
#include "backend/cpu/products.h"

#include <stddef.h>
#include <string.h>

#include "backend/cpu/dnnl.h"

enum { AHEAD = 8 }; /* rows */

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* The rows that are read next: they are far from each other, which the processor does not see by itself. */
static void fetch(const float *x, int64_t pitch, int64_t n, int64_t c) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k += 16) __builtin_prefetch(x + i * pitch + k);
    }
}

void cpu_panels(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst) {
    const int64_t whole = c / CPU_PANEL * CPU_PANEL, panel = n * CPU_PANEL;
    fetch(x, pitch, n < AHEAD ? n : AHEAD, c);
    for (int64_t i = 0; i < n; i++, x += pitch, dst += CPU_PANEL) {
        if (i + AHEAD < n) fetch(x + AHEAD * pitch, pitch, 1, c);
        float *to = dst;
        for (int64_t k = 0; k < whole; k += CPU_PANEL, to += panel) memcpy(to, x + k, CPU_PANEL * sizeof *to);
        for (int64_t k = whole; whole < c && k < whole + CPU_PANEL; k++) *to++ = k < c ? x[k] : 0;
    }
}

void cpu_panels_of_transpose(const float *x, int64_t pitch, int64_t n, int64_t c, float *dst) {
    fetch(x, pitch, n < CPU_PANEL ? n : CPU_PANEL, c);
    for (; n >= CPU_PANEL; n -= CPU_PANEL, x += CPU_PANEL * pitch, dst += c * CPU_PANEL) {
        const int64_t next = n - CPU_PANEL;
        fetch(x + CPU_PANEL * pitch, pitch, next < CPU_PANEL ? next : CPU_PANEL, c);
        for (int64_t k = 0; k < c; k++) {
            for (int64_t i = 0; i < CPU_PANEL; i++) dst[k * CPU_PANEL + i] = x[i * pitch + k];
        }
    }
    if (n == 0) return;
    memset(dst, 0, (size_t)(c * CPU_PANEL) * sizeof *dst);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k++) dst[k * CPU_PANEL + i] = x[i * pitch + k];
    }
}

/* ROWS x LANES accumulators of WIDTH columns each, for rows from `i` on and PANELS panels from the place `first` on; the loops over them
 * are unrolled whole, so that the accumulators live in registers. */
#define STRIPE(name, target, WIDTH, ROWS, PANELS)                                                         \
    target static void name##_##ROWS(const cpu_product *p, int64_t first, int64_t i) {                    \
        typedef float lane __attribute__((vector_size(4 * (WIDTH)), aligned(4)));                         \
        enum { LANES = (PANELS)*CPU_PANEL / (WIDTH) };                                                    \
        const int64_t panel = p->b_panel ? p->b_panel : p->k * CPU_PANEL, left = p->n - first;            \
        const int64_t n = p->k, a_row = p->a_row, a_k = p->a_k;                                           \
        const float *a = p->a + i * a_row, *b = p->b + first / CPU_PANEL * panel;                         \
        lane sum[ROWS][LANES];                                                                            \
        UNROLL for (int r = 0; r < (ROWS); r++) {                                                         \
            UNROLL for (int l = 0; l < LANES; l++) {                                                      \
                sum[r][l] = p->bias ? *(const lane *)(p->bias + first + l * (WIDTH)) : (lane){0};         \
            }                                                                                             \
        }                                                                                                 \
        for (int64_t k = 0; k < n; k++, a += a_k) {                                                       \
            const float *from = b + k * CPU_PANEL;                                                        \
            lane y[LANES];                                                                                \
            UNROLL for (int l = 0; l < LANES; l++) {                                                      \
                y[l] = *(const lane *)(from + l * (WIDTH) / CPU_PANEL * panel + l * (WIDTH) % CPU_PANEL); \
            }                                                                                             \
            UNROLL for (int r = 0; r < (ROWS); r++) {                                                     \
                const float x = a[r * a_row];                                                             \
                UNROLL for (int l = 0; l < LANES; l++) sum[r][l] = sum[r][l] + y[l] * x;                  \
            }                                                                                             \
        }                                                                                                 \
        UNROLL for (int r = 0; r < (ROWS); r++) {                                                         \
            float *dst = p->dst + (i + r) * p->dst_pitch + first;                                         \
            UNROLL for (int l = 0; l < LANES; l++) {                                                      \
                const lane made = sum[r][l];                                                              \
                if (left >= (l + 1) * (WIDTH)) {                                                          \
                    lane *to = (lane *)(dst + l * (WIDTH));                                               \
                    *to = p->adds ? *to + made : made;                                                    \
                } else {                                                                                  \
                    store_some((const float *)&made, left - l * (WIDTH), p->adds, dst + l * (WIDTH));     \
                }                                                                                         \
            }                                                                                             \
        }                                                                                                 \
    }

/* The first n, where an edge cuts a vector. */
static void store_some(const float *made, int64_t n, bool adds, float *dst) {
    for (int64_t i = 0; i < n; i++) dst[i] = adds ? dst[i] + made[i] : made[i];
}

/* All rows of PANELS panels: stripes of 6 rows and what is left. */
#define COLUMNS(name, target, WIDTH, PANELS)                                              \
    STRIPE(name, target, WIDTH, 1, PANELS)                                                \
    STRIPE(name, target, WIDTH, 2, PANELS)                                                \
    STRIPE(name, target, WIDTH, 3, PANELS)                                                \
    STRIPE(name, target, WIDTH, 4, PANELS)                                                \
    STRIPE(name, target, WIDTH, 5, PANELS)                                                \
    STRIPE(name, target, WIDTH, 6, PANELS)                                                \
    static void name(const cpu_product *p, int64_t first) {                               \
        static stripe *const rest[] = {name##_1, name##_2, name##_3, name##_4, name##_5}; \
        int64_t i = 0;                                                                    \
        for (; i + CPU_STRIPE <= p->m; i += CPU_STRIPE) name##_6(p, first, i);            \
        if (i < p->m) rest[p->m - i - 1](p, first, i);                                    \
    }

typedef void stripe(const cpu_product *p, int64_t first, int64_t i);
/* Columns from the place on, of so many panels. */
typedef void columns(const cpu_product *p, int64_t first);

/* of[n - 1]: of n panels; most: the most that there are. */
typedef struct kernel {
    columns *of[4];
    int64_t most;
} kernel;

#if defined(__aarch64__)
COLUMNS(base_1, , 4, 1)
#else
/* Two rows are what the registers have room for. */
STRIPE(base_1, , 4, 1, 1)
STRIPE(base_1, , 4, 2, 1)
static void base_1(const cpu_product *p, int64_t first) {
    int64_t i = 0;
    for (; i + 2 <= p->m; i += 2) base_1_2(p, first, i);
    if (i < p->m) base_1_1(p, first, i);
}
#endif
static const kernel base = {{base_1}, 1};

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx2,fma")))

COLUMNS(avx2_1, AVX2, 8, 1)
static const kernel avx2 = {{avx2_1}, 1};

COLUMNS(avx512_1, AVX512, 16, 1)
COLUMNS(avx512_2, AVX512, 16, 2)
COLUMNS(avx512_3, AVX512, 16, 3)
COLUMNS(avx512_4, AVX512, 16, 4)
static const kernel avx512 = {{avx512_1, avx512_2, avx512_3, avx512_4}, 4};

/* oneDNN's choice, which ONEDNN_MAX_CPU_ISA can lower. */
static const kernel *best(void) {
    if (cpu_block() == 16) return &avx512;
    return cpu_block() == 8 && __builtin_cpu_supports("fma") ? &avx2 : &base;
}
#else
static const kernel *best(void) { return &base; }
#endif

void cpu_multiply(const cpu_product *p) {
    const kernel *with = best();
    const int64_t n_panels = (p->n + CPU_PANEL - 1) / CPU_PANEL;
    for (int64_t done = 0; done < n_panels;) {
        const int64_t left = n_panels - done;
        int64_t wide = left < with->most ? left : with->most;
        if (left == with->most + 1 && wide > 1)
            wide--; /* not one alone at the end, whose sums wait for each other */
        with->of[wide - 1](p, done * CPU_PANEL);
        done += wide;
    }
}
