/* How often the doctor is right where errors were planted, beside confident learning, for bench/doctor.sh.
 *
 *     doctor_judge FOLDER NAME [MODEL [quick]]
 *
 * FOLDER is what doctor_plant wrote; NAME is written into the rows; quick: without shortcuts. The vectors of the model (general) are kept as FOLDER/vectors.npy.
 * Prints a row for each list: how many images it names, how many of them are planted errors of the kind, how many were planted.
 *
 * Confident learning (Northcutt, Jiang and Chuang 2021) with out-of-sample probabilities by the k nearest other images: p(c) is their part
 * that is of class c; the threshold of a class is the mean p(c) of the images that are labelled c. An image is in the confident
 * joint at (its label, c) for the c with the largest p(c) among those that reach their thresholds; what is off the diagonal is named, by
 * falling p(c) - p(label). It names many, so the rows compare both by their first images: as many as the doctor names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "kith/doctor.h"
#include "kith/knn.h"
#include "kith/log.h"
#include "kith/suspects.h"

typedef struct bench {
    kith_dataset *set;
    const char *folder, *name;
    const char **planted; /* [n]: what; NULL: nothing */
    char *text;
    kith_array rows;
    kith_findings found;
    int64_t n;
} bench;

static void stop(const char *what) {
    fprintf(stderr, "doctor_judge: %s\n", what);
    exit(1);
}

static void need(kith_status status, const kith_error *err) {
    if (status != KITH_OK) stop(err->message);
}

static bool ends_with(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* "path",what,"of": marks the item. */
static void read_line(bench *b, char *line) {
    char *end = strchr(line + 1, '"');
    if (line[0] != '"' || !end) return;
    *end = '\0';
    char *what = end + 2;
    *strchr(what, ',') = '\0';
    for (int64_t i = 0; i < b->n; i++) {
        if (ends_with(kith_dataset_item(b->set, i).path, line + 1)) b->planted[i] = what;
    }
}

static void read_planted(bench *b) {
    char path[4096];
    snprintf(path, sizeof path, "%s/planted.csv", b->folder);
    FILE *file = fopen(path, "r");
    if (!file) stop(path);
    b->planted = calloc((size_t)b->n, sizeof *b->planted);
    b->text = calloc(1, 1 << 24);
    if (!b->planted || !b->text) stop("no memory");
    b->text[fread(b->text, 1, (1 << 24) - 1, file)] = '\0';
    fclose(file);
    for (char *line = b->text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        read_line(b, line);
    }
}

static void make_rows(bench *b, const kith_model_options *how) {
    char path[4096];
    kith_error err = {0};
    kith_model *model = NULL;
    kith_vectors *made = NULL;
    kith_array view;
    snprintf(path, sizeof path, "%s/vectors.npy", b->folder);
    if (kith_npy_read(path, &b->rows, NULL) == KITH_OK) return;
    int64_t *items = malloc((size_t)b->n * sizeof *items);
    for (int64_t i = 0; items && i < b->n; i++) items[i] = i;
    need(kith_model_open(how, &model, &err), &err);
    need(kith_model_embed_items(model, b->set, items, b->n, NULL, &made, &err), &err);
    need(kith_vectors_array(made, &view, &err), &err);
    need(kith_npy_write(path, &view, &err), &err);
    need(kith_npy_read(path, &b->rows, &err), &err);
    kith_vectors_free(made);
    kith_model_free(model);
    free(items);
}

static bool is_planted(const bench *b, int64_t item, const char *what) {
    return b->planted[item] && strcmp(b->planted[item], what) == 0;
}

static int64_t count(const bench *b, const char *what) {
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++) n += is_planted(b, i, what);
    return n;
}

static void print_row(const bench *b, const char *list, int64_t n_named, int64_t n_right, int64_t n_planted) {
    printf("%-12s %-34s %6lld named %6lld right %6lld planted   precision %.3f\n", b->name, list,
           (long long)n_named, (long long)n_right, (long long)n_planted,
           n_named ? (double)n_right / (double)n_named : 0.0);
}

/* A copy of another class on the other side of the test is a conflict and a leak, whatever it was planted as. */
static bool is_copy(const bench *b, int64_t item) {
    return is_planted(b, item, "duplicate") || is_planted(b, item, "conflict") || is_planted(b, item, "leak");
}

/* Images of a kind's findings that are planted as `what`. Of what is the same picture each finding is one that is named: it is right if it
 * has a planted copy. */
static int64_t print_kind(const bench *b, kith_finding_kind kind, const char *what, bool is_out) {
    int64_t n_named = 0, n_right = 0;
    for (int64_t i = 0; i < b->found.n; i++) {
        const kith_finding *f = &b->found.findings[i];
        bool is_right = false;
        if (f->kind != kind || (is_out && f->n_out == 0)) continue;
        for (int64_t k = f->begin; k < f->begin + f->n; k++)
            is_right |= is_planted(b, b->found.items[k], what) ||
                        (kind != KITH_FINDING_MISLABELLED && is_copy(b, b->found.items[k]) &&
                         kind != KITH_FINDING_ODD && kind != KITH_FINDING_BLURRED);
        n_named++;
        n_right += is_right;
    }
    char list[64];
    snprintf(list, sizeof list, "%s%s", kith_finding_kind_name(kind), is_out ? ", left out" : "");
    print_row(b, list, n_named, n_right, count(b, what));
    return n_named;
}

/* ---- confident learning ---- */

typedef struct named {
    double score;
    int64_t item;
} named;

static int by_score(const void *a, const void *b) {
    const named *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void print_first(const bench *b, const char *list, named *all, int64_t n, int64_t most) {
    int64_t n_right = 0;
    if (most > n) most = n;
    qsort(all, (size_t)n, sizeof *all, by_score);
    for (int64_t i = 0; i < most; i++) n_right += is_planted(b, all[i].item, "mislabelled");
    print_row(b, list, most, n_right, count(b, "mislabelled"));
}

/* Items that the doctor compares: not those that it left out because they are the same picture as another. */
static int64_t list_compared(const bench *b, int64_t *items) {
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t why = b->found.why_out[i];
        if (why < 0 || b->found.findings[why].kind == KITH_FINDING_MISLABELLED) items[n++] = i;
    }
    return n;
}

/* The doctor's first findings, as many as the other names. */
static void print_own_first(const bench *b, int64_t most) {
    int64_t n = 0, n_right = 0;
    for (int64_t i = 0; i < b->found.n && n < most; i++) {
        const kith_finding *f = &b->found.findings[i];
        if (f->kind != KITH_FINDING_MISLABELLED) continue;
        n++;
        n_right += is_planted(b, b->found.items[f->begin], "mislabelled");
    }
    print_row(b, "mislabelled, as many as that", n, n_right, count(b, "mislabelled"));
}

static void learn_confidently(const bench *b, const kith_array *rows, const int64_t *items, int64_t n,
                              int64_t k, int64_t most) {
    kith_error err = {0};
    kith_gallery *gallery = NULL;
    const int64_t n_classes = kith_dataset_n_classes(b->set);
    kith_neighbor *near = malloc((size_t)(n * k) * sizeof *near);
    double *p = calloc((size_t)(n * n_classes), sizeof *p), *least = calloc((size_t)n_classes, sizeof *least);
    int64_t *of = calloc((size_t)n_classes, sizeof *of), n_all = 0;
    named *all = malloc((size_t)n * sizeof *all);
    char list[64];
    if (!near || !p || !least || !of || !all) stop("no memory");
    need(kith_gallery_new(rows, NULL, &gallery, &err), &err);
    need(kith_gallery_self(gallery, k, near, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = kith_dataset_item(b->set, items[i]).label;
        for (int64_t h = 0; h < k; h++)
            p[i * n_classes + kith_dataset_item(b->set, items[near[i * k + h].index]).label] += 1 / (double)k;
        least[label] += p[i * n_classes + label];
        of[label]++;
    }
    for (int64_t c = 0; c < n_classes; c++) least[c] /= of[c] > 0 ? (double)of[c] : 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = kith_dataset_item(b->set, items[i]).label;
        const double *q = p + i * n_classes;
        int64_t best = -1;
        for (int64_t c = 0; c < n_classes; c++) {
            if (q[c] > 0 && q[c] >= least[c] && (best < 0 || q[c] > q[best])) best = c;
        }
        if (best >= 0 && best != label) all[n_all++] = (named){q[best] - q[label], items[i]};
    }
    snprintf(list, sizeof list, "confident learning, k = %lld", (long long)k);
    print_first(b, list, all, n_all, n_all);
    snprintf(list, sizeof list, "confident learning, k = %lld, first", (long long)k);
    print_first(b, list, all, n_all, most);
    if (n_all < most) print_own_first(b, n_all);
    kith_gallery_free(gallery);
    free(near);
    free(p);
    free(least);
    free(of);
    free(all);
}

static void vote(const bench *b, const kith_array *rows, const int64_t *items, int64_t n, int64_t most) {
    kith_error err = {0};
    kith_suspects found = {0};
    KITH_OPTIONS(kith_suspects_options, how);
    int64_t *labels = malloc((size_t)n * sizeof *labels);
    named *all = malloc((size_t)n * sizeof *all);
    if (!labels || !all) stop("no memory");
    how.most = 0;
    for (int64_t i = 0; i < n; i++) labels[i] = kith_dataset_item(b->set, items[i]).label;
    need(kith_suspects_find(rows, labels, &how, &found, &err), &err);
    for (int64_t i = 0; i < found.n; i++) all[i] = (named){-(double)i, items[found.suspects[i].row]};
    print_first(b, "votes of 10 neighbours, first", all, found.n, most);
    kith_suspects_release(&found);
    free(labels);
    free(all);
}

static void compare(const bench *b, int64_t most) {
    kith_error err = {0};
    kith_array rows = {0};
    const int64_t dim = b->rows.dim[1];
    int64_t *items = malloc((size_t)b->n * sizeof *items);
    if (!items) stop("no memory");
    const int64_t n = list_compared(b, items);
    need(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &rows, &err), &err);
    for (int64_t i = 0; i < n; i++)
        memcpy((float *)rows.data + i * dim, (const float *)b->rows.data + items[i] * dim,
               (size_t)dim * sizeof(float));
    vote(b, &rows, items, n, most);
    learn_confidently(b, &rows, items, n, 10, most);
    learn_confidently(b, &rows, items, n, 20, most);
    kith_array_release(&rows);
    free(items);
}

/* What the doctor says of shortcuts where it finds none. */
static void show(void *user, kith_log_level level, const char *text) {
    (void)level;
    if (strncmp(text, "doctor:", 7) == 0) printf("%-12s %s\n", (const char *)user, text);
}

int main(int argc, char **argv) {
    bench b = {0};
    kith_error err = {0};
    char path[4096];
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_doctor_options, options);
    if (argc < 3) stop("usage: doctor_judge FOLDER NAME [MODEL [quick]]");
    b.folder = argv[1];
    b.name = argv[2];
    model.weights = argc > 3 ? argv[3] : "general";
    snprintf(path, sizeof path, "%s/set.csv", b.folder);
    need(kith_dataset_open("csv", path, &b.set, &err), &err);
    b.n = kith_dataset_count(b.set);
    read_planted(&b);
    make_rows(&b, &model);
    kith_log_set(show, argv[2], KITH_LOG_DEBUG);
    options.vectors = &b.rows;
    options.model = &model;
    options.no_shortcut = argc > 4;
    need(kith_dataset_examine(b.set, &options, &b.found, &err), &err);
    const int64_t n_named = print_kind(&b, KITH_FINDING_MISLABELLED, "mislabelled", false);
    print_kind(&b, KITH_FINDING_MISLABELLED, "mislabelled", true);
    compare(&b, n_named);
    print_kind(&b, KITH_FINDING_ODD, "odd", false);
    print_kind(&b, KITH_FINDING_BLURRED, "blurred", false);
    print_kind(&b, KITH_FINDING_DUPLICATE, "duplicate", false);
    print_kind(&b, KITH_FINDING_CONFLICT, "conflict", false);
    print_kind(&b, KITH_FINDING_LEAK, "leak", false);
    for (int64_t i = 0; i < b.found.n; i++) {
        if (b.found.findings[i].kind == KITH_FINDING_SHORTCUT)
            printf("%-12s %s\n", b.name, b.found.findings[i].text);
    }
    kith_findings_release(&b.found);
    kith_array_release(&b.rows);
    kith_dataset_free(b.set);
    free(b.planted);
    free(b.text);
    return 0;
}
