/* JSON (RFC 8259) into a tree, in one pass over the text. All memory comes from the arena, so that a lack of memory is
 * an error and has no other effect (docs/adr/0005). The text comes from strangers: nesting is limited, strings must be
 * UTF-8 without control characters, and the memory used stays in proportion to the text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

enum { MOST_BYTES = 64 << 20, MOST_LEVELS = 64, FEW_KEYS = 16 };

typedef struct parser {
    const char *name, *text;
    size_t n, at;
    int level;
    ki_arena *arena;
    kith_error *err;
} parser;

static kith_status fail_memory(const parser *p) {
    return ki_fail(p->err, KITH_ENOMEM, "%s: no memory for the document", p->name);
}

static kith_status fail(const parser *p, const char *what) {
    int line = 1;
    for (size_t i = 0; i < p->at && i < p->n; i++) line += p->text[i] == '\n';
    return ki_fail(p->err, KITH_EFORMAT, "%s:%d: not JSON: %s (byte %zu)", p->name, line, what, p->at);
}

/* The next byte, or 0 at the end. Outside strings JSON has no byte 0, so both are refused in the same way. */
static char peek(const parser *p) { return p->at < p->n ? p->text[p->at] : '\0'; }

static void skip_space(parser *p) {
    while (p->at < p->n && memchr(" \t\r\n", p->text[p->at], 4)) p->at++;
}

static bool skip_letter(parser *p, char letter) {
    skip_space(p);
    const bool is_there = peek(p) == letter && p->at < p->n;
    p->at += is_there;
    return is_there;
}

/* ---- strings ---- */

/* Four hexadecimal digits; -1 when they are not. */
static int32_t hex4(parser *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char c = peek(p);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = 16 * value + digit;
    }
    return value;
}

static size_t put_utf8(int32_t c, char *to) {
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(first[n] | c);
    return (size_t)n;
}

/* What follows "\u". Characters beyond 16 bits are written as a surrogate pair. A NUL is refused, because a C
 * string cannot contain it. */
static kith_status take_unicode(parser *p, char *to, size_t *n) {
    int32_t c = hex4(p);
    if (c < 0) return fail(p, "\\u wants four hexadecimal digits");
    if (c >= 0xd800 && c < 0xdc00 && p->n - p->at >= 2 && p->text[p->at] == '\\' &&
        p->text[p->at + 1] == 'u') {
        p->at += 2;
        const int32_t low = hex4(p);
        if (low < 0xdc00 || low >= 0xe000) return fail(p, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c >= 0xd800 && c < 0xe000) return fail(p, "half of a surrogate pair");
    if (c == 0) return fail(p, "\\u0000 in a string");
    *n += put_utf8(c, to + *n);
    return KITH_OK;
}

static kith_status take_escape(parser *p, char *to, size_t *n) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char c = peek(p);
    const char *found = c ? strchr(letters, c) : NULL;
    if (c != 'u' && !found) return fail(p, "an unknown escape in a string");
    p->at++;
    if (c == 'u') return take_unicode(p, to, n);
    to[(*n)++] = meant[found - letters];
    return KITH_OK;
}

/* Where the string that begins at the quote ends: its closing quote, or the end of the text. */
static size_t end_of_string(const parser *p) {
    size_t i = p->at + 1;
    while (i < p->n && p->text[i] != '"') i += p->text[i] == '\\' ? 2 : 1;
    return i < p->n ? i : p->n;
}

static kith_status take_string(parser *p, const char **ret) {
    const size_t end = end_of_string(p);
    size_t n = 0;
    char *to = ki_arena_alloc(p->arena, end - p->at, 1); /* decoded, it is no longer than the text */
    if (!to) return fail_memory(p);
    for (p->at++; p->at < end;) {
        const unsigned char c = (unsigned char)p->text[p->at];
        if (c == '\\') {
            p->at++;
            KI_TRY(take_escape(p, to, &n));
            continue;
        }
        const size_t length = ki_utf8_next(p->text + p->at, end - p->at);
        if (c < 0x20) return fail(p, "a control character in a string");
        if (length == 0) return fail(p, "a string that is not UTF-8");
        memcpy(to + n, p->text + p->at, length);
        n += length;
        p->at += length;
    }
    if (p->at >= p->n) return fail(p, "a string without an end");
    p->at++;
    *ret = to; /* the arena's memory is cleared: a NUL follows */
    return KITH_OK;
}

/* ---- values ---- */

static kith_status take_value(parser *p, ki_value **ret);

static kith_status new_value(const parser *p, ki_value_kind kind, ki_value **ret) {
    *ret = ki_value_new(p->arena, kind, NULL);
    return *ret ? KITH_OK : fail_memory(p);
}

static size_t skip_digits(parser *p) {
    const size_t begin = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') p->at++;
    return p->at - begin;
}

static kith_status take_number(parser *p, ki_value **ret) {
    const size_t begin = p->at;
    double value = 0;
    p->at += peek(p) == '-';
    const bool begins_with_0 = peek(p) == '0';
    const size_t n_whole = skip_digits(p);
    if (n_whole == 0 || (begins_with_0 && n_whole > 1)) return fail(p, "no value JSON knows");
    if (peek(p) == '.') {
        p->at++;
        if (skip_digits(p) == 0) return fail(p, "a number without digits behind its point");
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        p->at += peek(p) == '+' || peek(p) == '-';
        if (skip_digits(p) == 0) return fail(p, "a number without digits in its exponent");
    }
    KI_TRY(new_value(p, KI_VALUE_SCALAR, ret));
    (*ret)->text = ki_arena_strndup(p->arena, p->text + begin, p->at - begin);
    if (!(*ret)->text) return fail_memory(p);
    if (!ki_parse_double((*ret)->text, &value) || !isfinite(value))
        return fail(p, "a number beyond all bounds");
    return KITH_OK;
}

static kith_status take_word(parser *p, ki_value **ret) {
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (p->n - p->at < n || memcmp(p->text + p->at, words[i], n) != 0) continue;
        p->at += n;
        KI_TRY(new_value(p, i == 0 ? KI_VALUE_NULL : KI_VALUE_SCALAR, ret));
        if (i > 0) (*ret)->text = words[i];
        return KITH_OK;
    }
    return take_number(p, ret);
}

static int compare_keys(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Few keys are compared with each other, many are sorted. */
static kith_status check_keys(const parser *p, const ki_value *map) {
    const char *few[FEW_KEYS], **keys = few;
    size_t n = 0;
    bool is_double = false;
    if (map->n_items > FEW_KEYS) KI_TRY(ki_alloc_or(&keys, map->n_items, sizeof *keys, "keys", p->err));
    for (const ki_value *v = map->first; v; v = v->next) keys[n++] = v->key;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++) is_double |= strcmp(keys[i - 1], keys[i]) == 0;
    if (keys != few) ki_free(keys);
    return is_double ? fail(p, "a key is given twice") : KITH_OK;
}

/* Items of a list (`close` is ']'), or keys and values of a map ('}'). */
static kith_status take_items(parser *p, char close, ki_value *parent) {
    p->at++;
    if (skip_letter(p, close)) return KITH_OK;
    do {
        const char *key = NULL;
        ki_value *item = NULL;
        skip_space(p);
        if (close == '}') {
            if (peek(p) != '"') return fail(p, "a key wants quotes");
            KI_TRY(take_string(p, &key));
            if (!skip_letter(p, ':')) return fail(p, "a key wants ':' behind it");
        }
        KI_TRY(take_value(p, &item));
        ki_value_append(parent, key, item);
    } while (skip_letter(p, ','));
    if (!skip_letter(p, close))
        return fail(p, close == ']' ? "a list wants ',' or ']'" : "a map wants ',' or '}'");
    return close == '}' ? check_keys(p, parent) : KITH_OK;
}

static kith_status take_value(parser *p, ki_value **ret) {
    skip_space(p);
    const char c = peek(p);
    if (c == '{' || c == '[') {
        if (++p->level > MOST_LEVELS)
            return ki_fail(p->err, KITH_EFORMAT, "%s: JSON nested deeper than %d levels", p->name,
                           MOST_LEVELS);
        KI_TRY(new_value(p, c == '{' ? KI_VALUE_MAP : KI_VALUE_LIST, ret));
        KI_TRY(take_items(p, c == '{' ? '}' : ']', *ret));
        p->level--;
        return KITH_OK;
    }
    if (c != '"') return take_word(p, ret);
    KI_TRY(new_value(p, KI_VALUE_SCALAR, ret));
    (*ret)->is_quoted = true;
    return take_string(p, &(*ret)->text);
}

kith_status ki_json_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err) {
    parser p = {.name = name_for_errors, .text = text, .n = n, .arena = arena, .err = err};
    ki_value *root = NULL;
    KI_TRY(take_value(&p, &root));
    skip_space(&p);
    if (p.at < n) return fail(&p, "something behind the value");
    *ret_root = root;
    return KITH_OK;
}

kith_status ki_json_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, MOST_BYTES, &text, &n, err));
    const kith_status status = ki_json_parse(text, n, path, arena, ret_root, err);
    ki_free(text);
    return status;
}
