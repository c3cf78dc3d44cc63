/* New items into the groups that are there.
 *
 * A new item has its list, and so have the nearest of its neighbours, which are searched again: how alike they are is then known as it is to
 * the whole grouping, for four searches an item. Among them the tree grows with the earlier groups as seeds, so that an item joins one, or
 * several that were alone found another; two groups never become one here. When much is new, all of it is grouped again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/group.h"
#include "search/notes.h"

enum {
    N_NEXT = 3,
    /* neighbours whose lists are looked for */ MOST_PART =
        4 /* of the items: new ones, else all are grouped */
};

typedef struct follower {
    const kith_index *index;
    ki_groups_kept kept;
    int64_t *all, n_all;   /* ids */
    int64_t n_new;         /* the last of them */
    int64_t *node, n_node; /* [n_node] ids that have a list, ascending: new items and their neighbours */
    int64_t *row, n_rows;  /* [n_rows] ids: the nodes, and after them what is in their lists alone */
    int64_t *near, k;      /* [n_node, k] */
    double *score;         /* [n_node, k] */
    int64_t *before, *number, *seed, *group, *size, *number_of;
    bool *is_chosen;
    ki_group_tree tree;
} follower;

static void follower_release(follower *f) {
    kith_ids_free(f->all);
    ki_free(f->node);
    ki_free(f->row);
    ki_free(f->near);
    ki_free(f->score);
    ki_free(f->before);
    ki_free(f->number);
    ki_free(f->seed);
    ki_free(f->group);
    ki_free(f->size);
    ki_free(f->number_of);
    ki_free(f->is_chosen);
    ki_group_tree_release(&f->tree);
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sort, and keep one of each. */
static int64_t unique(int64_t *values, int64_t n) {
    int64_t n_kept = 0;
    if (n > 0) qsort(values, (size_t)n, sizeof *values, by_value);
    for (int64_t i = 0; i < n; i++) {
        if (n_kept == 0 || values[i] != values[n_kept - 1]) values[n_kept++] = values[i];
    }
    return n_kept;
}

static kith_status find_nodes(follower *f, kith_error *err) {
    const ki_near_options how = {.k = f->k, .least = NAN};
    const int64_t *new = f->all + f->n_all - f->n_new;
    KI_TRY(ki_alloc_or(&f->near, (size_t)f->n_new * (N_NEXT + 1), (size_t)f->k * sizeof *f->near,
                       "neighbours", err));
    KI_TRY(ki_alloc_or(&f->score, (size_t)f->n_new * (N_NEXT + 1), (size_t)f->k * sizeof *f->score,
                       "neighbours", err));
    KI_TRY(ki_alloc_or(&f->node, (size_t)f->n_new * (N_NEXT + 1), sizeof *f->node, "items", err));
    KI_TRY(ki_groups_near(f->index, new, f->n_new, &how, f->near, f->score, err));
    for (int64_t i = 0; i < f->n_new; i++) {
        f->node[f->n_node++] = new[i];
        for (int64_t r = 0; r < N_NEXT && r < f->k; r++) {
            const int64_t id = f->near[i * f->k + r];
            if (id >= 0) f->node[f->n_node++] = id;
        }
    }
    f->n_node = unique(f->node, f->n_node);
    return KITH_OK;
}

/* Lists of all nodes, by rows: first the nodes, then what else is in lists. */
static kith_status find_lists(follower *f, kith_error *err) {
    const ki_near_options how = {.k = f->k, .least = f->kept.least_score};
    const int64_t n_entries = f->n_node * f->k;
    int64_t n_others = 0;
    KI_TRY(ki_groups_near(f->index, f->node, f->n_node, &how, f->near, f->score, err));
    KI_TRY(ki_alloc_or(&f->row, (size_t)(f->n_node + n_entries), sizeof *f->row, "items", err));
    memcpy(f->row, f->node, (size_t)f->n_node * sizeof *f->row);
    int64_t *other = f->row + f->n_node;
    for (int64_t i = 0; i < n_entries; i++) {
        if (f->near[i] >= 0 && ki_groups_place_of(f->node, f->n_node, f->near[i]) < 0)
            other[n_others++] = f->near[i];
    }
    n_others = unique(other, n_others);
    f->n_rows = f->n_node + n_others;
    for (int64_t i = 0; i < n_entries; i++) {
        if (f->near[i] < 0) continue;
        const int64_t at = ki_groups_place_of(f->node, f->n_node, f->near[i]);
        f->near[i] = at >= 0 ? at : f->n_node + ki_groups_place_of(other, n_others, f->near[i]);
    }
    return KITH_OK;
}

/* The nodes of one earlier group have the first of them as seed. */
static kith_status plant(follower *f, kith_error *err) {
    const size_t n = (size_t)f->n_node;
    KI_TRY(ki_alloc_or(&f->before, n, sizeof *f->before, "groups", err));
    KI_TRY(ki_alloc_or(&f->number, n, sizeof *f->number, "groups", err));
    KI_TRY(ki_alloc_or(&f->seed, n, sizeof *f->seed, "groups", err));
    KI_TRY(ki_alloc_or(&f->group, n, sizeof *f->group, "groups", err));
    KI_TRY(ki_zalloc_or(&f->size, n, sizeof *f->size, "groups", err));
    KI_TRY(ki_zalloc_or(&f->number_of, n, sizeof *f->number_of, "groups", err));
    KI_TRY(ki_alloc_or(&f->is_chosen, n, sizeof *f->is_chosen, "groups", err));
    KI_TRY(ki_groups_numbers(f->index, f->node, f->n_node, f->before, err));
    KI_TRY(ki_groups_chosen(f->index, f->node, f->n_node, f->kept.all, f->kept.where, f->is_chosen, err));
    int64_t *sorted = f->number, n_sorted = 0;
    for (int64_t i = 0; i < f->n_node; i++) {
        if (f->before[i] > 0) sorted[n_sorted++] = f->before[i];
    }
    n_sorted = unique(sorted, n_sorted);
    for (int64_t i = 0; i < f->n_node; i++)
        f->seed[i] = f->before[i] > 0 ? ki_groups_place_of(sorted, n_sorted, f->before[i]) : -1;
    return KITH_OK;
}

static void give_numbers(follower *f, int64_t *ret_n_placed) {
    for (int64_t i = 0; i < f->n_node; i++) {
        const int64_t g = f->group[i];
        if (f->before[i] > 0) f->number_of[g] = f->before[i];
        f->size[g] += f->is_chosen[i];
    }
    for (int64_t i = 0; i < f->n_node; i++) {
        int64_t *number = &f->number_of[f->group[i]];
        f->number[i] = f->before[i];
        if (f->before[i] > 0 || !f->is_chosen[i]) continue;
        if (*number == 0 && f->size[f->group[i]] < f->kept.least) continue;
        if (*number == 0) *number = f->kept.next_number++;
        f->number[i] = *number;
        ++*ret_n_placed;
    }
}

static kith_status place(follower *f, int64_t *ret_n_placed, kith_error *err) {
    f->k = ki_groups_k(f->n_all);
    KI_TRY(find_nodes(f, err));
    KI_TRY(find_lists(f, err));
    KI_TRY(plant(f, err));
    const ki_near_lists lists = {
        .n = f->n_node, .n_rows = f->n_rows, .k = f->k, .near = f->near, .score = f->score, .seed = f->seed};
    KI_TRY(ki_group_tree_make(&lists, &f->tree, err));
    ki_group_tree_cut(&f->tree, f->kept.level, f->group);
    give_numbers(f, ret_n_placed);
    return KITH_OK;
}

static kith_status group_anew(kith_collection *c, const ki_groups_kept *kept, int64_t *ret_n_placed,
                              kith_error *err) {
    kith_status status;
    kith_groups groups = {0};
    char *where = NULL;
    KITH_OPTIONS(kith_groups_options, o);
    o.error = kept->error;
    o.least = kept->least;
    o.all = kept->all;
    if (*kept->where && !(where = ki_strdup(kept->where)))
        return ki_fail_memory(err, strlen(kept->where), "an expression");
    o.where = where;
    status = kith_collection_group(c, &o, &groups, err);
    if (status == KITH_OK) *ret_n_placed = groups.n_items - groups.n_alone;
    kith_groups_release(&groups);
    ki_free(where);
    return status == KITH_ENOTFOUND ? KITH_OK : status;
}

kith_status ki_groups_follow(kith_collection *c, int64_t *ret_n_placed, kith_error *err) {
    kith_status status;
    follower f = {.index = c->index};
    *ret_n_placed = 0;
    const char *note = ki_index_note(c->index, KI_NOTE_GROUPS);
    if (!note || !*note) return KITH_OK;
    KI_TRY(ki_groups_recall(c->index, &f.kept, err));
    KI_CHECK(kith_index_ids(c->index, NULL, &f.all, &f.n_all, err));
    while (f.n_new < f.n_all && f.all[f.n_all - 1 - f.n_new] >= f.kept.next_id) f.n_new++;
    if (f.n_new == 0) goto done;
    if (f.n_new * MOST_PART > f.n_all) {
        status = group_anew(c, &f.kept, ret_n_placed, err);
        goto done;
    }
    KI_CHECK(place(&f, ret_n_placed, err));
    f.kept.next_id = f.all[f.n_all - 1] + 1;
    KI_CHECK(ki_groups_keep(c->index, f.node, f.n_node, f.before, f.number, &f.kept, err));
    ki_collection_committed(c);
done:
    follower_release(&f);
    return status;
}
