/* The CUDA device as a plugin: its records, and the two symbols that libkith-cuda.so exports. */
#include "backend/plugin.h"
#include "knn/device.h"
#include "objective/engine.h"

extern const ki_backend_type ki_backend_cuda;
extern const ki_engine_type ki_engine_cuda;
extern const ki_knn_device_type ki_knn_cuda;

const ki_plugin ki_plugin_cuda = {
    .backend = &ki_backend_cuda, .engine = &ki_engine_cuda, .knn = &ki_knn_cuda};

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    ki_process_adopt(process);
    return &ki_plugin_cuda;
}
