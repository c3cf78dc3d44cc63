/* kith_train_run: the recipe, the runs it asks for, and a report of each. */
#include "kith/train.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/log.h"
#include "kith/report.h"
#include "train/repeat.h"

/* Where the recipe is: a file, or the recipe of a run folder. */
static kith_status find_recipe(const kith_train_options *o, ki_path *path, const char **ret_out,
                               kith_error *err) {
    *ret_out = o->out;
    if (o->recipe_text) return KITH_OK;
    if (!o->recipe) return ki_fail(err, KITH_EINVAL, "there is no recipe");
    if (!ki_is_folder("%s", o->recipe)) return ki_path_print(path, err, "%s", o->recipe);
    if (!o->out) *ret_out = o->recipe;
    return ki_path_print(path, err, "%s/recipe.yaml", o->recipe);
}

static kith_status read_recipe(const kith_train_options *o, ki_recipe **ret_recipe, const char **ret_out,
                               kith_error *err) {
    kith_status status;
    ki_path path;
    const char **sets = NULL;
    size_t n = 0;
    KI_CHECK(ki_need_strings(o->sets, o->n_sets, "sets", err));
    KI_CHECK(find_recipe(o, &path, ret_out, err));
    KI_CHECK(ki_alloc_or(&sets, (size_t)o->n_sets + 1, sizeof *sets, "overrides", err));
    if (o->allow_test_selection) sets[n++] = "eval.select=test";
    for (int64_t i = 0; i < o->n_sets; i++) sets[n++] = o->sets[i];
    const ki_recipe_source source = {.path = path.s, .text = o->recipe_text, .sets = sets, .n_sets = n};
    KI_CHECK(ki_recipe_read(&source, ret_recipe, err));
    if ((*ret_recipe)->eval.select == KI_SELECT_TEST && !o->allow_test_selection && !o->resume) {
        ki_recipe_free(*ret_recipe);
        *ret_recipe = NULL;
        ki_fail(err, KITH_EINVAL,
                "the recipe chooses the best model on the test classes (eval.select: test)");
        status = ki_hint(
            err, KITH_EINVAL,
            "figures of such a model are not those of unseen classes; --allow-test-selection allows it");
    }
done:
    ki_free(sets);
    return status;
}

/* If these cannot be written, the run still succeeds, with a warning. A folder of several runs has no model. */
static kith_status write_report(void *user, const char *folder, kith_error *err) {
    kith_error why;
    const bool *no_report = user;
    (void)err;
    if (ki_is_file("%s/model.safetensors", folder) && kith_model_card_write(folder, NULL, &why) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "no description of the model in %s: %s", folder, why.message);
    if (!*no_report && kith_report_write(folder, NULL, &why) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "no report of %s: %s", folder, why.message);
    return KITH_OK;
}

KI_OPTIONS_INIT(kith_train_options, 0)

/* The first rank's run folder: where there is a choice, it has made it. */
static kith_status share_folder(ki_comm *comm, const char **out, ki_path *memory, kith_error *err) {
    if (ki_comm_is_alone(comm)) return KITH_OK;
    const kith_status status = ki_path_print(memory, err, "%s", *out);
    KI_TRY(ki_comm_agree(comm, status, err));
    *out = memory->s;
    return ki_comm_broadcast(comm, memory, sizeof *memory, err);
}

/* A failure that every rank knows of is reported by the first. */
static kith_status leave_to_first(const ki_comm *comm, kith_status status, kith_error *err) {
    if (status == KITH_OK || ki_comm_is_first(comm) || !comm->has_agreed) return status;
    return ki_fail(err, KITH_ECANCELED, "the job has failed, and rank 0 says why");
}

kith_status kith_train_run(const kith_train_options *options, kith_train_result *ret_result,
                           kith_error *err) {
    kith_status status;
    ki_recipe *recipe = NULL;
    const char *out = NULL;
    ki_path folder;
    ki_comm *comm = NULL;
    KI_OPTIONS_TAKE(kith_train_options, o, options, err);
    KI_CHECK(ki_comm_open(&comm, err));
    KI_CHECK(ki_comm_agree(comm, read_recipe(&o, &recipe, &out, err), err));
    if (!out) {
        status = ki_fail(err, KITH_EINVAL, "there is no run folder to write to");
        goto done;
    }
    KI_CHECK(share_folder(comm, &out, &folder, err));
    const ki_repeat_options repeat = {.recipe = recipe,
                                      .folder = out,
                                      .resume = o.resume,
                                      .command = o.command,
                                      .comm = comm,
                                      .notify = o.notify,
                                      .user = o.user,
                                      .finished = write_report,
                                      .finished_user = &o.no_report};
    KI_CHECK(ki_repeat(&repeat, ret_result, err));
done:
    ki_recipe_free(recipe);
    return comm ? leave_to_first(comm, status, err) : status;
}

kith_status kith_train_recipe(const kith_train_options *options, char **ret_text, kith_error *err) {
    KI_NEED(err, ret_text);
    ki_recipe *recipe = NULL;
    const char *out = NULL;
    KI_OPTIONS_TAKE(kith_train_options, o, options, err);
    o.resume = true; /* a recipe that chooses on test classes may be printed */
    KI_TRY(read_recipe(&o, &recipe, &out, err));
    char *text = ki_strdup(recipe->text);
    ki_recipe_free(recipe);
    if (!text) return ki_fail_memory(err, 1, "a recipe");
    *ret_text = text;
    return KITH_OK;
}

int64_t kith_train_last_checkpoint(const char *run) {
    if (!run) return -1;
    int64_t step = -1;
    kith_error ignored;
    const ki_folder folder = {.path = (char *)run, .lock = -1};
    if (ki_folder_checkpoint_before(&folder, INT64_MAX, &step, &ignored) != KITH_OK) return -1;
    return step;
}
