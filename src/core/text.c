#include "core/text.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 63 };

static int min3(int a, int b, int c) {
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment over three rolling rows. */
int ki_edit_distance(const char *a, const char *b) {
    const size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST) return LONGEST;
    int rows[3][LONGEST + 1];
    int *two = rows[0], *one = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++) one[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            const int differs = a[i - 1] != b[j - 1];
            now[j] = min3(one[j] + 1, now[j - 1] + 1, one[j - 1] + differs);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < now[j])
                now[j] = two[j - 2] + 1;
        }
        int *const t = two;
        two = one;
        one = now;
        now = t;
    }
    return one[nb];
}

const char *ki_nearest(const char *word, const char *const *names, size_t n_names) {
    const char *best = NULL;
    const int length = (int)strlen(word);
    int best_distance = 1 + (length < 3 ? 1 : length / 3 + 1);
    for (size_t i = 0; i < n_names; i++) {
        const int distance = ki_edit_distance(word, names[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}

static locale_t c_locale(void) {
    static locale_t loc;
    if (!loc) loc = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return loc;
}

bool ki_parse_double(const char *text, double *ret) {
    char *end = NULL;
    if (!*text || strchr(" \t\n\r", *text)) return false;
    errno = 0;
    const double value = strtod_l(text, &end, c_locale());
    if (end == text || *end) return false;
    *ret = value;
    return true;
}

bool ki_parse_int64(const char *text, int64_t *ret) {
    char *end = NULL;
    if (!*text || strchr(" \t\n\r", *text)) return false;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end) return false;
    *ret = value;
    return true;
}
