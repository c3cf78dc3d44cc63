/* SVG elements as text; axes: from values to places, and ticks at round numbers. */
#include "io/svg.h"

#include <math.h>
#include <stdarg.h>

#include "base/text.h"

void ki_svg_open_file(ki_buffer *to, int w, int h, const char *attributes) {
    ki_buffer_put(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\"%s%s>\n", w, h,
                  attributes ? " " : "", attributes ? attributes : "");
}

void ki_svg_open_in_page(ki_buffer *to, const char *class_, int w, int h, const char *label) {
    ki_buffer_put(to, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", class_, w, h);
    ki_buffer_escaped(to, label);
    ki_buffer_put(to, "\">\n");
}

void ki_svg_close(ki_buffer *to) { ki_buffer_put(to, "</svg>\n"); }

void ki_svg_element(ki_buffer *to, const char *name, const char *attributes, ...) {
    va_list ap;
    ki_buffer_put(to, "<%s ", name);
    va_start(ap, attributes);
    ki_buffer_vput(to, attributes, ap);
    va_end(ap);
    ki_buffer_put(to, "/>");
}

void ki_svg_text(ki_buffer *to, const char *text, const char *attributes, ...) {
    va_list ap;
    ki_buffer_put(to, "<text ");
    va_start(ap, attributes);
    ki_buffer_vput(to, attributes, ap);
    va_end(ap);
    ki_buffer_put(to, ">");
    ki_buffer_escaped(to, text);
    ki_buffer_put(to, "</text>\n");
}

void ki_svg_list_open(ki_buffer *to, const char *name, const char *list, const char *attributes, ...) {
    va_list ap;
    ki_buffer_put(to, "<%s ", name);
    va_start(ap, attributes);
    ki_buffer_vput(to, attributes, ap);
    va_end(ap);
    ki_buffer_put(to, " %s=\"", list);
}

void ki_svg_point(ki_buffer *to, double x, double y) { ki_buffer_put(to, "%.1f,%.1f ", x, y); }

void ki_svg_list_close(ki_buffer *to) { ki_buffer_put(to, "\"/>\n"); }

double ki_axes_x(const ki_axes *a, double x) {
    const double v = a->is_log_x ? log10(x) : x;
    return a->left + (v - a->x0) / (a->x1 - a->x0) * (a->w - a->left - a->right);
}

double ki_axes_y(const ki_axes *a, double y) {
    const double v = a->is_log_y ? log10(y) : y;
    return a->top + (a->y1 - v) / (a->y1 - a->y0) * (a->h - a->top - a->bottom);
}

static double tick_step(double range, int n) {
    const double raw = range / n, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

int ki_axes_ticks(double low, double high, bool is_log, int wanted, double ret[KI_MOST_TICKS]) {
    int n = 0;
    if (!is_log) {
        const double step = tick_step(high - low, wanted), first = ceil(low / step - 1e-9);
        while (n < KI_MOST_TICKS && (first + n) * step <= high + 1e-9 * step) {
            ret[n] = (first + n) * step;
            n++;
        }
        return n;
    }
    static const double within[] = {1, 2, 5};
    const bool is_fine = high - low < 2;
    const int every = is_fine ? 1 : (int)ceil((high - low) / 6), first = (int)floor(low);
    for (int e = first; e <= high && n < KI_MOST_TICKS; e += every) {
        for (int i = 0; i < (is_fine ? 3 : 1) && n < KI_MOST_TICKS; i++) {
            const double at = e + log10(within[i]);
            if (at >= low - 1e-9 && at <= high + 1e-9) ret[n++] = within[i] * pow(10, e);
        }
    }
    return n;
}

void ki_axes_put(ki_buffer *to, const ki_axes *a) {
    double tick[KI_MOST_TICKS];
    char text[KI_NUMBER_TEXT];
    ki_buffer_put(to, "<g class=\"axis\">\n");
    int n = ki_axes_ticks(a->x0, a->x1, a->is_log_x, 5, tick);
    for (int i = 0; i < n; i++) {
        const double x = ki_axes_x(a, tick[i]);
        ki_svg_element(to, "path", "d=\"M%.1f %dV%d\"", x, a->top, a->h - a->bottom);
        ki_svg_text(to, ki_number_text(tick[i], 4, text), "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", x,
                    a->h - a->bottom + 16);
    }
    const double scale = a->is_log_y ? 1 : a->scale_y;
    n = ki_axes_ticks(a->y0 * scale, a->y1 * scale, a->is_log_y, 4, tick);
    for (int i = 0; i < n; i++) {
        const double y = ki_axes_y(a, tick[i] / scale);
        ki_svg_element(to, "path", "d=\"M%d %.1fH%d\"", a->left, y, a->w - a->right);
        ki_svg_text(to, ki_number_text(tick[i], 4, text), "x=\"%d\" y=\"%.1f\" text-anchor=\"end\"",
                    a->left - 6, y + 4);
    }
    ki_buffer_put(to, "</g>\n");
}
