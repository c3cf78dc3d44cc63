/* Plugins (core/plugin.h) whose entry returns a ki_plugin: a device or the client of a server, loaded when it is asked
 * for. */
#ifndef KI_PLUGIN_H
#define KI_PLUGIN_H

#include "core/backend.h"
#include "core/plugin.h"

/* What layers above have on the device or at the server; the records are theirs (objective/engine.h, knn/device.h,
 * search/remote/remote.h). */
struct ki_engine_type;
struct ki_knn_device_type;
struct ki_remote_type;

/* A device has a backend, a server has a remote. */
typedef struct ki_plugin {
    const ki_backend_type *backend;
    const struct ki_engine_type *engine;  /* NULL: objectives are evaluated on the host */
    const struct ki_knn_device_type *knn; /* NULL: neighbours are found on the host */
    const struct ki_remote_type *remote;
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
