/* Loading libcurl. */
#include "hub/curl/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

static ki_curl found;
static bool is_settled;
static kith_error failure; /* status KITH_OK: found */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The build over OpenSSL first: one over GnuTLS can find the program's GnuTLS already loaded, in another version than its own. */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

static kith_status fail_missing(const char *why, kith_error *err) {
    ki_fail(err, KITH_EUNSUPPORTED, "kith pull: libcurl cannot be loaded (%.300s)", why);
    return ki_hint(err, KITH_EUNSUPPORTED,
                   "install it (Debian, Ubuntu: libcurl4; Fedora: libcurl); or name a file that you have "
                   "fetched yourself");
}

static kith_status look(kith_error *err) {
    static const struct {
        const char *name;
        size_t at;
    } calls[] = {
        {"curl_global_init", offsetof(ki_curl, global_init)},
        {"curl_easy_init", offsetof(ki_curl, easy_init)},
        {"curl_easy_setopt", offsetof(ki_curl, easy_setopt)},
        {"curl_easy_perform", offsetof(ki_curl, easy_perform)},
        {"curl_easy_cleanup", offsetof(ki_curl, easy_cleanup)},
        {"curl_easy_strerror", offsetof(ki_curl, easy_strerror)},
        {"curl_slist_append", offsetof(ki_curl, slist_append)},
        {"curl_slist_free_all", offsetof(ki_curl, slist_free_all)},
    };
    char why[300] = "";
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        const char *said = library ? NULL : dlerror();
        /* A library that is there and does not load says more than one that is not there. */
        if (said && (!*why || !strstr(said, "No such file"))) ki_snprintf(why, sizeof why, "%s", said);
    }
    if (!library) return fail_missing(why, err);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *symbol = dlsym(library, calls[i].name);
        if (!symbol) return fail_missing(calls[i].name, err);
        memcpy((char *)&found + calls[i].at, &symbol, sizeof symbol);
    }
    found.global_init(CURL_GLOBAL_DEFAULT);
    return KITH_OK;
}

kith_status ki_curl_load(const ki_curl **ret_curl, kith_error *err) {
    pthread_mutex_lock(&lock);
    if (!is_settled) failure.status = look(&failure);
    is_settled = true;
    pthread_mutex_unlock(&lock);
    if (failure.status != KITH_OK) {
        if (err) *err = failure;
        return failure.status;
    }
    *ret_curl = &found;
    return KITH_OK;
}
