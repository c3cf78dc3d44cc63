/* One run from recipe to result card. */
#include "train/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/text.h"

double ki_train_wall(const ki_train_state *run) { return run->wall_seconds + ki_seconds_now() - run->began; }

/* The first step of a process also makes plans and fills caches, so it says nothing of those that follow. */
static double seconds_left(const ki_train_state *run) {
    static const double LEAST_SECONDS = 2;
    const int64_t n = run->at.step - run->paced_from_step;
    const double seconds = run->at.seconds - run->paced_from_seconds;
    if (!run->is_paced || n <= 0 || seconds < LEAST_SECONDS) return 0;
    return seconds / (double)n * (double)(run->n_steps - run->at.step);
}

bool ki_train_notify(ki_train_state *run, const kith_train_event *event) {
    const ki_train_options *o = run->options;
    if (!o->notify || !run->writes) return run->must_stop;
    kith_train_event e = *event;
    e.run = run->folder.path;
    e.run_number = o->run_number;
    e.n_runs = o->n_runs;
    e.step = run->at.step;
    e.n_steps = run->n_steps;
    e.epoch = run->epoch;
    e.total = run->total;
    e.n_terms = run->n_terms;
    e.terms = run->term;
    e.lr = run->lr;
    e.images_per_second = run->images_per_second;
    e.seconds_left = seconds_left(run);
    if (o->notify(o->user, &e) != 0) run->must_stop = true;
    return run->must_stop;
}

int ki_train_tell_busy(void *user, int64_t n_done, int64_t n_all) {
    ki_train_state *run = user;
    return ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_BUSY,
                                                    .text = "judging",
                                                    .split = run->embedded_split,
                                                    .n_done = n_done,
                                                    .n_all = n_all});
}

kith_status ki_train_say(ki_train_state *run, kith_train_event_kind kind, kith_error *err, const char *fmt,
                         ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ki_train_notify(run, &(kith_train_event){.kind = kind, .text = text});
    if (!run->record) return KITH_OK;
    return ki_record_add_text(run->record, kind == KITH_TRAIN_WARNING ? "warning" : "note", run->at.step,
                              text, NULL, 0, err);
}

kith_status ki_train(const ki_train_options *options, ki_train_result *ret_result, kith_error *err) {
    kith_status status;
    ki_comm *comm = options->comm;
    ki_train_state run = {.options = options,
                          .recipe = options->recipe,
                          .comm = comm,
                          .writes = ki_comm_is_first(comm),
                          .folder = {.lock = -1},
                          .at = {.last_eval = -1, .best_step = -1},
                          .saved_step = -1,
                          .saved_eval = -1,
                          .began = ki_seconds_now()};
    const int threads_before = ki_threads();
    if (comm) comm->has_agreed = false;
    KI_CHECK(ki_train_agree(&run, ki_threads_ask(ki_train_threads(options->recipe, comm), err), err));
    status = run.writes ? ki_folder_open(options->folder, &run.folder, err)
                        : ki_folder_watch(options->folder, &run.folder, err);
    KI_CHECK(ki_train_agree(&run, status, err));
    if (options->resume && ki_folder_has(&run.folder, "result.json") &&
        ki_folder_has(&run.folder, "recipe.yaml")) {
        status = ki_train_read_result(options->folder, options->recipe, ret_result, err);
        goto done;
    }
    KI_CHECK(ki_train_setup(&run, err));
    KI_CHECK(ki_train_loop(&run, err));
    KI_CHECK(ki_train_finish(&run, ret_result, err));
done:
    if (status != KITH_OK && !ki_comm_is_alone(comm) && !comm->has_agreed) comm->is_lost = true;
    if (status != KITH_OK && run.folder.path && !ki_folder_has(&run.folder, "recipe.yaml"))
        ki_folder_undo(&run.folder);
    ki_train_release(&run);
    ki_threads_set(threads_before);
    return status;
}
