/* The kept pairs of a row, packed, and which of them make triplets. */
#include "objective/pair/triplets.h"

#include <math.h>
#include <string.h>

static ki_real key_of(const ki_pairs *p, int64_t i, int64_t j) {
    const ki_real s = p->s[i * p->ld + j];
    if (p->measure == KI_SQEUCLIDEAN) return s;
    if (p->measure == KI_EUCLIDEAN) return s * s;
    return ki_pairs_sqdist(p, i, j);
}

void ki_anchor_gather(const ki_pairs *pairs, const ki_row *row, ki_anchor *a) {
    const int64_t ld = pairs->ld;
    ki_real *values = row->scratch, *keys = values + ld, *spare = keys + ld;
    int32_t *columns = (int32_t *)(void *)(spare + ld);
    *a = (ki_anchor){.pairs = pairs, .i = row->i, .n_pos = row->n_pos, .n_neg = row->n_neg};
    a->pos = columns, a->neg = columns + a->n_pos;
    a->pos_s = values, a->neg_s = values + a->n_pos;
    a->pos_spare = spare, a->neg_spare = spare + a->n_pos;
    int64_t n_pos = 0, n_neg = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_POSITIVE)
            a->pos[n_pos++] = (int32_t)j;
        else if (row->pair[j] == KI_PAIR_NEGATIVE)
            a->neg[n_neg++] = (int32_t)j;
    }
    for (int64_t k = 0; k < n_pos + n_neg; k++) values[k] = row->s[columns[k]];
    memset(spare, 0, (size_t)(n_pos + n_neg) * sizeof *spare);
    if (pairs->rule == KI_TRIPLETS_WINDOW) {
        for (int64_t k = 0; k < n_pos + n_neg; k++) keys[k] = key_of(pairs, row->i, columns[k]);
    } else {
        keys = values;
    }
    a->pos_key = keys, a->neg_key = keys + n_pos;
}

ki_negatives ki_anchor_negatives(const ki_anchor *a, int64_t p) {
    ki_negatives q = {.begin = 0, .end = a->n_neg, .low = (ki_real)-INFINITY, .high = (ki_real)INFINITY};
    const ki_pairs *pairs = a->pairs;
    if (pairs->rule == KI_TRIPLETS_WINDOW) {
        q.low = a->pos_key[p] + pairs->low;
        q.high = a->pos_key[p] + pairs->high;
    } else if (pairs->rule == KI_TRIPLETS_PICKED) {
        const int32_t column = pairs->pick[pairs->pick_start[a->i] + p];
        q.end = 0;
        for (int64_t k = 0; k < a->n_neg; k++) {
            if (a->neg[k] == column) q.begin = k, q.end = k + 1;
        }
    }
    return q;
}
