/* Processes that decode images, so that a file that crashes or stops a decoder takes one request down and not the server.
 *
 * Each is the program itself, started anew, locked into a sandbox (sandbox.h), and asked through a socket by a thread of its own. One that
 * has crashed, hung or gone is replaced. Questions wait in a queue, not in a thread: whoever asks is called back.
 *
 * One client cannot have all of it. Its questions never take the last quarter of the decoders (the last one where there are few), and
 * clients take turns (turns.h). The bytes of decoded pixels, in the decoders and in the server, have a limit over all
 * requests: an image that does not fit at the moment waits until it does. */
#ifndef KI_DECODERS_H
#define KI_DECODERS_H

#include <stdatomic.h>

#include "data/image/image.h"
#include "serve/decode/wire.h"
#include "serve/http/turns.h"

typedef struct ki_decoders ki_decoders;

typedef struct ki_decoders_options {
    const char *program; /* started with the arguments `serve --decode-images` */
    int64_t n;
    uint64_t memory_bytes;             /* of each */
    int64_t most_decoded;              /* bytes of decoded pixels at a time */
    double seconds;                    /* for one image; a process that takes longer is killed */
    atomic_uint_least64_t *n_failures; /* counts processes that had to be replaced */
} ki_decoders_options;

kith_status ki_decoders_new(const ki_decoders_options *options, ki_decoders **ret, kith_error *err);
/* Nobody is served any more: those who wait are called back with KITH_ECANCELED, now and from now on. NULL is fine. */
void ki_decoders_end(ki_decoders *decoders);
void ki_decoders_free(ki_decoders *decoders); /* NULL is fine; nobody asks any more */

/* A question about a file: question.n_bytes bytes at `file`, or what is at `path` when it is read. Both stay until the answer is
 * there. */
typedef struct ki_decode_job ki_decode_job;
struct ki_decode_job {
    ki_decode_question question;
    const void *file;
    const char *path; /* NULL: file. Read only when a decoder is free, so that files do not wait in memory */
    ki_turn turn;     /* its client and, from 1, what it costs; the rest is the decoders' */
    double until;     /* seconds on the monotonic clock: when waiting is over */
    int64_t n_held;   /* decoded bytes that the same request has already */
    void (*done)(ki_decode_job *job); /* in a thread of the decoders, or in that which asks: must not wait */
    void *context;

    /* The answer.
     * KITH_OK: there is a reply, whose status says whether the image could be decoded. `bytes` (ki_free) holds its reply.n_bytes bytes and
     * KI_IMAGE_SLACK more; for pixels they fit the views. They count until ki_decoders_release.
     * KITH_EIO: the path cannot be read. KITH_ECANCELED: nobody was free in time. KITH_EBACKEND: the process crashed or hung over this file. KITH_ENOMEM: there is no
     * memory. KITH_EINVAL: decoding takes more than all decoded bytes that are allowed. */
    kith_status status;
    kith_error err;
    ki_decode_reply reply;
    void *bytes;

    int64_t
        n_counted; /* of the decoded bytes that are counted, those for this answer: reply.n_bytes once pixels are there */

    int64_t n_needed; /* for the decoders alone; 0: not known yet */
};

void ki_decoders_ask(ki_decoders *decoders, ki_decode_job *job);
/* Bytes of answers that are there no more. */
void ki_decoders_release(ki_decoders *decoders, int64_t n_bytes);
/* Call back those who have waited too long; to be called again and again. */
void ki_decoders_tick(ki_decoders *decoders, double now);
/* Decoded bytes that are counted now. */
int64_t ki_decoders_bytes(ki_decoders *decoders);

#endif
