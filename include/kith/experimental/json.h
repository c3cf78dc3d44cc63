/* JSON text, one call per token: for --json outputs and log lines.
 *
 *     kith_json_object_begin(json);
 *     kith_json_key(json, "recall");
 *     kith_json_real(json, 0.613);
 *     kith_json_object_end(json);
 *     status = kith_json_finish(json, &text, err);
 *
 * The calls return nothing: the first thing that goes wrong (no memory, a value without a key, an end without
 * a begin, nesting beyond 64) is kept and reported by kith_json_finish. One line, no newline at the end. JSON
 * has no NaN and no infinities; they become null. Bytes that are not UTF-8 become U+FFFD, so that the text is
 * always valid JSON. Numbers never depend on the locale. */
#ifndef KITH_JSON_H
#define KITH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_json kith_json;

/* An empty text. It is used by one thread at a time. */
KITH_API kith_status kith_json_new(kith_json **ret_json, kith_error *err);
KITH_API void kith_json_free(kith_json *json); /* NULL is fine */
/* Begin again and keep the memory: one log line per step then allocates nothing after the first. */
KITH_API void kith_json_reset(kith_json *json);

/* { } [ ] */
KITH_API void kith_json_object_begin(kith_json *json);
KITH_API void kith_json_object_end(kith_json *json);
KITH_API void kith_json_array_begin(kith_json *json);
KITH_API void kith_json_array_end(kith_json *json);
KITH_API void kith_json_key(kith_json *json, const char *key);
/* The fewest digits that read back as the same double, or the same float. */
KITH_API void kith_json_real(kith_json *json, double value);
KITH_API void kith_json_real32(kith_json *json, float value);
KITH_API void kith_json_int(kith_json *json, int64_t value);
KITH_API void kith_json_bool(kith_json *json, bool value);
KITH_API void kith_json_string(kith_json *json, const char *value); /* NULL becomes null */
KITH_API void kith_json_null(kith_json *json);

/* The text of one complete value; it stays until the next call with this object. */
KITH_API kith_status kith_json_finish(kith_json *json, const char **ret_text, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
