/* Normalised softmax: cross entropy over the cosines to the classes' proxies, no margin.
 *
 *   L = mean_i -ln( e^(s_iy / temperature) / sum_j e^(s_ij / temperature) )
 *   dL/ds_ij = (softmax_ij - [j = y]) / (temperature m)
 *
 * Source: Zhai and Wu, Classification is a Strong Baseline for Deep Metric Learning, BMVC 2019, Eq. 4:
 * temperature 0.05. */
#include "objective/proxy/normsoftmax.h"

#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_normsoftmax_settings, temperature, 0.05, 1e-4, 1e3, "divides the cosines",
                   "Zhai and Wu, Sec. 3.2"),
    KI_OPTION_REAL(ki_normsoftmax_settings, lr_multiplier, 1, 0, 1e6,
                   "learning rate of the proxies over the network's", "Zhai and Wu train all alike"),
    KI_PROXY_INIT_OPTION(ki_normsoftmax_settings), KI_PROXY_SAMPLE_OPTION(ki_normsoftmax_settings),
    KI_OPTION_END};

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_normsoftmax_settings *o = settings;
    return ki_proxies_add(list, "normsoftmax", sizes, 1, o->init, o->lr_multiplier, err);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_normsoftmax_settings *o = in->settings;
    const ki_cross_entropy form = {.scale = (ki_real)(1 / o->temperature)};
    return ki_cross_entropy_mean(in, out, &form, err);
}

const ki_loss ki_loss_normsoftmax = {
    .method = {.name = "normsoftmax",
               .summary = "cross entropy over the cosines to learned class proxies",
               .source = "Zhai and Wu, BMVC 2019",
               .options = options,
               .settings_bytes = sizeof(ki_normsoftmax_settings)},
    .is_proxy = true,
    .joins_columns = true,
    .params = params,
    .saved_classes = ki_proxies_saved_classes,
    .eval = eval,
};
