/* Labels that look wrong: images that the mean of another class explains better than that of their own.
 *
 * Directions in which images of one class differ say little of the class, so rows are projected on the principal components of what is
 * left when each class's mean is taken away, and divided by how much they vary there (linear discriminant analysis; the mean
 * variance is added to each, so that few images do). An image's distance to its own class is that to the mean of the others.
 * From distances D_c come probabilities: p(c) is proportional to exp(-D_c / 2T), and labels are taken to be right but for a rate e:
 *
 *     P(label y) = (1 - e) p(y) + e / (C - 1)
 *
 * T and e are those that make the labels of the set most probable. (Of a small set they say little, so log T is taken to be normal
 * with mean 0 and deviation 1: with the true variances T would be 1.) Then the probability that the label is wrong and c is right is
 *
 *     p(c) e / (C - 1) / P(label y)
 *
 * On sets with planted errors this finds wrong labels more often than votes of neighbours, and than confident learning
 * (Northcutt, Jiang and Chuang 2021) by such votes (docs/data.md). */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "doctor/doctor.h"

enum { LEAST_OTHERS_TO_SAY = 3, LEAST_OTHERS_TO_DROP = 5 }; /* of the class */
#define LEAST_TO_DROP 0.7

enum { MOST_AXES = 512, N_RIVALS = 12, MOST_FITTED = 4000, N_VOTES = 10 };

/* Of fewer images variances are known badly: there a label also looks wrong if nine of ten neighbours have one other and none its own. */
enum { MOST_BY_VOTES = 1000 };
#define LEAST_VOTES 0.9

/* The distances of a row: to its own class, and to the classes that are nearest without it. */
typedef struct distances {
    double own, rival[N_RIVALS];
    int64_t label[N_RIVALS]; /* -1 from the first that is not there */
} distances;

typedef struct fit {
    double temperature, rate;
} fit;

typedef struct judged {
    const ki_doctor_rows *rows;
    int64_t n, n_classes, n_axes; /* rows with a label; classes that have rows */
    int64_t *row;                 /* [n] */
    int64_t *class;               /* [n_classes]: the label of each */
    int64_t *number;              /* [labels]: and the reverse; -1: none */
    kith_array whitened;          /* [n, n_axes] */
    kith_array mean;              /* [n_classes, n_axes] */
    distances *distance;          /* [n] */
} judged;

static void judged_release(judged *j) {
    ki_free(j->row);
    ki_free(j->class);
    ki_free(j->number);
    ki_free(j->distance);
    kith_array_release(&j->whitened);
    kith_array_release(&j->mean);
}

static kith_status list_rows(const ki_doctor *d, judged *j, kith_error *err) {
    const ki_doctor_rows *r = j->rows;
    const int64_t n_labels = (int64_t)d->set->n_classes;
    KI_TRY(ki_alloc_or(&j->row, (size_t)r->n, sizeof *j->row, "rows", err));
    KI_TRY(ki_alloc_or(&j->class, (size_t)n_labels, sizeof *j->class, "classes", err));
    KI_TRY(ki_alloc_or(&j->number, (size_t)n_labels, sizeof *j->number, "classes", err));
    for (int64_t c = 0; c < n_labels; c++) {
        j->number[c] = r->count[c] > 0 ? j->n_classes : -1;
        if (r->count[c] > 0) j->class[j->n_classes++] = c;
    }
    for (int64_t i = 0; i < r->n; i++) {
        if (r->label[i] >= 0) j->row[j->n++] = i;
    }
    return KITH_OK;
}

static int64_t class_of(const judged *j, int64_t i) { return j->number[j->rows->label[j->row[i]]]; }

/* Means of the rows [n, dim] of each class. */
static kith_status make_means(const judged *j, const kith_array *from, kith_array *ret, kith_error *err) {
    const int64_t dim = from->dim[1];
    double *sum = NULL;
    KI_TRY(ki_zalloc_or(&sum, (size_t)j->n_classes, (size_t)dim * sizeof *sum, "class means", err));
    const kith_status status = kith_array_init(KITH_F32, 2, (int64_t[]){j->n_classes, dim}, ret, err);
    for (int64_t i = 0; i < j->n && status == KITH_OK; i++) {
        const float *x = (const float *)from->data + i * dim;
        double *to = sum + class_of(j, i) * dim;
        for (int64_t k = 0; k < dim; k++) to[k] += x[k];
    }
    for (int64_t c = 0; c < j->n_classes && status == KITH_OK; c++) {
        const double n = (double)j->rows->count[j->class[c]];
        for (int64_t k = 0; k < dim; k++) ((float *)ret->data)[c * dim + k] = (float)(sum[c * dim + k] / n);
    }
    ki_free(sum);
    return status;
}

/* The rows as they are, and what is left of them without the mean of their class. */
static kith_status part_rows(const judged *j, kith_array *plain, kith_array *rest, kith_error *err) {
    kith_array mean = {0};
    const int64_t dim = j->rows->dim;
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){j->n, dim}, plain, err));
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){j->n, dim}, rest, err));
    for (int64_t i = 0; i < j->n; i++)
        memcpy((float *)plain->data + i * dim, (const float *)j->rows->unit.data + j->row[i] * dim,
               (size_t)dim * sizeof(float));
    KI_TRY(make_means(j, plain, &mean, err));
    for (int64_t i = 0; i < j->n; i++) {
        const float *x = (const float *)plain->data + i * dim,
                    *m = (const float *)mean.data + class_of(j, i) * dim;
        for (int64_t k = 0; k < dim; k++) ((float *)rest->data)[i * dim + k] = x[k] - m[k];
    }
    kith_array_release(&mean);
    return KITH_OK;
}

/* n_axes stays 0 if images of a class do not differ at all. */
static kith_status whiten(judged *j, kith_error *err) {
    kith_status status;
    kith_array plain = {0}, rest = {0};
    kith_pca pca = {0};
    KITH_OPTIONS(kith_pca_options, options);
    options.n_components = j->rows->dim < j->n - 1 ? j->rows->dim : j->n - 1;
    if (options.n_components > MOST_AXES) options.n_components = MOST_AXES;
    KI_CHECK(part_rows(j, &plain, &rest, err));
    KI_CHECK(kith_pca_fit(&rest, &options, &pca, err));
    const double usual = pca.total_variance / (double)options.n_components;
    if (!(usual > 1e-12)) goto done;
    KI_CHECK(kith_pca_apply(&pca, &plain, &j->whitened, err));
    j->n_axes = options.n_components;
    for (int64_t k = 0; k < j->n_axes; k++) {
        const double scale = 1 / sqrt(((const double *)pca.variance.data)[k] + usual);
        for (int64_t i = 0; i < j->n; i++) {
            float *x = (float *)j->whitened.data + i * j->n_axes + k;
            *x = (float)(*x * scale);
        }
    }
    status = make_means(j, &j->whitened, &j->mean, err);
done:
    kith_pca_release(&pca);
    kith_array_release(&plain);
    kith_array_release(&rest);
    return status;
}

/* A mean of n rows is off by 1 / n of their variance, so all distances are divided by 1 + 1 / n. */
static double own_distance(const judged *j, int64_t i) {
    const int64_t c = class_of(j, i), n = j->rows->count[j->class[c]];
    const float *x = (const float *)j->whitened.data + i * j->n_axes,
                *m = (const float *)j->mean.data + c * j->n_axes;
    double sum = 0;
    if (n < 2) return NAN;
    for (int64_t k = 0; k < j->n_axes; k++) sum += ((double)x[k] - m[k]) * ((double)x[k] - m[k]);
    const double without = (double)n / (double)(n - 1); /* how much farther the mean is without the row */
    return sum * without * without / (1 + 1 / (double)(n - 1));
}

static kith_status measure(const ki_doctor *d, judged *j, kith_error *err) {
    kith_status status;
    kith_gallery *gallery = NULL;
    kith_neighbor *near = NULL;
    const int64_t k = j->n_classes < N_RIVALS + 1 ? j->n_classes : N_RIVALS + 1;
    KITH_OPTIONS(kith_knn_options, how);
    how.metric = KITH_SQEUCLIDEAN;
    if (d->options->model) how.device = d->options->model->device;
    KI_CHECK(ki_alloc_or(&j->distance, (size_t)j->n, sizeof *j->distance, "distances", err));
    KI_CHECK(ki_alloc_or(&near, (size_t)j->n, (size_t)k * sizeof *near, "distances", err));
    KI_CHECK(kith_gallery_new(&j->mean, &how, &gallery, err));
    KI_CHECK(kith_gallery_search(gallery, &j->whitened, NULL, k, near, err));
    for (int64_t i = 0; i < j->n; i++) {
        distances *to = &j->distance[i];
        int n = 0;
        *to = (distances){.own = own_distance(j, i)};
        for (int64_t h = 0; h < k && n < N_RIVALS; h++) {
            const kith_neighbor *from = &near[i * k + h];
            if (from->index == class_of(j, i) || from->index < 0) continue;
            const int64_t label = j->class[from->index];
            to->label[n] = label;
            to->rival[n++] = from->score / (1 + 1 / (double)j->rows->count[label]);
        }
        while (n < N_RIVALS) to->label[n++] = -1;
    }
done:
    kith_gallery_free(gallery);
    ki_free(near);
    return status;
}

/* p(own label), and of the most probable other class; which one it is. */
static double probability(const distances *d, double temperature, double *ret_other, int *ret_which) {
    double least = d->own, sum = 0, other = 0;
    for (int k = 0; k < N_RIVALS && d->label[k] >= 0; k++) least = d->rival[k] < least ? d->rival[k] : least;
    const double own = exp((least - d->own) / (2 * temperature));
    for (int k = 0; k < N_RIVALS && d->label[k] >= 0; k++) {
        const double p = exp((least - d->rival[k]) / (2 * temperature));
        sum += p;
        if (p <= other) continue;
        other = p;
        *ret_which = k;
    }
    *ret_other = other / (own + sum);
    return own / (own + sum);
}

/* How probable the labels and T are: the sum of logarithms, over evenly spaced rows. */
static double likelihood(const judged *j, const fit *f) {
    const int64_t step = (j->n + MOST_FITTED - 1) / MOST_FITTED;
    double sum = -0.5 * log(f->temperature) * log(f->temperature), other;
    int which;
    for (int64_t i = 0; i < j->n; i += step) {
        if (isnan(j->distance[i].own)) continue;
        const double own = probability(&j->distance[i], f->temperature, &other, &which);
        sum += log((1 - f->rate) * own + f->rate / (double)(j->n_classes - 1));
    }
    return sum;
}

/* By halves of a grid: a coarse one over both, then finer ones around the best. */
static fit fit_labels(const judged *j) {
    fit best = {1, 0.05};
    double most = -INFINITY, factor = 2.2;
    double from[2] = {0.02, 0.002}, to[2] = {400, 0.6};
    for (int round = 0; round < 4; round++) {
        double t = from[0];
        while (t <= to[0]) {
            double e = from[1];
            while (e <= to[1]) {
                const fit f = {t, e < 0.6 ? e : 0.6};
                const double l = likelihood(j, &f);
                if (l > most) most = l, best = f;
                e *= factor;
            }
            t *= factor;
        }
        from[0] = best.temperature / factor, to[0] = best.temperature * factor;
        from[1] = best.rate / factor, to[1] = best.rate * factor;
        factor = sqrt(factor);
    }
    return best;
}

/* Parts of the nearest that have one label. */
static double votes(const ki_doctor_rows *r, int64_t row, int64_t label) {
    const kith_neighbor *near = r->near + row * KI_DOCTOR_NEAREST;
    int n = 0, n_of = 0;
    for (int k = 0; k < N_VOTES && near[k].index >= 0; k++) {
        n++;
        n_of += r->label[near[k].index] == label;
    }
    return n > 0 ? (double)n_of / n : 0;
}

/* The row of a class that is most like this one. */
static int64_t most_like(const ki_doctor_rows *r, int64_t row, int64_t label) {
    const float *x = (const float *)r->unit.data + row * r->dim;
    int64_t best = -1;
    double most = -INFINITY;
    for (int64_t i = 0; i < r->n; i++) {
        const float *y = (const float *)r->unit.data + i * r->dim;
        double product = 0;
        if (i == row || r->label[i] != label) continue;
        for (int64_t k = 0; k < r->dim; k++) product += (double)x[k] * y[k];
        if (product > most) most = product, best = i;
    }
    return best;
}

static kith_status say(ki_doctor *d, ki_doctor_rows *r, int64_t row, int64_t other, double score,
                       kith_error *err) {
    const int64_t item = r->item[row], label = r->label[row], n_others = r->count[label] - 1;
    const char *own = d->set->class_[label].name, *name = d->set->class_[other].name;
    const bool is_sure = score >= LEAST_TO_DROP && n_others >= LEAST_OTHERS_TO_DROP;
    const int64_t example = most_like(r, row, other);
    r->is_named[row] = true;
    KI_TRY(ki_doctor_add(d, KITH_FINDING_MISLABELLED, score, other, err,
                         "%s is in %s and looks like %s: %.0f %% of its neighbours are %s, %.0f %% are %s",
                         ki_dataset_item_name(d->set, (size_t)item), own, name, 100 * votes(r, row, other),
                         name, 100 * votes(r, row, label), own));
    if (example >= 0) d->findings[d->n - 1].example = r->item[example];
    return ki_doctor_item(d, item, is_sure && !ki_doctor_is_test(d, item), err);
}

static kith_status say_all(ki_doctor *d, ki_doctor_rows *r, const judged *j, kith_error *err) {
    const fit f = fit_labels(j);
    const double wrong = f.rate / (double)(j->n_classes - 1);
    for (int64_t i = 0; i < j->n; i++) {
        const distances *to = &j->distance[i];
        double other = 0;
        int which = 0;
        if (isnan(to->own) || r->count[r->label[j->row[i]]] - 1 < LEAST_OTHERS_TO_SAY) continue;
        const double own = probability(to, f.temperature, &other, &which);
        const double score = other * wrong / ((1 - f.rate) * own + wrong);
        const bool is_voted = j->n < MOST_BY_VOTES && d->options->wrong <= 1 &&
                              votes(r, j->row[i], to->label[which]) >= LEAST_VOTES &&
                              votes(r, j->row[i], r->label[j->row[i]]) == 0;
        if (score >= d->options->wrong || is_voted)
            KI_TRY(say(d, r, j->row[i], to->label[which], score, err));
    }
    return KITH_OK;
}

kith_status ki_doctor_labels(ki_doctor *d, ki_doctor_rows *r, kith_error *err) {
    kith_status status;
    judged j = {.rows = r};
    if (d->options->wrong > 1) return KITH_OK;
    KI_CHECK(list_rows(d, &j, err));
    if (j.n < 3 || j.n_classes < 2) goto done;
    KI_CHECK(whiten(&j, err));
    if (j.n_axes == 0) goto done;
    KI_CHECK(measure(d, &j, err));
    status = say_all(d, r, &j, err);
done:
    judged_release(&j);
    return status;
}
