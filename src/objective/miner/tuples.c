/* N-pair tuples: for each anchor, one random negative of every other class, and its positives, all or one.
 *
 * Every column of a row has a lot, the number at its place in the random stream of (seed, step, row). Of each class the
 * column with the highest lot stays, the first of equals. If a batch has more than two images per class, this gives the
 * N-pair loss as published, which compares an anchor with its positive and one item of each other class. With the
 * angular loss it gives the N-pair form of that paper.
 *
 * Sources: Sohn, NIPS 2016; DML-DA Eq. 4; Wang et al., ICCV 2017, Eq. 7. */
#include "objective/miner/tuples.h"

#include <string.h>

#include "base/rng.h"
#include "objective/miner/miner.h"

static const char *const amounts[] = {"all", "one", NULL};

static const ki_option options[] = {
    KI_OPTION_CHOICE(ki_tuples_settings, positives, KI_TUPLES_ALL, amounts,
                     "positives of an anchor that stay: all, or one that is drawn", "DML-DA Eq. 4"),
    KI_OPTION_END};

/* The best column of each class so far, found by label: open addressing over 2 n or more slots. 0: empty, else the
 * column and 1. */
typedef struct best_list {
    int32_t *slot;
    uint32_t mask;
} best_list;

static int32_t *find_slot(const best_list *best, const int32_t *label, int32_t wanted) {
    uint32_t at = (uint32_t)wanted * 2654435761u & best->mask;
    while (best->slot[at] && label[best->slot[at] - 1] != wanted) at = (at + 1) & best->mask;
    return &best->slot[at];
}

static double row_mine(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const ki_tuples_settings *o = context;
    /* Lots and slots are in the row's scratch: 4 n bytes, then at most 16 n of its 24 n or more. */
    uint32_t *lot = (uint32_t *)(void *)row->scratch;
    best_list best = {.slot = (int32_t *)(void *)(lot + row->n), .mask = 1};
    while ((int64_t)best.mask + 1 < 2 * row->n) best.mask = 2 * best.mask + 1;
    memset(best.slot, 0, ((size_t)best.mask + 1) * sizeof *best.slot);
    ki_rng rng = ki_rng_at(pairs->seed, KI_RNG_MINER, (uint32_t)pairs->step, (uint32_t)row->i);
    for (int64_t j = 0; j < row->n; j++) {
        lot[j] = ki_rng_u32(&rng) >> (32 - KI_TUPLES_BITS);
        const bool is_drawn = row->pair[j] == KI_PAIR_NEGATIVE ||
                              (row->pair[j] == KI_PAIR_POSITIVE && o->positives == KI_TUPLES_ONE);
        if (!is_drawn) continue;
        int32_t *found = find_slot(&best, pairs->col_label, pairs->col_label[j]);
        const int32_t before = *found - 1;
        if (before >= 0) row->pair[lot[j] > lot[before] ? before : j] = KI_PAIR_NONE;
        if (before < 0 || lot[j] > lot[before]) *found = (int32_t)j + 1;
    }
    return 0;
}

static kith_status mine(const void *settings, ki_pairs *pairs, kith_error *err) {
    return ki_pairs_rows(pairs, NULL, row_mine, settings, NULL, NULL, err);
}

const ki_miner ki_miner_tuples = {
    .method = {.name = "tuples",
               .summary = "per anchor one negative of every other class, drawn",
               .source = "Sohn, NIPS 2016; DML-DA Eq. 4",
               .options = options,
               .settings_bytes = sizeof(ki_tuples_settings)},
    .mine = mine,
};
