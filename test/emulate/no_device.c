/* A plugin of this build that has no device: its entry returns nothing or, with KITH_NO_DEVICE=empty, a record without a
 * backend. */
#include <stdlib.h>

#include "backend/plugin.h"

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    static const ki_plugin empty;
    (void)process;
    return getenv("KITH_NO_DEVICE") ? &empty : NULL;
}
