/* Lines over steps as a figure. */
#include "report/chart.h"

#include <math.h>

#include "base/text.h"
#include "io/svg.h"

enum { MOST_BUCKETS = 240, MOST_DOTS = 40, LEAST_LINE = 3 };

typedef struct bucket {
    double step, mean, least, most;
} bucket;

/* Bucket b of n_buckets over the points in order. */
static bucket bucket_at(const ki_series *s, size_t b, size_t n_buckets) {
    const size_t begin = s->n * b / n_buckets, end = s->n * (b + 1) / n_buckets;
    bucket k = {.least = INFINITY, .most = -INFINITY};
    for (size_t i = begin; i < end; i++) {
        k.step += s->point[i].step / (double)(end - begin);
        k.mean += s->point[i].value / (double)(end - begin);
        k.least = fmin(k.least, s->point[i].value);
        k.most = fmax(k.most, s->point[i].value);
    }
    return k;
}

static size_t n_buckets_of(const ki_series *s) { return s->n < MOST_BUCKETS ? s->n : MOST_BUCKETS; }

static ki_axes axes_of(const ki_chart *c) {
    ki_axes a = {.w = c->is_wide ? 560 : 400,
                 .h = c->is_wide ? 300 : 200,
                 .left = 50,
                 .right = c->is_wide ? 24 : 16,
                 .top = 10,
                 .bottom = 26,
                 .scale_y = c->is_share ? 100 : 1};
    double low = INFINITY, high = -INFINITY, last = 0;
    for (int i = 0; i < c->n_lines; i++) {
        const ki_series *s = c->line[i].series;
        for (size_t k = 0; k < s->n; k++) {
            low = fmin(low, s->point[k].value), high = fmax(high, s->point[k].value);
            last = fmax(last, s->point[k].step);
        }
    }
    a.x1 = last > 0 ? last : 1;
    a.is_log_y = c->may_log && low > 0 && high / low > 50;
    if (a.is_log_y) {
        a.y0 = log10(low), a.y1 = log10(high);
        const double room = 0.04 * (a.y1 - a.y0);
        a.y0 -= room, a.y1 += room;
        return a;
    }
    if (low > 0 && low < 0.35 * high) low = 0;
    const double flat = 1e-9 * fmax(fabs(low), fabs(high)), size = fmax(fabs(low), fabs(high));
    if (!(high - low > flat)) low -= size > 0 ? 0.1 * size : 1, high += size > 0 ? 0.1 * size : 1;
    const double room = 0.05 * (high - low);
    a.y0 = low == 0 ? 0 : low - room;
    a.y1 = c->is_share && high <= 1 ? fmin(1, high + room) : high + room;
    if (c->is_share && low >= 0) a.y0 = fmax(0, a.y0);
    return a;
}

static void put_band(ki_buffer *to, const ki_axes *a, const ki_series *s, int i) {
    const size_t n = n_buckets_of(s);
    if (n == s->n) return;
    ki_svg_list_open(to, "polygon", "points", "class=\"band c%d\"", i);
    for (size_t b = 0; b < n; b++) {
        const bucket k = bucket_at(s, b, n);
        ki_svg_point(to, ki_axes_x(a, k.step), ki_axes_y(a, k.most));
    }
    for (size_t b = n; b-- > 0;) {
        const bucket k = bucket_at(s, b, n);
        ki_svg_point(to, ki_axes_x(a, k.step), ki_axes_y(a, k.least));
    }
    ki_svg_list_close(to);
}

/* Two points, mostly the first and the last step, say nothing about what lies between: they are marks, not a curve. */
static bool has_line(const ki_series *s) { return s->n >= LEAST_LINE; }

/* The line, with its steps and values for the read-outs. */
static void put_line(ki_buffer *to, const ki_axes *a, const ki_chart_line *line, int i) {
    const ki_series *s = line->series;
    const size_t n = n_buckets_of(s);
    char step[KI_NUMBER_TEXT], value[KI_NUMBER_TEXT];
    ki_buffer_put(to, "<polyline class=\"line c%d\" data-n=\"", i);
    ki_buffer_escaped(to, line->name);
    ki_buffer_put(to, "\" data-p=\"");
    for (size_t b = 0; b < n; b++) {
        const bucket k = bucket_at(s, b, n);
        ki_buffer_put(to, "%s,%s ", ki_number_text(round(k.step), 12, step),
                      ki_number_text(k.mean * a->scale_y, 4, value));
    }
    ki_buffer_put(to, "\" points=\"");
    for (size_t b = 0; b < n && has_line(s); b++) {
        const bucket k = bucket_at(s, b, n);
        ki_svg_point(to, ki_axes_x(a, k.step), ki_axes_y(a, k.mean));
    }
    ki_svg_list_close(to);
    if (n > MOST_DOTS) return;
    for (size_t b = 0; b < n; b++) {
        ki_svg_element(to, "circle", "class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"", i,
                       ki_axes_x(a, s->point[b].step), ki_axes_y(a, s->point[b].value));
        ki_buffer_put(to, "\n");
    }
}

static void put_mark(ki_buffer *to, const ki_axes *a, const ki_chart *c) {
    if (c->mark_step < 0 || c->mark_step > a->x1) return;
    const double x = ki_axes_x(a, c->mark_step);
    const bool is_left = x > a->w / 2.0;
    ki_svg_element(to, "path", "class=\"mark\" d=\"M%.1f %dV%d\"", x, a->top, a->h - a->bottom);
    ki_svg_text(to, c->mark, "class=\"mark\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\"", x + (is_left ? -5 : 5),
                a->h - a->bottom - 7, is_left ? "end" : "start");
}

static void put_key(ki_buffer *to, int i, bool is_line) {
    ki_buffer_put(to, "<svg class=\"key\" viewBox=\"0 0 24 8\" aria-hidden=\"true\">");
    if (is_line)
        ki_svg_element(to, "path", "class=\"line c%d\" d=\"M0 4H24\"", i);
    else
        ki_svg_element(to, "circle", "class=\"dot c%d\" cx=\"12\" cy=\"4\" r=\"2.6\"", i);
    ki_buffer_put(to, "</svg>");
}

void ki_chart_key(ki_buffer *to, int i) { put_key(to, i, true); }

static void put_last(ki_buffer *to, const ki_series *s, double scale) {
    char text[KI_NUMBER_TEXT];
    ki_buffer_put(to, "<span class=\"last\">%s%s</span>",
                  ki_number_text(s->point[s->n - 1].value * scale, 4, text), scale > 1 ? " %" : "");
}

static void put_head(ki_buffer *to, const ki_chart *c, const ki_axes *a) {
    ki_buffer_put(to, "<figcaption><b>");
    ki_buffer_escaped(to, c->title);
    ki_buffer_put(to, "</b>");
    if (c->n_lines == 1) put_last(to, c->line[0].series, a->scale_y);
    if (a->is_log_y) ki_buffer_put(to, " <span class=\"quiet\">logarithmic</span>");
    if (c->n_lines > 1) {
        ki_buffer_put(to, "<span class=\"legend\">");
        for (int i = 0; i < c->n_lines; i++) {
            ki_buffer_put(to, "<span>");
            put_key(to, i, has_line(c->line[i].series));
            ki_buffer_escaped(to, c->line[i].name);
            put_last(to, c->line[i].series, a->scale_y);
            ki_buffer_put(to, "</span> ");
        }
        ki_buffer_put(to, "</span>");
    }
    ki_buffer_put(to, "</figcaption>\n");
}

static int64_t n_not_finite(const ki_chart *c) {
    int64_t n = 0;
    for (int i = 0; i < c->n_lines; i++) n += c->line[i].series->n_not_finite;
    return n;
}

void ki_chart_put(ki_buffer *to, const ki_chart *c) {
    const ki_axes a = axes_of(c);
    ki_buffer_put(to, "<figure class=\"%s\">\n", c->is_wide ? "wide" : "panel");
    put_head(to, c, &a);
    ki_svg_open_in_page(to, "chart", a.w, a.h, c->title);
    ki_axes_put(to, &a);
    put_mark(to, &a, c);
    for (int i = 0; i < c->n_lines; i++) put_band(to, &a, c->line[i].series, i);
    for (int i = 0; i < c->n_lines; i++) put_line(to, &a, c->line + i, i);
    ki_svg_close(to);
    ki_buffer_put(to, "<p class=\"readout\"></p>\n");
    if (n_not_finite(c) > 0)
        ki_buffer_put(to, "<p class=\"warn\">%lld logged values were not finite and are left out.</p>\n",
                      (long long)n_not_finite(c));
    if (c->caption) {
        ki_buffer_put(to, "<p class=\"quiet\">");
        ki_buffer_escaped(to, c->caption);
        ki_buffer_put(to, "</p>\n");
    }
    ki_buffer_put(to, "</figure>\n");
}
