/* Frozen nodes on a backend: what is kept, what backward gives, and what a batch norm does. Included by one test program each, which
 * defines the devices. */
#ifndef TEST_NN_FROZEN_H
#define TEST_NN_FROZEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "nn/plan.h"
#include "support/op_check.h"
#include "support/small_net.h"
#include "support/testing.h"

enum { MB = 6, MOST = 1 << 16 };

typedef struct side {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
} side;

/* Up to the last node of the name `until`, or these nodes, a list of names with NULL at its end. */
typedef struct choice {
    const char *until, *const *nodes;
} choice;

static const char *const middle[] = {"mix.b", "res.conv1", "res.bn1", "res2.bn", "embedding", NULL};

static void freeze(ki_graph *graph, choice frozen) {
    const int last = frozen.until ? ki_graph_find(graph, frozen.until) : -1;
    for (int i = 0; i <= last; i++) ki_graph_freeze(graph, i);
    for (int k = 0; frozen.nodes && frozen.nodes[k]; k++) {
        const int node = ki_graph_find(graph, frozen.nodes[k]);
        if (node < 0) fail_msg("there is no node %s", frozen.nodes[k]);
        ki_graph_freeze(graph, node);
    }
}

static side side_make(const char *device, choice frozen, bool frozen_bn) {
    static ki_real buffer[MOST];
    kith_error err;
    side s = {.backend = op_backend(device, &(ki_backend_options){.deterministic = true})};
    s.graph = small_net_graph(false);
    freeze(s.graph, frozen);
    assert_ok(ki_params_new(s.graph, s.backend, &s.params, &err), &err);
    small_net_shake(s.params, 0.2, buffer);
    const ki_plan_options options = {.mb = MB,
                                     .mode = KI_TRAIN,
                                     .frozen_bn = frozen_bn,
                                     .taps = {"map"},
                                     .grad_taps = {"embedding", "logits"}};
    assert_ok(ki_plan_new(s.graph, s.params, s.backend, &options, &s.plan, &err), &err);
    return s;
}

static void side_release(side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_graph_free(s->graph);
    ki_backend_close(s->backend);
}

static void draw(ki_real *x, size_t n, uint32_t stream) {
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, stream, 0);
    for (size_t i = 0; i < n; i++) x[i] = (ki_real)(2 * ki_rng_double(&rng) - 1);
}

static void side_step(side *s) {
    static ki_real input[MB * SMALL_NET_C * SMALL_NET_H * SMALL_NET_W], diff[MB * 7];
    kith_error err;
    draw(input, N_ROWS(input), 1);
    draw(diff, N_ROWS(diff), 2);
    assert_ok(ki_params_zero_diffs(s->params, &err), &err);
    assert_ok(ki_plan_set_input(s->plan, input, &err), &err);
    assert_ok(ki_plan_forward(s->plan, &err), &err);
    assert_ok(ki_plan_set_grad(s->plan, "embedding", diff, &err), &err);
    assert_ok(ki_plan_set_grad(s->plan, "logits", diff, &err), &err);
    assert_ok(ki_plan_backward(s->plan, &err), &err);
}

static void check_output(side *a, side *b, const char *how) {
    static ki_real x[MB * 7], y[MB * 7];
    kith_error err;
    assert_ok(ki_plan_read(a->plan, "embedding", x, &err), &err);
    assert_ok(ki_plan_read(b->plan, "embedding", y, &err), &err);
    const double off = testing_relative_l2(x, y, N_ROWS(x));
    if (!(off < 1e-4)) fail_msg("%s: the embedding is off by %g", how, off);
}

/* Gradients that both have are the same. Returns how many parameters a has none for. */
static int check_gradients(const side *a, const side *b, const char *how) {
    static ki_real x[MOST], y[MOST];
    kith_error err;
    int n_without = 0, n_alive = 0;
    for (int i = 0; i < ki_params_count(a->params); i++) {
        const ki_param *p = ki_params_at(a->params, i), *q = ki_params_find(b->params, p->name);
        n_without += p->frozen;
        if (p->frozen && (p->diff || p->trained))
            fail_msg("%s: %s is frozen and has a gradient", how, p->name);
        if (!p->diff || !q->diff) continue;
        assert_ok(ki_params_get_diff(a->params, p, x, &err), &err);
        assert_ok(ki_params_get_diff(b->params, q, y, &err), &err);
        double length = 0;
        for (int64_t j = 0; j < p->n; j++) length += (double)y[j] * (double)y[j];
        /* The ReLU behind some small convolution lets nothing through. */
        for (int64_t j = 0; j < p->n && length == 0; j++) {
            if (x[j] != 0) fail_msg("%s: the gradient of %s is not 0", how, p->name);
        }
        n_alive += length > 0;
        const double off = length > 0 ? testing_relative_l2(x, y, p->n) : 0;
        if (!(off < 2e-4)) fail_msg("%s: the gradient of %s is off by %g", how, p->name, off);
    }
    if (n_alive < 10) fail_msg("%s: %d gradients are not 0; wanted 10 or more", how, n_alive);
    return n_without;
}

static ki_plan_stats stats_of(const side *s) {
    ki_plan_stats stats;
    ki_plan_stats_get(s->plan, &stats);
    return stats;
}

/* Everything up to the inception block: less is kept, backward ends there, and what is behind learns the same. */
static void check_frozen_beginning(const char *device) {
    side all = side_make(device, (choice){0}, true), part = side_make(device, (choice){.until = "mix"}, true);
    side_step(&all);
    side_step(&part);
    check_output(&part, &all, device);
    /* conv1's weight, bn1's four, and two of each convolution of the block */
    assert_int_equal(check_gradients(&part, &all, device), 1 + 4 + 4 * 2);
    const ki_plan_stats a = stats_of(&all), b = stats_of(&part);
    printf("%s: %zu bytes of activations, %d kernels run backward; frozen up to mix: %zu, %d\n", device,
           a.activation_bytes, a.n_backward, b.activation_bytes, b.n_backward);
    if (!(b.activation_bytes < a.activation_bytes))
        fail_msg("%s: %zu bytes with a frozen beginning, %zu without", device, b.activation_bytes,
                 a.activation_bytes);
    if (!(b.n_backward + 6 <= a.n_backward))
        fail_msg("%s: %d kernels run backward with a frozen beginning, %d without; wanted 6 fewer", device,
                 b.n_backward, a.n_backward);
    /* conv1's batch norm, as for inference */
    const int n_folded = part.backend->type->kernels.can_fold_bn ? 1 : 0;
    if (a.n_folded_bn != 0 || b.n_folded_bn != n_folded)
        fail_msg("%s: %d batch norms are folded, %d without; wanted %d and 0", device, b.n_folded_bn,
                 a.n_folded_bn, n_folded);
    assert_true(ki_params_trained_n(part.params) < ki_params_trained_n(all.params));
    side_release(&all);
    side_release(&part);
}

/* Nodes here and there: the gradient passes through them, to the same numbers. */
static void check_frozen_middle(const char *device) {
    side all = side_make(device, (choice){0}, true),
         part = side_make(device, (choice){.nodes = middle}, true);
    side_step(&all);
    side_step(&part);
    check_output(&part, &all, device);
    assert_int_equal(check_gradients(&part, &all, device), 2 + 1 + 4 + 4 + 2);
    side_release(&all);
    side_release(&part);
}

static void value_of(const side *s, const char *name, ki_real *ret) {
    kith_error err;
    assert_ok(ki_params_get(s->params, ki_params_find(s->params, name), ret, &err), &err);
}

/* Frozen batch norms use and keep their running statistics; the others go on as ever. Judged against ref. */
static void check_batch_norms(const char *device, choice frozen, const char *kept, const char *moved) {
    static ki_real before[64], after[64];
    side judge = side_make("ref", frozen, false), s = side_make(device, frozen, false);
    const struct {
        const char *name;
        bool is_kept;
    } rows[] = {{kept, true}, {moved, false}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        side fresh = side_make(device, frozen, false);
        const size_t bytes = (size_t)ki_params_find(fresh.params, rows[i].name)->n * sizeof *before;
        value_of(&fresh, rows[i].name, before);
        side_step(&fresh);
        value_of(&fresh, rows[i].name, after);
        if ((memcmp(before, after, bytes) == 0) != rows[i].is_kept)
            fail_msg("%s: %s went from %g to %g; wanted %s", device, rows[i].name, (double)before[0],
                     (double)after[0], rows[i].is_kept ? "the same" : "a change");
        side_release(&fresh);
    }
    side_step(&judge);
    side_step(&s);
    check_output(&s, &judge, device);
    check_gradients(&s, &judge, device);
    side_release(&judge);
    side_release(&s);
}

static void check_both_batch_norms(const char *device) {
    check_batch_norms(device, (choice){.until = "mix"}, "bn1.running_mean", "res.bn1.running_mean");
    check_batch_norms(device, (choice){.nodes = middle}, "res.bn1.running_var", "bn1.running_var");
}

#endif
