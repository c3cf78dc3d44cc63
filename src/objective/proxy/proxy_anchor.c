/* Proxy-Anchor: every proxy is an anchor that weighs the whole batch at once.
 *
 *   L = 1/|P+| sum_{p in P+} ln(1 + sum_{x in X_p} e^(-alpha (s_xp - delta)))
 *     + 1/|P|  sum_p         ln(1 + sum_{x not in X_p} e^(alpha (s_xp + delta)))
 *
 * P+ are the proxies with a (kept) item of their class in the batch, P all of them. With e the summed
 * exponential of an entry and Z = 1 + the sum of its column: dL/ds = -alpha e / (Z |P+|) for positives,
 * alpha e / (Z |P|) for negatives.
 *
 * The sums run along the columns of the pair matrix, so it is transposed once and read by rows.
 * Source: Kim et al., Proxy Anchor Loss, CVPR 2020, Eq. 4: alpha 32, delta 0.1, proxies learned at x100. */
#include "objective/proxy/proxy_anchor.h"

#include <string.h>

#include "base/parallel.h"
#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_proxy_anchor_settings, alpha, 32, 1e-3, 1e4, "how hard the exponentials weigh",
                   "Kim et al., Sec. 4.2"),
    KI_OPTION_REAL(ki_proxy_anchor_settings, delta, 0.1, -2, 2, "margin", "Kim et al., Sec. 4.2"),
    KI_OPTION_REAL(ki_proxy_anchor_settings, lr_multiplier, 100, 0, 1e6,
                   "learning rate of the proxies over the network's", "Kim et al.'s code: 100"),
    KI_PROXY_INIT_OPTION(ki_proxy_anchor_settings),
    KI_PROXY_SAMPLE_OPTION(ki_proxy_anchor_settings),
    KI_OPTION_END};

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_proxy_anchor_settings *o = settings;
    return ki_proxies_add(list, "proxy_anchor", sizes, 1, o->init, o->lr_multiplier, err);
}

enum { BLOCK = 16 };

typedef struct job {
    const ki_pairs *pairs;
    const ki_proxy_anchor_settings *o;
    ki_real pos_weight, neg_weight; /* 1/|P+|, 1/|P| */
    ki_real *s, *g;                 /* transposed: [n, m] */
    uint8_t *pair;
    ki_real *dst; /* g as the view has it, [m, ld] */
    double *value;
} job;

/* ln(1 + sum over the kind of e^(a (s - c))); g receives weight * its derivative. */
static double column_term(const job *j, int64_t column, int kind, ki_real a, ki_real c, ki_real weight) {
    const ki_vec *vec = j->pairs->vec;
    const int64_t m = j->pairs->m, at = column * m;
    const ki_real far =
        a > 0 ? vec->max(j->s + at, j->pair + at, kind, m) : vec->min(j->s + at, j->pair + at, kind, m);
    if (ki_fabs(far) == KI_REAL_MAX) return 0; /* none of the kind */
    const ki_real most = a * (far - c) > 0 ? a * (far - c) : 0;
    const ki_real sum = vec->exp(j->s + at, j->pair + at, kind, a, c + most / a, j->g + at, m);
    const ki_real rest = ki_exp(-most);
    vec->scale(j->pair + at, kind, weight * a / (rest + sum), j->g + at, m);
    return (double)weight * ((double)most + log1p((double)sum + ((double)rest - 1)));
}

static void turn_and_sum(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_pairs *p = j->pairs;
    const ki_real alpha = (ki_real)j->o->alpha, delta = (ki_real)j->o->delta;
    for (int64_t block = begin; block < end; block++) {
        const int64_t c_0 = block * BLOCK, c_1 = c_0 + BLOCK < p->n ? c_0 + BLOCK : p->n;
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t c = c_0; c < c_1; c++) {
                j->s[c * p->m + i] = p->s[i * p->ld + c];
                j->pair[c * p->m + i] = p->pair[i * p->ld + c];
            }
        }
        memset(j->g + c_0 * p->m, 0, (size_t)((c_1 - c_0) * p->m) * sizeof *j->g);
        for (int64_t c = c_0; c < c_1; c++)
            j->value[c] = column_term(j, c, KI_PAIR_POSITIVE, -alpha, delta, j->pos_weight) +
                          column_term(j, c, KI_PAIR_NEGATIVE, alpha, -delta, j->neg_weight);
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t c = c_0; c < c_1; c++) j->dst[i * p->ld + c] = j->g[c * p->m + i];
        }
    }
}

/* Proxies with a kept item of their own class. */
static kith_status count_present(const ki_pairs *p, int64_t *ret_n, kith_error *err) {
    uint8_t *is_present = NULL;
    KI_TRY(ki_work_take(p->work, (size_t)p->n, 1, "classes present", &is_present, err));
    memset(is_present, 0, (size_t)p->n);
    for (int64_t i = 0; i < p->m; i++)
        is_present[p->row_label[i]] |= p->pair[i * p->ld + p->row_label[i]] == KI_PAIR_POSITIVE;
    *ret_n = 0;
    for (int64_t c = 0; c < p->n; c++) *ret_n += is_present[c];
    return KITH_OK;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *p = in->pairs;
    int64_t n_present = 0;
    job j = {.pairs = p, .o = in->settings, .dst = out->g, .neg_weight = 1 / (ki_real)p->n};
    KI_TRY(count_present(p, &n_present, err));
    KI_TRY(ki_work_reals(p->work, p->n * p->m, "turned pairs", &j.s, err));
    KI_TRY(ki_work_reals(p->work, p->n * p->m, "turned gradients", &j.g, err));
    KI_TRY(ki_work_take(p->work, (size_t)(p->n * p->m), 1, "turned pairs", &j.pair, err));
    KI_TRY(ki_work_take(p->work, (size_t)p->n, sizeof *j.value, "column values", &j.value, err));
    j.pos_weight = n_present ? 1 / (ki_real)n_present : 0;
    ki_parallel_for((p->n + BLOCK - 1) / BLOCK, 1, turn_and_sum, &j);
    out->value = 0;
    for (int64_t c = 0; c < p->n; c++) out->value += j.value[c];
    return KITH_OK;
}

const ki_loss ki_loss_proxy_anchor = {
    .method = {.name = "proxy_anchor",
               .summary = "every proxy is an anchor that weighs all items of the batch",
               .source = "Kim et al., Proxy Anchor Loss, CVPR 2020",
               .options = options,
               .settings_bytes = sizeof(ki_proxy_anchor_settings)},
    .is_proxy = true,
    .params = params,
    .saved_classes = ki_proxies_saved_classes,
    .eval = eval,
};
