/* Judging between steps, and the choice of the best model. */
#include <string.h>

#include "core/clock.h"
#include "net/weights.h"
#include "train/run.h"

kith_status ki_train_judge(ki_train_state *run, const ki_items *items, const char *split,
                           ki_scores *ret_scores, ki_embedded *ret_embedded, kith_error *err) {
    kith_status status;
    ki_embedded e = {0};
    const double began = ki_seconds_now();
    KI_CHECK(ki_judge_embed(run->judge, items->item, items->n, "embedding", &e, err));
    KI_CHECK(ki_judge_score(run->judge, &e, ret_scores, NULL, err));
    ret_scores->step = run->at.step;
    ret_scores->seconds = ki_seconds_now() - began;
    KI_CHECK(ki_record_add_eval(run->record, run->at.step, split, run->recipe->n_k, run->recipe->k,
                                ret_scores, err));
    if (ret_embedded) {
        *ret_embedded = e;
        e = (ki_embedded){0};
    }
done:
    ki_embedded_release(&e);
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
    /* Of models that score the same, the one that has learnt longest. */
    *ret_is_best = is_gain || score == at->best_score;
    if (!*ret_is_best) return KITH_OK;
    ki_path path;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "best.safetensors"));
    KI_TRY(ki_weights_save(&run->net, run->params, path.s, err));
    at->best_step = at->step;
    at->best_score = score;
    at->best_validation = *scores;
    at->best_seen = at->last_seen;
    return KITH_OK;
}

kith_status ki_train_evaluate(ki_train_state *run, kith_error *err) {
    const ki_recipe_eval *eval = &run->recipe->eval;
    const ki_standing before = run->at;
    ki_standing *at = &run->at;
    ki_scores test = {0};
    kith_status status = KITH_OK;
    bool is_best = false;
    const bool on_test = run->selection == KI_SELECT_TEST;
    if (run->seen.n > 0) {
        KI_CHECK(ki_train_judge(run, &run->seen, "seen", &at->last_seen, NULL, err));
        tell(run, "seen", &at->last_seen, false);
    }
    if (run->test.n > 0 && (on_test || eval->watch_test || (at->step == 0 && eval->untrained))) {
        KI_CHECK(ki_train_judge(run, &run->test, "test", &test, NULL, err));
        if (eval->watch_test && (!at->best_test.is_there || test.recall[0] > at->best_test.recall[0]))
            at->best_test = test;
        if (at->step == 0) at->untrained = test;
        if (on_test) KI_CHECK(choose(run, &test, &is_best, err));
        tell(run, "test", &test, on_test && is_best);
    }
    if (run->validation.n > 0) {
        KI_CHECK(ki_train_judge(run, &run->validation, "validation", &at->last_validation, NULL, err));
        if (at->step == 0) at->untrained_validation = at->last_validation;
        if (run->selection == KI_SELECT_VALIDATION)
            KI_CHECK(choose(run, &at->last_validation, &is_best, err));
        tell(run, "validation", &at->last_validation, run->selection == KI_SELECT_VALIDATION && is_best);
        KI_CHECK(ki_train_watch_alike(run, at->last_validation.alike, true, err));
    }
    at->last_eval = at->step;
    if (at->is_stopped)
        KI_CHECK(ki_train_say(run, KITH_TRAIN_NOTE, err,
                              "no better score in %lld evaluations: training stops at step %lld",
                              (long long)at->n_without_gain, (long long)at->step));
done:
    /* An evaluation that was cut short has not been. */
    if (status != KITH_OK) run->at = before;
    return status;
}
