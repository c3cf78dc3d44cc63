/* Cutting a body at its boundary, and the names of its parts. */
#include "serve/http/multipart.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { MOST_BOUNDARY = 70 };

/* "\r\n--BOUNDARY". */
typedef struct separator {
    char text[MOST_BOUNDARY + 5];
    size_t n;
} separator;

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* The value of `key` in "…; key=value; key="value"", as a range. */
static bool find_value(const char *text, size_t n, const char *key, const char **ret_value, size_t *ret_n) {
    const char *const end = text + n;
    const size_t n_key = strlen(key);
    const char *at = text;
    while (at < end) {
        while (at < end && *at != ';') { /* a quoted value may hold a ';' */
            if (*at++ != '"') continue;
            while (at < end && *at != '"') at++;
            if (at < end) at++;
        }
        if (at == end) return false;
        at++;
        while (at < end && is_blank(*at)) at++;
        if ((size_t)(end - at) <= n_key || strncasecmp(at, key, n_key) != 0 || at[n_key] != '=') continue;
        at += n_key + 1;
        const bool is_quoted = at < end && *at == '"';
        if (is_quoted) at++;
        *ret_value = at;
        while (at < end && (is_quoted ? *at != '"' : *at != ';' && !is_blank(*at))) at++;
        *ret_n = (size_t)(at - *ret_value);
        return !is_quoted || at < end;
    }
    return false;
}

static kith_status find_separator(const char *content_type, separator *ret, kith_error *err) {
    static const char type[] = "multipart/form-data";
    const char *boundary = NULL;
    size_t n = 0;
    if (strncasecmp(content_type, type, strlen(type)) != 0 ||
        !find_value(content_type, strlen(content_type), "boundary", &boundary, &n) || n == 0 ||
        n > MOST_BOUNDARY)
        return ki_fail(err, KITH_EFORMAT,
                       "the request is '%.60s'; wanted multipart/form-data with a boundary", content_type);
    memcpy(ret->text, "\r\n--", 4);
    memcpy(ret->text + 4, boundary, n);
    ret->n = n + 4;
    return KITH_OK;
}

/* The headers of a part, line by line to the empty one. Returns where the contents begin, or NULL. */
static const char *read_headers(const char *at, const char *end, ki_form_part *part) {
    static const char wanted[] = "Content-Disposition:";
    for (;;) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!stop) return NULL;
        const size_t n = (size_t)(stop - at);
        if (n == 0) return part->name ? stop + 2 : NULL;
        if (n > strlen(wanted) && strncasecmp(at, wanted, strlen(wanted)) == 0 &&
            !find_value(at, n, "name", &part->name, &part->n_name))
            return NULL;
        at = stop + 2;
    }
}

static kith_status malformed(kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "the request's parts are not complete, or one has no name");
}

static bool is_there(const ki_form *parts, const ki_form_part *part) {
    for (int i = 0; i < parts->n; i++) {
        const ki_form_part *p = &parts->part[i];
        if (p->n_name == part->n_name && memcmp(p->name, part->name, p->n_name) == 0) return true;
    }
    return false;
}

/* The body is: --B CRLF part, CRLF--B CRLF part …, CRLF--B--. The first may come after other text. */
kith_status ki_form_read(const char *content_type, const char *body, size_t n_body, ki_form *ret_parts,
                         kith_error *err) {
    separator cut;
    ki_form parts = {.n = 0};
    KI_TRY(find_separator(content_type, &cut, err));
    const char *at = body, *const end = body + n_body;
    if (n_body >= cut.n - 2 && memcmp(body, cut.text + 2, cut.n - 2) == 0) {
        at += cut.n - 2;
    } else {
        at = n_body ? memmem(body, n_body, cut.text, cut.n) : NULL;
        if (!at) return malformed(err);
        at += cut.n;
    }
    for (;;) {
        if (end - at >= 2 && memcmp(at, "--", 2) == 0) break;
        while (at < end && is_blank(*at)) at++;
        if (end - at < 2 || memcmp(at, "\r\n", 2) != 0) return malformed(err);
        ki_form_part part = {0};
        part.bytes = read_headers(at + 2, end, &part);
        if (!part.bytes) return malformed(err);
        at = memmem(part.bytes, (size_t)(end - part.bytes), cut.text, cut.n);
        /* An empty part: its separator begins with the line break that ended the headers. */
        if (!at) return malformed(err);
        part.n_bytes = (size_t)(at - part.bytes);
        at += cut.n;
        if (parts.n == KI_MOST_FORM_PARTS)
            return ki_fail(err, KITH_EFORMAT, "the request has more than %d parts", KI_MOST_FORM_PARTS);
        if (is_there(&parts, &part))
            return ki_fail(err, KITH_EFORMAT, "the request has two parts '%.*s'",
                           (int)(part.n_name < 40 ? part.n_name : 40), part.name);
        parts.part[parts.n++] = part;
    }
    *ret_parts = parts;
    return KITH_OK;
}

const ki_form_part *ki_form_find(const ki_form *parts, const char *name) {
    const size_t n = strlen(name);
    for (int i = 0; i < parts->n; i++) {
        if (parts->part[i].n_name == n && memcmp(parts->part[i].name, name, n) == 0) return &parts->part[i];
    }
    return NULL;
}
