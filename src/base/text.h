/* Small text helpers: the nearest name for a misspelt one, numbers from text in any locale and to text for
 * people, UTF-8. */
#ifndef KI_TEXT_H
#define KI_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

/* snprintf and vsnprintf as in the C locale, whatever the host program has set: everything the library formats goes
 * through these (scripts/check-banned.sh), since a number with a comma in a file cannot be read again. */
int ki_snprintf(char *buf, size_t bytes, const char *fmt, ...) KITH_PRINTF(3, 4);
int ki_vsnprintf(char *buf, size_t bytes, const char *fmt, va_list ap) KITH_PRINTF(3, 0);

/* Number of single-letter edits (insert, delete, replace, swap of neighbours) between the strings;
 * an upper bound when one is longer than 63 bytes. */
int ki_edit_distance(const char *a, const char *b);

/* The name most similar to `word`, or NULL if none is similar enough to suggest. */
const char *ki_nearest(const char *word, const char *const *names, size_t n_names);

/* Whole-string parses: false (and *ret untouched) for anything but one number. Locale-free. */
bool ki_parse_double(const char *text, double *ret);
/* The number a text begins with, and where it ends (text when there is none). */
double ki_parse_begin(const char *text, const char **ret_end);
bool ki_parse_float(const char *text, float *ret); /* rounded once, from the digits */
bool ki_parse_int64(const char *text, int64_t *ret);
/* As ki_parse_int64, for numbers that people write: also 1e3, 1.5e3, 2.0 and 1_000, if the value is whole and fits.
 * The result is exact: no digit goes through a double. */
bool ki_parse_whole(const char *text, int64_t *ret);

/* Control characters become '?': a line for people stays one, whatever a file's name or a hostile header contains. */
void ki_make_line(char *s);

/* Length in bytes of the UTF-8 character at s, of which n bytes can be read; 0 when there is none. Overlong forms,
 * surrogates and numbers beyond U+10FFFF are not characters. */
size_t ki_utf8_next(const char *s, size_t n);
/* Is all of the text UTF-8? */
bool ki_is_utf8(const char *text);

enum { KI_NUMBER_TEXT = 32 };
/* Up to `digits` significant digits, without an exponent where that is readable. Returns buf. */
const char *ki_number_text(double value, int digits, char buf[KI_NUMBER_TEXT]);
/* 12,345. */
const char *ki_count_text(double value, char buf[KI_NUMBER_TEXT]);

#endif
