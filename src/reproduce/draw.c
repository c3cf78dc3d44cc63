/* R@1 over the steps, of rows or of a row's variants: a panel for each kind of classes that was scored (seen, validation, test),
 * readable on light and dark pages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/svg.h"
#include "reproduce/page.h"

enum {
    MOST_LINES = KI_DRAWING_COLOURS,
    MOST_POINTS = 128,
    MOST_MARKS = 40,
    LEAST_LINE = 3, /* two points, mostly the first and the last step, are no curve */
    N_SPLITS = 3,
    WIDTH = 760,
    HEIGHT = 300,
    TOP = 44,
    BOTTOM = 40,
    LEFT = 48
};

typedef struct line {
    int n;
    double step[MOST_POINTS], value[MOST_POINTS];
} line;

const char *const ki_drawing_colour[KI_DRAWING_COLOURS] = {"#3b6fb6", "#c8553d", "#3f8f5b",
                                                           "#8a5fb0", "#b8862b", "#777777"};
static const char *const dashes[MOST_LINES] = {"none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"};

void ki_drawing_open(ki_buffer *to, int w, int h, const char *title) {
    ki_svg_open_file(to, w, h, "font-family=\"sans-serif\" font-size=\"12\"");
    ki_buffer_put(to,
                  "<style>text{fill:#555}.b{font-weight:bold}.q{fill:#888}.g{stroke:#8884}@media "
                  "(prefers-color-scheme:dark){text{fill:#bbb}.q{fill:#888}}</style>\n<title>");
    ki_buffer_escaped(to, title);
    ki_buffer_put(to, "</title>\n");
}

static double number_at(const ki_value *list, size_t i) {
    const ki_value *v = ki_value_at(list, i);
    double value = NAN;
    if (v && v->kind == KI_VALUE_SCALAR) ki_parse_double(v->text, &value);
    return value;
}

static size_t n_points(const ki_outcome_curve *s) {
    if (s->pairs) return s->pairs->n_items;
    return s->steps && s->values ? s->values->n_items : 0;
}

/* The mean over seeds at the steps of the first; others count where they have the same step. variant "": of the row's
 * embedding. */
static line mean_curve(const ki_list *list, const ki_outcomes *all, const char *name, const char *split,
                       const char *variant) {
    line mean = {0};
    int n_at[MOST_POINTS] = {0};
    const ki_list_row *row = ki_list_source(list, ki_list_find(list, name));
    for (size_t i = 0; i < all->n; i++) {
        const ki_outcome *o = &all->item[i];
        if (!ki_outcome_is_of(o, row->name)) continue;
        const ki_outcome_curve from = ki_outcome_curve_of(o, split, variant);
        const bool is_first = mean.n == 0;
        int k = 0;
        for (size_t at = 0; at < n_points(&from) && k < MOST_POINTS; at++) {
            const ki_value *pair = from.pairs ? ki_value_at(from.pairs, at) : NULL;
            const double step = pair ? number_at(pair, 0) : number_at(from.steps, at),
                         value = pair ? number_at(pair, 1) : number_at(from.values, at);
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

static void put_frame(ki_buffer *to, const ki_axes *a, const char *title) {
    const double left = a->left;
    double tick[KI_MOST_TICKS];
    char text[32];
    ki_svg_text(to, title, "class=\"b\" x=\"%.1f\" y=\"%d\"", left, TOP - 10);
    int n = ki_axes_ticks(a->y0, a->y1, false, 5, tick);
    for (int i = 0; i < n; i++) {
        const double y = ki_axes_y(a, tick[i]);
        ki_snprintf(text, sizeof text, "%.0f", 100 * tick[i]);
        ki_svg_element(to, "path", "class=\"g\" d=\"M%.1f %.1fh%d\"", left, y, a->w - a->left);
        ki_svg_text(to, text, "x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\"", left - 6, y + 4);
    }
    n = ki_axes_ticks(a->x0, a->x1, false, 5, tick);
    for (int i = 0; i < n; i++) {
        ki_snprintf(text, sizeof text, "%.0f", tick[i]);
        ki_svg_text(to, text, "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\"", ki_axes_x(a, tick[i]),
                    HEIGHT - BOTTOM + 18);
    }
}

static void widen(ki_axes *f, const line *l) {
    for (int k = 0; k < l->n; k++) {
        if (l->step[k] > f->x1) f->x1 = l->step[k];
        if (l->value[k] < f->y0) f->y0 = l->value[k];
        if (l->value[k] > f->y1) f->y1 = l->value[k];
    }
}

/* A mark at every step that was measured, as long as they are few, and a line through them. */
static void put_line(ki_buffer *to, const ki_axes *a, const line *l, int i) {
    if (l->n >= LEAST_LINE) {
        ki_svg_list_open(to, "path", "d",
                         "fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"",
                         ki_drawing_colour[i], dashes[i]);
        for (int k = 0; k < l->n; k++)
            ki_buffer_put(to, "%s%.1f %.1f", k ? "L" : "M", ki_axes_x(a, l->step[k]),
                          ki_axes_y(a, l->value[k]));
        ki_svg_list_close(to);
    }
    for (int k = 0; k < l->n && l->n <= MOST_MARKS; k++)
        ki_svg_element(to, "circle", "fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"", ki_drawing_colour[i],
                       ki_axes_x(a, l->step[k]), ki_axes_y(a, l->value[k]), l->n >= LEAST_LINE ? "2.5" : "4");
    if (l->n > 0) ki_buffer_put(to, "\n");
}

/* All lines of a drawing, by the classes that were scored. */
typedef struct curves {
    int n;
    const char *name[MOST_LINES];
    char variant_name[MOST_LINES][KI_VARIANT_NAME];
    line line[N_SPLITS][MOST_LINES];
    bool has_any; /* more than a point */
} curves;

static const char *const splits[N_SPLITS] = {"seen", "validation", "test"};

/* false: nothing was scored. */
static bool add_line(const ki_list *list, const ki_outcomes *all, const char *row, const char *variant,
                     curves *c) {
    bool is_there = false;
    for (int p = 0; p < N_SPLITS; p++) {
        c->line[p][c->n] = mean_curve(list, all, row, splits[p], variant);
        is_there |= c->line[p][c->n].n > 0;
        c->has_any |= c->line[p][c->n].n > 1;
    }
    return is_there;
}

/* The first result that has curves of variants. */
static const ki_outcome *first_with_variants(const ki_list *list, const ki_outcomes *all, const char *name) {
    char ignored[KI_VARIANT_NAME];
    const ki_list_row *row = ki_list_source(list, ki_list_find(list, name));
    for (size_t i = 0; i < all->n; i++) {
        const ki_outcome *o = &all->item[i];
        if (ki_outcome_is_of(o, row->name) && ki_outcome_curve_name(o, 0, ignored)) return o;
    }
    return NULL;
}

/* A line for the embedding and one for each variant. */
static void find_variants(const ki_list *list, const ki_outcomes *all, const char *row, curves *c) {
    const ki_outcome *o = first_with_variants(list, all, row);
    if (o && c->n < MOST_LINES) {
        add_line(list, all, row, "", c);
        c->name[c->n++] = "embedding";
    }
    for (size_t i = 0; o && c->n < MOST_LINES; i++) {
        char *name = c->variant_name[c->n];
        if (!ki_outcome_curve_name(o, i, name) || !add_line(list, all, row, name, c)) break;
        for (char *at = name; *at; at++) *at = *at == '_' ? ' ' : *at;
        c->name[c->n++] = name;
    }
}

static void find_curves(const ki_list *list, const ki_outcomes *all, const ki_list_curve *curve, curves *c) {
    for (const ki_value *v = curve->rows ? curve->rows->first : NULL; v && c->n < MOST_LINES; v = v->next) {
        add_line(list, all, v->text, "", c);
        c->name[c->n++] = v->text;
    }
    if (*curve->variants) find_variants(list, all, curve->variants, c);
}

static bool has_split(const curves *c, int p) {
    bool is_there = false;
    for (int i = 0; i < c->n; i++) is_there |= c->line[p][i].n > 0;
    return is_there;
}

/* Panel k of n: one or two are wide. */
static ki_axes panel_at(int k, int n) {
    const int wide = n > 2 ? 200 : 320, apart = n > 2 ? 248 : WIDTH - wide - 10 - LEFT;
    return (ki_axes){.w = LEFT + k * apart + wide,
                     .h = HEIGHT,
                     .left = LEFT + k * apart,
                     .top = TOP,
                     .bottom = BOTTOM,
                     .x1 = 1,
                     .y0 = 1,
                     .y1 = 0};
}

static void put_panel(ki_buffer *to, const curves *c, int p, ki_axes *a) {
    char title[64];
    for (int i = 0; i < c->n; i++) widen(a, &c->line[p][i]);
    if (a->y1 <= a->y0) a->y0 = a->y1 - 0.01;
    ki_snprintf(title, sizeof title, "R@1 of %s classes, percent", splits[p]);
    put_frame(to, a, title);
    for (int i = 0; i < c->n; i++) put_line(to, a, &c->line[p][i], i);
}

static void put_legend(ki_buffer *to, const curves *c) {
    for (int i = 0; i < c->n; i++) {
        const int x = LEFT + i % 3 * 240, y = HEIGHT + 12 + 20 * (i / 3);
        ki_svg_element(
            to, "path",
            "fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" d=\"M%d %dh28\"",
            ki_drawing_colour[i], dashes[i], x, y - 4);
        ki_svg_text(to, c->name[i], "x=\"%d\" y=\"%d\"", x + 34, y);
    }
}

bool ki_curves_draw(const ki_list *list, const ki_outcomes *all, const ki_list_curve *curve, ki_buffer *to,
                    bool *ret_has_seen) {
    curves c = {0};
    int n_panels = 0, k = 0;
    find_curves(list, all, curve, &c);
    if (!c.has_any) return false;
    for (int p = 0; p < N_SPLITS; p++) n_panels += has_split(&c, p);
    ki_drawing_open(to, WIDTH, HEIGHT + 20 * ((c.n + 2) / 3), curve->title);
    for (int p = 0; p < N_SPLITS; p++) {
        if (!has_split(&c, p)) continue;
        ki_axes a = panel_at(k++, n_panels);
        put_panel(to, &c, p, &a);
    }
    put_legend(to, &c);
    ki_svg_close(to);
    *ret_has_seen = has_split(&c, 0);
    return true;
}
