/* Distance-weighted sampling: for every positive pair one negative, drawn with a probability inverse to the
 * density of points at its distance on the sphere, so that all distances are equally likely.
 *
 *   q(d) ~ d^(dim - 2) (1 - d^2 / 4)^((dim - 3) / 2),  chance ~ 1 / q(d), d cut off from below at `cutoff`
 *   and negatives beyond `nonzero_loss_cutoff` never drawn (when an anchor has no other, uniformly).
 *
 * Pair losses see every positive and the negatives drawn, each once.
 * Source: Wu et al., Sampling Matters in Deep Embedding Learning, ICCV 2017. */
#include "objective/miner/distance_weighted.h"

#include <math.h>

#include "base/rng.h"
#include "objective/miner/miner.h"

static const ki_option options[] = {
    KI_OPTION_REAL(ki_distance_weighted_settings, cutoff, 0.5, 1e-3, 2, "nearer negatives count as this far",
                   "Wu et al.: 0.5"),
    KI_OPTION_REAL(ki_distance_weighted_settings, nonzero_loss_cutoff, 1.4, 0, 1e6,
                   "farther negatives are not drawn", "Wu et al.'s code: 1.4"),
    KI_OPTION_END};

typedef struct pass {
    const ki_distance_weighted_settings *o;
    ki_pairs *pairs;
} pass;

/* ln of the chance at squared distance d2, up to a constant. */
static double ln_chance(double d2, double dim, double cutoff) {
    const double d = sqrt(d2) > cutoff ? sqrt(d2) : cutoff;
    const double rest = 1 - 0.25 * d * d;
    return (2 - dim) * log(d) - 0.5 * (dim - 3) * log(rest > 1e-8 ? rest : 1e-8);
}

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const double limit = p->o->nonzero_loss_cutoff * p->o->nonzero_loss_cutoff;
    ki_real *sums = row->scratch; /* cumulated chances, by column */
    int32_t *pick = pairs->pick + pairs->pick_start[row->i];
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] != KI_PAIR_NEGATIVE) continue;
        const double d2 = (double)ki_pairs_sqdist(pairs, row->i, j);
        const double ln = d2 < limit ? ln_chance(d2, (double)pairs->dim, p->o->cutoff) : -INFINITY;
        sums[j] = (ki_real)ln;
        most = ln > most ? ln : most;
    }
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NEGATIVE) sum += isfinite(most) ? exp((double)sums[j] - most) : 1;
        sums[j] = (ki_real)sum;
    }
    ki_rng rng = ki_rng_at(pairs->seed, KI_RNG_MINER, (uint32_t)pairs->step, (uint32_t)row->i);
    for (int64_t k = 0; k < row->n_pos; k++) {
        const ki_real at = (ki_real)(ki_rng_double(&rng) * sum);
        int64_t low = 0, high = row->n - 1; /* the first column whose sum is above `at` */
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (sums[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        while (low > 0 && row->pair[low] != KI_PAIR_NEGATIVE) low--; /* rounding at the very end */
        pick[k] = row->pair[low] == KI_PAIR_NEGATIVE ? (int32_t)low : -1;
    }
    /* Only the drawn negatives stay, and positives only if there was a negative to draw. */
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NEGATIVE || row->n_neg == 0) row->pair[j] = KI_PAIR_NONE;
    }
    for (int64_t k = 0; k < row->n_pos; k++) {
        if (pick[k] >= 0) row->pair[pick[k]] = KI_PAIR_NEGATIVE;
    }
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    const pass p = {.o = settings, .pairs = pairs};
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->m + 1, sizeof *pairs->pick_start, "picks",
                        &pairs->pick_start, err));
    KI_TRY(ki_work_take(pairs->work, (size_t)pairs->total_pos + 1, sizeof *pairs->pick, "picks", &pairs->pick,
                        err));
    pairs->pick_start[0] = 0;
    for (int64_t i = 0; i < pairs->m; i++) pairs->pick_start[i + 1] = pairs->pick_start[i] + pairs->n_pos[i];
    KI_TRY(ki_pairs_rows(pairs, NULL, row_mine, &p, NULL, NULL, err));
    pairs->rule = KI_TRIPLETS_PICKED;
    return KITH_OK;
}

const ki_miner ki_miner_distance_weighted = {
    .method = {.name = "distance_weighted",
               .summary = "one negative for each positive, drawn evenly over distances",
               .source = "Wu et al., Sampling Matters, ICCV 2017",
               .options = options,
               .settings_bytes = sizeof(ki_distance_weighted_settings)},
    .mine = mine,
};
