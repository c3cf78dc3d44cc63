/* What the terms that learn from a teacher share: the option that names it, and the check that it is there. */
#ifndef KI_OBJECTIVE_TEACHER_H
#define KI_OBJECTIVE_TEACHER_H

#include "objective/reg/reg.h"

#define KI_TEACHER_OPTION(settings)                              \
    KI_OPTION_INT(settings, teacher, 0, 0, KI_MOST_TEACHERS - 1, \
                  "number of the teacher in the recipe's list, from 0", "ours")

/* KITH_EINVAL unless the width of the teacher is known; it says how many teachers there are. */
kith_status ki_teacher_check(const ki_sizes *sizes, int64_t teacher, const char *method, kith_error *err);

#endif
