/* The page: tables, orders and curves from the list and the results alone. */
#include "reproduce/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "kith/experimental/reproduce.h"
#include "reproduce/grid.h"
#include "reproduce/sample.h"
#include "train/folder.h"

typedef struct page {
    kith_reproduce_paths at;
    ki_list list;
    ki_outcomes all;
    ki_notes notes;
    ki_noise noise; /* of R@1 */
    ki_buffer *to;
} page;

static int n_results(const page *p) {
    int n = 0;
    for (size_t i = 0; i < p->all.n; i++) n += !p->all.item[i].error && !p->all.item[i].is_other_data;
    return n;
}

static int n_other_data(const page *p) {
    int n = 0;
    for (size_t i = 0; i < p->all.n; i++) n += p->all.item[i].is_other_data;
    return n;
}

static int n_with_test(const page *p) {
    int n = 0;
    for (size_t i = 0; i < p->all.n; i++)
        n += !p->all.item[i].error && !isnan(ki_outcome_real(&p->all.item[i], "test", "recall.1"));
    return n;
}

/* Which step's model has the figures, as the runs say how they chose it. */
static const char *model_of_figures(const page *p) {
    int n_validation = 0, n_known = 0;
    for (size_t i = 0; i < p->all.n; i++) {
        const char *selection = p->all.item[i].error ? "" : ki_outcome_text(&p->all.item[i], "selection");
        n_known += *selection != '\0';
        n_validation += strcmp(selection, "validation") == 0;
    }
    if (n_validation == 0) return "for the model at the end of a run.";
    if (n_validation == n_known) return "for the model of the step that scored best on validation classes.";
    return "for the model at the end of a run or, in runs with validation classes, of the step that scored "
           "best on "
           "those.";
}

/* ---- what the runs share ---- */

/* Every value of a text of the results, once each, in order of appearance. */
static void put_distinct(const page *p, const char *label, const char *path, int letters) {
    const char *seen[16];
    int n = 0;
    for (size_t i = 0; i < p->all.n; i++) {
        const char *text = p->all.item[i].error ? "" : ki_outcome_text(&p->all.item[i], path);
        bool is_new = *text != '\0';
        for (int k = 0; k < n; k++) is_new = is_new && strcmp(seen[k], text) != 0;
        if (is_new && n < 16) seen[n++] = text;
    }
    if (n == 0) return;
    ki_buffer_put(p->to, "* %s:", label);
    for (int k = 0; k < n; k++) ki_buffer_put(p->to, "%s `%.*s`", k ? "," : "", letters, seen[k]);
    ki_buffer_put(p->to, "\n");
}

/* `path` as seen from the page's folder, when it lies below that. */
static const char *from_page(const char *page_path, const char *path) {
    const char *slash = strrchr(page_path, '/');
    const size_t n = slash ? (size_t)(slash - page_path) + 1 : 0;
    return strncmp(path, page_path, n) == 0 ? path + n : path;
}

/* Write a drawing as NAME.svg and show it on the page. */
static kith_status put_picture(const page *p, const char *name, const char *title, ki_buffer *drawing,
                               kith_error *err) {
    ki_path path;
    KI_TRY(drawing->status);
    KI_TRY(ki_path_print(&path, err, "%s/%s.svg", p->at.pictures, name));
    KI_TRY(ki_file_write(path.s, drawing->data, drawing->n, err));
    ki_buffer_put(p->to, "![%s](%s)\n\n", title, from_page(p->at.page, path.s));
    return KITH_OK;
}

/* What a reader wants first: which method gains how much. */
static kith_status put_summary(const page *p, kith_error *err) {
    ki_buffer drawing = {.err = err};
    const ki_list_summary *s = &p->list.summary;
    kith_status status = KITH_OK;
    if (s->n > 0 && ki_summary_draw(&p->list, &p->all, &p->noise, &drawing)) {
        status = put_picture(p, s->name, s->title, &drawing, err);
        ki_summary_put(&p->list, &p->all, &p->noise, p->to);
    }
    ki_buffer_release(&drawing);
    return status;
}

static kith_status put_gains(const page *p, kith_error *err) {
    ki_buffer drawing = {.err = err};
    const ki_list_gains *g = &p->list.gains;
    kith_status status = KITH_OK;
    if (g->n > 0 && ki_gains_draw(&p->list, &p->all, &p->noise, &drawing)) {
        ki_buffer_put(p->to, "## %s\n\n", g->title);
        status = put_picture(p, g->name, g->title, &drawing, err);
        ki_notes_put(&p->notes, "gains", p->to);
        ki_gains_put(&p->list, &p->all, &p->noise, p->to);
    }
    ki_buffer_release(&drawing);
    return status;
}

/* Rows of grids have no gains and no orders. */
static bool has_grids_alone(const ki_list *list) {
    for (size_t i = 0; i < list->n_rows; i++) {
        if (!list->row[i].in) return false;
    }
    return true;
}

static kith_status put_head(const page *p, kith_error *err) {
    ki_buffer *to = p->to;
    ki_buffer_put(to, "# Reproduction: %s\n\n", p->list.title);
    ki_buffer_put(to,
                  "<!-- Made by kith reproduce from %s and the results beside this page. Text is kept in the "
                  "notes file. -->\n\n",
                  strrchr(p->list.path, '/') ? strrchr(p->list.path, '/') + 1 : p->list.path);
    KI_TRY(put_summary(p, err));
    ki_notes_put(&p->notes, "top", to);
    const bool has_test = n_results(p) == 0 || n_with_test(p) > 0;
    ki_buffer_put(to, "%d runs. All figures are percent on ", n_results(p));
    if (has_test)
        ki_buffer_put(to, "the test classes, which no run was trained on or chosen by, %s",
                      model_of_figures(p));
    else
        ki_buffer_put(
            to,
            "validation classes, held out of the training classes and used to choose the best step; "
            "the test classes were not looked at.");
    ki_buffer_put(to, " ± is the 95 %% interval of the mean over seeds (Student's t).");
    const int n_others = n_other_data(p);
    if (n_others > 0)
        ki_buffer_put(to, " %d more result%s of other data and left out of every mean.", n_others,
                      n_others == 1 ? " is" : "s are");
    ki_buffer_put(to, "\n\n");
    put_distinct(p, "commit", "commit", 64);
    put_distinct(p, "data (hash of paths, labels and splits)", "data_sha256", 12);
    put_distinct(p, "pretrained weights (SHA-256)", "weights_sha256", 12);
    put_distinct(p, "the model of a run: validation (best on held-out training classes) or last (step)",
                 "selection", 32);
    put_distinct(p, "device", "device", 32);
    put_distinct(p, "precision", "precision", 32);
    if (p->noise.freedom > 0)
        ki_buffer_put(
            to,
            "* R@1 moves by %.2f from seed to seed (standard deviation, pooled over the rows with several "
            "seeds, %d degrees of freedom); gains and orders are judged by it\n",
            100 * p->noise.deviation, p->noise.freedom);
    else if (n_results(p) > 0 && !has_grids_alone(&p->list))
        ki_buffer_put(
            to,
            "* no row has several seeds yet: gains and orders are judged by bootstrap intervals over "
            "queries\n");
    ki_buffer_put(to, "\n");
    return KITH_OK;
}

/* ---- tables ---- */

static void put_estimate(ki_buffer *to, const ki_sample *s, int digits) {
    if (s->n == 0)
        ki_buffer_put(to, " – |");
    else if (isnan(s->estimate.low))
        ki_buffer_put(to, " %.*f |", digits, 100 * s->estimate.mean);
    else
        ki_buffer_put(to, " %.*f ± %.*f |", digits, 100 * s->estimate.mean, digits,
                      100 * (s->estimate.high - s->estimate.mean));
}

static bool has_run(const page *p, const ki_list_row *row) {
    return ki_sample_of(&p->list, &p->all, row, "recall.1").n > 0;
}

static void put_gain(const page *p, const ki_list_row *row) {
    ki_gain g;
    if (!ki_gain_of(&p->list, &p->all, &p->noise, row->name, &g)) {
        const bool has_both =
            *row->baseline && has_run(p, row) && has_run(p, ki_list_find(&p->list, row->baseline));
        if (has_both)
            ki_buffer_put(p->to, " other data than %s |", row->baseline);
        else
            ki_buffer_put(p->to, " – |");
        return;
    }
    ki_buffer_put(p->to, " %+.1f", 100 * g.gain);
    if (!isnan(g.half)) ki_buffer_put(p->to, " ± %.1f", 100 * g.half);
    ki_buffer_put(p->to, " over %s |", g.baseline->name);
}

static void put_paper(ki_buffer *to, const ki_value *paper) {
    ki_buffer_put(to, " ");
    for (const ki_value *v = paper ? paper->first : NULL; v; v = v->next)
        ki_buffer_put(to, "%s%s %s", v == paper->first ? "" : ", ", v->text ? v->text : "?", v->key);
    ki_buffer_put(to, "%s|", paper && paper->first ? " " : "– ");
}

static void put_number(ki_buffer *to, double value, const char *fmt_suffix) {
    if (isnan(value))
        ki_buffer_put(to, " – |");
    else
        ki_buffer_put(to, " %.1f%s |", value, fmt_suffix);
}

static void put_target(ki_buffer *to, double target, const ki_sample *own) {
    const bool is_judged = !isnan(target) && own->n > 0;
    /* What the page shows is what counts: one decimal. */
    const bool is_reached = is_judged && round(1000 * own->estimate.mean) >= round(10 * target);
    put_number(to, target, !is_judged ? "" : is_reached ? " reached" : " not reached");
}

static double mean_of(const page *p, const ki_list_row *row, const char *path) {
    return ki_sample_in(&p->list, &p->all, row, "", path).estimate.mean;
}

static const char *const metrics[] = {"recall.2", "recall.4", "recall.8", "map_at_r", "nmi", "f1"};
static const char *const metric_heads[] = {"R@2", "R@4", "R@8", "MAP@R", "NMI", "F1"};
enum { N_METRICS = sizeof metrics / sizeof metrics[0] };

static bool is_in(const ki_list_row *row, const ki_list_table *table) {
    return strcmp(row->table, table->name) == 0;
}

/* Columns that some row of the table with a result has something for. */
typedef struct columns {
    bool any, gain, paper, pytorch, target, metric[N_METRICS];
} columns;

static columns columns_of(const page *p, const ki_list_table *table) {
    columns c = {0};
    for (size_t i = 0; i < p->list.n_rows; i++) {
        const ki_list_row *row = &p->list.row[i];
        if (!is_in(row, table) || !has_run(p, row)) continue;
        c.any = true;
        c.gain |= *row->baseline != '\0';
        c.paper |= row->paper && row->paper->first;
        c.pytorch |= !isnan(row->pytorch);
        c.target |= !isnan(row->target);
        for (int m = 0; m < N_METRICS; m++)
            c.metric[m] |= ki_sample_of(&p->list, &p->all, row, metrics[m]).n > 0;
    }
    return c;
}

static void put_heads(ki_buffer *to, const columns *c) {
    int n = 5;
    ki_buffer_put(to, "| row | seeds | R@1 |");
    const bool is_there[] = {c->gain, c->paper, c->pytorch, c->target};
    static const char *const heads[] = {"gain", "paper", "PyTorch", "target"};
    for (int i = 0; i < 4; i++) {
        n += is_there[i];
        if (is_there[i]) ki_buffer_put(to, " %s |", heads[i]);
    }
    for (int m = 0; m < N_METRICS; m++) {
        n += c->metric[m];
        if (c->metric[m]) ki_buffer_put(to, " %s |", metric_heads[m]);
    }
    ki_buffer_put(to, " steps | seconds |\n|");
    for (int i = 0; i < n; i++) ki_buffer_put(to, "---|");
    ki_buffer_put(to, "\n");
}

static void put_row(const page *p, const columns *c, const ki_list_row *row) {
    ki_buffer *to = p->to;
    const ki_sample own = ki_sample_of(&p->list, &p->all, row, "recall.1");
    ki_buffer_put(to, "| %s | %d |", row->name, own.n);
    put_estimate(to, &own, 1);
    if (c->gain) put_gain(p, row);
    if (c->paper) put_paper(to, row->paper);
    if (c->pytorch) put_number(to, row->pytorch, "");
    if (c->target) put_target(to, row->target, &own);
    for (int m = 0; m < N_METRICS; m++) {
        const ki_sample s = ki_sample_of(&p->list, &p->all, row, metrics[m]);
        if (c->metric[m]) put_estimate(to, &s, 1);
    }
    const double steps = mean_of(p, row, "steps"), seconds = mean_of(p, row, "wall_seconds");
    const double chosen = mean_of(p, row, "step");
    if (chosen < steps)
        ki_buffer_put(to, " %.0f of %.0f | %.0f |\n", chosen, steps, seconds);
    else
        ki_buffer_put(to, " %.0f | %.0f |\n", steps, seconds);
}

/* Rows that are still to be run, in one line. */
static void put_not_run(const page *p, const ki_list_table *table) {
    bool has_any = false;
    for (size_t i = 0; i < p->list.n_rows; i++) {
        const ki_list_row *row = &p->list.row[i];
        if (!is_in(row, table) || has_run(p, row)) continue;
        ki_buffer_put(p->to, "%s%s", has_any ? ", " : "Not run yet: ", row->name);
        has_any = true;
    }
    if (has_any) ki_buffer_put(p->to, ".\n\n");
}

/* Seeds of one row that came from different recipes. */
static bool is_mixed(const page *p, const ki_list_row *row) {
    const char *first = NULL;
    for (size_t i = 0; i < p->all.n; i++) {
        const ki_outcome *o = &p->all.item[i];
        if (!ki_outcome_is_of(o, ki_list_source(&p->list, row)->name)) continue;
        if (first && strcmp(first, o->experiment) != 0) return true;
        first = o->experiment;
    }
    return false;
}

/* Results of the row that are of other data, and a row that is of other data than most. */
static bool put_data_notes(const page *p, const ki_list_row *row) {
    const char *usual = ki_outcomes_data(&p->all), *left_out = NULL, *own = usual;
    if (*row->of) return false; /* said at the row that has the runs */
    for (size_t i = 0; i < p->all.n; i++) {
        const ki_outcome *o = &p->all.item[i];
        if (ki_outcome_is_of(o, row->name)) own = o->data;
        if (o->error || !o->is_other_data || strcmp(o->row, row->name) != 0) continue;
        const bool goes_on = left_out && strcmp(left_out, o->data) == 0;
        if (!left_out) ki_buffer_put(p->to, "* %s: left out, of other data", row->name);
        if (!goes_on) ki_buffer_put(p->to, "%s (`%.12s`): seed", left_out ? "," : "", o->data);
        ki_buffer_put(p->to, "%s %lld", goes_on ? "," : "", (long long)o->seed);
        left_out = o->data;
    }
    if (left_out) ki_buffer_put(p->to, ".\n");
    if (strcmp(own, usual) == 0) return left_out != NULL;
    ki_buffer_put(p->to, "* %s: of other data (`%.12s`) than most rows (`%.12s`).\n", row->name, own, usual);
    return true;
}

/* What the row's block is in its first result that has it. */
static bool find_variant(const page *p, const ki_list_row *row, ki_card_variant *ret,
                         const ki_outcome **ret_of) {
    const ki_list_row *source = ki_list_source(&p->list, row);
    for (size_t i = 0; i < p->all.n; i++) {
        const ki_outcome *o = &p->all.item[i];
        if (!ki_outcome_is_of(o, source->name)) continue;
        for (size_t k = 0; ki_outcome_variant(o, k, ret); k++) {
            *ret_of = o;
            if (strcmp(ret->name, row->block) == 0) return true;
        }
    }
    return false;
}

static bool says(const char *text, const char *wanted) { return text && strcmp(text, wanted) == 0; }

/* For a variant that is a PCA of others: what these have without it. */
static bool put_without_pca(const page *p, const ki_list_row *row, const ki_outcome *o) {
    ki_card_variant v;
    const ki_sample own = ki_sample_in(&p->list, &p->all, row, "test", "recall.1");
    bool has_any = false;
    for (size_t i = 0; ki_outcome_variant(o, i, &v); i++) {
        if (!says(v.transform, "none")) continue;
        const ki_sample one = ki_sample_in(&p->list, &p->all, row, v.name, "recall.1");
        if (!has_any)
            ki_buffer_put(p->to, "* %s: R@1 without the PCA: embedding %.1f", row->name,
                          100 * own.estimate.mean);
        has_any = true;
        ki_buffer_put(p->to, ", %s %.1f", v.name, 100 * one.estimate.mean);
    }
    if (has_any) ki_buffer_put(p->to, ".\n");
    return has_any;
}

static void put_table(const page *p, const ki_list_table *table) {
    ki_buffer *to = p->to;
    ki_buffer_put(to, "## %s\n\n", table->title);
    ki_notes_put(&p->notes, table->name, to);
    const columns c = columns_of(p, table);
    if (c.any) put_heads(to, &c);
    for (size_t i = 0; i < p->list.n_rows; i++) {
        const ki_list_row *row = &p->list.row[i];
        if (is_in(row, table) && has_run(p, row)) put_row(p, &c, row);
    }
    if (c.any) ki_buffer_put(to, "\n");
    put_not_run(p, table);
    bool has_notes = false;
    for (size_t i = 0; i < p->list.n_rows; i++) {
        const ki_list_row *row = &p->list.row[i];
        if (!is_in(row, table)) continue;
        const bool mixed = is_mixed(p, row);
        ki_card_variant v = {0};
        const ki_outcome *of = NULL;
        const bool is_variant = find_variant(p, row, &v, &of),
                   transductive = is_variant && says(v.fitted_on, "test");
        has_notes |= *row->note || mixed || transductive;
        if (transductive)
            ki_buffer_put(to, "* %s: transductive: its PCA is fitted on the test images, not comparable.\n",
                          row->name);
        if (*row->note) ki_buffer_put(to, "* %s: %s.\n", row->name, row->note);
        if (mixed) ki_buffer_put(to, "* %s: its seeds are of different versions of the recipe.\n", row->name);
        has_notes |= put_data_notes(p, row);
        if (is_variant && says(v.transform, "pca") && !transductive) has_notes |= put_without_pca(p, row, of);
    }
    if (has_notes) ki_buffer_put(to, "\n");
}

/* The papers' habit, apart. */
static void put_habit(const page *p) {
    ki_buffer *to = p->to;
    bool has_any = false;
    for (size_t i = 0; i < p->list.n_rows; i++) {
        const ki_list_row *row = &p->list.row[i];
        const ki_sample best =
            *row->of ? (ki_sample){0} : ki_sample_in(&p->list, &p->all, row, "best_on_test", "recall.1");
        if (best.n == 0) continue;
        if (!has_any)
            ki_buffer_put(
                to,
                "## The best step on the test classes\n\nThe papers' habit: of all evaluations of a run, the "
                "one that scored best on the test classes themselves. It flatters, and is here only to be "
                "compared with numbers made the same way.\n\n"
                "| row | seeds | R@1, last step | R@1, best step on test | at step | paper |\n"
                "|---|---|---|---|---|---|\n");
        has_any = true;
        const ki_sample fair = ki_sample_of(&p->list, &p->all, row, "recall.1");
        const ki_sample step = ki_sample_in(&p->list, &p->all, row, "best_on_test", "step");
        ki_buffer_put(to, "| %s | %d |", row->name, best.n);
        put_estimate(to, &fair, 1);
        put_estimate(to, &best, 1);
        ki_buffer_put(to, " %.0f |", step.estimate.mean);
        put_paper(to, row->paper);
        ki_buffer_put(to, "\n");
    }
    if (has_any) ki_buffer_put(to, "\n");
}

/* ---- orders ---- */

static void put_line(const page *p, const ki_list_order *order, const ki_noise *noise, const ki_value *better,
                     const ki_value *worse) {
    static const char *const words[] = {"not known yet", "agrees", "disagrees", "within noise", "other data"};
    ki_buffer *to = p->to;
    const ki_sample a = ki_sample_of(&p->list, &p->all, ki_list_find(&p->list, better->key), order->metric);
    const ki_sample b = ki_sample_of(&p->list, &p->all, ki_list_find(&p->list, worse->key), order->metric);
    const double half = ki_difference_half(noise, &a, &b);
    double in_a = NAN, in_b = NAN;
    if (better->text) ki_parse_double(better->text, &in_a);
    if (worse->text) ki_parse_double(worse->text, &in_b);
    ki_buffer_put(to, "| %s | %s > %s |", order->title, better->key, worse->key);
    if (isnan(in_a) || isnan(in_b))
        ki_buffer_put(to, " drawn |");
    else
        ki_buffer_put(to, " %+.1f |", in_a - in_b);
    const ki_verdict verdict = ki_compare(noise, &a, &b);
    if (a.n == 0 || b.n == 0 || verdict == KI_OTHER_DATA)
        ki_buffer_put(to, " – |");
    else if (isnan(half))
        ki_buffer_put(to, " %+.1f |", 100 * (a.estimate.mean - b.estimate.mean));
    else
        ki_buffer_put(to, " %+.1f ± %.1f |", 100 * (a.estimate.mean - b.estimate.mean), 100 * half);
    ki_buffer_put(to, " %s |\n", words[verdict]);
}

static void put_orders(const page *p) {
    ki_buffer *to = p->to;
    if (p->list.n_orders == 0) return;
    ki_buffer_put(to, "## Which beats which\n\n");
    ki_notes_put(&p->notes, "orders", to);
    ki_buffer_put(
        to,
        "The papers' orders, neighbours compared: the difference agrees or disagrees when its 95 %% interval "
        "leaves out 0.\n\n| paper | order | paper's difference | ours | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < p->list.n_orders; i++) {
        const ki_list_order *order = &p->list.order[i];
        const ki_noise noise = ki_noise_of(&p->list, &p->all, order->metric);
        for (const ki_value *v = order->rows ? order->rows->first : NULL; v && v->next; v = v->next)
            put_line(p, order, &noise, v, v->next);
    }
    ki_buffer_put(to, "\n");
}

/* ---- curves, runs, failures ---- */

/* The drawings as files, and the lines that show them. */
static kith_status draw_curves(const page *p, bool *ret_has_seen, kith_error *err) {
    for (size_t i = 0; i < p->list.n_curves; i++) {
        const ki_list_curve *curve = &p->list.curve[i];
        ki_buffer drawing = {.err = err};
        kith_status status = KITH_OK;
        bool has_seen = false;
        if (ki_curves_draw(&p->list, &p->all, curve, &drawing, &has_seen))
            status = put_picture(p, curve->name, curve->title, &drawing, err);
        *ret_has_seen |= has_seen;
        ki_buffer_release(&drawing);
        KI_TRY(status);
    }
    return KITH_OK;
}

static kith_status put_curves(const page *p, kith_error *err) {
    ki_buffer shown = {.err = err};
    page inner = *p;
    bool has_seen = false;
    inner.to = &shown;
    kith_status status = draw_curves(&inner, &has_seen, err);
    if (status == KITH_OK) status = shown.status;
    if (status == KITH_OK && shown.n > 0) {
        ki_buffer_put(p->to, "## %s\n\n", has_seen ? "Seen and unseen classes" : "Unseen classes");
        ki_notes_put(&p->notes, "curves", p->to);
        ki_buffer_add(p->to, shown.data, shown.n);
    }
    ki_buffer_release(&shown);
    return status;
}

/* Are there results of several data sets? */
static bool has_several_data(const page *p) {
    const char *usual = ki_outcomes_data(&p->all);
    bool has_others = false;
    for (size_t i = 0; i < p->all.n; i++)
        has_others |= !p->all.item[i].error && strcmp(p->all.item[i].data, usual) != 0;
    return has_others;
}

static void put_runs(const page *p) {
    ki_buffer *to = p->to;
    const bool shows_data = has_several_data(p);
    ki_buffer_put(to,
                  "## Runs\n\n| row | seed | R@1 | step | seconds | images/s | commit | recipe |%s set |\n"
                  "|---|---|---|---|---|---|---|---|%s---|\n",
                  shows_data ? " data |" : "", shows_data ? "---|" : "");
    for (size_t i = 0; i < p->all.n; i++) {
        const ki_outcome *o = &p->all.item[i];
        if (o->error) continue;
        ki_buffer_put(to, "| %s | %lld | %.2f | %.0f | %.1f | %.0f | `%.12s` | `%.12s` |", o->row,
                      (long long)o->seed, 100 * ki_outcome_recall(o), ki_outcome_real(o, "", "step"),
                      ki_outcome_real(o, "", "wall_seconds"), ki_outcome_real(o, "", "img_per_s"),
                      ki_outcome_text(o, "commit"), o->recipe_hash);
        if (shows_data) ki_buffer_put(to, " `%.12s`%s |", o->data, o->is_other_data ? ", left out" : "");
        for (const ki_value *v = o->set ? o->set->first : NULL; v; v = v->next)
            ki_buffer_put(to, " `%s`", v->text ? v->text : "");
        ki_buffer_put(to, " |\n");
    }
    ki_buffer_put(to, "\n");
}

static void put_failures(const page *p) {
    bool has_any = false;
    for (size_t i = 0; i < p->all.n; i++) {
        const ki_outcome *o = &p->all.item[i];
        if (!o->error) continue;
        if (!has_any) ki_buffer_put(p->to, "## Runs that failed\n\n");
        has_any = true;
        ki_buffer_put(p->to, "* %s, seed %lld: %s\n", o->row, (long long)o->seed, o->error);
    }
    if (has_any) ki_buffer_put(p->to, "\n");
}

static kith_status put_page(const page *p, kith_error *err) {
    KI_TRY(put_head(p, err));
    for (size_t i = 0; i < p->list.n_tables; i++) put_table(p, &p->list.table[i]);
    KI_TRY(ki_grids_put(&p->list, &p->all, p->to, err));
    put_habit(p);
    KI_TRY(put_gains(p, err));
    put_orders(p);
    KI_TRY(put_curves(p, err));
    put_failures(p);
    put_runs(p);
    ki_notes_put(&p->notes, "end", p->to);
    return p->to->status;
}

kith_status kith_reproduce_table(const kith_reproduce_options *options, kith_error *err) {
    kith_status status;
    ki_buffer to = {.err = err};
    KI_OPTIONS_TAKE(kith_reproduce_options, o, options, err);
    KI_TRY(ki_reproduce_check(&o, err));
    page p = {.to = &to};
    KI_CHECK(kith_reproduce_places(&o, &p.at, err));
    KI_CHECK(ki_list_read(o.list, &p.list, err));
    KI_CHECK(ki_outcomes_read(p.at.out, &p.all, err));
    KI_CHECK(ki_page_check(&p.list, &p.at, err));
    KI_CHECK(ki_notes_read(p.at.notes, &p.list, &p.notes, err));
    p.noise = ki_noise_of(&p.list, &p.all, "recall.1");
    KI_CHECK(put_page(&p, err));
    while (to.n > 1 && to.data[to.n - 1] == '\n' && to.data[to.n - 2] == '\n') to.n--;
    KI_CHECK(ki_file_write(p.at.page, to.data, to.n, err));
done:
    ki_buffer_release(&to);
    ki_notes_release(&p.notes);
    ki_outcomes_release(&p.all);
    ki_list_release(&p.list);
    return status;
}
