/* Student's t, and the mean of a few runs with its interval. */
#include "judge/estimate.h"

#include <math.h>

/* Quantiles 0.975 of Student's t by degrees of freedom, from 1. */
static const double t_quantile[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                    2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                    2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                    2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
enum { N_QUANTILES = sizeof t_quantile / sizeof t_quantile[0] };

double ki_t_quantile(int freedom) {
    /* Beyond the table: the normal's 1.96 and its expansion in 1 / freedom (Cornish and Fisher). */
    const double v = freedom;
    return freedom <= N_QUANTILES ? t_quantile[freedom - 1] : 1.95996 + 2.37228 / v + 2.8226 / (v * v);
}

kith_estimate ki_estimate_mean(const double *values, int n) {
    kith_estimate e = {.mean = NAN, .low = NAN, .high = NAN};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(values[i])) continue;
        e.n++;
        sum += values[i];
    }
    if (e.n == 0) return e;
    e.mean = sum / (double)e.n;
    if (e.n < 2) return e;
    for (int i = 0; i < n; i++) {
        if (!isnan(values[i])) squares += (values[i] - e.mean) * (values[i] - e.mean);
    }
    const int freedom = (int)e.n - 1;
    const double half = ki_t_quantile(freedom) * sqrt(squares / freedom / (double)e.n);
    e.low = e.mean - half;
    e.high = e.mean + half;
    return e;
}
