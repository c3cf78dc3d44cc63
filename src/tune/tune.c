/* From a folder of photos to a model: the steps in their order, the clock, and what is said on the way. */
#include "tune/tune.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/text.h"
#include "io/lock.h"
#include "net/general.h"

static const double USUAL_MINUTES = 5, MOST_MINUTES = 1e6;

double ki_tune_seconds(const ki_tune *t) { return t->used_before + ki_seconds_now() - t->began; }

double ki_tune_left(const ki_tune *t) {
    const double left = t->seconds_allowed - ki_tune_seconds(t);
    return left > 0 ? left : 0;
}

static bool notify(ki_tune *t, const kith_train_event *event) {
    kith_train_event e = *event;
    e.run = t->folder;
    e.run_number = e.n_runs = 1;
    if (t->options->notify && t->options->notify(t->options->user, &e) != 0) t->must_stop = true;
    return t->must_stop;
}

bool ki_tune_say(ki_tune *t, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    ki_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return notify(t, &(kith_train_event){.kind = KITH_TRAIN_NOTE, .text = text});
}

int ki_tune_busy(void *user, int64_t n_done, int64_t n_all) {
    ki_tune *t = user;
    return notify(
        t, &(kith_train_event){.kind = KITH_TRAIN_BUSY, .text = t->busy, .n_done = n_done, .n_all = n_all});
}

kith_status ki_tune_stopped(kith_error *err) {
    return ki_fail(err, KITH_ECANCELED, "stopped on request; what was found out is kept");
}

/* ---- the run folder ---- */

static kith_status take_folder(ki_tune *t, kith_error *err) {
    ki_path path;
    bool is_mine = false;
    if (ki_is_file("%s/recipe.yaml", t->folder) && !ki_is_file("%s/tried.jsonl", t->folder)) {
        ki_fail(err, KITH_EINVAL, "%s holds a run of a recipe", t->folder);
        return ki_hint(err, KITH_EINVAL, "name another folder with --out");
    }
    KI_TRY(ki_make_folders(t->folder, err));
    KI_TRY(ki_path_print(&path, err, "%s/tune.lock", t->folder));
    KI_TRY(ki_lock_try(path.s, &t->lock, &is_mine, err));
    if (is_mine) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s is in use by another kith train", t->folder);
    return ki_hint(err, KITH_EIO, "wait for it, stop it, or name another folder with --out");
}

/* The one name of what has many, links followed; of what is not there yet, from the folder on that is. */
static kith_status find_real(const char *path, ki_path *ret, kith_error *err) {
    char real[PATH_MAX];
    ki_path whole;
    KI_TRY(ki_path_absolute(path, &whole, err));
    for (char *end = whole.s + strlen(whole.s); end > whole.s;) {
        const char was = *end;
        *end = '\0';
        const bool is_there = realpath(whole.s, real) != NULL;
        *end = was;
        if (is_there) return ki_path_print(ret, err, "%s%s", real, end);
        while (--end > whole.s && *end != '/') continue;
    }
    *ret = whole;
    return KITH_OK;
}

/* Run files among the photos would be a class. */
static kith_status check_apart(const kith_tune_options *o, kith_error *err) {
    ki_path photos, out;
    if (!ki_is_folder("%s", o->photos)) return KITH_OK;
    KI_TRY(find_real(o->photos, &photos, err));
    KI_TRY(find_real(o->out, &out, err));
    if (!ki_path_is_below(out.s, photos.s)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "the run folder %s is inside the photos' folder", o->out);
    return ki_hint(err, KITH_EINVAL, "name another with --out");
}

/* The same photos, model, device and seed as before, however they are spelled? */
static kith_status check_same(ki_tune *t, kith_error *err) {
    const kith_tune_options *o = t->options;
    char text[9000];
    ki_path photos, model = {KI_GENERAL};
    double now, then = 0;
    KI_TRY(find_real(o->photos, &photos, err));
    if (o->model && access(o->model, F_OK) == 0)
        KI_TRY(find_real(o->model, &model, err));
    else if (o->model)
        KI_TRY(ki_path_print(&model, err, "%s", o->model));
    const int n = ki_snprintf(text, sizeof text, "%s\n%s\n%s\n%lld", photos.s, model.s,
                              o->device ? o->device : "cpu", (long long)o->seed);
    now = (double)(ki_checksum(text,
                               n < 0                     ? 0
                               : (size_t)n < sizeof text ? (size_t)n
                                                         : sizeof text - 1,
                               0) >>
                   16);
    KI_TRY(ki_tune_decide(t, "begun", now, &then, err));
    if (now == then) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s was begun with other photos, or another model, device or seed", t->folder);
    return ki_hint(err, KITH_EINVAL, "name another folder with --out");
}

static kith_status prepare(ki_tune *t, kith_error *err) {
    const kith_tune_options *o = t->options;
    if (!o->photos || !*o->photos) return ki_fail(err, KITH_EINVAL, "there are no photos");
    if (!o->out || !*o->out) return ki_fail(err, KITH_EINVAL, "there is no run folder to write to");
    if (!(o->minutes >= 0) || o->minutes > MOST_MINUTES)
        return ki_fail(err, KITH_EINVAL, "%g minutes; wanted 0 to %.0f", o->minutes, MOST_MINUTES);
    if (o->seed < 0)
        return ki_fail(err, KITH_EINVAL, "the seed is %lld; wanted 0 or more", (long long)o->seed);
    const int n = ki_snprintf(t->folder, sizeof t->folder, "%s", o->out);
    if (n < 0 || (size_t)n >= sizeof t->folder)
        return ki_fail(err, KITH_EINVAL, "the run folder's name is too long");
    KI_TRY(check_apart(o, err));
    t->seconds_allowed = 60 * (o->minutes > 0 ? o->minutes : USUAL_MINUTES);
    KI_TRY(take_folder(t, err));
    KI_TRY(ki_tune_state_open(t, err));
    return check_same(t, err);
}

/* Nothing but what this function made is in a folder that had nothing to be trained on. */
static void undo(const ki_tune *t) {
    static const char *const names[] = {"tune.lock", "tried.jsonl"};
    ki_path path;
    if (ki_is_file("%s/photos.csv", t->folder)) return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (ki_path_print(&path, NULL, "%s/%s", t->folder, names[i]) == KITH_OK) (void)unlink(path.s);
    }
    (void)rmdir(t->folder);
}

kith_status ki_tune_run(const kith_tune_options *options, kith_tune_result *ret_result, kith_error *err) {
    kith_status status;
    ki_tune t = {.options = options, .began = ki_seconds_now(), .lock = -1, .file = -1};
    KI_CHECK(prepare(&t, err));
    KI_CHECK(ki_tune_open(&t, err));
    ki_tune_say(&t, "looking for the best model in %.3g minute%s (--minutes), from %s",
                t.seconds_allowed / 60, t.seconds_allowed == 60 ? "" : "s",
                options->model ? options->model : "general");
    KI_CHECK(ki_tune_look(&t, err));
    KI_CHECK(ki_tune_embed(&t, err));
    KI_CHECK(ki_tune_search(&t, err));
    KI_CHECK(ki_tune_fine(&t, err));
    KI_CHECK(ki_tune_finish(&t, ret_result, err));
done:
    if (status != KITH_OK && status != KITH_ECANCELED && t.lock >= 0) undo(&t);
    ki_tune_close(&t);
    ki_tune_state_close(&t);
    if (t.lock >= 0) close(t.lock);
    return status;
}
