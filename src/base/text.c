/* The nearest name, numbers from and to text, UTF-8. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

int ki_vsnprintf(char *buf, size_t bytes, const char *fmt, va_list ap) {
    pthread_once(&c_locale_once, make_c_locale);
    const locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    const int n = vsnprintf(buf, bytes, fmt, ap);
    if (c_locale) uselocale(before);
    return n;
}

int ki_snprintf(char *buf, size_t bytes, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = ki_vsnprintf(buf, bytes, fmt, ap);
    va_end(ap);
    return n;
}

enum { LONGEST = 63 };

static int min3(int a, int b, int c) {
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment over three rolling rows. */
int ki_edit_distance(const char *a, const char *b) {
    const size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST) return strcmp(a, b) == 0 ? 0 : (int)(na > nb ? na : nb);
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

bool ki_parse_double(const char *text, double *ret) {
    char *end = NULL;
    if (!*text || isspace((unsigned char)*text)) return false;
    pthread_once(&c_locale_once, make_c_locale);
    if (!c_locale) return false;
    const double value = strtod_l(text, &end, c_locale);
    if (end == text || *end) return false;
    *ret = value;
    return true;
}

bool ki_parse_float(const char *text, float *ret) {
    char *end = NULL;
    if (!*text || isspace((unsigned char)*text)) return false;
    pthread_once(&c_locale_once, make_c_locale);
    if (!c_locale) return false;
    const float value = strtof_l(text, &end, c_locale);
    if (end == text || *end) return false;
    *ret = value;
    return true;
}

double ki_parse_begin(const char *text, const char **ret_end) {
    char *end = NULL;
    *ret_end = text;
    pthread_once(&c_locale_once, make_c_locale);
    if (!c_locale) return 0;
    const double value = strtod_l(text, &end, c_locale);
    *ret_end = end;
    return value;
}

bool ki_parse_int64(const char *text, int64_t *ret) {
    char *end = NULL;
    if (!*text || isspace((unsigned char)*text)) return false;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end) return false;
    *ret = value;
    return true;
}

/* Digits, with single underscores between them. `n` counts the digits that were taken. */
static const char *take_digits(const char *at, char *digits, size_t room, size_t *n) {
    const char *const first = at;
    for (; isdigit((unsigned char)*at) || (*at == '_' && at > first && isdigit((unsigned char)at[1])); at++) {
        if (*at == '_') continue;
        if (*n == room) return NULL;
        digits[(*n)++] = *at;
    }
    return at;
}

bool ki_parse_whole(const char *text, int64_t *ret) {
    enum { MOST_DIGITS = 64, MOST_POWER = 100 };
    char digits[MOST_DIGITS + 1] = "";
    size_t n = 0;
    const bool is_negative = *text == '-';
    const char *at = take_digits(text + (*text == '-' || *text == '+'), digits, MOST_DIGITS, &n);
    if (!at || n == 0) return false;
    int64_t power = 0; /* of ten, that the digits are multiplied by */
    if (*at == '.') {
        const size_t before = n;
        at = take_digits(at + 1, digits, MOST_DIGITS, &n);
        if (!at) return false;
        power = -(int64_t)(n - before);
    }
    while (n > 1 && digits[n - 1] == '0') n--, power++;
    const bool is_zero = n == 1 && digits[0] == '0';
    if (*at == 'e' || *at == 'E') {
        int64_t more = 0;
        const bool lowers = at[1] == '-';
        at += 1 + (at[1] == '-' || at[1] == '+');
        if (!isdigit((unsigned char)*at)) return false;
        for (; isdigit((unsigned char)*at); at++) {
            if (more < MOST_POWER) more = 10 * more + (*at - '0');
        }
        power += lowers ? -more : more;
    }
    if (*at) return false;
    if (is_zero) return *ret = 0, true;
    if (power < 0 || power > MOST_POWER) return false;
    int64_t value = 0; /* kept negative: INT64_MIN has no positive counterpart */
    for (size_t i = 0; i < n + (size_t)power; i++) {
        const int digit = i < n ? digits[i] - '0' : 0;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    if (!is_negative && value == INT64_MIN) return false;
    *ret = is_negative ? value : -value;
    return true;
}

void ki_make_line(char *s) {
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
    }
}

size_t ki_utf8_next(const char *s, size_t n) {
    const unsigned char *b = (const unsigned char *)s;
    if (n == 0) return 0;
    if (b[0] < 0x80) return 1;
    const size_t length = b[0] >= 0xc2 && b[0] < 0xe0   ? 2
                          : b[0] >= 0xe0 && b[0] < 0xf0 ? 3
                          : b[0] >= 0xf0 && b[0] < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
    }
    if (b[0] == 0xe0 && b[1] < 0xa0) return 0; /* overlong */
    if (b[0] == 0xed && b[1] > 0x9f) return 0; /* surrogate */
    if (b[0] == 0xf0 && b[1] < 0x90) return 0; /* overlong */
    if (b[0] == 0xf4 && b[1] > 0x8f) return 0; /* beyond U+10FFFF */
    return length;
}

bool ki_is_utf8(const char *text) {
    for (size_t n = strlen(text), step; n > 0; text += step, n -= step) {
        if ((step = ki_utf8_next(text, n)) == 0) return false;
    }
    return true;
}

const char *ki_number_text(double value, int digits, char buf[KI_NUMBER_TEXT]) {
    const double size = fabs(value);
    if (size == 0) return ki_snprintf(buf, KI_NUMBER_TEXT, "0"), buf;
    if (size >= 1e7 || size < 1e-3) {
        ki_snprintf(buf, KI_NUMBER_TEXT, "%.*e", digits - 1, value);
        char *e = strchr(buf, 'e'), *from = e ? e + 1 : NULL; /* 1.0e-05 becomes 1e-5 */
        if (!e) return buf;
        char sign = *from == '-' ? '-' : '\0';
        from += *from == '-' || *from == '+';
        from += strspn(from, "0");
        char exponent[8];
        ki_snprintf(exponent, sizeof exponent, "%.6s", from);
        char *end = e;
        while (memchr(buf, '.', (size_t)(end - buf)) && (end[-1] == '0' || end[-1] == '.')) {
            const bool was_point = *--end == '.';
            if (was_point) break;
        }
        ki_snprintf(end, KI_NUMBER_TEXT - (size_t)(end - buf), sign ? "e-%s" : "e%s", exponent);
        return buf;
    }
    const int places = digits - 1 - (int)floor(log10(size));
    ki_snprintf(buf, KI_NUMBER_TEXT, "%.*f", places > 0 ? places : 0, value);
    if (strchr(buf, '.')) {
        size_t n = strlen(buf);
        while (buf[n - 1] == '0') n--;
        if (buf[n - 1] == '.') n--;
        buf[n] = '\0';
    }
    return buf;
}

const char *ki_count_text(double value, char buf[KI_NUMBER_TEXT]) {
    char digits[KI_NUMBER_TEXT];
    if (!(fabs(value) < 1e15)) return ki_number_text(value, 4, buf);
    const int n = ki_snprintf(digits, sizeof digits, "%.0f", value);
    int at = 0;
    for (int i = 0; i < n; i++) {
        const bool is_third = i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-';
        if (is_third) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}
