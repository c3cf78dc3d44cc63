/* JSON Schema: what a table of options takes, and what an answer holds. The description of the API is made of it
 * (serve/routes/route_openapi.c). */
#ifndef KI_SERVE_SCHEMA_H
#define KI_SERVE_SCHEMA_H

#include "base/option.h"
#include "kith/experimental/json.h"

/* What one option takes: type, range, default, choices and its help. A default outside the range stands for "not given", and is not
 * told. */
void ki_schema_option(kith_json *json, const ki_option *option);

/* An option that is richer than a scalar (KI_OPTION_TREE). `put` writes the keys of its schema into an object that is open. */
typedef struct ki_schema_tree {
    const char *name;
    bool is_required;
    void (*put)(kith_json *json);
} ki_schema_tree;

/* An object with the options of the table and no other keys. `trees` has every KI_OPTION_TREE of it, and ends with a NULL name; NULL:
 * there is none. */
void ki_schema_options(kith_json *json, const ki_option *table, const ki_schema_tree *trees);

/* A key of an object that is sent. Types are
 *
 *     "string" "integer" "number" "boolean" "object"
 *     "Item"        another schema
 *     "=same|near"  one of these words
 *     "[]number"    a list; "[4]number": of four
 *     "string?"     or null */
typedef struct ki_schema_field {
    const char *name, *type;
    const char *help; /* NULL: none */
    bool may_be_missing;
} ki_schema_field;

/* An object with these keys; a field without a name is the last. */
void ki_schema_fields(kith_json *json, const ki_schema_field *fields);

/* A type by itself, as keys of an object that is open. */
void ki_schema_type(kith_json *json, const char *type);

#endif
