/* YAML recipes as ki_value trees.
 *
 * The part of YAML that people write by hand: maps, lists, plain and quoted scalars, one document. Refused
 * with the line: anchors, aliases and tags (so a small file cannot expand into a large tree), keys that are
 * not scalars, a key given twice, NUL in a scalar; more than 16 MiB, 64 levels, a million nodes, 16 lines
 * that begin with '%'. */
#ifndef KI_YAML_H
#define KI_YAML_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/value.h"

/* Scalars keep their text; a plain `~`, `null` or nothing is KI_VALUE_NULL, a quoted one is the
 * text. An empty document is KI_VALUE_NULL. Every node has its line. Errors begin with
 * "NAME:LINE: ". All nodes live in the arena, also those of a parse that failed. */
kith_status ki_yaml_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err);
kith_status ki_yaml_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err);

/* The reverse: text that parses to the same tree; free it with ki_free. A KI_VALUE_NULL with text is written
 * as `~` with the text as a comment after it. */
kith_status ki_yaml_text(const ki_value *root, char **ret_text, kith_error *err);

#endif
