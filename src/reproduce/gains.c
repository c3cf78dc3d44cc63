/* Gains of regularizers over how much their baselines overfit: points in a plane, and as a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/svg.h"
#include "reproduce/page.h"

enum { WIDTH = 760, HEIGHT = 400, TOP = 44, BOTTOM = 60, LEFT = 56, RIGHT = 20, MOST_POINTS = 256 };

typedef struct point {
    const ki_list_row *row, *baseline;
    double gain, half;  /* as in ki_gain */
    double overfitting; /* R@1 of seen less that of unseen classes by the baseline */
    double fall;        /* by how much it was better at its best step; NaN: not watched */
    size_t series;
} point;

static bool find_point(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, const char *row,
                       point *ret) {
    ki_gain g;
    if (!ki_gain_of(list, all, noise, row, &g)) return false;
    const ki_sample seen = ki_sample_in(list, all, g.baseline, "seen", "recall.1"),
                    best = ki_sample_in(list, all, g.baseline, "best_on_test", "recall.1");
    const double unseen = g.without.estimate.mean;
    *ret = (point){.row = g.row,
                   .baseline = g.baseline,
                   .gain = g.gain,
                   .half = g.half,
                   .overfitting = seen.estimate.mean - unseen,
                   .fall = best.n > 0 ? best.estimate.mean - unseen : NAN};
    return seen.n > 0;
}

static int by_overfitting(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->overfitting != y->overfitting) return x->overfitting < y->overfitting ? -1 : 1;
    return strcmp(x->row->name, y->row->name);
}

static int find_points(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, point *ret) {
    int n = 0;
    for (size_t i = 0; i < list->gains.n; i++) {
        const ki_value *rows = list->gains.item[i].rows;
        for (const ki_value *v = rows ? rows->first : NULL; v && n < MOST_POINTS; v = v->next) {
            if (find_point(list, all, noise, v->text, &ret[n])) ret[n++].series = i;
        }
    }
    qsort(ret, (size_t)n, sizeof *ret, by_overfitting);
    return n;
}

/* ---- the drawing ---- */

static void put_frame(ki_buffer *to, const ki_axes *a) {
    double tick[KI_MOST_TICKS];
    char text[32];
    int n = ki_axes_ticks(a->y0, a->y1, false, 6, tick);
    for (int i = 0; i < n; i++) {
        const double y = ki_axes_y(a, tick[i]);
        ki_snprintf(text, sizeof text, "%+.0f", tick[i]);
        ki_svg_element(to, "path", "class=\"g\" stroke-width=\"%d\" d=\"M%d %.1fH%d\"", tick[i] == 0 ? 2 : 1,
                       (int)LEFT, y, (int)(WIDTH - RIGHT));
        ki_svg_text(to, tick[i] == 0 ? "0" : text, "x=\"%d\" y=\"%.1f\" text-anchor=\"end\"", (int)LEFT - 6,
                    y + 4);
    }
    n = ki_axes_ticks(a->x0, a->x1, false, 6, tick);
    for (int i = 0; i < n; i++) {
        ki_snprintf(text, sizeof text, "%.0f", tick[i]);
        ki_svg_text(to, text, "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", ki_axes_x(a, tick[i]),
                    HEIGHT - BOTTOM + 18);
    }
    ki_svg_text(to, "gain in R@1 of unseen classes, points", "class=\"b\" x=\"12\" y=\"%d\"", (int)TOP - 22);
    ki_svg_text(to, "R@1 of seen less that of unseen classes by the baseline, points",
                "class=\"b\" x=\"%d\" y=\"%d\" text-anchor=\"end\"", (int)(WIDTH - RIGHT),
                HEIGHT - BOTTOM + 36);
}

/* Series are told apart by shape as well as by colour. */
static void put_mark(ki_buffer *to, size_t series, double x, double y) {
    const char *colour = ki_drawing_colour[series % KI_DRAWING_COLOURS];
    switch (series % 4) {
    case 0: ki_svg_element(to, "circle", "fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"", colour, x, y); break;
    case 1: ki_svg_element(to, "path", "fill=\"%s\" d=\"M%.1f %.1fl6 10h-12z\"", colour, x, y - 6); break;
    case 2:
        ki_svg_element(to, "path", "fill=\"%s\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"", colour, x, y - 6);
        break;
    default:
        ki_svg_element(to, "rect", "fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\"", colour,
                       x - 4.5, y - 4.5);
    }
}

static void put_point(ki_buffer *to, const ki_axes *a, const point *p) {
    const double x = ki_axes_x(a, 100 * p->overfitting), y = ki_axes_y(a, 100 * p->gain);
    if (!isnan(p->half))
        ki_svg_element(to, "path",
                       "stroke=\"%s\" stroke-opacity=\"0.5\" stroke-width=\"1.5\" d=\"M%.1f %.1fV%.1f\"",
                       ki_drawing_colour[p->series % KI_DRAWING_COLOURS], x,
                       ki_axes_y(a, 100 * (p->gain - p->half)), ki_axes_y(a, 100 * (p->gain + p->half)));
    ki_buffer_put(to, "<g>");
    put_mark(to, p->series, x, y);
    ki_buffer_put(to, "<title>");
    ki_buffer_escaped(to, p->row->name);
    ki_buffer_put(to, "</title></g>\n");
}

static void put_legend(ki_buffer *to, const ki_list_gains *gains) {
    for (size_t i = 0; i < gains->n; i++) {
        const int x = LEFT + 8 + (int)(i % 4) * 175, y = HEIGHT + 12 + 20 * (int)(i / 4);
        put_mark(to, i, x, y - 4);
        ki_svg_text(to, gains->item[i].title, "x=\"%d\" y=\"%d\"", x + 12, y);
    }
}

bool ki_gains_draw(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to) {
    point points[MOST_POINTS];
    const int n = find_points(list, all, noise, points);
    ki_axes a = {.w = WIDTH,
                 .h = HEIGHT,
                 .left = LEFT,
                 .right = RIGHT,
                 .top = TOP,
                 .bottom = BOTTOM,
                 .x0 = 100,
                 .y0 = -1,
                 .y1 = 1};
    if (n == 0) return false;
    for (int i = 0; i < n; i++) {
        const double x = 100 * points[i].overfitting, y = 100 * points[i].gain,
                     half = isnan(points[i].half) ? 0 : 100 * points[i].half;
        if (x - 2 < a.x0) a.x0 = x - 2;
        if (x + 2 > a.x1) a.x1 = x + 2;
        if (y - half - 0.5 < a.y0) a.y0 = y - half - 0.5;
        if (y + half + 0.5 > a.y1) a.y1 = y + half + 0.5;
    }
    ki_drawing_open(to, WIDTH, HEIGHT + 4 + 20 * (int)((list->gains.n + 3) / 4), list->gains.title);
    put_frame(to, &a);
    for (int i = 0; i < n; i++) put_point(to, &a, &points[i]);
    put_legend(to, &list->gains);
    ki_svg_close(to);
    return true;
}

/* ---- the table ---- */

void ki_gains_put(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to) {
    point points[MOST_POINTS];
    const int n = find_points(list, all, noise, points);
    ki_buffer_put(
        to,
        "| method | row | baseline | its R@1, seen less unseen | its fall from the best step | gain |\n"
        "|---|---|---|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        const point *p = &points[i];
        ki_buffer_put(to, "| %s | %s | %s | %.1f |", list->gains.item[p->series].title, p->row->name,
                      p->baseline->name, 100 * p->overfitting);
        if (isnan(p->fall))
            ki_buffer_put(to, " – |");
        else
            ki_buffer_put(to, " %.1f |", 100 * p->fall);
        ki_buffer_put(to, " %+.1f", 100 * p->gain);
        if (!isnan(p->half)) ki_buffer_put(to, " ± %.1f", 100 * p->half);
        ki_buffer_put(to, " |\n");
    }
    ki_buffer_put(to, "\n");
}
