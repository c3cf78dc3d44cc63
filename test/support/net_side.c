/* A network on one backend, fed and compared. */
#include "support/net_side.h"

#include <stdlib.h>

#include "base/rng.h"
#include "support/op_case.h"
#include "support/small_net.h"
#include "support/testing.h"

void net_side_init(net_side *s, ki_backend *backend, ki_graph *graph, double span,
                   const ki_plan_options *options) {
    kith_error err;
    *s = (net_side){.backend = backend, .graph = graph, .mb = options->mb};
    s->buffer = malloc(NET_SIDE_MOST * sizeof *s->buffer);
    assert_non_null(s->buffer);
    assert_ok(ki_params_new(graph, backend, &s->params, &err), &err);
    assert_ok(ki_params_init(s->params, 5, &err), &err);
    small_net_shake(s->params, span, s->buffer);
    assert_ok(ki_plan_new(graph, s->params, backend, options, &s->plan, &err), &err);
}

void net_side_release(net_side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_graph_free(s->graph);
    ki_backend_close(s->backend);
    free(s->buffer);
}

static int64_t fitting(int64_t n) {
    assert_true(n <= NET_SIDE_MOST);
    return n;
}

int64_t net_side_input_count(const net_side *s) {
    return fitting(s->mb * ki_shape_count(&ki_graph_node(s->graph, 0)->shape));
}

int64_t net_side_tap_count(const net_side *s, const char *tap) {
    ki_shape shape;
    kith_error err;
    assert_ok(ki_plan_tap_shape(s->plan, tap, &shape, &err), &err);
    return fitting(ki_shape_count(&shape));
}

static void draw(net_side *s, uint32_t stream, int64_t n) {
    ki_rng rng = ki_rng_at(10, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++) s->buffer[i] = (ki_real)ki_rng_normal(&rng);
}

static void wait(net_side *s) {
    kith_error err;
    assert_ok(s->backend->type->memory.sync(s->backend, &err), &err);
}

void net_side_forward(net_side *s, uint32_t stream) {
    kith_error err;
    draw(s, stream, net_side_input_count(s));
    assert_ok(ki_plan_set_input(s->plan, s->buffer, &err), &err);
    assert_ok(ki_plan_forward(s->plan, &err), &err);
    wait(s);
}

void net_side_backward(net_side *s, const char *const *taps, uint32_t stream) {
    kith_error err;
    for (int i = 0; taps[i]; i++) {
        draw(s, stream + 100 + (uint32_t)i, net_side_tap_count(s, taps[i]));
        assert_ok(ki_plan_set_grad(s->plan, taps[i], s->buffer, &err), &err);
        wait(s);
    }
    assert_ok(ki_plan_backward(s->plan, &err), &err);
    wait(s);
}

int64_t net_side_read_tap(net_side *s, const char *tap) {
    kith_error err;
    const int64_t n = net_side_tap_count(s, tap);
    assert_ok(ki_plan_read(s->plan, tap, s->buffer, &err), &err);
    return n;
}

int64_t net_side_read_param(net_side *s, const char *name) {
    kith_error err;
    const ki_param *p = ki_params_find(s->params, name);
    if (!p) fail_msg("no parameter %s", name);
    const int64_t n = fitting(p->n);
    assert_ok(p->trained ? ki_params_get_diff(s->params, p, s->buffer, &err)
                         : ki_params_get(s->params, p, s->buffer, &err),
              &err);
    return n;
}

double net_side_near(const char *what, const net_side *a, const net_side *b, int64_t n, double tolerance) {
    const double off = op_relative_l2(a->buffer, b->buffer, n);
    if (!(off <= tolerance))
        fail_msg("%s is off by %.3g relative L2, wanted at most %.3g", what, off, tolerance);
    return off;
}

double net_side_taps_near(net_side *a, net_side *b, const char *const *taps, double tolerance) {
    double worst = 0;
    for (int i = 0; taps[i]; i++) {
        (void)net_side_read_tap(a, taps[i]);
        const double off = net_side_near(taps[i], a, b, net_side_read_tap(b, taps[i]), tolerance);
        if (off > worst) worst = off;
    }
    return worst;
}
