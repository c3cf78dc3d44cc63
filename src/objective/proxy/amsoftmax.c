/* Additive-margin softmax (CosFace): cross entropy over the classes' proxies, with the cosine of the own
 * class lowered by a margin.
 *
 *   L = mean_i -log( e^(scale (s_iy - margin)) / (e^(scale (s_iy - margin)) + sum_{j != y} e^(scale s_ij)) )
 *   dL/ds_ij = scale (softmax_ij - [j = y]) / m
 *
 * Only kept proxies count; an item whose own proxy a miner has dropped contributes 0.
 * Sources: Wang et al., CosFace, CVPR 2018; JRD: scale 20, margin 0.1, proxies U(+-0.1) learned at x100. */
#include "objective/proxy/amsoftmax.h"

#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_amsoftmax_settings, scale, 20, 1e-3, 1e4, "factor on the cosines", "JRD"),
    KI_OPTION_REAL(ki_amsoftmax_settings, margin, 0.1, -2, 2, "taken off the own class's cosine", "JRD"),
    KI_OPTION_REAL(ki_amsoftmax_settings, lr_multiplier, 100, 0, 1e6,
                   "learning rate of the proxies over the network's", "JRD"),
    KI_PROXY_INIT_OPTION(ki_amsoftmax_settings),
    KI_PROXY_SAMPLE_OPTION(ki_amsoftmax_settings),
    KI_OPTION_END};

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_amsoftmax_settings *o = settings;
    return ki_proxies_add(list, "amsoftmax", sizes, 1, o->init, o->lr_multiplier, err);
}

static ki_real own(const void *settings, ki_real s, ki_real *ret_slope) {
    (void)ret_slope; /* 1 */
    return s - (ki_real)((const ki_amsoftmax_settings *)settings)->margin;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_amsoftmax_settings *o = in->settings;
    const ki_cross_entropy form = {.scale = (ki_real)o->scale, .own = own, .settings = o};
    return ki_cross_entropy_mean(in, out, &form, err);
}

const ki_loss ki_loss_amsoftmax = {
    .method = {.name = "amsoftmax",
               .summary = "cross entropy over learned class proxies with a margin on the cosine",
               .source = "Wang et al., CosFace, CVPR 2018; JRD",
               .options = options,
               .settings_bytes = sizeof(ki_amsoftmax_settings)},
    .is_proxy = true,
    .joins_columns = true,
    .params = params,
    .saved_classes = ki_proxies_saved_classes,
    .eval = eval,
};
