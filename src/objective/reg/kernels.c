/* The kernel matrix of each layer, their product, and back. Memory: two [m, m] for each layer. */
#include "objective/reg/kernels.h"

#include <string.h>

#include "base/parallel.h"
#include "objective/reg/over_pairs.h"

#define MOST_KERNEL 1e30
#define MOST_EXPONENT ((ki_real)69.07) /* ln 1e30 */

/* One layer of the batch: kernel and its derivative by the pair's s. */
typedef struct layer {
    const ki_layer_kernel *kernel;
    ki_pairs pairs;
    ki_real bandwidth;
    ki_real *k, *slope; /* [m, ld] */
} layer;

/* The half above the diagonal, and its mirror image. */
static void l1_rows(void *context, int64_t begin, int64_t end) {
    const ki_pairs *p = context;
    for (int64_t turn = begin; turn < end; turn++) {
        /* Long and short rows in turn, so that runs of equal length are equal work. */
        const int64_t i = turn % 2 ? p->m - 1 - turn / 2 : turn / 2;
        p->s[i * p->ld + i] = 0;
        for (int64_t j = i + 1; j < p->m; j++) {
            const ki_real distance = p->vec->l1(p->x + i * p->dim, p->x + j * p->dim, p->dim);
            p->s[i * p->ld + j] = p->s[j * p->ld + i] = distance;
        }
    }
}

static double row_sum(const void *context, const ki_pairs *pairs, const ki_row *row) {
    double sum = 0;
    (void)context, (void)pairs;
    for (int64_t j = 0; j < row->n; j++) sum += (double)row->s[j];
    return sum;
}

/* k and slope of a row of distances: the mixture. */
static void mixture_row(const layer *l, const ki_row *row, ki_real *k, ki_real *slope) {
    const int64_t n = l->kernel->n;
    ki_real *e = row->scratch;
    memset(k, 0, (size_t)row->n * sizeof *k);
    memset(slope, 0, (size_t)row->n * sizeof *slope);
    if (l->bandwidth <= 0) { /* all points coincide */
        for (int64_t j = 0; j < row->n; j++) k[j] = 1;
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        const ki_real a = -1 / (l->bandwidth * (ki_real)ldexp(1, (int)(t - n / 2)));
        l->pairs.vec->exp_all(row->s, a, 0, e, row->n);
        for (int64_t j = 0; j < row->n; j++) {
            k[j] += e[j] / (ki_real)n;
            slope[j] += a * e[j] / (ki_real)n;
        }
    }
}

static void poly_row(const layer *l, const ki_row *row, ki_real *k, ki_real *slope) {
    for (int64_t j = 0; j < row->n; j++) {
        const double base = (double)row->s[j] / (double)l->bandwidth + 1;
        double power = 1;
        for (int64_t t = 1; t < l->kernel->degree; t++) power *= base;
        const double value = power * base;
        const bool is_bounded = fabs(value) < MOST_KERNEL;
        k[j] = (ki_real)(is_bounded ? value : value > 0 ? MOST_KERNEL : -MOST_KERNEL);
        slope[j] = (ki_real)(is_bounded ? (double)l->kernel->degree * power / (double)l->bandwidth : 0);
    }
}

static void mgf_row(const layer *l, const ki_row *row, ki_real *k, ki_real *slope) {
    ki_real *z = row->scratch;
    const ki_real most = MOST_EXPONENT * l->bandwidth;
    for (int64_t j = 0; j < row->n; j++) z[j] = row->s[j] < most ? row->s[j] : most;
    l->pairs.vec->exp_all(z, 1 / l->bandwidth, 0, k, row->n);
    for (int64_t j = 0; j < row->n; j++) slope[j] = row->s[j] < most ? k[j] / l->bandwidth : 0;
}

static double kernel_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const layer *l = context;
    ki_real *k = l->k + row->i * pairs->ld, *slope = l->slope + row->i * pairs->ld;
    switch (l->kernel->kind) {
    case KI_LAYER_POLY: poly_row(l, row, k, slope); break;
    case KI_LAYER_MGF: mgf_row(l, row, k, slope); break;
    default: mixture_row(l, row, k, slope);
    }
    return 0;
}

static kith_status layer_make(layer *l, const ki_reg_in *in, ki_tap tap, kith_error *err) {
    ki_pairs *p = &l->pairs;
    KI_TRY(ki_reg_pairs_build(in, tap, p, err));
    if (l->kernel->kind == KI_LAYER_GAUSSIAN) ki_pairs_measure(p, KI_SQEUCLIDEAN);
    if (l->kernel->kind == KI_LAYER_LAPLACE) ki_parallel_for(p->m, 4, l1_rows, p);
    KI_TRY(ki_work_reals(in->work, p->m * p->ld, "a kernel", &l->k, err));
    KI_TRY(ki_work_reals(in->work, p->m * p->ld, "a kernel's slope", &l->slope, err));
    l->bandwidth = (ki_real)l->kernel->bandwidth;
    if (l->kernel->kind <= KI_LAYER_LAPLACE && l->kernel->bandwidth == 0 && p->m > 1) {
        double sum = 0;
        KI_TRY(ki_pairs_rows(p, NULL, row_sum, NULL, NULL, &sum, err));
        l->bandwidth = (ki_real)(sum / ((double)p->m * (double)(p->m - 1)));
    }
    return ki_pairs_rows(p, NULL, kernel_row, l, NULL, NULL, err);
}

typedef struct product {
    layer *l;
    int n;
    double different;
    const double *same;
} product;

static double bounded(double v) {
    return v < -MOST_KERNEL ? -MOST_KERNEL : v > MOST_KERNEL ? MOST_KERNEL : v;
}

/* The row's share of the value; every layer's slope becomes dL/ds of that layer. */
static double product_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const product *p = context;
    double sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        const int64_t at = row->i * pairs->ld + j;
        const double c = row->pair[j] == KI_PAIR_NEGATIVE ? p->different : p->same ? p->same[row->i] : 0;
        double whole = c;
        for (int a = 0; a < p->n; a++) {
            double others = c;
            for (int b = 0; b < p->n; b++) others *= b == a ? 1 : (double)p->l[b].k[at];
            p->l[a].slope[at] = (ki_real)bounded(others * (double)p->l[a].slope[at]);
            whole *= (double)p->l[a].k[at];
        }
        sum += bounded(whole);
    }
    return sum;
}

typedef struct l1_job {
    const ki_pairs *pairs;
    const ki_real *g;
    ki_real *diff;
} l1_job;

static void l1_backward_rows(void *context, int64_t begin, int64_t end) {
    const l1_job *job = context;
    const ki_pairs *p = job->pairs;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const ki_real h = job->g[i * p->ld + j] + job->g[j * p->ld + i];
            if (h != 0)
                p->vec->l1_backward(p->x + i * p->dim, p->x + j * p->dim, h, job->diff + i * p->dim, p->dim);
        }
    }
}

kith_status ki_layers_eval(const ki_layers *layers, const ki_reg_in *in, double different, const double *same,
                           ki_reg_out *out, kith_error *err) {
    layer l[KI_MOST_LAYERS];
    memset(l, 0, sizeof l);
    for (int i = 0; i < layers->n; i++) {
        l[i].kernel = &layers->kernel[i];
        KI_TRY(layer_make(&l[i], in, layers->tap[i], err));
    }
    const product p = {.l = l, .n = layers->n, .different = different, .same = same};
    KI_TRY(ki_pairs_rows(&l[0].pairs, NULL, product_row, &p, NULL, &out->value, err));
    for (int i = 0; i < layers->n; i++) {
        const ki_tap tap = layers->tap[i];
        if (l[i].kernel->kind == KI_LAYER_LAPLACE) {
            l1_job job = {.pairs = &l[i].pairs, .g = l[i].slope};
            KI_TRY(ki_reg_take_diff(in, tap, &job.diff, err));
            ki_parallel_for(in->m, 4, l1_backward_rows, &job);
            ki_reg_add_diff(in, out, tap, job.diff);
        } else {
            KI_TRY(ki_reg_pairs_backward(in, out, &l[i].pairs, l[i].slope, 1, tap, err));
        }
    }
    return KITH_OK;
}
