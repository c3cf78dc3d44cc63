/* The device that options name. */
#ifndef KI_API_DEVICE_H
#define KI_API_DEVICE_H

#include "core/backend.h"
#include "kith/model.h"

/* One clear line where it is not built in, not there, or cannot do what is asked. */
kith_status ki_device_open(const kith_model_options *options, ki_backend **ret_backend, kith_error *err);

#endif
