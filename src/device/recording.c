/* When queued work is recorded, and when the recording is launched instead. */
#include "device/recording.h"

static bool can_record(const ki_recording *r, const ki_backend *backend) {
    return backend->type->recording.begin && !r->is_off && !backend->probe;
}

bool ki_recording_is_due(const ki_recording *r, const ki_backend *backend) {
    return can_record(r, backend) && !r->recorded && r->n_queued >= KI_RECORDING_WARM_UPS;
}

bool ki_recording_is_ready(const ki_recording *r, const ki_backend *backend) {
    return can_record(r, backend) && r->recorded;
}

static kith_status record(ki_recording *r, ki_backend *backend, ki_recording_fn queue, void *user,
                          kith_error *err) {
    const ki_backend_type *type = backend->type;
    kith_error second;
    void *recorded = NULL;
    KI_TRY(type->recording.begin(backend, err));
    const kith_status status = queue(user, err);
    const kith_status ended = type->recording.end(backend, &recorded, status == KITH_OK ? err : &second);
    if (status == KITH_OK && ended == KITH_OK) {
        r->recorded = recorded;
        return KITH_OK;
    }
    if (ended == KITH_OK) type->recording.free(backend, recorded);
    return status == KITH_OK ? ended : status;
}

kith_status ki_recording_run(ki_recording *r, ki_backend *backend, ki_recording_fn queue, void *user,
                             kith_error *err) {
    if (ki_recording_is_due(r, backend)) KI_TRY(record(r, backend, queue, user, err));
    if (ki_recording_is_ready(r, backend)) return backend->type->recording.launch(backend, r->recorded, err);
    r->n_queued++;
    return queue(user, err);
}

void ki_recording_release(ki_recording *r, ki_backend *backend) {
    if (r->recorded) backend->type->recording.free(backend, r->recorded);
    r->recorded = NULL;
}
