/* Requests to the hub as a plugin: the record, and the two symbols that libkith-hub.so exports. */
#include "base/plugin.h"
#include "hub/curl/curl.h"

static const ki_hub_transport transport = {.ask = ki_hub_curl_ask};

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    ki_process_adopt(process);
    return &transport;
}
