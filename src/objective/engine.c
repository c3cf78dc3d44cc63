/* The part of engines that is the same on every device: which backend has one, and what an objective needs. */
#include "objective/engine.h"

#include "backend/plugin.h"
#include "objective/state.h"

const ki_engine_type *ki_engine_of(const ki_backend *backend) {
    const ki_plugin *plugin = ki_plugin_of(backend);
    if (plugin && plugin->engine) return plugin->engine;
    return backend->type->is_host ? &ki_engine_host : NULL;
}

bool ki_engine_stops(const ki_objective *objective) { return objective->schedule.stops; }

static kith_status check_method(const char *kind, const ki_method *method, kith_error *err) {
    if (ki_method_has_device(kind, method->name)) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%s %s runs on the CPU alone", kind, method->name);
    return ki_hint(err, KITH_EUNSUPPORTED, "use device cpu for this objective");
}

kith_status ki_engine_check(const ki_objective *o, kith_error *err) {
    if (o->loss.record) {
        KI_TRY(check_method("loss", &o->loss.record->method, err));
        KI_TRY(check_method("miner", &o->miner->method, err));
        if (ki_objective_sample(o) < 1) {
            ki_fail(err, KITH_EUNSUPPORTED, "loss %s with sample %g runs on the CPU alone",
                    o->loss.record->method.name, ki_objective_sample(o));
            return ki_hint(err, KITH_EUNSUPPORTED,
                           "use device cpu, or leave sample out: all classes take part");
        }
    }
    for (size_t i = 0; i < o->n_regs; i++)
        KI_TRY(check_method("regularizer", &o->reg[i].record->method, err));
    return KITH_OK;
}
