/* How the model was found, of a folder that kith train PHOTOS made: what was tried and what it came to, why the winner won, and what more photos
 * would likely bring. All of it is in tune.json. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/chart.h"
#include "report/report.h"

enum { MOST_POINTS = 8 };

static const ki_value *list_at(const ki_value *from, const char *key) {
    const ki_value *v = ki_value_get(from, key);
    return v && v->kind == KI_VALUE_LIST ? v : NULL;
}

/* A number, or NaN. */
static double real(const ki_value *of, const char *key) {
    double value;
    return ki_document_real(of, key, &value) ? value : NAN;
}

static void put_sentence(ki_report *r, const char *text) {
    if (!text || !*text) return;
    ki_buffer_put(r->to, "<p>");
    ki_buffer_escaped(r->to, text);
    ki_buffer_put(r->to, ".</p>\n");
}

/* ---- the photos ---- */

static void put_fact(ki_report *r, const char *name, double value) {
    char text[KI_NUMBER_TEXT];
    if (!(value > 0)) return;
    ki_buffer_put(r->to, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, ki_count_text(value, text));
}

static void put_facts(ki_report *r) {
    const ki_value *t = r->tuning;
    static const char *const facts[][2] = {{"n_photos_used", "photos"},
                                           {"n_train_classes", "classes that train"},
                                           {"n_test_classes", "classes for the test"},
                                           {"n_unreadable", "left out: cannot be read"},
                                           {"n_duplicates", "left out: there twice"},
                                           {"n_of_two_classes", "left out: in two classes"},
                                           {"n_leaks", "left out: in the test, too"},
                                           {"n_mislabelled", "left out: label looks wrong"},
                                           {"n_views", "views of each photo"},
                                           {"seconds", "seconds in all"}};
    ki_buffer_put(r->to, "<dl class=\"facts\">\n");
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        put_fact(r, facts[i][1], round(real(t, facts[i][0])));
    ki_buffer_put(r->to, "</dl>\n");
}

/* What was left out, and what is only noted: one line for each, the first ones. */
static void put_findings(ki_report *r, bool is_out) {
    enum { MOST = 20 };
    const ki_value *findings = list_at(r->tuning, "findings");
    int n = 0;
    for (const ki_value *v = findings ? findings->first : NULL; v; v = v->next) {
        const ki_value *out = list_at(v, "left_out");
        const char *text = ki_document_text(v, "text");
        if (!out || !text || (out->n_items > 0) != is_out || n++ >= MOST) continue;
        if (n == 1)
            ki_buffer_put(r->to, "<details><summary>%s</summary>\n<ul>\n",
                          is_out ? "Photos that were left out" : "What is only noted of the photos");
        ki_buffer_put(r->to, "<li>");
        ki_buffer_escaped(r->to, text);
        ki_buffer_put(r->to, "</li>\n");
    }
    if (n > MOST) ki_buffer_put(r->to, "<li>… and %d more, in tune.json</li>\n", n - MOST);
    if (n > 0) ki_buffer_put(r->to, "</ul></details>\n");
}

/* ---- the ways ---- */

static void put_points(ki_report *r, double value, double within) {
    if (isnan(value)) {
        ki_buffer_put(r->to, "<td class=\"quiet\">–</td>");
        return;
    }
    ki_buffer_put(r->to, "<td>%+.1f", 100 * value);
    if (within > 0) ki_buffer_put(r->to, " <span class=\"quiet\">± %.1f</span>", 100 * within);
    ki_buffer_put(r->to, "</td>");
}

static void put_way(ki_report *r, const ki_value *way) {
    const char *name = ki_document_text(way, "way"), *won = ki_document_text(way, "won");
    const bool has_won = won && strcmp(won, "true") == 0;
    if (!name) return;
    ki_buffer_put(r->to, "<tr><th>%s", has_won ? "<b>" : "");
    ki_buffer_escaped(r->to, name);
    ki_buffer_put(r->to, "%s</th>", has_won ? "</b>, the winner" : "");
    ki_buffer_put(r->to, "<td>%.1f</td><td>%.1f</td>", 100 * real(way, "recall_at_1"),
                  100 * real(way, "map_at_r"));
    put_points(r, real(way, "gain_recall_at_1"), 0);
    put_points(r, real(way, "gain_map_at_r"), 0);
    put_points(r, real(way, "gain"), real(way, "gain_within"));
    ki_buffer_put(r->to, "<td>%.0f</td></tr>\n", real(way, "folds"));
}

/* Those that came to the last round first, each round by its gain. */
static bool is_before(const ki_value *a, const ki_value *b) {
    const double x = real(a, "rounds"), y = real(b, "rounds");
    if (x != y) return x > y;
    return real(a, "gain") > real(b, "gain");
}

static void put_ways(ki_report *r) {
    const ki_value *tried = list_at(r->tuning, "tried");
    const ki_value *order[64];
    int n = 0;
    for (const ki_value *v = tried ? tried->first : NULL; v && n < 64; v = v->next) {
        int at = n++;
        for (; at > 0 && is_before(v, order[at - 1]); at--) order[at] = order[at - 1];
        order[at] = v;
    }
    if (n == 0) return;
    ki_buffer_put(
        r->to,
        "<h3>What was tried</h3>\n<p class=\"quiet\">On held-out classes, in percent; gains in points over "
        "the pretrained model, "
        "on the same photos. ± is the 95 %% interval over classes. Few folds: it went no further.</p>\n"
        "<div class=\"scroll\"><table>\n<thead><tr><th>way</th><th>R@1</th><th>MAP@R</th>"
        "<th>gain in R@1</th><th>in MAP@R</th><th>mean of both, by "
        "class</th><th>folds</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < n; i++) put_way(r, order[i]);
    ki_buffer_put(r->to, "</tbody>\n</table></div>\n");
}

/* ---- the curve ---- */

static void put_curve(ki_report *r) {
    static const char *const keys[] = {"gain_map_at_r", "gain_recall_at_1"}, *const names[] = {"MAP@R",
                                                                                               "R@1"};
    const ki_value *curve = list_at(r->tuning, "curve");
    ki_point point[2][MOST_POINTS];
    ki_series series[2];
    double photos = NAN;
    size_t n = 0;
    for (const ki_value *v = curve ? curve->first : NULL; v && n < MOST_POINTS; v = v->next) {
        const char *of = ki_document_text(v, "of");
        if (!of) continue;
        if (strcmp(of, "photos") == 0) {
            photos = real(v, "gain");
            continue;
        }
        const double classes = real(v, "classes"), y[] = {real(v, keys[0]), real(v, keys[1])};
        if (isnan(classes) || isnan(y[0]) || isnan(y[1])) continue;
        for (int k = 0; k < 2; k++) point[k][n] = (ki_point){classes, y[k]};
        n++;
    }
    if (n < 2) return;
    char caption[300] = "Gain over the pretrained model in points, by the number of classes that trained.";
    const char *way = ki_document_text(r->tuning, "curve_of");
    if (way)
        ki_snprintf(caption, sizeof caption, "%s: gain over the pretrained model, by classes that trained.",
                    way);
    if (!isnan(photos)) {
        const size_t used = strlen(caption);
        ki_snprintf(caption + used, sizeof caption - used,
                    " With half of each class's photos the mean of both gains %.1f points.", 100 * photos);
    }
    ki_chart chart = {
        .title = "Gain by classes", .caption = caption, .is_share = true, .mark_step = -1, .n_lines = 2};
    for (int k = 0; k < 2; k++) {
        series[k] = (ki_series){.name = names[k], .point = point[k], .n = n};
        chart.line[k] = (ki_chart_line){names[k], &series[k]};
    }
    ki_chart_put(r->to, &chart);
}

kith_status ki_report_photos(ki_report *r) {
    if (!r->tuning) return KITH_OK;
    ki_report_section(r, "photos", "How the model was found",
                      "kith train PHOTOS holds classes out, tries ways to train on the others, and keeps "
                      "what is better than the "
                      "pretrained model by more than chance. The test classes chose nothing.");
    put_sentence(r, ki_document_text(r->tuning, "why"));
    put_facts(r);
    put_findings(r, true);
    put_findings(r, false);
    put_ways(r);
    ki_buffer_put(r->to, "<h3>What more photos would bring</h3>\n");
    put_sentence(r, ki_document_text(r->tuning, "advice"));
    put_curve(r);
    ki_report_section_end(r);
    return r->to->status;
}
