/* Resuming a run: does it belong to this recipe, did it begin with this data and these weights, and which of its
 * checkpoints is intact? Nothing in the folder is changed before all of that is known. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "net/model_file.h"
#include "train/run.h"

kith_status ki_train_check_folder(ki_train_state *run, kith_error *err) {
    if (!ki_folder_has(&run->folder, "recipe.yaml")) return KITH_OK;
    if (!run->options->resume) {
        ki_fail(err, KITH_EINVAL, "%s already holds a run", run->folder.path);
        return ki_hint(err, KITH_EINVAL, "resume it with --resume, or begin a new run with another --out");
    }
    ki_path path;
    ki_recipe *there = NULL;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "recipe.yaml"));
    const ki_recipe_source source = {.path = path.s};
    kith_status status = ki_recipe_read(&source, &there, err);
    if (status == KITH_OK) status = ki_recipe_same(there, run->recipe, run->folder.path, err);
    if (status == KITH_OK) {
        const int64_t then = there->checkpoint_every, now = run->recipe->checkpoint_every;
        run->first_checkpoint = then > now ? then : now; /* either may have been in use */
        /* The same run, though the paths of its files may have changed: its checkpoints have the hash of the
         * recipe it began with. */
        ki_train_hash_recipe(there, run->recipe_hash);
    }
    ki_recipe_free(there);
    if (status != KITH_OK) return status;
    run->has_begun = true;
    return ki_train_read_run(run->folder.path, &run->beginning, err);
}

/* ---- checkpoints ---- */

static kith_status open_checkpoint(const ki_train_state *run, int64_t step, ki_checkpoint *ret,
                                   kith_error *err) {
    ki_path path;
    KI_TRY(ki_folder_at(&run->folder, &path, err, KI_CHECKPOINT_NAME, (long long)step));
    KI_TRY(ki_checkpoint_open(path.s, run->recipe_hash, ret, err));
    if (ret->at.step == step) return KITH_OK;
    const int64_t found = ret->at.step;
    ki_checkpoint_release(ret);
    return ki_fail(err, KITH_EFORMAT, "%s: it is the checkpoint of step %lld, under another's name", path.s,
                   (long long)found);
}

/* A lack of memory, or a file of a newer kith, does not mean that the checkpoint is damaged. */
static bool is_damage(kith_status status) { return status == KITH_EFORMAT || status == KITH_EIO; }

kith_status ki_train_find_checkpoint(const ki_train_state *run, ki_checkpoint *ret, int64_t *ret_step,
                                     kith_error *err) {
    int64_t step = INT64_MAX;
    int n_damaged = 0;
    kith_error newest;
    for (;;) {
        KI_TRY(ki_folder_checkpoint_before(&run->folder, step, &step, err));
        if (step < 0) break;
        kith_error why = {0};
        const kith_status status = open_checkpoint(run, step, ret, &why);
        if (n_damaged == 0) newest = why;
        if (status == KITH_OK) return *ret_step = step, KITH_OK;
        if (!is_damage(status)) {
            if (err) *err = why;
            return status;
        }
        n_damaged++;
    }
    *ret_step = -1;
    if (n_damaged == 0) return KITH_OK;
    if (n_damaged == 1)
        ki_fail(err, KITH_EFORMAT, "%s", newest.message);
    else
        ki_fail(err, KITH_EFORMAT, "none of the %d checkpoints is sound; the newest: %s", n_damaged,
                newest.message);
    return ki_hint(err, KITH_EFORMAT,
                   "put a copy back, or remove the damaged and log.jsonl to begin the run again at step 0");
}

kith_status ki_train_check_fresh(ki_train_state *run, kith_error *err) {
    int64_t step = -1;
    if (!run->has_begun) return KITH_OK;
    KI_TRY(ki_record_last_step(run->folder.path, &step, err));
    if (step < 0) return KITH_OK;
    if (step <= run->first_checkpoint)
        return ki_train_say(
            run, KITH_TRAIN_NOTE, err,
            "%s was killed at step %lld or later, before its first checkpoint: it begins again",
            run->folder.path, (long long)step);
    ki_fail(err, KITH_EIO, "%s/checkpoints holds no checkpoint, and log.jsonl has steps up to %lld",
            run->folder.path, (long long)step);
    return ki_hint(err, KITH_EIO,
                   "put the checkpoints back, or remove log.jsonl to begin the run again at step 0");
}

/* Checkpoints newer than the one in use are damaged. They are renamed: under their names they would count among those
 * to keep, and good ones would be removed. */
static kith_status set_aside(ki_train_state *run, kith_error *err) {
    int64_t step = INT64_MAX;
    for (;;) {
        ki_checkpoint unused = {0};
        kith_error why = {0};
        ki_path path, aside;
        KI_TRY(ki_folder_checkpoint_before(&run->folder, step, &step, err));
        if (step <= run->from_step) return KITH_OK;
        KI_TRY(ki_folder_at(&run->folder, &path, err, KI_CHECKPOINT_NAME, (long long)step));
        KI_TRY(ki_path_print(&aside, err, "%s.damaged", path.s));
        if (open_checkpoint(run, step, &unused, &why) == KITH_OK) {
            ki_checkpoint_release(&unused);
            ki_snprintf(why.message, sizeof why.message, "%.400s could not be read", path.s);
        }
        if (rename(path.s, aside.s) != 0)
            return ki_fail(err, KITH_EIO, "cannot rename %s: %s", path.s, strerror(errno));
        KI_TRY(ki_train_say(
            run, KITH_TRAIN_WARNING, err,
            "%s; it was renamed to step-%08lld.safetensors.damaged; the run resumes from step %lld",
            why.message, (long long)step, (long long)run->from_step));
    }
}

/* The end of the run needs the best model so far, unless a later one is better. If it is missing or was replaced, say
 * so now and not after hours. */
static kith_status check_best(const ki_train_state *run, kith_error *err) {
    ki_best_found found;
    const ki_standing *at = &run->from.at;
    if (at->best_step < 0) return KITH_OK;
    kith_status status = ki_best_look(run, at, &found, NULL, err);
    /* A file from an evaluation after the checkpoint is fine: that evaluation is repeated and writes it
     * again. */
    if (status == KITH_OK && found.is_other && (!found.is_ours || found.step <= at->last_eval))
        status = ki_best_fail_other(run, at, err);
    if (status != KITH_OK)
        ki_hint(err, status, "it is the best model so far, of step %lld: put a copy back, or begin a new run",
                (long long)at->best_step);
    return status;
}

kith_status ki_train_restore(ki_train_state *run, kith_error *err) {
    KI_TRY(check_best(run, err));
    const kith_status status = ki_checkpoint_restore(&run->from, run->learner, err);
    if (status != KITH_OK)
        return ki_prefix(err, status, "%s/" KI_CHECKPOINT_NAME, run->folder.path, (long long)run->from_step);
    run->at = run->from.at;
    run->saved_step = run->at.step;
    run->saved_eval = run->at.last_eval;
    run->wall_seconds = run->at.wall_seconds;
    ki_checkpoint_release(&run->from);
    return run->writes ? set_aside(run, err) : KITH_OK;
}

/* ---- data and weights ---- */

/* Without the list of images: their numbers, and which classes were training or validation classes. */
static void put_counts(const ki_train_state *run, const ki_beginning *then, bool folds_differ,
                       const char *split, ki_buffer *words) {
    const int64_t held_then = folds_differ ? then->n_validation : 0,
                  held = folds_differ ? run->validation.n : 0;
    const struct {
        const char *name;
        int64_t then, now;
    } rows[] = {{"training", then->n_train + held_then, run->train.n + held},
                {"validation", then->n_validation - held_then, run->validation.n - held},
                {"test", then->n_test, run->test.n}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].then != rows[i].now)
            ki_buffer_put(words, "%s%lld %s images instead of %lld", words->n ? ", " : "",
                          (long long)rows[i].now, rows[i].name, (long long)rows[i].then);
    }
    ki_buffer classes = {0};
    if (ki_dataset_compare(run->set, split, folds_differ, &classes, NULL) == KITH_OK && classes.n > 0)
        ki_buffer_put(words, "%son the training side %.*s", words->n ? "; " : "", (int)classes.n,
                      classes.data);
    ki_buffer_release(&classes);
}

/* How the data differs from what a run in `folder` saw. If the list cannot be read, counts and training classes
 * are compared instead. */
static kith_status put_difference(const ki_train_state *run, const char *folder, const ki_beginning *then,
                                  bool folds_differ, ki_buffer *words, kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/" KI_DATA_LIST, folder));
    const kith_status status = ki_dataset_compare(run->set, path.s, folds_differ, words, err);
    if (status == KITH_OK || status == KITH_ENOMEM) return status;
    KI_TRY(ki_path_print(&path, err, "%s/split.csv", folder));
    put_counts(run, then, folds_differ, path.s, words);
    return words->status;
}

static kith_status fail_data(const ki_train_state *run, const char *folder, const ki_buffer *words,
                             kith_error *err) {
    ki_fail(err, KITH_EINVAL, "%s is not the data that %s began with: %.*s", run->set->root, folder,
            words->n < 400 ? (int)words->n : 400, words->n ? words->data : "");
    return ki_hint(err, KITH_EINVAL,
                   "put the data back as it was, or begin a new run in another folder with --out");
}

kith_status ki_train_check_data(ki_train_state *run, kith_error *err) {
    const ki_train_options *o = run->options;
    kith_status status = KITH_OK;
    ki_buffer words = {.err = err};
    if (run->has_begun && strcmp(run->beginning.data_hash, run->data_hash) != 0) {
        KI_CHECK(put_difference(run, run->folder.path, &run->beginning, false, &words, err));
        if (words.n == 0) ki_buffer_put(&words, "other images, or the same in another order");
        status = fail_data(run, run->folder.path, &words, err);
    } else if (!run->has_begun && o->sibling) {
        ki_beginning then;
        KI_CHECK(ki_train_read_run(o->sibling, &then, err));
        KI_CHECK(put_difference(run, o->sibling, &then, o->folds_differ, &words, err));
        if (words.n > 0) status = fail_data(run, o->sibling, &words, err);
    }
done:
    ki_buffer_release(&words);
    return status;
}

kith_status ki_train_check_teacher(ki_train_state *run, int t, kith_error *err) {
    const char *found = run->teacher[t].hash, *wanted = run->beginning.teacher_hash[t];
    if (!run->has_begun || strcmp(found, wanted) == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL,
            "teachers.%d: %s is not the teacher that %s began with: SHA-256 %.16s…, wanted %.16s…", t,
            run->recipe->teacher[t].weights, run->folder.path, found, wanted);
    return ki_hint(err, KITH_EINVAL, "put the file back, or begin a new run in another folder with --out");
}

kith_status ki_train_check_weights(ki_train_state *run, bool *ret_are_there, kith_error *err) {
    const char *path = run->recipe->model.weights;
    char file[PATH_MAX];
    *ret_are_there = false;
    if (!*path) return KITH_OK;
    if (run->from.tensors && access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        memcpy(run->weights_hash, run->beginning.weights_hash, sizeof run->weights_hash);
        return KITH_OK;
    }
    *ret_are_there = true;
    if (ki_model_file_is_name(path))
        return ki_model_file_find(path, file, sizeof file, err); /* says why not */
    KI_TRY(kith_file_hash(path, run->weights_hash, err));
    if (!run->has_begun || strcmp(run->weights_hash, run->beginning.weights_hash) == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s are not the weights that %s began with: SHA-256 %.16s…, wanted %.16s…",
            path, run->folder.path, run->weights_hash, run->beginning.weights_hash);
    return ki_hint(
        err, KITH_EINVAL,
        "put the file back, or move it away: a run that has a checkpoint does not need it; or begin a "
        "new run in another folder with --out");
}
