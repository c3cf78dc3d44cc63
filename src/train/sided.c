/* Networks for images of several sides. */
#include "train/sided.h"

#include <string.h>

#include "base/alloc.h"
#include "objective/objective.h"

/* What is made here; what the caller has is borrowed. */
typedef struct own {
    ki_net net, teacher[KI_MOST_TEACHERS];
} own;

struct ki_sided {
    int n, n_teachers;
    int64_t side[KI_MOST_CROP_SIDES];
    const ki_net *net[KI_MOST_CROP_SIDES];
    ki_teacher teacher[KI_MOST_CROP_SIDES][KI_MOST_TEACHERS]; /* copies: their parameters are borrowed */
    own own[KI_MOST_CROP_SIDES];
};

/* Layers over a whole map have other weights for another map. */
static kith_status compare(const ki_net *a, const ki_net *b, kith_error *err) {
    for (int i = 0; i < ki_graph_count(a->graph); i++) {
        const ki_node *x = ki_graph_node(a->graph, i), *y = ki_graph_node(b->graph, i);
        for (int p = 0; p < x->n_params; p++) {
            char at_a[80], at_b[80];
            if (ki_shape_equal(&x->param[p].shape, &y->param[p].shape)) continue;
            ki_fail(err, KITH_ESHAPE, "%s cannot learn at %lld and %lld pixels alike: %s is %s and %s",
                    a->backbone->name, (long long)a->h, (long long)b->h, x->param[p].name,
                    ki_shape_text(&x->param[p].shape, at_a, sizeof at_a),
                    ki_shape_text(&y->param[p].shape, at_b, sizeof at_b));
            return ki_hint(err, KITH_ESHAPE, "leave input.sides out, or take a network without such a layer");
        }
    }
    return KITH_OK;
}

/* The network for another side, if that has the same parameters. */
static kith_status resize(const ki_net *net, int64_t side, ki_net *ret, kith_error *err) {
    const kith_status status = ki_net_of_size(net, side, ret, err);
    if (status != KITH_OK) return ki_prefix(err, status, "input.sides");
    return compare(net, ret, err);
}

kith_status ki_sided_check(const ki_net *net, const ki_crop_sides *sides, kith_error *err) {
    kith_status status = KITH_OK;
    for (int i = 0; i < sides->n && status == KITH_OK; i++) {
        ki_net made = {0};
        status = resize(net, sides->side[i], &made, err);
        ki_net_release(&made);
    }
    return status;
}

static kith_status make_side(ki_sided *s, int i, const ki_net *net, const ki_teacher *teachers,
                             kith_error *err) {
    const int64_t side = s->side[i];
    s->net[i] = net;
    if (net->h != side) {
        KI_TRY(resize(net, side, &s->own[i].net, err));
        s->net[i] = &s->own[i].net;
    }
    for (int t = 0; t < s->n_teachers; t++) {
        s->teacher[i][t] = teachers[t];
        if (s->n == 1 || teachers[t].net.h == side) continue;
        const kith_status status = resize(&teachers[t].net, side, &s->own[i].teacher[t], err);
        if (status != KITH_OK) return ki_prefix(err, status, "teachers.%d", t);
        s->teacher[i][t].net = s->own[i].teacher[t];
    }
    return KITH_OK;
}

kith_status ki_sided_new(const ki_net *net, const ki_teacher *teachers, int n_teachers,
                         const ki_crop_sides *sides, ki_sided **ret, kith_error *err) {
    ki_sided *s = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&s, 1, sizeof *s, "networks by side", err));
    s->n = sides->n ? sides->n : 1;
    s->n_teachers = n_teachers;
    s->side[0] = net->h;
    for (int i = 0; i < sides->n; i++) s->side[i] = sides->side[i];
    for (int i = 0; i < s->n && status == KITH_OK; i++) status = make_side(s, i, net, teachers, err);
    if (status == KITH_OK)
        *ret = s;
    else
        ki_sided_free(s);
    return status;
}

void ki_sided_free(ki_sided *s) {
    if (!s) return;
    for (int i = 0; i < s->n; i++) {
        ki_net_release(&s->own[i].net);
        for (int t = 0; t < s->n_teachers; t++) ki_net_release(&s->own[i].teacher[t]);
    }
    ki_free(s);
}

int64_t ki_sided_largest(const ki_sided *s) { return s->side[s->n - 1]; }

static int place_of(const ki_sided *s, int64_t side) {
    int i = s->n - 1;
    while (i >= 0 && s->side[i] != side) i--;
    return i;
}

const ki_net *ki_sided_net(const ki_sided *s, int64_t side) {
    const int i = place_of(s, side);
    return i < 0 ? NULL : s->net[i];
}

const ki_teacher *ki_sided_teacher(const ki_sided *s, int t, int64_t side) {
    const int i = place_of(s, side);
    return i < 0 ? NULL : &s->teacher[i][t];
}
