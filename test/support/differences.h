/* Gradients against central differences in double, for tests named _f64. Included by one test program each.
 *
 * The objective is sum(dst * diff_dst) for given diff_dst; eps is 1e-6, and an error counts relative
 * to the largest entry of the gradient it is in. A coordinate that disagrees may lie nearer to a kink
 * (a ReLU's zero, two nearly equal maxima) than eps: it is tried again at 1e-7 and 1e-8 and, when it
 * agrees there, counted as one at a kink. There may be next to none of those. */
#ifndef KITH_TEST_DIFFERENCES_H
#define KITH_TEST_DIFFERENCES_H

#include <math.h>
#include <stdlib.h>

#include "support/testing.h"

static const double tolerance = 1e-6;

/* What is differentiated: forward computes dst from values that live in the context. */
typedef struct subject {
    const char *name;
    void *context;
    void (*forward)(void *context, double *dst);
    int64_t n_dst;
    const double *diff_dst;
    int max_coordinates;    /* per tensor */
    int n_checked, n_kinks; /* so far */
    double worst;
} subject;

/* Differences are taken value by value, so that the sums do not cancel. */
static inline double difference(const subject *s, double *value, double eps, double *buffer) {
    double *up = buffer, *down = buffer + s->n_dst;
    const double here = *value, high = here + eps, low = here - eps;
    *value = high;
    s->forward(s->context, up);
    *value = low;
    s->forward(s->context, down);
    *value = here;
    double sum = 0;
    for (int64_t i = 0; i < s->n_dst; i++) sum += (up[i] - down[i]) * s->diff_dst[i];
    return sum / (high - low);
}

static inline void check_tensor(subject *s, const char *name, double *values, const double *diff, int64_t n) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(diff[i]));
    const double allowed = tolerance * fmax(largest, 1e-3); /* a gradient of zeros must be one, too */
    double *buffer = malloc(2 * (size_t)s->n_dst * sizeof *buffer);
    assert_non_null(buffer);
    const int64_t stride = n / s->max_coordinates + 1;
    for (int64_t i = 0; i < n; i += stride) {
        double wanted = difference(s, &values[i], 1e-6, buffer);
        s->n_checked++;
        if (!(fabs(diff[i] - wanted) <= allowed)) {
            double nearer = difference(s, &values[i], 1e-7, buffer);
            if (!(fabs(diff[i] - nearer) <= allowed)) nearer = difference(s, &values[i], 1e-8, buffer);
            if (!(fabs(diff[i] - nearer) <= allowed))
                fail_msg("%s: gradient of %s[%lld] is %.12g, by differences %.12g (largest entry %.3g)",
                         s->name, name, (long long)i, diff[i], wanted, largest);
            wanted = nearer;
            s->n_kinks++;
        }
        s->worst = fmax(s->worst, fabs(diff[i] - wanted) / fmax(largest, 1e-3));
    }
    free(buffer);
}

static inline void report(const subject *s) {
    print_message("%s: %d coordinates, %d at kinks, worst error %.2g\n", s->name, s->n_checked, s->n_kinks,
                  s->worst);
    if (s->n_kinks * 200 > s->n_checked) fail_msg("%d of %d coordinates at kinks", s->n_kinks, s->n_checked);
}

#endif
