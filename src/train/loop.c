/* The loop: judge when it is due, save when it is due, take a step.
 *
 * At the top of the loop, `at.step` updates are done. What is due there (an evaluation, a checkpoint) depends
 * on the standing alone. So a run that was stopped anywhere and resumes from a checkpoint does the same things
 * in the same order. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/text.h"
#include "train/frozen.h"

/* A failed step. An error that is not about numbers is passed on as it is. */
static kith_status check_numbers(ki_train_state *run, kith_status status, kith_error *err) {
    if (status != KITH_ENUMERIC) return status;
    char what[200];
    ki_snprintf(what, sizeof what, "%.*s", (int)sizeof what - 1, err ? err->message : "");
    const bool is_known = run->comm && run->comm->has_agreed;
    ki_train_fail_numeric(run, run->at.step, what, err);
    /* The value and the gradients are the same on every rank, so every rank comes here. */
    return is_known ? status : ki_train_agree(run, status, err);
}

/* Without an image a rank has no statistics that it could add to those of the batch, and a device nothing to run on. */
static kith_status check_ranks(ki_train_state *run, int64_t n, kith_error *err) {
    const bool is_frozen = run->recipe->model.bn == 1;
    const bool is_host = run->backend->type->is_host;
    const bool may_be_empty = is_host && (is_frozen || !ki_graph_reads_batch(run->net.graph));
    if (ki_comm_is_alone(run->comm) || n >= run->comm->size || may_be_empty) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "a batch of %lld images for %d ranks; %s want an image for each", (long long)n,
            run->comm->size, is_host ? "batch norms" : "devices");
    ki_hint(err, KITH_EINVAL, "use fewer ranks%s batch.partial=false%s", is_host ? "," : " or",
            is_host ? ", or model.bn=frozen" : "");
    return ki_train_agree(run, KITH_EINVAL, err);
}

static kith_status add_batch(ki_train_state *run, kith_error *err) {
    ki_loader_batch batch;
    KI_TRY(ki_train_agree(run, ki_loader_next(run->loader, &batch, err), err));
    if (batch.n_all == 0) return ki_fail(err, KITH_EINTERNAL, "the loader has ended");
    KI_TRY(check_ranks(run, batch.n_all, err));
    for (int64_t i = 0; i < batch.n; i++) run->label[i] = run->class_of[batch.label[i]];
    const ki_learner_batch input = {.n = batch.n,
                                    .n_all = batch.n_all,
                                    .first = batch.first,
                                    .side = batch.side,
                                    .data = batch.data,
                                    .label = run->label,
                                    .window = batch.window};
    ki_train_recent_add(run, &batch);
    KI_TRY(check_numbers(run, ki_learner_add(run->learner, &input, (uint64_t)run->at.step, err), err));
    run->at.sampler = batch.after;
    run->at.n_images += batch.n_all;
    run->window_images += batch.n_all;
    run->last_n = batch.n;
    run->epoch = batch.epoch;
    run->side = run->recipe->sides.n ? batch.side : 0;
    return KITH_OK;
}

static kith_status step(ki_train_state *run, kith_error *err) {
    const ki_optim_settings *optim = &run->recipe->optim;
    const double began = ki_seconds_now();
    run->lr = ki_schedule_at(&optim->schedule, run->at.step, run->n_steps).lr;
    for (int64_t i = 0; i < optim->accumulate; i++) KI_TRY(add_batch(run, err));
    KI_TRY(check_numbers(run, ki_learner_update(run->learner, run->lr, err), err));
    run->at.step++;
    const double seconds = ki_seconds_now() - began;
    run->at.seconds += seconds;
    run->window_seconds += seconds;
    if (run->is_paced) return KITH_OK;
    run->is_paced = true;
    run->paced_from_step = run->at.step;
    run->paced_from_seconds = run->at.seconds;
    return KITH_OK;
}

static kith_status fail_values(ki_train_state *run, const ki_learner_values *values, kith_error *err) {
    return ki_train_fail_numeric(run, (int64_t)values->bad_step, "a value is not a finite number", err);
}

/* What the last step did: for the log, for the caller, and to check that its numbers are finite. */
static kith_status look(ki_train_state *run, kith_error *err) {
    ki_learner_values values;
    double alike = 0;
    const double began = ki_seconds_now();
    KI_TRY(ki_train_agree(run, ki_learner_read(run->learner, &values, err), err));
    const double seconds = ki_seconds_now() - began; /* includes waiting for a device */
    run->at.seconds += seconds;
    run->window_seconds += seconds;
    /* Values and gradients are the same on every rank. */
    if (!values.is_finite) return ki_train_agree(run, fail_values(run, &values, err), err);
    KI_TRY(ki_train_share_bad(run, err));
    if (!run->at.has_warned_alike) KI_TRY(ki_train_batch_alike(run, &alike, err));
    run->total = values.total;
    run->n_terms = (int)(values.n_terms < KI_MOST_TERMS ? values.n_terms : KI_MOST_TERMS);
    for (int i = 0; i < run->n_terms; i++)
        run->term[i] = (kith_term){values.term[i].name, values.term[i].value, values.term[i].weight};
    if (run->window_seconds > 0) run->images_per_second = (double)run->window_images / run->window_seconds;
    run->window_images = 0;
    run->window_seconds = 0;
    const ki_record_step line = {.step = run->at.step,
                                 .epoch = run->epoch,
                                 .side = run->side,
                                 .values = &values,
                                 .lr = run->lr,
                                 .images_per_second = run->images_per_second,
                                 .seconds = run->at.seconds};
    KI_TRY(ki_record_add_step(run->record, &line, err));
    return ki_train_watch(run, &values, alike, err);
}

static bool is_eval_due(const ki_train_state *run) {
    const int64_t every = run->recipe->eval.every, at = run->at.step;
    if (run->at.last_eval >= at) return false;
    return at == 0 || at >= run->n_steps || (every > 0 && at % every == 0);
}

/* Checkpoints do not change the run, so the clock may decide when to make one: the first rank's. */
static kith_status is_save_due(ki_train_state *run, bool *ret, kith_error *err) {
    const ki_recipe *r = run->recipe;
    *ret = false;
    if (run->at.step == 0 || run->saved_step == run->at.step) return KITH_OK;
    *ret = run->at.step % r->checkpoint_every == 0;
    if (*ret || !(r->checkpoint_minutes > 0)) return KITH_OK;
    *ret = ki_seconds_now() - run->saved_time > 60 * r->checkpoint_minutes;
    return ki_train_first_says(run, ret, err);
}

/* Never save parameters that are not finite. */
static kith_status save(ki_train_state *run, kith_error *err) {
    ki_learner_values values;
    kith_status status = KITH_OK;
    if (run->last_n > 0 && run->writes) { /* a step was taken */
        status = ki_learner_read(run->learner, &values, err);
        if (status == KITH_OK && !values.is_finite) status = fail_values(run, &values, err);
    }
    KI_TRY(ki_train_agree(run, status, err));
    KI_TRY(ki_train_save(run, err));
    run->saved_time = ki_seconds_now();
    return KITH_OK;
}

static kith_status stop(ki_train_state *run, kith_error *err) {
    KI_TRY(ki_train_agree(run, save(run, err), err));
    ki_fail(err, KITH_ECANCELED, "stopped on request at step %lld of %lld; %s can be resumed",
            (long long)run->at.step, (long long)run->n_steps, run->folder.path);
    return ki_train_agree(run, KITH_ECANCELED, err);
}

/* With only one class every model scores 100 %. */
static kith_status warn_of_few_classes(ki_train_state *run, kith_error *err) {
    if (run->selection != KI_SELECT_VALIDATION) return KITH_OK;
    const int32_t first = run->set->item[run->validation.item[0]].label;
    for (int64_t i = 0; i < run->validation.n; i++) {
        if (run->set->item[run->validation.item[i]].label != first) return KITH_OK;
    }
    return ki_train_say(
        run, KITH_TRAIN_WARNING, err,
        "only one class is held out for validation, and every model scores 100 %% on it; hold out "
        "more with data.validation, or set eval.select=last");
}

/* oneDNN's convolutions and batch norms may sum per thread: with another number of threads they round differently. */
static kith_status note_threads(ki_train_state *run, kith_error *err) {
    const int64_t before = run->at.n_threads;
    run->at.n_threads = ki_threads();
    if (before == 0 || before == run->at.n_threads || strcmp(run->backend->type->name, "cpu") != 0)
        return KITH_OK;
    return ki_train_say(
        run, KITH_TRAIN_NOTE, err,
        "resuming with %d threads instead of %lld: sums round differently, so the model will differ from "
        "an uninterrupted run's in its last bits",
        ki_threads(), (long long)before);
}

/* "…, batches of 32" or, over ranks, "…, batches of 32 over 4 ranks". */
static void tell_begin(ki_train_state *run) {
    char text[480], ranks[40] = "", classes[60], sides[80] = "", list[60];
    const int64_t n_rest = run->train.n - run->n_labelled;
    ki_snprintf(classes, sizeof classes, "%lld images of %d classes", (long long)run->n_labelled,
                run->n_classes);
    if (n_rest > 0)
        ki_snprintf(classes + strlen(classes), sizeof classes - strlen(classes), " and %lld without",
                    (long long)n_rest);
    if (!ki_comm_is_alone(run->comm)) ki_snprintf(ranks, sizeof ranks, " over %d ranks", run->comm->size);
    if (run->recipe->sides.n)
        ki_snprintf(sides, sizeof sides, " at %s pixels",
                    ki_crop_sides_text(&run->recipe->sides, list, sizeof list));
    ki_snprintf(text, sizeof text, "%s%s on %.200s: %s, batches of %lld%s%s",
                run->recipe->model.frozen ? "the embedding layer of " : "",
                ki_train_model(run)->backbone->name, run->set->root, classes, (long long)run->batch, ranks,
                sides);
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_BEGIN, .text = text});
}

kith_status ki_train_loop(ki_train_state *run, kith_error *err) {
    kith_status status = KITH_OK;
    tell_begin(run);
    if (run->at.step == 0) status = warn_of_few_classes(run, err);
    if (status == KITH_OK) status = note_threads(run, err);
    run->saved_time = ki_seconds_now();
    for (;;) {
        KI_TRY(ki_train_agree(run, status, err));
        if (is_eval_due(run)) {
            status = ki_train_evaluate(run, err);
            if (status == KITH_ECANCELED) return stop(run, err);
            KI_TRY(status);
        }
        const bool is_done = run->at.is_stopped || run->at.step >= run->n_steps;
        bool is_due = is_done;
        if (!is_done) KI_TRY(is_save_due(run, &is_due, err));
        if (is_due) status = save(run, err);
        KI_TRY(ki_train_agree(run, status, err));
        if (is_done) return KITH_OK;
        if (run->must_stop) return stop(run, err);
        KI_TRY(step(run, err));
        const bool is_last = run->at.step >= run->n_steps;
        if (run->at.step % run->recipe->log_every == 0 || is_last || is_eval_due(run))
            status = look(run, err);
        ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_STEP});
    }
}
