/* What a page begins with: methods beside their baselines, drawn and as a table, each with the paper's figures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/svg.h"
#include "reproduce/page.h"

enum { WIDTH = 760, ROW = 46, TOP = 62, BOTTOM = 34, LEFT = 250, RIGHT = 130, MOST_METHODS = 32 };

/* The first source that printed both. */
static void find_paper(const ki_value *with, const ki_value *without, ki_gain *g) {
    g->paper_with = g->paper_without = NAN;
    for (const ki_value *v = with ? with->first : NULL; v; v = v->next) {
        const ki_value *other = without ? ki_value_get(without, v->key) : NULL;
        double a, b;
        if (!v->text || !other || !other->text) continue;
        if (!ki_parse_double(v->text, &a) || !ki_parse_double(other->text, &b)) continue;
        g->paper_with = a;
        g->paper_without = b;
        return;
    }
}

bool ki_gain_of(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, const char *name,
                ki_gain *ret) {
    ki_gain g = {.row = ki_list_find(list, name)};
    g.baseline = g.row ? ki_list_find(list, g.row->baseline) : NULL;
    if (!g.baseline) return false;
    g.with = ki_sample_of(list, all, g.row, "recall.1");
    g.without = ki_sample_of(list, all, g.baseline, "recall.1");
    if (g.with.n == 0 || g.without.n == 0 || !ki_sample_is_comparable(&g.with, &g.without)) return false;
    g.gain = g.with.estimate.mean - g.without.estimate.mean;
    g.half = ki_difference_half(noise, &g.with, &g.without);
    find_paper(g.row->paper, g.baseline->paper, &g);
    *ret = g;
    return true;
}

typedef struct shown {
    const char *method;
    ki_gain gain;
} shown;

static int find_shown(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, shown *ret) {
    int n = 0;
    for (size_t i = 0; i < list->summary.n && n < MOST_METHODS; i++) {
        const ki_list_method *m = &list->summary.method[i];
        if (ki_gain_of(list, all, noise, m->row, &ret[n].gain)) ret[n++].method = m->method;
    }
    return n;
}

/* ---- the drawing ---- */

static void widen(ki_axes *a, double percent) {
    if (isnan(percent)) return;
    if (percent - 1 < a->x0) a->x0 = percent - 1;
    if (percent + 1 > a->x1) a->x1 = percent + 1;
}

static void put_scale(ki_buffer *to, const ki_axes *a) {
    double tick[KI_MOST_TICKS];
    char text[32];
    const int n = ki_axes_ticks(a->x0, a->x1, false, 6, tick);
    for (int i = 0; i < n; i++) {
        const double x = ki_axes_x(a, tick[i]);
        ki_snprintf(text, sizeof text, "%.0f", tick[i]);
        ki_svg_element(to, "path", "class=\"g\" d=\"M%.1f %dV%d\"", x, (int)TOP - 8, a->h - BOTTOM);
        ki_svg_text(to, text, "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", x, a->h - BOTTOM + 18);
    }
}

/* From the loss alone (a ring) to the loss with the method (a dot). */
static void put_step(ki_buffer *to, const ki_axes *a, double y, double from, double till, const char *colour,
                     double r) {
    const double x0 = ki_axes_x(a, from), x1 = ki_axes_x(a, till);
    ki_svg_element(to, "path", "stroke=\"%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fH%.1f\"", colour, r / 2, x0,
                   y, x1);
    ki_svg_element(to, "circle",
                   "fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.5\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"",
                   colour, x0, y, r);
    ki_svg_element(to, "circle", "fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", colour, x1, y, r);
    ki_buffer_put(to, "\n");
}

static void put_method(ki_buffer *to, const ki_axes *a, int i, const shown *s) {
    const ki_gain *g = &s->gain;
    const double y = TOP + ROW * i + 12;
    const char *ours = ki_drawing_colour[0], *theirs = ki_drawing_colour[5];
    char text[160];
    ki_svg_text(to, s->method, "class=\"b\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\"", (int)LEFT - 16, y + 2);
    ki_snprintf(text, sizeof text, "over %.100s", g->baseline->name);
    ki_svg_text(to, text, "class=\"q\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\"", (int)LEFT - 16, y + 17);
    put_step(to, a, y, 100 * g->without.estimate.mean, 100 * g->with.estimate.mean, ours, 5);
    if (isnan(g->half))
        ki_snprintf(text, sizeof text, "%+.1f", 100 * g->gain);
    else
        ki_snprintf(text, sizeof text, "%+.1f ± %.1f", 100 * g->gain, 100 * g->half);
    ki_svg_text(to, text, "class=\"b\" x=\"%d\" y=\"%.1f\"", (int)(WIDTH - RIGHT) + 14, y + 4);
    if (isnan(g->paper_with)) return;
    put_step(to, a, y + 15, g->paper_without, g->paper_with, theirs, 3);
    ki_snprintf(text, sizeof text, "%+.1f paper", g->paper_with - g->paper_without);
    ki_svg_text(to, text, "class=\"q\" x=\"%d\" y=\"%.1f\"", (int)(WIDTH - RIGHT) + 14, y + 19);
}

bool ki_summary_draw(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to) {
    shown methods[MOST_METHODS];
    const int n = find_shown(list, all, noise, methods);
    ki_axes a = {.w = WIDTH,
                 .h = TOP + ROW * n + BOTTOM,
                 .left = LEFT,
                 .right = RIGHT,
                 .top = TOP,
                 .bottom = BOTTOM,
                 .x0 = 100,
                 .x1 = 0,
                 .y1 = 1};
    if (n == 0) return false;
    for (int i = 0; i < n; i++) {
        const ki_gain *g = &methods[i].gain;
        const double all_of[] = {100 * g->with.estimate.mean, 100 * g->without.estimate.mean, g->paper_with,
                                 g->paper_without};
        for (int k = 0; k < 4; k++) widen(&a, all_of[k]);
    }
    ki_drawing_open(to, a.w, a.h, list->summary.title);
    ki_svg_text(to, list->summary.title, "class=\"b\" x=\"12\" y=\"20\"");
    ki_svg_text(to,
                "R@1 in percent, from the loss alone (ring) to the loss with the method (dot); grey: the "
                "paper's figures",
                "x=\"12\" y=\"38\"");
    put_scale(to, &a);
    for (int i = 0; i < n; i++) put_method(to, &a, i, &methods[i]);
    ki_svg_close(to);
    return true;
}

/* ---- the table ---- */

void ki_summary_put(const ki_list *list, const ki_outcomes *all, const ki_noise *noise, ki_buffer *to) {
    shown methods[MOST_METHODS];
    const int n = find_shown(list, all, noise, methods);
    ki_buffer_put(to,
                  "| method | baseline | R@1 with it | gain | paper |\n"
                  "|---|---|---|---|---|\n");
    for (int i = 0; i < n; i++) {
        const ki_gain *g = &methods[i].gain;
        ki_buffer_put(to, "| %s | %s, %.1f | %.1f | %+.1f", methods[i].method, g->baseline->name,
                      100 * g->without.estimate.mean, 100 * g->with.estimate.mean, 100 * g->gain);
        if (!isnan(g->half)) ki_buffer_put(to, " ± %.1f", 100 * g->half);
        if (isnan(g->paper_with))
            ki_buffer_put(to, " | – |\n");
        else
            ki_buffer_put(to, " | %+.1f, from %.1f to %.1f |\n", g->paper_with - g->paper_without,
                          g->paper_without, g->paper_with);
    }
    ki_buffer_put(to, "\n");
}
