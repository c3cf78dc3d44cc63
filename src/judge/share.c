/* Bounds of shares: quantiles of the beta distribution, found by halving. */
#include "judge/share.h"

#include <math.h>

/* The continued fraction of the incomplete beta function (Lentz), which converges quickly for x < (a + 1) / (a + b + 2). */
static double fraction(double a, double b, double x) {
    enum { MOST_STEPS = 1000 };
    const double least = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < least ? least : d);
    double value = d;
    for (int m = 1; m <= MOST_STEPS; m++) {
        for (int odd = 0; odd < 2; odd++) {
            const double k = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                                 : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + k * d;
            d = 1 / (fabs(d) < least ? least : d);
            c = 1 + k / c;
            if (fabs(c) < least) c = least;
            value *= c * d;
            if (odd && fabs(c * d - 1) < 1e-14) return value;
        }
    }
    return value;
}

/* P(B <= x) of a beta variable; a and b above 0. */
static double beta_below(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
}

static double beta_quantile(double a, double b, double part) {
    double low = 0, high = 1;
    for (int i = 0; i < 44; i++) {
        const double middle = (low + high) / 2;
        if (beta_below(a, b, middle) < part)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double ki_share_high(double x, double n, double level) {
    return n - x < 1e-9 ? 1 : beta_quantile(x + 1, n - x, level);
}

double ki_share_low(double x, double n, double level) {
    return x < 1e-9 ? 0 : beta_quantile(x, n - x + 1, 1 - level);
}

double ki_share_trials(double share, double level) { return ceil(log(1 - level) / log1p(-share)); }
