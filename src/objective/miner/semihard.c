/* Semi-hard triplets: those with D_ap < D_an < D_ap + margin, D squared Euclidean. The negative is
 * farther than the positive, but not by the margin.
 *
 * A pair is kept when it takes part in at least one of them.
 * Source: Schroff et al., FaceNet, CVPR 2015. */
#include "objective/miner/semihard.h"

#include "objective/miner/miner.h"
#include "objective/pair/triplets.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_semihard_settings, margin, 0.1, 0, 1e6, "width of the band behind the positive",
                   "FaceNet: 0.2; ECAML: 0.1"),
    KI_OPTION_END};

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    (void)context;
    ki_anchor a;
    ki_anchor_gather(pairs, row, &a);
    for (int64_t p = 0; p < a.n_pos; p++) {
        const ki_negatives q = ki_anchor_negatives(&a, p);
        for (int64_t k = q.begin; k < q.end; k++) {
            if (!(a.neg_key[k] > q.low && a.neg_key[k] < q.high)) continue;
            a.pos_spare[p] = 1;
            a.neg_spare[k] = 1;
        }
    }
    for (int64_t p = 0; p < a.n_pos; p++) {
        if (a.pos_spare[p] == 0) row->pair[a.pos[p]] = KI_PAIR_NONE;
    }
    for (int64_t k = 0; k < a.n_neg; k++) {
        if (a.neg_spare[k] == 0) row->pair[a.neg[k]] = KI_PAIR_NONE;
    }
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    pairs->rule = KI_TRIPLETS_WINDOW;
    pairs->low = 0;
    pairs->high = (ki_real)((const ki_semihard_settings *)settings)->margin;
    return ki_pairs_rows(pairs, NULL, row_mine, settings, NULL, NULL, err);
}

const ki_miner ki_miner_semihard = {
    .method = {.name = "semihard",
               .summary = "triplets whose negative is farther than the positive, but not by the margin",
               .source = "Schroff et al., FaceNet, CVPR 2015",
               .options = options,
               .settings_bytes = sizeof(ki_semihard_settings)},
    .mine = mine,
};
