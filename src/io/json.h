/* Reading JSON into ki_value trees, and saving what kith/experimental/json.h wrote. */
#ifndef KI_JSON_H
#define KI_JSON_H

#include <stddef.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/value.h"
#include "kith/experimental/json.h"

/* Numbers, true and false become scalars with their JSON text (reals with 17 digits), null becomes
 * KI_VALUE_NULL. A key given twice, more than 64 levels and anything that is not one JSON value are
 * KITH_EFORMAT with the line, as are more than 64 MiB. Nodes live in the arena and carry no line numbers. */
kith_status ki_json_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err);
kith_status ki_json_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err);

/* For callers of jansson, after json_load… failed: KITH_ENOMEM with a line if memory ran out, else KITH_OK. In that case the
 * text is wrong, and `why` says how. */
struct json_error_t;
kith_status ki_json_check_memory(const struct json_error_t *why, const char *name_for_errors,
                                 kith_error *err);

/* Finish it, and write it whole (core/atomic.h) as one line. */
kith_status ki_json_save(kith_json *json, const char *path, kith_error *err);

#endif
