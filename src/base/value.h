/* ki_value: a parsed document (a recipe, a JSON file) as a tree.
 *
 * Scalars keep their text; the option that reads one decides what it means. All nodes of a document live in
 * one arena, which the caller of the parser provides. */
#ifndef KI_VALUE_H
#define KI_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef enum ki_value_kind { KI_VALUE_NULL, KI_VALUE_SCALAR, KI_VALUE_LIST, KI_VALUE_MAP } ki_value_kind;

typedef struct ki_value ki_value;
struct ki_value {
    ki_value_kind kind;
    bool is_quoted;   /* a scalar of a JSON file: it is a string */
    const char *text; /* scalar */
    const char *key;  /* when this value is an entry of a map */
    int line;         /* in the file, from 1; 0 when unknown */
    ki_value *first;  /* list items or map entries, in file order */
    ki_value *last;   /* the last of them, so that appending needs no loop */
    ki_value *next;   /* sibling */
    size_t n_items;
};

/* The entry of a map, or NULL (also when map is NULL or not a map). */
const ki_value *ki_value_get(const ki_value *map, const char *key);
/* The i-th item of a list or entry of a map, or NULL. */
const ki_value *ki_value_at(const ki_value *list, size_t i);
/* "a map", "a list", "'text'": for error lines; writes into buf and returns it. */
const char *ki_value_describe(const ki_value *value, char *buf, size_t buf_bytes);

/* Leave out the entries of maps that are nothing, at every level: `key:` with nothing after it is the same as no key. */
void ki_value_drop_nothings(ki_value *value);

/* Build: NULL when no memory is left. append puts `item` last in `parent` (key NULL for lists). */
ki_value *ki_value_new(ki_arena *arena, ki_value_kind kind, const char *text);
void ki_value_append(ki_value *parent, const char *key, ki_value *item);

#endif
