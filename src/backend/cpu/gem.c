/* The generalised mean: dst = M * s^(1 / p), with M the largest of u = max(src, least), t = u / M and s the mean of t^p. Dividing
 * by M keeps powers of small numbers in float's range. Saved for backward: M, the factor of the source's gradient, and the
 * derivative by p. */
#include "backend/cpu/gem.h"

#include <math.h>

#include "backend/cpu/cpu.h"

static float at_least(float x) { return x > (float)KI_GEM_LEAST ? x : (float)KI_GEM_LEAST; }

/* One channel, its pixels `step` numbers apart. */
static void pool_channel(const cpu_gem *g, const float *src, int64_t step, int64_t at) {
    const double n = (double)g->hw;
    const float p = *g->p;
    float most = 0;
    double sum = 0, slope = 0;
    for (int64_t i = 0; i < g->hw; i++) most = fmaxf(most, at_least(src[i * step]));
    for (int64_t i = 0; i < g->hw; i++) {
        const float ln = logf(at_least(src[i * step]) / most), power = expf(p * ln);
        sum += (double)power;
        slope += (double)(power * ln);
    }
    const double mean = sum / n, ln = log(mean), value = (double)most * exp(ln / (double)p);
    g->dst[at] = (float)value;
    if (!g->saved) return;
    g->saved[3 * at] = most;
    g->saved[3 * at + 1] = (float)(exp(ln / (double)p - ln) / n);
    g->saved[3 * at + 2] = (float)(value * (slope / sum - ln / (double)p) / (double)p);
}

/* Items: images, here and below. */
static void forward_images(void *context, int64_t begin, int64_t end) {
    const cpu_gem *g = context;
    for (int64_t at = begin * g->c; at < end * g->c; at++)
        pool_channel(g, g->src + cpu_native_at(at / g->c, at % g->c, 0, cpu_padded(g->c), g->hw), cpu_block(),
                     at);
}

static void backward_images(void *context, int64_t begin, int64_t end) {
    const cpu_gem *g = context;
    const int64_t padded = cpu_padded(g->c), block = cpu_block();
    const float p = *g->p;
    for (int64_t k = begin * padded; k < end * padded; k++) {
        const int64_t n = k / padded, c = k % padded, first = cpu_native_at(n, c, 0, padded, g->hw);
        const float *saved = g->saved + 3 * (n * g->c + c);
        for (int64_t i = 0; i < g->hw; i++) {
            const int64_t at = first + i * block;
            const bool counts = c < g->c && g->src[at] > (float)KI_GEM_LEAST;
            g->diff_src[at] =
                counts ? g->diff_dst[n * g->c + c] * saved[1] * expf((p - 1) * logf(g->src[at] / saved[0]))
                       : 0;
        }
    }
}

void cpu_gem_forward(const cpu_gem *gem) {
    cpu_gem g = *gem;
    ki_parallel_for(g.mb, 1, forward_images, &g);
}

void cpu_gem_backward(const cpu_gem *gem) {
    cpu_gem g = *gem;
    double sum = 0;
    if (g.diff_src) ki_parallel_for(g.mb, 1, backward_images, &g);
    for (int64_t i = 0; g.diff_p && i < g.mb * g.c; i++)
        sum += (double)g.diff_dst[i] * (double)g.saved[3 * i + 2];
    if (g.diff_p) *g.diff_p += (float)sum;
}
