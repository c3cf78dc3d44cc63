/* What a comparison of a filter holds for. local/filter_rows.c runs a filter over rows. */
#include "search/filter.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
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

bool ki_where_holds(const ki_where_node *node, const kith_value *x) {
    if (x->type == KITH_VALUE_NONE) return false;
    bool is_true = false;
    for (int64_t i = 0; i < node->n_values && !is_true; i++)
        is_true = node->op == KI_OP_LIKE ? ki_like(x->text, node->values[i].text)
                                         : is_met(node->op, compare(x, &node->values[i]));
    return is_true != node->is_negated;
}

static bool asks(const ki_where_node *node, int64_t column) {
    if (!node) return false;
    if (node->kind == KI_WHERE_COMPARE) return node->column == column;
    return asks(node->left, column) || asks(node->right, column);
}

bool ki_where_asks(const ki_where *filter, int64_t column) { return asks(filter->root, column); }

void ki_where_show(ki_where *filter, const ki_roots *roots) { filter->shown = roots; }
