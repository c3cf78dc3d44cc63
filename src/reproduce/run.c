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
#include "reproduce/one_run.h"
#include "reproduce/page.h"

KI_OPTIONS_INIT(kith_reproduce_options, .seeds = 3)

kith_status ki_reproduce_check(const kith_reproduce_options *o, kith_error *err) {
    if (!o->list) return ki_fail(err, KITH_EINVAL, "kith_reproduce_options: list is NULL");
    return ki_need_strings(o->sets, o->n_sets, "sets", err);
}

/* ---- which runs, in which order ---- */

typedef struct reproduction {
    const kith_reproduce_options *options;
    kith_reproduce_paths at;
    ki_list list;
    ki_outcomes there; /* when the call began */
    ki_job *job;
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
    r->job[r->n_jobs++] = (ki_job){row, seed, pass};
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

static ki_jobs jobs_of(const reproduction *r) {
    return (ki_jobs){
        .options = r->options, .at = &r->at, .list = &r->list, .job = r->job, .n_jobs = r->n_jobs};
}

/* Every recipe is opened before the first run: a mistake in the last is not found after hours. */
static kith_status check_recipes(const reproduction *r, kith_error *err) {
    const ki_jobs jobs = jobs_of(r);
    ki_run *u = NULL;
    kith_status status = KITH_OK;
    for (size_t i = 0; i < r->n_jobs && status == KITH_OK; i++) {
        bool is_first = true;
        for (size_t j = 0; j < i; j++) is_first &= r->job[j].row != r->job[i].row;
        if (!is_first) continue;
        KI_TRY(ki_zalloc_or(&u, 1, sizeof *u, "a run", err));
        status = ki_run_open(&jobs, &r->job[i], u, err);
        if (status != KITH_OK) ki_prefix(err, status, "%s", r->job[i].row->name);
        ki_recipe_free(u->recipe);
        ki_free(u);
    }
    return status;
}

static kith_status plan(reproduction *r, kith_error *err) {
    for (size_t i = 0; i < r->list.n_passes; i++) KI_TRY(add_pass(r, &r->list.pass[i], i, err));
    if (r->list.n_passes == 0) KI_TRY(add_pass(r, NULL, 0, err));
    if (r->n_jobs > 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "no row of %s matches '%.80s'", r->options->list,
            r->options->only ? r->options->only : "*");
    return ki_hint(err, KITH_EINVAL, "names are matched whole; * stands for any letters");
}

/* ---- one run ---- */

/* A run is one process's from before it is looked for until its result is there. *ret_is_mine false: another's. */
static kith_status claim(ki_run *u, bool *ret_is_mine, kith_error *err) {
    return ki_lock_try(u->claim.s, &u->claimed, ret_is_mine, err);
}

static void give_back(ki_run *u, bool is_mine) {
    if (u->claimed < 0) return;
    if (is_mine && ki_is_file("%s", u->result.s)) unlink(u->claim.s); /* nobody will want it again */
    close(u->claimed);
}

static int tell(const reproduction *r, const kith_reproduce_event *event) {
    const ki_job *j = &r->job[r->number];
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
static double guess_seconds(const reproduction *r, const ki_run *u) {
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
static kith_status keep(reproduction *r, const ki_run *u, const ki_train_result *result, kith_error *err) {
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

static kith_status train(reproduction *r, ki_run *u, kith_error *err) {
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
static kith_status hash_data(reproduction *r, const ki_run *u, kith_error *err) {
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

static kith_status look_at(reproduction *r, ki_run *u, const ki_outcome *there, bool *ret_is_over,
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
static kith_status look(reproduction *r, ki_run *u, bool *ret_is_over, kith_error *err) {
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

static kith_status fail_run(reproduction *r, const ki_run *u, const kith_error *why, kith_error *err) {
    r->summary->n_failed++;
    if (!ki_comm_is_first(r->comm)) return KITH_OK;
    tell(r, &(kith_reproduce_event){.kind = KITH_REPRODUCE_FAILED, .text = why->message});
    if (!*u->failure.s) return KITH_OK;
    return ki_outcome_write_failure(u->failure.s, &u->origin, why, err);
}

/* *ret_is_out: the job is left out of its grid, or has to wait. */
static kith_status leave_out(reproduction *r, const ki_job *j, bool *ret_is_out, kith_error *err) {
    const ki_jobs jobs = jobs_of(r);
    ki_halving_verdict v;
    KI_TRY(ki_halving_goes_on(&jobs, j, &v, err));
    *ret_is_out = !v.goes_on;
    if (v.goes_on) return KITH_OK;
    char text[200];
    ki_snprintf(text, sizeof text, "%s with fewer steps", v.failed ? "it failed" : "others did better");
    if (v.missing.row)
        ki_snprintf(text, sizeof text, "%s-seed%lld", v.missing.row->name, (long long)v.missing.seed);
    ++*(v.missing.row ? &r->summary->n_waiting : &r->summary->n_dropped);
    tell(r, &(kith_reproduce_event){.kind = v.missing.row ? KITH_REPRODUCE_WAITS : KITH_REPRODUCE_DROPPED,
                                    .text = text});
    return KITH_OK;
}

/* Is the run to be done, now and here? The first rank decides. */
static kith_status decide(reproduction *r, ki_run *u, bool *ret_is_mine, bool *ret_runs, kith_error *err) {
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

static kith_status do_job(reproduction *r, const ki_job *j, kith_error *err) {
    kith_status status;
    const ki_jobs jobs = jobs_of(r);
    ki_run u = {.job = j, .claimed = -1};
    kith_error why = {0};
    bool is_mine = false, runs = false, is_out = false;
    status = ki_comm_is_first(r->comm) ? leave_out(r, j, &is_out, err) : KITH_OK;
    KI_CHECK(ki_comm_agree_on(r->comm, status, &is_out, err));
    if (is_out) goto done;
    status = ki_comm_agree(r->comm, ki_run_open(&jobs, j, &u, &why), &why);
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
    KI_TRY(check_recipes(r, err));
    KI_TRY(ki_make_folders(r->at.out, err));
    KI_TRY(ki_make_folders(r->at.runs, err));
    KI_TRY(ki_page_check(&r->list, &r->at, err));
    r->summary->n = (int)r->n_jobs;
    return KITH_OK;
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
