/* Joint maximum mean discrepancy: the distance that joint similarity is compared with.
 *
 *   K the product of the layers' kernels (kernels.h), s_IJ = mean_{i in I, j in J} K_ij, i = j included
 *   MMD^2_IJ = s_II + s_JJ - 2 s_IJ
 *   L = -1/N sum_{I != J} n_I n_J MMD^2_IJ,  N = sum_{I != J} n_I n_J  (classes of the batch)
 *
 * Linear in K: dL/dK_ij = 2/N for different classes and -2 (m - n_I) / (N n_I) inside class I.
 * Its first two terms reward narrow classes, which is why JRD leaves them out. 0 when all labels agree.
 * Source: JRD Eq. 7 and 8 (Table "JRS versus MMD", weight 0.1); Eq. 8 is a figure there, so the class pairs
 * are weighed as in its Eq. 3. */
#include "objective/reg/groups.h"
#include "objective/reg/kernels.h"

static const ki_option options[] = {KI_LAYERS_OPTIONS, KI_OPTION_END};

static kith_status taps_of(const void *settings, unsigned *ret_taps, kith_error *err) {
    return ki_layers_taps(settings, "joint_mmd", ret_taps, err);
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    ki_layers layers;
    ki_groups classes;
    double *same = NULL;
    KI_TRY(ki_layers_read(in->settings, "joint_mmd", &layers, err));
    KI_TRY(ki_groups_find(in->label, in->m, in->work, &classes, err));
    KI_TRY(ki_work_take(in->work, (size_t)in->m, sizeof *same, "class weights", &same, err));
    const double n = ki_groups_different(&classes, in->m);
    if (n == 0) return KITH_OK;
    for (int64_t i = 0; i < in->m; i++) {
        const double own = (double)classes.count[classes.of[i]];
        same[i] = -2 * ((double)in->m - own) / (n * own);
    }
    return ki_layers_eval(&layers, in, 2 / n, same, out, err);
}

const ki_reg ki_reg_joint_mmd = {
    .method = {.name = "joint_mmd",
               .summary = "different classes far apart in several layers at once (joint MMD)",
               .source = "JRD Eq. 7, Chu et al., ICML 2020",
               .options = options,
               .settings_bytes = sizeof(ki_layers_options)},
    .taps_of = taps_of,
    .normalize = true,
    .eval = eval,
};
