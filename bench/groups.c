/* How good groups are, and how long they take: groups E.npy LABELS.txt FOLDER [--grow N]
 *
 * E.npy and its labels are what `kith embed` writes; FOLDER is made, and removed after. The judge alone knows
 * labels, and then the grouping those of every second item, too, of the one half and of the other, by which it measures its level; precision
 * and recall are of all pairs of the rest.
 * Beside it k-means with the right number of clusters, by kith_kmeans. With --grow the rows are repeated with noise until there are N, grouped, and
 * 1 % more are added. The last column is seconds. The tests build it
 * as build/bench/groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kith/kith.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(kith_status status, const kith_error *err) {
    if (status == KITH_OK) return;
    fprintf(stderr, "groups: %s\n", err->message);
    exit(1);
}

typedef struct set {
    kith_array rows;
    char **label;
    int64_t *class_of; /* [n] */
    int64_t n_classes;
} set;

static void read_set(set *s, const char *rows, const char *labels) {
    kith_error err;
    char line[4096];
    check(kith_npy_read(rows, &s->rows, &err), &err);
    const int64_t n = s->rows.dim[0];
    FILE *file = fopen(labels, "r");
    s->label = calloc((size_t)n, sizeof *s->label);
    s->class_of = calloc((size_t)n, sizeof *s->class_of);
    for (int64_t i = 0; i < n; i++) {
        if (!file || !fgets(line, sizeof line, file)) {
            fprintf(stderr, "groups: %s has no label for row %lld\n", labels, (long long)i);
            exit(1);
        }
        line[strcspn(line, "\n")] = '\0';
        s->label[i] = strdup(line);
        s->class_of[i] = -1;
        for (int64_t j = i - 1; j >= 0 && s->class_of[i] < 0; j--) {
            if (strcmp(s->label[j], s->label[i]) == 0) s->class_of[i] = s->class_of[j];
        }
        if (s->class_of[i] < 0) s->class_of[i] = s->n_classes++;
    }
    fclose(file);
}

/* Rows have their labels if their number leaves `rest` when divided by two; -1: none has. */
static kith_collection *make(const set *s, const char *folder, int64_t first, int64_t n, int rest) {
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = s->rows.dim[1];
    check(kith_collection_create(folder, &options, &c, &err), &err);
    kith_index_item *items = calloc((size_t)n, sizeof *items);
    for (int64_t i = 0; i < n; i++)
        items[i] =
            (kith_index_item){.bytes = -1, .mtime_ns = -1, .label = i % 2 == rest ? s->label[i] : NULL};
    const kith_array rows = {
        KITH_F32, 2, {n, s->rows.dim[1]}, (float *)s->rows.data + first * s->rows.dim[1]};
    check(kith_collection_add_rows(c, &rows, items, NULL, NULL, &err), &err);
    free(items);
    return c;
}

static void away(kith_collection *c, const char *folder) {
    char command[4200];
    kith_collection_free(c);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) exit(1);
}

/* Of the items that the grouping had no label of. */
static void judge(const char *what, const set *s, const int64_t *group, int rest, double seconds) {
    kith_error err;
    kith_clustering c;
    const int64_t n = s->rows.dim[0];
    int64_t *mine = calloc((size_t)n, sizeof *mine), *true_one = calloc((size_t)n, sizeof *true_one), m = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 2 == rest) continue;
        mine[m] = group[i];
        true_one[m++] = s->class_of[i];
    }
    check(kith_clustering_compare(mine, true_one, m, &c, &err), &err);
    printf("%-44s  %9.4f  %6.4f  %6.4f  %6.3f  %5.2f\n", what, c.pair_precision, c.pair_recall, c.f1, c.nmi,
           seconds);
    free(mine);
    free(true_one);
}

static void group(const set *s, const char *folder, double error, int rest) {
    kith_error err;
    kith_groups g;
    char what[96];
    const int64_t n = s->rows.dim[0];
    int64_t *number = calloc((size_t)n, sizeof *number);
    KITH_OPTIONS(kith_groups_options, options);
    options.error = error;
    kith_collection *c = make(s, folder, 0, n, rest);
    const double began = now();
    check(kith_collection_group(c, &options, &g, &err), &err);
    const double seconds = now() - began;
    for (int64_t i = 0; i < n; i++) number[i] = -1 - i; /* alone */
    for (int64_t k = 0; k < g.n_groups; k++) {
        for (int64_t j = g.begin[k]; j < g.begin[k + 1]; j++) number[g.ids[j]] = k;
    }
    snprintf(what, sizeof what, "error %.2f, %s, level %.2f, %lld groups", error,
             g.is_measured ? "measured" : "estimate", g.level, (long long)g.n_groups);
    judge(what, s, number, rest, seconds);
    kith_groups_release(&g);
    free(number);
    away(c, folder);
}

static void kmeans(const set *s) {
    kith_error err;
    kith_kmeans_result found;
    KITH_OPTIONS(kith_kmeans_options, options);
    options.n_clusters = s->n_classes;
    options.n_iterations = 100;
    const double began = now();
    check(kith_kmeans(&s->rows, &options, &found, &err), &err);
    judge("k-means with the right k", s, found.cluster, -1, now() - began);
    kith_kmeans_result_release(&found);
}

/* Rows in turn, each with noise of a fifth of its length. */
static void repeat(set *s, int64_t n) {
    kith_error err;
    kith_array more;
    const int64_t dim = s->rows.dim[1], n_rows = s->rows.dim[0];
    uint64_t state = 1;
    check(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &more, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const float *from = (const float *)s->rows.data + i % n_rows * dim;
        float *to = (float *)more.data + i * dim, length = 0;
        for (int64_t j = 0; j < dim; j++) length += from[j] * from[j];
        const float scale = 0.2F * sqrtf(length / (float)dim * 3);
        for (int64_t j = 0; j < dim; j++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            to[j] = from[j] + scale * ((float)(state >> 40) / (float)(1 << 23) - 1);
        }
    }
    kith_array_release(&s->rows);
    s->rows = more;
}

static void grow(set *s, const char *folder, int64_t n) {
    kith_error err;
    kith_groups g;
    const int64_t n_more = n / 100, dim = s->rows.dim[1];
    repeat(s, n + n_more);
    kith_collection *c = make(s, folder, 0, n, -1);
    KITH_OPTIONS(kith_groups_options, options);
    options.error = 0.05;
    double began = now();
    check(kith_collection_group(c, &options, &g, &err), &err);
    printf("%lld rows of %lld: %lld groups of %lld in %.2f s\n", (long long)n, (long long)dim,
           (long long)g.n_groups, (long long)(g.n_items - g.n_alone), now() - began);
    kith_groups_release(&g);
    kith_sync_report report;
    const kith_array rows = {KITH_F32, 2, {n_more, dim}, (float *)s->rows.data + n * dim};
    began = now();
    check(kith_collection_add_rows(c, &rows, NULL, NULL, &report, &err), &err);
    if (report.grouped != KITH_OK) check(report.grouped, &report.grouped_error);
    printf("%lld rows more: %lld put into groups, in %.2f s with the adding\n", (long long)n_more,
           (long long)report.n_grouped, now() - began);
    away(c, folder);
}

int main(int argc, char **argv) {
    set s = {0};
    const double errors[] = {0.01, 0.05, 0.1, 0.2, 0.5};
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: groups E.npy LABELS.txt FOLDER [--grow N]\n");
        return 2;
    }
    read_set(&s, argv[1], argv[2]);
    if (argc == 6) {
        grow(&s, argv[3], atoll(argv[5]));
        return 0;
    }
    printf("%-44s  precision  recall      F1     NMI  seconds\n", argv[1]);
    kmeans(&s);
    for (int rest = -1; rest < 2; rest++) {
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) group(&s, argv[3], errors[i], rest);
    }
    return 0;
}
