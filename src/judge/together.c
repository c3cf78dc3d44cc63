/* A tree of groups from lists of neighbours: average linkage along chains of nearest groups.
 *
 * Lists are turned around, so that rows with a common neighbour meet there; a row that very many have in their lists lets only the first
 * holders meet. Then a chain goes from a group to the most alike one until two are each other's, which are joined. Average linkage is
 * reducible, so these are the joins that the most alike pair first would give (Murtagh 1983). */
#include "judge/together.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"

enum {
    ONE = 1 << 24,        /* likeness 1 */
    LEAST = ONE / 64,     /* pairs that are less alike count as 0 */
    MOST_HOLDERS = 128,   /* that meet in one row */
    FIRST_WEIGHT = 65536, /* of a row itself and of its first neighbour */
    FALL = 3              /* the last neighbour weighs exp(-FALL) of it */
};

/* What row `to` is to another: at first the likeness of the two, later the sum over all pairs of two groups. */
typedef struct link {
    int64_t to, sum;
} link;

typedef struct links {
    link *link;
    int64_t n;
    bool is_own; /* allocated for this group alone */
} links;

typedef struct holder {
    int64_t row;
    int32_t weight;
} holder;

typedef struct maker {
    const ki_near_lists *lists;
    int64_t n;
    int32_t *weight;     /* [n, k] of each neighbour */
    int64_t *total;      /* [n]: the weight of a list and of the row itself */
    int64_t *begin;      /* [n_rows + 2] */
    holder *holder;      /* who has a row in its list, the nearest first */
    links *row;          /* [n]: of the group that begins with this row */
    link *first;         /* all links at the beginning */
    int64_t *count, *at; /* [n + 1]: links of each row; where they begin */
    int64_t *parent;     /* [n]: union-find; the root is the group's number */
    int64_t *size;       /* [n]: rows of a root's group */
    int64_t *seed;       /* [n]: of a root; -1: none */
    int64_t *sum;        /* [n]: all 0 between calls */
    int64_t *chain;      /* [n] */
    ki_group_tree tree;
} maker;

static void maker_release(maker *m) {
    for (int64_t i = 0; m->row && i < m->n; i++) {
        if (m->row[i].is_own) ki_free(m->row[i].link);
    }
    ki_free(m->weight);
    ki_free(m->total);
    ki_free(m->begin);
    ki_free(m->holder);
    ki_free(m->row);
    ki_free(m->first);
    ki_free(m->count);
    ki_free(m->at);
    ki_free(m->parent);
    ki_free(m->size);
    ki_free(m->seed);
    ki_free(m->sum);
    ki_free(m->chain);
}

int64_t ki_groups_k(int64_t n) {
    const int64_t k = (n - 1) / 4;
    return k > KI_GROUPS_K ? KI_GROUPS_K : k < 1 ? 1 : k;
}

/* ---- how alike two rows are ---- */

static kith_status check_lists(const ki_near_lists *l, kith_error *err) {
    if (l->k < 1 || l->k > KI_GROUPS_K)
        return ki_fail(err, KITH_EINVAL, "lists have %lld neighbours; wanted 1 to %d", (long long)l->k,
                       KI_GROUPS_K);
    for (int64_t i = 0; i < l->n * l->k; i++) {
        if (l->near[i] >= -1 && l->near[i] < l->n_rows && l->near[i] != i / l->k) continue;
        return ki_fail(err, KITH_EINVAL, "row %lld has the neighbour %lld; wanted another of %lld rows",
                       (long long)(i / l->k), (long long)l->near[i], (long long)l->n_rows);
    }
    return KITH_OK;
}

/* From 1 for the first neighbour to exp(-FALL) for the last, by score: what is as near as the first weighs as much. In whole numbers, so that
 * sums have no order. */
static void weigh(const maker *m, int64_t i, int32_t *weight) {
    const double *score = m->lists->score + i * m->lists->k;
    int64_t last = m->lists->k - 1;
    while (last > 0 && isnan(score[last])) last--;
    const double range = fabs(score[0] - score[last]);
    for (int64_t r = 0; r < m->lists->k; r++) {
        const double part = range > 0 ? fabs(score[0] - score[r]) / range : 0;
        weight[r] = isnan(score[r]) ? 0 : (int32_t)(FIRST_WEIGHT * exp(-FALL * part) + 0.5);
    }
}

static void weigh_lists(void *context, int64_t begin, int64_t end) {
    const maker *m = context;
    for (int64_t i = begin; i < end; i++) {
        int32_t *weight = m->weight + i * m->lists->k;
        weigh(m, i, weight);
        m->total[i] = FIRST_WEIGHT;
        for (int64_t r = 0; r < m->lists->k; r++) m->total[i] += weight[r];
    }
}

static kith_status set_weights(maker *m, kith_error *err) {
    KI_TRY(ki_alloc_or(&m->total, (size_t)m->n, sizeof *m->total, "lists", err));
    KI_TRY(ki_alloc_or(&m->weight, (size_t)m->n, (size_t)m->lists->k * sizeof *m->weight, "lists", err));
    ki_parallel_for(m->n, 256, weigh_lists, m);
    return KITH_OK;
}

static kith_status turn_around(maker *m, kith_error *err) {
    const ki_near_lists *l = m->lists;
    KI_TRY(ki_zalloc_or(&m->begin, (size_t)l->n_rows + 2, sizeof *m->begin, "lists", err));
    KI_TRY(ki_alloc_or(&m->holder, (size_t)m->n * (size_t)(l->k + 1), sizeof *m->holder, "lists", err));
    int64_t *end = m->begin + 1; /* end[i] grows from the beginning of row i to its end */
    for (int64_t i = 0; i < m->n * l->k; i++) {
        if (l->near[i] >= 0) end[l->near[i] + 1]++;
    }
    for (int64_t i = 0; i < l->n_rows; i++) end[i + 1] += end[i] + (i < m->n); /* itself, too */
    for (int64_t i = 0; i < m->n; i++) m->holder[end[i]++] = (holder){i, FIRST_WEIGHT};
    for (int64_t r = 0; r < l->k; r++) {
        for (int64_t i = 0; i < m->n; i++) {
            const int64_t to = l->near[i * l->k + r];
            if (to >= 0) m->holder[end[to]++] = (holder){i, m->weight[i * l->k + r]};
        }
    }
    return KITH_OK;
}

/* Memory for one thread's rows. */
typedef struct common {
    int64_t *weight; /* [n]: shared with a row; all 0 between rows */
    int64_t *met;    /* [n]: rows whose weight is not 0 */
} common;

typedef struct linking {
    maker *m;
    common *of; /* one for each run of rows */
    int64_t n_a_run;
    bool counts; /* only count the links; else write them */
} linking;

/* The rows that holder `mine` of `row` meets there. */
static int64_t meet(const maker *m, int64_t i, int64_t row, int32_t mine, common *c, int64_t n_met) {
    const int64_t n = m->begin[row + 1] - m->begin[row], most = n < MOST_HOLDERS ? n : MOST_HOLDERS;
    for (int64_t h = 0; h < most; h++) {
        const holder other = m->holder[m->begin[row] + h];
        if (other.row == i) continue;
        if (c->weight[other.row] == 0) c->met[n_met++] = other.row;
        c->weight[other.row] += other.weight < mine ? other.weight : mine;
    }
    return n_met;
}

/* Is row i among the holders of `row` that meet? Both of a pair must see the same, or their links would differ. */
static bool is_held(const maker *m, int64_t i, int64_t row) {
    const int64_t n = m->begin[row + 1] - m->begin[row];
    if (n <= MOST_HOLDERS) return true;
    for (int64_t h = 0; h < MOST_HOLDERS; h++) {
        if (m->holder[m->begin[row] + h].row == i) return true;
    }
    return false;
}

static void link_row(const linking *how, int64_t i, common *c) {
    maker *m = how->m;
    const int64_t k = m->lists->k, *near = m->lists->near + i * k;
    int64_t n_met = is_held(m, i, i) ? meet(m, i, i, FIRST_WEIGHT, c, 0) : 0, n_links = 0;
    for (int64_t r = 0; r < k; r++) {
        if (near[r] >= 0 && is_held(m, i, near[r]))
            n_met = meet(m, i, near[r], m->weight[i * k + r], c, n_met);
    }
    for (int64_t j = 0; j < n_met; j++) {
        const int64_t to = c->met[j], both = c->weight[to];
        const int64_t sum = both * ONE / (m->total[i] + m->total[to] - both);
        c->weight[to] = 0;
        if (sum < LEAST) continue;
        if (!how->counts) m->first[m->at[i] + n_links] = (link){to, sum};
        n_links++;
    }
    m->count[i] = n_links;
}

static void link_runs(void *context, int64_t begin, int64_t end) {
    const linking *how = context;
    for (int64_t run = begin; run < end; run++) {
        const int64_t first = run * how->n_a_run, after = first + how->n_a_run;
        for (int64_t i = first; i < after && i < how->m->n; i++) link_row(how, i, &how->of[run]);
    }
}

static kith_status link_rows(maker *m, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n_runs = ki_threads();
    linking how = {.m = m, .n_a_run = (m->n + n_runs - 1) / n_runs, .counts = true};
    KI_CHECK(ki_zalloc_or(&how.of, (size_t)n_runs, sizeof *how.of, "links", err));
    for (int64_t i = 0; i < n_runs; i++) {
        KI_CHECK(ki_zalloc_or(&how.of[i].weight, (size_t)m->n, sizeof *how.of->weight, "links", err));
        KI_CHECK(ki_alloc_or(&how.of[i].met, (size_t)m->n, sizeof *how.of->met, "links", err));
    }
    KI_CHECK(ki_alloc_or(&m->count, (size_t)m->n, sizeof *m->count, "links", err));
    KI_CHECK(ki_zalloc_or(&m->at, (size_t)m->n + 1, sizeof *m->at, "links", err));
    ki_parallel_for(n_runs, 1, link_runs, &how);
    for (int64_t i = 0; i < m->n; i++) m->at[i + 1] = m->at[i] + m->count[i];
    KI_CHECK(ki_alloc_or(&m->first, (size_t)m->at[m->n], sizeof *m->first, "links", err));
    how.counts = false;
    ki_parallel_for(n_runs, 1, link_runs, &how);
done:
    for (int64_t i = 0; how.of && i < n_runs; i++) {
        ki_free(how.of[i].weight);
        ki_free(how.of[i].met);
    }
    ki_free(how.of);
    return status;
}

/* ---- groups ---- */

static int64_t root_of(int64_t *parent, int64_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

static double mean_of(const maker *m, int64_t a, int64_t b, int64_t sum) {
    return (double)sum / ONE / ((double)m->size[a] * (double)m->size[b]);
}

/* Add up the links of some rows by the groups that they lead to now, but for those to group `own`; into `to`, which may be `from`. */
static int64_t add_up(maker *m, int64_t own, const link *from, int64_t n, link *to, int64_t n_to) {
    for (int64_t i = 0; i < n; i++) {
        const link one = from[i];
        const int64_t root = root_of(m->parent, one.to);
        if (root == own) continue;
        if (m->sum[root] == 0) to[n_to++].to = root;
        m->sum[root] += one.sum;
    }
    return n_to;
}

static void write_sums(maker *m, link *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        to[i].sum = m->sum[to[i].to];
        m->sum[to[i].to] = 0;
    }
}

static void compact(maker *m, int64_t a) {
    links *row = &m->row[a];
    row->n = add_up(m, a, row->link, row->n, row->link, 0);
    write_sums(m, row->link, row->n);
}

/* Group a takes over b. */
static kith_status unite(maker *m, int64_t a, int64_t b, kith_error *err) {
    links *x = &m->row[a], *y = &m->row[b], both = {.is_own = true};
    KI_TRY(ki_alloc_or(&both.link, (size_t)(x->n + y->n), sizeof *both.link, "links", err));
    m->parent[b] = a;
    m->size[a] += m->size[b];
    if (m->seed[a] < 0) m->seed[a] = m->seed[b];
    both.n = add_up(m, a, x->link, x->n, both.link, 0);
    both.n = add_up(m, a, y->link, y->n, both.link, both.n);
    write_sums(m, both.link, both.n);
    if (x->is_own) ki_free(x->link);
    if (y->is_own) ki_free(y->link);
    *x = both;
    *y = (links){0};
    return KITH_OK;
}

static kith_status plant(maker *m, kith_error *err) {
    const int64_t *seed = m->lists->seed;
    int64_t *first = m->chain; /* the root of each seed; not in use yet */
    for (int64_t i = 0; i < m->n; i++) first[i] = -1;
    for (int64_t i = 0; seed && i < m->n; i++) {
        if (seed[i] >= m->n)
            return ki_fail(err, KITH_EINVAL, "row %lld has the seed %lld; wanted one below %lld",
                           (long long)i, (long long)seed[i], (long long)m->n);
        m->seed[i] = seed[i] < 0 ? -1 : seed[i];
        if (seed[i] < 0) continue;
        if (first[seed[i]] >= 0) {
            m->tree.joined[m->tree.n_joined++] = (ki_joined){first[seed[i]], i, 1};
            KI_TRY(unite(m, first[seed[i]], i, err));
        } else {
            first[seed[i]] = i;
        }
    }
    return KITH_OK;
}

static kith_status begin_groups(maker *m, kith_error *err) {
    const size_t n = (size_t)m->n;
    KI_TRY(ki_zalloc_or(&m->row, n, sizeof *m->row, "groups", err));
    KI_TRY(ki_alloc_or(&m->parent, n, sizeof *m->parent, "groups", err));
    KI_TRY(ki_alloc_or(&m->size, n, sizeof *m->size, "groups", err));
    KI_TRY(ki_alloc_or(&m->seed, n, sizeof *m->seed, "groups", err));
    KI_TRY(ki_zalloc_or(&m->sum, n, sizeof *m->sum, "groups", err));
    KI_TRY(ki_alloc_or(&m->chain, n, sizeof *m->chain, "groups", err));
    KI_TRY(ki_alloc_or(&m->tree.joined, n, sizeof *m->tree.joined, "groups", err));
    for (int64_t i = 0; i < m->n; i++) {
        m->row[i] = (links){.link = m->first + m->at[i], .n = m->count[i]};
        m->parent[i] = i;
        m->size[i] = 1;
        m->seed[i] = -1;
    }
    return plant(m, err);
}

/* The group that is most alike to a; of equals `before`, else the one with the lowest number. -1: none. */
static int64_t nearest(maker *m, int64_t a, int64_t before, double *ret_mean) {
    int64_t best = -1;
    compact(m, a);
    *ret_mean = 0;
    for (int64_t i = 0; i < m->row[a].n; i++) {
        const link one = m->row[a].link[i];
        if (m->seed[a] >= 0 && m->seed[one.to] >= 0) continue;
        const double mean = mean_of(m, a, one.to, one.sum);
        const bool is_better = best < 0 || mean > *ret_mean;
        if (!is_better && (mean < *ret_mean || best == before || (one.to > best && one.to != before)))
            continue;
        best = one.to;
        *ret_mean = mean;
    }
    return best;
}

static kith_status grow(maker *m, kith_error *err) {
    int64_t n_chain = 0, start = 0;
    while (n_chain > 0 || start < m->n) {
        if (n_chain == 0) {
            if (m->parent[start] != start) {
                start++;
                continue;
            }
            m->chain[n_chain++] = start;
        }
        const int64_t a = m->chain[n_chain - 1], before = n_chain > 1 ? m->chain[n_chain - 2] : -1;
        double mean;
        const int64_t b = nearest(m, a, before, &mean);
        if (b < 0) { /* nothing is like it: it is only at the beginning of a chain */
            n_chain--;
            start += n_chain == 0 && a == start;
        } else if (b == before) {
            const int64_t low = a < b ? a : b, high = a < b ? b : a;
            m->tree.joined[m->tree.n_joined++] = (ki_joined){low, high, mean};
            KI_TRY(unite(m, low, high, err));
            n_chain -= 2;
        } else {
            m->chain[n_chain++] = b;
        }
    }
    return KITH_OK;
}

/* ---- the tree ---- */

static void merge_sorted(const ki_joined *a, int64_t n_a, const ki_joined *b, int64_t n_b, ki_joined *to) {
    int64_t i = 0, j = 0;
    while (i < n_a || j < n_b)
        *to++ = j == n_b || (i < n_a && a[i].likeness >= b[j].likeness) ? a[i++] : b[j++];
}

/* The most alike first; what is equal stays in order, so that a group comes before the larger one that holds it. */
static kith_status sort_tree(ki_group_tree *tree, kith_error *err) {
    ki_joined *other = NULL;
    const int64_t n = tree->n_joined;
    KI_TRY(ki_alloc_or(&other, (size_t)n, sizeof *other, "groups", err));
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            const int64_t middle = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;
            merge_sorted(tree->joined + i, middle - i, tree->joined + middle, end - middle, other + i);
        }
        ki_joined *swap = tree->joined;
        tree->joined = other;
        other = swap;
    }
    ki_free(other);
    return KITH_OK;
}

kith_status ki_group_tree_make(const ki_near_lists *lists, ki_group_tree *ret_tree, kith_error *err) {
    kith_status status = KITH_OK;
    maker m = {.lists = lists, .n = lists->n, .tree = {.n = lists->n}};
    KI_CHECK(check_lists(lists, err));
    KI_CHECK(set_weights(&m, err));
    KI_CHECK(turn_around(&m, err));
    KI_CHECK(link_rows(&m, err));
    KI_CHECK(begin_groups(&m, err));
    KI_CHECK(grow(&m, err));
    KI_CHECK(sort_tree(&m.tree, err));
    *ret_tree = m.tree;
done:
    maker_release(&m);
    if (status != KITH_OK) ki_group_tree_release(&m.tree);
    return status;
}

void ki_group_tree_release(ki_group_tree *tree) {
    ki_free(tree->joined);
    *tree = (ki_group_tree){0};
}

void ki_group_tree_cut(const ki_group_tree *tree, double least, int64_t *ret_group) {
    for (int64_t i = 0; i < tree->n; i++) ret_group[i] = i;
    for (int64_t i = 0; i < tree->n_joined && tree->joined[i].likeness >= least; i++) {
        const int64_t a = root_of(ret_group, tree->joined[i].a), b = root_of(ret_group, tree->joined[i].b);
        ret_group[a > b ? a : b] = a < b ? a : b;
    }
    for (int64_t i = 0; i < tree->n; i++) ret_group[i] = root_of(ret_group, i);
}
