/* Proxy-NCA: the own proxy against the proxies of the other classes; only these are in the denominator.
 *
 *   d_ij = |scale x_i - scale p_j|^2 on the unit sphere
 *   L = mean_i -ln( e^(-d_iy) / sum_{j != y} e^(-d_ij) )
 *
 * Norms cancel, so with b = 2 scale^2:  L_i = -b s_iy + ln sum_{j != y} e^(b s_ij)
 *   dL/ds_iy = -b / m,  dL/ds_ij = b softmax_ij / m over j != y
 *
 * An item whose own proxy or whose every other proxy a miner has dropped contributes 0.
 * Source: Movshovitz-Attias et al., No Fuss Distance Metric Learning using Proxies, ICCV 2017, Eq. 4; the
 * length 3 of embeddings and proxies is the one of reimplementations that reach the paper's figures. */
#include "objective/proxy/proxy_nca.h"

#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_proxy_nca_settings, scale, 3, 1e-3, 100, "length that embeddings and proxies are given",
                   "reimplementations: 3"),
    KI_OPTION_REAL(ki_proxy_nca_settings, lr_multiplier, 100, 0, 1e6,
                   "learning rate of the proxies over the network's",
                   "Proxy-Anchor's code for all proxy losses: 100"),
    KI_PROXY_INIT_OPTION(ki_proxy_nca_settings), KI_PROXY_SAMPLE_OPTION(ki_proxy_nca_settings),
    KI_OPTION_END};

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_proxy_nca_settings *o = settings;
    return ki_proxies_add(list, "proxy_nca", sizes, 1, o->init, o->lr_multiplier, err);
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_proxy_nca_settings *o = in->settings;
    const ki_cross_entropy form = {.scale = (ki_real)(2 * o->scale * o->scale), .others_alone = true};
    return ki_cross_entropy_mean(in, out, &form, err);
}

const ki_loss ki_loss_proxy_nca = {
    .method = {.name = "proxy_nca",
               .summary = "the own class's proxy against those of all other classes",
               .source = "Movshovitz-Attias et al., ICCV 2017",
               .options = options,
               .settings_bytes = sizeof(ki_proxy_nca_settings)},
    .is_proxy = true,
    .joins_columns = true,
    .params = params,
    .saved_classes = ki_proxies_saved_classes,
    .eval = eval,
};
