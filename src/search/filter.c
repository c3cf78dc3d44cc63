/* A filter over the rows of a snapshot, a column and a segment at a time. */
#include "search/filter.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "search/filter_tree.h"

static size_t step_of(const char *text) {
    const size_t n = ki_utf8_next(text, strnlen(text, 4));
    return n > 0 ? n : 1; /* what is no UTF-8 counts byte by byte */
}

/* Each % is first taken for nothing, and for one character more whenever the rest does not match. Only the last one needs
 * to be tried again: an earlier one that takes more leaves less for the others. */
bool ki_like(const char *text, const char *pattern) {
    const char *again_text = NULL, *again_pattern = NULL;
    for (;;) {
        if (*pattern == '%') {
            again_pattern = ++pattern;
            again_text = text;
            continue;
        }
        if (!*text && !*pattern) return true;
        const char *p = pattern[0] == '\\' && pattern[1] ? pattern + 1 : pattern;
        const bool is_any = p == pattern && *p == '_';
        if (*text && *p && (is_any || *p == *text)) {
            text += is_any ? step_of(text) : 1;
            pattern = p + 1;
            continue;
        }
        if (!again_pattern || !*again_text) return false;
        text = again_text += step_of(again_text);
        pattern = again_pattern;
    }
}

static bool is_met(ki_where_op op, int order) {
    switch (op) {
    case KI_OP_NE: return order != 0;
    case KI_OP_LT: return order < 0;
    case KI_OP_LE: return order <= 0;
    case KI_OP_GT: return order > 0;
    case KI_OP_GE: return order >= 0;
    default: return order == 0;
    }
}

/* An integer and a real: exact, because a long double holds every int64_t on the machines there are; and where it does
 * not, numbers beyond 2^53 are rounded as everywhere else. */
static int compare_mixed(int64_t x, double y) {
    const long double a = (long double)x, b = y;
    return (a > b) - (a < b);
}

static int compare(const kith_value *x, const kith_value *wanted) {
    if (x->type == KITH_VALUE_TEXT) return strcmp(x->text, wanted->text);
    if (x->type == KITH_VALUE_REAL) return (x->real > wanted->real) - (x->real < wanted->real);
    if (wanted->type == KITH_VALUE_REAL) return compare_mixed(x->integer, wanted->real);
    return (x->integer > wanted->integer) - (x->integer < wanted->integer);
}

static bool holds(const ki_where_node *node, const kith_value *x) {
    if (x->type == KITH_VALUE_NONE) return false;
    bool is_true = false;
    for (int64_t i = 0; i < node->n_values && !is_true; i++)
        is_true = node->op == KI_OP_LIKE ? ki_like(x->text, node->values[i].text)
                                         : is_met(node->op, compare(x, &node->values[i]));
    return is_true != node->is_negated;
}

static void set(uint64_t *bits, int64_t row, bool value) { bits[row / 64] |= (uint64_t)value << row % 64; }

/* A text is looked at once, and its rows follow by its code. */
static kith_status run_texts(const ki_where_node *node, const ki_cells *c, const ki_roots *shown,
                             int64_t first, uint64_t *bits, kith_error *err) {
    uint8_t *is_true = NULL;
    KI_TRY(ki_zalloc_or(&is_true, (size_t)c->n_texts + 1, 1, "texts", err));
    for (int64_t i = 0; i < c->n_texts; i++) {
        const char *text = ki_cells_text(c, i);
        const kith_value value = {.type = KITH_VALUE_TEXT,
                                  .text = shown ? ki_roots_shown(shown, text) : text};
        is_true[i + 1] = holds(node, &value);
    }
    for (int64_t i = 0; i < c->n; i++) set(bits, first + i, is_true[c->code[i]]);
    ki_free(is_true);
    return KITH_OK;
}

static kith_status run_comparison(const ki_where_node *node, ki_columns *columns, const ki_roots *shown,
                                  uint64_t *bits, kith_error *err) {
    if (node->column != KI_COLUMN_PATH) shown = NULL;
    const ki_snapshot *s = columns->snapshot;
    for (int64_t i = 0; i < s->manifest.n_segments; i++) {
        const ki_cells *c = NULL;
        KI_TRY(ki_columns_get(columns, i, node->column, &c, err));
        if (c->type == KITH_VALUE_TEXT) {
            KI_TRY(run_texts(node, c, shown, s->first[i], bits, err));
            continue;
        }
        for (int64_t j = 0; j < c->n; j++) {
            const kith_value value = ki_cells_get(c, j);
            set(bits, s->first[i] + j, holds(node, &value));
        }
    }
    return KITH_OK;
}

/* bits are 0 before. */
static kith_status run_node(const ki_where_node *node, ki_columns *columns, const ki_roots *shown,
                            uint64_t *bits, kith_error *err) {
    const int64_t n_words = ki_bit_words(columns->snapshot->n_rows);
    if (node->kind == KI_WHERE_COMPARE) return run_comparison(node, columns, shown, bits, err);
    if (node->kind == KI_WHERE_NOT) {
        KI_TRY(run_node(node->left, columns, shown, bits, err));
        for (int64_t i = 0; i < n_words; i++) bits[i] = ~bits[i];
        return KITH_OK;
    }
    /* A chain of one kind leans to the left: go down to its beginning, and join the parts. */
    kith_status status = KITH_OK;
    uint64_t *part = NULL;
    const ki_where_node *first = node;
    while (first->kind == node->kind) first = first->left;
    KI_TRY(ki_alloc_or(&part, (size_t)n_words, sizeof *part, "rows", err));
    KI_CHECK(run_node(first, columns, shown, bits, err));
    for (const ki_where_node *at = node; at != first; at = at->left) {
        memset(part, 0, (size_t)n_words * sizeof *part);
        KI_CHECK(run_node(at->right, columns, shown, part, err));
        for (int64_t i = 0; i < n_words; i++)
            bits[i] = node->kind == KI_WHERE_AND ? bits[i] & part[i] : bits[i] | part[i];
    }
done:
    ki_free(part);
    return status;
}

kith_status ki_where_run(const ki_where *filter, ki_columns *columns, uint64_t *ret_bits, kith_error *err) {
    const int64_t n_words = ki_bit_words(columns->snapshot->n_rows);
    memset(ret_bits, 0, (size_t)n_words * sizeof *ret_bits);
    return run_node(filter->root, columns, filter->shown, ret_bits, err);
}

void ki_where_show(ki_where *filter, const ki_roots *roots) { filter->shown = roots; }
