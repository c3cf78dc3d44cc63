/* Tuning: the way that was chosen before; if there is none, the fastest candidate, which is then remembered.
 *
 * A large batch is not timed itself: 256 images fill a device, so what is fastest for them is fastest for
 * more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/tune.h"
#include "base/log.h"
#include "base/text.h"

static void write_key(const ki_backend *backend, const ki_conv_problem *p, char *key, size_t key_bytes) {
    static const char *const names[KI_N_CONV_PASSES] = {"forward", "diff_src", "diff_weights"};
    const ki_conv_strides *s = &p->src, *d = &p->dst;
    char groups[32] = "";
    if (p->groups > 1) ki_snprintf(groups, sizeof groups, " groups%lld", (long long)p->groups);
    ki_snprintf(key, key_bytes,
                "%s %s mb%lld ic%lld ih%lld iw%lld oc%lld oh%lld ow%lld kh%lld kw%lld sh%lld sw%lld "
                "p%lld,%lld,%lld,%lld "
                "src%lld,%lld,%lld dst%lld,%lld,%lld%s%s%s%s%s%s%s%s",
                names[p->pass], p->type == KI_NUMBER_BF16 ? "bf16" : "float32", (long long)p->mb,
                (long long)p->ic, (long long)p->ih, (long long)p->iw, (long long)p->oc, (long long)p->oh,
                (long long)p->ow, (long long)p->kh, (long long)p->kw, (long long)p->sh, (long long)p->sw,
                (long long)p->ph, (long long)p->pw, (long long)p->ph_end, (long long)p->pw_end,
                (long long)s->image, (long long)s->row, (long long)s->pixel, (long long)d->image,
                (long long)d->row, (long long)d->pixel, groups, p->has_bias ? " bias" : "",
                p->has_relu ? " relu" : "", p->adds ? " adds" : "", p->plain_weights ? " plain" : "",
                p->is_product ? " product" : "", backend->options.tf32 ? " tf32" : "",
                backend->options.deterministic ? " repeatable" : "");
}

static kith_status pick(ki_conv_contest *t, ki_conv_way **ret_way, kith_error *err) {
    ki_conv_way *best = NULL;
    ki_tune_collect(t);
    if (ki_tune_takes_first(t)) {
        for (int i = 0; i < t->n && !best; i++) {
            best = t->candidate[i].way;
            t->candidate[i].way = NULL;
        }
    } else if (ki_tune_first(t)) {
        KI_TRY(ki_tune_pick(t, &best, err));
    }
    if (!best) {
        ki_log(KITH_LOG_DEBUG, "no library takes this convolution, the plain kernel does: %s",
               t->why.message);
        return ki_conv_way_plain(t->backend, t->problem, ret_way, err);
    }
    *ret_way = best;
    return KITH_OK;
}

/* The way that was remembered for the key, if it works; otherwise *ret_way stays NULL. */
static void recall(ki_conv_contest *t, const char *key, ki_conv_way **ret_way) {
    const char *known = ki_remembered_get(t->libraries->remembered, key);
    const char *text = NULL;
    const double seconds = known ? ki_parse_begin(known, &text) : 0; /* "SECONDS TEXT" */
    if (known && *text == ' ' &&
        ki_conv_way_parse(t->backend, t->problem, text + 1, ret_way, &t->why) == KITH_OK) {
        (*ret_way)->seconds = seconds;
        t->stats.from_cache = true;
        return;
    }
    *ret_way = NULL;
    if (known) ki_log(KITH_LOG_WARNING, "%s: choosing anew: %s", key, t->why.message);
}

static kith_status remember(const ki_conv_contest *t, const char *key, const ki_conv_way *way,
                            kith_error *err) {
    char value[KI_CONV_TEXT + 32];
    ki_snprintf(value, sizeof value, "%.4g %s", way->seconds, way->text);
    return ki_remembered_set(t->libraries->remembered, key, value, err);
}

/* In deterministic mode all processes must choose the same way, also those that are choosing at this moment. So a
 * choice that another process has saved in the meantime is used, and our own choice is saved at once. */
static kith_status pick_with_others(ki_conv_contest *t, const char *key, ki_conv_way **ret_way,
                                    kith_error *err) {
    ki_remembered *remembered = t->libraries->remembered;
    ki_conv_way *theirs = NULL;
    ki_remembered_refresh(remembered);
    recall(t, key, ret_way);
    if (*ret_way) return KITH_OK;
    KI_TRY(pick(t, ret_way, err));
    ki_remembered_refresh(remembered);
    recall(t, key, &theirs);
    if (theirs) {
        ki_conv_way_free(*ret_way);
        *ret_way = theirs;
        return KITH_OK;
    }
    KI_TRY(remember(t, key, *ret_way, err));
    ki_remembered_save(remembered);
    return KITH_OK;
}

/* The way that was chosen for fewer images, if it works for these too; otherwise *ret_way stays NULL. Places in
 * cuDNN's list mean nothing for another size. */
static kith_status take_from_fewer(ki_conv_contest *t, ki_conv_way **ret_way, kith_error *err) {
    ki_conv_problem few = *t->problem;
    ki_conv_way *small = NULL;
    ki_tune_candidate *only = &t->candidate[0];
    ki_conv_io io;
    few.mb = KI_TUNE_IMAGES;
    KI_TRY(ki_conv_tune(t->backend, &few, &small, NULL, err));
    const bool is_place = small->kind == KI_WAY_CUDNN && small->setting.by_place;
    if (!is_place && ki_conv_way_parse(t->backend, t->problem, small->text, &only->way, &t->why) == KITH_OK)
        t->n = t->n_built = 1;
    ki_conv_way_free(small);
    if (t->n == 1 && only->way->workspace_bytes <= ki_tune_workspace(t->problem) + only->way->packed_bytes) {
        KI_TRY(ki_tune_time(t, &io, err)); /* does it run at all? */
        *ret_way = only->way;
        only->way = NULL;
    }
    ki_conv_way_free(only->way);
    memset(only, 0, sizeof *only);
    t->n = t->n_built = 0;
    return KITH_OK;
}

static void say_once(const ki_conv_contest *t) {
    if (!t->libraries->has_said)
        ki_log(KITH_LOG_INFO, "timing ways to compute convolutions of these sizes on this device%s",
               ki_remembered_is_kept(t->libraries->remembered) ? "; the next run will know them" : "");
    t->libraries->has_said = true;
}

kith_status ki_conv_tune(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                         ki_conv_tuning *ret_tuning, kith_error *err) {
    char key[512];
    ki_conv_contest *t = NULL;
    kith_status status = KITH_OK;
    *ret_way = NULL;
    KI_TRY(ki_zalloc_or(&t, 1, sizeof *t, "what is tried", err));
    t->backend = backend;
    t->problem = problem;
    KI_CHECK(ki_cuda_libraries_of(backend, &t->libraries, err));
    write_key(backend, problem, key, sizeof key);
    recall(t, key, ret_way);
    if (*ret_way) goto done;
    if (problem->mb > KI_TUNE_IMAGES) KI_CHECK(take_from_fewer(t, ret_way, err));
    if (*ret_way) {
        KI_CHECK(remember(t, key, *ret_way, err));
        goto done;
    }
    say_once(t);
    if (backend->options.deterministic) {
        KI_CHECK(pick_with_others(t, key, ret_way, err));
    } else {
        KI_CHECK(pick(t, ret_way, err));
        KI_CHECK(remember(t, key, *ret_way, err));
    }
    ki_log(KITH_LOG_DEBUG, "%s: %d offered, %d built, %d timed: %s", key, t->stats.n_offered,
           t->stats.n_built, t->stats.n_timed, (*ret_way)->text);
done:
    if (status != KITH_OK) {
        ki_conv_way_free(*ret_way);
        *ret_way = NULL;
    }
    if (ret_tuning) *ret_tuning = t->stats;
    for (int i = 0; i < t->n; i++) ki_conv_way_free(t->candidate[i].way);
    ki_free(t);
    return status;
}

void ki_conv_tune_end(ki_backend *backend) {
    ki_cuda_libraries *libraries = ki_cuda_of(backend)->libraries;
    if (!libraries) return;
    ki_cuda_free(backend, libraries->tune_memory);
    libraries->tune_memory = NULL;
    libraries->tune_bytes = 0;
    ki_remembered_save(libraries->remembered);
}
