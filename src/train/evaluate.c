/* Judging between steps, and the choice of the best model. */
#include "base/clock.h"
#include "embed/views.h"
#include "train/run.h"

/* Each rank has let pass so many in its part. */
static kith_status check_bad(const ki_train_state *run, int64_t n, ki_vectors *all, kith_error *err) {
    const int64_t n_bad = n - all->n, most = run->recipe->most_bad;
    if (most < 0 || n_bad <= most) return KITH_OK;
    ki_vectors_release(all);
    ki_fail(err, KITH_EFORMAT, "images that cannot be read: %lld on all ranks, more than the %lld allowed",
            (long long)n_bad, (long long)most);
    return ki_hint(err, KITH_EFORMAT, "look at the files with `kith data ROOT --check`");
}

static kith_status embed(ki_train_state *run, const int64_t *items, int64_t n, const char *tap,
                         const ki_describer *describer, int64_t n_views, ki_vectors *ret_vectors,
                         kith_error *err) {
    int64_t first = 0, n_own = 0;
    run->embedded_split = items == run->validation.item ? "validation"
                          : items == run->test.item     ? "test"
                          : items == run->seen.item     ? "seen"
                                                        : NULL;
    ki_comm_own(run->comm, n, &first, &n_own);
    const ki_embed_request request = {.set = run->set,
                                      .items = items + first,
                                      .n = n_own,
                                      .tap = tap,
                                      .describer = describer,
                                      .most_bad = run->recipe->most_bad,
                                      .progress = ki_train_tell_busy,
                                      .user = run};
    if (ki_comm_is_alone(run->comm))
        return ki_views_items(run->embedder, &request, n_views, ret_vectors, err);
    ki_vectors own = {0};
    const kith_status status = n_own ? ki_views_items(run->embedder, &request, n_views, &own, err) : KITH_OK;
    KI_TRY(ki_train_gather_vectors(run, status, &own, ret_vectors, err));
    return ki_train_agree(run, check_bad(run, n, ret_vectors, err), err);
}

kith_status ki_train_embed(ki_train_state *run, const int64_t *items, int64_t n, const char *tap,
                           const ki_describer *describer, ki_vectors *ret_vectors, kith_error *err) {
    return embed(run, items, n, tap, describer, 1, ret_vectors, err);
}

kith_status ki_train_embed_judged(ki_train_state *run, const int64_t *items, int64_t n,
                                  ki_vectors *ret_vectors, kith_error *err) {
    return embed(run, items, n, "embedding", NULL, run->recipe->eval.views, ret_vectors, err);
}

static kith_status judge(ki_train_state *run, const ki_items *items, const char *split, ki_scores *ret_scores,
                         kith_error *err) {
    kith_status status = KITH_OK;
    ki_vectors v = {0};
    ki_scores scores = {0};
    ki_variant_list variants = {0};
    const ki_recipe *r = run->recipe;
    const double began = ki_seconds_now();
    if (run->description) KI_CHECK(ki_train_variants_judge(run, items, &scores, &variants, err));
    if (!scores.is_there) {
        KI_CHECK(ki_train_embed_judged(run, items->item, items->n, &v, err));
        status = ki_judge_scores(&v, r->k, r->n_k, run->comm, &scores, NULL, err);
    }
    scores.step = run->at.step;
    scores.seconds = ki_seconds_now() - began;
    if (status == KITH_OK)
        status = ki_record_add_eval(run->record, run->at.step, split, r->n_k, r->k, &scores, &variants, err);
    KI_CHECK(ki_train_agree(run, status, err));
    *ret_scores = scores;
done:
    ki_vectors_release(&v);
    ki_variant_list_release(&variants);
    return status;
}

static void tell(ki_train_state *run, const char *split, const ki_scores *scores, bool is_best) {
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_EVAL,
                                             .split = split,
                                             .recall_at_1 = scores->recall[0],
                                             .map_at_r = scores->map_at_r,
                                             .is_best = is_best});
}

/* Is this the best model so far? Then keep it. */
static kith_status choose(ki_train_state *run, const ki_scores *scores, bool *ret_is_best, kith_error *err) {
    const double score = run->recipe->eval.metric == KI_BY_R_AT_1 ? scores->recall[0] : scores->map_at_r;
    ki_standing *at = &run->at;
    const bool is_gain = at->best_step < 0 || score > at->best_score;
    at->n_without_gain = is_gain ? 0 : at->n_without_gain + 1;
    if (run->recipe->eval.patience > 0 && at->n_without_gain >= run->recipe->eval.patience)
        at->is_stopped = true;
    /* Of models with the same score, keep the one that was trained longest. */
    *ret_is_best = is_gain || score == at->best_score;
    if (!*ret_is_best) return KITH_OK;
    KI_TRY(ki_best_save(run, err));
    at->best_score = score;
    at->best_validation = *scores;
    at->best_seen = at->last_seen;
    return KITH_OK;
}

static kith_status evaluate(ki_train_state *run, kith_error *err) {
    const ki_recipe_eval *eval = &run->recipe->eval;
    const ki_standing before = run->at;
    const int64_t log_bytes = ki_record_bytes(run->record);
    ki_standing *at = &run->at;
    ki_scores test = {0};
    kith_status status = KITH_OK;
    bool is_best = false;
    const bool on_test = run->selection == KI_SELECT_TEST;
    KI_CHECK(ki_train_variants_begin(run, err));
    if (run->seen.n > 0) {
        KI_CHECK(judge(run, &run->seen, "seen", &at->last_seen, err));
        tell(run, "seen", &at->last_seen, false);
    }
    if (run->test.n > 0 && (on_test || eval->watch_test || (at->step == 0 && eval->untrained))) {
        KI_CHECK(judge(run, &run->test, "test", &test, err));
        if (eval->watch_test && (!at->best_test.is_there || test.recall[0] > at->best_test.recall[0]))
            at->best_test = test;
        if (at->step == 0) at->untrained = test;
        if (on_test) KI_CHECK(ki_train_agree(run, choose(run, &test, &is_best, err), err));
        tell(run, "test", &test, on_test && is_best);
    }
    if (run->validation.n > 0) {
        KI_CHECK(judge(run, &run->validation, "validation", &at->last_validation, err));
        if (at->step == 0) at->untrained_validation = at->last_validation;
        if (run->selection == KI_SELECT_VALIDATION)
            KI_CHECK(ki_train_agree(run, choose(run, &at->last_validation, &is_best, err), err));
        tell(run, "validation", &at->last_validation, run->selection == KI_SELECT_VALIDATION && is_best);
        status = ki_train_watch_alike(run, at->last_validation.alike, true, err);
        KI_CHECK(ki_train_agree(run, status, err));
    }
    at->last_eval = at->step;
    KI_CHECK(ki_train_share_standing(run, err));
    if (at->is_stopped)
        KI_CHECK(ki_train_say(run, KITH_TRAIN_NOTE, err,
                              "no better score in %lld evaluations; training stops at step %lld",
                              (long long)at->n_without_gain, (long long)at->step));
done:
    /* An evaluation that was interrupted leaves nothing behind, not even in the log: the next one logs its
     * splits again. */
    if (status != KITH_OK) run->at = before;
    if (status == KITH_ECANCELED && ki_record_cut(run->record, log_bytes, err) != KITH_OK) status = KITH_EIO;
    return status;
}

/* With optim.ema the average is judged, and may be the best model. */
kith_status ki_train_evaluate(ki_train_state *run, kith_error *err) {
    KI_TRY(ki_train_agree(run, ki_learner_swap(run->learner, err), err));
    const kith_status status = evaluate(run, err);
    const kith_status back = ki_learner_swap(run->learner, status == KITH_OK ? err : NULL);
    return status == KITH_OK ? back : status;
}
