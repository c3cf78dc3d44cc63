/* What is not part of libkith because it needs libraries of its own, a device or the client of a server: a shared object
 * libkith-NAME.so, loaded when it is asked for (docs/adr/0040).
 *
 * The object is self-contained: it has its own copy of the code of kith that it calls, and exports two symbols.
 * The structs passed between it and the library are internal to kith, so both must be built from the same headers.
 * The interface is a hash of the headers, and an object with another hash is refused before any of its code runs.
 *
 *     const char kith_plugin_interface[];                          // KI_PLUGIN_INTERFACE
 *     const ki_plugin *kith_plugin(ki_process *process);           // adopts the process's record; NULL: nothing to offer
 * */
#ifndef KI_PLUGIN_H
#define KI_PLUGIN_H

#include "core/backend.h"
#include "core/process.h"
#include "kith_interface.h"

#define KI_PLUGIN_TEXT_(x) #x
#define KI_PLUGIN_TEXT(x) KI_PLUGIN_TEXT_(x)
#define KI_PLUGIN_INTERFACE KITH_INTERFACE_HASH " " KI_PLUGIN_TEXT(KITH_REAL)

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

typedef const ki_plugin *ki_plugin_fn(ki_process *process);

/* Devices that may come as plugins, by name; NULL past the end. */
const char *ki_plugin_name_at(int i);

/* The plugin of that name, loaded if necessary; it stays loaded for the life of the process. The error of
 * KITH_EUNSUPPORTED says where it was looked for, or why it cannot be used; the answer does not change while
 * the process runs. May be called from several threads. */
kith_status ki_plugin_load(const char *name, const ki_plugin **ret_plugin, kith_error *err);

/* The plugin a backend came from; NULL: none. Loads nothing. */
const ki_plugin *ki_plugin_of(const ki_backend *backend);

#endif
