/* Normalised softmax: cross entropy over the cosines to the classes' proxies, no margin.
 *
 *   L = mean_i -ln( e^(s_iy / temperature) / sum_j e^(s_ij / temperature) )
 *   dL/ds_ij = (softmax_ij - [j = y]) / (temperature m)
 *
 * Source: Zhai and Wu, Classification is a Strong Baseline for Deep Metric Learning, BMVC 2019, Eq. 4:
 * temperature 0.05. */
#include "objective/proxy/proxies.h"

typedef struct settings {
    double temperature, lr_multiplier;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, temperature, 0.05, 1e-4, 1e3, "divides the cosines", "Zhai and Wu, Sec. 3.2"),
    KI_OPTION_REAL(settings, lr_multiplier, 1, 0, 1e6, "learning rate of the proxies over the network's",
                   "Zhai and Wu train all alike"),
    KI_OPTION_END};

static kith_status params(const void *settings_, const ki_sizes *sizes, ki_state_list *list,
                          kith_error *err) {
    const settings *o = settings_;
    return ki_proxies_add(list, "normsoftmax", sizes, 1, o->lr_multiplier, err);
}

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const settings *o = context;
    const int64_t y = pairs->row_label[row->i];
    return ki_cross_entropy_row(pairs, row, y, row->s[y], 1, (ki_real)(1 / o->temperature),
                                1 / (ki_real)pairs->m);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    KI_TRY(ki_pairs_rows(in->pairs, out->g, row_terms, in->settings, NULL, &out->value, err));
    out->value /= (double)in->pairs->m;
    return KITH_OK;
}

const ki_loss ki_loss_normsoftmax = {
    .method = {.name = "normsoftmax",
               .summary = "cross entropy over the cosines to learned class proxies",
               .source = "Zhai and Wu, BMVC 2019",
               .options = options,
               .settings_bytes = sizeof(settings)},
    .is_proxy = true,
    .params = params,
    .eval = eval,
};
