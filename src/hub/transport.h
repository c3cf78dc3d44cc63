/* The one thing of a pull that needs a library of the network: a single request over HTTP.
 *
 * The functions are in a plugin (plugin/hub.c, curl/), so that libkith links no such library. What the hub's answers mean, where
 * redirects may lead, who gets the token, when to try again and whether the bytes are right is decided in this folder, in code
 * that tests can run without a network. */
#ifndef KI_HUB_TRANSPORT_H
#define KI_HUB_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Callbacks come from the thread that asks. A status other than KITH_OK ends the request with that status and error. */
typedef struct ki_hub_request {
    const char *url;
    const char *token; /* goes along as a bearer token; NULL: none */
    bool head;         /* HEAD instead of GET */
    int64_t from;      /* the first byte wanted (Range); 0: all of them */
    double timeout_s;  /* to connect; and the longest time with almost no data */
    kith_status (*line)(void *user, const char *line, size_t n, kith_error *err); /* of the answer's head */
    kith_status (*body)(void *user, const void *bytes, size_t n, kith_error *err);
    kith_status (*beat)(void *user, kith_error *err); /* called about once a second */
    void *user;
} ki_hub_request;

typedef struct ki_hub_transport {
    /* Send one request and pass on the whole answer, whatever its status; a redirect is an answer. Certificates are checked.
     * On failure *ret_may_pass says whether trying again could help; the error never holds the token or a proxy's password. */
    kith_status (*ask)(const ki_hub_request *request, bool *ret_may_pass, kith_error *err);
} ki_hub_transport;

#endif
