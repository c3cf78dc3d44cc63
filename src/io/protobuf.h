/* Writing protocol buffers: the few kinds of fields that ONNX files are made of (docs/adr/0080).
 *
 * A message is the fields of a ki_buffer one after the other; a message inside another one is made in a buffer of its own and
 * added as bytes. The first failure is kept by the buffer, as always (base/buffer.h). */
#ifndef KI_PROTOBUF_H
#define KI_PROTOBUF_H

#include <stdint.h>

#include "base/buffer.h"

/* int32, int64 and enum fields; negative numbers take ten bytes. */
void ki_proto_int(ki_buffer *to, int field, int64_t value);
void ki_proto_float(ki_buffer *to, int field, float value);
void ki_proto_text(ki_buffer *to, int field, const char *text);
/* bytes fields, and messages that are complete. */
void ki_proto_bytes(ki_buffer *to, int field, const void *bytes, size_t n);
/* The same, and then `message` is empty for the next one. Its failure becomes that of `to`. */
void ki_proto_message(ki_buffer *to, int field, ki_buffer *message);
/* The head of a bytes field whose n bytes the caller adds next. */
void ki_proto_head(ki_buffer *to, int field, size_t n);

#endif
