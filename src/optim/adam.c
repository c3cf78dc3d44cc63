/* Adam: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1.
 *   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 *   value -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 * weight_decay is the L2 kind: it is part of g. */
#include "optim/adam.h"

const ki_option ki_optim_adam_options[] = {
    KI_OPTION_REAL(ki_optim_settings, beta1, 0.9, 0, 0.999999, "memory of the mean gradient", "Adam Sec. 2"),
    KI_OPTION_REAL(ki_optim_settings, beta2, 0.999, 0, 0.9999999, "memory of its square", "Adam Sec. 2"),
    KI_OPTION_REAL(ki_optim_settings, eps, 1e-8, 1e-16, 1e3, "added to the root of the square",
                   "Adam Sec. 2; JRD's code: 0.01"),
    KI_OPTION_END};

kith_status ki_optim_adam_complete(const ki_optim_settings *settings, ki_optim_step *step, kith_error *err) {
    (void)err;
    step->kind = KI_OPTIM_ADAM;
    step->beta1 = settings->beta1;
    step->beta2 = settings->beta2;
    step->eps = settings->eps;
    return KITH_OK;
}

const ki_optim_method ki_optim_adam = {.name = "adam",
                                       .summary = "steps scaled by the gradient's own mean and square",
                                       .source = "Kingma and Ba, ICLR 2015",
                                       .options = ki_optim_adam_options,
                                       .complete = ki_optim_adam_complete,
                                       .has_m = true,
                                       .has_v = true};
