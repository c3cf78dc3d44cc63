/* Intervals of verification: whole classes are drawn.
 *
 * Pairs share items, and items of a class resemble each other; the promise is about other classes. So the sample is the
 * classes. In a draw that takes class c w_c times, its own pairs count w_c times, and pairs of classes c and d would count
 * w_c w_d times. That needs the counts of every two classes; w_c + w_d - 1 has the same first order (the bootstrap of the
 * statistic's linear part) and needs only those of each class. A draw's ROC curve has KI_PAIR_GROUPS points, and what is
 * read from it is shifted by what the exact value and the same reading of all classes differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "judge/verification.h"

enum { G = KI_PAIR_GROUPS, N_EDGES = G - 1, N_BY_FAR = 40, N_VALUES = KITH_N_FAR + 2 };

typedef struct drawing {
    int64_t n_classes;
    const double *by_class; /* [n_classes, 2, G] */
    double all[2 * G];      /* each pair of two classes once */
    double exact[N_VALUES], read[N_VALUES];
    uint64_t seed;
    int64_t n_draws;
    double *value; /* [N_VALUES, n_draws] */
} drawing;

/* ---- reading a curve of G points ---- */

static double read_area(const double *far, const double *tar) {
    double sum = 0;
    for (int g = 1; g <= G; g++) sum += (far[g] - far[g - 1]) * (tar[g] + tar[g - 1]) / 2;
    return sum;
}

static double read_equal_error(const double *far, const double *tar) {
    int g = 1;
    while (g < G && far[g] + tar[g] < 1) g++;
    const double step = far[g] - far[g - 1] + tar[g] - tar[g - 1];
    return step > 0 ? far[g - 1] + (1 - far[g - 1] - tar[g - 1]) / step * (far[g] - far[g - 1]) : far[g];
}

/* Between two points by the logarithm of the rate, which is what the points are spaced by. */
static double read_rate(const double *far, const double *tar, double wanted) {
    int g = 1;
    while (g < G && far[g] <= wanted) g++;
    if (far[g] <= far[g - 1]) return tar[g];
    const double part =
        far[g - 1] > 0 ? log(wanted / far[g - 1]) / log(far[g] / far[g - 1]) : wanted / far[g];
    return tar[g - 1] + part * (tar[g] - tar[g - 1]);
}

/* From counts [2, G], same first; false when a kind has none. */
static bool read_curve(const double *count, double ret[N_VALUES]) {
    double far[G + 1] = {0}, tar[G + 1] = {0};
    for (int g = 0; g < G; g++) {
        tar[g + 1] = tar[g] + fmax(count[g], 0);
        far[g + 1] = far[g] + fmax(count[G + g], 0);
    }
    if (!(tar[G] > 0 && far[G] > 0)) return false;
    for (int g = 0; g < G; g++) {
        tar[g] /= tar[G];
        far[g] /= far[G];
    }
    tar[G] = far[G] = 1;
    ret[0] = read_area(far, tar);
    ret[1] = read_equal_error(far, tar);
    for (int i = 0; i < KITH_N_FAR; i++) ret[2 + i] = read_rate(far, tar, pow(10, -1 - i));
    return true;
}

/* ---- draws ---- */

static void draw(void *context, int64_t begin, int64_t end) {
    const drawing *d = context;
    for (int64_t b = begin; b < end; b++) {
        ki_rng rng = ki_rng_at(d->seed, KI_RNG_BOOTSTRAP, (uint32_t)b, 1);
        double count[2 * G] = {0}, value[N_VALUES];
        for (int64_t i = 0; i < d->n_classes; i++) {
            const double *from = d->by_class + (int64_t)ki_rng_below(&rng, (uint32_t)d->n_classes) * 2 * G;
            for (int k = 0; k < 2 * G; k++) count[k] += from[k];
        }
        for (int k = G; k < 2 * G; k++) count[k] -= d->all[k];
        if (!read_curve(count, value)) memcpy(value, d->read, sizeof value);
        for (int v = 0; v < N_VALUES; v++)
            d->value[v * d->n_draws + b] = fmin(fmax(d->exact[v] + value[v] - d->read[v], 0), 1);
    }
}

static void add_rows(const uint32_t *by_row, const int32_t *class_of, int64_t n, double *by_class) {
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 2 * G; k++) by_class[class_of[i] * 2 * G + k] += by_row[i * 2 * G + k];
}

static kith_status count_classes(const ki_pair_input *in, const double *edge, double *by_class,
                                 kith_error *err) {
    kith_status status;
    uint32_t *query = NULL, *gallery = NULL;
    const bool is_square = in->query == in->gallery;
    const int64_t n_query = in->query->rows.n, n_gallery = in->gallery->rows.n;
    KI_CHECK(ki_zalloc_or(&query, (size_t)n_query, 2 * G * sizeof *query, "pairs of rows", err));
    if (!is_square)
        KI_CHECK(ki_zalloc_or(&gallery, (size_t)n_gallery, 2 * G * sizeof *gallery, "pairs of rows", err));
    KI_CHECK(ki_pair_counts_by_row(in, edge, query, gallery, err));
    add_rows(query, in->query_class, n_query, by_class);
    if (!is_square) add_rows(gallery, in->gallery_class, n_gallery, by_class);
done:
    ki_free(query);
    ki_free(gallery);
    return status;
}

static int compare_falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Where groups end: false accept rates that fall by equal factors, and equal parts of the same pairs. */
static void find_edges(const ki_pair_counts *p, double edge[N_EDGES]) {
    ki_crossing x;
    for (int i = 0; i < N_EDGES; i++) {
        int64_t at = 0, sum = 0;
        if (i < N_BY_FAR) {
            x.far = pow((double)p->n_different, -(double)(i + 1) / (double)N_BY_FAR);
            ki_pair_counts_cross(p, p->step, p->n_steps, (int64_t[]){0, 0}, &x);
            edge[i] = x.score;
            continue;
        }
        const double wanted = (double)(i - N_BY_FAR + 1) / (N_EDGES - N_BY_FAR + 1) * (double)p->n_same;
        while (at < p->n_steps - 1 && (double)(sum += p->step[at].n_same) < wanted) at++;
        edge[i] = p->step[at].score;
    }
    qsort(edge, N_EDGES, sizeof *edge, compare_falling);
}

kith_status ki_verification_bootstrap(const ki_pair_input *in, const ki_pair_counts *pairs,
                                      const kith_bootstrap_options *o, kith_verification *v,
                                      kith_error *err) {
    kith_status status;
    double edge[N_EDGES], *by_class = NULL;
    drawing d = {.n_classes = in->n_classes, .seed = o->seed, .n_draws = o->n_draws};
    find_edges(pairs, edge);
    KI_CHECK(
        ki_zalloc_or(&by_class, (size_t)in->n_classes, 2 * G * sizeof *by_class, "pairs of classes", err));
    KI_CHECK(ki_alloc_or(&d.value, (size_t)o->n_draws, N_VALUES * sizeof *d.value, "bootstrap values", err));
    KI_CHECK(count_classes(in, edge, by_class, err));
    d.by_class = by_class;
    for (int64_t c = 0; c < in->n_classes; c++)
        for (int k = 0; k < 2 * G; k++) d.all[k] += by_class[c * 2 * G + k] / 2; /* it is in two classes */
    read_curve(d.all, d.read);
    d.exact[0] = v->auc;
    d.exact[1] = v->eer;
    for (int i = 0; i < KITH_N_FAR; i++) d.exact[2 + i] = v->at[i].tar;
    ki_parallel_for(o->n_draws, 1, draw, &d);
    kith_interval *const to[N_VALUES] = {&v->auc_interval,   &v->eer_interval,   &v->at[0].interval,
                                         &v->at[1].interval, &v->at[2].interval, &v->at[3].interval};
    for (int i = 0; i < N_VALUES; i++)
        *to[i] = ki_bootstrap_interval(d.value + i * o->n_draws, o->n_draws, o->level);
done:
    ki_free(by_class);
    ki_free(d.value);
    return status;
}
