/* Talking to the hub: one file asked for, its redirects followed, its failures retried.
 *
 * The token goes to the endpoint's own scheme, host and port and to nobody else, and over plain http only to this machine, by no proxy. */
#ifndef KI_HUB_SESSION_H
#define KI_HUB_SESSION_H

#include "hub/blob.h"
#include "hub/transport.h"
#include "hub/url.h"

/* Zero-initialise; release always. */
typedef struct ki_hub_session {
    const ki_hub_transport *transport;
    ki_hub_url endpoint;
    char *token;               /* owned; NULL: none */
    double timeout_s;          /* without data */
    double wait_s;             /* before the first new try; doubled for each that follows */
    kith_progress_fn progress; /* may be NULL */
    void *user;
    int64_t n_done, n_all; /* bytes, for progress */
} ki_hub_session;

/* Endpoint (NULL: $HF_ENDPOINT, else the hub's), token (NULL: $HF_TOKEN, else the file that `hf auth login` writes) and
 * timeout; the transport is the caller's business. */
kith_status ki_hub_session_open(ki_hub_session *session, const char *endpoint, const char *token,
                                kith_error *err);
void ki_hub_session_release(ki_hub_session *session);

/* Tell the caller of pull how far it is; KITH_ECANCELED when it wants to stop. A ki_hub_wait_fn. */
kith_status ki_hub_session_beat(void *session, kith_error *err);

/* What the hub says of a file. The facts come from its own answers, before it redirects to another host.
 * KITH_ENOTFOUND, with *ret_is_missing true: the repository and its revision are there, and the file is not.
 * etag empty, check KI_HUB_NO_HASH: it states none. KITH_EFORMAT: no commit or no size. */
kith_status ki_hub_session_head(ki_hub_session *session, const char *repo, const char *revision,
                                const char *file, ki_hub_facts *ret_facts, bool *ret_is_missing,
                                kith_error *err);

/* Fetch what is missing of the blob's part. */
kith_status ki_hub_session_get(ki_hub_session *session, const char *repo, ki_hub_blob *blob, kith_error *err);

#endif
