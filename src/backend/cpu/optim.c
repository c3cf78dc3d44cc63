/* The update rules of device/backend.h, one pass over memory for all runs together, and sums of squares
 * over fixed blocks. Adam's bias correction is folded into the step size and the denominator:
 * value -= rate / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps). */
#include <math.h>

#include "backend/cpu/cpu.h"

/* A run's numbers, in the form the loops need. 1 - beta is computed in double: 1 - 0.999f has a relative
 * error of 5e-5. */
typedef struct rule {
    float b1, c1, b2, c2; /* beta1, 1 - beta1, beta2, 1 - beta2 */
    float scale, decay, keep, eps;
    float rate; /* adam: with 1 / (1 - b1^t) */
    float root; /* adam: 1 / sqrt(1 - b2^t) */
} rule;

CPU_WIDE static void adam(float *w, const float *d, float *m, float *v, int64_t n, const rule *r) {
    const float b1 = r->b1, c1 = r->c1, b2 = r->b2, c2 = r->c2, scale = r->scale, decay = r->decay,
                keep = r->keep, eps = r->eps, rate = r->rate, root = r->root;
    for (int64_t i = 0; i < n; i++) {
        const float value = keep * w[i], g = scale * d[i] + decay * value;
        const float m1 = b1 * m[i] + c1 * g, v1 = b2 * v[i] + c2 * g * g;
        m[i] = m1;
        v[i] = v1;
        w[i] = value - rate * m1 / (sqrtf(v1) * root + eps);
    }
}

CPU_WIDE static void sgd(float *w, const float *d, int64_t n, const rule *r) {
    const float scale = r->scale, decay = r->decay, keep = r->keep, rate = r->rate;
    for (int64_t i = 0; i < n; i++) {
        const float value = keep * w[i];
        w[i] = value - rate * (scale * d[i] + decay * value);
    }
}

/* pull is the factor of g: 1 for Nesterov's momentum, else 0; push is the factor of m. */
CPU_WIDE static void sgd_momentum(float *w, const float *d, float *m, int64_t n, const rule *r, float pull,
                                  float push) {
    const float b1 = r->b1, scale = r->scale, decay = r->decay, keep = r->keep, rate = r->rate;
    for (int64_t i = 0; i < n; i++) {
        const float value = keep * w[i], g = scale * d[i] + decay * value, m1 = b1 * m[i] + g;
        m[i] = m1;
        w[i] = value - rate * (pull * g + push * m1);
    }
}

CPU_WIDE static void rmsprop(float *w, const float *d, float *v, int64_t n, const rule *r) {
    const float b2 = r->b2, c2 = r->c2, scale = r->scale, decay = r->decay, keep = r->keep, eps = r->eps,
                rate = r->rate;
    for (int64_t i = 0; i < n; i++) {
        const float value = keep * w[i], g = scale * d[i] + decay * value, v1 = b2 * v[i] + c2 * g * g;
        v[i] = v1;
        w[i] = value - rate * g / (sqrtf(v1) + eps);
    }
}

CPU_WIDE static void rmsprop_momentum(float *w, const float *d, float *m, float *v, int64_t n,
                                      const rule *r) {
    const float b1 = r->b1, b2 = r->b2, c2 = r->c2, scale = r->scale, decay = r->decay, keep = r->keep,
                eps = r->eps, rate = r->rate;
    for (int64_t i = 0; i < n; i++) {
        const float value = keep * w[i], g = scale * d[i] + decay * value, v1 = b2 * v[i] + c2 * g * g;
        const float m1 = b1 * m[i] + g / (sqrtf(v1) + eps);
        v[i] = v1;
        m[i] = m1;
        w[i] = value - rate * m1;
    }
}

/* Values [at, at + n) of a run. */
static void update_part(const ki_optim_step *s, const ki_optim_run *run, double scale, int64_t at,
                        int64_t n) {
    const double t = (double)(s->clock->t - run->start);
    if (t <= 0) return;
    const double rate = s->clock->lr * run->lr;
    rule r = {.b1 = (float)s->beta1,
              .c1 = (float)(1 - s->beta1),
              .b2 = (float)s->beta2,
              .c2 = (float)(1 - s->beta2),
              .scale = (float)scale,
              .decay = (float)run->decay,
              .keep = (float)(1 - rate * run->decoupled),
              .eps = (float)s->eps,
              .rate = (float)rate,
              .root = 1};
    float *w = run->value + at, *m = run->m ? run->m + at : NULL, *v = run->v ? run->v + at : NULL;
    const float *d = run->diff + at;
    switch (s->kind) {
    case KI_OPTIM_ADAM:
        r.rate = (float)(rate / (1 - pow(s->beta1, t)));
        r.root = (float)(1 / sqrt(1 - pow(s->beta2, t)));
        adam(w, d, m, v, n, &r);
        break;
    case KI_OPTIM_SGD:
        if (m)
            sgd_momentum(w, d, m, n, &r, s->nesterov ? 1 : 0, s->nesterov ? r.b1 : 1);
        else
            sgd(w, d, n, &r);
        break;
    case KI_OPTIM_RMSPROP:
        if (m)
            rmsprop_momentum(w, d, m, v, n, &r);
        else
            rmsprop(w, d, v, n, &r);
        break;
    }
}

/* Runs are cut into blocks of this many values, whatever the number of threads: the compiler may round the
 * last few values of a loop differently from the others (it may fuse another product into the sum). */
enum { BLOCK = 8192 };

static int64_t n_blocks_of(const ki_optim_run *run) { return (run->n + BLOCK - 1) / BLOCK; }

typedef struct update {
    const ki_optim_step *step;
    double scale;
} update;

/* Items: blocks of all runs, one run after the other. */
static void update_blocks(void *context, int64_t begin, int64_t end) {
    const update *u = context;
    int64_t first = 0; /* block of the run, among all */
    for (int i = 0; i < u->step->n_runs && first < end; i++) {
        const ki_optim_run *run = &u->step->runs[i];
        const int64_t n = n_blocks_of(run);
        for (int64_t b = begin > first ? begin - first : 0; b < n && first + b < end; b++) {
            const int64_t at = b * BLOCK, left = run->n - at;
            update_part(u->step, run, u->scale, at, left < BLOCK ? left : BLOCK);
        }
        first += n;
    }
}

kith_status cpu_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err) {
    (void)backend, (void)err;
    update u = {.step = step, .scale = ki_optim_scale(step)};
    int64_t n = 0;
    for (int i = 0; i < step->n_runs; i++) n += n_blocks_of(&step->runs[i]);
    ki_parallel_for(n, 1, update_blocks, &u);
    return KITH_OK;
}

/* Sums of squares: each block in LANES sums, blocks added in order. */
enum { LANES = 16, MOST_BLOCKS = 512 };

CPU_WIDE static double block_sum(const float *x, int64_t n) {
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) lane[k] += (double)x[i + k] * (double)x[i + k];
    }
    double sum = 0;
    for (; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

typedef struct blocks {
    const float *x;
    int64_t n;
    double sum[MOST_BLOCKS];
} blocks;

static void sum_blocks(void *context, int64_t begin, int64_t end) {
    blocks *b = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t left = b->n - i * BLOCK;
        b->sum[i] = block_sum(b->x + i * BLOCK, left < BLOCK ? left : BLOCK);
    }
}

kith_status cpu_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                            kith_error *err) {
    (void)backend, (void)err;
    const int64_t most = (int64_t)MOST_BLOCKS * BLOCK;
    for (int r = 0; r < n_runs; r++) {
        double sum = 0;
        for (int64_t at = 0; at < runs[r].n; at += most) {
            blocks b = {.x = runs[r].diff + at, .n = runs[r].n - at < most ? runs[r].n - at : most};
            const int64_t n_blocks = (b.n + BLOCK - 1) / BLOCK;
            ki_parallel_for(n_blocks, 2, sum_blocks, &b);
            for (int64_t i = 0; i < n_blocks; i++) sum += b.sum[i];
        }
        dst[r] = sum;
    }
    return KITH_OK;
}
