/* Status names and texts; filling in an error. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/redact.h"
#include "base/text.h"

const char *kith_status_name(kith_status status) {
    switch (status) {
#define KI_STATUS_NAME(name, value, text) \
    case KITH_##name: return "KITH_" #name;
        KITH_STATUS_LIST(KI_STATUS_NAME)
#undef KI_STATUS_NAME
    }
    return "KITH_?";
}

const char *kith_status_text(kith_status status) {
    switch (status) {
#define KI_STATUS_TEXT(name, value, text) \
    case KITH_##name: return text;
        KITH_STATUS_LIST(KI_STATUS_TEXT)
#undef KI_STATUS_TEXT
    }
    return "unknown status";
}

/* A message is one line, and repeats no password. */
static void make_fit(char *s) {
    ki_redact(s);
    ki_make_line(s);
}

kith_status ki_fail(kith_error *err, kith_status status, const char *fmt, ...) {
    if (!err) return status;
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    make_fit(err->message);
    err->status = status;
    err->hint[0] = '\0';
    return status;
}

kith_status ki_hint(kith_error *err, kith_status status, const char *fmt, ...) {
    if (!err) return status;
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
    make_fit(err->hint);
    return status;
}

kith_status ki_prefix(kith_error *err, kith_status status, const char *fmt, ...) {
    if (!err) return status;
    char line[sizeof err->message];
    va_list ap;
    va_start(ap, fmt);
    int n = ki_vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n + 3 >= sizeof line) return status;
    ki_snprintf(line + n, sizeof line - (size_t)n, ": %.*s", (int)(sizeof line - (size_t)n - 3),
                err->message);
    memcpy(err->message, line, sizeof line);
    make_fit(err->message);
    return status;
}

kith_status ki_fail_memory(kith_error *err, size_t bytes, const char *what) {
    return ki_fail(err, KITH_ENOMEM, "no memory for %s (%zu bytes)", what, bytes);
}
