/* libyaml's events drive a small builder with an explicit stack: no recursion, and every limit is
 * checked before a node is made. */
#include "io/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "io/file.h"

enum { MOST_BYTES = 16 << 20, MOST_LEVELS = 64, MOST_NODES = 1 << 20, MOST_DIRECTIVES = 16 };

typedef struct builder {
    const char *name;
    ki_arena *arena;
    kith_error *err;
    ki_value *root;
    ki_value *open[MOST_LEVELS];  /* lists and maps not yet ended */
    const char *key[MOST_LEVELS]; /* a map's key whose value has not come yet */
    int key_line[MOST_LEVELS];
    int depth;
    int n_nodes;
} builder;

static int line_of(const yaml_event_t *event) { return (int)event->start_mark.line + 1; }

static kith_status fail_at(builder *b, int line, const char *what) {
    return ki_fail(b->err, KITH_EFORMAT, "%s:%d: %s", b->name, line, what);
}

static kith_status fail_memory(builder *b) {
    return ki_fail(b->err, KITH_ENOMEM, "%s: no memory for the document", b->name);
}

/* libyaml says what it was doing and what it found. */
static kith_status fail_parser(builder *b, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR) return fail_memory(b);
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return ki_fail(b->err, KITH_EFORMAT, "%s: not YAML: %s at byte %zu", b->name, problem,
                       parser->problem_offset);
    return ki_fail(b->err, KITH_EFORMAT, "%s:%zu: not YAML: %s%s%s", b->name, parser->problem_mark.line + 1,
                   problem, parser->context ? " " : "", parser->context ? parser->context : "");
}

static bool is_null(const yaml_event_t *event) {
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp((const char *)event->data.scalar.value, words[i]) == 0) return true;
    }
    return false;
}

static kith_status place(builder *b, ki_value *value) {
    if (b->depth == 0) {
        b->root = value;
        return KITH_OK;
    }
    const int level = b->depth - 1;
    if (b->open[level]->kind == KI_VALUE_MAP && !b->key[level])
        return fail_at(b, value->line, "a list or a map as a key; wanted a word");
    ki_value_append(b->open[level], b->key[level], value);
    /* the line of an entry is that of its key */
    if (b->key[level]) value->line = b->key_line[level];
    b->key[level] = NULL;
    return KITH_OK;
}

static kith_status make_node(builder *b, ki_value_kind kind, const char *text, int line,
                             ki_value **ret_value) {
    if (++b->n_nodes > MOST_NODES) return fail_at(b, line, "more than a million values");
    ki_value *value = ki_value_new(b->arena, kind, text);
    if (!value) return fail_memory(b);
    value->line = line;
    *ret_value = value;
    return KITH_OK;
}

static kith_status on_scalar(builder *b, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    const int line = line_of(event);
    if (strlen(text) != event->data.scalar.length) return fail_at(b, line, "a NUL character in a value");
    const int level = b->depth - 1;
    if (b->depth > 0 && b->open[level]->kind == KI_VALUE_MAP && !b->key[level]) {
        if (!*text) return fail_at(b, line, "a value without a key");
        b->key[level] = ki_arena_strdup(b->arena, text);
        b->key_line[level] = line;
        return b->key[level] ? KITH_OK : fail_memory(b);
    }
    ki_value *value = NULL;
    const bool nothing = is_null(event);
    KI_TRY(make_node(b, nothing ? KI_VALUE_NULL : KI_VALUE_SCALAR, nothing ? NULL : text, line, &value));
    return place(b, value);
}

static kith_status on_begin(builder *b, ki_value_kind kind, int line) {
    ki_value *value = NULL;
    if (b->depth == MOST_LEVELS) return fail_at(b, line, "nested deeper than 64 levels");
    KI_TRY(make_node(b, kind, NULL, line, &value));
    KI_TRY(place(b, value));
    b->open[b->depth] = value;
    b->key[b->depth] = NULL;
    b->depth++;
    return KITH_OK;
}

static int compare_keys(const void *left, const void *right) {
    const ki_value *a = *(const ki_value *const *)left, *b = *(const ki_value *const *)right;
    const int order = strcmp(a->key, b->key);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Sorting keeps a hostile map of a million keys at n log n. */
static kith_status check_keys(builder *b, const ki_value *map) {
    const ki_value **entries = NULL;
    size_t n = 0;
    if (map->n_items < 2) return KITH_OK;
    KI_TRY(ki_alloc_or(&entries, map->n_items, sizeof *entries, "the keys of a map", b->err));
    for (const ki_value *v = map->first; v; v = v->next) entries[n++] = v;
    qsort(entries, n, sizeof *entries, compare_keys);
    kith_status status = KITH_OK;
    for (size_t i = 1; i < n && status == KITH_OK; i++) {
        if (strcmp(entries[i - 1]->key, entries[i]->key) == 0)
            status = ki_fail(b->err, KITH_EFORMAT, "%s:%d: the key '%s' is given twice (first on line %d)",
                             b->name, entries[i]->line, entries[i]->key, entries[i - 1]->line);
    }
    ki_free(entries);
    return status;
}

static kith_status on_event(builder *b, const yaml_event_t *event) {
    const int line = line_of(event);
    switch (event->type) {
    case YAML_ALIAS_EVENT: return fail_at(b, line, "an alias (*name); write the value out");
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.anchor) return fail_at(b, line, "an anchor (&name); write the value out");
        if (event->data.scalar.tag) return fail_at(b, line, "a tag (!name); write the plain value");
        return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.anchor)
            return fail_at(b, line, "an anchor (&name); write the value out");
        if (event->data.sequence_start.tag) return fail_at(b, line, "a tag (!name); write the plain value");
        return on_begin(b, KI_VALUE_LIST, line);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.anchor)
            return fail_at(b, line, "an anchor (&name); write the value out");
        if (event->data.mapping_start.tag) return fail_at(b, line, "a tag (!name); write the plain value");
        return on_begin(b, KI_VALUE_MAP, line);
    case YAML_SEQUENCE_END_EVENT: b->depth--; return KITH_OK;
    case YAML_MAPPING_END_EVENT: b->depth--; return check_keys(b, b->open[b->depth]);
    case YAML_DOCUMENT_START_EVENT:
        return b->root ? fail_at(b, line, "a second document (---); wanted one") : KITH_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: return KITH_OK;
    }
    return KITH_OK;
}

/* libyaml compares each %TAG line with all before it, before it hands out the first event: 60,000 of
 * them take 12 seconds. Recipes have none. */
static kith_status check_directives(builder *b, const char *text, size_t n) {
    int count = 0, line = 1;
    bool at_start = true;
    for (size_t i = 0; i < n; i++) {
        if (at_start && text[i] == '%' && ++count > MOST_DIRECTIVES)
            return fail_at(b, line, "more than 16 lines that begin with '%'");
        at_start = text[i] == '\n' || text[i] == '\r';
        line += text[i] == '\n';
    }
    return KITH_OK;
}

kith_status ki_yaml_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err) {
    builder b = {.name = name_for_errors, .arena = arena, .err = err};
    if (n > MOST_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s: %zu bytes of YAML; wanted at most %d", name_for_errors, n,
                       MOST_BYTES);
    KI_TRY(check_directives(&b, text, n));
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return fail_memory(&b);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    kith_status status = KITH_OK;
    for (bool is_end = false; !is_end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            status = fail_parser(&b, &parser);
            break;
        }
        is_end = event.type == YAML_STREAM_END_EVENT;
        status = on_event(&b, &event);
        yaml_event_delete(&event);
        if (status != KITH_OK) break;
    }
    yaml_parser_delete(&parser);
    if (status == KITH_OK && !b.root) status = make_node(&b, KI_VALUE_NULL, NULL, 1, &b.root);
    if (status == KITH_OK) *ret_root = b.root;
    return status;
}

kith_status ki_yaml_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, MOST_BYTES, &text, &n, err));
    const kith_status status = ki_yaml_parse(text, n, path, arena, ret_root, err);
    ki_free(text);
    return status;
}
