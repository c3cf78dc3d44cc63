/* ki_value trees as YAML: block style, maps and lists of scalars on one line where they are short. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/yaml.h"

enum { LINE_WIDTH = 96, INDENT = 2 };

typedef struct text {
    char *bytes;
    size_t n, capacity;
    kith_status status;
    kith_error *err;
} text;

static void put_bytes(text *t, const char *s, size_t n) {
    if (t->status == KITH_OK)
        t->status = ki_grow(&t->bytes, &t->capacity, t->n + n + 1, 1, "YAML text", t->err);
    if (t->status != KITH_OK) return;
    memcpy(t->bytes + t->n, s, n);
    t->n += n;
    t->bytes[t->n] = '\0';
}

static void put(text *t, const char *s) { put_bytes(t, s, strlen(s)); }

static void put_spaces(text *t, int n) {
    while (n-- > 0) put(t, " ");
}

/* Words that mean the same without quotes inside and outside of [] and {}. */
static bool is_plain(const char *s) {
    static const char *const nothing[] = {"", "~", "null", "Null", "NULL", "-", NULL};
    for (int i = 0; nothing[i]; i++) {
        if (strcmp(s, nothing[i]) == 0) return false;
    }
    if (s[0] == '.' && s[1] == '.' && s[2] == '.') return false;
    if (s[0] == '-' && s[1] == '-') return false;
    for (const char *c = s; *c; c++) {
        const bool good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                          strchr("_./+-", *c);
        if (!good) return false;
    }
    return true;
}

static void put_scalar(text *t, const char *s) {
    if (is_plain(s)) {
        put(t, s);
        return;
    }
    put(t, "\"");
    for (const char *c = s; *c; c++) {
        char code[8];
        if (*c == '"' || *c == '\\') {
            put_bytes(t, (const char[]){'\\', *c}, 2);
        } else if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            ki_snprintf(code, sizeof code, "\\x%02x", (unsigned)(unsigned char)*c);
            put(t, code);
        } else {
            put_bytes(t, c, 1);
        }
    }
    put(t, "\"");
}

static void put_flow(text *t, const ki_value *v) {
    if (v->kind == KI_VALUE_SCALAR) {
        put_scalar(t, v->text);
        return;
    }
    if (v->kind == KI_VALUE_NULL) {
        put(t, "~");
        return;
    }
    put(t, v->kind == KI_VALUE_MAP ? "{" : "[");
    for (const ki_value *item = v->first; item; item = item->next) {
        if (item != v->first) put(t, ", ");
        if (v->kind == KI_VALUE_MAP) {
            put_scalar(t, item->key);
            put(t, ": ");
        }
        put_flow(t, item);
    }
    put(t, v->kind == KI_VALUE_MAP ? "}" : "]");
}

static bool has_notes(const ki_value *v) {
    if (v->kind == KI_VALUE_NULL && v->text) return true;
    for (const ki_value *item = v->first; item; item = item->next) {
        if (has_notes(item)) return true;
    }
    return false;
}

static void put_block(text *t, const ki_value *v, int indent);

/* What follows "key:" or "-". */
static void put_after(text *t, const ki_value *v, int indent, bool is_item) {
    const bool is_leaf = v->kind == KI_VALUE_SCALAR || v->kind == KI_VALUE_NULL || !v->first;
    if (!is_leaf && indent > 0) {
        /* Is it short enough for the line? It is written, measured, and removed again if not. */
        const size_t before = t->n;
        put(t, " ");
        put_flow(t, v);
        size_t line = t->n - before + (size_t)indent;
        for (size_t i = before; i > 0 && t->bytes && t->bytes[i - 1] != '\n'; i--) line++;
        if (line <= LINE_WIDTH && !has_notes(v)) {
            put(t, "\n");
            return;
        }
        if (t->status == KITH_OK) t->n = before;
    }
    if (is_leaf) {
        put(t, " ");
        put_flow(t, v);
        if (v->kind == KI_VALUE_NULL && v->text) {
            put(t, "  # ");
            put(t, v->text);
        }
        put(t, "\n");
        return;
    }
    if (is_item && v->kind == KI_VALUE_MAP) {
        /* "- key: …": the first entry is on the line of the dash. */
        bool is_first = true;
        for (const ki_value *item = v->first; item; item = item->next, is_first = false) {
            if (is_first)
                put(t, " ");
            else
                put_spaces(t, indent + INDENT);
            put_scalar(t, item->key);
            put(t, ":");
            put_after(t, item, indent + INDENT, false);
        }
        return;
    }
    put(t, "\n");
    put_block(t, v, indent + INDENT);
}

static void put_block(text *t, const ki_value *v, int indent) {
    for (const ki_value *item = v->first; item; item = item->next) {
        put_spaces(t, indent);
        if (v->kind == KI_VALUE_MAP) {
            put_scalar(t, item->key);
            put(t, ":");
        } else {
            put(t, "-");
        }
        put_after(t, item, indent, v->kind == KI_VALUE_LIST);
    }
}

kith_status ki_yaml_text(const ki_value *root, char **ret_text, kith_error *err) {
    text t = {.err = err};
    if (root->kind == KI_VALUE_MAP && root->first)
        put_block(&t, root, 0);
    else {
        put_flow(&t, root);
        put(&t, "\n");
    }
    if (t.status != KITH_OK) {
        ki_free(t.bytes);
        return t.status;
    }
    *ret_text = t.bytes;
    return KITH_OK;
}
