/* All groups of a collection: lists of neighbours, a tree, a level of it, and numbers that groups keep. */
#include "kith/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/argument.h"
#include "collection/group.h"
#include "search/index_handle.h"

enum { LEAST_LABELS = 10 }; /* with which the error is measured */

KI_OPTIONS_INIT(kith_groups_options, .error = 0.01, .least = 2)

typedef struct grouping {
    const kith_groups_options *options;
    kith_collection *collection;
    const kith_index *index;
    int64_t *ids, n;
    bool *is_chosen; /* [n] */
    int64_t *label;  /* [n]; -1: none */
    int64_t n_labels;
    int64_t *near, k; /* [n, k] */
    double *score;    /* [n, k] */
    ki_group_tree tree;
    int64_t *group;           /* [n]: by the tree's cut */
    int64_t *before, *number; /* [n]: 0: none */
    ki_groups_kept kept;
    kith_groups found;
} grouping;

static void grouping_release(grouping *g) {
    kith_ids_free(g->ids);
    ki_free(g->is_chosen);
    ki_free(g->label);
    ki_free(g->near);
    ki_free(g->score);
    ki_group_tree_release(&g->tree);
    ki_free(g->group);
    ki_free(g->before);
    ki_free(g->number);
    kith_groups_release(&g->found);
}

/* ---- items ---- */

typedef struct labelled {
    const char *label;
    int64_t at;
} labelled;

static int by_label(const void *a, const void *b) {
    return strcmp(((const labelled *)a)->label, ((const labelled *)b)->label);
}

static kith_status number_labels(grouping *g, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    const char **text = NULL;
    labelled *order = NULL;
    int64_t n = 0;
    KI_CHECK(ki_zalloc_or(&text, (size_t)g->n, sizeof *text, "labels", err));
    KI_CHECK(ki_alloc_or(&order, (size_t)g->n, sizeof *order, "labels", err));
    KI_CHECK(ki_index_labels(g->index, g->ids, g->n, &arena, text, err));
    for (int64_t i = 0; i < g->n; i++) {
        g->label[i] = -1;
        if (text[i] && *text[i]) order[n++] = (labelled){text[i], i};
    }
    if (n > 0) qsort(order, (size_t)n, sizeof *order, by_label);
    for (int64_t i = 0; i < n; i++) {
        g->n_labels += i == 0 || strcmp(order[i].label, order[i - 1].label) != 0;
        g->label[order[i].at] = g->n_labels - 1;
    }
done:
    ki_arena_release(&arena);
    ki_free(text);
    ki_free(order);
    return status;
}

static kith_status take_items(grouping *g, kith_error *err) {
    const kith_groups_options *o = g->options;
    KI_TRY(kith_index_ids(g->index, NULL, &g->ids, &g->n, err));
    const size_t n = (size_t)g->n;
    KI_TRY(ki_alloc_or(&g->is_chosen, n, sizeof *g->is_chosen, "items", err));
    KI_TRY(ki_alloc_or(&g->label, n, sizeof *g->label, "items", err));
    KI_TRY(ki_alloc_or(&g->group, n, sizeof *g->group, "items", err));
    KI_TRY(ki_alloc_or(&g->before, n, sizeof *g->before, "items", err));
    KI_TRY(ki_alloc_or(&g->number, n, sizeof *g->number, "items", err));
    KI_TRY(ki_groups_chosen(g->index, g->ids, g->n, o->all, o->where, g->is_chosen, err));
    for (int64_t i = 0; i < g->n; i++) g->found.n_items += g->is_chosen[i];
    if (g->found.n_items > 0) return number_labels(g, err);
    if (o->where || o->all || g->n == 0)
        return ki_fail(err, KITH_ENOTFOUND, "there is no item to group, of %lld", (long long)g->n);
    ki_fail(err, KITH_ENOTFOUND, "all %lld items have a label; only what has none is grouped, unless all is",
            (long long)g->n);
    return ki_hint(err, KITH_ENOTFOUND, "ask for all");
}

/* ---- the tree, and where it is cut ---- */

static kith_status find_lists(grouping *g, kith_error *err) {
    ki_groups_progress progress = {g->options->progress, g->options->user, 0, g->n};
    g->k = ki_groups_k(g->n);
    const ki_near_options how = {.k = g->k, .least = NAN, .progress = &progress};
    KI_TRY(ki_alloc_or(&g->near, (size_t)g->n, (size_t)g->k * sizeof *g->near, "neighbours", err));
    KI_TRY(ki_alloc_or(&g->score, (size_t)g->n, (size_t)g->k * sizeof *g->score, "neighbours", err));
    KI_TRY(ki_groups_near(g->index, g->ids, g->n, &how, g->near, g->score, err));
    for (int64_t i = 0; i < g->n * g->k; i++)
        g->near[i] = g->near[i] < 0 ? -1 : ki_groups_place_of(g->ids, g->n, g->near[i]);
    return KITH_OK;
}

static kith_status grow_tree(grouping *g, kith_error *err) {
    const ki_near_lists lists = {.n = g->n, .n_rows = g->n, .k = g->k, .near = g->near, .score = g->score};
    ki_group_tree_release(&g->tree);
    return ki_group_tree_make(&lists, &g->tree, err);
}

/* Labels say it, if they are many enough. Fewer can still say that a guess is too low. */
static kith_status choose_level(grouping *g, kith_error *err) {
    ki_pairs_found pairs = {0};
    double level = 0;
    if (g->n_labels >= LEAST_LABELS)
        KI_TRY(ki_group_level(&g->tree, g->label, g->options->error, &level, &pairs, err));
    g->found.is_measured = level > 0;
    if (!g->found.is_measured) {
        level = ki_group_level_guess(g->options->error);
        KI_TRY(ki_group_level_unrefuted(&g->tree, g->label, g->options->error, level, &level, err));
    }
    ki_group_tree_cut(&g->tree, level, g->group);
    g->kept.level = g->found.level = level;
    g->found.precision = g->found.recall = NAN;
    if (!g->found.is_measured) return KITH_OK;
    g->found.n_labels = g->n_labels;
    g->found.n_pairs = pairs.n_together;
    const double n_right = (double)(pairs.n_together - pairs.n_wrong);
    g->found.precision = n_right / (double)pairs.n_together;
    g->found.recall = n_right / (double)pairs.n_same;
    return KITH_OK;
}

/* ---- numbers ---- */

/* How many items of an earlier group are in a new one. */
typedef struct overlap {
    int64_t number, group, n;
} overlap;

static int by_number(const void *a, const void *b) {
    const overlap *x = a, *y = b;
    if (x->number != y->number) return x->number > y->number ? 1 : -1;
    return (x->group > y->group) - (x->group < y->group);
}

/* Numbers that groups had: of [first, end), which are one earlier group, the one where most of its items are gets the number, unless it has
 * a lower one. */
static void inherit(const overlap *row, int64_t n, int64_t *number_of) {
    int64_t best = -1, most = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && row[end].group == row[i].group;) end++;
        if (end - i > most) best = row[i].group;
        if (end - i > most) most = end - i;
    }
    if (best >= 0 && number_of[best] == 0) number_of[best] = row[0].number;
}

static kith_status give_numbers(grouping *g, kith_error *err) {
    kith_status status;
    int64_t *size = NULL, *number_of = NULL, n = 0;
    overlap *row = NULL;
    KI_CHECK(ki_zalloc_or(&size, (size_t)g->n, sizeof *size, "groups", err));
    KI_CHECK(ki_zalloc_or(&number_of, (size_t)g->n, sizeof *number_of, "groups", err));
    KI_CHECK(ki_alloc_or(&row, (size_t)g->n, sizeof *row, "groups", err));
    for (int64_t i = 0; i < g->n; i++) size[g->group[i]] += g->is_chosen[i];
    for (int64_t i = 0; i < g->n; i++) {
        if (g->before[i] > 0 && g->is_chosen[i] && size[g->group[i]] >= g->options->least)
            row[n++] = (overlap){g->before[i], g->group[i], 1};
    }
    if (n > 0) qsort(row, (size_t)n, sizeof *row, by_number);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && row[end].number == row[i].number;) end++;
        inherit(row + i, end - i, number_of);
    }
    for (int64_t i = 0; i < g->n; i++) {
        int64_t *number = &number_of[g->group[i]];
        g->number[i] = 0;
        if (!g->is_chosen[i]) continue;
        const bool is_alone = size[g->group[i]] < g->options->least;
        g->found.n_alone += is_alone;
        if (is_alone) continue;
        g->found.n_new += *number == 0;
        if (*number == 0) *number = g->kept.next_number++;
        g->number[i] = *number;
    }
done:
    ki_free(size);
    ki_free(number_of);
    ki_free(row);
    return status;
}

/* ---- all of it ---- */

static kith_status keep(grouping *g, kith_error *err) {
    kith_collection *c = g->collection;
    const kith_groups_options *o = g->options;
    if (c->mode != KITH_INDEX_WRITE) return KITH_OK;
    g->kept.error = o->error;
    g->kept.least = o->least;
    g->kept.all = o->all;
    g->kept.next_id = g->n > 0 ? g->ids[g->n - 1] + 1 : 0;
    const char *where = o->where ? o->where : "";
    g->kept.where = where;
    const kith_status status = ki_groups_keep(c->index, g->ids, g->n, g->before, g->number, &g->kept, err);
    if (status == KITH_OK)
        ki_collection_committed(c);
    else
        ki_collection_drop(c);
    return status;
}

static kith_status check_options(const kith_groups_options *o, kith_error *err) {
    if (!(o->error > 0 && o->error < 1))
        return ki_fail(err, KITH_EINVAL, "the error is %g; wanted more than 0 and less than 1", o->error);
    if (o->least < 2)
        return ki_fail(err, KITH_EINVAL, "the least size of a group is %lld; wanted 2 or more",
                       (long long)o->least);
    return KITH_OK;
}

static kith_status find_level(grouping *g, kith_error *err) {
    kith_index_info info;
    kith_index_info_get(g->index, &info);
    g->kept.least_score = NAN;
    KI_TRY(find_lists(g, err));
    KI_TRY(grow_tree(g, err));
    KI_TRY(choose_level(g, err));
    if (g->found.is_measured) return KITH_OK;
    /* An estimate: also by scores. */
    g->kept.least_score = ki_groups_least_score(g->index, g->options->error);
    if (isnan(g->kept.least_score)) return KITH_OK;
    for (int64_t i = 0; i < g->n * g->k; i++) {
        if (!ki_groups_counts(g->score[i], g->kept.least_score, info.metric)) g->near[i] = -1;
    }
    KI_TRY(grow_tree(g, err));
    ki_group_tree_cut(&g->tree, g->kept.level, g->group);
    return KITH_OK;
}

kith_status kith_collection_group(kith_collection *collection, const kith_groups_options *options,
                                  kith_groups *ret_groups, kith_error *err) {
    KI_NEED(err, collection, ret_groups);
    KI_OPTIONS_TAKE(kith_groups_options, o, options, err);
    kith_status status;
    grouping g = {.options = &o, .collection = collection};
    KI_TRY(check_options(&o, err));
    KI_TRY(collection->mode == KITH_INDEX_WRITE ? ki_collection_begin(collection, err)
                                                : ki_collection_ready(collection, err));
    g.index = collection->index;
    KI_CHECK(ki_groups_recall(g.index, &g.kept, err));
    KI_CHECK(take_items(&g, err));
    KI_CHECK(ki_groups_numbers(g.index, g.ids, g.n, g.before, err));
    KI_CHECK(find_level(&g, err));
    KI_CHECK(give_numbers(&g, err));
    KI_CHECK(ki_groups_list(g.index, g.ids, g.number, g.n, &g.found, err));
    KI_CHECK(keep(&g, err));
    g.found.error = o.error;
    *ret_groups = g.found;
    g.found = (kith_groups){0};
done:
    grouping_release(&g);
    return status;
}

void kith_groups_release(kith_groups *groups) {
    if (!groups) return;
    ki_free(groups->groups);
    ki_free(groups->begin);
    ki_free(groups->ids);
    *groups = (kith_groups){0};
}
