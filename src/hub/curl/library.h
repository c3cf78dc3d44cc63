/* libcurl, loaded when it is wanted.
 *
 * Systems call the file differently: libcurl.so.4 (Fedora, Arch, and Debian's build over OpenSSL) or libcurl-gnutls.so.4 (Debian's build over
 * GnuTLS). Both have the same interface, so the plugin links neither, and takes the first that is there. A build needs libcurl's
 * headers only. */
#ifndef KI_HUB_CURL_LIBRARY_H
#define KI_HUB_CURL_LIBRARY_H

/* Options that newer headers call deprecated are those that older libraries know. The macros that check types would stand in the way of
 * the names below. */
#define CURL_DISABLE_DEPRECATION
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/error.h"

/* The calls, named as libcurl's without its prefix. */
typedef struct ki_curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *curl);
    void (*easy_cleanup)(CURL *curl);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *line);
    void (*slist_free_all)(struct curl_slist *list);
} ki_curl;

/* The library, loaded and set up by the first call, for the life of the process. KITH_EUNSUPPORTED: none is there; the error says what to
 * install. Any thread. */
kith_status ki_curl_load(const ki_curl **ret_curl, kith_error *err);

#endif
