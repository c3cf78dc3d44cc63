/* Recording: work that is queued on a backend again and again, recorded once and launched as a whole.
 *
 *     ki_recording forward = {0};
 *     for each batch: ki_recording_run(&forward, backend, queue_forward, user, err);
 *     ki_recording_release(&forward, backend);
 *
 * The first KI_RECORDING_WARM_UPS runs are queued kernel by kernel, while libraries load and choose what they run; the
 * next one is recorded. The work must queue the same kernels on the same memory every time. If the backend cannot
 * record, or a probe measures it (backend->probe), every run is queued. */
#ifndef KI_RECORDING_H
#define KI_RECORDING_H

#include "device/backend.h"

enum { KI_RECORDING_WARM_UPS = 2 };

typedef struct ki_recording {
    bool is_off; /* queue every run, record none */
    int n_queued;
    void *recorded; /* NULL: not yet */
} ki_recording;

/* Queues the work; must be fit for capture (device/backend.h) from the third call on. */
typedef kith_status (*ki_recording_fn)(void *user, kith_error *err);

/* A launched run repeats only the queued work. Anything else that the function does on the host happens in queued runs and in
 * the run that is recorded, not in launched ones. */
kith_status ki_recording_run(ki_recording *recording, ki_backend *backend, ki_recording_fn queue, void *user,
                             kith_error *err);
/* Whether the next run will be recorded, and whether it will be launched from the recording. */
bool ki_recording_is_due(const ki_recording *recording, const ki_backend *backend);
bool ki_recording_is_ready(const ki_recording *recording, const ki_backend *backend);

void ki_recording_release(ki_recording *recording, ki_backend *backend); /* fine on a zeroed struct */

#endif
