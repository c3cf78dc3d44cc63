/* Methods by name, for timing and for advice. */
#include "objective/usual.h"

#include <stddef.h>

const char ki_usual_section[] = "{loss: {name: raw}, miner: {name: vthm}}";

const char *ki_usual_loss_at(int i) {
    static const char *const losses[] = {"raw+vthm", "binomial", "contrastive"};
    return i >= 0 && (size_t)i < sizeof losses / sizeof losses[0] ? losses[i] : NULL;
}

const char ki_advice_easier_pairs[] = "a miner that keeps easier pairs (semihard or all instead of hard)";
const char ki_advice_margin[] = "miner semihard";
