/* A device that is not part of libkith: a plugin (base/plugin.h) that is loaded when the device is asked for. Its entry
 * returns a ki_plugin. */
#ifndef KI_PLUGIN_H
#define KI_PLUGIN_H

#include "base/plugin.h"
#include "device/backend.h"

/* What layers above have on the device; the records are theirs (objective/engine.h, knn/device.h). */
struct ki_engine_type;
struct ki_knn_device_type;

typedef struct ki_plugin {
    const ki_backend_type *backend;
    const struct ki_engine_type *engine;  /* NULL: objectives are evaluated on the host */
    const struct ki_knn_device_type *knn; /* NULL: neighbours are found on the host */
} ki_plugin;

/* Devices that may come as plugins, by name; NULL past the end. */
const char *ki_plugin_name_at(int i);

/* The plugin of that name, loaded if necessary; it stays loaded for the life of the process. The error of
 * KITH_EUNSUPPORTED says where it was looked for, or why it cannot be used; the answer does not change while
 * the process runs. May be called from several threads. */
kith_status ki_plugin_load(const char *name, const ki_plugin **ret_plugin, kith_error *err);

/* The plugin a backend came from; NULL: none. Loads nothing. */
const ki_plugin *ki_plugin_of(const ki_backend *backend);

#endif
