/* Which photos are held out: a part of the training classes in each fold or, where there are too few classes for that, a part of each
 * class's photos. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tune/tune.h"

/* Numbers 0 … n - 1 in an order of chance. */
static kith_status shuffled(const ki_tune *t, int number, int64_t n, int64_t **ret, kith_error *err) {
    int64_t *order = NULL;
    KI_TRY(ki_alloc_or(&order, (size_t)n + 1, sizeof *order, "an order", err));
    for (int64_t i = 0; i < n; i++) order[i] = i;
    ki_rng rng = ki_rng_at((uint64_t)t->options->seed, KI_RNG_SPLIT, 0x70e5, (uint32_t)number);
    ki_rng_shuffle(&rng, order, n);
    *ret = order;
    return KITH_OK;
}

/* Classes in an order of chance go to the folds in turn, those that share groups together. */
static kith_status by_class(ki_tune *t, ki_tune_folds *f, kith_error *err) {
    kith_status status;
    const int64_t n = kith_dataset_n_classes(t->set);
    int64_t *order = NULL, *size = NULL, *n_of = NULL;
    int32_t *unit = NULL;
    int *fold = NULL;
    bool *is_done = NULL;
    KI_CHECK(shuffled(t, f->number, n, &order, err));
    KI_CHECK(ki_alloc_or(&fold, (size_t)n, sizeof *fold, "folds", err));
    KI_CHECK(ki_zalloc_or(&size, (size_t)n, sizeof *size, "folds", err));
    KI_CHECK(ki_zalloc_or(&n_of, (size_t)f->n, sizeof *n_of, "folds", err));
    KI_CHECK(ki_zalloc_or(&is_done, (size_t)n, sizeof *is_done, "folds", err));
    KI_CHECK(ki_dataset_units(t->set, false, &unit, err));
    for (int64_t i = 0; i < t->learn.n; i++) is_done[t->set->item[t->learn.item[i]].label] = true;
    for (int64_t c = 0; c < n; c++) size[unit[c]] += is_done[c];
    for (int64_t c = 0; c < n; c++) is_done[c] = false;
    for (int64_t k = 0; k < n; k++) {
        const int32_t u = unit[order[k]];
        if (size[u] == 0 || is_done[u]) continue;
        int to = 0; /* the fold with the fewest classes */
        for (int i = 1; i < f->n; i++) {
            if (n_of[i] < n_of[to]) to = i;
        }
        fold[u] = to;
        n_of[to] += size[u];
        is_done[u] = true;
    }
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[i];
        f->fold_of[item] = fold[unit[t->set->item[item].label]];
    }
done:
    ki_free(order);
    ki_free(size);
    ki_free(n_of);
    ki_free(unit);
    ki_free(fold);
    ki_free(is_done);
    return status;
}

/* The photos of every class in turn, in an order of chance; those of a group go where its first one went. */
static kith_status by_photo(ki_tune *t, ki_tune_folds *f, kith_error *err) {
    kith_status status;
    int64_t *order = NULL;
    int *next = NULL, *of_group = NULL;
    KI_CHECK(shuffled(t, f->number, t->learn.n, &order, err));
    KI_CHECK(ki_zalloc_or(&next, (size_t)kith_dataset_n_classes(t->set), sizeof *next, "folds", err));
    KI_CHECK(ki_zalloc_or(&of_group, (size_t)t->set->n_groups + 1, sizeof *of_group, "folds", err));
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[order[i]];
        const ki_item *from = &t->set->item[item];
        int *group = from->group ? &of_group[from->group] : NULL; /* its fold, from 1 */
        f->fold_of[item] = group && *group ? *group - 1 : next[from->label]++ % f->n;
        if (group) *group = f->fold_of[item] + 1;
    }
done:
    ki_free(order);
    ki_free(next);
    ki_free(of_group);
    return status;
}

/* Training classes; those that share groups count as one. */
static kith_status count_units(const ki_tune *t, int64_t *ret_n, kith_error *err) {
    int32_t *unit = NULL;
    KI_TRY(ki_dataset_units(t->set, false, &unit, err));
    *ret_n = t->n_train_classes;
    for (size_t c = 0; c < t->set->n_classes; c++) *ret_n -= unit[c] != (int32_t)c;
    ki_free(unit);
    return KITH_OK;
}

kith_status ki_tune_make_folds(ki_tune *t, int number, int n, ki_tune_folds *ret, kith_error *err) {
    int64_t n_units = 0;
    KI_TRY(count_units(t, &n_units, err));
    ki_tune_folds f = {.number = number, .n = n, .by_photo = n_units < 4};
    if (f.by_photo) f.n = 2;
    if (!f.by_photo && f.n > n_units / 2) f.n = (int)(n_units / 2);
    KI_TRY(ki_alloc_or(&f.fold_of, t->set->n_items, sizeof *f.fold_of, "folds", err));
    for (size_t i = 0; i < t->set->n_items; i++) f.fold_of[i] = -1;
    *ret = f;
    return f.by_photo ? by_photo(t, ret, err) : by_class(t, ret, err);
}

/* ---- a part of the photos that train ---- */

typedef struct draw {
    int32_t group;
    double key;
    int64_t number; /* of a class or an item */
} draw;

static int by_group(const void *a, const void *b) {
    const draw *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Of each group those with the smallest keys, `least` at least: smaller shares are parts of larger ones. */
static void take_share(draw *d, int64_t n, double share, int64_t least, bool *is_in) {
    qsort(d, (size_t)n, sizeof *d, by_group);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && d[end].group == d[i].group;) end++;
        int64_t wanted = (int64_t)ceil(share * (double)(end - i));
        if (wanted < least) wanted = least;
        for (int64_t j = i; j < end && j - i < wanted; j++) is_in[d[j].number] = true;
    }
}

static double key_of(const ki_tune *t, uint32_t what, int64_t number) {
    ki_rng rng = ki_rng_at((uint64_t)t->options->seed, KI_RNG_SPLIT, what, (uint32_t)number);
    return ki_rng_double(&rng);
}

/* Drops from the items all but a part of the classes, or of each class's photos. */
static kith_status keep_part(const ki_tune *t, const ki_tune_part *part, ki_items *items, kith_error *err) {
    kith_status status;
    const ki_item *item = t->set->item;
    const size_t room = part->of_photos ? t->set->n_items : t->set->n_classes;
    draw *d = NULL;
    bool *is_in = NULL, *is_seen = NULL;
    int64_t n = 0, left = 0;
    KI_CHECK(ki_alloc_or(&d, (size_t)items->n + 1, sizeof *d, "a draw", err));
    KI_CHECK(ki_zalloc_or(&is_in, room, sizeof *is_in, "a draw", err));
    KI_CHECK(ki_zalloc_or(&is_seen, room, sizeof *is_seen, "a draw", err));
    for (int64_t i = 0; i < items->n; i++) {
        const int64_t at = items->item[i], number = part->of_photos ? at : item[at].label;
        if (is_seen[number]) continue;
        is_seen[number] = true;
        d[n++] = (draw){.group = part->of_photos ? item[at].label : 0,
                        .key = key_of(t, part->of_photos ? 0x5a4f : 0x5a4e, number),
                        .number = number};
    }
    take_share(d, n, part->share, 2, is_in);
    for (int64_t i = 0; i < items->n; i++) {
        const int64_t at = items->item[i];
        if (is_in[part->of_photos ? at : item[at].label]) items->item[left++] = at;
    }
    items->n = left;
done:
    ki_free(d);
    ki_free(is_in);
    ki_free(is_seen);
    return status;
}

kith_status ki_tune_select(const ki_tune *t, const ki_tune_folds *f, int fold, bool held,
                           const ki_tune_part *part, ki_items *ret, kith_error *err) {
    *ret = (ki_items){0};
    KI_TRY(ki_alloc_or(&ret->item, (size_t)t->learn.n + 1, sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[i];
        if (!t->is_sound[item] || (f->fold_of[item] == fold) != held) continue;
        ret->item[ret->n++] = item;
    }
    return part && part->share < 1 ? keep_part(t, part, ret, err) : KITH_OK;
}
