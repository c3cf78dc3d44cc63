/* Is a page well-formed: every element closed in order, every attribute quoted? */
#ifndef MARKUP_H
#define MARKUP_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

enum { MARKUP_DEPTH = 64, MARKUP_NAME = 32 };

static inline bool markup_is_void(const char *name) {
    static const char *const names[] = {"meta", "link", "img", "br", "hr", "input"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

/* Past the '>' of the tag whose attributes begin at s; *ret_is_closed for "/>". Fails the test when an
 * attribute's value is not in double quotes or holds a '<'. */
static inline const char *markup_attributes(const char *s, bool *ret_is_closed) {
    *ret_is_closed = false;
    while (*s && *s != '>') {
        if (*s == '<') fail_msg("'<' inside a tag: %.60s", s);
        if (*s == '=' && s[1] != '"') fail_msg("an attribute without quotes: %.60s", s);
        *ret_is_closed = *s == '/';
        if (*s == '"') {
            for (s++; *s && *s != '"'; s++) {
                if (*s == '<') fail_msg("'<' inside an attribute: %.60s", s);
            }
            if (!*s) fail_msg("an attribute without its end");
        }
        s++;
    }
    if (!*s) fail_msg("a tag without its end");
    return s + 1;
}

static inline void assert_well_formed(const char *page) {
    char open[MARKUP_DEPTH][MARKUP_NAME];
    int depth = 0;
    const char *s = page;
    assert_memory_equal(page, "<!DOCTYPE html>\n", 16);
    for (s += 16; *s;) {
        if (*s != '<') {
            s++;
            continue;
        }
        const bool is_end = s[1] == '/';
        const char *begin = s + 1 + is_end;
        size_t n = 0;
        while (isalnum((unsigned char)begin[n])) n++;
        if (n == 0 || n >= MARKUP_NAME) fail_msg("no name after '<': %.60s", s);
        char name[MARKUP_NAME];
        memcpy(name, begin, n);
        name[n] = '\0';
        bool is_closed;
        const char *const at = s;
        s = markup_attributes(begin + n, &is_closed);
        if (is_end) {
            if (depth == 0 || strcmp(open[depth - 1], name) != 0)
                fail_msg("</%s> closes <%s>: %.80s", name, depth ? open[depth - 1] : "nothing", at);
            depth--;
        } else if (!is_closed && !markup_is_void(name)) {
            if (depth == MARKUP_DEPTH) fail_msg("nested deeper than %d", MARKUP_DEPTH);
            strcpy(open[depth++], name);
            char end[MARKUP_NAME + 4];
            snprintf(end, sizeof end, "</%s>", name);
            if (strcmp(name, "style") == 0 || strcmp(name, "script") == 0) {
                s = strstr(s, end);
                if (!s) fail_msg("<%s> without its end", name);
            }
        }
    }
    if (depth != 0) fail_msg("<%s> was not closed", open[depth - 1]);
}

#endif
