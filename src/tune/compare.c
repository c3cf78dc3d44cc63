/* Scores of held-out classes, and whether a difference is more than chance. The classes are the sample: what is wanted is a model for
 * classes that nobody has seen, so a difference is a mean over classes, and its error follows from how it varies between them. */
#include <math.h>

#include "base/alloc.h"
#include "judge/estimate.h"
#include "tune/tune.h"

kith_status ki_tune_scores_init(const ki_tune *t, ki_tune_scores *ret, kith_error *err) {
    const size_t n = (size_t)kith_dataset_n_classes(t->set);
    *ret = (ki_tune_scores){.n_classes = (int64_t)n};
    KI_TRY(ki_zalloc_or(&ret->n, 3 * n, sizeof *ret->n, "scores", err));
    ret->recall = ret->n + n;
    ret->precision = ret->recall + n;
    return KITH_OK;
}

void ki_tune_scores_release(ki_tune_scores *s) {
    ki_free(s->n);
    *s = (ki_tune_scores){0};
}

static double over_queries(const ki_tune_scores *s, const double *sum) {
    double n = 0, all = 0;
    for (int64_t c = 0; c < s->n_classes; c++) n += s->n[c], all += sum[c];
    return n > 0 ? all / n : NAN;
}

double ki_tune_recall(const ki_tune_scores *s) { return over_queries(s, s->recall); }
double ki_tune_precision(const ki_tune_scores *s) { return over_queries(s, s->precision); }

static double of_class(const ki_tune_scores *s, int64_t c) {
    return (s->recall[c] + s->precision[c]) / (2 * s->n[c]);
}

double ki_tune_mean(const ki_tune_scores *s) {
    double n = 0, sum = 0;
    for (int64_t c = 0; c < s->n_classes; c++) {
        if (s->n[c] > 0) n++, sum += of_class(s, c);
    }
    return n > 0 ? sum / n : NAN;
}

/* The standard error of a mean, from the sum of n values and that of their squares. */
static double error_of(double sum, double squares, int n) {
    const double variance = (squares - sum * sum / n) / (n - 1);
    return variance > 0 ? sqrt(variance / n) : 0;
}

ki_tune_difference ki_tune_compare(const ki_tune_scores *a, const ki_tune_scores *b) {
    ki_tune_difference d = {0};
    double sum = 0, squares = 0, n = 0, recall = 0, precision = 0, first = 0, first_squares = 0;
    for (int64_t c = 0; c < a->n_classes; c++) {
        if (!(a->n[c] > 0) || !(b->n[c] > 0)) continue;
        const double gain = of_class(b, c) - of_class(a, c);
        d.n++;
        sum += gain;
        squares += gain * gain;
        const double change = b->recall[c] / b->n[c] - a->recall[c] / a->n[c];
        first += change;
        first_squares += change * change;
        n += a->n[c];
        recall += b->recall[c] / b->n[c] * a->n[c] - a->recall[c];
        precision += b->precision[c] / b->n[c] * a->n[c] - a->precision[c];
    }
    if (d.n < 2) return d;
    d.mean = sum / d.n;
    d.error = error_of(sum, squares, d.n);
    d.recall_error = error_of(first, first_squares, d.n);
    d.t = ki_t_quantile(d.n - 1);
    d.recall = recall / n;
    d.precision = precision / n;
    return d;
}
