/* Processes that decode images, so that a file that crashes or stops a decoder takes one request down and not the server.
 *
 * Each is the program itself, started anew, locked into a sandbox (sandbox.h), and asked through a socket. One that has crashed,
 * hung or gone is replaced. Several threads may ask at once; a thread waits until a process is free. */
#ifndef KI_DECODERS_H
#define KI_DECODERS_H

#include <stdatomic.h>

#include "data/image/image.h"
#include "serve/decode/wire.h"

typedef struct ki_decoders ki_decoders;

typedef struct ki_decoders_options {
    const char *program; /* started with the arguments `serve --decode-images` */
    int64_t n;
    uint64_t memory_bytes;             /* of each */
    double seconds;                    /* for one image; a process that takes longer is killed */
    atomic_uint_least64_t *n_failures; /* counts processes that had to be replaced */
} ki_decoders_options;

kith_status ki_decoders_new(const ki_decoders_options *options, ki_decoders **ret, kith_error *err);
void ki_decoders_free(ki_decoders *decoders); /* NULL is fine; nobody asks any more */

/* Ask a process about a file: question->n_bytes bytes at `file`. Waits for a free one until `until` (seconds on the monotonic clock).
 *
 * KITH_OK: there is a reply, whose status says whether the image could be decoded. *ret_bytes (ki_free) holds its
 * reply->n_bytes bytes and KI_IMAGE_SLACK more; for pixels they fit w, h and channels.
 * KITH_ECANCELED: no process was free in time. KITH_EBACKEND: the process crashed or hung over this file. */
kith_status ki_decoders_ask(ki_decoders *decoders, const ki_decode_question *question, const void *file,
                            double until, ki_decode_reply *ret_reply, void **ret_bytes, kith_error *err);

#endif
