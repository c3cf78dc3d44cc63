/* Supervised contrastive loss.
 *
 *   L = mean_i -1/|P_i| sum_{p in P_i} ln( e^(s_ip/t) / sum_{a in P_i + N_i} e^(s_ia/t) )
 *
 * over the anchors that have a positive; the others count in neither sum nor mean.
 * dL/ds_ia = (softmax_ia - [a in P_i] / |P_i|) / (t n). Source: Khosla et al., NeurIPS 2020, Eq. 2 (L_out). */
#include "objective/loss/supcon.h"

#include "objective/loss/rows.h"

static const ki_option options[] = {KI_OPTION_REAL(ki_supcon_settings, temperature, 0.1, 1e-4, 1e3,
                                                   "divides the similarities", "Khosla et al., Sec. 4"),
                                    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_exponentials *p = context;
    const ki_vec *vec = pairs->vec;
    if (row->n_pos == 0) return 0;
    const ki_real most_pos = vec->max(row->s, row->pair, KI_PAIR_POSITIVE, row->n);
    const ki_real most_neg = vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    const ki_real most = most_pos > most_neg ? most_pos : most_neg;
    const ki_real sum = vec->exp(row->s, row->pair, KI_PAIR_POSITIVE, p->scale, most, row->g, row->n) +
                        vec->exp(row->s, row->pair, KI_PAIR_NEGATIVE, p->scale, most, row->g, row->n);
    const ki_real factor = p->weight * p->scale / sum, share = p->weight * p->scale / (ki_real)row->n_pos;
    double positives = 0;
    for (int64_t j = 0; j < row->n; j++) row->g[j] *= factor;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_POSITIVE) continue;
        row->g[j] -= share;
        positives += (double)(p->scale * (row->s[j] - most));
    }
    return (double)ki_ln(sum) - positives / (double)row->n_pos;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_supcon_settings *o = in->settings;
    return ki_loss_mean_terms(in, out, row_terms, 1 / o->temperature, ki_pairs_anchors(in->pairs), err);
}

const ki_loss ki_loss_supcon = {
    .method = {.name = "supcon",
               .summary = "cross entropy of all positives of an anchor against everything else",
               .source = "Khosla et al., Supervised Contrastive Learning, NeurIPS 2020",
               .options = options,
               .settings_bytes = sizeof(ki_supcon_settings)},
    .eval = eval,
};
