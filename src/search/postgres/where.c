/* A filter as SQL that means the same: text is compared byte by byte (the columns' collation is "C"), numbers exactly, and an
 * item without a value is found by no comparison. Values and the names of an index's own columns are values of the statement. */
#include <string.h>

#include "base/text.h"
#include "search/files/segment.h"
#include "search/filter_tree.h"
#include "search/postgres/tables.h"

enum { EXACT_DIGITS = 1074, EXACT_BYTES = 1500 }; /* of a double, in decimal */

typedef struct writer {
    ki_buffer *sql;
    ki_pg_values *values;
    const ki_manifest *manifest;
    const ki_roots *shown;
} writer;

/* An integer column may be compared with numbers that are not whole. */
static bool has_reals(const ki_where_node *node) {
    for (int64_t i = 0; i < node->n_values; i++) {
        if (node->values[i].type == KITH_VALUE_REAL) return true;
    }
    return false;
}

static const char *cast_of(const ki_where_node *node) {
    if (node->type == KITH_VALUE_TEXT) return "text";
    if (node->type == KITH_VALUE_REAL) return "float8";
    return has_reals(node) ? "numeric" : "bigint";
}

/* What ki_roots_shown gives. A value is counted in characters here, in bytes there. */
static void put_shown(const writer *w) {
    ki_buffer_put(w->sql, "(case");
    for (int64_t i = 0; i < w->shown->n; i++) {
        const ki_root *r = &w->shown->root[i];
        const char *name = r->path + r->n_path;
        while (name > r->path && name[-1] != '/') name--;
        char *below = ki_arena_printf(&w->values->arena, "%.*s/", (int)r->n_path, r->path);
        char *hidden = below ? ki_arena_strndup(&w->values->arena, below, r->n_hidden) : NULL;
        if (!hidden) w->values->status = KITH_ENOMEM;
        if (!hidden) break;
        ki_buffer_put(w->sql, " when starts_with(path, $%d::text)", ki_pg_text(w->values, below));
        ki_buffer_put(w->sql, " then substr(path, char_length($%d::text) + 1)",
                      ki_pg_text(w->values, hidden));
        ki_buffer_put(w->sql, " when path = $%d::text", ki_pg_text(w->values, r->path));
        ki_buffer_put(w->sql, " then $%d::text", ki_pg_text(w->values, name));
    }
    ki_buffer_put(w->sql,
                  " when starts_with(path, '/') then substring(path from '(?:[^/]+/)?[^/]*$') else path end "
                  "collate \"C\")");
}

static void put_column(const writer *w, const ki_where_node *node) {
    if (node->column == KI_COLUMN_ID)
        ki_buffer_put(w->sql, "id::%s", cast_of(node));
    else if (node->column == KI_COLUMN_PATH && w->shown)
        put_shown(w);
    else if (node->column == KI_COLUMN_PATH)
        ki_buffer_put(w->sql, "path");
    else if (node->column == KI_COLUMN_LABEL)
        ki_buffer_put(w->sql, "label");
    else
        ki_buffer_put(w->sql, "(attributes->>$%d::text)::%s%s",
                      ki_pg_text(w->values, w->manifest->columns[node->column - KI_COLUMN_FIRST].name),
                      cast_of(node), node->type == KITH_VALUE_TEXT ? " collate \"C\"" : "");
}

static void put_number(const writer *w, const kith_value *value) {
    char text[EXACT_BYTES];
    if (value->type == KITH_VALUE_INT)
        ki_snprintf(text, sizeof text, "%lld", (long long)value->integer);
    else
        ki_snprintf(text, sizeof text, "%.*f", EXACT_DIGITS, value->real); /* no digit is lost */
    ki_pg_text(w->values, text);
}

static void put_value(const writer *w, const ki_where_node *node, const kith_value *value) {
    if (node->type == KITH_VALUE_TEXT) {
        ki_pg_text(w->values, value->text);
    } else if (node->type == KITH_VALUE_REAL) {
        char text[32];
        ki_snprintf(text, sizeof text, "%.17g", value->real);
        ki_pg_text(w->values, text);
    } else {
        put_number(w, value);
    }
    ki_buffer_put(w->sql, "$%d::%s", w->values->n, cast_of(node));
}

/* A last backslash that stands for itself would stand before nothing, which the server refuses. */
static void put_pattern(const writer *w, const char *pattern) {
    size_t n_last = 0;
    const size_t n = strlen(pattern);
    while (n_last < n && pattern[n - 1 - n_last] == '\\') n_last++;
    char *whole = ki_arena_printf(&w->values->arena, "%s%s", pattern, n_last % 2 ? "\\" : "");
    if (!whole) w->values->status = KITH_ENOMEM;
    ki_buffer_put(w->sql, "$%d::text", ki_pg_text(w->values, whole));
}

static void put_comparison(const writer *w, const ki_where_node *node) {
    static const char *const signs[] = {"=", "<>", "<", "<=", ">", ">=", "in", "like"};
    put_column(w, node);
    ki_buffer_put(w->sql, " %s%s ", node->is_negated ? "not " : "", signs[node->op]);
    if (node->op == KI_OP_LIKE) {
        put_pattern(w, node->values[0].text);
        return;
    }
    if (node->op == KI_OP_IN) ki_buffer_put(w->sql, "(");
    for (int64_t i = 0; i < node->n_values; i++) {
        if (i > 0) ki_buffer_put(w->sql, ", ");
        put_value(w, node, &node->values[i]);
    }
    if (node->op == KI_OP_IN) ki_buffer_put(w->sql, ")");
}

/* A comparison with a value that is not there is null, which counts as false everywhere but below a `not`. */
static void put_node(const writer *w, const ki_where_node *node, bool is_below_not) {
    if (node->kind == KI_WHERE_COMPARE) {
        ki_buffer_put(w->sql, "(");
        put_comparison(w, node);
        ki_buffer_put(w->sql, is_below_not ? ") is true" : ")");
        return;
    }
    if (node->kind == KI_WHERE_NOT) {
        ki_buffer_put(w->sql, "not (");
        put_node(w, node->left, true);
        ki_buffer_put(w->sql, ")");
        return;
    }
    /* A chain leans to the left and may be long; its parts are written in turn, the last one first. */
    const char *word = node->kind == KI_WHERE_AND ? " and " : " or ";
    const ki_where_node *at = node;
    ki_buffer_put(w->sql, "(");
    for (; at->kind == node->kind; at = at->left) {
        put_node(w, at->right, is_below_not);
        ki_buffer_put(w->sql, "%s", word);
    }
    put_node(w, at, is_below_not);
    ki_buffer_put(w->sql, ")");
}

void ki_pg_where(const ki_where *where, const ki_manifest *manifest, ki_buffer *sql, ki_pg_values *values) {
    const writer w = {sql, values, manifest, where ? where->shown : NULL};
    if (where)
        put_node(&w, where->root, false);
    else
        ki_buffer_put(sql, "true");
}
