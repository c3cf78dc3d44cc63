/* Which level of a tree of groups: by labels that are known, or by what other collections needed. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "judge/together.h"

enum { LEAST_PAIRS = 100 };

typedef struct labelled {
    int64_t group, label;
} labelled;

static int by_group(const void *a, const void *b) {
    const labelled *x = a, *y = b;
    if (x->group != y->group) return x->group > y->group ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

static int64_t pairs_of(int64_t n) { return n * (n - 1) / 2; }

/* Pairs of one group, how many of them are of two labels, and their sums of squares over the groups. */
typedef struct counted {
    int64_t n_together, n_wrong;
    double together2, wrong2, product;
} counted;

/* The rows are sorted here. */
static counted count(labelled *row, int64_t n) {
    counted c = {0};
    if (n > 0) qsort(row, (size_t)n, sizeof *row, by_group);
    for (int64_t i = 0, end; i < n; i = end) {
        int64_t n_same = 0;
        for (end = i; end < n && row[end].group == row[i].group;) {
            const int64_t first = end;
            while (end < n && row[end].group == row[i].group && row[end].label == row[first].label) end++;
            n_same += pairs_of(end - first);
        }
        const int64_t n_here = pairs_of(end - i), n_wrong = n_here - n_same;
        c.n_together += n_here;
        c.n_wrong += n_wrong;
        c.together2 += (double)n_here * (double)n_here;
        c.wrong2 += (double)n_wrong * (double)n_wrong;
        c.product += (double)n_here * (double)n_wrong;
    }
    return c;
}

kith_status ki_group_pairs(const int64_t *group, const int64_t *label, int64_t n, ki_pairs_found *ret_found,
                           kith_error *err) {
    labelled *row = NULL;
    int64_t n_rows = 0;
    KI_TRY(ki_alloc_or(&row, (size_t)n, sizeof *row, "labels", err));
    for (int64_t i = 0; i < n; i++) {
        if (label[i] >= 0) row[n_rows++] = (labelled){group[i], label[i]};
    }
    const counted found = count(row, n_rows);
    for (int64_t i = 0; i < n_rows; i++) row[i].group = 0;
    const counted all = count(row, n_rows);
    ki_free(row);
    *ret_found = (ki_pairs_found){found.n_together, found.n_wrong, all.n_together - all.n_wrong, 0};
    if (found.n_together == 0) return KITH_OK;
    /* Of a ratio of two sums. */
    const double part = (double)found.n_wrong / (double)found.n_together;
    const double squares = found.wrong2 - 2 * part * found.product + part * part * found.together2;
    ret_found->deviation = sqrt(fmax(squares, 0)) / (double)found.n_together;
    return KITH_OK;
}

kith_status ki_group_level(const ki_group_tree *tree, const int64_t *label, double error, double *ret_level,
                           ki_pairs_found *ret_found, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *group = NULL;
    const double enough = fmax(LEAST_PAIRS, 1 / error);
    *ret_level = 0;
    KI_CHECK(ki_alloc_or(&group, (size_t)tree->n, sizeof *group, "groups", err));
    for (int step = KI_GROUPS_LEVELS; step > 0; step--) {
        ki_pairs_found found;
        const double level = (double)step / KI_GROUPS_LEVELS;
        ki_group_tree_cut(tree, level, group);
        KI_CHECK(ki_group_pairs(group, label, tree->n, &found, err));
        if ((double)found.n_together < enough) continue;
        if ((double)found.n_wrong / (double)found.n_together + 2 * found.deviation > error) continue;
        *ret_level = level;
        *ret_found = found;
    }
done:
    ki_free(group);
    return status;
}

double ki_group_level_guess(double error) {
    /* Of CUB-200-2011's classes 1 to 100, Omniglot's background and drawn glyphs, each whole and with classes of 1 to 20 pictures, in the
     * vectors of `general`: the highest level that one of the six needed (docs/adr/0183). */
    static const struct {
        double error, level;
    } known[] = {{0.01, 0.83}, {0.05, 0.82}, {0.1, 0.69}, {0.2, 0.57}, {0.5, 0.2}};
    const int n = (int)(sizeof known / sizeof known[0]);
    if (error <= known[0].error) return known[0].level;
    for (int i = 1; i < n; i++) {
        if (error > known[i].error) continue;
        const double part = log(error / known[i - 1].error) / log(known[i].error / known[i - 1].error);
        return known[i - 1].level + part * (known[i].level - known[i - 1].level);
    }
    return known[n - 1].level;
}

kith_status ki_group_level_unrefuted(const ki_group_tree *tree, const int64_t *label, double error,
                                     double least, double *ret_level, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t *group = NULL;
    KI_CHECK(ki_alloc_or(&group, (size_t)tree->n, sizeof *group, "groups", err));
    *ret_level = least;
    while (*ret_level <= 1) {
        ki_pairs_found found;
        ki_group_tree_cut(tree, *ret_level, group);
        KI_CHECK(ki_group_pairs(group, label, tree->n, &found, err));
        if ((double)found.n_wrong <= fmax(1, error * (double)found.n_together)) goto done;
        *ret_level += 1.0 / KI_GROUPS_LEVELS;
    }
    *ret_level = 2;
done:
    ki_free(group);
    return status;
}
