/* The device that options name. */
#ifndef KI_MODEL_DEVICE_H
#define KI_MODEL_DEVICE_H

#include "device/backend.h"
#include "kith/model.h"

/* The error says whether the device is not built in, was not found, or cannot do what is asked. */
kith_status ki_device_open(const kith_model_options *options, ki_backend **ret_backend, kith_error *err);

#endif
