/* The recipe of a run, checked, and the names of its files. */
#include "reproduce/one_run.h"

#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "reproduce/grid.h"

static bool is_of_machine(const char *set) {
    static const char *const keys[] = {"data.root=",  "data.features=", "model.weights=", "loader.",
                                       "checkpoint.", "threads=",       "log_every="};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strncmp(set, keys[i], strlen(keys[i])) == 0) return true;
    }
    return false;
}

static void hash_text(const char *text, char ret[65]) {
    kith_hash hash = {0};
    kith_hash_add(&hash, text, strlen(text));
    kith_hash_finish(&hash, ret);
}

/* What decides numbers, wherever the files lie and whatever the seed. */
static kith_status hash_experiment(ki_run *u, const char *path, kith_error *err) {
    ki_recipe *plain = NULL;
    size_t n = u->n_sets;
    const char *sets[KI_MOST_SETS + 3];
    memcpy(sets, u->set, n * sizeof *sets);
    sets[n++] = "seed=0";
    sets[n++] = u->recipe->is_features ? "data.features=anywhere" : "data.root=anywhere";
    if (*u->recipe->model.weights) sets[n++] = "model.weights=anywhere";
    KI_TRY(ki_recipe_read(&(ki_recipe_source){.path = path, .sets = sets, .n_sets = n}, &plain, err));
    hash_text(ki_recipe_identity(plain), u->origin.experiment);
    ki_recipe_free(plain);
    return KITH_OK;
}

static kith_status check_recipe(const ki_recipe *recipe, kith_error *err) {
    if (recipe->eval.select == KI_SELECT_TEST)
        return ki_fail(
            err, KITH_EINVAL,
            "eval.select is test; wanted validation or last: a reproduction chooses nothing on test classes");
    if (recipe->folds > 1 || recipe->seeds > 1)
        return ki_fail(err, KITH_EINVAL,
                       "the recipe has folds or seeds; wanted a recipe of one run (--seeds repeats it)");
    return KITH_OK;
}

static bool is_above_0(const ki_value *v) {
    double number = 0;
    return v && v->kind == KI_VALUE_SCALAR && ki_parse_double(v->text, &number) && number > 0;
}

/* Does a data section hold out classes for validation? */
static bool holds_out(const ki_value *data) {
    if (data && data->kind == KI_VALUE_LIST) {
        for (const ki_value *v = data->first; v; v = v->next) {
            if (holds_out(v)) return true;
        }
        return false;
    }
    const ki_value *split = ki_value_get(data, "split");
    return is_above_0(ki_value_get(data, "validation")) || is_above_0(ki_value_get(data, "folds")) ||
           (split && split->kind == KI_VALUE_SCALAR && *split->text);
}

/* Is the score that decides among those that a run writes? */
static kith_status check_by(const ki_recipe *recipe, const char *by, kith_error *err) {
    ki_buffer has = {.err = err};
    char name[40];
    bool is_there = strncmp(by, "recall.", 7) != 0;
    for (int64_t i = 0; i < recipe->n_k; i++) {
        ki_snprintf(name, sizeof name, "recall.%lld", (long long)recipe->k[i]);
        is_there |= strcmp(name, by) == 0;
        ki_buffer_put(&has, "%s%lld", i ? ", " : "", (long long)recipe->k[i]);
    }
    ki_buffer_add(&has, "", 1);
    kith_status status = has.status;
    if (status == KITH_OK && !is_there)
        status =
            ki_fail(err, KITH_EINVAL, "by is '%.40s', and eval.k is [%s]; wanted one of these", by, has.data);
    ki_buffer_release(&has);
    return status;
}

/* A grid looks at validation classes only. */
static kith_status check_grid_recipe(const ki_recipe *recipe, const char *by, kith_error *err) {
    KI_TRY(check_by(recipe, by, err));
    if (recipe->eval.test || recipe->eval.watch_test)
        return ki_fail(
            err, KITH_EINVAL,
            "eval.test or eval.watch_test is true; a grid is chosen by validation classes, and does "
            "not look at the test classes");
    if (holds_out(recipe->data)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "no classes are held out; wanted data.validation for a grid to be chosen by");
    return ki_hint(err, KITH_EINVAL, "data.validation: 0.2 holds out a fifth of the training classes");
}

static kith_status add_set(ki_run *u, const char *set, kith_error *err) {
    if (u->n_sets + 1 >= KI_MOST_SETS)
        return ki_fail(err, KITH_EINVAL, "more than %d overrides", KI_MOST_SETS);
    u->set[u->n_sets++] = set;
    if (!is_of_machine(set)) u->recorded[u->origin.n_sets++] = set;
    return KITH_OK;
}

static kith_status open_run(const ki_jobs *r, ki_run *u, kith_error *err) {
    const ki_list_row *row = u->job->row;
    const kith_reproduce_options *o = r->options;
    const long long seed = (long long)u->job->seed;
    ki_path path;
    char whole[65];
    u->origin = (ki_origin){.row = row->name,
                            .recipe = *row->recipe ? row->recipe : row->name,
                            .seed = u->job->seed,
                            .sets = u->recorded};
    KI_TRY(ki_path_print(&u->result, err, "%s/%s-seed%lld.json", r->at->out, row->name, seed));
    KI_TRY(ki_path_print(&u->failure, err, "%s/%s-seed%lld.failed.json", r->at->out, row->name, seed));
    KI_TRY(ki_path_print(&path, err, "%s/%s.yaml", r->list->folder, u->origin.recipe));
    const ki_list_table *table = ki_list_table_of(r->list, row);
    const ki_value *const sets[] = {r->list->set, table ? table->set : NULL, row->set};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        for (const ki_value *v = sets[i] ? sets[i]->first : NULL; v; v = v->next)
            KI_TRY(add_set(u, v->text, err));
    }
    for (int64_t i = 0; i < o->n_sets; i++) KI_TRY(add_set(u, o->sets[i], err));
    ki_snprintf(u->seed_text, sizeof u->seed_text, "seed=%lld", seed);
    u->set[u->n_sets++] = u->seed_text;
    KI_TRY(ki_recipe_read(&(ki_recipe_source){.path = path.s, .sets = u->set, .n_sets = u->n_sets},
                          &u->recipe, err));
    KI_TRY(check_recipe(u->recipe, err));
    if (row->in) KI_TRY(check_grid_recipe(u->recipe, row->in->by, err));
    KI_TRY(kith_file_hash(path.s, u->origin.recipe_hash, err));
    KI_TRY(hash_experiment(u, path.s, err));
    /* A folder of its own for every recipe: an interrupted run is resumed only when it is this one. */
    hash_text(ki_recipe_identity(u->recipe), whole);
    KI_TRY(ki_path_print(&u->folder, err, "%s/%s-seed%lld-%.8s", r->at->runs, row->name, seed, whole));
    return ki_path_print(&u->claim, err, "%s.claim", u->folder.s);
}

kith_status ki_run_open(const ki_jobs *jobs, const ki_job *job, ki_run *ret_run, kith_error *err) {
    *ret_run = (ki_run){.job = job, .claimed = -1};
    return open_run(jobs, ret_run, err);
}
