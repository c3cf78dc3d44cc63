/* RMSprop: Tieleman and Hinton, Lecture 6.5 of "Neural networks for machine learning", 2012.
 *   v = alpha v + (1 - alpha) g^2;  m = momentum m + g / (sqrt(v) + eps);  value -= lr * m */
#include "optim/optim.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_optim_settings, alpha, 0.99, 0, 0.9999999, "memory of the squared gradient", "PyTorch"),
    KI_OPTION_REAL(ki_optim_settings, momentum, 0, 0, 0.999999, "how much of the last step is kept",
                   "PyTorch"),
    KI_OPTION_REAL(ki_optim_settings, eps, 1e-8, 1e-16, 1e3, "added to the root of the square", "PyTorch"),
    KI_OPTION_END};

static kith_status complete(const ki_optim_settings *settings, ki_optim_step *step, kith_error *err) {
    (void)err;
    step->kind = KI_OPTIM_RMSPROP;
    step->beta1 = settings->momentum;
    step->beta2 = settings->alpha;
    step->eps = settings->eps;
    return KITH_OK;
}

const ki_optim_method ki_optim_rmsprop = {.name = "rmsprop",
                                          .summary = "steps scaled by the root of the mean squared gradient",
                                          .source = "Tieleman and Hinton, 2012",
                                          .options = options,
                                          .complete = complete,
                                          .has_m = true,
                                          .has_v = true};
