/* Is the chance that a hit is wrong what it says, and are promises kept? promises VECTORS.npy LABELS.txt|.npy [SPLITS]
 *
 * In each random split half of the labels are in the index with half of their items; the other halves of these are queries whose
 * thing is there, and all items of the other labels are queries whose thing is not. Everything is measured on the index alone. Prints,
 * for ten ranges of the chance that is shown, which part of these hits is wrong, with an interval from drawing labels; then what was promised
 * and what came of it. Hits count by weight, so that the given part of the queries is unknown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "judge/reliability.h"
#include "kith/array.h"

enum { SHOWN = 10, N_BINS = 10, N_MIXES = 3, N_PROMISES = 3, N_DRAWS = 500, MOST_NAMES = 1 << 20 };

static const double edges[N_BINS + 1] = {0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0000001};
static const double mixes[N_MIXES] = {0, 0.1, 0.5};
static const double promises[N_PROMISES] = {0.9, 0.95, 0.99};

static void stop(const char *what) {
    fprintf(stderr, "promises: %s\n", what);
    exit(1);
}

static void check(kith_status status, const kith_error *err) {
    if (status != KITH_OK) stop(err->message);
}

static void *need(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) stop("no memory");
    return p;
}

/* ---- what is read ---- */

typedef struct data {
    int64_t n, dim, n_labels;
    const float *x;
    int64_t *label;
} data;

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void read_names(const char *path, data *d) {
    char line[4096], **name = need((size_t)d->n, sizeof *name), **sorted = need((size_t)d->n, sizeof *sorted);
    int64_t n = 0;
    FILE *file = fopen(path, "r");
    while (file && n < d->n && fgets(line, sizeof line, file))
        sorted[n] = strdup(line), name[n] = sorted[n], n++;
    if (n < d->n) stop("the file of labels is missing or has too few lines");
    fclose(file);
    qsort(sorted, (size_t)n, sizeof *sorted, by_text);
    int64_t *row = need((size_t)n, sizeof *row);
    for (int64_t i = 0; i < n; i++)
        row[i] = (char **)bsearch(&name[i], sorted, (size_t)n, sizeof *sorted, by_text) - sorted;
    /* bsearch finds any of equal names: the first of them is its number */
    for (int64_t i = 0; i < n; i++)
        while (row[i] > 0 && strcmp(sorted[row[i] - 1], sorted[row[i]]) == 0) row[i]--;
    kith_error err;
    check(ki_trials_number(row, n, d->label, &d->n_labels, &err), &err);
}

static void read_data(const char *vectors, const char *labels, data *d) {
    kith_error err;
    kith_array x = {0}, y = {0};
    check(kith_npy_read(vectors, &x, &err), &err);
    if (x.n_dims != 2 || x.dtype != KITH_F32) stop("the vectors are not float32 [n, dim]");
    *d = (data){.n = x.dim[0], .dim = x.dim[1], .x = x.data};
    d->label = need((size_t)d->n, sizeof *d->label);
    const size_t length = strlen(labels);
    if (length < 4 || strcmp(labels + length - 4, ".npy") != 0) {
        read_names(labels, d);
        return;
    }
    check(kith_npy_read(labels, &y, &err), &err);
    if (y.n_dims != 1 || y.dtype != KITH_I64 || y.dim[0] != d->n) stop("the labels are not int64 [n]");
    check(ki_trials_number(y.data, d->n, d->label, &d->n_labels, &err), &err);
}

/* ---- one split ---- */

typedef struct part {
    int64_t n, *row;
} part;

static part part_new(int64_t n) { return (part){0, need((size_t)n, sizeof(int64_t))}; }

/* Index, known queries, unknown queries. */
static void split(const data *d, int turn, part p[3]) {
    ki_rng rng = ki_rng_at(77, KI_RNG_SPLIT, (uint32_t)turn, 0);
    int64_t *order = need((size_t)d->n, sizeof *order), *place = need((size_t)d->n_labels, sizeof *place),
            *seen = need((size_t)d->n_labels, sizeof *seen);
    for (int64_t i = 0; i < d->n_labels; i++) place[i] = i;
    ki_rng_shuffle(&rng, place, d->n_labels);
    for (int64_t i = 0; i < d->n; i++) order[i] = i;
    ki_rng_shuffle(&rng, order, d->n);
    for (int64_t i = 0; i < d->n; i++) {
        const int64_t row = order[i], label = d->label[row];
        const int which = place[label] * 2 >= d->n_labels ? 2 : (int)(seen[label]++ % 2);
        p[which].row[p[which].n++] = row;
    }
    free(order);
    free(place);
    free(seen);
}

static kith_array take(const data *d, const part *p) {
    float *x = need((size_t)(p->n * d->dim), sizeof *x);
    for (int64_t i = 0; i < p->n; i++)
        memcpy(x + i * d->dim, d->x + p->row[i] * d->dim, (size_t)d->dim * sizeof *x);
    return (kith_array){KITH_F32, 2, {p->n, d->dim}, x};
}

/* ---- what comes of it ---- */

typedef struct
    tally { /* by label of the query: the weight of hits, and of wrong ones, and of what was shown */
    double *all, *wrong, *shown;
    int64_t n;
} tally;

typedef struct outcome {
    tally bin[N_MIXES][N_BINS];
    double kept[2][N_PROMISES][N_MIXES]
               [4]; /* splits that promised, splits that broke it, sum of what was measured, hits per query */
    double loss[N_MIXES], loss_weight[N_MIXES];
} outcome;

typedef struct turn {
    const data *d;
    const part *index;
    kith_reliability r;
    ki_error_rates rates[N_MIXES];
    double precise[N_PROMISES][N_MIXES], complete[N_PROMISES]; /* the evidence that promises take */
    outcome *out;
    double wrong[N_PROMISES][N_MIXES], shown[N_PROMISES][N_MIXES], complete_shown[N_PROMISES];
    double found[N_PROMISES], n_known;
} turn;

static void judge_list(turn *t, const part *queries, int64_t q, bool is_unknown, const kith_neighbor *list) {
    double score[KI_RELIABILITY_DEPTH], margin[KI_RELIABILITY_DEPTH], best = -(double)INFINITY;
    int64_t label[KI_RELIABILITY_DEPTH], n = 0;
    const int64_t own = t->d->label[queries->row[q]];
    for (; n < KI_RELIABILITY_DEPTH && list[n].index >= 0; n++) {
        score[n] = list[n].score;
        label[n] = t->d->label[t->index->row[list[n].index]];
    }
    ki_reliability_margins(KITH_COSINE, score, label, n, KI_RELIABILITY_DEPTH, margin);
    for (int64_t i = 0; i < n; i++) {
        const double evidence = kith_reliability_evidence(&t->r, score[i], i + 1, margin[i]);
        const bool is_wrong = label[i] != own;
        if (!is_wrong && evidence > best) best = evidence;
        for (int m = 0; m < N_MIXES; m++) {
            const double weight = (is_unknown ? mixes[m] : 1 - mixes[m]) / (double)queries->n;
            if (weight <= 0) continue;
            for (int p = 0; p < N_PROMISES; p++) {
                if (!(evidence >= t->precise[p][m])) continue;
                t->shown[p][m] += weight;
                t->wrong[p][m] += is_wrong ? weight : 0;
            }
            if (i >= SHOWN) continue;
            const kith_error_rate rate = ki_error_rates_at(&t->rates[m], evidence);
            int b = 0;
            while (b + 1 < N_BINS && rate.rate >= edges[b + 1]) b++;
            tally *to = &t->out->bin[m][b];
            to->n++;
            to->all[own] += weight;
            to->wrong[own] += is_wrong ? weight : 0;
            to->shown[own] += weight * rate.rate;
            t->out->loss[m] -= weight * log(is_wrong ? rate.rate : 1 - rate.rate);
            t->out->loss_weight[m] += weight;
        }
        for (int p = 0; p < N_PROMISES && !is_unknown; p++)
            t->complete_shown[p] += evidence >= t->complete[p];
    }
    if (is_unknown) return;
    t->n_known++;
    for (int p = 0; p < N_PROMISES; p++) t->found[p] += best >= t->complete[p];
}

static void keep_promises(turn *t) {
    for (int p = 0; p < N_PROMISES; p++) {
        for (int m = 0; m < N_MIXES; m++) {
            double *to = t->out->kept[0][p][m];
            if (isnan(t->precise[p][m])) continue;
            const double right = t->shown[p][m] > 0 ? 1 - t->wrong[p][m] / t->shown[p][m] : 1;
            to[0]++;
            to[1] += right < promises[p];
            to[2] += right;
            to[3] += t->shown[p][m];
        }
        double *to = t->out->kept[1][p][0];
        if (isnan(t->complete[p])) continue;
        to[0]++;
        to[1] += t->found[p] / t->n_known < promises[p];
        to[2] += t->found[p] / t->n_known;
        to[3] += t->complete_shown[p] / t->n_known;
    }
}

static void run(const data *d, int number, outcome *out) {
    kith_error err;
    ki_trials trials = {0};
    kith_gallery *gallery = NULL;
    part p[3] = {part_new(d->n), part_new(d->n), part_new(d->n)};
    turn *t = need(1, sizeof *t);
    split(d, number, p);
    t->d = d;
    t->index = &p[0];
    t->out = out;
    kith_array rows = take(d, &p[0]);
    int64_t *label = need((size_t)p[0].n, sizeof *label);
    for (int64_t i = 0; i < p[0].n; i++) label[i] = d->label[p[0].row[i]];
    check(ki_trials_run(&rows, label, KITH_COSINE, KI_RELIABILITY_DEPTH, &trials, &err), &err);
    check(ki_reliability_measure(&trials, &t->r, &err), &err);
    for (int m = 0; m < N_MIXES; m++) {
        ki_error_rates_make(&t->r, mixes[m], &t->rates[m]);
        for (int i = 0; i < N_PROMISES; i++)
            t->precise[i][m] = kith_reliability_precise(&t->r, promises[i], mixes[m]);
    }
    for (int i = 0; i < N_PROMISES; i++) t->complete[i] = kith_reliability_complete(&t->r, promises[i]);
    check(kith_gallery_new(&rows, NULL, &gallery, &err), &err);
    for (int which = 1; which < 3; which++) {
        kith_array asked = take(d, &p[which]);
        kith_neighbor *found = need((size_t)p[which].n * KI_RELIABILITY_DEPTH, sizeof *found);
        check(kith_gallery_search(gallery, &asked, NULL, KI_RELIABILITY_DEPTH, found, &err), &err);
        for (int64_t q = 0; q < p[which].n; q++)
            judge_list(t, &p[which], q, which == 2, found + q * KI_RELIABILITY_DEPTH);
        free(found);
        free(asked.data);
    }
    keep_promises(t);
    if (number == 0)
        printf(
            "weights of score, rank, margin: %.3g %.3g %.3g; errors together: %.3g %.3g; %lld queries with "
            "their "
            "label there\n",
            t->r.weight[0], t->r.weight[1], t->r.weight[2], t->r.together[0], t->r.together[1],
            (long long)t->r.n_present);
    kith_gallery_free(gallery);
    ki_trials_release(&trials);
    free(rows.data);
    free(label);
    for (int i = 0; i < 3; i++) free(p[i].row);
    free(t);
}

/* ---- the tables ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_bin(const data *d, const tally *t, double mix, int b) {
    double all = 0, wrong = 0, shown = 0, drawn[N_DRAWS];
    for (int64_t l = 0; l < d->n_labels; l++) all += t->all[l], wrong += t->wrong[l], shown += t->shown[l];
    if (t->n == 0) return;
    for (int i = 0; i < N_DRAWS; i++) {
        ki_rng rng = ki_rng_at(3, KI_RNG_BOOTSTRAP, (uint32_t)i, 1);
        double a = 0, w = 0;
        for (int64_t l = 0; l < d->n_labels; l++) {
            const double weight = -log(1 - ki_rng_double(&rng));
            a += weight * t->all[l];
            w += weight * t->wrong[l];
        }
        drawn[i] = a > 0 ? w / a : 0;
    }
    qsort(drawn, N_DRAWS, sizeof *drawn, by_value);
    const double low = drawn[N_DRAWS / 40];
    const double high = fmax(drawn[N_DRAWS - 1 - N_DRAWS / 40], 3 / (double)t->n), said = shown / all,
                 found = wrong / all;
    const bool is_good = t->n < 100 || fabs(said - found) <= 0.3 * found || (said >= low && said <= high);
    printf("%3.0f %%  %6.3f to %-6.3f  said %7.4f  wrong %7.4f  [%.4f, %.4f]  %8lld hits%s\n", 100 * mix,
           edges[b], fmin(edges[b + 1], 1), said, found, low, high, (long long)t->n, is_good ? "" : "  OFF");
}

static void print_kept(const char *what, const double *kept, double promise, double mix) {
    if (kept[0] == 0) {
        printf("%s %.2f, %2.0f %% unknown: not promised\n", what, promise, 100 * mix);
        return;
    }
    printf(
        "%s %.2f, %2.0f %% unknown: promised in %.0f splits, broken in %.0f, on average %.4f, %.2f hits a "
        "query\n",
        what, promise, 100 * mix, kept[0], kept[1], kept[2] / kept[0], kept[3] / kept[0]);
}

int main(int argc, char **argv) {
    data d;
    if (argc < 3) stop("wants VECTORS.npy LABELS.txt [SPLITS]");
    const int n_splits = argc > 3 ? atoi(argv[3]) : 20;
    read_data(argv[1], argv[2], &d);
    outcome *out = need(1, sizeof *out);
    for (int m = 0; m < N_MIXES; m++) {
        for (int b = 0; b < N_BINS; b++) {
            out->bin[m][b].all = need((size_t)d.n_labels, sizeof(double));
            out->bin[m][b].wrong = need((size_t)d.n_labels, sizeof(double));
            out->bin[m][b].shown = need((size_t)d.n_labels, sizeof(double));
        }
    }
    printf("%s: %lld rows, %lld labels, %d splits\n", argv[1], (long long)d.n, (long long)d.n_labels,
           n_splits);
    for (int i = 0; i < n_splits; i++) run(&d, i, out);
    for (int m = 0; m < N_MIXES; m++) {
        for (int b = 0; b < N_BINS; b++) print_bin(&d, &out->bin[m][b], mixes[m], b);
        printf("%3.0f %%  log loss %.5f\n", 100 * mixes[m], out->loss[m] / out->loss_weight[m]);
    }
    for (int p = 0; p < N_PROMISES; p++) {
        for (int m = 0; m < N_MIXES; m++) print_kept("precision", out->kept[0][p][m], promises[p], mixes[m]);
    }
    for (int p = 0; p < N_PROMISES; p++) print_kept("complete ", out->kept[1][p][0], promises[p], 0);
    return 0;
}
