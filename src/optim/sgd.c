/* Stochastic gradient descent with momentum, in the form of Sutskever et al., "On the importance of
 * initialization and momentum in deep learning", ICML 2013, with the rate outside as PyTorch has it:
 *   m = momentum m + g;  value -= lr * m, or, looking ahead (nesterov), lr * (g + momentum m) */
#include "optim/optim.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_optim_settings, momentum, 0.9, 0, 0.999999, "how much of the last step is kept",
                   "usual; 0: plain descent"),
    KI_OPTION_BOOL(ki_optim_settings, nesterov, 0, "look ahead along the momentum", "Sutskever et al. 2013"),
    KI_OPTION_END};

static kith_status complete(const ki_optim_settings *settings, ki_optim_step *step, kith_error *err) {
    if (settings->nesterov && settings->momentum <= 0) {
        ki_fail(err, KITH_EINVAL, "optim (sgd): nesterov is true and momentum is 0");
        return ki_hint(err, KITH_EINVAL, "give a momentum, 0.9 for instance, or leave nesterov out");
    }
    step->kind = KI_OPTIM_SGD;
    step->beta1 = settings->momentum;
    step->nesterov = settings->nesterov;
    return KITH_OK;
}

const ki_optim_method ki_optim_sgd = {.name = "sgd",
                                      .summary = "gradient descent with momentum",
                                      .source = "Sutskever et al., ICML 2013",
                                      .options = options,
                                      .complete = complete,
                                      .has_m = true};
