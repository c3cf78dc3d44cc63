/* Triplets of one anchor, without a list of triplets.
 *
 *     ki_anchor a;
 *     ki_anchor_gather(pairs, row, &a);
 *     for (p = 0; p < a.n_pos; p++) {
 *         ki_negatives q = ki_anchor_negatives(&a, p);
 *         for (k = q.begin; k < q.end; k++)
 *             if (a.neg_key[k] > q.low && a.neg_key[k] < q.high) … a.pos_s[p], a.neg_s[k] …
 *     }
 *
 * covers every rule a miner may have set. */
#ifndef KI_OBJECTIVE_TRIPLETS_H
#define KI_OBJECTIVE_TRIPLETS_H

#include "objective/pair/pairs.h"

/* The kept positives and negatives of a row, packed, in column order. All arrays are in the row's scratch;
 * spare [n_pos + n_neg] is cleared and free for the caller's use. */
typedef struct ki_anchor {
    const ki_pairs *pairs;
    int64_t i, n_pos, n_neg;
    int32_t *pos, *neg;               /* columns */
    ki_real *pos_s, *neg_s;           /* s at those columns */
    const ki_real *pos_key, *neg_key; /* squared distances under a WINDOW rule, else s again */
    ki_real *pos_spare, *neg_spare;
} ki_anchor;

void ki_anchor_gather(const ki_pairs *pairs, const ki_row *row, ki_anchor *ret_anchor);

/* Which negatives go with the p-th positive: those in [begin, end) with low < neg_key < high. */
typedef struct ki_negatives {
    int64_t begin, end;
    ki_real low, high;
} ki_negatives;

ki_negatives ki_anchor_negatives(const ki_anchor *anchor, int64_t p);

#endif
