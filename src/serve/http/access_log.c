/* The access log: a JSON line for each request. What was sent in a body, and what was asked for after "?", is not in it. */
#include "serve/http/access_log.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/* Bytes that a line cannot hold, such as control characters and what is not UTF-8, as %XX: the path of any request leaves a line. */
static const char *legible(const char *text, char *buf, size_t buf_bytes) {
    size_t used = 0;
    while (*text && used + 4 < buf_bytes) {
        const size_t n = ki_utf8_next(text, strnlen(text, 4));
        const unsigned char c = (unsigned char)*text;
        const bool is_plain = n > 0 && c >= ' ' && c != 127 && used + n < buf_bytes;
        if (is_plain)
            memcpy(buf + used, text, n);
        else
            ki_snprintf(buf + used, buf_bytes - used, "%%%02X", c);
        used += is_plain ? n : 3;
        text += is_plain ? n : 1;
    }
    buf[used] = '\0';
    return buf;
}

void ki_access_log(int fd, const ki_request *r, double seconds) {
    kith_json *json = NULL;
    const char *text = NULL;
    char when[40], who[KI_ADDRESS_TEXT], method[32], path[512], line[2048];
    struct timespec now;
    struct tm parts;
    if (fd < 0 || kith_json_new(&json, NULL) != KITH_OK) return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    const size_t n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    ki_snprintf(when + n, sizeof when - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    kith_json_object_begin(json);
    kith_json_key(json, "time");
    kith_json_string(json, when);
    kith_json_key(json, "address");
    kith_json_string(json, ki_address_text(&r->client, who));
    kith_json_key(json, "method");
    kith_json_string(json, legible(r->method, method, sizeof method));
    kith_json_key(json, "path");
    kith_json_string(json, legible(r->path ? r->path : "", path, sizeof path));
    kith_json_key(json, "status");
    kith_json_int(json, r->answer.status);
    kith_json_key(json, "received");
    kith_json_int(json, (int64_t)r->received);
    kith_json_key(json, "sent");
    kith_json_int(json, r->is_head ? 0 : (int64_t)r->answer.n_bytes);
    kith_json_key(json, "ms");
    kith_json_real(json, (double)(int64_t)(seconds * 1e5) / 100);
    kith_json_object_end(json);
    if (kith_json_finish(json, &text, NULL) == KITH_OK) {
        /* One write, so that lines of several processes in one file stay whole. */
        const int length = ki_snprintf(line, sizeof line, "%s\n", text);
        if (length > 0 && (size_t)length < sizeof line && write(fd, line, (size_t)length) < 0) {
            /* A full disk is no reason to stop answering. */
        }
    }
    kith_json_free(json);
}
