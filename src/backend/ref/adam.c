/* Adam (Kingma and Ba, 2015) in the form PyTorch gives it, AdamW's decay (Loshchilov and Hutter,
 * 2019) beside the L2 one:
 *   value *= 1 - lr * decoupled;  g = diff + decay * value
 *   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *   value -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) */
#include "backend/ref/ref.h"
#include "core/parallel.h"

typedef struct adam {
    const ki_adam_step *step;
    double rate, root; /* lr / (1 - beta1^t), sqrt(1 - beta2^t) */
} adam;

static void adam_items(void *context, int64_t begin, int64_t end) {
    const adam *a = context;
    const ki_adam_step *s = a->step;
    for (int64_t i = begin; i < end; i++) {
        const double value = (double)s->value[i] * (1 - s->lr * s->decoupled);
        const double g = (double)s->diff[i] + s->decay * value;
        const double m = s->beta1 * (double)s->m[i] + (1 - s->beta1) * g;
        const double v = s->beta2 * (double)s->v[i] + (1 - s->beta2) * g * g;
        s->m[i] = (ki_real)m;
        s->v[i] = (ki_real)v;
        s->value[i] = (ki_real)(value - a->rate * m / (sqrt(v) / a->root + s->eps));
    }
}

kith_status ki_ref_adam(ki_backend *backend, const ki_adam_step *step, kith_error *err) {
    (void)backend, (void)err;
    adam a = {
        .step = step,
        .rate = step->lr / (1 - pow(step->beta1, (double)step->t)),
        .root = sqrt(1 - pow(step->beta2, (double)step->t)),
    };
    ki_parallel_for(step->n, ki_ref_grain(8), adam_items, &a);
    return KITH_OK;
}
