/* Text lists, line by line and word by word, without copying: LF or CRLF, an optional UTF-8 byte order mark,
 * the last line with or without a newline. */
#ifndef KI_LINES_H
#define KI_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_text {
    const char *s;
    size_t n;
} ki_text;

typedef struct ki_lines {
    const char *at, *end;
    int64_t number;   /* of the last line that was returned, from 1 */
    const char *name; /* of the file, for errors */
} ki_lines;

ki_lines ki_lines_of(const char *name, const char *text, size_t n);
/* The next line that is not blank; false at the end. */
bool ki_lines_next(ki_lines *lines, ki_text *ret_line);
/* Take the next word (or the trimmed rest of the line) off `line`; false when nothing is left. */
bool ki_text_word(ki_text *line, ki_text *ret_word);
bool ki_text_rest(ki_text *line, ki_text *ret_rest);
bool ki_text_int(ki_text text, int64_t *ret);
bool ki_text_double(ki_text text, double *ret);
bool ki_text_is(ki_text text, const char *word);
/* KITH_EFORMAT "NAME line 12: found 'the line'; wanted WANTED". */
kith_status ki_lines_fail(const ki_lines *lines, ki_text line, const char *wanted, kith_error *err);

#endif
