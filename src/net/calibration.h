/* A model's calibration (kith/calibration.h) in the metadata of its file. Readers that do not know it pass over it. */
#ifndef KI_NET_CALIBRATION_H
#define KI_NET_CALIBRATION_H

#include "kith/array.h"
#include "kith/calibration.h"

kith_status ki_calibration_write(const kith_calibration *calibration, kith_tensors_writer *writer,
                                 kith_error *err);
/* ret_calibration->n is 0 where the file has none; KITH_EFORMAT for one that is no curve. */
kith_status ki_calibration_read(const kith_tensors *tensors, kith_calibration *ret_calibration,
                                kith_error *err);

#endif
