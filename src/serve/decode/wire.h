/* What the server and a decoding process say to each other, through a socket: a question and the file's bytes, an answer and
 * pixels or a JPEG file. Both are the same program, so plain structs will do. Neither trusts the other's sizes. */
#ifndef KI_DECODE_WIRE_H
#define KI_DECODE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

/* What is wanted of an image. */
typedef enum ki_decode_want {
    KI_WANT_PIXELS, /* as decoded, or the part in the box */
    KI_WANT_JPEG,   /* a JPEG file, the longer side at most `side` */
} ki_decode_want;

typedef struct ki_decode_question {
    uint64_t n_bytes; /* of the file, which follow */
    ki_decode_want want;
    int64_t most_pixels;
    int32_t least_side; /* a JPEG may be decoded smaller, as long as both sides keep this; 0: whole */
    uint8_t background[3];
    bool has_box;
    double box[4]; /* x, y, width, height in pixels of the upright image */
    int32_t side;
    int32_t quality; /* of the JPEG */
} ki_decode_question;

typedef struct ki_decode_reply {
    kith_status status;
    bool is_too_large; /* it was refused for its size, by its header */
    kith_error err;
    int32_t w, h, channels; /* of the pixels */
    int32_t full_w, full_h; /* of the whole image, before a JPEG was decoded smaller */
    uint64_t n_bytes;       /* which follow */
} ki_decode_reply;

/* All n bytes, or false at the end of the stream, on an error, or when `until` (seconds on the monotonic clock; 0: for ever)
 * has passed. */
bool ki_wire_read(int fd, void *bytes, size_t n, double until);
bool ki_wire_write(int fd, const void *bytes, size_t n, double until);

#endif
