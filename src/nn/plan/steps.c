/* Replacing the steps of a plan by others. */
#include "nn/plan/steps.h"

#include "base/alloc.h"

void ki_steps_replace(ki_steps *steps, ki_step *step, int n, const int *to) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < step[i].n_src; k++) step[i].src[k] = to[step[i].src[k]];
    }
    ki_free(steps->step);
    steps->step = step;
    steps->n = n;
}
