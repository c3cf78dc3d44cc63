/* Names with a promised rate of false ones: what is promised against what is measured.
 *   naming ROWS.npy LABELS [-n SPLITS] [-c N] [-q QUERIES.npy]
 * In each split half of the classes, drawn at random, are known and the others are not. Of each known class half of the rows are the
 * collection (-c: at most N), which measures its own curve; the other half are photos of known things, and all rows of the other classes are photos of
 * unknown ones. -q: rows of the same photos, taken in another way: they are asked with instead. Prints for errors of 0.5, 1 and 5 % the
 * share of unknown things that were given a name, of known things that were given a wrong one and their own, as means over the splits in which
 * that error could be promised; in how many splits either share was above the error; and in how many by more than chance: with the share's
 * own lower bound at 95 %, over the things that were asked about, above it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "judge/naming.h"
#include "kith/kith.h"

enum { N_ERRORS = 3, AT_A_TIME = 4096 };
static const double errors[N_ERRORS] = {0.005, 0.01, 0.05};

static void stop(const char *what) {
    fprintf(stderr, "naming: %s\n", what);
    exit(1);
}

typedef struct set {
    int64_t n, dim, n_labels;
    float *row, *asked; /* the collection's, and those that are asked with */
    int64_t *label;     /* from 0 on */
} set;

static float *read_rows(const char *path, int64_t *ret_n, int64_t *ret_dim) {
    kith_error err = {0};
    kith_array a = {0}, b = {0};
    if (kith_npy_read(path, &a, &err) != KITH_OK || kith_array_convert(&a, KITH_F32, &b, &err) != KITH_OK)
        stop(err.message);
    if (b.n_dims != 2) stop("rows of numbers are wanted");
    kith_array_release(&a);
    *ret_n = b.dim[0];
    *ret_dim = b.dim[1];
    return b.data;
}

static void read_labels(const char *path, set *s) {
    kith_error err = {0};
    kith_labels *labels = NULL;
    kith_array ids = {0};
    if (kith_labels_new(&labels, &err) != KITH_OK || kith_labels_read(labels, path, &ids, &err) != KITH_OK)
        stop(err.message);
    if (ids.dim[0] != s->n) stop("as many labels as rows are wanted");
    s->label = malloc((size_t)s->n * sizeof *s->label);
    if (!s->label || ki_trials_number(ids.data, s->n, s->label, &s->n_labels, &err) != KITH_OK)
        stop(err.message);
    kith_array_release(&ids);
    kith_labels_free(labels);
}

/* What becomes of each row in a split. */
typedef enum role { LEFT_OUT, KEPT, KNOWN, UNKNOWN } role;

static void split(const set *s, int64_t number, int64_t most, role *ret) {
    ki_rng rng = ki_rng_at((uint64_t)number, KI_RNG_TEST, 0, 0);
    int64_t *order = malloc((size_t)s->n_labels * sizeof *order), *row = malloc((size_t)s->n * sizeof *row);
    int64_t *size = calloc((size_t)s->n_labels, sizeof *size),
            *kept = calloc((size_t)s->n_labels, sizeof *kept);
    bool *is_known = calloc((size_t)s->n_labels, sizeof *is_known);
    if (!order || !row || !size || !kept || !is_known) stop("no memory");
    for (int64_t i = 0; i < s->n_labels; i++) order[i] = i;
    for (int64_t i = 0; i < s->n; i++) row[i] = i;
    ki_rng_shuffle(&rng, order, s->n_labels);
    ki_rng_shuffle(&rng, row, s->n);
    for (int64_t i = 0; i < s->n_labels / 2; i++) is_known[order[i]] = true;
    for (int64_t i = 0; i < s->n; i++) size[s->label[i]]++;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t label = s->label[row[i]];
        ret[row[i]] = !is_known[label] ? UNKNOWN
                      : kept[label] < (most < size[label] / 2 ? most : size[label] / 2)
                          ? (kept[label]++, KEPT)
                          : KNOWN;
    }
    free(order);
    free(row);
    free(size);
    free(kept);
    free(is_known);
}

typedef struct tally {
    int64_t n_unknown, n_known, unknown[N_ERRORS], wrong[N_ERRORS], right[N_ERRORS];
    bool is_promised[N_ERRORS];
    /* [n_labels] photos asked about, and false names of each error. A thing is known or not. */
    int64_t *of_label, *false_of[N_ERRORS];
} tally;

static void tally_init(tally *t, int64_t n_labels) {
    *t = (tally){.of_label = calloc((size_t)n_labels, sizeof(int64_t))};
    bool is_there = t->of_label;
    for (int x = 0; x < N_ERRORS; x++)
        is_there &= (t->false_of[x] = calloc((size_t)n_labels, sizeof(int64_t))) != NULL;
    if (!is_there) stop("no memory");
}

static void tally_release(tally *t) {
    free(t->of_label);
    for (int x = 0; x < N_ERRORS; x++) free(t->false_of[x]);
}

/* Is the share above the error even at its lower bound? The variance is that of sums by thing. */
static bool is_surely_above(const tally *t, int64_t n_labels, const bool *is_known, bool known, int x) {
    double n = 0, sum = 0, squares = 0, n_things = 0;
    for (int64_t i = 0; i < n_labels; i++) {
        if (is_known[i] != known || t->of_label[i] == 0) continue;
        n += (double)t->of_label[i];
        sum += (double)t->false_of[x][i];
        n_things++;
    }
    const double share = sum / n;
    for (int64_t i = 0; i < n_labels; i++) {
        if (is_known[i] != known) continue;
        const double rest = (double)t->false_of[x][i] - share * (double)t->of_label[i];
        squares += rest * rest;
    }
    return share - 1.645 * sqrt(squares * n_things / (n_things - 1)) / n > errors[x];
}

static void ask(const set *s, const kith_gallery *gallery, const int64_t *label, const int64_t *who,
                int64_t n, const role *roles, const double *threshold, tally *t) {
    static kith_neighbor near[AT_A_TIME * KI_EVIDENCE_HITS];
    kith_error err = {0};
    float *rows = malloc((size_t)(n * s->dim) * sizeof *rows);
    if (!rows) stop("no memory");
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + i * s->dim, s->asked + who[i] * s->dim, (size_t)s->dim * sizeof *rows);
    const kith_array asked = {KITH_F32, 2, {n, s->dim}, rows};
    if (kith_gallery_search(gallery, &asked, NULL, KI_EVIDENCE_HITS, near, &err) != KITH_OK)
        stop(err.message);
    for (int64_t i = 0; i < n; i++) {
        ki_name_hit hits[KI_EVIDENCE_HITS];
        int64_t m = 0;
        for (const kith_neighbor *at = near + i * KI_EVIDENCE_HITS; m < KI_EVIDENCE_HITS && at[m].index >= 0;
             m++)
            hits[m] = (ki_name_hit){at[m].score, label[at[m].index]};
        const ki_evidence e = ki_evidence_find(KITH_COSINE, hits, m);
        const bool is_known = roles[who[i]] == KNOWN;
        *(is_known ? &t->n_known : &t->n_unknown) += 1;
        t->of_label[s->label[who[i]]]++;
        for (int x = 0; x < N_ERRORS; x++) {
            if (!(e.value >= threshold[x])) continue;
            t->false_of[x][s->label[who[i]]] += !is_known || e.label != s->label[who[i]];
            if (!is_known)
                t->unknown[x]++;
            else if (e.label == s->label[who[i]])
                t->right[x]++;
            else
                t->wrong[x]++;
        }
    }
    free(rows);
}

static tally run(const set *s, int64_t number, int64_t most, bool *ret_is_known) {
    kith_error err = {0};
    tally t;
    tally_init(&t, s->n_labels);
    role *roles = malloc((size_t)s->n * sizeof *roles);
    int64_t *label = malloc((size_t)s->n * sizeof *label), who[AT_A_TIME], n = 0;
    float *rows = malloc((size_t)(s->n * s->dim) * sizeof *rows);
    if (!roles || !label || !rows) stop("no memory");
    split(s, number, most, roles);
    for (int64_t i = 0; i < s->n; i++) {
        if (roles[i] != KEPT) continue;
        memcpy(rows + n * s->dim, s->row + i * s->dim, (size_t)s->dim * sizeof *rows);
        ret_is_known[s->label[i]] = true;
        label[n++] = s->label[i];
    }
    const kith_array kept = {KITH_F32, 2, {n, s->dim}, rows};
    ki_trials trials = {0};
    static ki_name_curve curve;
    kith_gallery *gallery = NULL;
    if (ki_trials_run(&kept, label, KITH_COSINE, KI_EVIDENCE_HITS, &trials, &err) != KITH_OK ||
        ki_naming_make(&trials, &curve, &err) != KITH_OK ||
        kith_gallery_new(&kept, NULL, &gallery, &err) != KITH_OK)
        stop(err.message);
    double threshold[N_ERRORS];
    for (int x = 0; x < N_ERRORS; x++) {
        threshold[x] = ki_naming_threshold(&curve, errors[x]);
        t.is_promised[x] = !isnan(threshold[x]);
    }
    int64_t n_who = 0;
    for (int64_t i = 0; i <= s->n; i++) {
        if (n_who == AT_A_TIME || (i == s->n && n_who > 0)) {
            ask(s, gallery, label, who, n_who, roles, threshold, &t);
            n_who = 0;
        }
        if (i < s->n && (roles[i] == KNOWN || roles[i] == UNKNOWN)) who[n_who++] = i;
    }
    if (number == 0)
        printf("%lld photos of %lld things in the collection, %lld asked about, of %lld other things %lld\n",
               (long long)n, (long long)trials.n_labels, (long long)t.n_known,
               (long long)(s->n_labels - s->n_labels / 2), (long long)t.n_unknown);
    kith_gallery_free(gallery);
    ki_trials_release(&trials);
    free(roles);
    free(label);
    free(rows);
    return t;
}

int main(int argc, char **argv) {
    int64_t n_splits = 100, most = INT64_MAX;
    const char *asked = NULL;
    if (argc < 3) stop("usage: naming ROWS.npy LABELS [-n SPLITS] [-c N] [-q QUERIES.npy]");
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-n") == 0)
            n_splits = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "-c") == 0)
            most = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "-q") == 0)
            asked = argv[i + 1];
        else
            stop("unknown option");
    }
    set s = {0};
    s.row = s.asked = read_rows(argv[1], &s.n, &s.dim);
    if (asked) {
        int64_t n = 0, dim = 0;
        s.asked = read_rows(asked, &n, &dim);
        if (n != s.n || dim != s.dim) stop("QUERIES.npy has other rows");
    }
    read_labels(argv[2], &s);
    double unknown[N_ERRORS] = {0}, wrong[N_ERRORS] = {0}, right[N_ERRORS] = {0};
    int64_t n[N_ERRORS] = {0}, over[N_ERRORS] = {0}, surely[N_ERRORS] = {0};
    bool *is_known = malloc((size_t)s.n_labels * sizeof *is_known);
    if (!is_known) stop("no memory");
    for (int64_t i = 0; i < n_splits; i++) {
        memset(is_known, 0, (size_t)s.n_labels * sizeof *is_known);
        tally t = run(&s, i, most, is_known);
        for (int x = 0; x < N_ERRORS; x++) {
            if (!t.is_promised[x]) continue;
            const double u = (double)t.unknown[x] / (double)t.n_unknown,
                         w = (double)t.wrong[x] / (double)t.n_known;
            n[x]++;
            unknown[x] += u;
            wrong[x] += w;
            right[x] += (double)t.right[x] / (double)t.n_known;
            over[x] += u > errors[x] || w > errors[x];
            surely[x] += is_surely_above(&t, s.n_labels, is_known, false, x) ||
                         is_surely_above(&t, s.n_labels, is_known, true, x);
        }
        tally_release(&t);
    }
    puts("promised  promised in  unknown named  known named wrongly  known named  above it in  surely in");
    for (int x = 0; x < N_ERRORS; x++) {
        const double m = n[x] > 0 ? 100 / (double)n[x] : 0;
        printf("%6.1f %%  %5lld / %-3lld  %11.2f %%  %17.2f %%  %9.1f %%  %5lld / %-3lld  %9lld\n",
               100 * errors[x], (long long)n[x], (long long)n_splits, unknown[x] * m, wrong[x] * m,
               right[x] * m, (long long)over[x], (long long)n[x], (long long)surely[x]);
    }
    free(is_known);
    free(s.label);
    return 0;
}
