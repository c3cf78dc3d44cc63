/* Writing JSON Schema. */
#include "serve/http/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_TYPE = 96 };

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static void put_number(kith_json *json, const char *key, double value, bool is_whole) {
    kith_json_key(json, key);
    if (is_whole)
        kith_json_int(json, (int64_t)value);
    else
        kith_json_real(json, value);
}

/* ---- options ---- */

static void put_range(kith_json *json, const ki_option *o, bool is_whole) {
    put_text(json, "type", is_whole ? "integer" : "number");
    put_number(json, "minimum", o->least, is_whole);
    put_number(json, "maximum", o->most, is_whole);
    if (o->def >= o->least && o->def <= o->most) put_number(json, "default", o->def, is_whole);
}

static void put_choices(kith_json *json, const ki_option *o) {
    put_text(json, "type", "string");
    kith_json_key(json, "enum");
    kith_json_array_begin(json);
    for (const char *const *choice = o->choices; *choice; choice++) kith_json_string(json, *choice);
    kith_json_array_end(json);
    put_text(json, "default", o->choices[(int)o->def]);
}

/* The keys of an option, in an object that is open. */
static void put_option(kith_json *json, const ki_option *o) {
    switch (o->type) {
    case KI_OPTION_T_REAL: put_range(json, o, false); break;
    case KI_OPTION_T_INT: put_range(json, o, true); break;
    case KI_OPTION_T_BOOL:
        put_text(json, "type", "boolean");
        kith_json_key(json, "default");
        kith_json_bool(json, o->def != 0);
        break;
    case KI_OPTION_T_CHOICE: put_choices(json, o); break;
    case KI_OPTION_T_TEXT:
        put_text(json, "type", "string");
        if (o->def_text) put_text(json, "default", o->def_text);
        break;
    default: break; /* a tree: anything, unless somebody knows better */
    }
    put_text(json, "description", o->help);
}

void ki_schema_option(kith_json *json, const ki_option *option) {
    kith_json_object_begin(json);
    put_option(json, option);
    kith_json_object_end(json);
}

static const ki_schema_tree *find_tree(const ki_schema_tree *trees, const char *name) {
    for (const ki_schema_tree *t = trees; t && t->name; t++) {
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

void ki_schema_options(kith_json *json, const ki_option *table, const ki_schema_tree *trees) {
    kith_json_object_begin(json);
    put_text(json, "type", "object");
    kith_json_key(json, "additionalProperties");
    kith_json_bool(json, false);
    kith_json_key(json, "required");
    kith_json_array_begin(json);
    for (const ki_schema_tree *t = trees; t && t->name; t++) {
        if (t->is_required) kith_json_string(json, t->name);
    }
    kith_json_array_end(json);
    kith_json_key(json, "properties");
    kith_json_object_begin(json);
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++) {
        const ki_schema_tree *tree = find_tree(trees, o->name);
        kith_json_key(json, o->name);
        kith_json_object_begin(json);
        if (tree) tree->put(json);
        put_option(json, o);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
    kith_json_object_end(json);
}

/* ---- answers ---- */

static void put_type_name(kith_json *json, const char *name, bool or_null) {
    kith_json_key(json, "type");
    if (or_null) kith_json_array_begin(json);
    kith_json_string(json, name);
    if (or_null) kith_json_string(json, "null");
    if (or_null) kith_json_array_end(json);
}

static void put_words(kith_json *json, char *words) {
    char *rest = NULL;
    kith_json_key(json, "enum");
    kith_json_array_begin(json);
    for (char *word = strtok_r(words, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        kith_json_string(json, word);
    kith_json_array_end(json);
}

static void put_reference(kith_json *json, const char *name, bool or_null) {
    char path[MOST_TYPE + 32];
    ki_snprintf(path, sizeof path, "#/components/schemas/%s", name);
    if (!or_null) {
        put_text(json, "$ref", path);
        return;
    }
    kith_json_key(json, "anyOf");
    kith_json_array_begin(json);
    kith_json_object_begin(json);
    put_text(json, "$ref", path);
    kith_json_object_end(json);
    kith_json_object_begin(json);
    put_text(json, "type", "null");
    kith_json_object_end(json);
    kith_json_array_end(json);
}

static void put_list(kith_json *json, const char *type, bool or_null) {
    char *of = NULL;
    const long n = strtol(type + 1, &of, 10);
    put_type_name(json, "array", or_null);
    kith_json_key(json, "items");
    kith_json_object_begin(json);
    ki_schema_type(json, of + 1);
    kith_json_object_end(json);
    if (n > 0) put_number(json, "minItems", (double)n, true);
    if (n > 0) put_number(json, "maxItems", (double)n, true);
}

void ki_schema_type(kith_json *json, const char *type) {
    char text[MOST_TYPE];
    ki_snprintf(text, sizeof text, "%s", type);
    const size_t n = strlen(text);
    const bool or_null = n > 0 && text[n - 1] == '?';
    if (or_null) text[n - 1] = '\0';
    if (text[0] == '=')
        put_words(json, text + 1);
    else if (text[0] == '[')
        put_list(json, text, or_null);
    else if (isupper((unsigned char)text[0]))
        put_reference(json, text, or_null);
    else
        put_type_name(json, text, or_null);
}

void ki_schema_fields(kith_json *json, const ki_schema_field *fields) {
    kith_json_object_begin(json);
    put_text(json, "type", "object");
    kith_json_key(json, "required");
    kith_json_array_begin(json);
    for (const ki_schema_field *f = fields; f->name; f++) {
        if (!f->may_be_missing) kith_json_string(json, f->name);
    }
    kith_json_array_end(json);
    kith_json_key(json, "properties");
    kith_json_object_begin(json);
    for (const ki_schema_field *f = fields; f->name; f++) {
        kith_json_key(json, f->name);
        kith_json_object_begin(json);
        ki_schema_type(json, f->type);
        if (f->help) put_text(json, "description", f->help);
        kith_json_object_end(json);
    }
    kith_json_object_end(json);
    kith_json_object_end(json);
}
