/* What methods share. */
#include "objective/method.h"

const ki_option ki_no_options[] = {KI_OPTION_END};

bool ki_saved_shape(const ki_saved *saved, const char *name, int n_dims, ki_shape *ret_shape) {
    return saved && saved->shape(saved->user, name, ret_shape) && ret_shape->n_dims == n_dims;
}
