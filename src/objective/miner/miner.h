/* A miner: which pairs count. NAME.h has its settings, NAME.c one record `ki_miner_NAME`, NAME.cu
 * the same for a device (cuda/miner.h); one row in table.def serves both.
 *
 * When it is called every valid pair is kept and s holds inner products. It clears pairs that do not count
 * (pair = KI_PAIR_NONE) and may set a triplet rule. Pair losses then see the pairs that take part in at least
 * one kept triplet, each once; triplet losses see the triplets. */
#ifndef KI_OBJECTIVE_MINER_H
#define KI_OBJECTIVE_MINER_H

#include "objective/method.h"
#include "objective/pair/pairs.h"

typedef struct ki_miner {
    ki_method method;
    /* NULL keeps everything. Random choices come from (pairs->seed, KI_RNG_MINER, pairs->step, row). */
    kith_status (*mine)(const void *settings, ki_pairs *pairs, kith_error *err);
} ki_miner;

#define X(name, device) extern const ki_miner ki_miner_##name;
#include "objective/miner/table.def"
#undef X

const ki_miner *ki_miner_at(size_t i);
kith_status ki_miner_find(const char *name, const ki_miner **ret_miner, kith_error *err);

#endif
