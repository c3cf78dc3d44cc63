/* Axes: ranges to pixels, and ticks at round numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart.h"

enum { MOST_TICKS = 12 };

const char *ki_number_text(double value, int digits, char buf[KI_NUMBER_TEXT]) {
    const double size = fabs(value);
    if (size == 0) return snprintf(buf, KI_NUMBER_TEXT, "0"), buf;
    if (size >= 1e7 || size < 1e-3) {
        snprintf(buf, KI_NUMBER_TEXT, "%.*e", digits - 1, value);
        char *e = strchr(buf, 'e'), *from = e ? e + 1 : NULL; /* 1.0e-05 becomes 1e-5 */
        if (!e) return buf;
        char sign = *from == '-' ? '-' : '\0';
        from += *from == '-' || *from == '+';
        from += strspn(from, "0");
        char exponent[8];
        snprintf(exponent, sizeof exponent, "%.6s", from);
        char *end = e;
        while (memchr(buf, '.', (size_t)(end - buf)) && (end[-1] == '0' || end[-1] == '.')) {
            const bool was_point = *--end == '.';
            if (was_point) break;
        }
        snprintf(end, KI_NUMBER_TEXT - (size_t)(end - buf), sign ? "e-%s" : "e%s", exponent);
        return buf;
    }
    const int places = digits - 1 - (int)floor(log10(size));
    snprintf(buf, KI_NUMBER_TEXT, "%.*f", places > 0 ? places : 0, value);
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
    const int n = snprintf(digits, sizeof digits, "%.0f", value);
    int at = 0;
    for (int i = 0; i < n; i++) {
        const bool is_third = i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-';
        if (is_third) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

double ki_axes_x(const ki_axes *a, double x) {
    const double v = a->is_log_x ? log10(x) : x;
    return a->left + (v - a->x0) / (a->x1 - a->x0) * (a->w - a->left - a->right);
}

double ki_axes_y(const ki_axes *a, double y) {
    const double v = a->is_log_y ? log10(y) : y;
    return a->h - a->bottom - (v - a->y0) / (a->y1 - a->y0) * (a->h - a->top - a->bottom);
}

/* 1, 2 or 5 times a power of ten, about `n` of them in the range. */
static double tick_step(double range, int n) {
    const double raw = range / n, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

/* Ticks of a range that is already log10 when is_log: powers of ten, with 2 and 5 between them when
 * there are few. */
static int find_ticks(double low, double high, bool is_log, int wanted, double ret[MOST_TICKS]) {
    int n = 0;
    if (!is_log) {
        const double step = tick_step(high - low, wanted), first = ceil(low / step - 1e-9);
        while (n < MOST_TICKS && (first + n) * step <= high + 1e-9 * step) {
            ret[n] = (first + n) * step;
            n++;
        }
        return n;
    }
    static const double within[] = {1, 2, 5};
    const bool is_fine = high - low < 2;
    const int every = is_fine ? 1 : (int)ceil((high - low) / 6), first = (int)floor(low);
    for (int e = first; e <= high && n < MOST_TICKS; e += every) {
        for (int i = 0; i < (is_fine ? 3 : 1) && n < MOST_TICKS; i++) {
            const double at = e + log10(within[i]);
            if (at >= low - 1e-9 && at <= high + 1e-9) ret[n++] = within[i] * pow(10, e);
        }
    }
    return n;
}

void ki_axes_put(ki_buffer *to, const ki_axes *a, const char *label, const char *kind) {
    double tick[MOST_TICKS];
    char text[KI_NUMBER_TEXT];
    ki_buffer_put(to, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", kind, a->w, a->h);
    ki_buffer_escaped(to, label);
    ki_buffer_put(to, "\">\n<g class=\"axis\">\n");
    int n = find_ticks(a->x0, a->x1, a->is_log_x, 5, tick);
    for (int i = 0; i < n; i++)
        ki_buffer_put(to,
                      "<path d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                      ki_axes_x(a, tick[i]), a->top, a->h - a->bottom, ki_axes_x(a, tick[i]),
                      a->h - a->bottom + 16, ki_number_text(tick[i], 4, text));
    n = find_ticks(a->y0 * (a->is_log_y ? 1 : a->scale_y), a->y1 * (a->is_log_y ? 1 : a->scale_y),
                   a->is_log_y, 4, tick);
    for (int i = 0; i < n; i++) {
        const double y = ki_axes_y(a, a->is_log_y ? tick[i] : tick[i] / a->scale_y);
        ki_buffer_put(to,
                      "<path d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                      a->left, y, a->w - a->right, a->left - 6, y + 4, ki_number_text(tick[i], 4, text));
    }
    ki_buffer_put(to, "</g>\n");
}
