/* ArcFace: cross entropy over the classes' proxies, with the margin added to the angle to the proxy of the
 * own class.
 *
 *   theta = acos(s_iy), own = cos(theta + margin) = s cos(margin) - sqrt(1 - s^2) sin(margin)
 *   L = mean_i -ln( e^(scale own) / (e^(scale own) + sum_{j != y} e^(scale s_ij)) )
 *   d own / d s = cos(margin) + s sin(margin) / sqrt(1 - s^2)
 *
 * Where theta + margin passes pi the cosine would rise again; there own = s - margin sin(margin), as in the
 * authors' code. At s = 1 the slope is infinite, so 1 - s^2 is kept at 1e-6 or above: cosines nearer to +-1
 * than 5e-7 are rounding errors in float32.
 * Source: Deng et al., ArcFace, CVPR 2019, Eq. 3: scale 64, margin 0.5. */
#include "objective/proxy/arcface.h"

#include "objective/proxy/proxies.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_arcface_settings, scale, 64, 1e-3, 1e4, "factor on the cosines",
                   "Deng et al., Sec. 3.1"),
    KI_OPTION_REAL(ki_arcface_settings, margin, 0.5, 0, 3.14,
                   "added to the angle to the own class, in radians", "Deng et al., Sec. 3.1"),
    KI_OPTION_REAL(ki_arcface_settings, lr_multiplier, 1, 0, 1e6,
                   "learning rate of the proxies over the network's", "Deng et al. train all alike"),
    KI_PROXY_INIT_OPTION(ki_arcface_settings),
    KI_PROXY_SAMPLE_OPTION(ki_arcface_settings),
    KI_OPTION_END};

#define LEAST_SINE2 ((ki_real)1e-6)

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_arcface_settings *o = settings;
    return ki_proxies_add(list, "arcface", sizes, 1, o->init, o->lr_multiplier, err);
}

static ki_real own(const void *settings, ki_real s, ki_real *ret_slope) {
    const ki_arcface_settings *o = settings;
    const ki_real cos_m = (ki_real)cos(o->margin), sin_m = (ki_real)sin(o->margin);
    if (s <= -cos_m) return s - (ki_real)o->margin * sin_m; /* theta + margin passes pi */
    const ki_real raw = (1 - s) * (1 + s);
    const ki_real sine2 = raw > LEAST_SINE2 ? raw : LEAST_SINE2, sine = ki_sqrt(sine2);
    *ret_slope = cos_m + (raw > LEAST_SINE2 ? s * sin_m / sine : 0);
    return s * cos_m - sine * sin_m;
}

static kith_status eval(const ki_loss_in *in, ki_loss_out *out, kith_error *err) {
    const ki_arcface_settings *o = in->settings;
    const ki_cross_entropy form = {.scale = (ki_real)o->scale, .own = own, .settings = o};
    return ki_cross_entropy_mean(in, out, &form, err);
}

const ki_loss ki_loss_arcface = {
    .method = {.name = "arcface",
               .summary = "cross entropy over learned class proxies with a margin on the angle",
               .source = "Deng et al., ArcFace, CVPR 2019",
               .options = options,
               .settings_bytes = sizeof(ki_arcface_settings)},
    .is_proxy = true,
    .joins_columns = true,
    .params = params,
    .saved_classes = ki_proxies_saved_classes,
    .eval = eval,
};
