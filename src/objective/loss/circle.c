/* Circle loss: every similarity is weighted by its distance from its optimum.
 *
 *   a_p = [1 + m - s_p]_+,  a_n = [s_n + m]_+
 *   L = mean_i ln(1 + sum_N e^(gamma a_n (s_n - m)) sum_P e^(-gamma a_p (s_p - 1 + m)))
 *
 * Anchors without a positive or without a negative contribute 0 and still count in the mean. The paper's
 * gradient (its Eq. 9 and 10) and the authors' code treat the weights a_p, a_n as constants, which is not the
 * derivative of L; `detach: false` gives the derivative.
 * Source: Sun et al., CVPR 2020 (m 0.25, gamma 256 for faces, 128 for persons; 0.4 and 80 for CUB). */
#include "objective/loss/circle.h"

#include <string.h>

#include "objective/loss/rows.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_circle_settings, margin, 0.4, -1, 1, "relaxation m",
                   "Sun et al., Sec. 4.4: 0.4 for CUB, Cars, SOP"),
    KI_OPTION_REAL(ki_circle_settings, gamma, 80, 1e-3, 1e6, "scale", "Sun et al., Sec. 4.4: 80"),
    KI_OPTION_BOOL(ki_circle_settings, detach, 1,
                   "hold the paces constant in the gradient, as the paper does", "Sun et al. Eq. 9"),
    KI_OPTION_END};

/* Exponents of one kind into z (others stay), and their derivatives by s into slope; returns the largest. */
static ki_real exponents(const ki_circle_settings *o, const ki_row *row, int kind, ki_real *z,
                         ki_real *slope) {
    const ki_real m = (ki_real)o->margin, gamma = (ki_real)o->gamma, sign = kind == KI_PAIR_POSITIVE ? -1 : 1;
    const ki_real optimum = kind == KI_PAIR_POSITIVE ? 1 + m : -m,
                  turn = kind == KI_PAIR_POSITIVE ? 1 - m : m;
    ki_real most = -KI_REAL_MAX;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != kind) continue;
        const ki_real distance = sign * (row->s[j] - optimum), pace = distance > 0 ? distance : 0;
        z[j] = sign * gamma * pace * (row->s[j] - turn);
        slope[j] = sign * gamma * pace;
        if (!o->detach && pace > 0) slope[j] += gamma * (row->s[j] - turn);
        most = z[j] > most ? z[j] : most;
    }
    return most;
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_circle_settings *o = context;
    const ki_vec *vec = pairs->vec;
    if (row->n_pos == 0 || row->n_neg == 0) return 0;
    ki_real *z = row->scratch, *slope = z + pairs->ld;
    memset(z, 0, (size_t)(2 * pairs->ld) * sizeof *z);
    const ki_real most_pos = exponents(o, row, KI_PAIR_POSITIVE, z, slope);
    const ki_real most_neg = exponents(o, row, KI_PAIR_NEGATIVE, z, slope);
    const ki_real pos = vec->exp(z, row->pair, KI_PAIR_POSITIVE, 1, most_pos, row->g, row->n);
    const ki_real neg = vec->exp(z, row->pair, KI_PAIR_NEGATIVE, 1, most_neg, row->g, row->n);
    const double total = (double)most_pos + (double)most_neg + (double)ki_ln(pos) + (double)ki_ln(neg);
    const double t = exp(total < 0 ? total : -total), sigmoid = (total < 0 ? t : 1) / (1 + t);
    const ki_real weight = (ki_real)(sigmoid / (double)pairs->m);
    vec->scale(row->pair, KI_PAIR_POSITIVE, weight / pos, row->g, row->n);
    vec->scale(row->pair, KI_PAIR_NEGATIVE, weight / neg, row->g, row->n);
    for (int64_t j = 0; j < row->n; j++) row->g[j] *= slope[j];
    return (total > 0 ? total : 0) + log1p(t);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    return ki_loss_mean_rows(in, out, row_terms, err);
}

const ki_loss ki_loss_circle = {
    .method = {.name = "circle",
               .summary = "every similarity paced by its distance from its optimum",
               .source = "Sun et al., CVPR 2020",
               .options = options,
               .settings_bytes = sizeof(ki_circle_settings)},
    .eval = eval,
};
