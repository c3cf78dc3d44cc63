/* R@1 of seen and unseen classes over the steps: two panels side by side, readable on light and dark pages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "reproduce/page.h"

enum {
    MOST_LINES = 6,
    MOST_POINTS = 128,
    MOST_MARKS = 12,
    WIDTH = 760,
    HEIGHT = 300,
    PANEL = 320,
    TOP = 44,
    BOTTOM = 40,
    LEFT = 48
};

typedef struct line {
    int n;
    double step[MOST_POINTS], value[MOST_POINTS];
} line;

static const char *const colours[MOST_LINES] = {"#3b6fb6", "#c8553d", "#3f8f5b",
                                                "#8a5fb0", "#b8862b", "#777777"};
static const char *const dashes[MOST_LINES] = {"none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"};

static double number_at(const ki_value *list, size_t i) {
    const ki_value *v = ki_value_at(list, i);
    double value = NAN;
    if (v && v->kind == KI_VALUE_SCALAR) ki_parse_double(v->text, &value);
    return value;
}

/* The mean over seeds at the steps of the first; others count where they have the same step. */
static line mean_curve(const ki_list *list, const ki_outcomes *all, const char *name, const char *split) {
    line mean = {0};
    int n_at[MOST_POINTS] = {0};
    const ki_list_row *row = ki_list_source(list, ki_list_find(list, name));
    for (size_t i = 0; i < all->n; i++) {
        const ki_outcome *o = &all->item[i];
        if (o->error || strcmp(o->row, row->name) != 0) continue;
        const ki_value *curve = ki_value_get(o->curves, split);
        const bool is_first = mean.n == 0;
        int k = 0;
        for (const ki_value *p = curve ? curve->first : NULL; p && k < MOST_POINTS; p = p->next) {
            const double step = number_at(p, 0), value = number_at(p, 1);
            /* Rising steps alone: the file may be anybody's. */
            if (!isfinite(step) || !isfinite(value)) continue;
            if (is_first && mean.n < MOST_POINTS && (mean.n == 0 || step > mean.step[mean.n - 1]))
                mean.step[mean.n++] = step;
            while (k < mean.n && mean.step[k] < step) k++;
            if (k == mean.n || mean.step[k] != step) continue;
            mean.value[k] += value;
            n_at[k++]++;
        }
    }
    for (int k = 0; k < mean.n; k++) mean.value[k] /= n_at[k];
    return mean;
}

/* A round distance between grid lines, about a fifth of the range. */
static double round_step(double range) {
    const double ten = pow(10, floor(log10(range / 5))), part = range / 5 / ten;
    return ten * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

typedef struct frame {
    double x0, x1, y0, y1, left;
} frame;

static double x_of(const frame *f, double x) { return f->left + (x - f->x0) / (f->x1 - f->x0) * PANEL; }
static double y_of(const frame *f, double y) {
    return TOP + (f->y1 - y) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

static void put_frame(ki_buffer *to, const frame *f, const char *title) {
    const double dy = round_step(f->y1 - f->y0), dx = round_step(f->x1 - f->x0);
    ki_buffer_put(to, "<text class=\"b\" x=\"%.1f\" y=\"%d\">%s</text>\n", f->left, TOP - 10, title);
    const double first = ceil(f->y0 / dy);
    for (int i = 0; i <= MOST_MARKS && (first + i) * dy <= f->y1 + 1e-9; i++) {
        const double y = (first + i) * dy;
        ki_buffer_put(to,
                      "<path class=\"g\" d=\"M%.1f %.1fh%d\"/><text x=\"%.1f\" y=\"%.1f\" "
                      "text-anchor=\"end\">%.0f</text>\n",
                      f->left, y_of(f, y), (int)PANEL, f->left - 6, y_of(f, y) + 4, 100 * y);
    }
    for (int i = 0; i <= MOST_MARKS && f->x0 + i * dx <= f->x1 + 1e-9; i++)
        ki_buffer_put(to, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                      x_of(f, f->x0 + i * dx), HEIGHT - BOTTOM + 18, f->x0 + i * dx);
}

static void widen(frame *f, const line *l) {
    for (int k = 0; k < l->n; k++) {
        if (l->step[k] > f->x1) f->x1 = l->step[k];
        if (l->value[k] < f->y0) f->y0 = l->value[k];
        if (l->value[k] > f->y1) f->y1 = l->value[k];
    }
}

static void put_line(ki_buffer *to, const frame *f, const line *l, int i) {
    if (l->n == 0) return;
    ki_buffer_put(to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"",
                  colours[i], dashes[i]);
    for (int k = 0; k < l->n; k++)
        ki_buffer_put(to, "%s%.1f %.1f", k ? "L" : "M", x_of(f, l->step[k]), y_of(f, l->value[k]));
    ki_buffer_put(to, "\"/>\n");
}

bool ki_curves_draw(const ki_list *list, const ki_outcomes *all, const ki_list_curve *curve, ki_buffer *to) {
    static const char *const splits[] = {"seen", "test"}, *const titles[] = {
                                                              "R@1 of seen classes, percent",
                                                              "R@1 of unseen classes, percent"};
    line lines[2][MOST_LINES];
    frame frames[2];
    const char *names[MOST_LINES];
    int n = 0;
    bool has_any = false;
    for (const ki_value *v = curve->rows ? curve->rows->first : NULL; v && n < MOST_LINES; v = v->next, n++) {
        names[n] = v->text;
        for (int p = 0; p < 2; p++) lines[p][n] = mean_curve(list, all, v->text, splits[p]);
        has_any |= lines[0][n].n > 1 || lines[1][n].n > 1;
    }
    if (!has_any) return false;
    for (int p = 0; p < 2; p++) {
        frames[p] = (frame){.x1 = 1, .y0 = 1, .y1 = 0, .left = p == 0 ? LEFT : WIDTH - PANEL - 10};
        for (int i = 0; i < n; i++) widen(&frames[p], &lines[p][i]);
        if (frames[p].y1 <= frames[p].y0) frames[p].y0 = frames[p].y1 - 0.01;
    }
    ki_buffer_put(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<style>text{fill:#555}.b{font-weight:bold}.g{stroke:#8884}@media "
        "(prefers-color-scheme:dark){text{fill:#bbb}}</style>\n<title>",
        WIDTH, HEIGHT + 20 * ((n + 2) / 3));
    ki_buffer_escaped(to, curve->title);
    ki_buffer_put(to, "</title>\n");
    for (int p = 0; p < 2; p++) {
        put_frame(to, &frames[p], titles[p]);
        for (int i = 0; i < n; i++) put_line(to, &frames[p], &lines[p][i], i);
    }
    for (int i = 0; i < n; i++) {
        const int x = LEFT + i % 3 * 240, y = HEIGHT + 12 + 20 * (i / 3);
        ki_buffer_put(to,
                      "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" "
                      "d=\"M%d %dh28\"/><text x=\"%d\" y=\"%d\">",
                      colours[i], dashes[i], x, y - 4, x + 34, y);
        ki_buffer_escaped(to, names[i]);
        ki_buffer_put(to, "</text>\n");
    }
    ki_buffer_put(to, "</svg>\n");
    return true;
}
