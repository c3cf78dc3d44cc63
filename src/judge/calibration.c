/* A calibration curve from the counts of all pairs: points at false-match rates that fall by equal factors, so that small
 * rates, which users ask for, have as many points as large ones. */
#include <math.h>

#include "judge/verification.h"

/* Pairs whose scores a search would show as one number. */
typedef struct bunch {
    float shown;
    int64_t end; /* the step behind it */
    int64_t n_same, n_different;
} bunch;

static bunch bunch_at(const ki_pair_counts *p, kith_metric metric, int64_t i) {
    bunch b = {.shown = (float)ki_score_shown(metric, p->step[i].score), .end = i};
    do {
        b.n_same += p->step[b.end].n_same;
        b.n_different += p->step[b.end].n_different;
        b.end++;
    } while (b.end < p->n_steps && (float)ki_score_shown(metric, p->step[b.end].score) == b.shown);
    return b;
}

/* The loosest score of each factor. After a factor without one also the strictest: many pairs may share it, and without it the rate
 * between the points on both sides would be told too small. */
void ki_calibration_make(const ki_pair_counts *p, kith_metric metric, int64_t n_classes,
                         kith_calibration *ret) {
    enum { MOST = KITH_CALIBRATION_POINTS };
    *ret = (kith_calibration){
        .metric = metric, .n_classes = n_classes, .n_same = p->n_same, .n_different = p->n_different};
    kith_calibration c = *ret; /* the strictest first */
    int64_t i = 0, same = 0, different = 0;
    bool has_room = false;
    bunch next = bunch_at(p, metric, 0);
    for (int k = MOST - 1; k >= 0; k--) {
        const double most = pow((double)p->n_different, 1 - (double)k / (MOST - 1)) * (1 + 1e-12);
        int64_t n_met = 0;
        while (i < p->n_steps && (double)(different + next.n_different) <= most) {
            same += next.n_same;
            different += next.n_different;
            if (n_met == 0 || (n_met == 1 && has_room)) c.n++; /* else it takes the place of the last */
            n_met++;
            c.threshold[c.n - 1] = (double)next.shown;
            c.fmr[c.n - 1] = (double)different / (double)p->n_different;
            c.tmr[c.n - 1] = (double)same / (double)p->n_same;
            i = next.end;
            if (i < p->n_steps) next = bunch_at(p, metric, i);
        }
        has_room = n_met == 0;
    }
    ret->n = c.n;
    for (i = 0; i < c.n; i++) {
        ret->threshold[i] = c.threshold[c.n - 1 - i];
        ret->fmr[i] = c.fmr[c.n - 1 - i];
        ret->tmr[i] = c.tmr[c.n - 1 - i];
    }
}
