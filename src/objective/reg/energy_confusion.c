/* Energy confusion: pulls different classes together, against overfitting to the training classes.
 *
 *   E_IJ = mean_{i in I, j in J} |x_i - x_j|^2 for each unordered pair of classes I != J of the batch
 *   linear: E_IJ     log1p: ln(1 + E_IJ)     reduced over class pairs by `reduction`
 *   log: ln of the mean over ALL different-class pairs (the authors' code)
 *
 * With class means mu and mean squared norms q, E_IJ = q_I + q_J - 2 mu_I . mu_J: O(m d + C^2 d), no
 * m x m matrix. With e_IJ = dL/dE_IJ:
 *
 *   dL/dx_i = (2 / n_I) sum_J e_IJ (x_i - mu_J)
 *
 * Everything is computed relative to the mean of the batch, so that differences keep their digits. pairs > 0:
 * that many random pairs of items of different classes instead, each counted as a class pair.
 *
 * Source: ECAML Eq. 3, 7, 11. The gradient trains the embedding layer only and reads un-normalised
 * embeddings; row_norm_penalty keeps that layer from shrinking. */
#include "objective/reg/energy_confusion.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "objective/gemm.h"
#include "objective/reg/groups.h"
#include "objective/reg/reg.h"

static const char *const forms[] = {"linear", "log1p", "log", NULL};
static const char *const reductions[] = {"sum", "mean", NULL};

static const ki_option options[] = {
    KI_OPTION_CHOICE(ki_energy_confusion_settings, form, KI_ENERGY_LOG1P, forms,
                     "linear: Eq. 7, log1p: Eq. 11, log: of the mean over all pairs",
                     "ECAML; its code uses log"),
    KI_OPTION_CHOICE(ki_energy_confusion_settings, reduction, KI_ENERGY_MEAN, reductions,
                     "over class pairs; log has none", "ECAML Eq. 7 prints a sum"),
    KI_OPTION_INT(ki_energy_confusion_settings, pairs, 0, 0, 1e9,
                  "random different-class pairs drawn instead of all; 0 = all", "ECAML code draws pairs"),
    KI_OPTION_END};

/* The batch's energy: its value and, in e, its derivative by each E_IJ (with the given weight). */
static double log_energy(double mean, double *ret_slope) {
    *ret_slope = mean > KI_LEAST_ENERGY ? 1 / mean : 0;
    return log(mean > KI_LEAST_ENERGY ? mean : KI_LEAST_ENERGY);
}

static kith_status all_pairs(const ki_reg_in *in, const ki_real *x, int64_t dim, double *ret_value,
                             ki_real *diff_x, kith_error *err) {
    const ki_energy_confusion_settings *o = in->settings;
    ki_groups classes;
    ki_real *mu = NULL, *e = NULL, *pull = NULL;
    double *q = NULL;
    KI_TRY(ki_groups_find(in->label, in->m, in->work, &classes, err));
    const int64_t n = classes.n;
    if (n < 2) return KITH_OK;
    KI_TRY(ki_work_reals(in->work, n * dim, "class means", &mu, err));
    KI_TRY(ki_work_reals(in->work, n * dim, "class pulls", &pull, err));
    KI_TRY(ki_work_reals(in->work, n * n, "class energies", &e, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *q, "class norms", &q, err));
    ki_groups_mean(&classes, x, in->m, dim, mu);
    memset(q, 0, (size_t)n * sizeof *q);
    for (int64_t i = 0; i < in->m; i++) {
        const int32_t c = classes.of[i];
        q[c] += (double)in->vec->dot(x + i * dim, x + i * dim, dim) / (double)classes.count[c];
    }
    ki_gemm(false, true, n, n, dim, -2, mu, dim, mu, dim, 0, e, n);
    double total = 0, n_items = 0;
    const double n_pairs = 0.5 * (double)n * (double)(n - 1);
    const double share = o->form == KI_ENERGY_LOG || o->reduction == KI_ENERGY_SUM ? 1 : 1 / n_pairs;
    for (int64_t a = 0; a < n; a++) {
        for (int64_t b = 0; b < n; b++) {
            if (a == b) {
                e[a * n + b] = 0;
                continue;
            }
            const double raw = q[a] + q[b] + (double)e[a * n + b], energy = raw > 0 ? raw : 0;
            const double items = (double)classes.count[a] * (double)classes.count[b];
            if (o->form == KI_ENERGY_LINEAR) {
                total += 0.5 * energy * share;
                e[a * n + b] = (ki_real)share;
            } else if (o->form == KI_ENERGY_LOG1P) {
                total += 0.5 * log1p(energy) * share;
                e[a * n + b] = (ki_real)(share / (1 + energy));
            } else {
                total += 0.5 * items * energy;
                n_items += 0.5 * items;
                e[a * n + b] = (ki_real)items;
            }
        }
    }
    double slope = 1;
    if (o->form == KI_ENERGY_LOG) {
        total = log_energy(total / n_items, &slope);
        slope /= n_items;
    }
    *ret_value = total;
    ki_gemm(false, false, n, dim, n, 1, e, n, mu, dim, 0, pull, dim);
    for (int64_t i = 0; i < in->m; i++) {
        const int64_t c = classes.of[i];
        double sum = 0;
        for (int64_t b = 0; b < n; b++) sum += (double)e[c * n + b];
        const ki_real factor = (ki_real)(2 * slope / (double)classes.count[c]), own = (ki_real)sum;
        ki_real *diff = diff_x + i * dim;
        for (int64_t k = 0; k < dim; k++) diff[k] += factor * (own * x[i * dim + k] - pull[c * dim + k]);
    }
    return KITH_OK;
}

static bool has_two_classes(const ki_reg_in *in) {
    for (int64_t i = 1; i < in->m; i++) {
        if (in->label[i] != in->label[0]) return true;
    }
    return false;
}

/* The k-th random pair: the same for the value and the gradient. */
static void draw_pair(const ki_reg_in *in, ki_rng *rng, int64_t *ret_i, int64_t *ret_j) {
    do {
        *ret_i = ki_rng_below(rng, (uint32_t)in->m);
        *ret_j = ki_rng_below(rng, (uint32_t)in->m);
    } while (in->label[*ret_i] == in->label[*ret_j]);
}

static double random_pairs(const ki_reg_in *in, const ki_real *x, int64_t dim, ki_real *diff_x) {
    const ki_energy_confusion_settings *o = in->settings;
    if (!has_two_classes(in)) return 0;
    const ki_rng start = ki_rng_at(in->seed, KI_RNG_REGULARIZER, (uint32_t)in->step, 0);
    const double share = o->form != KI_ENERGY_LOG && o->reduction == KI_ENERGY_SUM ? 1 : 1 / (double)o->pairs;
    double total = 0, slope = 1;
    /* The log of the mean needs the mean before it has a gradient: two passes over the same draws. */
    for (int pass = 0; pass < 2; pass++) {
        ki_rng rng = start;
        for (int64_t k = 0; k < o->pairs; k++) {
            int64_t i = 0, j = 0;
            draw_pair(in, &rng, &i, &j);
            const ki_real *a = x + i * dim, *b = x + j * dim;
            double energy = 0;
            for (int64_t c = 0; c < dim; c++) energy += (double)(a[c] - b[c]) * (double)(a[c] - b[c]);
            if (pass == 0) {
                total += share * (o->form == KI_ENERGY_LOG1P ? log1p(energy) : energy);
                continue;
            }
            const ki_real factor =
                (ki_real)(2 * share * slope / (o->form == KI_ENERGY_LOG1P ? 1 + energy : 1));
            ki_real *diff_a = diff_x + i * dim, *diff_b = diff_x + j * dim;
            for (int64_t c = 0; c < dim; c++) {
                diff_a[c] += factor * (a[c] - b[c]);
                diff_b[c] -= factor * (a[c] - b[c]);
            }
        }
        if (pass == 0 && o->form == KI_ENERGY_LOG) total = log_energy(total, &slope);
    }
    return total;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_energy_confusion_settings *o = in->settings;
    const int64_t m = in->m, dim = in->tap[KI_TAP_EMBEDDING].cols;
    const ki_real *src = in->tap[KI_TAP_EMBEDDING].data;
    ki_real *x = NULL, *mean = NULL, *diff = NULL;
    KI_TRY(ki_reg_take_diff(in, KI_TAP_EMBEDDING, &diff, err));
    if (o->pairs > 0) {
        out->value = random_pairs(in, src, dim, diff);
        ki_reg_add_diff(in, out, KI_TAP_EMBEDDING, diff);
        return KITH_OK;
    }
    KI_TRY(ki_work_reals(in->work, m * dim, "centred embeddings", &x, err));
    KI_TRY(ki_work_reals(in->work, dim, "the mean embedding", &mean, err));
    memset(mean, 0, (size_t)dim * sizeof *mean);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t k = 0; k < dim; k++) mean[k] += src[i * dim + k] / (ki_real)m;
    }
    for (int64_t i = 0; i < m; i++) {
        for (int64_t k = 0; k < dim; k++) x[i * dim + k] = src[i * dim + k] - mean[k];
    }
    KI_TRY(all_pairs(in, x, dim, &out->value, diff, err));
    ki_reg_add_diff(in, out, KI_TAP_EMBEDDING, diff);
    return KITH_OK;
}

const ki_reg ki_reg_energy_confusion = {
    .method = {.name = "energy_confusion",
               .summary = "draw different classes together (trains the embedding layer only)",
               .source = "ECAML, Chen and Deng, AAAI 2019",
               .options = options,
               .settings_bytes = sizeof(ki_energy_confusion_settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .stops_at_embedding = true,
    .eval = eval,
};
