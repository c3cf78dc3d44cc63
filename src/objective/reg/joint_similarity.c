/* Joint representation similarity: different classes should not be similar in several layers at once.
 *
 *   L = 1/N sum over ordered pairs i, j of different classes of K_ij,  K the product of the layers' kernels
 *   dL/dk_l(i,j) = 1/N product of the other layers' kernels             (kernels.h: kernels and bandwidths)
 *
 * layers: [pooled, embedding, logits] is JRD; [embedding] MRD; [pooled, embedding] JRD-Pooling; [embedding,
 * logits] JRD-C. Logits are cosines to the proxies (a proxy loss's, or the objective makes some), without
 * scale and margin. 0 when all labels agree.
 * Source: JRD, Chu et al., ICML 2020, Eq. 3 and 4: gaussian kernels, 3, 3 and 1 bandwidths; weight 1, for
 * poly and mgf 1e-3. */
#include "objective/reg/groups.h"
#include "objective/reg/kernels.h"

static const ki_option options[] = {KI_LAYERS_OPTIONS, KI_OPTION_END};

static kith_status taps_of(const void *settings, unsigned *ret_taps, kith_error *err) {
    return ki_layers_taps(settings, "joint_similarity", ret_taps, err);
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    ki_layers layers;
    ki_groups classes;
    KI_TRY(ki_layers_read(in->settings, "joint_similarity", &layers, err));
    KI_TRY(ki_groups_find(in->label, in->m, in->work, &classes, err));
    const double n = ki_groups_different(&classes, in->m);
    if (n == 0) return KITH_OK;
    return ki_layers_eval(&layers, in, 1 / n, NULL, out, err);
}

const ki_reg ki_reg_joint_similarity = {
    .method = {.name = "joint_similarity",
               .summary = "different classes unlike in several layers at once (JRD)",
               .source = "JRD, Chu et al., ICML 2020",
               .options = options,
               .settings_bytes = sizeof(ki_layers_options)},
    .taps_of = taps_of,
    .normalize = true,
    .eval = eval,
};
