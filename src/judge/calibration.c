/* A calibration curve from the counts of all pairs: points at false match rates that fall by equal factors, so that small
 * rates, which users ask for, have as many points as large ones. */
#include <math.h>

#include "judge/verification.h"

void ki_calibration_make(const ki_pair_counts *p, kith_metric metric, int64_t n_classes,
                         kith_calibration *ret) {
    enum { MOST = KITH_CALIBRATION_POINTS };
    *ret = (kith_calibration){
        .metric = metric, .n_classes = n_classes, .n_same = p->n_same, .n_different = p->n_different};
    kith_calibration c = *ret; /* the strictest first */
    int64_t i = 0, same = 0, different = 0;
    for (int k = MOST - 1; k >= 0; k--) {
        const double most = pow((double)p->n_different, 1 - (double)k / (MOST - 1)) * (1 + 1e-12);
        const int64_t before = i;
        while (i < p->n_steps && (double)(different + p->step[i].n_different) <= most) {
            same += p->step[i].n_same;
            different += p->step[i].n_different;
            i++;
        }
        if (i == before) continue;
        const double threshold = ki_score_shown(metric, p->step[i - 1].score);
        if (c.n > 0 && threshold == c.threshold[c.n - 1]) c.n--; /* distances of 0 */
        c.threshold[c.n] = threshold;
        c.fmr[c.n] = (double)different / (double)p->n_different;
        c.tmr[c.n] = (double)same / (double)p->n_same;
        c.n++;
    }
    ret->n = c.n;
    for (i = 0; i < c.n; i++) {
        ret->threshold[i] = c.threshold[c.n - 1 - i];
        ret->fmr[i] = c.fmr[c.n - 1 - i];
        ret->tmr[i] = c.tmr[c.n - 1 - i];
    }
}
