/* Reading the head of an answer. */
#include "hub/answer.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { MOST_HEAD = 256 << 10 };

static void clear(ki_hub_answer *a) {
    const size_t n = a->n_head_bytes;
    *a = (ki_hub_answer){.n_head_bytes = n,
                         .length = -1,
                         .linked_size = -1,
                         .range_first = -1,
                         .range_all = -1,
                         .retry_after = -1};
}

void ki_hub_answer_init(ki_hub_answer *a) {
    a->n_head_bytes = 0;
    clear(a);
}

/* The bytes from s to end, which are not a string. */
typedef struct span {
    const char *s, *end;
} span;

static span trimmed(span v) {
    while (v.s < v.end && (*v.s == ' ' || *v.s == '\t')) v.s++;
    while (v.s < v.end && strchr(" \t\r\n", v.end[-1])) v.end--;
    return v;
}

/* Digits alone, that fit. */
static bool take_number(span *v, int64_t *ret) {
    int64_t n = 0;
    int digits = 0;
    for (; v->s < v->end && *v->s >= '0' && *v->s <= '9'; v->s++, digits++) {
        if (digits >= 18) return false;
        n = 10 * n + (*v->s - '0');
    }
    if (digits == 0) return false;
    *ret = n;
    return true;
}

static void put_number(span v, int64_t *ret) {
    int64_t n = 0;
    if (*ret < 0 && take_number(&v, &n) && v.s == v.end) *ret = n;
}

/* The first of several counts; only visible ASCII. */
static void put_text(span v, char *ret, size_t bytes) {
    const size_t n = (size_t)(v.end - v.s);
    if (*ret || n >= bytes) return;
    for (size_t i = 0; i < n; i++) {
        if (v.s[i] <= ' ' || v.s[i] >= 127) return;
    }
    memcpy(ret, v.s, n);
    ret[n] = '\0';
}

/* "abc" and W/"abc" mean abc here, as for huggingface_hub. */
static void put_etag(span v, char ret[KI_HUB_ETAG]) {
    if (v.end - v.s >= 2 && v.s[0] == 'W' && v.s[1] == '/') v.s += 2;
    if (v.end - v.s >= 2 && *v.s == '"' && v.end[-1] == '"') v.s++, v.end--;
    put_text(v, ret, KI_HUB_ETAG);
}

static void put_commit(span v, char ret[41]) {
    char text[41] = "";
    put_text(v, text, sizeof text);
    if (strspn(text, "0123456789abcdef") == 40) memcpy(ret, text, sizeof text);
}

/* bytes 100-199/200, and bytes * /200 with a 416. */
static void put_range(span v, ki_hub_answer *a) {
    static const char unit[] = "bytes ";
    int64_t first = -1, last = -1, all = -1;
    if (v.end - v.s < (long)sizeof unit - 1 || strncasecmp(v.s, unit, sizeof unit - 1) != 0) return;
    v.s += sizeof unit - 1;
    if (!take_number(&v, &first) || v.s == v.end || *v.s++ != '-') return;
    if (!take_number(&v, &last) || v.s == v.end || *v.s++ != '/') return;
    if (!take_number(&v, &all) || v.s != v.end || first > last || last >= all) return;
    a->range_first = first;
    a->range_all = all;
}

static void take_status(ki_hub_answer *a, const char *line, size_t n) {
    const char *space = memchr(line, ' ', n);
    if (!space) return;
    span v = {space + 1, line + n};
    int64_t status = 0;
    clear(a);
    if (take_number(&v, &status) && status >= 100 && status <= 999) a->status = (int)status;
}

static bool is_called(const char *line, size_t n, const char *name) {
    return n == strlen(name) && strncasecmp(line, name, n) == 0;
}

kith_status ki_hub_answer_line(ki_hub_answer *a, const char *line, size_t n, kith_error *err) {
    a->n_head_bytes += n;
    if (n > MOST_HEAD || a->n_head_bytes > MOST_HEAD)
        return ki_fail(err, KITH_EFORMAT, "the head of the answer has more than %d KiB; refused",
                       MOST_HEAD >> 10);
    if (n >= 5 && strncmp(line, "HTTP/", 5) == 0) {
        take_status(a, line, n);
        return KITH_OK;
    }
    const char *colon = memchr(line, ':', n);
    if (!colon) return KITH_OK;
    const size_t n_name = (size_t)(colon - line);
    const span v = trimmed((span){colon + 1, line + n});
    if (is_called(line, n_name, "Content-Length")) put_number(v, &a->length);
    if (is_called(line, n_name, "X-Linked-Size")) put_number(v, &a->linked_size);
    if (is_called(line, n_name, "Retry-After")) put_number(v, &a->retry_after);
    if (is_called(line, n_name, "Content-Range")) put_range(v, a);
    if (is_called(line, n_name, "X-Repo-Commit")) put_commit(v, a->commit);
    if (is_called(line, n_name, "ETag")) put_etag(v, a->etag);
    if (is_called(line, n_name, "X-Linked-Etag")) put_etag(v, a->linked_etag);
    if (is_called(line, n_name, "X-Error-Code")) put_text(v, a->error_code, sizeof a->error_code);
    if (is_called(line, n_name, "Location")) put_text(v, a->location, sizeof a->location);
    return KITH_OK;
}
