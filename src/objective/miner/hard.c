/* Batch-hard: per anchor the farthest positive and the nearest negative, the first of equals. Anchors
 * that lack one of them keep nothing.
 *
 * Source: Hermans et al., In Defense of the Triplet Loss, 2017. */
#include "objective/miner/miner.h"

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    (void)context;
    int64_t farthest = -1, nearest = -1;
    ki_real most = -1, least = KI_REAL_MAX;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE) continue;
        const ki_real d = ki_pairs_sqdist(pairs, row->i, j);
        if (row->pair[j] == KI_PAIR_POSITIVE && d > most) most = d, farthest = j;
        if (row->pair[j] == KI_PAIR_NEGATIVE && d < least) least = d, nearest = j;
    }
    for (int64_t j = 0; j < row->n; j++) row->pair[j] = KI_PAIR_NONE;
    if (farthest < 0 || nearest < 0) return 0;
    row->pair[farthest] = KI_PAIR_POSITIVE;
    row->pair[nearest] = KI_PAIR_NEGATIVE;
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    return ki_pairs_rows(pairs, NULL, row_mine, settings, NULL, NULL, err);
}

const ki_miner ki_miner_hard = {
    .method = {.name = "hard",
               .summary = "per anchor the farthest positive and the nearest negative",
               .source = "Hermans et al., 2017",
               .options = ki_no_options},
    .mine = mine,
};
