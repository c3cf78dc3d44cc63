/* One request over libcurl.
 *
 * Certificates are always checked, and there is no option that would turn that off. libcurl follows no redirect here
 * (hub/session.c does), reads no .netrc, and speaks no other protocols than http and https. Proxies are those of libcurl's
 * variables (https_proxy, no_proxy, …). */
#include "hub/curl/curl.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "hub/curl/library.h"
#include "hub/url.h"
#include "kith/version.h"

/* Fewer bytes per second than this are as good as none. */
enum { LEAST_SPEED = 500 };

/* A request on its way, with the failure of a callback. */
typedef struct transfer {
    const ki_curl *library;
    const ki_hub_request *request;
    kith_status status;
    kith_error *err;
} transfer;

static size_t take_line(char *bytes, size_t size, size_t n, void *user) {
    transfer *t = user;
    t->status = t->request->line(t->request->user, bytes, size * n, t->err);
    return t->status == KITH_OK ? size * n : 0;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *user) {
    transfer *t = user;
    t->status = t->request->body(t->request->user, bytes, size * n, t->err);
    return t->status == KITH_OK ? size * n : size * n + 1; /* also of no bytes */
}

static int take_beat(void *user, curl_off_t all, curl_off_t now, curl_off_t up_all, curl_off_t up_now) {
    transfer *t = user;
    (void)all, (void)now, (void)up_all, (void)up_now;
    if (t->status == KITH_OK) t->status = t->request->beat(t->request->user, t->err);
    return t->status != KITH_OK;
}

/* ---- setting up ---- */

/* Certificates of authorities: the file that OpenSSL's, curl's or Python's own variable names, or where systems keep them. A plugin that
 * was built on one system may run on another. */
static const char *authorities(void) {
    static const char *const variables[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"};
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                         "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                         "/etc/ssl/cert.pem"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *given = getenv(variables[i]);
        if (given && *given) return given;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (ki_is_file("%s", places[i])) return places[i];
    }
    return NULL; /* libcurl's own */
}

/* http and https, and nothing else: by the option of libcurl 7.85 and newer, or by the one that older libraries know. The headers that
 * this was built with say nothing of the library that is there. */
static CURLcode limit_protocols(const ki_curl *library, CURL *curl) {
    enum { PROTOCOLS_STR = 10318 };
    const CURLcode code = library->easy_setopt(curl, (CURLoption)PROTOCOLS_STR, "http,https");
    if (code != CURLE_UNKNOWN_OPTION) return code;
    return library->easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}

static bool add_header(const ki_curl *library, struct curl_slist **list, const char *line) {
    struct curl_slist *longer = library->slist_append(*list, line);
    if (longer) *list = longer;
    return longer != NULL;
}

static bool add_headers(const transfer *t, struct curl_slist **list) {
    const ki_hub_request *r = t->request;
    char line[8192];
    /* The bytes as they are: their number and their hash are known. */
    if (!add_header(t->library, list, "Accept-Encoding: identity")) return false;
    if (r->token) {
        ki_snprintf(line, sizeof line, "Authorization: Bearer %s", r->token);
        const bool is_added = add_header(t->library, list, line);
        memset(line, 0, sizeof line);
        if (!is_added) return false;
    }
    if (r->from <= 0) return true;
    ki_snprintf(line, sizeof line, "Range: bytes=%lld-", (long long)r->from);
    return add_header(t->library, list, line);
}

static CURLcode set_up(CURL *curl, transfer *t, struct curl_slist *headers, char *message) {
    const ki_hub_request *r = t->request;
    const long timeout = r->timeout_s < 1 ? 1 : (long)r->timeout_s;
    CURLcode bad = limit_protocols(t->library, curl);
#define SET(option, value) \
    if (bad == CURLE_OK) bad = t->library->easy_setopt(curl, option, value)
    SET(CURLOPT_URL, r->url);
    SET(CURLOPT_NOBODY, r->head ? 1L : 0L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, timeout);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)LEAST_SPEED);
    SET(CURLOPT_LOW_SPEED_TIME, timeout);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, "kith/" KITH_VERSION);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_ERRORBUFFER, message);
    SET(CURLOPT_HEADERFUNCTION, take_line);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, take_beat);
    SET(CURLOPT_XFERINFODATA, t);
    if (authorities()) SET(CURLOPT_CAINFO, authorities());
    /* A token that goes without encryption goes to this machine alone, not to a proxy. */
    if (r->token && strncmp(r->url, "http://", 7) == 0) SET(CURLOPT_NOPROXY, "*");
#undef SET
    return bad;
}

/* ---- failing ---- */

static bool may_pass(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

static kith_status fail(const transfer *t, CURLcode code, const char *message) {
    ki_hub_url url;
    const char *host =
        ki_hub_url_parse(t->request->url, "the address", &url, NULL) == KITH_OK ? url.origin : "the hub";
    if (code == CURLE_OUT_OF_MEMORY) return ki_fail_memory(t->err, 0, "a connection");
    if (code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_UNSUPPORTED_PROTOCOL) {
        ki_fail(t->err, KITH_EIO, "%s cannot be reached: %s", host, t->library->easy_strerror(code));
        return ki_hint(t->err, KITH_EIO, "check https_proxy and http_proxy");
    }
    const bool is_unread = code == CURLE_SSL_CACERT_BADFILE;
    const bool is_certificate = is_unread || code == CURLE_PEER_FAILED_VERIFICATION;
    /* libcurl's message may hold a proxy's address with its password, so only some are shown. */
    if (is_unread)
        ki_fail(t->err, KITH_EIO,
                "%s cannot be reached: no certificates of authorities can be read from %.200s", host,
                authorities() ? authorities() : "where libcurl looks for them");
    else
        ki_fail(t->err, KITH_EIO, "%s cannot be reached: %.200s", host,
                is_certificate && *message ? message : t->library->easy_strerror(code));
    if (is_certificate)
        return ki_hint(t->err, KITH_EIO,
                       "install ca-certificates, or name your authority's file in SSL_CERT_FILE");
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT)
        return ki_hint(t->err, KITH_EIO, "check the network, https_proxy and HF_ENDPOINT");
    if (may_pass(code)) return ki_hint(t->err, KITH_EIO, "the same command goes on where it stopped");
    return KITH_EIO;
}

kith_status ki_hub_curl_ask(const ki_hub_request *request, bool *ret_may_pass, kith_error *err) {
    char message[CURL_ERROR_SIZE] = "";
    transfer t = {.request = request, .err = err};
    struct curl_slist *headers = NULL;
    kith_status status = KITH_OK;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    *ret_may_pass = false;
    KI_TRY(ki_curl_load(&t.library, err));
    CURL *curl = t.library->easy_init();
    if (curl && add_headers(&t, &headers)) code = set_up(curl, &t, headers, message);
    if (code == CURLE_OK) code = t.library->easy_perform(curl);
    if (t.status != KITH_OK) {
        status = t.status;
    } else if (code != CURLE_OK) {
        *ret_may_pass = may_pass(code);
        status = fail(&t, code, message);
    }
    for (struct curl_slist *at = headers; at; at = at->next) memset(at->data, 0, strlen(at->data));
    t.library->slist_free_all(headers);
    if (curl) t.library->easy_cleanup(curl);
    return status;
}
