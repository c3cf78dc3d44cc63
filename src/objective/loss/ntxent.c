/* NT-Xent: normalised temperature-scaled cross entropy.
 *
 *   L = mean over ordered positive pairs (i, p) of -ln( e^(s_ip/t) / (e^(s_ip/t) + sum_{j in N_i} e^(s_ij/t)) )
 *
 * With two items per class this is SimCLR's Eq. 1; with more, the other positives stay out of the
 * denominator. Source: Chen et al., SimCLR, ICML 2020 (temperature 0.5 for CIFAR, 0.1 for ImageNet). */
#include "objective/loss/ntxent.h"

#include "objective/loss/rows.h"
#include "objective/loss/softmax_row.h"

static const ki_option options[] = {KI_OPTION_REAL(ki_ntxent_settings, temperature, 0.1, 1e-4, 1e3,
                                                   "divides the similarities", "SimCLR, Table 5"),
                                    KI_OPTION_END};

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_exponentials *p = context;
    return ki_softmax_row(pairs, row, p->scale, p->weight);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_ntxent_settings *o = in->settings;
    return ki_loss_mean_terms(in, out, row_terms, 1 / o->temperature, in->pairs->total_pos, err);
}

const ki_loss ki_loss_ntxent = {
    .method = {.name = "ntxent",
               .summary = "cross entropy of each positive against the negatives, with a temperature",
               .source = "Chen et al., SimCLR, ICML 2020",
               .options = options,
               .settings_bytes = sizeof(ki_ntxent_settings)},
    .eval = eval,
};
