/* One convolution instead of several: 1x1 convolutions that read the same tensor become one with all their
 * output channels. The source is then read once, its gradient is written once, and there is one large product
 * instead of several small ones. The merged step writes one buffer. The steps it is made of stay as views:
 * slices of this buffer, without a kernel. So their consumers need not know about it: they read their slice and
 * write their gradient to the slice of the merged step's gradient.
 *
 * A convolution qualifies if its only consumer can read a slice. A branch of a concat does not qualify, since
 * it writes into the concat's buffer. The parameters must be adjacent in memory. */
#include "base/alloc.h"
#include "nn/plan/planned.h"

enum { MOST_MEMBERS = 8 };

typedef struct group {
    int n, member[MOST_MEMBERS];
    int64_t oc;
} group;

const ki_step *ki_plan_consumer(const ki_plan *plan, int s) {
    for (int i = s + 1; i < plan->steps.n; i++) {
        for (int k = 0; k < plan->steps.step[i].n_src; k++) {
            if (plan->steps.step[i].src[k] == s) return &plan->steps.step[i];
        }
    }
    return NULL;
}

static bool qualifies(const ki_plan *plan, int s) {
    const ki_step *step = &plan->steps.step[s];
    if (!ki_node_is_1x1(step->node) || step->bn || step->is_tap || step->n_consumers != 1) return false;
    if (ki_step_wastes_diffs(step)) return false;
    if (step->node->attr.conv.oc % KI_SLICE_ALIGN != 0) return false;
    const ki_step *src = &plan->steps.step[step->src[0]], *consumer = ki_plan_consumer(plan, s);
    if (!consumer || src->node->kind == KI_OP_INPUT) return false;
    switch (consumer->node->kind) {
    case KI_OP_CONV2D:
    case KI_OP_BATCH_NORM:
    case KI_OP_POOL: return true;
    default: return false;
    }
}

bool ki_plan_follows(const ki_plan *plan, const ki_step *a, const ki_step *b) {
    if (a->node->n_params != b->node->n_params) return false;
    for (int p = 0; p < a->node->n_params; p++) {
        const ki_param *x = ki_params_find(plan->params, a->node->param[p].name);
        const ki_param *y = ki_params_find(plan->params, b->node->param[p].name);
        if (!x || !y || y->value != x->value + x->n) return false;
        if ((x->diff || y->diff) && (!x->diff || y->diff != x->diff + x->n)) return false;
    }
    return true;
}

static bool ends_alike(const ki_step *a, const ki_step *b) {
    if (!a->act || !b->act) return a->has_relu == b->has_relu && a->act == b->act;
    return a->act->attr.act.how == b->act->attr.act.how;
}

static bool fits(const ki_plan *plan, const group *g, int s) {
    const ki_step *a = &plan->steps.step[g->member[g->n - 1]], *b = &plan->steps.step[s];
    return g->n < MOST_MEMBERS && a->src[0] == b->src[0] && ends_alike(a, b) && a->live == b->live &&
           a->useful == b->useful && a->runs_backward == b->runs_backward && a->infers == b->infers &&
           ki_plan_follows(plan, a, b);
}

/* in[s]: the group of step s, counted from 1; 0: none. */
static int find_groups(const ki_plan *plan, group *groups, int *in) {
    int n = 0;
    for (int s = 0; s < plan->steps.n; s++) {
        if (in[s] || !qualifies(plan, s)) continue;
        group g = {.n = 1, .member = {s}, .oc = plan->steps.step[s].node->attr.conv.oc};
        for (int t = s + 1; t < plan->steps.n; t++) {
            if (in[t] || !qualifies(plan, t) || !fits(plan, &g, t)) continue;
            g.member[g.n++] = t;
            g.oc += plan->steps.step[t].node->attr.conv.oc;
        }
        if (g.n < 2) continue;
        groups[n++] = g;
        for (int k = 0; k < g.n; k++) in[g.member[k]] = n;
    }
    return n;
}

static ki_step merged_step(const ki_step *first, const group *g, ki_node *node) {
    *node = *first->node;
    node->attr.conv.oc = g->oc;
    node->shape.dim[1] = g->oc;
    ki_step step = *first;
    step.node = step.out = node;
    step.n_consumers = g->n;
    return step;
}

kith_status ki_plan_merge(ki_plan *plan, kith_error *err) {
    const ki_backend *backend = plan->backend;
    if (!backend->type->kernels.can_merge_convs || backend->options.plain_plan) return KITH_OK;
    kith_status status;
    const int n = plan->steps.n;
    group *groups = NULL;
    int *in = NULL, *to = NULL;
    ki_step *steps = NULL;
    KI_CHECK(ki_zalloc_or(&groups, (size_t)n, sizeof *groups, "a plan", err));
    KI_CHECK(ki_zalloc_or(&in, (size_t)n, sizeof *in, "a plan", err));
    KI_CHECK(ki_zalloc_or(&to, (size_t)n, sizeof *to, "a plan", err));
    const int n_groups = find_groups(plan, groups, in);
    if (n_groups == 0) goto done;
    KI_CHECK(ki_zalloc_or(&plan->merged, (size_t)n_groups, sizeof *plan->merged, "a plan", err));
    KI_CHECK(ki_zalloc_or(&steps, (size_t)(n + n_groups), sizeof *steps, "a plan", err));
    int n_steps = 0;
    for (int s = 0; s < n; s++) {
        const group *g = in[s] ? &groups[in[s] - 1] : NULL;
        if (g && g->member[0] == s)
            steps[n_steps++] = merged_step(&plan->steps.step[s], g, &plan->merged[in[s] - 1]);
        to[s] = n_steps;
        steps[n_steps++] = plan->steps.step[s];
    }
    ki_steps_replace(&plan->steps, steps, n_steps, to);
    /* A merged step is just before the first of its views. */
    for (int g = 0; g < n_groups; g++) {
        const int whole = to[groups[g].member[0]] - 1;
        int64_t at = 0;
        for (int k = 0; k < groups[g].n; k++) {
            ki_step *view = &plan->steps.step[to[groups[g].member[k]]];
            view->is_view = true;
            view->slice_of = view->src[0] = whole;
            view->slice_at = at;
            at += view->node->attr.conv.oc;
        }
    }
done:
    ki_free(groups);
    ki_free(in);
    ki_free(to);
    return status;
}
