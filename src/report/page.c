/* The page: its sections in order, and what sections share. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "io/json.h"
#include "kith/version.h"
#include "report/report.h"

void ki_report_section(ki_report *r, const char *id, const char *title, const char *about) {
    ki_buffer_put(r->to, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
    if (!about) return;
    ki_buffer_put(r->to, "<p class=\"about\">");
    ki_buffer_escaped(r->to, about);
    ki_buffer_put(r->to, "</p>\n");
}

void ki_report_section_end(ki_report *r) { ki_buffer_put(r->to, "</section>\n"); }

static void put_left_out(ki_report *r, kith_log_level level, const char *text) {
    ki_buffer_put(r->to, "<p class=\"note\">Left out: ");
    ki_buffer_escaped(r->to, text);
    ki_buffer_put(r->to, ".</p>\n");
    ki_log(level, "report: %s", text);
}

void ki_report_left_out(ki_report *r, const char *text) { put_left_out(r, KITH_LOG_WARNING, text); }

void ki_report_not_there(ki_report *r, const char *text) { put_left_out(r, KITH_LOG_DEBUG, text); }

void ki_report_part(ki_report *r, const ki_material *material, ki_material_part part) {
    if (material->note[part])
        put_left_out(r, material->is_absent[part] ? KITH_LOG_DEBUG : KITH_LOG_WARNING, material->note[part]);
}

/* A folder's own name: what follows the last slash. */
static void put_name(ki_buffer *to, const char *folder) {
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && folder[begin - 1] != '/') begin--;
    char name[256];
    ki_snprintf(name, sizeof name, "%.*s", (int)(n - begin), folder + begin);
    ki_buffer_escaped(to, name);
}

static const char *fact(const ki_material *run, const char *path) {
    return ki_document_text(run->recipe, path);
}

/* "binomial + horde on convnet4, 64-d; data: omniglot". */
static void put_subtitle(ki_report *r) {
    const ki_material *run = r->detail;
    const char *const loss = fact(run, "objective.loss.name"), *net = fact(run, "model.backbone");
    if (!net || !*net) net = ki_document_text(run->result, "backbone"); /* recognised by its weights */
    const char *const size = fact(run, "model.embedding");
    const char *data = fact(run, "data.root");
    if (!data) data = ki_document_text(run->result, "data"); /* several data sets */
    if (!loss && !net && !data) return;
    ki_buffer_put(r->to, "<p class=\"subtitle\">");
    if (loss) ki_buffer_escaped(r->to, loss);
    const ki_value *regularizers = ki_document_at(run->recipe, "objective.regularizers");
    for (const ki_value *v = regularizers ? regularizers->first : NULL; v; v = v->next) {
        const char *name = ki_document_text(v, "name");
        if (!name) continue;
        ki_buffer_put(r->to, " + ");
        ki_buffer_escaped(r->to, name);
    }
    if (net) {
        ki_buffer_put(r->to, " on ");
        ki_buffer_escaped(r->to, net);
    }
    if (size) {
        ki_buffer_put(r->to, ", ");
        ki_buffer_escaped(r->to, size);
        ki_buffer_put(r->to, "-d");
    }
    if (data) {
        ki_buffer_put(r->to, "; data: ");
        put_name(r->to, data);
    }
    ki_buffer_put(r->to, "</p>\n");
}

void ki_page_begin(ki_buffer *to) {
    ki_buffer_put(to,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
                  "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<title>");
}

void ki_page_style(ki_buffer *to) {
    ki_buffer_put(to, "</title>\n<style>\n");
    for (const char *const *line = ki_report_style; *line; line++) ki_buffer_add(to, *line, strlen(*line));
}

static void put_head(ki_report *r) {
    ki_page_begin(r->to);
    put_name(r->to, r->run.folder);
    ki_buffer_put(r->to, " · kith report");
    ki_page_style(r->to);
    ki_buffer_put(r->to, "</style>\n</head>\n<body>\n<header>\n<h1>");
    put_name(r->to, r->run.folder);
    ki_buffer_put(r->to, "</h1>\n");
    put_subtitle(r);
    ki_buffer_put(r->to, "</header>\n<main>\n");
}

static void put_foot(ki_report *r) {
    ki_buffer_put(r->to, "</main>\n<footer>kith %s", kith_version());
    if (kith_commit()[0]) ki_buffer_put(r->to, " (%.12s)", kith_commit());
    ki_buffer_put(r->to, ". One file: nothing is loaded from anywhere else.</footer>\n<script>\n");
    for (const char *const *line = ki_report_script; *line; line++)
        ki_buffer_add(r->to, *line, strlen(*line));
    ki_buffer_put(r->to, "</script>\n</body>\n</html>\n");
}

kith_status ki_report_recipe(ki_report *r) {
    ki_report_section(r, "recipe", "Recipe", NULL);
    const ki_material *from = r->run.recipe_text ? &r->run : r->detail;
    if (from->recipe_text) {
        ki_buffer_put(r->to, "<details>\n<summary>recipe.yaml, with every default</summary>\n<pre>");
        ki_buffer_escaped(r->to, from->recipe_text);
        ki_buffer_put(r->to, "</pre>\n</details>\n");
    }
    ki_report_part(r, from, KI_PART_RECIPE);
    ki_report_section_end(r);
    return r->to->status;
}

/* The run itself, and the first of its parts when it was repeated: the folder of a repeated run has no
 * curves or test images of its own. */
static kith_status read_runs(ki_report *r, const char *folder) {
    KI_TRY(ki_material_read(folder, true, &r->run, r->err));
    r->detail = &r->run;
    if (r->run.n_sub_runs > 0 && r->run.note[KI_PART_LOG]) {
        char path[4096];
        const int n = ki_snprintf(path, sizeof path, "%s/%s", folder, r->run.sub_run[0]);
        if (n < 0 || (size_t)n >= sizeof path)
            return ki_fail(r->err, KITH_EINVAL, "%s: the name is too long", folder);
        kith_error why = {0};
        const kith_status status = ki_material_read(path, true, &r->first, &why);
        if (status == KITH_OK) r->detail = &r->first;
        if (status == KITH_ENOMEM) {
            if (r->err) *r->err = why;
            return status;
        }
    }
    r->chosen_step = -1;
    ki_document_real(r->detail->result, "step", &r->chosen_step);
    return KITH_OK;
}

/* A file that is damaged is left out with a line of the log; the run's own parts are there all the same. */
static kith_status read_tuning(ki_report *r, const char *folder) {
    char path[4096];
    kith_error why = {0};
    ki_value *root = NULL;
    const int n = ki_snprintf(path, sizeof path, "%s/tune.json", folder);
    if (n < 0 || (size_t)n >= sizeof path || !ki_is_file("%s", path)) return KITH_OK;
    const kith_status status = ki_json_read(path, &r->run.arena, &root, &why);
    if (status == KITH_OK && root->kind == KI_VALUE_MAP) r->tuning = root;
    if (!r->tuning)
        ki_log(KITH_LOG_WARNING, "report: %s", status == KITH_OK ? "tune.json is no object" : why.message);
    if (status == KITH_ENOMEM && r->err) *r->err = why;
    return status == KITH_ENOMEM ? status : KITH_OK;
}

static kith_status put_page(ki_report *r) {
    static kith_status (*const sections[])(ki_report *) = {
        ki_report_card, ki_report_photos, ki_report_sub_runs, ki_report_seen,  ki_report_curves,
        ki_report_grid, ki_report_map,    ki_report_pairs,    ki_report_recipe};
    put_head(r);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        KI_TRY(sections[i](r));
        KI_TRY(r->to->status);
    }
    put_foot(r);
    return r->to->status;
}

kith_status ki_report_make(const char *run, const kith_report_options *options, ki_buffer *to,
                           char ret_why[200], kith_error *err) {
    ki_report report = {.options = options, .to = to, .err = err};
    kith_status status = KITH_OK;
    KI_CHECK(read_runs(&report, run));
    KI_CHECK(read_tuning(&report, run));
    KI_CHECK(put_page(&report));
    if (ret_why) memcpy(ret_why, report.why_unread, sizeof report.why_unread);
done:
    ki_material_release(&report.run);
    ki_material_release(&report.first);
    return status;
}
