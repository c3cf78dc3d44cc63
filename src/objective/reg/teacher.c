/* Is the teacher that a term names there? */
#include "objective/reg/teacher.h"

kith_status ki_teacher_check(const ki_sizes *sizes, int64_t teacher, const char *method, kith_error *err) {
    int n = 0;
    if (sizes->teacher[teacher] > 0) return KITH_OK;
    while (n < KI_MOST_TEACHERS && sizes->teacher[n] > 0) n++;
    if (n == 0) {
        ki_fail(err, KITH_EINVAL, "%s learns from a teacher, and there is none", method);
        return ki_hint(err, KITH_EINVAL,
                       "a recipe lists teachers: [{weights: FILE}]; kith objective takes --teacher T.npy");
    }
    ki_fail(err, KITH_EINVAL, "%s: teacher is %lld; there %s %d, numbered from 0", method, (long long)teacher,
            n == 1 ? "is" : "are", n);
    return ki_hint(err, KITH_EINVAL, n > 1 ? "wanted teacher: 0 to %d" : "wanted teacher: %d", n - 1);
}
