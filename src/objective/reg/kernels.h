/* Kernels of several layers at once, for joint_similarity and joint_mmd.
 *
 *   k_l(i, j) of layer l:  gaussian  1/n sum_{t < n} e^(-D_ij / b_t), b_t = b 2^(t - n/2), D squared distance
 *                          laplace   the same with the L1 distance
 *                          poly      (x_i . x_j / b + 1)^degree
 *                          mgf       e^(x_i . x_j / b)   (also written exp)
 *   K_ij = product over layers
 *
 * b is given (`bandwidth`), or the mean of the distances of all pairs of the batch, a constant for the
 * gradient; for poly and mgf 1, as the paper has it. When all points of a layer coincide its kernel is 1,
 * without a gradient. poly and mgf have no bound: the absolute value of a kernel is limited to 1e30, and there
 * is no gradient beyond. Long vectors reach that: the pooled features of GoogLeNet have squared lengths of
 * 80,000. */
#ifndef KI_OBJECTIVE_KERNELS_H
#define KI_OBJECTIVE_KERNELS_H

#include "objective/reg/layers.h"
#include "objective/reg/reg.h"

/* The options of a method that reads layers. */
#define KI_LAYERS_OPTIONS                                                                             \
    KI_OPTION_TREE(ki_layers_options, layers, "[pooled, embedding, logits]",                          \
                   "what is compared, any of pooled, embedding, logits", "JRD Def. 4"),               \
        KI_OPTION_TREE(ki_layers_options, kernels, "gaussian with n 3, 3, 1",                         \
                       "one {kind: gaussian|laplace|poly|mgf, n: 3, bandwidth: 0 (= from the batch; " \
                       "of poly and mgf 1), degree: 2} for each layer",                               \
                       "JRD, kernel design")

/* The taps of the layers that the settings name. */
kith_status ki_layers_taps(const void *settings, const char *method, unsigned *ret_taps, kith_error *err);

/* value = sum_ij c_ij K_ij, with c_ij = different for items of different classes and same[i] for items of
 * one class, i = j included (same NULL: 0). Adds the gradients at the layers' taps. */
kith_status ki_layers_eval(const ki_layers *layers, const ki_reg_in *in, double different, const double *same,
                           ki_reg_out *out, kith_error *err);

#endif
