/* Which step writes the gradient of which parameter: from this, backward knows when gradients are complete.
 *
 * A parameter belongs to the step of its node, or to the merged step that the step is a view of. The nodes of merged batch
 * norms are gone; their parameters follow those of the merged one in memory, and belong to its step. */
#include <string.h>

#include "base/alloc.h"
#include "nn/plan/planned.h"

static int step_named(const ki_plan *plan, const char *param) {
    for (int s = 0; s < plan->steps.n; s++) {
        const ki_step *step = &plan->steps.step[s];
        for (int p = 0; p < step->node->n_params; p++) {
            if (strcmp(step->node->param[p].name, param) == 0) return step->is_view ? step->slice_of : s;
        }
    }
    return -1;
}

/* The parameter just before this one in memory; NULL: it is the first. */
static const ki_param *before(const ki_plan *plan, const ki_param *param) {
    for (int i = 0; i < ki_params_count(plan->params); i++) {
        const ki_param *other = ki_params_at(plan->params, i);
        if (other->diff && other->n > 0 && other->diff + other->n == param->diff) return other;
    }
    return NULL;
}

kith_status ki_plan_find_unfinished(ki_plan *plan, kith_error *err) {
    const int n = plan->steps.n;
    KI_TRY(ki_zalloc_or(&plan->unfinished, (size_t)n + 1, sizeof *plan->unfinished, "a plan", err));
    for (int i = 0; i < ki_params_count(plan->params); i++) {
        const ki_param *param = ki_params_at(plan->params, i);
        if (!param->diff) continue;
        const int64_t end = param->diff - ki_params_diffs(plan->params) + param->n;
        int s = -1;
        for (const ki_param *p = param; p && s < 0; p = before(plan, p)) s = step_named(plan, p->name);
        for (int t = s + 1; s >= 0 && t <= n; t++) {
            if (plan->unfinished[t] < end) plan->unfinished[t] = end;
        }
    }
    return KITH_OK;
}
