/* NT-Xent: normalised temperature-scaled cross entropy.
 *
 *   L = mean over ordered positive pairs (i, p) of -ln( e^(s_ip/t) / (e^(s_ip/t) + sum_{j in N_i} e^(s_ij/t)) )
 *
 * With two items per class this is SimCLR's Eq. 1; with more, the other positives stay out of the
 * denominator. Source: Chen et al., SimCLR, ICML 2020 (temperature 0.5 for CIFAR, 0.1 for ImageNet). */
#include "objective/loss/loss.h"
#include "objective/loss/softmax_row.h"

typedef struct settings {
    double temperature;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, temperature, 0.1, 1e-4, 1e3, "divides the similarities", "SimCLR, Table 5"),
    KI_OPTION_END};

typedef struct pass {
    ki_real scale, weight;
} pass;

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    return ki_softmax_row(pairs, row, p->scale, p->weight);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_pairs *pairs = in->pairs;
    const settings *o = in->settings;
    const double weight = pairs->total_pos ? 1 / (double)pairs->total_pos : 0;
    const pass p = {(ki_real)(1 / o->temperature), (ki_real)weight};
    KI_TRY(ki_pairs_rows(pairs, out->g, row_terms, &p, NULL, &out->value, err));
    out->value *= weight;
    return KITH_OK;
}

const ki_loss ki_loss_ntxent = {
    .method = {.name = "ntxent",
               .summary = "cross entropy of each positive against the negatives, with a temperature",
               .source = "Chen et al., SimCLR, ICML 2020",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .eval = eval,
};
