/* What the server and a decoding process say to each other, through a socket. Both are the same program, so plain structs will do.
 * Neither trusts the other's sizes.
 *
 *     server                          decoder
 *     ki_decode_question, the file ─►
 *                                  ◄─ ki_decode_reply: what it would take (n_needed), or why it cannot be
 *     a byte: 1, or 0 to leave it  ─►
 *                                  ◄─ ki_decode_reply, and its n_bytes: pixels or a JPEG file
 */
#ifndef KI_DECODE_WIRE_H
#define KI_DECODE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/data.h"
#include "kith/status.h"

/* What is wanted of an image. */
typedef enum ki_decode_want {
    KI_WANT_PIXELS, /* its views, as small as the network takes them */
    KI_WANT_JPEG,   /* a JPEG file, the longer side at most `side` */
} ki_decode_want;

enum { KI_MOST_VIEWS = 32 };

/* The image or a part of it, perhaps mirrored. */
typedef struct ki_decode_view {
    bool has_box, is_mirrored;
    double box[4]; /* x, y, width, height in pixels of the upright image */
} ki_decode_view;

typedef struct ki_decode_question {
    uint64_t n_bytes; /* of the file, which follow */
    ki_decode_want want;
    int64_t most_pixels;
    int32_t least_side; /* a JPEG may be decoded smaller, as long as both sides keep this; 0: whole */
    uint8_t background[3];
    kith_transform transform; /* of the network: views are shrunk to what it shows */
    int32_t n_views;
    ki_decode_view view[KI_MOST_VIEWS];
    int32_t side;
    int32_t quality; /* of the JPEG */
} ki_decode_question;

/* Pixels of a view, and what they show: x, y, width, height in pixels of the whole upright image. */
typedef struct ki_decoded_view {
    int32_t w, h, channels;
    double shown[4];
} ki_decoded_view;

typedef struct ki_decode_reply {
    kith_status status;
    bool is_too_large; /* it was refused for its size, by its header */
    kith_error err;
    int64_t n_needed;       /* bytes of memory: for decoding, and for what it sends */
    int32_t full_w, full_h; /* of the whole image, before a JPEG was decoded smaller */
    ki_decoded_view view[KI_MOST_VIEWS];
    uint64_t n_bytes; /* which follow: of all views, one behind the other */
} ki_decode_reply;

/* All n bytes, or false at the end of the stream, on an error, or when `until` (seconds on the monotonic clock; 0: for ever)
 * has passed. */
bool ki_wire_read(int fd, void *bytes, size_t n, double until);
bool ki_wire_write(int fd, const void *bytes, size_t n, double until);

#endif
