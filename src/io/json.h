/* Reading JSON into ki_value trees, and saving what kith/experimental/json.h wrote. */
#ifndef KI_JSON_H
#define KI_JSON_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/value.h"
#include "kith/experimental/json.h"

/* Numbers, true and false become scalars with their JSON text, null becomes KI_VALUE_NULL. A key given twice, more than 64
 * levels and anything that is not one JSON value are KITH_EFORMAT with the line. Nodes live in the arena, and carry no line
 * numbers; memory is in proportion to the text. A file has at most 64 MiB. */
kith_status ki_json_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err);
kith_status ki_json_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err);

/* Finish it, and write it whole (base/atomic.h) as one line. */
kith_status ki_json_save(kith_json *json, const char *path, kith_error *err);

#endif
