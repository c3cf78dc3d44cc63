/* The wire format: a key (field number and kind), then a varint, four bytes, or a length and so many bytes. */
#include "io/protobuf.h"

#include <string.h>

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

static void put_varint(ki_buffer *to, uint64_t value) {
    unsigned char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (unsigned char)(value | 0x80);
    bytes[n++] = (unsigned char)value;
    ki_buffer_add(to, bytes, n);
}

static void put_key(ki_buffer *to, int field, int kind) {
    put_varint(to, (uint64_t)field << 3 | (uint64_t)kind);
}

void ki_proto_int(ki_buffer *to, int field, int64_t value) {
    put_key(to, field, VARINT);
    put_varint(to, (uint64_t)value);
}

void ki_proto_float(ki_buffer *to, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                    (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
    put_key(to, field, FIXED32);
    ki_buffer_add(to, bytes, sizeof bytes);
}

void ki_proto_head(ki_buffer *to, int field, size_t n) {
    put_key(to, field, LENGTH);
    put_varint(to, n);
}

void ki_proto_bytes(ki_buffer *to, int field, const void *bytes, size_t n) {
    ki_proto_head(to, field, n);
    if (n > 0) ki_buffer_add(to, bytes, n);
}

void ki_proto_text(ki_buffer *to, int field, const char *text) {
    ki_proto_bytes(to, field, text, strlen(text));
}

void ki_proto_message(ki_buffer *to, int field, ki_buffer *message) {
    if (to->status == KITH_OK) to->status = message->status;
    ki_proto_bytes(to, field, message->data, message->n);
    message->n = 0;
}
