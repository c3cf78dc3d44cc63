/* One positive against all negatives of a row. */
#include "objective/loss/softmax_row.h"

double ki_softmax_row(const ki_pairs *pairs, const ki_row *row, ki_real scale, ki_real weight) {
    if (row->n_pos == 0 || row->n_neg == 0) return 0;
    const ki_vec *vec = pairs->vec;
    const ki_real most = vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    const ki_real sum = vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, scale, most, row->g, row->n);
    const ki_real ln_sum = ki_ln(sum);
    double value = 0, pull = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_POSITIVE) continue;
        const ki_real z = scale * (most - row->s[j]) + ln_sum; /* A - scale s_p */
        const ki_real t = ki_exp(z < 0 ? z : -z), sigmoid = (z < 0 ? t : 1) / (1 + t);
        value += (double)((z > 0 ? z : 0) + ki_log1p(t));
        row->g[j] = -weight * scale * sigmoid;
        pull += (double)sigmoid;
    }
    vec->scale(row->pair, KI_PAIR_NEGATIVE, weight * scale * (ki_real)pull / sum, row->g, row->n);
    return value;
}
