/* Event files of TensorBoard: scalars by tag and step, and texts.
 *
 * A file is a row of TFRecords (length, masked CRC-32C of it, bytes, masked CRC-32C of them, little-endian),
 * each an Event of tensorflow/core/util/event.proto in protobuf's wire form. This writes the
 * part of the format that these need, and reads nothing. A record is written by one call, so a killed process
 * leaves at most one incomplete record, which readers skip. */
#ifndef KI_EVENTS_H
#define KI_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_events ki_events;

typedef struct ki_events_scalar {
    const char *tag; /* "eval/validation/recall_1" */
    float value;
} ki_events_scalar;

/* A new file "events.out.tfevents.SECONDS.HOST.PID.N" in the folder, N the first that is free. step > 0: the
 * run is resumed after that many steps, and readers are told to forget later steps of older files in the
 * folder. wall_time is in seconds since 1970. */
kith_status ki_events_open(const char *folder, double wall_time, int64_t step, ki_events **ret_events,
                           kith_error *err);
void ki_events_close(ki_events *events); /* NULL is fine */
const char *ki_events_path(const ki_events *events);

/* n scalars of one step as one event. After a failure the file is unchanged. Allocates only when an event is longer
 * than all before it. */
kith_status ki_events_add(ki_events *events, double wall_time, int64_t step, const ki_events_scalar *scalars,
                          size_t n, kith_error *err);

/* A text, for TensorBoard's page of texts, where it stands as it is: as a block of code, since that page reads Markdown. */
kith_status ki_events_add_text(ki_events *events, double wall_time, int64_t step, const char *tag,
                               const char *text, kith_error *err);

/* CRC-32C (Castagnoli) of the bytes. */
uint32_t ki_crc32c(const void *bytes, size_t n);

#endif
