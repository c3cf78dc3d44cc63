/* Lists of numbers from text and to text. */
#include "net/numbers.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

kith_status ki_numbers_parse(const char *text, int n, double *ret, const char *what, kith_error *err) {
    const char *at = text;
    for (int i = 0; i < n; i++) {
        const size_t length = strcspn(at, ",");
        char one[64];
        if (length < sizeof one) {
            memcpy(one, at, length);
            one[length] = '\0';
        }
        const bool is_last = at[length] == '\0';
        if (length >= sizeof one || is_last != (i == n - 1) || !ki_parse_double(one, &ret[i]))
            return ki_fail(err, KITH_EFORMAT, "%s is '%.60s'; wanted %d numbers with commas between", what,
                           text, n);
        at += length + 1;
    }
    return KITH_OK;
}

/* The shortest of the forms that read back as the same double. */
static int number_text(double number, char *buf, size_t buf_bytes) {
    int n = 0;
    for (int digits = 6; digits <= 17; digits++) {
        n = ki_snprintf(buf, buf_bytes, "%.*g", digits, number);
        double back;
        if (ki_parse_double(buf, &back) && back == number) break;
    }
    return n;
}

const char *ki_numbers_text(const double *numbers, int n, char *buf, size_t buf_bytes) {
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        char one[40];
        const int length = number_text(numbers[i], one, sizeof one);
        if (used + (size_t)length + 2 > buf_bytes) break;
        used += (size_t)ki_snprintf(buf + used, buf_bytes - used, "%s%s", i ? "," : "", one);
    }
    return buf;
}
