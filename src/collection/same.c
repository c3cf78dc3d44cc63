/* Are two vectors of the same thing? */
#include <math.h>

#include "base/argument.h"
#include "kith/identify.h"

const char *kith_verdict_name(kith_verdict verdict) {
    static const char *const names[] = {"cannot say", "same", "different"};
    return (unsigned)verdict < sizeof names / sizeof names[0] ? names[verdict] : NULL;
}

static double score_of(kith_metric metric, const float *a, const float *b, int64_t dim) {
    double product = 0, a_square = 0, b_square = 0, distance = 0;
    for (int64_t i = 0; i < dim; i++) {
        const double x = (double)a[i], y = (double)b[i];
        product += x * y;
        a_square += x * x;
        b_square += y * y;
        distance += (x - y) * (x - y);
    }
    if (metric == KITH_SQEUCLIDEAN) return distance;
    if (metric == KITH_INNER) return product;
    /* Of what is no number the result is none. */
    return a_square == 0 || b_square == 0 ? product : product / (sqrt(a_square) * sqrt(b_square));
}

kith_status kith_same(const kith_calibration *curve, const float *a, const float *b, int64_t dim,
                      double error, kith_sameness *ret_sameness, kith_error *err) {
    KI_NEED(err, a, b, ret_sameness);
    if (dim < 1)
        return ki_fail(err, KITH_EINVAL, "vectors of %lld values; wanted at least 1", (long long)dim);
    if (!(error > 0 && error < 1))
        return ki_fail(err, KITH_EINVAL, "error is %g; wanted a rate above 0 and below 1", error);
    if (curve) KI_TRY(kith_calibration_check(curve, err));
    /* As a search shows it. */
    const double score = (double)(float)score_of(curve ? curve->metric : KITH_COSINE, a, b, dim);
    if (!isfinite(score))
        return ki_fail(err, KITH_ENUMERIC, "a vector is not finite, or too long to be compared");
    kith_sameness s = {.score = score, .false_match_rate = NAN, .missed_rate = NAN};
    if (curve) {
        s.false_match_rate = kith_calibration_false_match_rate(curve, score);
        s.missed_rate = 1 - kith_calibration_match_rate(curve, score);
        const bool is_same = s.false_match_rate <= error, is_different = s.missed_rate <= error;
        if (is_same != is_different) s.verdict = is_same ? KITH_VERDICT_SAME : KITH_VERDICT_DIFFERENT;
    }
    *ret_sameness = s;
    return KITH_OK;
}
