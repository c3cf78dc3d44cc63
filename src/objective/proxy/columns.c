/* Choosing the proxies of a step.
 *
 * The classes are gone through once, in order; each of those that are not in the batch is taken with the probability (still
 * wanted) / (still to come), so that exactly as many are taken as are wanted, and every choice is equally likely (Knuth, The Art
 * of Computer Programming, 3.4.2, algorithm S). Every rank goes through all of them and keeps its own. */
#include "objective/proxy/columns.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { DRAW = 0x5a371e };

typedef struct choice {
    int64_t n_classes, first, n_here; /* all; those held here */
    uint8_t *is_present;              /* [n_classes]: in the batch */
    int32_t *place;                   /* [n_here]: the view's class of a class held here; -1: not taken */
    int32_t *chosen;                  /* [n_here] */
    int64_t n_chosen, n_taken;        /* here, on all ranks */
} choice;

static void take(choice *c, int64_t class) {
    c->n_taken++;
    const int64_t here = class - c->first;
    if (here < 0 || here >= c->n_here) return;
    c->place[here] = (int32_t)c->n_chosen;
    c->chosen[c->n_chosen++] = (int32_t)here;
}

static void draw(const ki_proxy_columns_of *of, choice *c) {
    int64_t n_present = 0;
    memset(c->is_present, 0, (size_t)c->n_classes);
    for (int64_t i = 0; i < of->m; i++) {
        n_present += !c->is_present[of->label[i]];
        c->is_present[of->label[i]] = 1;
    }
    for (int64_t k = 0; k < c->n_here; k++) c->place[k] = -1;
    int64_t wanted = (int64_t)ceil(of->sample * (double)c->n_classes) - n_present;
    int64_t left = c->n_classes - n_present;
    ki_rng rng = ki_rng_at(of->seed, KI_RNG_PROXIES, (uint32_t)of->step, DRAW);
    for (int64_t k = 0; k < c->n_classes; k++) {
        if (c->is_present[k]) {
            take(c, k);
            continue;
        }
        if (wanted > 0 && ki_rng_double(&rng) * (double)left < (double)wanted) {
            take(c, k);
            wanted--;
        }
        left--;
    }
}

static kith_status choose(const ki_proxy_columns_of *of, choice *c, ki_work *work, kith_error *err) {
    KI_TRY(ki_work_take(work, (size_t)c->n_classes, 1, "classes of the batch", &c->is_present, err));
    KI_TRY(ki_work_take(work, (size_t)c->n_here, sizeof *c->place, "places of classes", &c->place, err));
    KI_TRY(ki_work_take(work, (size_t)c->n_here, sizeof *c->chosen, "chosen classes", &c->chosen, err));
    draw(of, c);
    return KITH_OK;
}

/* The chosen classes' rows side by side. */
static kith_status copy_rows(const ki_proxy_columns_of *of, const choice *c, ki_work *work,
                             const ki_real **ret, kith_error *err) {
    const int64_t each = of->n_centers * of->proxies->shape.dim[1];
    ki_real *rows = NULL;
    KI_TRY(ki_work_reals(work, c->n_chosen * each, "chosen proxies", &rows, err));
    for (int64_t k = 0; k < c->n_chosen; k++)
        memcpy(rows + k * each, of->proxies->value + c->chosen[k] * each, (size_t)each * sizeof *rows);
    *ret = rows;
    return KITH_OK;
}

static kith_status number(const ki_proxy_columns_of *of, const choice *c, ki_work *work,
                          ki_proxy_columns *ret, kith_error *err) {
    int32_t *label = NULL, *own = NULL;
    KI_TRY(ki_work_take(work, (size_t)ret->n, sizeof *label, "proxy labels", &label, err));
    KI_TRY(ki_work_take(work, (size_t)of->m, sizeof *own, "labels", &own, err));
    for (int64_t j = 0; j < ret->n; j++) label[j] = (int32_t)(j / of->n_centers);
    for (int64_t i = 0; i < of->m; i++) {
        const int64_t here = of->label[i] - c->first;
        const bool is_here = here >= 0 && here < c->n_here;
        own[i] = !is_here ? -1 : c->place ? c->place[here] : (int32_t)here;
    }
    ret->label = label;
    ret->own = own;
    return KITH_OK;
}

kith_status ki_proxy_columns_choose(const ki_proxy_columns_of *of, ki_work *work, ki_proxy_columns *ret,
                                    kith_error *err) {
    const ki_state *p = of->proxies;
    choice c = {.n_classes = ki_state_whole(p).dim[0] / of->n_centers,
                .first = p->first / of->n_centers,
                .n_here = p->shape.dim[0] / of->n_centers};
    *ret = (ki_proxy_columns){.n = p->shape.dim[0], .n_all = ki_state_whole(p).dim[0], .value = p->value};
    if (of->sample < 1) {
        KI_TRY(choose(of, &c, work, err));
        ret->n = c.n_chosen * of->n_centers;
        ret->n_all = c.n_taken * of->n_centers;
        ret->chosen = c.chosen;
        KI_TRY(copy_rows(of, &c, work, &ret->value, err));
    }
    return number(of, &c, work, ret, err);
}

void ki_proxy_columns_add(const ki_proxy_columns *columns, const ki_proxy_columns_of *of, const ki_real *src,
                          ki_real *diff) {
    const int64_t each = of->n_centers * of->proxies->shape.dim[1];
    for (int64_t k = 0; k < columns->n / of->n_centers; k++) {
        const int64_t to = columns->chosen ? columns->chosen[k] : k;
        for (int64_t i = 0; i < each; i++) diff[to * each + i] += src[k * each + i];
    }
}
