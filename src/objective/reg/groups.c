/* Finding the classes of a batch, and their means. */
#include "objective/reg/groups.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

kith_status ki_groups_find(const int32_t *label, int64_t m, ki_work *work, ki_groups *ret_groups,
                           kith_error *err) {
    ki_groups g = {0};
    KI_TRY(ki_work_take(work, (size_t)m, sizeof *g.label, "class labels", &g.label, err));
    KI_TRY(ki_work_take(work, (size_t)m, sizeof *g.count, "class sizes", &g.count, err));
    KI_TRY(ki_work_take(work, (size_t)m, sizeof *g.of, "class of each item", &g.of, err));
    memcpy(g.label, label, (size_t)m * sizeof *label);
    qsort(g.label, (size_t)m, sizeof *g.label, ascending);
    for (int64_t i = 0; i < m; i++) {
        if (i == 0 || g.label[i] != g.label[g.n - 1]) g.label[g.n++] = g.label[i];
    }
    memset(g.count, 0, (size_t)m * sizeof *g.count);
    for (int64_t i = 0; i < m; i++) {
        const int32_t *at = bsearch(&label[i], g.label, (size_t)g.n, sizeof *g.label, ascending);
        g.of[i] = (int32_t)(at - g.label);
        g.count[g.of[i]]++;
    }
    *ret_groups = g;
    return KITH_OK;
}

void ki_groups_mean(const ki_groups *groups, const ki_real *x, int64_t m, int64_t dim, ki_real *mean) {
    memset(mean, 0, (size_t)(groups->n * dim) * sizeof *mean);
    for (int64_t i = 0; i < m; i++) {
        ki_real *to = mean + groups->of[i] * dim;
        for (int64_t k = 0; k < dim; k++) to[k] += x[i * dim + k];
    }
    for (int64_t c = 0; c < groups->n; c++) {
        const ki_real inverse = 1 / (ki_real)groups->count[c];
        for (int64_t k = 0; k < dim; k++) mean[c * dim + k] *= inverse;
    }
}

double ki_groups_different(const ki_groups *groups, int64_t m) {
    double n = (double)m * (double)m;
    for (int64_t c = 0; c < groups->n; c++) n -= (double)groups->count[c] * (double)groups->count[c];
    return n;
}
