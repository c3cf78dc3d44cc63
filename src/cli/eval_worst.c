/* kith eval --worst: the worst queries and the hardest negatives, as tables and as a page of pictures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/eval.h"
#include "cli/images.h"
#include "cli/lines.h"
#include "cli/search.h"
#include "kith/report.h"

void eval_worst_release(eval_worst *w) {
    kith_worst_release(&w->found);
    free(w->path);
    free(w->class);
    free(w->text);
    *w = (eval_worst){0};
}

/* ---- finding them ---- */

static kith_status name_vectors(const eval_set *set, eval_worst *w, kith_error *err) {
    const int64_t n = kith_vectors_count(set->vectors);
    w->path = calloc((size_t)n + 1, sizeof *w->path);
    w->class = calloc((size_t)n + 1, sizeof *w->class);
    if (!w->path || !w->class) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the paths");
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = kith_vectors_labels(set->vectors)[i];
        w->path[i] = kith_dataset_item(set->dataset, kith_vectors_items(set->vectors)[i]).path;
        w->class[i] = label >= 0 ? kith_dataset_class_name(set->dataset, label) : NULL;
    }
    return KITH_OK;
}

static kith_status name_rows(const eval_set *set, const char *images, eval_worst *w, kith_error *err) {
    if (images) {
        const kith_status status = cli_read_paths(images, set->n_labels, &w->text, &w->path, err);
        if (status != KITH_OK) return status;
    }
    if (kith_labels_n_names(set->names) == 0) return KITH_OK;
    w->class = calloc((size_t)set->n_labels + 1, sizeof *w->class);
    if (!w->class) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the classes");
    for (int64_t i = 0; i < set->n_labels; i++) w->class[i] = kith_labels_name(set->names, set->labels[i]);
    return KITH_OK;
}

kith_status eval_worst_find(const eval_set *set, const eval_worst_request *r, const kith_judgement *j,
                            eval_worst *ret, kith_error *err) {
    cli_progress progress;
    eval_worst w = {0};
    KITH_OPTIONS(kith_worst_options, options);
    options.metric = r->metric;
    options.most = r->most;
    options.device = r->device;
    options.scores = &j->retrieval;
    options.progress = cli_show_progress;
    options.user = &progress;
    const kith_retrieval_input input = eval_set_input(set);
    kith_status status = set->vectors ? name_vectors(set, &w, err) : name_rows(set, r->images, &w, err);
    cli_progress_begin(&progress, "the worst", 0);
    if (status == KITH_OK)
        status = set->vectors ? kith_vectors_worst(set->vectors, &options, &w.found, err)
                              : kith_worst_find(&input, &options, &w.found, err);
    cli_progress_end(&progress);
    if (status == KITH_OK)
        *ret = w;
    else
        eval_worst_release(&w);
    return status;
}

/* ---- tables ---- */

typedef struct row_text {
    char name[64], row[96]; /* of the class, and which one */
} row_text;

static bool is_inside(char c) { return ((unsigned char)c & 0xC0) == 0x80; } /* a character of UTF-8 */

/* As much of a text as there is room for, in whole characters. */
static void copy_begin(const char *text, char *to, size_t bytes) {
    size_t n = strlen(text);
    if (n >= bytes) {
        n = bytes - 1;
        while (n > 0 && is_inside(text[n])) n--;
    }
    memcpy(to, text, n);
    to[n] = '\0';
}

/* The class, and the path or else the number of a row. */
static void name_row(const eval_worst *w, int64_t row, int64_t label, row_text *ret) {
    if (w->class && w->class[row])
        copy_begin(w->class[row], ret -> name, sizeof ret->name);
    else
        snprintf(ret->name, sizeof ret->name, "%lld", (long long)label);
    const char *path = w->path ? w->path[row] : NULL;
    if (!path) {
        snprintf(ret->row, sizeof ret->row, "row %lld", (long long)row);
        return;
    }
    path = search_shown_path(path);
    const size_t n = strlen(path), most = sizeof ret->row - 4;
    const char *tail = n > most ? path + n - most : path;
    while (is_inside(*tail)) tail++;
    snprintf(ret->row, sizeof ret->row, "%s%s", n > most ? "…" : "", tail);
}

static void print_row(const eval_worst *w, int64_t row, int64_t label) {
    row_text text;
    name_row(w, row, label, &text);
    search_put(text.name);
    fputs("  ", stdout);
    search_put(text.row);
}

static void print_queries(const eval_worst *w) {
    const kith_worst *f = &w->found;
    printf(
        "\nthe %lld worst of %lld queries, by average precision; %lld have a nearest item of another "
        "class\n  %8s %9s  query\n",
        (long long)f->n, (long long)f->n_judged, (long long)f->n_wrong, "AP", "first hit");
    for (int64_t i = 0; i < f->n; i++) {
        const kith_worst_query *q = &f->queries[i];
        printf("  %8.2f %9lld  ", 100 * q->average_precision, (long long)q->first_hit);
        print_row(w, q->row, q->label);
        putchar('\n');
    }
}

static void print_negatives(const eval_worst *w) {
    const kith_worst *f = &w->found;
    char count[32] = "";
    if (f->n_negatives == 0) return;
    if (f->n_negatives > 1) snprintf(count, sizeof count, "%lld ", (long long)f->n_negatives);
    printf(
        "\nthe %shardest negative%s: nearest items of another class, and by how much they are nearer than "
        "any of the query's own\n  %8s %8s  query, and below it the nearest\n",
        count, *count ? "s" : "", "score", "margin");
    for (int64_t i = 0; i < f->n_negatives; i++) {
        const kith_hard_negative *n = &f->negatives[i];
        printf("  %8.4f %8.4f  ", n->negative.score, n->margin);
        print_row(w, n->row, n->label);
        printf("\n  %8s %8s  ", "", "");
        print_row(w, n->negative.row, n->negative.label);
        putchar('\n');
    }
}

void eval_worst_print(const eval_worst *w) {
    print_queries(w);
    print_negatives(w);
}

/* ---- the page ---- */

typedef struct page {
    const eval_worst *worst;
    kith_page_part *part; /* [n + n_negatives] */
    kith_page_hit *hit;   /* [n * n_nearest + 2 n_negatives] */
    const char **image;   /* of the queries, in the order of the parts */
    char (*title)[384];   /* of the parts */
    int64_t n, n_hits;
} page;

static void page_release(page *p) {
    free(p->part);
    free(p->hit);
    free(p->image);
    free(p->title);
}

static bool page_init(page *p, const eval_worst *w) {
    const size_t n = (size_t)(w->found.n + w->found.n_negatives),
                 n_hits = (size_t)(w->found.n * w->found.n_nearest + 2 * w->found.n_negatives);
    *p = (page){.worst = w};
    p->part = calloc(n + 1, sizeof *p->part);
    p->hit = calloc(n_hits + 1, sizeof *p->hit);
    p->image = calloc(n + 1, sizeof *p->image);
    p->title = calloc(n + 1, sizeof *p->title);
    return p->part && p->hit && p->image && p->title;
}

static void add_hit(page *p, kith_page_part *part, const kith_worst_hit *hit, const char *note) {
    if (hit->row < 0) return;
    const eval_worst *w = p->worst;
    p->hit[p->n_hits++] = (kith_page_hit){.image = w->path[hit->row],
                                          .path = search_shown_path(w->path[hit->row]),
                                          .label = w->class ? w->class[hit->row] : NULL,
                                          .note = note,
                                          .id = -1,
                                          .score = hit->score,
                                          .false_match_rate = NAN};
    part->n_hits++;
}

static kith_page_part *add_part(page *p, int64_t row) {
    kith_page_part *part = &p->part[p->n];
    p->image[p->n] = p->worst->path[row];
    *part = (kith_page_part){
        .title = p->title[p->n], .images = &p->image[p->n], .n_images = 1, .hits = p->hit + p->n_hits};
    p->n++;
    return part;
}

static void fill(page *p) {
    const kith_worst *f = &p->worst->found;
    row_text text, other;
    for (int64_t i = 0; i < f->n; i++) {
        const kith_worst_query *q = &f->queries[i];
        name_row(p->worst, q->row, q->label, &text);
        snprintf(p->title[p->n], sizeof *p->title,
                 "%lld. %s: average precision %.2f %%, first hit at rank %lld; %s", (long long)i + 1,
                 text.name, 100 * q->average_precision, (long long)q->first_hit, text.row);
        kith_page_part *part = add_part(p, q->row);
        for (int64_t j = 0; j < f->n_nearest; j++) {
            const kith_worst_hit *hit = &f->nearest[i * f->n_nearest + j];
            add_hit(p, part, hit, hit->label == q->label ? "✓ the same class" : "✗ another class");
        }
    }
    for (int64_t i = 0; i < f->n_negatives; i++) {
        const kith_hard_negative *n = &f->negatives[i];
        name_row(p->worst, n->row, n->label, &text);
        name_row(p->worst, n->negative.row, n->negative.label, &other);
        snprintf(p->title[p->n], sizeof *p->title, "Hard negative %lld: %s, and %s is nearer by %.3f; %s",
                 (long long)i + 1, text.name, other.name, n->margin, text.row);
        kith_page_part *part = add_part(p, n->row);
        add_hit(p, part, &n->negative, "✗ the nearest");
        add_hit(p, part, &n->positive, "✓ the nearest of the same class");
    }
}

kith_status eval_worst_write_page(const eval_worst *w, const eval_worst_request *r, kith_error *err) {
    page p;
    char title[512], about[512];
    const kith_worst *f = &w->found;
    kith_status status;
    if (!page_init(&p, w)) {
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    } else {
        KITH_OPTIONS(kith_hits_page, to);
        fill(&p);
        snprintf(title, sizeof title, "The worst queries of %.400s", r->name);
        snprintf(
            about, sizeof about,
            "The %lld of %lld queries with the lowest average precision, each with its %lld nearest items; "
            "then %lld hard negatives: of %lld queries the nearest item is of another class, and these "
            "have the greatest margins.",
            (long long)f->n, (long long)f->n_judged, (long long)f->n_nearest, (long long)f->n_negatives,
            (long long)f->n_wrong);
        to.title = title;
        to.about = about;
        to.parts = p.part;
        to.n_parts = p.n;
        to.most_parts = p.n;
        status = kith_hits_page_write(&to, r->html, err);
    }
    page_release(&p);
    return status;
}
