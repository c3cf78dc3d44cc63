/* The update rules of device/backend.h, value by value in double. Kingma and Ba, "Adam", ICLR 2015;
 * Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019; Polyak's momentum in the
 * form of Sutskever et al., ICML 2013; Tieleman and Hinton, "RMSprop", 2012. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct update {
    const ki_optim_step *step;
    const ki_optim_run *run;
    double scale;      /* on the gradient */
    double rate;       /* clock's rate times the run's */
    double fast, slow; /* adam: 1 - beta1^t, sqrt(1 - beta2^t) */
} update;

static double adam(const update *u, int64_t i, double g) {
    const ki_optim_step *s = u->step;
    const double m = s->beta1 * (double)u->run->m[i] + (1 - s->beta1) * g;
    const double v = s->beta2 * (double)u->run->v[i] + (1 - s->beta2) * g * g;
    u->run->m[i] = (ki_real)m;
    u->run->v[i] = (ki_real)v;
    return m / u->fast / (sqrt(v) / u->slow + s->eps);
}

static double sgd(const update *u, int64_t i, double g) {
    const ki_optim_step *s = u->step;
    if (!u->run->m) return g;
    const double m = s->beta1 * (double)u->run->m[i] + g;
    u->run->m[i] = (ki_real)m;
    return s->nesterov ? g + s->beta1 * m : m;
}

static double rmsprop(const update *u, int64_t i, double g) {
    const ki_optim_step *s = u->step;
    const double v = s->beta2 * (double)u->run->v[i] + (1 - s->beta2) * g * g;
    u->run->v[i] = (ki_real)v;
    g /= sqrt(v) + s->eps;
    if (!u->run->m) return g;
    const double m = s->beta1 * (double)u->run->m[i] + g;
    u->run->m[i] = (ki_real)m;
    return m;
}

static void update_items(void *context, int64_t begin, int64_t end) {
    const update *u = context;
    const ki_optim_run *run = u->run;
    for (int64_t i = begin; i < end; i++) {
        const double value = (double)run->value[i] * (1 - u->rate * run->decoupled);
        const double g = u->scale * (double)run->diff[i] + run->decay * value;
        const double move = u->step->kind == KI_OPTIM_ADAM  ? adam(u, i, g)
                            : u->step->kind == KI_OPTIM_SGD ? sgd(u, i, g)
                                                            : rmsprop(u, i, g);
        run->value[i] = (ki_real)(value - u->rate * move);
    }
}

kith_status ki_ref_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err) {
    (void)backend, (void)err;
    const double scale = ki_optim_scale(step);
    for (int i = 0; i < step->n_runs; i++) {
        const ki_optim_run *run = &step->runs[i];
        const double t = (double)(step->clock->t - run->start);
        if (t <= 0) continue;
        update u = {.step = step,
                    .run = run,
                    .scale = scale,
                    .rate = step->clock->lr * run->lr,
                    .fast = 1 - pow(step->beta1, t),
                    .slow = sqrt(1 - pow(step->beta2, t))};
        ki_parallel_for(run->n, ki_ref_grain(8), update_items, &u);
    }
    return KITH_OK;
}

kith_status ki_ref_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                               kith_error *err) {
    (void)backend, (void)err;
    for (int r = 0; r < n_runs; r++) {
        double sum = 0;
        for (int64_t i = 0; i < runs[r].n; i++) sum += (double)runs[r].diff[i] * (double)runs[r].diff[i];
        dst[r] = sum;
    }
    return KITH_OK;
}
