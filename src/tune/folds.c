/* Which photos are held out: a part of the training classes in each fold or, where there are too few classes for that, a part of each
 * class's photos. */
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

/* Classes in an order of chance go to the folds in turn. */
static kith_status by_class(ki_tune *t, ki_tune_folds *f, kith_error *err) {
    kith_status status;
    const int64_t n = kith_dataset_n_classes(t->set);
    int64_t *order = NULL, next = 0;
    int *fold = NULL;
    bool *trains = NULL;
    KI_CHECK(shuffled(t, f->number, n, &order, err));
    KI_CHECK(ki_alloc_or(&fold, (size_t)n, sizeof *fold, "folds", err));
    KI_CHECK(ki_zalloc_or(&trains, (size_t)n, sizeof *trains, "folds", err));
    for (int64_t i = 0; i < t->learn.n; i++) trains[t->set->item[t->learn.item[i]].label] = true;
    for (int64_t c = 0; c < n; c++) {
        if (trains[order[c]]) fold[order[c]] = (int)(next++ % f->n);
    }
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[i];
        f->fold_of[item] = fold[t->set->item[item].label];
    }
done:
    ki_free(order);
    ki_free(fold);
    ki_free(trains);
    return status;
}

/* The photos of every class in turn, in an order of chance. */
static kith_status by_photo(ki_tune *t, ki_tune_folds *f, kith_error *err) {
    kith_status status;
    int64_t *order = NULL;
    int *next = NULL;
    KI_CHECK(shuffled(t, f->number, t->learn.n, &order, err));
    KI_CHECK(ki_zalloc_or(&next, (size_t)kith_dataset_n_classes(t->set), sizeof *next, "folds", err));
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[order[i]];
        f->fold_of[item] = next[t->set->item[item].label]++ % f->n;
    }
done:
    ki_free(order);
    ki_free(next);
    return status;
}

kith_status ki_tune_make_folds(ki_tune *t, int number, int n, ki_tune_folds *ret, kith_error *err) {
    ki_tune_folds f = {.number = number, .n = n, .by_photo = t->n_train_classes < 4};
    if (f.by_photo) f.n = 2;
    if (!f.by_photo && f.n > t->n_train_classes / 2) f.n = (int)(t->n_train_classes / 2);
    KI_TRY(ki_alloc_or(&f.fold_of, t->set->n_items, sizeof *f.fold_of, "folds", err));
    for (size_t i = 0; i < t->set->n_items; i++) f.fold_of[i] = -1;
    *ret = f;
    return f.by_photo ? by_photo(t, ret, err) : by_class(t, ret, err);
}

/* Is the class among the first part of those that train, in an order of chance? A hash of its number decides. */
static bool is_in_share(const ki_tune *t, int32_t label, double share) {
    ki_rng rng = ki_rng_at((uint64_t)t->options->seed, KI_RNG_SPLIT, 0x5a4e, (uint32_t)label);
    return share >= 1 || ki_rng_double(&rng) < share;
}

kith_status ki_tune_select(const ki_tune *t, const ki_tune_folds *f, int fold, bool held, double share,
                           ki_items *ret, kith_error *err) {
    *ret = (ki_items){0};
    KI_TRY(ki_alloc_or(&ret->item, (size_t)t->learn.n + 1, sizeof *ret->item, "items", err));
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[i];
        if (!t->is_sound[item] || (f->fold_of[item] == fold) != held) continue;
        if (!held && !is_in_share(t, f->by_photo ? (int32_t)item : t->set->item[item].label, share)) continue;
        ret->item[ret->n++] = item;
    }
    return KITH_OK;
}
