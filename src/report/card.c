/* The result card: the scores, those before training, how the model was chosen, and the facts of the run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "judge/card.h"
#include "report/report.h"

/* ---- how the model was chosen ---- */

static const char *metric_name(const char *key) {
    for (size_t i = 0; ki_metric_at(i); i++) {
        if (strcmp(ki_metric_at(i)->key, key) == 0) return ki_metric_at(i)->name;
    }
    return strcmp(key, "r_at_1") == 0 ? "R@1" : key;
}

static void put_selection(ki_report *r) {
    const ki_value *result = r->run.result;
    ki_buffer *to = r->to;
    const char *selection = ki_document_text(result, "selection");
    const char *metric = ki_document_text(result, "selection_metric");
    double step;
    char text[KI_NUMBER_TEXT];
    const bool has_step = ki_document_real(result, "step", &step);
    const bool on_test = selection && strcmp(selection, "test") == 0;
    ki_buffer_put(to, "<p class=\"%s\">", on_test ? "warn" : "about");
    ki_buffer_put(to, has_step ? "The model of step %s was chosen " : "Models were chosen ",
                  has_step ? ki_count_text(step, text) : "");
    if (metric) {
        ki_buffer_put(to, "by its ");
        ki_buffer_escaped(to, metric_name(metric));
        ki_buffer_put(to, " ");
    }
    if (on_test)
        ki_buffer_put(to,
                      "<b>on the test classes themselves</b>, the habit of many papers: these figures are "
                      "the best of many evaluations, and too good for a new set of classes.");
    else if (selection && strcmp(selection, "validation") == 0)
        ki_buffer_put(to,
                      "on validation classes, which were held out of the training classes. The test classes "
                      "were scored once, at the end.");
    else if (selection && strcmp(selection, "last") == 0)
        ki_buffer_put(to, "because it is the last: nothing was held out. The test classes were scored once.");
    else
        ki_buffer_put(to, "in a way that the result does not record.");
    ki_buffer_put(to, "</p>\n");
}

/* ---- figures ---- */

/* The largest numbers first: R@1 and MAP@R, untrained to trained. */
static void put_big(ki_report *r) {
    static const char *const keys[] = {"recall.1", "map_at_r"};
    const ki_value *test = ki_result_test(r->run.result), *before = ki_result_untrained(r->run.result);
    ki_buffer_put(r->to, "<div class=\"figures\">\n");
    for (size_t i = 0; i < 2; i++) {
        ki_estimate now, then;
        if (!ki_estimate_of(test, ki_result_intervals(r->run.result), keys[i], &now)) continue;
        ki_buffer_put(r->to,
                      "<div class=\"figure\"><span class=\"name\">%s, unseen classes</span><span "
                      "class=\"value\">%.1f<small> %%</small></span><span class=\"quiet\">",
                      metric_name(keys[i]), 100 * now.value);
        if (!isnan(now.low) && !isnan(now.high))
            ki_buffer_put(r->to, "95 %% interval %.1f to %.1f", 100 * now.low, 100 * now.high);
        if (ki_estimate_of(before, NULL, keys[i], &then))
            ki_buffer_put(r->to, "%suntrained %.1f", isnan(now.low) ? "" : "; ", 100 * then.value);
        ki_buffer_put(r->to, "</span></div>\n");
    }
    ki_buffer_put(r->to, "</div>\n");
}

static void put_cell(ki_buffer *to, bool is_there, const ki_estimate *e) {
    ki_buffer_put(to, "<td>");
    if (is_there)
        ki_estimate_put(to, e);
    else
        ki_buffer_put(to, "<span class=\"quiet\">–</span>");
    ki_buffer_put(to, "</td>");
}

static void put_table(ki_report *r) {
    const ki_value *result = r->run.result, *test = ki_result_test(result);
    const ki_value *before = ki_result_untrained(result), *seen = ki_result_seen(result);
    ki_buffer *to = r->to;
    ki_buffer_put(to, "<div class=\"scroll\"><table>\n<thead><tr><th>percent</th>");
    if (before) ki_buffer_put(to, "<th>untrained</th>");
    ki_buffer_put(to, "<th>trained, unseen classes</th>");
    if (seen) ki_buffer_put(to, "<th>trained, seen classes</th>");
    ki_buffer_put(to, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; ki_metric_at(i); i++) {
        ki_estimate now, then, there;
        const char *key = ki_metric_at(i)->key;
        if (!ki_estimate_of(test, ki_result_intervals(result), key, &now)) continue;
        ki_buffer_put(to, "<tr><th>%s</th>", ki_metric_at(i)->name);
        if (before) {
            const bool has = ki_estimate_of(before, NULL, key, &then);
            put_cell(to, has, &then);
        }
        put_cell(to, true, &now);
        if (seen) {
            const bool has = ki_estimate_of(seen, NULL, key, &there);
            put_cell(to, has, &there);
        }
        ki_buffer_put(to, "</tr>\n");
    }
    ki_buffer_put(to, "</tbody>\n</table></div>\n");
    if (ki_result_intervals(result) || r->run.n_sub_runs > 0)
        ki_buffer_put(to, "<p class=\"quiet\">Small numbers: %s.</p>\n",
                      r->run.n_sub_runs > 0 ? "95 % interval of the mean over the runs"
                                            : "95 % interval (bootstrap over queries)");
}

/* The same test images by other vectors than the embedding. */
static void put_variants(ki_report *r) {
    static const char *const keys[] = {"recall.1", "map_at_r", "r_precision", "nmi"};
    enum { N = sizeof keys / sizeof keys[0] };
    ki_card_variant v;
    if (!ki_card_variant_at(r->run.result, 0, &v)) return;
    ki_buffer_put(r->to,
                  "<div class=\"scroll\"><table>\n<thead><tr><th>variant, percent</th><th>made by</th>");
    for (int k = 0; k < N; k++) ki_buffer_put(r->to, "<th>%s</th>", metric_name(keys[k]));
    ki_buffer_put(r->to, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; ki_card_variant_at(r->run.result, i, &v); i++) {
        ki_buffer_put(r->to, "<tr><th>");
        ki_buffer_escaped(r->to, v.name);
        ki_buffer_put(r->to, "</th><td>");
        ki_buffer_escaped(r->to, v.transform ? v.transform : "");
        if (v.fitted_on) ki_buffer_put(r->to, ", fitted on ");
        ki_buffer_escaped(r->to, v.fitted_on ? v.fitted_on : "");
        ki_buffer_put(r->to, "</td>");
        for (int k = 0; k < N; k++) {
            char path[96];
            ki_estimate e;
            ki_snprintf(path, sizeof path, "%.48s.%s", v.name, keys[k]);
            const bool has = ki_estimate_of(r->run.result, NULL, path, &e);
            put_cell(r->to, has, &e);
        }
        ki_buffer_put(r->to, "</tr>\n");
    }
    ki_buffer_put(r->to,
                  "</tbody>\n</table></div>\n<p class=\"quiet\">Variants: the test images compared by other "
                  "vectors than "
                  "the embedding. What was fitted on test images is not comparable.</p>\n");
}

/* ---- facts ---- */

static bool is_among(const char *key, const char *const *keys) {
    for (; *keys; keys++) {
        if (strcmp(key, *keys) == 0) return true;
    }
    return false;
}

static bool is_hash(const char *text) {
    const size_t n = strlen(text);
    return n >= 40 && strspn(text, "0123456789abcdef") == n;
}

static const char *const fact_names[][2] = {{"n_train_classes", "training classes"},
                                            {"n_train_images", "training images"},
                                            {"n_validation_images", "validation images"},
                                            {"n_test_images", "test images"},
                                            {"n_classes", "test classes"},
                                            {"n_images", "test images"},
                                            {"n_unreadable", "unreadable images"},
                                            {"n_steps", "steps asked for"},
                                            {"n_runs", "runs"},
                                            {"steps", "steps taken"},
                                            {"seconds", "seconds of training"},
                                            {"img_per_s", "images per second"},
                                            {"kith", "kith version"}};

static void put_fact_name(ki_buffer *to, const char *key) {
    char name[80];
    for (size_t i = 0; i < sizeof fact_names / sizeof fact_names[0]; i++) {
        if (strcmp(key, fact_names[i][0]) == 0) key = fact_names[i][1];
    }
    ki_snprintf(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++) {
        if (*c == '_') *c = ' ';
    }
    ki_buffer_escaped(to, name);
}

/* Every plain value of the document, so that nothing it records is hidden. Whole numbers have commas; hashes
 * are shown as code. */
static void put_facts_of(ki_report *r, const ki_value *document, const char *const *skip) {
    for (const ki_value *v = document ? document->first : NULL; v; v = v->next) {
        if (v->kind != KI_VALUE_SCALAR || !v->text[0] || is_among(v->key, skip)) continue;
        ki_buffer_put(r->to, strlen(v->text) > 22 ? "<div class=\"long\"><dt>" : "<div><dt>");
        put_fact_name(r->to, v->key);
        ki_buffer_put(r->to, "</dt><dd>");
        int64_t whole;
        double real;
        char text[KI_NUMBER_TEXT];
        if (is_hash(v->text)) {
            ki_buffer_put(r->to, "<code>");
            ki_buffer_escaped(r->to, v->text);
            ki_buffer_put(r->to, "</code>");
        } else if (ki_parse_int64(v->text, &whole) && !strstr(v->key, "seed")) {
            ki_buffer_put(r->to, "%s", ki_count_text((double)whole, text));
        } else if (ki_parse_double(v->text, &real) && isfinite(real)) {
            ki_buffer_put(r->to, "%s", ki_number_text(real, 5, text));
        } else {
            ki_buffer_escaped(r->to, v->text);
        }
        ki_buffer_put(r->to, "</dd></div>\n");
    }
}

/* Facts that the result contains are not repeated from run.json. For a repeated run, the facts that all its
 * parts share. */
static void put_facts(ki_report *r) {
    enum { MOST = 64 };
    static const char *const said[] = {"selection", "selection_metric", "step", "n_test_images", NULL};
    static const char *const apart[] = {"seed", "recipe_sha256", "command", "started", NULL};
    const char *skip[MOST + 1] = {0};
    size_t n = 0;
    for (; said[n]; n++) skip[n] = said[n];
    ki_buffer_put(r->to, "<dl class=\"facts\">\n");
    put_facts_of(r, r->run.result, skip);
    for (const char *const *key = apart; r->run.n_sub_runs > 0 && *key; key++) skip[n++] = *key;
    for (const ki_value *v = r->run.result ? r->run.result->first : NULL; v && n < MOST; v = v->next) {
        if (v->kind == KI_VALUE_SCALAR) skip[n++] = v->key;
    }
    put_facts_of(r, r->detail->card, skip);
    ki_buffer_put(r->to, "</dl>\n");
    ki_report_part(r, r->detail, KI_PART_CARD);
}

/* ---- a run without a result ---- */

static void put_state(ki_report *r) {
    const ki_log_file *log = &r->detail->log;
    double all;
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
    ki_buffer_put(r->to, "<p class=\"warn\">No result yet: the run was interrupted or is still going on");
    if (log->n_series > 0) {
        ki_buffer_put(r->to, ", at step %s", ki_count_text(log->last_step, a));
        if (ki_document_real(r->run.card, "n_steps", &all))
            ki_buffer_put(r->to, " of %s", ki_count_text(all, b));
    }
    ki_buffer_put(r->to, ".</p>\n");
    ki_report_part(r, &r->run, KI_PART_RESULT);
}

kith_status ki_report_card(ki_report *r) {
    ki_report_section(r, "card", "Result", NULL);
    if (r->run.result) {
        put_big(r);
        put_selection(r);
        put_table(r);
        put_variants(r);
    } else {
        put_state(r);
    }
    put_facts(r);
    ki_report_section_end(r);
    return r->to->status;
}
