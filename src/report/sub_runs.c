/* A run that was repeated over seeds or folds: one row for each, and the mean. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "judge/estimate.h"
#include "report/report.h"

enum { N_COLUMNS = 5 };
static const char *const keys[N_COLUMNS] = {"recall.1", "recall.2", "map_at_r", "r_precision", "nmi"};

typedef struct column {
    bool is_shown; /* the first run has it */
    int64_t n;
    double sum, squares;
} column;

static const char *key_name(const char *key) {
    for (size_t i = 0; ki_metric_at(i); i++) {
        if (strcmp(ki_metric_at(i)->key, key) == 0) return ki_metric_at(i)->name;
    }
    return key;
}

static kith_status put_row(ki_report *r, const char *name, column *columns) {
    char path[4096];
    ki_material run = {0};
    kith_error why = {0};
    ki_buffer *to = r->to;
    const int n = ki_snprintf(path, sizeof path, "%s/%s", r->run.folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return ki_fail(r->err, KITH_EINVAL, "%s: the name is too long", path);
    const kith_status status = ki_material_read(path, false, &run, &why);
    if (status == KITH_ENOMEM) {
        if (r->err) *r->err = why;
        return status;
    }
    ki_buffer_put(to, "<tr><th><a href=\"");
    ki_buffer_escaped(to, name);
    ki_buffer_put(to, "/report.html\">");
    ki_buffer_escaped(to, name);
    ki_buffer_put(to, "</a></th>");
    double step;
    char text[KI_NUMBER_TEXT];
    ki_buffer_put(to, "<td>%s</td>",
                  ki_document_real(run.result, "step", &step) ? ki_count_text(step, text) : "no result");
    for (int c = 0; c < N_COLUMNS; c++) {
        ki_estimate e;
        if (!columns[c].is_shown) continue;
        if (ki_estimate_of(ki_result_test(run.result), NULL, keys[c], &e)) {
            columns[c].n++, columns[c].sum += e.value, columns[c].squares += e.value * e.value;
            ki_buffer_put(to, "<td>%.1f</td>", 100 * e.value);
        } else {
            ki_buffer_put(to, "<td class=\"quiet\">–</td>");
        }
    }
    ki_buffer_put(to, "</tr>\n");
    ki_material_release(&run);
    return to->status;
}

static void put_means(ki_report *r, const column *columns) {
    ki_buffer *to = r->to;
    ki_buffer_put(to, "<tfoot><tr><th>mean</th><td></td>");
    for (int c = 0; c < N_COLUMNS; c++) {
        const column *k = columns + c;
        if (!k->is_shown) continue;
        if (k->n == 0) {
            ki_buffer_put(to, "<td class=\"quiet\">–</td>");
            continue;
        }
        const double n = (double)k->n, mean = k->sum / n;
        ki_buffer_put(to, "<td><b>%.1f</b>", 100 * mean);
        if (k->n > 1) {
            const double variance = fmax(0, (k->squares - n * mean * mean) / (n - 1));
            ki_buffer_put(to, " <span class=\"quiet\">± %.1f</span>",
                          100 * ki_t_quantile((int)k->n - 1) * sqrt(variance / n));
        }
        ki_buffer_put(to, "</td>");
    }
    ki_buffer_put(to, "</tr></tfoot>\n");
}

kith_status ki_report_sub_runs(ki_report *r) {
    if (r->run.n_sub_runs == 0) return KITH_OK;
    column columns[N_COLUMNS] = {0};
    char about[200];
    ki_snprintf(about, sizeof about,
                "Percent on the test classes; ± is the 95 %% interval of the mean (Student's t). %s%s%s",
                r->detail == &r->first ? "Curves and pictures below are of " : "",
                r->detail == &r->first ? r->run.sub_run[0] : "", r->detail == &r->first ? "." : "");
    ki_report_section(r, "runs", "Repeated runs", about);
    ki_buffer_put(r->to, "<div class=\"scroll\"><table>\n<thead><tr><th>run</th><th>step</th>");
    for (int c = 0; c < N_COLUMNS; c++) {
        ki_estimate e;
        columns[c].is_shown = c == 0 || ki_estimate_of(ki_result_test(r->detail->result), NULL, keys[c], &e);
        if (columns[c].is_shown) ki_buffer_put(r->to, "<th>%s</th>", key_name(keys[c]));
    }
    ki_buffer_put(r->to, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < r->run.n_sub_runs; i++) KI_TRY(put_row(r, r->run.sub_run[i], columns));
    ki_buffer_put(r->to, "</tbody>\n");
    put_means(r, columns);
    ki_buffer_put(r->to, "</table></div>\n");
    ki_report_section_end(r);
    return r->to->status;
}
