/* Adam over one run of parameters, one pass over memory. Bias correction is folded into the step
 * size and the denominator as PyTorch does: value -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps). */
#include <math.h>

#include "backend/cpu/cpu.h"

typedef struct adam_args {
    const ki_adam_step *s;
    float rate, root, keep; /* lr / (1 - b1^t), 1 / sqrt(1 - b2^t), 1 - lr * decoupled */
} adam_args;

/* c1 and c2 are 1 - b1 and 1 - b2, taken in double: 1 - 0.999f is off by 5e-5 of its value. */
CPU_WIDE static void adam_chunk(float *w, const float *g, float *m, float *v, int64_t n, float b1, float c1,
                                float b2, float c2, float decay, float rate, float root, float eps,
                                float keep) {
    for (int64_t i = 0; i < n; i++) {
        const float grad = g[i] + decay * w[i];
        const float m1 = b1 * m[i] + c1 * grad, v1 = b2 * v[i] + c2 * grad * grad;
        m[i] = m1;
        v[i] = v1;
        w[i] = keep * w[i] - rate * m1 / (sqrtf(v1) * root + eps);
    }
}

static void adam_range(void *context, int64_t begin, int64_t end) {
    const adam_args *a = context;
    const ki_adam_step *s = a->s;
    adam_chunk(s->value + begin, s->diff + begin, s->m + begin, s->v + begin, end - begin, (float)s->beta1,
               (float)(1 - s->beta1), (float)s->beta2, (float)(1 - s->beta2), (float)s->decay, a->rate,
               a->root, (float)s->eps, a->keep);
}

kith_status cpu_adam(ki_backend *backend, const ki_adam_step *step, kith_error *err) {
    (void)backend, (void)err;
    adam_args a = {.s = step,
                   .rate = (float)(step->lr / (1 - pow(step->beta1, (double)step->t))),
                   .root = (float)(1 / sqrt(1 - pow(step->beta2, (double)step->t))),
                   .keep = (float)(1 - step->lr * step->decoupled)};
    ki_parallel_for(step->n, 4096, adam_range, &a);
    return KITH_OK;
}
