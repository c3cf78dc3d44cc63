/* Curves over the steps: which numbers of the log share a panel, and what the panels are called. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/variant.h"
#include "report/chart.h"
#include "report/report.h"

static const char *last_name(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Every curve under the prefix as a panel of its own; returns how many. */
static int put_each(ki_report *r, const char *prefix, const char *before, const char *caption, bool may_log) {
    size_t at = 0;
    int n = 0;
    for (const ki_series *s; (s = ki_log_next(&r->detail->log, prefix, &at)); n++) {
        char title[200];
        ki_snprintf(title, sizeof title, "%s%s", before, last_name(s->name));
        const ki_chart chart = {.title = title,
                                .caption = caption,
                                .n_lines = 1,
                                .line = {{.name = last_name(s->name), .series = s}},
                                .may_log = may_log,
                                .mark_step = -1};
        ki_chart_put(r->to, &chart);
    }
    return n;
}

static int put_one(ki_report *r, const char *name, const char *title, const char *caption, bool may_log) {
    const ki_series *s = ki_log_series(&r->detail->log, name);
    if (!s) return 0;
    const ki_chart chart = {.title = title,
                            .caption = caption,
                            .n_lines = 1,
                            .line = {{.name = title, .series = s}},
                            .may_log = may_log,
                            .mark_step = -1};
    ki_chart_put(r->to, &chart);
    return 1;
}

static int put_pair(ki_report *r) {
    ki_chart chart = {.title = "Pairs that count", .may_log = true, .mark_step = -1};
    static const char *const names[][2] = {{"step/n_pos", "positive"}, {"step/n_neg", "negative"}};
    for (int i = 0; i < 2; i++) {
        const ki_series *s = ki_log_series(&r->detail->log, names[i][0]);
        if (s) chart.line[chart.n_lines++] = (ki_chart_line){.name = names[i][1], .series = s};
    }
    if (chart.n_lines == 0) return 0;
    ki_chart_put(r->to, &chart);
    return 1;
}

/* What the log contains besides numbers: lines that could not be read, warnings, notes. */
static void put_remarks(ki_report *r) {
    const ki_log_file *log = &r->detail->log;
    char text[KI_NUMBER_TEXT];
    if (log->n_bad > 0)
        ki_buffer_put(r->to,
                      "<p class=\"note\">%lld of %lld lines of the log could not be read (the first is line "
                      "%lld) and are left out.</p>\n",
                      (long long)log->n_bad, (long long)log->n_lines, (long long)log->first_bad);
    if (log->n_left_out > 0)
        ki_buffer_put(r->to,
                      "<p class=\"note\">The log has more than %d curves; the others are left out.</p>\n",
                      (int)KI_MOST_SERIES);
    for (int i = 0; i < log->n_remarks; i++) {
        const ki_remark *m = log->remark + i;
        ki_buffer_put(r->to, "<p class=\"%s\">", m->is_warning ? "warn" : "note");
        if (m->is_warning) ki_buffer_put(r->to, "Warning");
        if (m->step >= 0)
            ki_buffer_put(r->to, "%s step %s", m->is_warning ? " at" : "At", ki_count_text(m->step, text));
        if (m->is_warning || m->step >= 0) ki_buffer_put(r->to, ": ");
        ki_buffer_escaped(r->to, m->text);
        ki_buffer_put(r->to, "</p>\n");
    }
    if (log->n_remarks_left > 0)
        ki_buffer_put(r->to, "<p class=\"note\">%lld more are in the log.</p>\n",
                      (long long)log->n_remarks_left);
}

kith_status ki_report_curves(ki_report *r) {
    ki_report_section(
        r, "curves", "Training",
        "Every term as it was logged, unweighted. Long curves are drawn as means, with a band from "
        "the least to the most value.");
    ki_report_part(r, r->detail, KI_PART_LOG);
    put_remarks(r);
    ki_buffer_put(r->to, "<div class=\"panels\">\n");
    int n = put_one(r, "step/total", "Total loss", "The weighted sum of all terms.", true);
    n += put_each(r, "step/terms/", "", NULL, true);
    n += put_one(r, "step/lr", "Learning rate", NULL, true);
    n += put_each(r, "step/grad_norm/", "Gradient norm: ", NULL, true);
    n += put_pair(r);
    n += put_one(r, "step/img_per_s", "Images per second", NULL, false);
    ki_buffer_put(r->to, "</div>\n");
    if (n == 0 && !r->detail->note[KI_PART_LOG]) ki_report_left_out(r, "the log has no training steps");
    ki_report_section_end(r);
    return r->to->status;
}

/* R@1 (and the metric next to it) on seen against unseen classes, as in Figure 2 of "Energy Confused
 * Adversarial Metric Learning": the gap shows what did not generalise. */
static int put_seen(ki_report *r, const char *key, const char *title) {
    static const char *const splits[][2] = {{"validation", "unseen"}, {"seen", "seen"}, {"test", "unseen"}};
    enum { N = sizeof splits / sizeof splits[0] };
    char names[N][96];
    ki_chart chart = {.title = title,
                      .is_share = true,
                      .is_wide = true,
                      .mark_step = r->chosen_step,
                      .mark = "chosen step"};
    for (int i = 0; i < N; i++) {
        char name[96], path[40], a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
        double n_classes = 0, n_images = 0;
        ki_snprintf(name, sizeof name, "eval/%s/%s", splits[i][0], key);
        const ki_series *s = ki_log_series(&r->detail->log, name);
        if (!s) continue;
        ki_snprintf(path, sizeof path, "%s.classes", splits[i][0]);
        bool has_size = ki_document_real(r->detail->result, path, &n_classes);
        ki_snprintf(path, sizeof path, "%s.queries", splits[i][0]);
        has_size = ki_document_real(r->detail->result, path, &n_images) && has_size;
        const char *which = i == 1 ? "training" : splits[i][0];
        if (has_size)
            ki_snprintf(names[i], sizeof names[i], "%s: %s %s classes, %s images", splits[i][1],
                        ki_count_text(n_classes, a), which, ki_count_text(n_images, b));
        else
            ki_snprintf(names[i], sizeof names[i], "%s: %s classes", splits[i][1], which);
        chart.line[chart.n_lines++] = (ki_chart_line){.name = names[i], .series = s};
    }
    if (chart.n_lines == 0) return 0;
    ki_chart_put(r->to, &chart);
    return 1;
}

/* R@1 of the embedding and of each variant that was scored at every evaluation, a line for each, for one split. */
static void put_variants(ki_report *r, const char *split, const char *title) {
    char path[64], names[KI_MOST_LINES][KI_VARIANT_NAME];
    size_t at = 0;
    ki_snprintf(path, sizeof path, "eval/%s/recall/1", split);
    ki_chart chart = {.title = title,
                      .is_share = true,
                      .is_wide = true,
                      .n_lines = 1,
                      .line = {{.name = "the embedding", .series = ki_log_series(&r->detail->log, path)}},
                      .mark_step = r->chosen_step,
                      .mark = "chosen step"};
    ki_snprintf(path, sizeof path, "eval/%s/variant_recall_at_1/", split);
    if (!chart.line[0].series) chart.n_lines = 0;
    const int n_before = chart.n_lines;
    for (const ki_series *s;
         chart.n_lines < KI_MOST_LINES && (s = ki_log_next(&r->detail->log, path, &at));) {
        const int i = chart.n_lines++;
        ki_snprintf(names[i], sizeof names[i], "%.40s", last_name(s->name));
        for (char *c = names[i]; *c; c++) *c = *c == '_' ? ' ' : *c;
        chart.line[i] = (ki_chart_line){.name = names[i], .series = s};
    }
    if (chart.n_lines > n_before) ki_chart_put(r->to, &chart);
}

kith_status ki_report_seen(ki_report *r) {
    const bool has_seen = ki_log_series(&r->detail->log, "eval/seen/recall/1") != NULL;
    if (has_seen)
        ki_report_section(
            r, "seen", "Seen against unseen classes",
            "Retrieval on classes the network was trained on and on classes it never saw. A seen "
            "curve that climbs while the unseen one falls is overfitting. Sets of different size do "
            "not compare: a smaller one is easier, so look at how each curve moves.");
    else
        ki_report_section(
            r, "seen", "Unseen classes",
            "Retrieval on classes the network never saw, at the steps where it was measured. Sets of "
            "different size do not compare: a smaller one is easier.");
    ki_buffer_put(r->to, "<div class=\"pair\">\n");
    const int n = put_seen(r, "recall/1", "R@1") + put_seen(r, "map_at_r", "MAP@R");
    put_variants(r, "validation", "R@1 by each variant alone, validation classes");
    put_variants(r, "test", "R@1 by each variant alone, test classes");
    put_variants(r, "seen", "R@1 by each variant alone, seen classes");
    ki_buffer_put(r->to, "</div>\n");
    if (n == 0 && r->detail->note[KI_PART_LOG])
        ki_report_part(r, r->detail, KI_PART_LOG);
    else if (n == 0 && r->tuning)
        ki_report_not_there(r, "there are no test classes");
    else if (n == 0)
        ki_report_left_out(r, "the log has no evaluation");
    ki_report_section_end(r);
    return r->to->status;
}
