/* Answers: JSON, problems, bytes. */
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "serve/http/request.h"

static const struct {
    unsigned status;
    const char *title;
} titles[] = {
    {200, "OK"},
    {304, "Not modified"},
    {400, "Bad request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not found"},
    {405, "Method not allowed"},
    {409, "Conflict"},
    {413, "Content too large"},
    {415, "Unsupported media type"},
    {429, "Too many requests"},
    {500, "Internal server error"},
    {501, "Not implemented"},
    {503, "Service unavailable"},
};

const char *ki_status_title(unsigned status) {
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (titles[i].status == status) return titles[i].title;
    }
    return "Error";
}

static void drop(ki_answer *answer) {
    if (!answer->is_static) ki_free(answer->bytes);
    *answer = (ki_answer){0};
}

ki_handling ki_answer_bytes(ki_request *r, const char *type, void *bytes, size_t n) {
    r->answer.status = 200;
    r->answer.type = type;
    r->answer.bytes = bytes;
    r->answer.n_bytes = n;
    return KI_ANSWERED;
}

/* When not even the problem can be written down. */
static ki_handling answer_nothing(ki_request *r) {
    static const char text[] =
        "{\"type\":\"about:blank\",\"title\":\"Service unavailable\",\"status\":503,\"detail\":\"out of "
        "memory\"}";
    drop(&r->answer);
    r->answer = (ki_answer){.status = 503,
                            .type = "application/problem+json",
                            .bytes = (void *)(uintptr_t)text,
                            .n_bytes = sizeof text - 1,
                            .is_static = true,
                            .retry_after = 5};
    return KI_ANSWERED;
}

/* Finish and free `json` as an answer of this type. */
static bool take(ki_request *r, kith_json *json, const char *type) {
    const char *text = NULL;
    kith_error err;
    char *copy = NULL;
    if (kith_json_finish(json, &text, &err) == KITH_OK) copy = ki_strdup(text);
    kith_json_free(json);
    if (!copy) {
        answer_nothing(r);
        return false;
    }
    ki_answer_bytes(r, type, copy, strlen(copy));
    return true;
}

ki_handling ki_answer_json(ki_request *r, kith_json *json) {
    drop(&r->answer);
    take(r, json, "application/json");
    return KI_ANSWERED;
}

static ki_handling answer_problem(ki_request *r, unsigned status, const char *detail, const char *hint) {
    kith_json *json = NULL;
    kith_error err;
    drop(&r->answer);
    if (kith_json_new(&json, &err) != KITH_OK) return answer_nothing(r);
    kith_json_object_begin(json);
    kith_json_key(json, "type");
    kith_json_string(json, "about:blank");
    kith_json_key(json, "title");
    kith_json_string(json, ki_status_title(status));
    kith_json_key(json, "status");
    kith_json_int(json, status);
    kith_json_key(json, "detail");
    kith_json_string(json, detail);
    if (hint && *hint) {
        kith_json_key(json, "hint");
        kith_json_string(json, hint);
    }
    kith_json_object_end(json);
    if (take(r, json, "application/problem+json")) r->answer.status = status;
    return KI_ANSWERED;
}

ki_handling ki_answer_problem(ki_request *r, unsigned status, const char *hint, const char *fmt, ...) {
    char detail[512];
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(detail, sizeof detail, fmt, ap);
    va_end(ap);
    return answer_problem(r, status, detail, hint);
}

ki_handling ki_answer_error(ki_request *r, kith_status status, const kith_error *err) {
    unsigned code = 500;
    switch (status) {
    case KITH_EINVAL:
    case KITH_ESHAPE:
    case KITH_EFORMAT: code = 400; break;
    case KITH_ENOTFOUND: code = 404; break;
    case KITH_EUNSUPPORTED: code = 415; break;
    case KITH_ENOMEM: code = 503; break;
    default: break;
    }
    if (code == 500) { /* a fault of this machine, which may name its folders */
        ki_log(KITH_LOG_WARNING, "%s", err->message);
        return answer_problem(r, code, "the server cannot do this; its log says why", NULL);
    }
    answer_problem(r, code, err->message, err->hint);
    if (code == 503) r->answer.retry_after = 5;
    return KI_ANSWERED;
}

ki_handling ki_answer_index_error(ki_request *r, kith_status status, const kith_error *err) {
    const bool is_theirs = status == KITH_EINVAL || status == KITH_ESHAPE || status == KITH_ENOMEM;
    return ki_answer_error(r, is_theirs ? status : KITH_EIO, err);
}

ki_handling ki_answer_later(ki_request *r, unsigned status, int64_t seconds, const char *why) {
    answer_problem(r, status, why, "try again after the seconds that Retry-After says");
    r->answer.retry_after = seconds;
    return KI_ANSWERED;
}
