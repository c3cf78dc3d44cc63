/* Which parameters a rule of the recipe applies to; for the files of this folder. */
#ifndef KI_OPTIM_GROUPS_H
#define KI_OPTIM_GROUPS_H

#include "optim/optim.h"

/* Check that every rule applies to some parameter; KITH_ENOTFOUND suggests the nearest name. */
kith_status ki_optim_check_rules(const ki_optim_settings *settings, const ki_optim_param *params,
                                 int n_params, kith_error *err);
/* Multipliers of the parameter: the product of all rules that apply and its own. */
void ki_optim_multipliers(const ki_optim_settings *settings, const ki_optim_param *param, double *ret_lr,
                          double *ret_decay);

#endif
