/* Folds and seeds: running them, and their means. */
#include "train/repeat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/json.h"
#include "judge/card.h"
#include "judge/estimate.h"

/* ---- all runs ---- */

typedef struct repeat {
    const ki_repeat_options *options;
    ki_train_result *result; /* [n_runs], in order */
    kith_card **card;        /* of the same, where there are several */
    int n_runs, n_done;
    ki_path first; /* folder of the first run, once there is one */
} repeat;

/* The first rank's work. */
static kith_status finish(const repeat *r, const char *folder, kith_error *err) {
    const ki_repeat_options *o = r->options;
    kith_status status = KITH_OK;
    if (o->finished && ki_comm_is_first(o->comm)) status = o->finished(o->finished_user, folder, err);
    return ki_comm_agree(o->comm, status, err);
}

static kith_status run_one(repeat *r, const ki_recipe *recipe, const char *folder, kith_error *err) {
    const ki_repeat_options *o = r->options;
    const ki_train_options options = {.recipe = recipe,
                                      .folder = folder,
                                      .resume = o->resume,
                                      .sibling = r->n_done > 0 ? r->first.s : NULL,
                                      .folds_differ = o->recipe->folds > 1,
                                      .command = o->command,
                                      .run_number = r->n_done + 1,
                                      .n_runs = r->n_runs,
                                      .comm = o->comm,
                                      .notify = o->notify,
                                      .user = o->user};
    KI_TRY(ki_train(&options, &r->result[r->n_done], err));
    if (r->n_runs > 1) {
        ki_path path;
        KI_TRY(ki_path_print(&path, err, "%s/result.json", folder));
        KI_TRY(kith_card_read(path.s, &r->card[r->n_done], err));
    }
    if (r->n_done++ == 0) KI_TRY(ki_path_print(&r->first, err, "%s", folder));
    return finish(r, folder, err);
}

/* The recipe of the k-th fold (from 0), or of the k-th seed. */
static kith_status sub_recipe(const ki_recipe *recipe, bool is_fold, int64_t k, ki_recipe **ret,
                              kith_error *err) {
    char sets[3][64];
    if (is_fold) {
        ki_snprintf(sets[0], sizeof sets[0], "folds=1");
        ki_snprintf(sets[1], sizeof sets[1], "data.folds=%lld", (long long)recipe->folds);
        ki_snprintf(sets[2], sizeof sets[2], "data.fold=%lld", (long long)k);
    } else {
        ki_snprintf(sets[0], sizeof sets[0], "seeds=1");
        ki_snprintf(sets[1], sizeof sets[1], "seed=%lld", (long long)(recipe->seed + k));
        ki_snprintf(sets[2], sizeof sets[2], "folds=1");
    }
    const char *const list[] = {sets[0], sets[1], sets[2]};
    const ki_recipe_source source = {
        .text = recipe->text, .sets = list, .n_sets = 3, .paths = &recipe->paths};
    return ki_recipe_read(&source, ret, err);
}

static bool has_folder(const char *folder, int64_t number) {
    ki_path path;
    return ki_path_print(&path, NULL, "%s/seed-%lld", folder, (long long)number) == KITH_OK &&
           access(path.s, F_OK) == 0;
}

/* The number in the name of the first seed's folder: the seed. Folders of older runs are counted from 1, whatever the seeds, and
 * are resumed under these names: they have a seed-1 without a seed-0, or though all seeds are higher. */
static kith_status first_number(const repeat *r, const ki_recipe *recipe, const char *folder, int64_t *ret,
                                kith_error *err) {
    const bool counts =
        recipe->seed != 1 && has_folder(folder, 1) && (recipe->seed > 1 || !has_folder(folder, 0));
    *ret = counts ? 1 : recipe->seed;
    return ki_comm_broadcast(r->options->comm, ret, sizeof *ret, err);
}

static kith_status run_all(repeat *r, const ki_recipe *recipe, const char *folder, kith_error *err) {
    if (recipe->folds == 1 && recipe->seeds == 1) return run_one(r, recipe, folder, err);
    const bool is_fold = recipe->folds > 1;
    const int64_t n = is_fold ? recipe->folds : recipe->seeds;
    int64_t first = 1;
    if (!is_fold) KI_TRY(first_number(r, recipe, folder, &first, err));
    for (int64_t k = 0; k < n; k++) {
        ki_recipe *sub = NULL;
        ki_path path;
        KI_TRY(ki_path_print(&path, err, "%s/%s-%lld", folder, is_fold ? "fold" : "seed",
                             (long long)(first + k)));
        KI_TRY(sub_recipe(recipe, is_fold, k, &sub, err));
        const kith_status status = run_all(r, sub, path.s, err);
        ki_recipe_free(sub);
        KI_TRY(status);
    }
    return KITH_OK;
}

/* ---- together ---- */

typedef double (*score_fn)(const ki_scores *scores, int64_t i);
static double recall_at(const ki_scores *s, int64_t i) { return s->recall[i]; }
static double map_at_r(const ki_scores *s, int64_t i) { return (void)i, s->map_at_r; }
static double r_precision(const ki_scores *s, int64_t i) { return (void)i, s->r_precision; }

static const ki_scores *part(const ki_train_result *r, int i) {
    const ki_scores *const parts[] = {&r->test, &r->untrained, &r->validation, &r->seen};
    return parts[i];
}
enum { N_PARTS = 4 };

static kith_estimate gather(const repeat *r, int which, score_fn score, int64_t i, double *values) {
    for (int k = 0; k < r->n_done; k++) {
        const ki_scores *s = part(&r->result[k], which);
        values[k] = s->is_there ? score(s, i) : NAN;
    }
    return ki_estimate_mean(values, r->n_done);
}

static kith_estimate gather_nmi(const repeat *r, double *values) {
    for (int k = 0; k < r->n_done; k++) {
        const ki_clustered *c = &r->result[k].clustered;
        values[k] = c->is_there ? c->scores.nmi : NAN;
    }
    return ki_estimate_mean(values, r->n_done);
}

static kith_status write_together(const repeat *r, const char *selection, kith_error *err) {
    const ki_recipe *recipe = r->options->recipe;
    kith_status status;
    kith_json *json = NULL;
    ki_path path;
    double seconds = 0;
    for (int k = 0; k < r->n_done; k++) seconds += r->result[k].seconds;
    const ki_card_entry entries[] = {ki_entry_text("selection", selection), ki_entry_int("n_runs", r->n_done),
                                     ki_entry_int("folds", recipe->folds),
                                     ki_entry_int("seeds", recipe->seeds), ki_entry_real("seconds", seconds)};
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    ki_card_put(json, &(ki_card_content){.first = entries, .n_first = sizeof entries / sizeof entries[0]});
    KI_CHECK(ki_card_put_runs(json, r->card, r->n_done, recipe->k, recipe->n_k, err));
    kith_json_object_end(json);
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", r->options->folder));
    KI_CHECK(ki_json_save(json, path.s, err));
done:
    kith_json_free(json);
    return status;
}

/* The folder of several runs: its recipe says which. */
static kith_status open_together(const ki_repeat_options *o, ki_folder *folder, kith_error *err) {
    kith_status status = KITH_OK;
    ki_recipe *there = NULL;
    ki_path path;
    KI_TRY(ki_folder_open(o->folder, folder, err));
    KI_TRY(ki_folder_at(folder, &path, err, "recipe.yaml"));
    if (!ki_folder_has(folder, "recipe.yaml")) {
        KI_TRY(ki_run_paths_write(o->folder, &o->recipe->paths, err));
        return ki_file_write(path.s, o->recipe->text, strlen(o->recipe->text), err);
    }
    if (!o->resume) {
        ki_fail(err, KITH_EINVAL, "%s already holds a run", o->folder);
        return ki_hint(err, KITH_EINVAL, "resume it with --resume, or begin a new run with another --out");
    }
    const ki_recipe_source source = {.path = path.s};
    KI_CHECK(ki_recipe_read(&source, &there, err));
    status = ki_recipe_same(there, o->recipe, o->folder, err);
done:
    ki_recipe_free(there);
    return status;
}

/* One run has no spread over runs, so the interval over its queries is used. */
static void set_interval(kith_estimate *e, kith_interval interval) {
    e->low = interval.low;
    e->high = interval.high;
}

static void fill_result(const repeat *r, double *values, const char *selection, kith_train_result *ret) {
    const ki_train_result *last = &r->result[r->n_done - 1];
    kith_train_result result = {.n_runs = r->n_done, .step = last->step, .n_steps = last->n_steps};
    ki_snprintf(result.run, sizeof result.run, "%s", r->options->folder);
    ki_snprintf(result.selection, sizeof result.selection, "%s", selection);
    kith_train_scores *const to[] = {&result.test, &result.untrained, &result.validation, &result.seen};
    for (int p = 0; p < N_PARTS; p++) {
        to[p]->recall_at_1 = gather(r, p, recall_at, 0, values);
        to[p]->map_at_r = gather(r, p, map_at_r, 0, values);
        to[p]->r_precision = gather(r, p, r_precision, 0, values);
    }
    result.test.nmi = gather_nmi(r, values);
    if (r->n_done == 1) {
        set_interval(&result.test.recall_at_1, last->recall_at_1);
        set_interval(&result.test.map_at_r, last->map_at_r);
        set_interval(&result.test.r_precision, last->r_precision);
    }
    for (int k = 0; k < r->n_done; k++) {
        result.seconds += r->result[k].seconds;
        result.images_per_second += r->result[k].images_per_second / r->n_done;
    }
    *ret = result;
}

kith_status ki_repeat(const ki_repeat_options *options, kith_train_result *ret_result, kith_error *err) {
    static const char *const selections[] = {"validation", "test", "last"};
    kith_status status;
    const ki_recipe *recipe = options->recipe;
    repeat r = {.options = options, .n_runs = (int)(recipe->folds * recipe->seeds)};
    double *values = NULL;
    const bool is_first = ki_comm_is_first(options->comm);
    ki_folder folder = {.lock = -1};
    KI_CHECK(ki_zalloc_or(&r.result, (size_t)r.n_runs, sizeof *r.result, "results", err));
    KI_CHECK(ki_zalloc_or(&r.card, (size_t)r.n_runs, sizeof *r.card, "results", err));
    KI_CHECK(ki_alloc_or(&values, (size_t)r.n_runs, sizeof *values, "results", err));
    if (r.n_runs > 1) {
        status = is_first ? open_together(options, &folder, err) : KITH_OK;
        KI_CHECK(ki_comm_agree(options->comm, status, err));
    }
    KI_CHECK(run_all(&r, recipe, options->folder, err));
    const char *selection = selections[r.result[0].selection];
    if (r.n_runs > 1) {
        status = is_first ? write_together(&r, selection, err) : KITH_OK;
        KI_CHECK(ki_comm_agree(options->comm, status, err));
        KI_CHECK(finish(&r, options->folder, err));
    }
    if (ret_result) fill_result(&r, values, selection, ret_result);
done:
    ki_folder_release(&folder);
    for (int k = 0; r.card && k < r.n_runs; k++) kith_card_free(r.card[k]);
    ki_free(r.card);
    ki_free(values);
    ki_free(r.result);
    return status;
}
