/* Which device finds neighbours: a backend that has the record for it, or none. */
#include "knn/device.h"

#include <string.h>

#include "backend/plugin.h"

const ki_knn_device_type *ki_knn_device_of(const ki_backend *backend) {
    const ki_plugin *plugin = ki_plugin_of(backend);
    return plugin ? plugin->knn : NULL;
}

static kith_status open_number(const char *name, int number, ki_knn_device *ret_device, kith_error *err) {
    ki_knn_device device = {0};
    if (name && strcmp(name, "cpu") != 0 && strcmp(name, "ref") != 0) {
        const ki_backend_options options = {.device = number};
        KI_TRY(ki_backend_open(name, &options, &device.backend, err));
        device.type = ki_knn_device_of(device.backend);
        if (!device.type) ki_knn_device_close(&device);
    }
    *ret_device = device;
    return KITH_OK;
}

kith_status ki_knn_device_open(const char *name, ki_knn_device *ret_device, kith_error *err) {
    return open_number(name, 0, ret_device, err);
}

kith_status ki_knn_device_beside(ki_backend *backend, ki_knn_device *ret_device, kith_error *err) {
    const ki_backend_options *o = &backend->options;
    const ki_knn_device_type *type = ki_knn_device_of(backend);
    *ret_device = (ki_knn_device){0};
    if (!type) return KITH_OK;
    if (o->tf32) {
        KI_TRY(backend->type->memory.sync(backend, err));
        return open_number(backend->type->name, o->device, ret_device, err);
    }
    *ret_device = (ki_knn_device){.backend = backend, .type = type, .is_borrowed = true};
    return KITH_OK;
}

void ki_knn_device_close(ki_knn_device *device) {
    if (!device->is_borrowed) ki_backend_close(device->backend);
    *device = (ki_knn_device){0};
}
