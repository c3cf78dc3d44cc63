/* What adam and adamw share. */
#ifndef KI_OPTIM_ADAM_H
#define KI_OPTIM_ADAM_H

#include "optim/optim.h"

extern const ki_option ki_optim_adam_options[];
kith_status ki_optim_adam_complete(const ki_optim_settings *settings, ki_optim_step *step, kith_error *err);

#endif
