/* Shared objects that libkith loads when they are asked for, so that it needs none of the libraries they link
 * (docs/adr/0040): a device (backend/plugin.h), MPI (comm/comm.h), the
 * client of a server (search/remote/remote.h), requests over HTTP (hub/transport.h).
 *
 * The object libkith-NAME.so is self-contained: it has its own copy of the code of kith that it calls, and exports two
 * symbols. The structs passed between it and the library are internal to kith, so both must be built from the same
 * headers. The interface is a hash of the headers, and an object with another hash is refused before any of its code
 * runs.
 *
 *     const char kith_plugin_interface[];                          // KI_PLUGIN_INTERFACE
 *     const void *kith_plugin(ki_process *process);                // adopts the process's record; NULL: nothing to offer
 * */
#ifndef KI_BASE_PLUGIN_H
#define KI_BASE_PLUGIN_H

#include <stdbool.h>

#include "base/error.h"
#include "base/process.h"
#include "base/real.h"
#include "kith_interface.h"

#define KI_PLUGIN_TEXT_(x) #x
#define KI_PLUGIN_TEXT(x) KI_PLUGIN_TEXT_(x)
#define KI_PLUGIN_INTERFACE KITH_INTERFACE_HASH " " KI_PLUGIN_TEXT(KITH_REAL)

/* The record that the plugin offers; whoever asks for it by name knows its type. */
typedef const void *ki_plugin_fn(ki_process *process);

/* What is asked for, and words for the error lines. */
typedef struct ki_plugin_ask {
    const char *name;    /* libkith-NAME.so */
    const char *what;    /* it is for, at the beginning of errors: "device cuda" */
    const char *makes;   /* hint: where it is built, as in "nvcc and cuDNN are" */
    const char *needs;   /* hint: what to install where it cannot be loaded; NULL: what the loader names */
    const char *instead; /* hint: what can be done without it, as in "use device cpu" */
    bool (*is_there)(const void *record); /* whether the record has what was asked for; NULL: always */
} ki_plugin_ask;

/* Find the file, load it and call its entry. It stays loaded for the life of the process, and its record lives as long.
 * The error of KITH_EUNSUPPORTED says where it was looked for, or why it cannot be used. */
kith_status ki_plugin_open(const ki_plugin_ask *ask, const void **ret_record, kith_error *err);

#endif
