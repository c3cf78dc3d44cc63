/* SoftTriple: several centers for each class, softly chosen.
 *
 *   q_ck = softmax over the centers k of class c of s_ick / gamma,  S_ic = sum_k q_ck s_ick
 *   L = mean_i -ln( e^(la (S_iy - margin)) / (e^(la (S_iy - margin)) + sum_{c != y} e^(la S_ic)) )
 *     + tau / (C K (K - 1)) sum_c sum_{k < l} sqrt(2 + 1e-5 - 2 w_ck . w_cl)
 *   dS_ic/ds_ick = q_ck (1 + (s_ick - S_ic) / gamma);  d sqrt(t)/dw_ck = -w_cl / sqrt(t)
 *
 * The second term pulls the centers of a class together, so that their number is learned; the 1e-5 is the
 * authors'. Only kept centers count; an item none of whose own centers is kept contributes 0.
 * Source: Qian et al., SoftTriple Loss, ICCV 2019, Eq. 6 to 9, and its code: la 20, gamma 0.1, tau 0.2, margin
 * 0.01, 10 centers (CUB, Cars; 2 for SOP), learned at x100. */
#include "objective/proxy/softtriple.h"

#include "base/parallel.h"
#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_INT(ki_softtriple_settings, centers, 10, 1, 1000, "learned vectors for each class",
                  "Qian et al., Sec. 4: 10, SOP 2"),
    KI_OPTION_REAL(ki_softtriple_settings, la, 20, 1e-3, 1e4, "factor on the similarities",
                   "Qian et al., Sec. 4"),
    KI_OPTION_REAL(ki_softtriple_settings, gamma, 0.1, 1e-4, 1e3, "softness of the choice of a center",
                   "Qian et al., Sec. 4"),
    KI_OPTION_REAL(ki_softtriple_settings, tau, 0.2, 0, 1e6, "weight that draws centers of a class together",
                   "Qian et al., Sec. 4"),
    KI_OPTION_REAL(ki_softtriple_settings, margin, 0.01, -2, 2, "taken off the own class's similarity",
                   "Qian et al., Sec. 4"),
    KI_OPTION_REAL(ki_softtriple_settings, lr_multiplier, 100, 0, 1e6,
                   "learning rate of the centers over the network's",
                   "Qian et al.'s code: 0.01 against 0.0001"),
    KI_PROXY_INIT_OPTION(ki_softtriple_settings),
    KI_PROXY_SAMPLE_OPTION(ki_softtriple_settings),
    KI_OPTION_END};

static int64_t n_centers(const void *settings) { return ((const ki_softtriple_settings *)settings)->centers; }

static int64_t saved_classes(const void *settings, const ki_saved *saved) {
    return ki_proxies_saved(saved, n_centers(settings));
}

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_softtriple_settings *o = settings;
    return ki_proxies_add(list, "softtriple", sizes, o->centers, o->init, o->lr_multiplier, err);
}

/* t = (s - most of the class), for the exponentials; -KI_REAL_MAX for a class without kept centers. */
static void shift_by_class(const ki_row *row, int64_t k_all, ki_real *t, ki_real *most) {
    const int64_t n_classes = row->n / k_all;
    for (int64_t c = 0; c < n_classes; c++) {
        const ki_real *s = row->s + c * k_all;
        const uint8_t *pair = row->pair + c * k_all;
        ki_real high = -KI_REAL_MAX;
        for (int64_t k = 0; k < k_all; k++) high = pair[k] != KI_PAIR_NONE && s[k] > high ? s[k] : high;
        for (int64_t k = 0; k < k_all; k++) t[c * k_all + k] = pair[k] != KI_PAIR_NONE ? s[k] - high : 0;
        most[c] = high;
    }
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_softtriple_settings *o = context;
    const int64_t k_all = o->centers, n_classes = row->n / k_all, y = pairs->row_label[row->i];
    const ki_real la = (ki_real)o->la, gamma = (ki_real)o->gamma;
    ki_real *t = row->scratch, *q = t + pairs->ld, *soft = q + pairs->ld, *e = soft + pairs->ld;
    shift_by_class(row, k_all, t, soft);
    if (soft[y] == -KI_REAL_MAX) return 0;
    pairs->vec->exp_all(t, 1 / gamma, 0, q, row->n);
    ki_real most = -KI_REAL_MAX;
    for (int64_t c = 0; c < n_classes; c++) {
        if (soft[c] == -KI_REAL_MAX) continue;
        const uint8_t *pair = row->pair + c * k_all;
        ki_real sum = 0, mean = 0;
        for (int64_t k = c * k_all; k < (c + 1) * k_all; k++) {
            if (pair[k - c * k_all] == KI_PAIR_NONE) q[k] = 0;
            sum += q[k];
            mean += q[k] * t[k];
        }
        for (int64_t k = c * k_all; k < (c + 1) * k_all; k++) q[k] /= sum;
        soft[c] += mean / sum - (c == y ? (ki_real)o->margin : 0);
        most = soft[c] > most ? soft[c] : most;
    }
    /* A class without centers keeps -KI_REAL_MAX and its exponential is 0. */
    pairs->vec->exp_all(soft, la, most, e, n_classes);
    ki_real others = 0;
    for (int64_t c = 0; c < n_classes; c++) {
        if (soft[c] == -KI_REAL_MAX) e[c] = 0;
        if (c != y) others += e[c];
    }
    const ki_real factor = la / ((others + e[y]) * (ki_real)pairs->m);
    for (int64_t c = 0; c < n_classes; c++) {
        const ki_real by_soft = c == y ? -factor * others : factor * e[c];
        const ki_real own = soft[c] + (c == y ? (ki_real)o->margin : 0);
        for (int64_t k = c * k_all; k < (c + 1) * k_all; k++) {
            if (row->pair[k] != KI_PAIR_NONE) row->g[k] = by_soft * q[k] * (1 + (row->s[k] - own) / gamma);
        }
    }
    return (double)(la * (most - soft[y])) + log1p((double)others + ((double)e[y] - 1));
}

typedef struct job {
    const ki_loss_in *in;
    ki_real *diff;
    double *value, weight;
} job;

static void draw_together(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_pairs *p = j->in->pairs;
    const int64_t k_all = n_centers(j->in->settings), dim = p->dim;
    for (int64_t c = begin; c < end; c++) {
        j->value[c] = 0;
        for (int64_t k = c * k_all; k < (c + 1) * k_all; k++) {
            for (int64_t l = k + 1; l < (c + 1) * k_all; l++) {
                const ki_real *a = j->in->proxies + k * dim, *b = j->in->proxies + l * dim;
                const double raw = 2 - 2 * (double)p->vec->dot(a, b, dim);
                const double distance = sqrt((raw > 0 ? raw : 0) + KI_SOFTTRIPLE_EPS);
                const ki_real pull = (ki_real)(raw > 0 ? -j->weight / distance : 0);
                j->value[c] += j->weight * distance;
                for (int64_t d = 0; d < dim; d++) {
                    j->diff[k * dim + d] += pull * b[d];
                    j->diff[l * dim + d] += pull * a[d];
                }
            }
        }
    }
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_softtriple_settings *o = in->settings;
    const ki_pairs *p = in->pairs;
    const int64_t n_classes = p->n / o->centers;
    KI_TRY(ki_pairs_rows(p, out->g, row_terms, o, NULL, &out->value, err));
    out->value /= (double)p->m;
    if (o->centers < 2 || o->tau == 0) return KITH_OK;
    const double n_pairs = (double)n_classes * (double)o->centers * (double)(o->centers - 1);
    job j = {.in = in, .diff = out->diff_proxies, .weight = o->tau / n_pairs};
    KI_TRY(ki_work_take(p->work, (size_t)n_classes, sizeof *j.value, "class values", &j.value, err));
    ki_parallel_for(n_classes, 1, draw_together, &j);
    for (int64_t c = 0; c < n_classes; c++) out->value += j.value[c];
    return KITH_OK;
}

const ki_loss ki_loss_softtriple = {
    .method = {.name = "softtriple",
               .summary = "cross entropy over classes of several learned centers each",
               .source = "Qian et al., SoftTriple Loss, ICCV 2019",
               .options = options,
               .settings_bytes = sizeof(ki_softtriple_settings)},
    .is_proxy = true,
    .n_centers = n_centers,
    .params = params,
    .saved_classes = saved_classes,
    .eval = eval,
};
