/* Choosing a way: what was chosen before, else the fastest of what there is, which is remembered.
 *
 * A large batch is not timed itself: what is fastest for 256 images, which fill a device, is so for more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/trials.h"
#include "core/log.h"

static void write_key(const ki_backend *backend, const ki_conv_problem *p, char *key, size_t key_bytes) {
    static const char *const names[KI_N_CONV_PASSES] = {"forward", "diff_src", "diff_weights"};
    const ki_conv_strides *s = &p->src, *d = &p->dst;
    snprintf(key, key_bytes,
             "%s %s mb%lld ic%lld ih%lld iw%lld oc%lld oh%lld ow%lld kh%lld kw%lld sh%lld sw%lld "
             "p%lld,%lld,%lld,%lld "
             "src%lld,%lld,%lld dst%lld,%lld,%lld%s%s%s%s%s%s",
             names[p->pass], p->type == KI_NUMBER_BF16 ? "bf16" : "float32", (long long)p->mb,
             (long long)p->ic, (long long)p->ih, (long long)p->iw, (long long)p->oc, (long long)p->oh,
             (long long)p->ow, (long long)p->kh, (long long)p->kw, (long long)p->sh, (long long)p->sw,
             (long long)p->ph, (long long)p->pw, (long long)p->ph_end, (long long)p->pw_end,
             (long long)s->image, (long long)s->row, (long long)s->pixel, (long long)d->image,
             (long long)d->row, (long long)d->pixel, p->has_bias ? " bias" : "", p->has_relu ? " relu" : "",
             p->adds ? " adds" : "", p->plain_weights ? " plain" : "", backend->options.tf32 ? " tf32" : "",
             backend->options.deterministic ? " repeatable" : "");
}

static kith_status choose(ki_trial *t, ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *best = NULL;
    ki_trial_collect(t);
    if (ki_trial_takes_first(t)) {
        for (int i = 0; i < t->n && !best; i++) {
            best = t->candidate[i].algorithm;
            t->candidate[i].algorithm = NULL;
        }
    } else if (ki_trial_first(t)) {
        KI_TRY(ki_trial_pick(t, &best, err));
    }
    if (!best) {
        ki_log(KITH_LOG_DEBUG, "no library takes this convolution, the plain kernel does: %s",
               t->why.message);
        return ki_conv_way_plain(t->backend, t->problem, ret_algorithm, err);
    }
    *ret_algorithm = best;
    return KITH_OK;
}

/* What was remembered for the key, if it can be had; else *ret_algorithm stays NULL. */
static void recall(ki_trial *t, const char *key, ki_conv_algorithm **ret_algorithm) {
    const char *known = ki_choices_get(t->libraries->choices, key);
    char *text = NULL;
    const double seconds = known ? strtod(known, &text) : 0; /* "SECONDS TEXT" */
    if (known && *text == ' ' &&
        ki_conv_way_parse(t->backend, t->problem, text + 1, ret_algorithm, &t->why) == KITH_OK) {
        (*ret_algorithm)->seconds = seconds;
        t->stats.from_cache = true;
        return;
    }
    *ret_algorithm = NULL;
    if (known) ki_log(KITH_LOG_WARNING, "%s: choosing anew: %s", key, t->why.message);
}

static kith_status remember(const ki_trial *t, const char *key, const ki_conv_algorithm *algorithm,
                            kith_error *err) {
    char value[KI_CONV_TEXT + 32];
    snprintf(value, sizeof value, "%.4g %s", algorithm->seconds, algorithm->text);
    return ki_choices_set(t->libraries->choices, key, value, err);
}

/* In deterministic mode everybody must choose the same, also those who are choosing at this moment: what somebody has
 * saved meanwhile is taken, and one's own choice is saved at once. */
static kith_status choose_with_others(ki_trial *t, const char *key, ki_conv_algorithm **ret_algorithm,
                                      kith_error *err) {
    ki_choices *choices = t->libraries->choices;
    ki_conv_algorithm *theirs = NULL;
    ki_choices_refresh(choices);
    recall(t, key, ret_algorithm);
    if (*ret_algorithm) return KITH_OK;
    KI_TRY(choose(t, ret_algorithm, err));
    ki_choices_refresh(choices);
    recall(t, key, &theirs);
    if (theirs) {
        ki_conv_algorithm_free(*ret_algorithm);
        *ret_algorithm = theirs;
        return KITH_OK;
    }
    KI_TRY(remember(t, key, *ret_algorithm, err));
    ki_choices_save(choices);
    return KITH_OK;
}

/* What was chosen for fewer images, if it can be had for these too; else *ret_algorithm stays NULL. Places in cuDNN's
 * list are no choice for another size. */
static kith_status choose_for_fewer(ki_trial *t, ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_problem few = *t->problem;
    ki_conv_algorithm *small = NULL;
    ki_candidate *only = &t->candidate[0];
    ki_conv_io io;
    few.mb = KI_TRIAL_IMAGES;
    KI_TRY(ki_conv_choose(t->backend, &few, &small, NULL, err));
    const bool is_place = small->way == KI_WAY_CUDNN && small->choice.by_place;
    if (!is_place &&
        ki_conv_way_parse(t->backend, t->problem, small->text, &only->algorithm, &t->why) == KITH_OK)
        t->n = t->n_built = 1;
    ki_conv_algorithm_free(small);
    if (t->n == 1 &&
        only->algorithm->workspace_bytes <= ki_trial_workspace(t->problem) + only->algorithm->packed_bytes) {
        KI_TRY(ki_trial_time(t, &io, err)); /* does it run at all? */
        *ret_algorithm = only->algorithm;
        only->algorithm = NULL;
    }
    ki_conv_algorithm_free(only->algorithm);
    memset(only, 0, sizeof *only);
    t->n = t->n_built = 0;
    return KITH_OK;
}

static void say_once(const ki_trial *t) {
    if (!t->libraries->has_said)
        ki_log(KITH_LOG_INFO, "timing ways to compute convolutions of these sizes on this device%s",
               ki_choices_are_kept(t->libraries->choices) ? "; the next run will know them" : "");
    t->libraries->has_said = true;
}

kith_status ki_conv_choose(ki_backend *backend, const ki_conv_problem *problem,
                           ki_conv_algorithm **ret_algorithm, ki_conv_trials *ret_trials, kith_error *err) {
    char key[512];
    ki_trial *t = NULL;
    kith_status status = KITH_OK;
    *ret_algorithm = NULL;
    KI_TRY(ki_zalloc_or(&t, 1, sizeof *t, "trials", err));
    t->backend = backend;
    t->problem = problem;
    KI_CHECK(ki_cuda_libraries_of(backend, &t->libraries, err));
    write_key(backend, problem, key, sizeof key);
    recall(t, key, ret_algorithm);
    if (*ret_algorithm) goto done;
    if (problem->mb > KI_TRIAL_IMAGES) KI_CHECK(choose_for_fewer(t, ret_algorithm, err));
    if (*ret_algorithm) {
        KI_CHECK(remember(t, key, *ret_algorithm, err));
        goto done;
    }
    say_once(t);
    if (backend->options.deterministic) {
        KI_CHECK(choose_with_others(t, key, ret_algorithm, err));
    } else {
        KI_CHECK(choose(t, ret_algorithm, err));
        KI_CHECK(remember(t, key, *ret_algorithm, err));
    }
    ki_log(KITH_LOG_DEBUG, "%s: %d offered, %d built, %d timed: %s", key, t->stats.n_offered,
           t->stats.n_built, t->stats.n_timed, (*ret_algorithm)->text);
done:
    if (status != KITH_OK) {
        ki_conv_algorithm_free(*ret_algorithm);
        *ret_algorithm = NULL;
    }
    if (ret_trials) *ret_trials = t->stats;
    for (int i = 0; i < t->n; i++) ki_conv_algorithm_free(t->candidate[i].algorithm);
    ki_free(t);
    return status;
}

void ki_conv_trials_end(ki_backend *backend) {
    ki_cuda_libraries *libraries = ki_cuda_of(backend)->libraries;
    if (!libraries) return;
    ki_cuda_free(backend, libraries->trial);
    libraries->trial = NULL;
    libraries->trial_bytes = 0;
    ki_choices_save(libraries->choices);
}
