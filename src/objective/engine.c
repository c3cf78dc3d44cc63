#include "objective/engine.h"

#include "objective/state.h"

bool ki_engine_stops(const ki_objective *objective) {
    bool stops = false;
    for (size_t i = 0; i < objective->n_regs; i++) {
        const ki_reg_use *reg = &objective->reg[i];
        stops |= reg->stops && (reg->taps & KI_TAP_BIT(KI_TAP_EMBEDDING));
    }
    return stops;
}
