/* Valid-triplet hard mining: keep negatives more similar than the least similar positive minus a
 * margin, and positives less similar than the most similar negative plus the margin. An anchor without
 * a positive or without a negative keeps nothing.
 *
 * Source: unified view Sec. 5.1 (margin 0.1). */
#include "objective/miner/vthm.h"

#include <string.h>

#include "objective/miner/miner.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_vthm_settings, margin, 0.1, -1e6, 1e6, "how far a pair may be from breaking the order",
                   "unified view Sec. 6"),
    KI_OPTION_END};

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_real margin = (ki_real)((const ki_vthm_settings *)context)->margin;
    const ki_vec *vec = pairs->vec;
    if (row->n_pos == 0 || row->n_neg == 0) {
        memset(row->pair, KI_PAIR_NONE, (size_t)row->n);
        pairs->n_pos[row->i] = pairs->n_neg[row->i] = 0;
        return 0;
    }
    const ki_real least = vec->min(row->s, row->pair, KI_PAIR_POSITIVE, row->n);
    const ki_real most = vec->max(row->s, row->pair, KI_PAIR_NEGATIVE, row->n);
    pairs->n_neg[row->i] =
        vec->prune(row->s, KI_PAIR_NEGATIVE, least - margin, KI_REAL_MAX, row->pair, row->n);
    pairs->n_pos[row->i] =
        vec->prune(row->s, KI_PAIR_POSITIVE, -KI_REAL_MAX, most + margin, row->pair, row->n);
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    return ki_pairs_rows(pairs, NULL, row_mine, settings, NULL, NULL, err);
}

const ki_miner ki_miner_vthm = {
    .method = {.name = "vthm",
               .summary = "valid-triplet hard mining: pairs within a margin of breaking the order",
               .source = "unified view Sec. 5.1; multi-similarity mining",
               .options = options,
               .settings_bytes = sizeof(ki_vthm_settings)},
    .mine = mine,
};
