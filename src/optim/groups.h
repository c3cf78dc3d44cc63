/* Which parameters a rule of the recipe speaks of; for the files of this folder. */
#ifndef KI_OPTIM_GROUPS_H
#define KI_OPTIM_GROUPS_H

#include "optim/optim.h"

/* Every rule holds for some parameter; KITH_ENOTFOUND with the nearest name otherwise. */
kith_status ki_optim_check_rules(const ki_optim_settings *settings, const ki_optim_param *params,
                                 int n_params, kith_error *err);
/* Multipliers of the parameter: of all rules that hold, and its own. */
void ki_optim_multipliers(const ki_optim_settings *settings, const ki_optim_param *param, double *ret_lr,
                          double *ret_decay);

#endif
