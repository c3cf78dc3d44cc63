/* What more photos would bring: the best layer is trained on a quarter and on half of the classes, and on half of each class's photos, and
 * judged on the held-out classes of the last round. From half to all is a doubling, and the next one is taken to bring as much or less: less by
 * as much as the doubling before brought more. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tune/tune.h"

/* The next doubling brings at least this part of the last. */
static const double LEAST_RATIO = 0.5;
/* … and so much where there is only one doubling to go by. */
static const double USUAL_RATIO = 0.75;

/* A gain that nobody would label photos for. */
static const double LITTLE = 0.02;

static const ki_tune_part parts[] = {{0.25, false}, {0.5, false}, {1, false}, {0.5, true}};
enum { QUARTER, HALF, WHOLE, HALF_OF_PHOTOS };

/* ---- points ---- */

static void count(const ki_tune *t, const ki_items *items, bool *is_seen, ki_tune_point *to) {
    memset(is_seen, 0, t->set->n_classes * sizeof *is_seen);
    for (int64_t i = 0; i < items->n; i++) {
        bool *seen = &is_seen[t->set->item[items->item[i]].label];
        to->n_classes += !*seen;
        *seen = true;
    }
    to->n_photos += (double)items->n;
}

/* A part of too few classes has no point. */
static kith_status try_part(ki_tune *t, const ki_tune_part *part, int fold, bool *ret_is_there,
                            kith_error *err) {
    const ki_tune_way *way = &t->way[t->best];
    kith_error why = {0};
    char name[256];
    const ki_tune_trial trial = {
        .way = way, .folds = &t->folds[1], .fold = fold, .part = *part, .mark = &way->steps, .n_marks = 1};
    kith_status status = KITH_OK;
    if (!t->is_over && ki_tune_left(t) > 0) status = ki_tune_try(t, &trial, NULL, &why);
    *ret_is_there =
        status == KITH_OK && ki_tune_find(t, ki_tune_trial_name(&trial, name, sizeof name), way->steps, NULL);
    if (status == KITH_OK || status == KITH_EINVAL) return KITH_OK;
    if (err) *err = why;
    return status;
}

static kith_status make_point(ki_tune *t, const ki_tune_part *part, ki_tune_point *ret, bool *is_seen,
                              kith_error *err) {
    kith_status status;
    ki_tune_scores before = {0}, after = {0};
    int n = 0;
    *ret = (ki_tune_point){.part = *part};
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    for (int f = 0; f < t->folds[1].n; f++) {
        ki_items items = {0};
        bool is_there = false;
        KI_CHECK(try_part(t, part, f, &is_there, err));
        if (!is_there) continue;
        ki_tune_sum(t, &t->way[0], &t->folds[1], 0, 1u << f, NULL, &before);
        ki_tune_sum(t, &t->way[t->best], &t->folds[1], t->way[t->best].steps, 1u << f, part, &after);
        status = ki_tune_select(t, &t->folds[1], f, false, part, &items, err);
        if (status == KITH_OK) count(t, &items, is_seen, ret);
        ki_free(items.item);
        KI_CHECK(status);
        n++;
    }
    if (n == 0) goto done;
    ret->n_classes /= n;
    ret->n_photos /= n;
    ret->gain = ki_tune_compare(&before, &after);
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

/* ---- forecasts ---- */

/* Gains from one part to a larger one, over the classes that both were judged on. */
static kith_status step_between(const ki_tune *t, const ki_tune_part *from, const ki_tune_part *to,
                                ki_tune_difference *ret, kith_error *err) {
    kith_status status;
    const ki_tune_way *way = &t->way[t->best];
    ki_tune_scores before = {0}, after = {0};
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    for (int f = 0; f < t->folds[1].n; f++) {
        ki_tune_sum(t, way, &t->folds[1], way->steps, 1u << f, from, &before);
        ki_tune_sum(t, way, &t->folds[1], way->steps, 1u << f, to, &after);
    }
    *ret = ki_tune_compare(&before, &after);
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

static ki_tune_forecast forecast(const ki_tune_difference *last, const ki_tune_difference *before) {
    double ratio = USUAL_RATIO;
    ki_tune_forecast f = {.is_known = last->n >= 2};
    if (!f.is_known) return f;
    if (before && before->n >= 2 && before->mean > 0) {
        ratio = last->mean / before->mean;
        ratio = ratio < LEAST_RATIO ? LEAST_RATIO : ratio > 1 ? 1 : ratio;
    }
    f.gain = ratio * last->mean;
    f.low = f.gain - ratio * last->t * last->error;
    f.high = f.gain + ratio * last->t * last->error;
    f.recall = ratio * last->recall;
    f.precision = ratio * last->precision;
    return f;
}

static kith_status look_ahead(ki_tune *t, kith_error *err) {
    ki_tune_difference first = {0}, second = {0}, photos = {0};
    KI_TRY(step_between(t, &parts[QUARTER], &parts[HALF], &first, err));
    KI_TRY(step_between(t, &parts[HALF], &parts[WHOLE], &second, err));
    KI_TRY(step_between(t, &parts[HALF_OF_PHOTOS], &parts[WHOLE], &photos, err));
    t->forecast[0] = forecast(&second, &first);
    t->forecast[1] = forecast(&photos, NULL);
    return KITH_OK;
}

static void put_forecast(const ki_tune_forecast *f, const char *of_what, ki_buffer *to) {
    if (!f->is_known) return;
    if (to->n > 0) ki_buffer_put(to, "; ");
    if (f->low > 0)
        ki_buffer_put(to, "twice as many %s would likely bring %+.1f points of R@1 and %+.1f of MAP@R",
                      of_what, 100 * f->recall, 100 * f->precision);
    else if (f->high < LITTLE)
        ki_buffer_put(to, "twice as many %s would likely bring little", of_what);
    else
        ki_buffer_put(to, "what twice as many %s would bring cannot be told", of_what);
    ki_buffer_put(to, " (mean of both %+.1f to %+.1f)", 100 * f->low, 100 * f->high);
}

/* Could the layer have been trained on the part, with the fold held out, and was not? */
static bool is_missing(const ki_tune *t, const ki_tune_part *part, int fold) {
    const ki_tune_trial trial = {.way = &t->way[t->best], .folds = &t->folds[1], .fold = fold, .part = *part};
    char name[256];
    ki_items items = {0};
    kith_error ignored;
    bool has_two = false;
    if (ki_tune_find(t, ki_tune_trial_name(&trial, name, sizeof name), t->way[t->best].steps, NULL))
        return false;
    if (ki_tune_select(t, &t->folds[1], fold, false, part, &items, &ignored) != KITH_OK) return false;
    for (int64_t i = 1; i < items.n; i++)
        has_two |= t->set->item[items.item[i]].label != t->set->item[items.item[0]].label;
    ki_free(items.item);
    return has_two;
}

static const char *why_not(const ki_tune *t) {
    static const int needed[] = {HALF, HALF_OF_PHOTOS};
    if (!t->way[t->best].objective)
        return "the best way that was tried learns nothing, so it does not say what more photos would bring";
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const ki_tune_part *part = &parts[needed[i]];
        if (t->folds[1].by_photo && !part->of_photos) continue;
        for (int f = 0; f < t->folds[1].n; f++) {
            if (is_missing(t, part, f))
                return "there was no time to see what more photos would bring; more --minutes would say it";
        }
    }
    return "there are too few classes to say what more of them would bring";
}

static kith_status advise(ki_tune *t, kith_error *err) {
    ki_buffer text = {.err = err};
    put_forecast(&t->forecast[0], "classes", &text);
    put_forecast(&t->forecast[1], "photos of each class", &text);
    if (text.n == 0) ki_buffer_put(&text, "%s", why_not(t));
    ki_buffer_add(&text, "", 1);
    if (text.status == KITH_OK) ki_snprintf(t->advice, sizeof t->advice, "%s", text.data);
    const kith_status status = text.status;
    ki_buffer_release(&text);
    return status;
}

/* What matters most comes first: a part that there is no time for has no point. */
static kith_status try_parts(ki_tune *t, kith_error *err) {
    static const int order[] = {HALF, HALF_OF_PHOTOS, QUARTER};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        const ki_tune_part *part = &parts[order[i]];
        bool ignored = false;
        if (t->folds[1].by_photo && !part->of_photos) continue;
        for (int f = 0; f < t->folds[1].n; f++) KI_TRY(try_part(t, part, f, &ignored, err));
    }
    return KITH_OK;
}

kith_status ki_tune_curve(ki_tune *t, kith_error *err) {
    kith_status status = KITH_OK;
    bool *is_seen = NULL;
    if (t->way[t->best].objective) KI_TRY(try_parts(t, err));
    t->n_points = 0;
    KI_CHECK(ki_alloc_or(&is_seen, t->set->n_classes, sizeof *is_seen, "classes", err));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && t->way[t->best].objective; i++) {
        ki_tune_point *point = &t->point[t->n_points];
        if (t->folds[1].by_photo && !parts[i].of_photos && parts[i].share < 1) continue;
        KI_CHECK(make_point(t, &parts[i], point, is_seen, err));
        t->n_points += point->gain.n >= 2;
    }
    KI_CHECK(look_ahead(t, err));
    KI_CHECK(advise(t, err));
done:
    ki_free(is_seen);
    return status;
}
