/* The part of engines that is the same on every device: who has one, and what an objective asks of it. */
#include "objective/engine.h"

#include "backend/plugin.h"
#include "objective/state.h"

const ki_engine_type *ki_engine_of(const ki_backend *backend) {
    const ki_plugin *plugin = ki_plugin_of(backend);
    return plugin ? plugin->engine : NULL;
}

bool ki_engine_stops(const ki_objective *objective) {
    bool stops = false;
    for (size_t i = 0; i < objective->n_regs; i++) {
        const ki_reg_use *reg = &objective->reg[i];
        stops |= reg->stops && (reg->taps & KI_TAP_BIT(KI_TAP_EMBEDDING));
    }
    return stops;
}
