/* Lines and words of a text, without copying. */
#include "data/dataset/lines.h"

#include <string.h>

#include "base/text.h"

ki_lines ki_lines_of(const char *name, const char *text, size_t n) {
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, n -= 3;
    return (ki_lines){.at = text, .end = text + n, .name = name};
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

static ki_text trim(ki_text t) {
    while (t.n && is_blank(t.s[0])) t.s++, t.n--;
    while (t.n && is_blank(t.s[t.n - 1])) t.n--;
    return t;
}

bool ki_lines_next(ki_lines *lines, ki_text *ret_line) {
    while (lines->at < lines->end) {
        const size_t left = (size_t)(lines->end - lines->at);
        const char *stop = memchr(lines->at, '\n', left);
        const size_t n = stop ? (size_t)(stop - lines->at) : left;
        const ki_text line = trim((ki_text){lines->at, n});
        lines->at += stop ? n + 1 : n;
        lines->number++;
        if (line.n) return *ret_line = line, true;
    }
    return false;
}

bool ki_text_word(ki_text *line, ki_text *ret_word) {
    const ki_text t = trim(*line);
    size_t n = 0;
    while (n < t.n && !is_blank(t.s[n])) n++;
    if (n == 0) return false;
    *ret_word = (ki_text){t.s, n};
    *line = (ki_text){t.s + n, t.n - n};
    return true;
}

bool ki_text_rest(ki_text *line, ki_text *ret_rest) {
    const ki_text t = trim(*line);
    *line = (ki_text){t.s + t.n, 0};
    if (t.n == 0) return false;
    *ret_rest = t;
    return true;
}

/* Longest text that can be a number. */
enum { NUMBER_BYTES = 64 };

static bool copy_number(ki_text text, char *buf) {
    if (text.n == 0 || text.n >= NUMBER_BYTES || memchr(text.s, '\0', text.n)) return false;
    memcpy(buf, text.s, text.n);
    buf[text.n] = '\0';
    return true;
}

bool ki_text_int(ki_text text, int64_t *ret) {
    char buf[NUMBER_BYTES];
    return copy_number(text, buf) && ki_parse_int64(buf, ret);
}

bool ki_text_double(ki_text text, double *ret) {
    char buf[NUMBER_BYTES];
    return copy_number(text, buf) && ki_parse_double(buf, ret);
}

bool ki_text_is(ki_text text, const char *word) {
    return text.n == strlen(word) && memcmp(text.s, word, text.n) == 0;
}

kith_status ki_lines_fail(const ki_lines *lines, ki_text line, const char *wanted, kith_error *err) {
    const int n = line.n > 80 ? 80 : (int)line.n;
    return ki_fail(err, KITH_EFORMAT, "%s line %jd: found '%.*s'; wanted %s", lines->name,
                   (intmax_t)lines->number, n, line.s, wanted);
}
