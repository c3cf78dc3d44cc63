/* Matching a name with a pattern, and making one from what matched. */
#include "net/names/match.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

enum { MOST_DIGITS = 6 };

static bool is_digit(char c) { return isdigit((unsigned char)c) != 0; }

/* A number as a list has it: without a sign and leading zeros. */
static bool take_number(const char **at, ki_names_match *m) {
    const char *s = *at;
    int64_t number = 0;
    int n = 0;
    for (; is_digit(s[n]) && n <= MOST_DIGITS; n++) number = 10 * number + (s[n] - '0');
    if (n == 0 || n > MOST_DIGITS || (s[0] == '0' && n > 1) || m->n == KI_NAMES_NUMBERS) return false;
    m->number[m->n++] = number;
    *at = s + n;
    return true;
}

/* The pattern up to its end, or up to a star. */
static bool match_part(const char **pattern, const char **name, ki_names_match *m) {
    const char *p = *pattern, *s = *name;
    for (; *p && *p != '*'; p++) {
        if (*p == '#' ? !take_number(&s, m) : *p != *s++) return false;
    }
    *pattern = p;
    *name = s;
    return true;
}

bool ki_names_matches(const char *pattern, const char *name, ki_names_match *ret_match) {
    ki_names_match m = {0};
    if (!match_part(&pattern, &name, &m)) return false;
    if (*pattern == '\0') {
        *ret_match = m;
        return *name == '\0';
    }
    /* What follows the star is tried at every place where it could begin. */
    for (const char *from = name;; from++) {
        const char *p = pattern + 1, *s = from;
        ki_names_match here = m;
        if (match_part(&p, &s, &here) && *p == '\0' && *s == '\0') {
            here.rest = name;
            here.rest_n = (size_t)(from - name);
            *ret_match = here;
            return true;
        }
        if (*from == '\0') return false;
    }
}

/* The number of a `#`, with the `+1` or `-1` behind it. */
static int64_t changed(const char **pattern, int64_t number) {
    const char *p = *pattern;
    if ((p[1] != '+' && p[1] != '-') || !is_digit(p[2])) return number;
    *pattern = p + 2;
    return p[1] == '+' ? number + (p[2] - '0') : number - (p[2] - '0');
}

bool ki_names_fill(const char *pattern, const ki_names_match *match, char *ret, size_t ret_bytes) {
    size_t used = 0;
    int i = 0;
    for (const char *p = pattern; *p; p++) {
        int n = 0;
        if (*p == '#' && i < match->n) {
            const long long number = (long long)changed(&p, match->number[i++]);
            n = ki_snprintf(ret + used, ret_bytes - used, "%lld", number);
        } else if (*p == '*') {
            n = ki_snprintf(ret + used, ret_bytes - used, "%.*s", (int)match->rest_n, match->rest);
        } else {
            n = ki_snprintf(ret + used, ret_bytes - used, "%c", *p);
        }
        if (n < 0 || (size_t)n >= ret_bytes - used) return false;
        used += (size_t)n;
    }
    ret[used] = '\0';
    return true;
}
