/* Chooses between the two implementations of a learner, and makes the checks they share. */
#include "train/learner.h"
#include "embed/feed.h"
#include "objective/engine.h"

const char *ki_learner_group_name(ki_learner_group group) {
    static const char *const names[KI_N_GROUPS] = {"backbone", "embedding", "objective"};
    return names[group];
}

static kith_status check(const ki_learner_settings *s, kith_error *err) {
    if (s->batch < 1 || s->n_micro < 1)
        return ki_fail(err, KITH_EINVAL, "batches of %lld images, %d to a step; wanted at least 1 of each",
                       (long long)s->batch, s->n_micro);
    if (s->optim->accumulate != s->n_micro)
        return ki_fail(err, KITH_EINTERNAL, "the optimizer averages %lld micro-batches, the learner %d",
                       (long long)s->optim->accumulate, s->n_micro);
    if (!ki_comm_is_alone(s->comm) && s->backend->type->queues && !s->device_comm)
        return ki_fail(err, KITH_EINTERNAL, "%d ranks on device %s without a comm for the device",
                       s->comm->size, s->backend->type->name);
    if (s->net->embedding < 1)
        return ki_fail(err, KITH_EINVAL, "the network has no embedding layer; training needs one");
    return KITH_OK;
}

kith_status ki_learner_new(const ki_learner_settings *settings, ki_learner **ret_learner, kith_error *err) {
    KI_TRY(check(settings, err));
    const ki_learner_type *type = ki_engine_of(settings->backend) ? &ki_learner_device : &ki_learner_host;
    return type->make(settings, ret_learner, err);
}

void ki_learner_free(ki_learner *learner) {
    if (learner) learner->type->free(learner);
}

void ki_learner_drop_recordings(ki_learner *learner) {
    if (learner && learner->type->drop_recordings) learner->type->drop_recordings(learner);
}

kith_status ki_learner_add(ki_learner *learner, const ki_learner_batch *batch, uint64_t step,
                           kith_error *err) {
    if (batch->n != 0 || ki_comm_is_alone(learner->settings.comm))
        KI_TRY(ki_feed_check_size(batch->n, learner->settings.batch, err));
    if (learner->n_added >= learner->settings.n_micro)
        return ki_fail(err, KITH_EINTERNAL, "more than %d micro-batches in one step",
                       learner->settings.n_micro);
    KI_TRY(learner->type->add(learner, batch, step, learner->n_added, err));
    learner->n_added++;
    return KITH_OK;
}

kith_status ki_learner_update(ki_learner *learner, double lr, kith_error *err) {
    const int n = learner->n_added;
    if (n != learner->settings.n_micro)
        return ki_fail(err, KITH_EINTERNAL, "an update after %d of %d micro-batches", n,
                       learner->settings.n_micro);
    learner->n_added = 0;
    return learner->type->update(learner, n, lr, err);
}

kith_status ki_learner_read(ki_learner *learner, ki_learner_values *ret_values, kith_error *err) {
    return learner->type->read(learner, ret_values, err);
}

kith_status ki_learner_embedding(ki_learner *learner, ki_real *ret_embedding, kith_error *err) {
    return learner->type->embedding(learner, ret_embedding, err);
}

kith_status ki_learner_save(ki_learner *learner, kith_tensors_writer *writer, kith_error *err) {
    return learner->type->save(learner, writer, err);
}

kith_status ki_learner_save_begin(ki_learner *learner, kith_error *err) {
    return learner->type->save_begin ? learner->type->save_begin(learner, err) : KITH_OK;
}

void ki_learner_save_end(ki_learner *learner) {
    if (learner->type->save_end) learner->type->save_end(learner);
}

kith_status ki_learner_load(ki_learner *learner, const kith_tensors *tensors, kith_error *err) {
    return learner->type->load(learner, tensors, err);
}

const ki_plan *ki_learner_plan(const ki_learner *learner) { return learner->type->plan(learner); }

ki_engine *ki_learner_engine(const ki_learner *learner) {
    return learner->type->engine ? learner->type->engine(learner) : NULL;
}

kith_status ki_learner_pull(ki_learner *learner, kith_error *err) {
    return learner->type->pull ? learner->type->pull(learner, err) : KITH_OK;
}

kith_status ki_learner_push(ki_learner *learner, kith_error *err) {
    return learner->type->push ? learner->type->push(learner, err) : KITH_OK;
}
