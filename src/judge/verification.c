/* From the counts of all pairs to the rates of verification. */
#include "judge/verification.h"

#include <math.h>

#include "base/argument.h"
#include "judge/sides.h"

KI_OPTIONS_INIT(kith_verification_options, .metric = KITH_COSINE, .has_intervals = true)

/* The share of pairs (same, different) in which the same one scores higher; ties count half. */
static double area(const ki_pair_counts *p) {
    double sum = 0, n_same = 0;
    for (int64_t i = 0; i < p->n_steps; i++) {
        sum += (double)p->step[i].n_different * (n_same + (double)p->step[i].n_same / 2);
        n_same += (double)p->step[i].n_same;
    }
    return sum / ((double)p->n_same * (double)p->n_different);
}

/* Where the line between the two points around the crossing has far + tar = 1. */
static void equal_error(const ki_pair_counts *p, const ki_crossing *x, kith_verification *v) {
    double far[2], tar[2];
    for (int i = 0; i < 2; i++) {
        far[i] = (double)x->n_different[i] / (double)p->n_different;
        tar[i] = (double)x->n_same[i] / (double)p->n_same;
    }
    const double part = (1 - far[0] - tar[0]) / (far[1] - far[0] + tar[1] - tar[0]);
    v->eer = far[0] + part * (far[1] - far[0]);
    const double score = isfinite(x->above) ? x->above + part * (x->score - x->above) : x->score;
    v->eer_threshold = ki_score_shown(v->metric, score);
}

static void accept_rate(const ki_pair_counts *p, const ki_crossing *x, kith_metric metric,
                        kith_accept_rate *ret) {
    *ret = (kith_accept_rate){.far_wanted = x->far,
                              .threshold = ki_score_shown(metric, x->above),
                              .far = (double)x->n_different[0] / (double)p->n_different,
                              .tar = (double)x->n_same[0] / (double)p->n_same,
                              .n_false = x->n_different[0]};
    if (!isfinite(x->above)) ret->threshold = metric == KITH_SQEUCLIDEAN ? -INFINITY : INFINITY;
}

static kith_status verify(const ki_pair_input *pairs, const kith_verification_options *o,
                          kith_verification *v, kith_error *err) {
    kith_status status;
    ki_pair_counts p = {0};
    ki_crossing x[KITH_N_FAR + 1] = {{.far = 1e-1}, {.far = 1e-2}, {.far = 1e-3}, {.far = 1e-4}};
    KI_OPTIONS_TAKE(kith_bootstrap_options, bootstrap, o->bootstrap, err);
    if (o->has_intervals) KI_TRY(ki_bootstrap_check(&bootstrap, err));
    x[KITH_N_FAR].far = KI_EQUAL_ERROR;
    KI_CHECK(ki_pair_counts_run(pairs, x, KITH_N_FAR + 1, &p, err));
    v->n_same = p.n_same;
    v->n_different = p.n_different;
    v->auc = area(&p);
    equal_error(&p, &x[KITH_N_FAR], v);
    for (int i = 0; i < KITH_N_FAR; i++) accept_rate(&p, &x[i], v->metric, &v->at[i]);
    ki_calibration_make(&p, v->metric, v->n_classes, &v->curve);
    v->has_intervals = o->has_intervals;
    v->bootstrap = (kith_bootstrap_settings){bootstrap.n_draws, bootstrap.level, bootstrap.seed, true};
    if (o->has_intervals) KI_CHECK(ki_verification_bootstrap(pairs, &p, &bootstrap, v, err));
done:
    ki_pair_counts_release(&p);
    return status;
}

kith_status ki_verification_run(const ki_judge_input *input, const kith_verification_options *o,
                                int64_t most_held, kith_verification *ret, kith_error *err) {
    kith_status status;
    ki_sides s = {0};
    ki_panels query = {0}, gallery = {0};
    const bool is_square = !input->query && !input->gallery;
    if ((unsigned)o->metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EINVAL, "metric %d is none", (int)o->metric);
    KI_CHECK(ki_sides_init(input, &s, err));
    s.gallery.there = s.query.there = NULL; /* the host multiplies */
    KI_CHECK(ki_panels_init(&s.gallery, o->metric, NULL, &gallery, err));
    if (!is_square) KI_CHECK(ki_panels_init(&s.query, o->metric, &gallery, &query, err));
    const ki_pair_input pairs = {.query = is_square ? &gallery : &query,
                                 .gallery = &gallery,
                                 .query_class = s.query_class,
                                 .gallery_class = s.gallery_class,
                                 .n_classes = (int32_t)s.n_classes,
                                 .self = s.self,
                                 .most_held = most_held,
                                 .progress = o->progress,
                                 .user = o->user};
    kith_verification v = {.metric = o->metric, .n_classes = s.n_classes};
    KI_CHECK(verify(&pairs, o, &v, err));
    *ret = v;
done:
    ki_panels_release(&query);
    ki_panels_release(&gallery);
    ki_sides_release(&s);
    return status;
}

kith_status kith_verification_run(const kith_retrieval_input *in, const kith_verification_options *options,
                                  kith_verification *ret_verification, kith_error *err) {
    KI_NEED(err, in, ret_verification);
    ki_judge_input input;
    KI_OPTIONS_TAKE(kith_verification_options, o, options, err);
    KI_TRY(ki_judge_input_of(in, &input, err));
    return ki_verification_run(&input, &o, 0, ret_verification, err);
}
