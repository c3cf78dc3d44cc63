/* A filter over the rows of a snapshot, a column and a segment at a time. */
#include "search/local/filter_rows.h"

#include <string.h>

#include "base/alloc.h"
#include "search/filter_tree.h"

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
        is_true[i + 1] = ki_where_holds(node, &value);
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
            set(bits, s->first[i] + j, ki_where_holds(node, &value));
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
