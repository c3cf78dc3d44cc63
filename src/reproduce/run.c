/* Running what is missing of a list, in its order. */
#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/section.h"
#include "io/lock.h"
#include "io/yaml.h"
#include "kith/experimental/reproduce.h"
#include "reproduce/grid.h"
#include "reproduce/list.h"
#include "reproduce/outcome.h"
#include "reproduce/page.h"
#include "train/run.h"

enum { MOST_SETS = 128 };

KI_OPTIONS_INIT(kith_reproduce_options, .seeds = 3)

kith_status ki_reproduce_check(const kith_reproduce_options *o, kith_error *err) {
    if (!o->list) return ki_fail(err, KITH_EINVAL, "kith_reproduce_options: list is NULL");
    return ki_need_strings(o->sets, o->n_sets, "sets", err);
}

/* ---- which runs, in which order ---- */

typedef struct job {
    const ki_list_row *row;
    int64_t seed;
    size_t pass; /* of the list's order */
} job;

typedef struct reproduction {
    const kith_reproduce_options *options;
    kith_reproduce_paths at;
    ki_list list;
    ki_outcomes there; /* when the call began */
    job *job;
    size_t n_jobs, jobs_capacity;
    kith_reproduce_summary *summary;
    double began;
    ki_comm *comm; /* its ranks train each run together; the first decides and writes */
    /* The data section that was opened last, as text, and its hash; "": it cannot be opened. */
    char *data_text;
    char data_hash[65];
    /* Of runs so far, for the time the next will take. */
    double most_per_step;
    /* Of the run going on. */
    size_t number;
    kith_error *err;
} reproduction;

static bool name_matches(const char *patterns, const char *name) {
    while (*patterns) {
        char one[128];
        const size_t n = strcspn(patterns, ",");
        ki_snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one - 1), patterns);
        if (fnmatch(one, name, 0) == 0) return true;
        patterns += n + (patterns[n] == ',');
    }
    return false;
}

/* The row, or one whose figures come from its runs. */
static bool is_wanted(const reproduction *r, const ki_list_row *row) {
    const char *only = r->options->only;
    if (!only || name_matches(only, row->name)) return true;
    for (size_t i = 0; i < r->list.n_rows; i++) {
        const ki_list_row *other = &r->list.row[i];
        if (strcmp(other->of, row->name) == 0 && name_matches(only, other->name)) return true;
    }
    return false;
}

static kith_status add_job(reproduction *r, const ki_list_row *row, int64_t seed, size_t pass,
                           kith_error *err) {
    if (*row->of || !is_wanted(r, row)) return KITH_OK;
    for (size_t i = 0; i < r->n_jobs; i++) {
        if (r->job[i].row == row && r->job[i].seed == seed) return KITH_OK;
    }
    KI_TRY(ki_grow(&r->job, &r->jobs_capacity, r->n_jobs + 1, sizeof *r->job, "runs", err));
    r->job[r->n_jobs++] = (job){row, seed, pass};
    return KITH_OK;
}

static bool is_in_pass(const ki_list_pass *pass, const ki_list_row *row) {
    for (const ki_value *v = pass->groups ? pass->groups->first : NULL; v; v = v->next) {
        if (strcmp(v->text, row->group) == 0) return true;
    }
    return false;
}

static kith_status add_pass(reproduction *r, const ki_list_pass *pass, size_t number, kith_error *err) {
    int64_t n = r->options->seeds, said = 0;
    size_t n_rungs = 1;
    if (pass && ki_parse_int64(pass->seeds, &said) && said < n) n = said;
    for (size_t i = 0; i < r->list.n_grids; i++) {
        if (r->list.grid[i].n_rungs > n_rungs) n_rungs = r->list.grid[i].n_rungs;
    }
    /* A round of halving wants all seeds of the one before. */
    for (size_t rung = 0; rung < n_rungs; rung++) {
        for (int64_t k = 0; k < n; k++) {
            for (size_t i = 0; i < r->list.n_rows; i++) {
                const ki_list_row *row = &r->list.row[i];
                if (row->rung == rung && (!pass || is_in_pass(pass, row)))
                    KI_TRY(add_job(r, row, r->options->seed_from + k, number, err));
            }
        }
    }
    return KITH_OK;
}

static kith_status plan(reproduction *r, kith_error *err) {
    for (size_t i = 0; i < r->list.n_passes; i++) KI_TRY(add_pass(r, &r->list.pass[i], i, err));
    if (r->list.n_passes == 0) KI_TRY(add_pass(r, NULL, 0, err));
    r->summary->n = (int)r->n_jobs;
    if (r->n_jobs > 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "no row of %s matches '%.80s'", r->options->list,
            r->options->only ? r->options->only : "*");
    return ki_hint(err, KITH_EINVAL, "names are matched whole; * stands for any letters");
}

/* ---- one run ---- */

typedef struct run {
    const job *job;
    ki_recipe *recipe;
    const char *set[MOST_SETS];
    size_t n_sets;
    const char *recorded[MOST_SETS]; /* those that say more than where files lie */
    ki_origin origin;
    char seed_text[40];
    ki_path folder, result, failure, claim;
    int claimed; /* the claim's file, locked; -1: none */
} run;

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
static kith_status hash_experiment(run *u, const char *path, kith_error *err) {
    ki_recipe *plain = NULL;
    size_t n = u->n_sets;
    const char *sets[MOST_SETS + 3];
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

/* A grid looks at validation classes only. */
static kith_status check_grid_recipe(const ki_recipe *recipe, kith_error *err) {
    if (recipe->eval.test || recipe->eval.watch_test)
        return ki_fail(
            err, KITH_EINVAL,
            "eval.test or eval.watch_test is true; a grid is chosen by validation classes, and does "
            "not look at the test classes");
    if (holds_out(recipe->data)) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "no classes are held out; wanted data.validation for a grid to be chosen by");
    return ki_hint(err, KITH_EINVAL, "data.validation: 0.2 holds out a fifth of the training classes");
}

static kith_status add_set(run *u, const char *set, kith_error *err) {
    if (u->n_sets + 1 >= MOST_SETS) return ki_fail(err, KITH_EINVAL, "more than %d overrides", MOST_SETS);
    u->set[u->n_sets++] = set;
    if (!is_of_machine(set)) u->recorded[u->origin.n_sets++] = set;
    return KITH_OK;
}

static kith_status open_run(const reproduction *r, run *u, kith_error *err) {
    const ki_list_row *row = u->job->row;
    const kith_reproduce_options *o = r->options;
    const long long seed = (long long)u->job->seed;
    ki_path path;
    char whole[65];
    u->origin = (ki_origin){.row = row->name,
                            .recipe = *row->recipe ? row->recipe : row->name,
                            .seed = u->job->seed,
                            .sets = u->recorded};
    KI_TRY(ki_path_print(&u->result, err, "%s/%s-seed%lld.json", r->at.out, row->name, seed));
    KI_TRY(ki_path_print(&u->failure, err, "%s/%s-seed%lld.failed.json", r->at.out, row->name, seed));
    KI_TRY(ki_path_print(&path, err, "%s/%s.yaml", r->list.folder, u->origin.recipe));
    const ki_list_table *table = ki_list_table_of(&r->list, row);
    const ki_value *const sets[] = {r->list.set, table ? table->set : NULL, row->set};
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
    if (row->in) KI_TRY(check_grid_recipe(u->recipe, err));
    KI_TRY(kith_file_hash(path.s, u->origin.recipe_hash, err));
    KI_TRY(hash_experiment(u, path.s, err));
    /* A folder of its own for every recipe: an interrupted run is resumed only when it is this one. */
    hash_text(ki_recipe_identity(u->recipe), whole);
    KI_TRY(ki_path_print(&u->folder, err, "%s/%s-seed%lld-%.8s", r->at.runs, row->name, seed, whole));
    return ki_path_print(&u->claim, err, "%s.claim", u->folder.s);
}

/* A run is one process's from before it is looked for until its result is there. *ret_is_mine false: another's. */
static kith_status claim(run *u, bool *ret_is_mine, kith_error *err) {
    return ki_lock_try(u->claim.s, &u->claimed, ret_is_mine, err);
}

static void give_back(run *u, bool is_mine) {
    if (u->claimed < 0) return;
    if (is_mine && ki_is_file("%s", u->result.s)) unlink(u->claim.s); /* nobody will want it again */
    close(u->claimed);
}

static int tell(const reproduction *r, const kith_reproduce_event *event) {
    const job *j = &r->job[r->number];
    kith_reproduce_event e = *event;
    if (!r->options->notify) return 0;
    e.row = j->row->name;
    e.seed = j->seed;
    e.number = (int)r->number + 1;
    e.n = (int)r->n_jobs;
    return r->options->notify(r->options->user, &e);
}

static int on_train(void *user, const kith_train_event *event) {
    return tell(user, &(kith_reproduce_event){.kind = KITH_REPRODUCE_TRAIN, .train = event});
}

static void remove_files(const char *run_folder, const char *below) {
    ki_path path;
    kith_error ignored;
    if (ki_path_print(&path, &ignored, "%s/%s", run_folder, below) != KITH_OK) return;
    DIR *dir = opendir(path.s);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        ki_path file;
        if (e->d_name[0] != '.' && ki_path_print(&file, &ignored, "%s/%s", path.s, e->d_name) == KITH_OK)
            unlink(file.s);
    }
    if (dir) closedir(dir);
}

/* The log, the recipe and the card stay. */
static void drop_models(const char *run_folder) {
    static const char *const files[] = {"best.safetensors", "model.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ki_path path;
        kith_error ignored;
        if (ki_path_print(&path, &ignored, "%s/%s", run_folder, files[i]) == KITH_OK) unlink(path.s);
    }
    remove_files(run_folder, "checkpoints");
    remove_files(run_folder, "test");
}

static void learn_time(reproduction *r, double wall, double steps) {
    if (steps > 0 && wall / steps > r->most_per_step) r->most_per_step = wall / steps;
}

/* Seconds the run should take: by the slowest step of its recipe so far, or else of all; 0: not known. */
static double guess_seconds(const reproduction *r, const run *u) {
    double most = 0;
    for (size_t i = 0; i < r->there.n; i++) {
        const ki_outcome *o = &r->there.item[i];
        if (o->error || strcmp(o->recipe, u->origin.recipe) != 0) continue;
        const double each = ki_outcome_real(o, "", "wall_seconds") / ki_outcome_real(o, "", "steps");
        if (each > most) most = each;
    }
    return (most > 0 ? most : r->most_per_step) * (double)u->recipe->optim.schedule.steps;
}

/* The result of a run as a file of its own, by the first rank. */
static kith_status keep(reproduction *r, const run *u, const ki_train_result *result, kith_error *err) {
    const ki_scores *scores = result->test.is_there ? &result->test : &result->validation;
    if (!scores->is_there)
        return ki_fail(err, KITH_EINVAL, "there are neither test nor validation classes to score");
    if (!ki_comm_is_first(r->comm)) return KITH_OK;
    KI_TRY(ki_outcome_write(u->result.s, &u->origin, u->folder.s, err));
    unlink(u->failure.s);
    if (!r->options->keep_models) drop_models(u->folder.s);
    tell(r, &(kith_reproduce_event){.kind = KITH_REPRODUCE_DONE,
                                    .recall_at_1 = scores->recall[0],
                                    .seconds = result->wall_seconds,
                                    .text = u->result.s});
    return KITH_OK;
}

static kith_status train(reproduction *r, run *u, kith_error *err) {
    ki_train_result result;
    const ki_train_options options = {.recipe = u->recipe,
                                      .folder = u->folder.s,
                                      .resume = true,
                                      .command = r->options->command,
                                      .run_number = 1,
                                      .n_runs = 1,
                                      .comm = r->comm,
                                      .notify = on_train,
                                      .user = r};
    KI_TRY(ki_train(&options, &result, err));
    KI_TRY(ki_comm_agree(r->comm, keep(r, u, &result, err), err));
    learn_time(r, result.wall_seconds, (double)result.n_steps);
    r->summary->n_done++;
    return KITH_OK;
}

/* The hash of the run's data as it is now, in r->data_hash. Rows mostly share their data: it is opened once. */
static kith_status hash_data(reproduction *r, const run *u, kith_error *err) {
    char *text = NULL;
    kith_dataset *set = NULL;
    kith_error ignored = {0};
    KI_TRY(ki_yaml_text(u->recipe->data, &text, err));
    if (r->data_text && strcmp(r->data_text, text) == 0) {
        ki_free(text);
        return KITH_OK;
    }
    ki_free(r->data_text);
    r->data_text = text;
    r->data_hash[0] = '\0';
    /* Results may be looked at where the data is not; a run that needs it says what is wrong with it. */
    if (ki_data_open(u->recipe->data, &set, &ignored) != KITH_OK) return KITH_OK;
    kith_dataset_hash(set, -1, r->data_hash);
    kith_dataset_free(set);
    return KITH_OK;
}

static kith_status look_at(reproduction *r, run *u, const ki_outcome *there, bool *ret_is_over,
                           kith_error *err) {
    kith_reproduce_event_kind kind = KITH_REPRODUCE_SKIPPED;
    int64_t *count = &r->summary->n_skipped;
    KI_TRY(hash_data(r, u, err));
    const bool is_other_data = *there->data && *r->data_hash && strcmp(there->data, r->data_hash) != 0;
    if (strcmp(there->experiment, u->origin.experiment) != 0) {
        kind = KITH_REPRODUCE_STALE;
        count = &r->summary->n_stale;
    } else if (is_other_data) {
        kind = KITH_REPRODUCE_OTHER_DATA;
        count = &r->summary->n_other_data;
    }
    *ret_is_over = kind == KITH_REPRODUCE_SKIPPED || !r->options->renew;
    /* The folder that may be there is of the other data: its run cannot be resumed. */
    if (!*ret_is_over && is_other_data) {
        const ki_path folder = u->folder;
        return ki_path_print(&u->folder, err, "%s-%.8s", folder.s, r->data_hash);
    }
    if (!*ret_is_over) return KITH_OK;
    ++*count;
    tell(r,
         &(kith_reproduce_event){.kind = kind, .recall_at_1 = ki_outcome_recall(there), .text = u->result.s});
    return KITH_OK;
}

/* Is the result there? *ret_is_over: nothing is to be done. */
static kith_status look(reproduction *r, run *u, bool *ret_is_over, kith_error *err) {
    ki_arena arena = {0};
    ki_outcome there = {0};
    *ret_is_over = false;
    if (!ki_is_file("%s", u->result.s)) return KITH_OK;
    kith_status status = ki_outcome_read(u->result.s, &arena, &there, err);
    if (status == KITH_OK) status = look_at(r, u, &there, ret_is_over, err);
    ki_arena_release(&arena);
    return status;
}

static bool is_late(reproduction *r, double seconds) {
    if (r->options->minutes <= 0) return false;
    return ki_seconds_now() - r->began + seconds > 60 * r->options->minutes;
}

static kith_status fail_run(reproduction *r, const run *u, const kith_error *why, kith_error *err) {
    r->summary->n_failed++;
    if (!ki_comm_is_first(r->comm)) return KITH_OK;
    tell(r, &(kith_reproduce_event){.kind = KITH_REPRODUCE_FAILED, .text = why->message});
    if (!*u->failure.s) return KITH_OK;
    return ki_outcome_write_failure(u->failure.s, &u->origin, why, err);
}

/* ---- halving ---- */

/* What a run of a grid came to: NaN if it failed. *ret_missing: there is no result yet, or it is one of another recipe. */
static kith_status score_of(const reproduction *r, const job *j, double *ret_score, bool *ret_missing,
                            kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_outcome there = {0};
    run *u = NULL;
    *ret_score = NAN;
    *ret_missing = false;
    KI_CHECK(ki_zalloc_or(&u, 1, sizeof *u, "a run", err));
    u->job = j;
    u->claimed = -1;
    status = open_run(r, u, err);
    if (status != KITH_OK && status != KITH_ENOMEM) { /* its turn has said what is wrong with it */
        status = KITH_OK;
        goto done;
    }
    KI_CHECK(status);
    if (ki_is_file("%s", u->result.s)) {
        KI_CHECK(ki_outcome_read(u->result.s, &arena, &there, err));
        *ret_missing = strcmp(there.experiment, u->origin.experiment) != 0;
        *ret_score = ki_outcome_real(&there, "validation", j->row->in->by);
    } else {
        *ret_missing = !ki_is_file("%s", u->failure.s);
    }
done:
    if (u) ki_recipe_free(u->recipe);
    ki_free(u);
    ki_arena_release(&arena);
    return status;
}

/* Is it the first job of its seed that is about the grid, up to a pass? */
static bool brings_seed(const reproduction *r, size_t i, const ki_list_grid *g, size_t pass) {
    for (size_t j = 0; j <= i; j++) {
        const job *other = &r->job[j];
        if (other->row->in == g && other->pass <= pass && other->seed == r->job[i].seed) return j == i;
    }
    return false;
}

/* The mean over the seeds of the job's pass and those before. *ret_missing has memory of the caller, filled in where a
 * result is missing. */
static kith_status mean_score(const reproduction *r, const job *of, const ki_list_row *row, double *ret_mean,
                              job *ret_missing, kith_error *err) {
    double sum = 0, n = 0, score = NAN;
    for (size_t i = 0; i < r->n_jobs && !ret_missing->row; i++) {
        bool is_missing = false;
        if (!brings_seed(r, i, of->row->in, of->pass)) continue;
        const job wanted = {row, r->job[i].seed, of->pass};
        KI_TRY(score_of(r, &wanted, &score, &is_missing, err));
        if (is_missing) *ret_missing = wanted;
        sum += score;
        n++;
    }
    *ret_mean = n > 0 ? sum / n : NAN;
    return KITH_OK;
}

/* Is the job's combination among those that go on to its round? ret_missing: a result that would have to be known; its row
 * is NULL when there is none. */
static kith_status goes_on(const reproduction *r, const job *j, bool *ret_goes_on, job *ret_missing,
                           kith_error *err) {
    const ki_list_grid *g = j->row->in;
    kith_status status = KITH_OK;
    bool *alive = NULL;
    double *score = NULL;
    *ret_missing = (job){0};
    *ret_goes_on = true;
    if (!g || j->row->rung == 0) return KITH_OK;
    KI_CHECK(ki_alloc_or(&alive, g->n_settings, sizeof *alive, "a grid", err));
    KI_CHECK(ki_zalloc_or(&score, g->n_settings, sizeof *score, "a grid", err));
    for (size_t s = 0; s < g->n_settings; s++) alive[s] = true;
    for (size_t rung = 0; rung < j->row->rung && !ret_missing->row; rung++) {
        for (size_t s = 0; s < g->n_settings && !ret_missing->row; s++) {
            const ki_list_row *row = &g->row[rung * g->n_settings + s];
            if (alive[s]) KI_CHECK(mean_score(r, j, row, &score[s], ret_missing, err));
        }
        if (!ret_missing->row) ki_grid_halve(g, score, alive);
    }
    *ret_goes_on = !ret_missing->row && alive[j->row->setting];
done:
    ki_free(alive);
    ki_free(score);
    return status;
}

/* *ret_is_out: the job is left out of its grid, or has to wait. */
static kith_status leave_out(reproduction *r, const job *j, bool *ret_is_out, kith_error *err) {
    job missing = {0};
    bool is_in = true;
    KI_TRY(goes_on(r, j, &is_in, &missing, err));
    *ret_is_out = !is_in;
    if (is_in) return KITH_OK;
    char text[200] = "";
    if (missing.row)
        ki_snprintf(text, sizeof text, "%s-seed%lld", missing.row->name, (long long)missing.seed);
    ++*(missing.row ? &r->summary->n_waiting : &r->summary->n_dropped);
    tell(r, &(kith_reproduce_event){.kind = missing.row ? KITH_REPRODUCE_WAITS : KITH_REPRODUCE_DROPPED,
                                    .text = text});
    return KITH_OK;
}

/* Is the run to be done, now and here? The first rank decides. */
static kith_status decide(reproduction *r, run *u, bool *ret_is_mine, bool *ret_runs, kith_error *err) {
    char stem[256];
    bool is_over = false;
    KI_TRY(claim(u, ret_is_mine, err));
    if (!*ret_is_mine) {
        r->summary->n_busy++;
        tell(r, &(kith_reproduce_event){.kind = KITH_REPRODUCE_BUSY});
        return KITH_OK;
    }
    ki_snprintf(stem, sizeof stem, "%s-seed%lld.", u->job->row->name, (long long)u->job->seed);
    ki_atomic_clear(r->at.out, stem, 0);
    KI_TRY(look(r, u, &is_over, err));
    if (is_over) return KITH_OK;
    const double seconds = guess_seconds(r, u);
    if (is_late(r, seconds)) {
        r->summary->n_late++;
        tell(r, &(kith_reproduce_event){.kind = KITH_REPRODUCE_LATE, .seconds = seconds});
        return KITH_OK;
    }
    if (tell(r, &(kith_reproduce_event){
                    .kind = KITH_REPRODUCE_BEGIN, .seconds = seconds, .text = u->folder.s}) != 0)
        return ki_fail(err, KITH_ECANCELED, "stopped on request");
    *ret_runs = true;
    return KITH_OK;
}

static kith_status do_job(reproduction *r, const job *j, kith_error *err) {
    kith_status status;
    run u = {.job = j, .claimed = -1};
    kith_error why = {0};
    bool is_mine = false, runs = false, is_out = false;
    status = ki_comm_is_first(r->comm) ? leave_out(r, j, &is_out, err) : KITH_OK;
    KI_CHECK(ki_comm_agree_on(r->comm, status, &is_out, err));
    if (is_out) goto done;
    status = ki_comm_agree(r->comm, open_run(r, &u, &why), &why);
    if (status == KITH_OK) {
        status = ki_comm_is_first(r->comm) ? decide(r, &u, &is_mine, &runs, err) : KITH_OK;
        KI_CHECK(ki_comm_agree_on(r->comm, status, &runs, err));
        if (!runs) goto done;
        KI_CHECK(ki_comm_broadcast(r->comm, &u.folder, sizeof u.folder, err));
        status = train(r, &u, &why);
    }
    /* A rank that failed alone has left the others where they wait: there is no next run. */
    const bool is_lost = r->comm && r->comm->is_lost;
    if (status == KITH_ECANCELED || (status != KITH_OK && is_lost)) {
        if (err) *err = why;
        goto done;
    }
    if (status != KITH_OK) KI_CHECK(ki_comm_agree(r->comm, fail_run(r, &u, &why, err), err));
done:
    give_back(&u, is_mine);
    ki_recipe_free(u.recipe);
    return status;
}

static kith_status prepare(reproduction *r, kith_error *err) {
    KI_TRY(kith_reproduce_places(r->options, &r->at, err));
    KI_TRY(ki_list_read(r->options->list, &r->list, err));
    KI_TRY(ki_outcomes_read(r->at.out, &r->there, err));
    KI_TRY(plan(r, err));
    KI_TRY(ki_make_folders(r->at.out, err));
    KI_TRY(ki_make_folders(r->at.runs, err));
    return ki_page_check(&r->list, &r->at, err);
}

kith_status kith_reproduce_run(const kith_reproduce_options *options, kith_reproduce_summary *ret_summary,
                               kith_error *err) {
    kith_status status;
    kith_reproduce_summary summary = {0};
    KI_OPTIONS_TAKE(kith_reproduce_options, o, options, err);
    KI_TRY(ki_reproduce_check(&o, err));
    reproduction r = {.options = &o, .summary = &summary, .began = ki_seconds_now()};
    KI_CHECK(ki_comm_open(&r.comm, err));
    KI_CHECK(ki_comm_agree(r.comm, prepare(&r, err), err));
    for (size_t i = 0; i < r.there.n; i++) {
        const ki_outcome *there = &r.there.item[i];
        learn_time(&r, ki_outcome_real(there, "", "wall_seconds"), ki_outcome_real(there, "", "steps"));
    }
    for (r.number = 0; r.number < r.n_jobs; r.number++) KI_CHECK(do_job(&r, &r.job[r.number], err));
done:
    if (ret_summary) *ret_summary = summary;
    ki_free(r.job);
    ki_free(r.data_text);
    ki_outcomes_release(&r.there);
    ki_list_release(&r.list);
    /* A failure that every rank knows of is reported by the first. */
    if (status != KITH_OK && r.comm && !ki_comm_is_first(r.comm) && r.comm->has_agreed)
        return ki_fail(err, KITH_ECANCELED, "the job has failed, and rank 0 says why");
    return status;
}
