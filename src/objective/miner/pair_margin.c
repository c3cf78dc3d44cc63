/* Pair margins: positives farther apart than pos_margin, negatives nearer than neg_margin, by plain
 * Euclidean distance. The pairs that a contrastive loss with these margins would act on. */
#include "objective/miner/pair_margin.h"

#include "objective/miner/miner.h"

static const ki_option options[] = {KI_OPTION_REAL(ki_pair_margin_settings, pos_margin, 0.2, 0, 1e6,
                                                   "nearer positives are dropped", "common: 0.2"),
                                    KI_OPTION_REAL(ki_pair_margin_settings, neg_margin, 0.8, 0, 1e6,
                                                   "farther negatives are dropped", "common: 0.8"),
                                    KI_OPTION_END};

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_pair_margin_settings *o = context;
    const double pos = o->pos_margin * o->pos_margin, neg = o->neg_margin * o->neg_margin;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE) continue;
        const double d = (double)ki_pairs_sqdist(pairs, row->i, j);
        if (row->pair[j] == KI_PAIR_POSITIVE ? !(d > pos) : !(d < neg)) row->pair[j] = KI_PAIR_NONE;
    }
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    return ki_pairs_rows(pairs, NULL, row_mine, settings, NULL, NULL, err);
}

const ki_miner ki_miner_pair_margin = {
    .method = {.name = "pair_margin",
               .summary = "positives beyond one distance, negatives within another",
               .source = "the active pairs of a contrastive loss",
               .options = options,
               .settings_bytes = sizeof(ki_pair_margin_settings)},
    .mine = mine,
};
