/* Reading an expression: recursive descent, one function for each level of binding. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/option.h"
#include "base/text.h"
#include "search/filter_tree.h"

enum { MOST_DEPTH = 64, MOST_BYTES = 1 << 16, MOST_VALUES = 10000 };

typedef enum token_kind { END, WORD, QUOTED, SIGN } token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* of a word or a quoted text, without quotes: in parser.tokens */
    size_t at;        /* offset in the expression */
    char sign[3];
} token;

typedef struct parser {
    const char *text;
    size_t next; /* offset behind `now` */
    token now;
    char *tokens; /* as long as the text: each word and quoted text at its own offset, ended by a 0 */
    ki_arena *arena;
    const kith_column *columns;
    int64_t n_columns;
    int depth;
    kith_error *err;
} parser;

/* ---- tokens ---- */

/* People count from 1. */
static kith_status fail_at(parser *p, size_t at, const char *wanted) {
    const char *from = p->text + at;
    if (!*from)
        ki_fail(p->err, KITH_EINVAL, "where: it ends at character %zu; wanted %s", at + 1, wanted);
    else
        ki_fail(p->err, KITH_EINVAL, "where: character %zu, at '%.20s': wanted %s", at + 1, from, wanted);
    return ki_hint(p->err, KITH_EINVAL, "for example: label = tern and year >= 2020");
}

static kith_status fail_memory(parser *p) { return ki_fail_memory(p->err, sizeof(token), "a filter"); }

/* Words and texts are not copied one by one: without its quotes, and with a 0 behind it, each fits into the place where it stands in
 * the expression. The 0 takes the place of a quote, of a blank or of a sign, and signs are not kept. */
static kith_status read_quoted(parser *p, const char *from) {
    const char quote = *from;
    char *out = p->tokens + (from + 1 - p->text);
    const char *at = from + 1;
    p->now.text = out;
    for (; *at && (*at != quote || at[1] == quote); at++) {
        if (*at == quote) at++;
        *out++ = *at;
    }
    if (!*at) return fail_at(p, p->now.at, "a quote at the end of the text");
    *out = '\0';
    p->now.kind = QUOTED;
    p->next = (size_t)(at + 1 - p->text);
    return KITH_OK;
}

static kith_status advance(parser *p) {
    static const char blanks[] = " \t\r\n", breaks[] = " \t\r\n()=!<>,'\"";
    const char *from = p->text + p->next + strspn(p->text + p->next, blanks);
    p->now = (token){.kind = END, .text = "", .at = (size_t)(from - p->text)};
    if (*from == '\0') return KITH_OK;
    if (*from == '\'' || *from == '"') return read_quoted(p, from);
    size_t n = strcspn(from, breaks);
    if (n == 0) {
        p->now.kind = SIGN;
        n = strchr("<>!", *from) && from[1] == '=' ? 2 : 1;
        if (*from == '=' && from[1] == '=') n = 2;
        memcpy(p->now.sign, from, n);
    } else {
        p->now.kind = WORD;
        p->now.text = memcpy(p->tokens + p->now.at, from, n);
        p->tokens[p->now.at + n] = '\0';
    }
    p->next = p->now.at + n;
    return KITH_OK;
}

static bool is_word(const parser *p, const char *word) {
    return p->now.kind == WORD && strcasecmp(p->now.text, word) == 0;
}
static bool is_sign(const parser *p, const char *sign) {
    return p->now.kind == SIGN && strcmp(p->now.sign, sign) == 0;
}

static kith_status expect_sign(parser *p, const char *sign, const char *wanted) {
    if (!is_sign(p, sign)) return fail_at(p, p->now.at, wanted);
    return advance(p);
}

static ki_where_node *new_node(parser *p, ki_where_kind kind) {
    ki_where_node *node = ki_arena_alloc(p->arena, 1, sizeof *node);
    if (node) node->kind = kind;
    return node;
}

/* ---- comparisons ---- */

static const char *const fixed_columns[] = {"id", "path", "label"};
enum { N_FIXED = 3 };

static kith_status fail_column(parser *p) {
    const char **names = ki_arena_alloc(p->arena, (size_t)p->n_columns + N_FIXED, sizeof *names);
    if (!names) return fail_memory(p);
    memcpy(names, fixed_columns, sizeof fixed_columns);
    size_t n = N_FIXED;
    for (int64_t i = 0; i < p->n_columns; i++) {
        if (p->columns[i].name) names[n++] = p->columns[i].name;
    }
    ki_fail_unknown(p->err, "column", p->now.text, names, n);
    if (p->err) p->err->status = KITH_EINVAL;
    return ki_prefix(p->err, KITH_EINVAL, "where: character %zu", p->now.at + 1);
}

static kith_status read_column(parser *p, ki_where_node *node) {
    static const int64_t number[] = {KI_COLUMN_ID, KI_COLUMN_PATH, KI_COLUMN_LABEL};
    if (p->now.kind != WORD) return fail_at(p, p->now.at, "the name of a column");
    for (int i = 0; i < N_FIXED; i++) {
        if (strcmp(p->now.text, fixed_columns[i]) != 0) continue;
        node->column = number[i];
        node->type = ki_column_type(number[i], NULL);
        return advance(p);
    }
    for (int64_t i = 0; i < p->n_columns; i++) {
        if (!p->columns[i].name || strcmp(p->now.text, p->columns[i].name) != 0) continue;
        node->column = KI_COLUMN_FIRST + i;
        node->type = p->columns[i].type;
        return advance(p);
    }
    return fail_column(p);
}

static kith_status read_op(parser *p, ki_where_node *node) {
    static const struct {
        const char *sign;
        ki_where_op op;
    } signs[] = {{"=", KI_OP_EQ},  {"==", KI_OP_EQ}, {"!=", KI_OP_NE}, {"<", KI_OP_LT},
                 {"<=", KI_OP_LE}, {">", KI_OP_GT},  {">=", KI_OP_GE}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (!is_sign(p, signs[i].sign)) continue;
        node->op = signs[i].op;
        return advance(p);
    }
    if (is_word(p, "not")) {
        node->is_negated = true;
        KI_TRY(advance(p));
    }
    if (!is_word(p, "in") && !is_word(p, "like"))
        return fail_at(p, p->now.at, node->is_negated ? "'in' or 'like'" : "one of = != < <= > >= in like");
    node->op = is_word(p, "in") ? KI_OP_IN : KI_OP_LIKE;
    if (node->op == KI_OP_LIKE && node->type != KITH_VALUE_TEXT)
        return fail_at(p, p->now.at, "= or another comparison: 'like' is for columns of text");
    return advance(p);
}

/* Would a column of reals hold this number as it is written? Whole numbers beyond 2^53 have gaps, and the next one may be meant by
 * another item. Decimal fractions are rounded there as they are here. */
static bool is_held(const char *text, bool is_whole, int64_t whole, double real) {
    if (is_whole) return real < 0x1p63 && (int64_t)real == whole;
    char digits[400], *to = digits;
    for (text += strspn(text, "+-"); *text == '0' || *text == '_'; text++) {
    }
    const char *at = text;
    for (; (*at >= '0' && *at <= '9') || *at == '_'; at++) {
        if (*at == '_') continue;
        if (to == digits + sizeof digits - 1) return false;
        *to++ = *at;
    }
    if (*at || to == digits) return true;
    *to = '\0';
    char held[400];
    ki_snprintf(held, sizeof held, "%.0f", fabs(real));
    return strcmp(held, digits) == 0;
}

static kith_status check_held(parser *p, bool is_whole, const kith_value *value) {
    if (is_held(p->now.text, is_whole, value->integer, value->real)) return KITH_OK;
    ki_fail(p->err, KITH_EINVAL,
            "where: character %zu, at '%.40s': a column of real numbers cannot hold it, the nearest is %.0f",
            p->now.at + 1, p->now.text, value->real);
    return ki_hint(p->err, KITH_EINVAL,
                   "name that one, or keep such numbers in a column of integers or of text");
}

static kith_status read_value(parser *p, const ki_where_node *node, kith_value *ret_value) {
    if (p->now.kind != WORD && p->now.kind != QUOTED) return fail_at(p, p->now.at, "a value");
    kith_value value = {.type = node->type};
    if (node->type == KITH_VALUE_TEXT) {
        value.text = p->now.text;
    } else if (ki_parse_whole(p->now.text, &value.integer)) {
        value.type = KITH_VALUE_INT;
        value.real = (double)value.integer;
    } else if (ki_parse_double(p->now.text, &value.real) && isfinite(value.real)) {
        value.type = KITH_VALUE_REAL;
    } else {
        return fail_at(p, p->now.at, "a number: the column holds numbers");
    }
    if (node->type == KITH_VALUE_REAL) KI_TRY(check_held(p, value.type == KITH_VALUE_INT, &value));
    if (node->type == KITH_VALUE_REAL) value.type = KITH_VALUE_REAL;
    *ret_value = value;
    return advance(p);
}

static kith_status read_list(parser *p, ki_where_node *node) {
    KI_TRY(expect_sign(p, "(", "'(' and the values of a list"));
    size_t capacity = 0;
    do {
        if ((size_t)node->n_values == capacity) {
            capacity = capacity ? capacity * 2 : 8;
            kith_value *values = ki_arena_alloc(p->arena, capacity, sizeof *values);
            if (!values) return fail_memory(p);
            if (node->n_values > 0) memcpy(values, node->values, (size_t)node->n_values * sizeof *values);
            node->values = values;
        }
        if (node->n_values == MOST_VALUES) return fail_at(p, p->now.at, "at most 10000 values");
        if (node->n_values > 0) KI_TRY(advance(p)); /* the comma */
        KI_TRY(read_value(p, node, &node->values[node->n_values]));
        node->n_values++;
    } while (is_sign(p, ","));
    return expect_sign(p, ")", "',' or ')'");
}

static kith_status read_comparison(parser *p, ki_where_node **ret_node) {
    ki_where_node *node = new_node(p, KI_WHERE_COMPARE);
    if (!node) return fail_memory(p);
    KI_TRY(read_column(p, node));
    KI_TRY(read_op(p, node));
    *ret_node = node;
    if (node->op == KI_OP_IN) return read_list(p, node);
    if (!(node->values = ki_arena_alloc(p->arena, 1, sizeof *node->values))) return fail_memory(p);
    node->n_values = 1;
    return read_value(p, node, node->values);
}

/* ---- and, or, not ---- */

static kith_status read_or(parser *p, ki_where_node **ret_node);

static kith_status read_term(parser *p, ki_where_node **ret_node) {
    if (++p->depth > MOST_DEPTH) return fail_at(p, p->now.at, "at most 64 levels of 'not' and parentheses");
    if (is_word(p, "not")) {
        ki_where_node *node = new_node(p, KI_WHERE_NOT);
        if (!node) return fail_memory(p);
        KI_TRY(advance(p));
        KI_TRY(read_term(p, &node->left));
        *ret_node = node;
    } else if (is_sign(p, "(")) {
        KI_TRY(advance(p));
        KI_TRY(read_or(p, ret_node));
        KI_TRY(expect_sign(p, ")", "'and', 'or' or ')'"));
    } else {
        KI_TRY(read_comparison(p, ret_node));
    }
    p->depth--;
    return KITH_OK;
}

/* A balanced tree would be shallower, but a chain of n leans to the left, and filter.c walks it without recursion. */
static kith_status read_chain(parser *p, const char *word, ki_where_kind kind,
                              kith_status (*read_part)(parser *, ki_where_node **),
                              ki_where_node **ret_node) {
    ki_where_node *node = NULL;
    KI_TRY(read_part(p, &node));
    while (is_word(p, word)) {
        ki_where_node *joined = new_node(p, kind);
        if (!joined) return fail_memory(p);
        joined->left = node;
        node = joined;
        KI_TRY(advance(p));
        KI_TRY(read_part(p, &node->right));
    }
    *ret_node = node;
    return KITH_OK;
}

static kith_status read_and(parser *p, ki_where_node **ret_node) {
    return read_chain(p, "and", KI_WHERE_AND, read_term, ret_node);
}
static kith_status read_or(parser *p, ki_where_node **ret_node) {
    return read_chain(p, "or", KI_WHERE_OR, read_and, ret_node);
}

kith_status ki_where_parse(const char *text, const kith_column *columns, int64_t n_columns,
                           ki_where **ret_filter, kith_error *err) {
    kith_status status = KITH_OK;
    ki_where *filter = NULL;
    if (strlen(text) > MOST_BYTES)
        return ki_fail(err, KITH_EINVAL, "where: it has %zu characters; at most %d are read", strlen(text),
                       MOST_BYTES);
    KI_CHECK(ki_zalloc_or(&filter, 1, sizeof *filter, "a filter", err));
    parser p = {
        .text = text, .arena = &filter->arena, .columns = columns, .n_columns = n_columns, .err = err};
    p.tokens = ki_arena_alloc(p.arena, strlen(text) + 1, 1);
    if (!p.tokens) {
        status = fail_memory(&p);
        goto done;
    }
    KI_CHECK(advance(&p));
    KI_CHECK(read_or(&p, &filter->root));
    if (p.now.kind != END) {
        status = fail_at(&p, p.now.at, "'and', 'or' or the end");
        goto done;
    }
    *ret_filter = filter;
    filter = NULL;
done:
    ki_where_free(filter);
    return status;
}

void ki_where_free(ki_where *filter) {
    if (!filter) return;
    ki_arena_release(&filter->arena);
    ki_free(filter);
}
