/* Opening the device that options name. */
#include "model/device.h"

#include <string.h>

#include "base/option.h"

kith_status ki_device_open(const kith_model_options *options, ki_backend **ret_backend, kith_error *err) {
    static const char *const precisions[] = {"float32", "bf16"};
    ki_backend_options backend = {.tf32 = options->tf32, .deterministic = options->deterministic};
    if (options->precision && strcmp(options->precision, precisions[KI_BF16]) == 0)
        backend.precision = KI_BF16;
    else if (options->precision && strcmp(options->precision, precisions[KI_FLOAT32]) != 0)
        return ki_fail_unknown(err, "precision", options->precision, precisions, 2);
    return ki_backend_open(options->device ? options->device : "cpu", &backend, ret_backend, err);
}
