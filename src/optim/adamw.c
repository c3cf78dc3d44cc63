/* AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, Algorithm 2.
 * Adam without decay in the gradient; instead, before each step, value *= 1 - lr * weight_decay. */
#include "optim/adam.h"

const ki_optim_method ki_optim_adamw = {
    .name = "adamw",
    .summary = "Adam whose weight decay does not pass through its scaling",
    .source = "Loshchilov and Hutter, ICLR 2019",
    .options = ki_optim_adam_options,
    .complete = ki_optim_adam_complete,
    .has_m = true,
    .has_v = true,
    .decouples = true};
