/* Strict addresses. */
#include "hub/url.h"

#include <string.h>

#include "base/text.h"

static bool is_host_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* Characters of paths and queries: printable ASCII without those that programs read in different ways. */
static bool is_path_char(char c) { return c > ' ' && c < 127 && !strchr("\\\"<>^`{|}#", c); }

/* Bytes of the host at s, "[::1]" included; 0: none. */
static size_t host_bytes(const char *s) {
    size_t n = 0;
    if (*s == '[') {
        n = 1 + strspn(s + 1, "0123456789abcdefABCDEF:.");
        return s[n] == ']' && n > 1 ? n + 1 : 0;
    }
    while (is_host_char(s[n])) n++;
    return n && s[0] != '.' && s[0] != '-' ? n : 0;
}

static bool is_loopback(const char *host, size_t n) {
    return (n == 9 && strncmp(host, "localhost", n) == 0) || (n == 5 && strncmp(host, "[::1]", n) == 0) ||
           (n >= 7 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") >= n);
}

static bool parse(const char *text, ki_hub_url *ret) {
    ki_hub_url url = {0};
    const size_t n = strlen(text);
    url.is_https = strncmp(text, "https://", 8) == 0;
    if (!url.is_https && strncmp(text, "http://", 7) != 0) return false;
    const char *host = text + (url.is_https ? 8 : 7);
    const size_t n_host = host_bytes(host);
    const char *end = host + n_host;
    if (n_host == 0 || n_host > 255 || n >= sizeof url.text) return false;
    if (*end == ':') {
        const size_t n_port = strspn(end + 1, "0123456789");
        if (n_port < 1 || n_port > 5) return false;
        end += 1 + n_port;
    }
    if (*end != '\0' && *end != '/' && *end != '?') return false;
    for (const char *s = end; *s; s++) {
        if (!is_path_char(*s)) return false;
    }
    url.is_loopback = is_loopback(host, n_host);
    memcpy(url.origin, text, (size_t)(end - text));
    memcpy(url.text, text, n + 1);
    for (char *s = url.origin; *s; s++) {
        if (*s >= 'A' && *s <= 'Z') *s = (char)(*s - 'A' + 'a');
    }
    /* The port that is meant anyway is not a difference. */
    const char *usual = url.is_https ? ":443" : ":80";
    const size_t n_origin = strlen(url.origin), n_usual = strlen(usual);
    if (strcmp(url.origin + n_origin - n_usual, usual) == 0) url.origin[n_origin - n_usual] = '\0';
    *ret = url;
    return true;
}

kith_status ki_hub_url_parse(const char *text, const char *what, ki_hub_url *ret, kith_error *err) {
    if (parse(text, ret)) return KITH_OK;
    /* It may hold a password, so it is not shown. */
    return ki_fail(err, KITH_EINVAL,
                   "%s is not an address that can be used; wanted https://HOST or http://HOST, without a "
                   "user name",
                   what);
}

kith_status ki_hub_url_follow(const ki_hub_url *from, const char *location, ki_hub_url *ret,
                              kith_error *err) {
    char whole[KI_HUB_URL];
    ki_hub_url url;
    const bool is_path = location[0] == '/' && location[1] != '/';
    const int n = ki_snprintf(whole, sizeof whole, "%s%s", is_path ? from->origin : "", location);
    if (n < 0 || (size_t)n >= sizeof whole || !parse(whole, &url))
        return ki_fail(err, KITH_EFORMAT, "%s redirects to something that is not an http address; refused",
                       from->origin);
    if (from->is_https && !url.is_https)
        return ki_fail(err, KITH_EFORMAT, "%s redirects from https to %s, without encryption; refused",
                       from->origin, url.origin);
    *ret = url;
    return KITH_OK;
}

bool ki_hub_url_same_origin(const ki_hub_url *a, const ki_hub_url *b) {
    return strcmp(a->origin, b->origin) == 0;
}

kith_status ki_hub_url_of_file(const ki_hub_url *endpoint, const char *repo, const char *revision,
                               const char *file, ki_hub_url *ret, kith_error *err) {
    char quoted[3 * 128 + 1], text[KI_HUB_URL];
    size_t n = 0, n_end = strlen(endpoint->text);
    /* A revision's slashes are quoted, too; its other characters need no quotes (ki_hub_name_parse). */
    for (const char *s = revision; *s && n + 4 < sizeof quoted; s++) {
        if (*s == '/')
            n += (size_t)ki_snprintf(quoted + n, sizeof quoted - n, "%%2F");
        else
            quoted[n++] = *s;
    }
    quoted[n] = '\0';
    while (n_end > 0 && endpoint->text[n_end - 1] == '/') n_end--;
    const int n_text = ki_snprintf(text, sizeof text, "%.*s/%s/resolve/%s/%s", (int)n_end, endpoint->text,
                                   repo, quoted, file);
    if (n_text < 0 || (size_t)n_text >= sizeof text)
        return ki_fail(err, KITH_EINVAL, "the address of %s is too long", file);
    return ki_hub_url_parse(text, "HF_ENDPOINT", ret, err);
}
