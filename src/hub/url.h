/* Addresses of the hub and of where it redirects to: read strictly, so that nobody after us can understand them otherwise. */
#ifndef KI_HUB_URL_H
#define KI_HUB_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { KI_HUB_URL = 8192 };

/* Owned by nobody: text in place. */
typedef struct ki_hub_url {
    bool is_https, is_loopback;
    char origin[300];      /* "https://huggingface.co", "http://127.0.0.1:8080": scheme, host and port */
    char text[KI_HUB_URL]; /* the whole address */
} ki_hub_url;

/* http://HOST[:PORT][/…] or https://…, in printable ASCII. Anything else is KITH_EINVAL: other schemes, user names, blanks,
 * backslashes, fragments. `what` names it in the error. */
kith_status ki_hub_url_parse(const char *text, const char *what, ki_hub_url *ret_url, kith_error *err);

/* Where a redirect from `from` leads: a whole address, or a path of the same host. From https only to https. */
kith_status ki_hub_url_follow(const ki_hub_url *from, const char *location, ki_hub_url *ret_url,
                              kith_error *err);

bool ki_hub_url_same_origin(const ki_hub_url *a, const ki_hub_url *b);

/* ENDPOINT/REPO/resolve/REVISION/FILE. */
kith_status ki_hub_url_of_file(const ki_hub_url *endpoint, const char *repo, const char *revision,
                               const char *file, ki_hub_url *ret_url, kith_error *err);

#endif
