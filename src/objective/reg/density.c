/* Density adaptivity: each class keeps a density of its own, whose target is learned.
 *
 *   D_c = 1/n_c sum_{i in c} |x_i - mu_c|^2, over the C classes present in the batch; a_c learned
 *   L = 1/C sum_c (D_c - a_c)^2 - 1/C sum_c a_c                                        (Eq. 6)
 *     + 1/C^2 sum_{c,e} (r_e a_c - r_c a_e)^2,  r_c = (D0_c)^eta                        (Eq. 8)
 *
 *   dL/dx_i = 4 (D_c - a_c) (x_i - mu_c) / (C n_c)
 *   dL/da_c = -2 (D_c - a_c) / C - 1/C + 4/C^2 sum_e r_e (r_e a_c - r_c a_e)
 *
 * D0 is the density of pooled features, "before embedding"; the paper does not say of which network. With `d0: start`
 * they are those of the starting network over all training images, with `batch` those of the present batch, as
 * constants. d0_unit normalises the features to length 1 first. State: density.alpha [classes], and density.d0
 * [classes] for start. While d0 is 0 the second line is 0, as with `correlation: false`.
 *
 * Eq. 8 grows with r^2, and r with the features of the starting network, which may be far from 1. Then only the
 * second line moves the targets, and it holds them where they began. relative: r_c is divided by its mean over the C
 * classes, so that only proportions count.
 * Source: DML-DA, Li et al., IEEE TMM 2019: eta 0.5, targets start at 0.5, weight 10. */
#include "objective/reg/density.h"

#include "base/alloc.h"
#include "objective/reg/groups.h"
#include "objective/reg/reg.h"

static const char *const sources[] = {"start", "batch", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(ki_density_settings, eta, 0.5, 0, 10, "power of the original densities",
                   "DML-DA Sec. IV-A"),
    KI_OPTION_BOOL(ki_density_settings, correlation, 1, "keep the classes' densities in proportion (Eq. 8)",
                   "DML-DA Fig. 3"),
    KI_OPTION_BOOL(ki_density_settings, relative, 0,
                   "original densities over their mean, whatever the features' scale", "DML-DA names none"),
    KI_OPTION_REAL(ki_density_settings, alpha, 0.5, -1e6, 1e6, "targets at the start; they are learned",
                   "DML-DA Sec. IV-A"),
    KI_OPTION_REAL(ki_density_settings, lr_multiplier, 1, 0, 1e6,
                   "learning rate of the targets over the network's", "DML-DA names none"),
    KI_OPTION_LATER(CHOICE, ki_density_settings, d0, KI_DENSITY_START, sources,
                    "original densities: of the starting network, or of the batch at hand",
                    "DML-DA Sec. III-D leaves it open"),
    KI_OPTION_LATER(BOOL, ki_density_settings, d0_unit, 0, "original densities of features of length 1",
                    "DML-DA leaves it open"),
    KI_OPTION_END};

static kith_status taps_of(const void *settings, unsigned *ret_taps, kith_error *err) {
    const ki_density_settings *o = settings;
    (void)err;
    *ret_taps = KI_TAP_BIT(KI_TAP_EMBEDDING);
    if (o->d0 == KI_DENSITY_BATCH && o->correlation) *ret_taps |= KI_TAP_BIT(KI_TAP_POOLED);
    return KITH_OK;
}

static bool starts(const void *settings) {
    return ((const ki_density_settings *)settings)->d0 == KI_DENSITY_START;
}

static int64_t saved_classes(const void *settings, const ki_saved *saved) {
    ki_shape shape;
    (void)settings;
    if (ki_saved_shape(saved, "density.alpha", 1, &shape) || ki_saved_shape(saved, "density.d0", 1, &shape))
        return shape.dim[0];
    return 0;
}

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_density_settings *o = settings;
    if (!sizes->n_classes) return ki_fail_size(err, "density", "the number of classes");
    KI_TRY(ki_state_add(list, "density.alpha", KI_SHAPE1(sizes->n_classes), KI_INIT_CONSTANT, o->alpha,
                        o->lr_multiplier, err));
    return ki_state_add(list, "density.d0", KI_SHAPE1(sizes->n_classes), KI_INIT_CONSTANT, 0, 0, err);
}

/* Densities d [n_classes] of the rows x [n, dim] by their class, 0 for classes without rows; mean [n_classes, dim] and
 * count [n_classes] are working memory. */
static void measure(const ki_real *x, const int32_t *of, int64_t n, int64_t dim, int64_t n_classes, bool unit,
                    double *mean, int64_t *count, double *d) {
    for (int64_t k = 0; k < n_classes * dim; k++) mean[k] = 0;
    for (int64_t c = 0; c < n_classes; c++) count[c] = 0, d[c] = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n; i++) {
            const ki_real *row = x + i * dim;
            double *centre = mean + of[i] * dim, square = 0;
            for (int64_t k = 0; k < dim && unit; k++) square += (double)row[k] * (double)row[k];
            const double scale = unit ? 1 / fmax(sqrt(square), 1e-12) : 1;
            if (pass == 0) count[of[i]]++;
            for (int64_t k = 0; k < dim; k++) {
                const double t = scale * (double)row[k];
                if (pass == 0)
                    centre[k] += t;
                else
                    d[of[i]] += (t - centre[k]) * (t - centre[k]);
            }
        }
        for (int64_t c = 0; c < n_classes; c++) {
            const double share = count[c] ? 1 / (double)count[c] : 0;
            for (int64_t k = 0; k < dim && pass == 0; k++) mean[c * dim + k] *= share;
            if (pass == 1) d[c] *= share;
        }
    }
}

/* Densities of the batch's pooled features, by group. */
static kith_status measure_batch(const ki_reg_in *in, const ki_groups *classes, double **ret,
                                 kith_error *err) {
    const ki_density_settings *o = in->settings;
    const ki_tap_data *pooled = &in->tap[KI_TAP_POOLED];
    const int64_t n = classes->n, dim = pooled->cols;
    double *mean = NULL;
    int64_t *count = NULL;
    KI_TRY(ki_work_take(in->work, (size_t)(n * dim), sizeof *mean, "class means", &mean, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *count, "class sizes", &count, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof **ret, "original densities", ret, err));
    measure(pooled->data, classes->of, in->m, dim, n, o->d0_unit, mean, count, *ret);
    return KITH_OK;
}

/* The second line of the formula: O(C^2) numbers, no vectors. */
static double proportions(const double *r, const double *a, int64_t n, double *by_a) {
    const double share = 1 / ((double)n * (double)n);
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        double pull = 0;
        for (int64_t e = 0; e < n; e++) {
            const double t = r[e] * a[c] - r[c] * a[e];
            sum += t * t;
            pull += r[e] * t;
        }
        by_a[c] += 4 * share * pull;
    }
    return sum * share;
}

/* Divided by their mean, unless that is 0. */
static void make_relative(double *r, int64_t n) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += r[c];
    for (int64_t c = 0; c < n && sum > 0; c++) r[c] *= (double)n / sum;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_density_settings *o = in->settings;
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING];
    const int64_t dim = x->cols;
    ki_groups classes;
    ki_real *mu = NULL, *whole = NULL, *const *diff_param = NULL;
    double *d = NULL, *a = NULL, *r = NULL, *by_a = NULL;
    KI_TRY(ki_groups_find(in->label, in->m, in->work, &classes, err));
    const int64_t n = classes.n;
    KI_TRY(ki_work_reals(in->work, n * dim, "class means", &mu, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *d, "class densities", &d, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *a, "density targets", &a, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *r, "original densities", &r, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *by_a, "target gradients", &by_a, err));
    KI_TRY(ki_reg_take_diff(in, KI_TAP_EMBEDDING, &whole, err));
    KI_TRY(ki_reg_take_params(in, out, &diff_param, err));
    double *now = NULL;
    if (o->d0 == KI_DENSITY_BATCH && o->correlation) KI_TRY(measure_batch(in, &classes, &now, err));
    ki_groups_mean(&classes, x->data, in->m, dim, mu);
    for (int64_t c = 0; c < n; c++) {
        const double d0 = now ? now[c] : (double)in->param[KI_DENSITY_D0]->value[classes.label[c]];
        a[c] = (double)in->param[KI_DENSITY_ALPHA]->value[classes.label[c]];
        r[c] = d0 > 0 ? pow(d0, o->eta) : 0;
        d[c] = 0;
    }
    if (o->relative) make_relative(r, n);
    for (int64_t i = 0; i < in->m; i++) {
        const ki_real *row = x->data + i * dim, *centre = mu + classes.of[i] * dim;
        ki_real *diff = whole + i * dim;
        for (int64_t k = 0; k < dim; k++) diff[k] = row[k] - centre[k];
        d[classes.of[i]] += (double)in->vec->dot(diff, diff, dim) / (double)classes.count[classes.of[i]];
    }
    out->value = 0;
    for (int64_t c = 0; c < n; c++) {
        const double off = d[c] - a[c];
        out->value += (off * off - a[c]) / (double)n;
        by_a[c] = (-2 * off - 1) / (double)n;
    }
    if (o->correlation) out->value += proportions(r, a, n, by_a);
    for (int64_t i = 0; i < in->m; i++) {
        const int32_t c = classes.of[i];
        const ki_real factor = (ki_real)(4 * (d[c] - a[c]) / ((double)n * (double)classes.count[c]));
        ki_real *diff = whole + i * dim;
        for (int64_t k = 0; k < dim; k++) diff[k] *= factor;
    }
    ki_real *diff_alpha = diff_param[KI_DENSITY_ALPHA];
    for (int64_t c = 0; c < n && diff_alpha; c++) diff_alpha[classes.label[c]] += (ki_real)by_a[c];
    ki_reg_add_diff(in, out, KI_TAP_EMBEDDING, whole);
    ki_reg_add_params(in, out, diff_param);
    return KITH_OK;
}

/* d0 from the features of the whole training set. Classes without items get 0. */
static kith_status start(const void *settings, const ki_features *features, ki_state *const *param,
                         kith_error *err) {
    const ki_density_settings *o = settings;
    const int64_t n = features->n, dim = features->dim, n_classes = param[KI_DENSITY_D0]->count;
    const ki_real *x = features->x;
    const int32_t *label = features->label;
    ki_real *d0 = param[KI_DENSITY_D0]->value;
    kith_status status = KITH_OK;
    double *mean = NULL, *d = NULL;
    int64_t *count = NULL;
    size_t n_means = 0;
    if (!ki_mul_size((size_t)n_classes, (size_t)dim, &n_means))
        return ki_fail_memory(err, SIZE_MAX, "class means");
    KI_CHECK(ki_zalloc_or(&mean, n_means, sizeof *mean, "class means", err));
    KI_CHECK(ki_zalloc_or(&d, (size_t)n_classes, sizeof *d, "class densities", err));
    KI_CHECK(ki_zalloc_or(&count, (size_t)n_classes, sizeof *count, "class sizes", err));
    for (int64_t i = 0; i < n; i++) {
        if (label[i] < 0 || label[i] >= n_classes) {
            status = ki_fail(err, KITH_EINVAL, "label[%lld] is %d; wanted a class id from 0 to %lld",
                             (long long)i, label[i], (long long)(n_classes - 1));
            goto done;
        }
    }
    measure(x, label, n, dim, n_classes, o->d0_unit, mean, count, d);
    for (int64_t c = 0; c < n_classes; c++) d0[c] = (ki_real)d[c];
done:
    ki_free(mean);
    ki_free(d);
    ki_free(count);
    return status;
}

const ki_reg ki_reg_density = {
    .method = {.name = "density",
               .summary = "each class at a learned density of its own",
               .source = "DML-DA, Li et al., IEEE TMM 2019",
               .options = options,
               .settings_bytes = sizeof(ki_density_settings)},
    .taps_of = taps_of,
    .normalize = true,
    .saved_classes = saved_classes,
    .params = params,
    .starts_from = KI_TAP_POOLED,
    .starts = starts,
    .start = start,
    .eval = eval,
};
