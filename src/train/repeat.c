/* Folds and seeds: running them, and their means. */
#include "train/repeat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/atomic.h"
#include "core/text.h"
#include "kith/experimental/json.h"
#include "kith/version.h"

/* Quantiles 0.975 of Student's t by degrees of freedom, from 1. */
static const double t_quantile[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                    2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                                    2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                                    2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
enum { N_QUANTILES = sizeof t_quantile / sizeof t_quantile[0] };

double ki_t_quantile(int freedom) {
    /* Beyond the table: the normal's 1.96 and its expansion in 1 / freedom (Cornish and Fisher). */
    const double v = freedom;
    return freedom <= N_QUANTILES ? t_quantile[freedom - 1] : 1.95996 + 2.37228 / v + 2.8226 / (v * v);
}

kith_estimate ki_estimate_mean(const double *values, int n) {
    kith_estimate e = {.mean = NAN, .low = NAN, .high = NAN};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(values[i])) continue;
        e.n++;
        sum += values[i];
    }
    if (e.n == 0) return e;
    e.mean = sum / (double)e.n;
    if (e.n < 2) return e;
    for (int i = 0; i < n; i++) {
        if (!isnan(values[i])) squares += (values[i] - e.mean) * (values[i] - e.mean);
    }
    const int freedom = (int)e.n - 1;
    const double half = ki_t_quantile(freedom) * sqrt(squares / freedom / (double)e.n);
    e.low = e.mean - half;
    e.high = e.mean + half;
    return e;
}

/* ---- all runs ---- */

typedef struct repeat {
    const ki_repeat_options *options;
    ki_train_result *result; /* [n_runs], in order */
    int n_runs, n_done;
    ki_path first; /* folder of the first run, once there is one */
} repeat;

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
                                      .notify = o->notify,
                                      .user = o->user};
    KI_TRY(ki_train(&options, &r->result[r->n_done], err));
    if (r->n_done++ == 0) KI_TRY(ki_path_print(&r->first, err, "%s", folder));
    return o->finished ? o->finished(o->finished_user, folder, err) : KITH_OK;
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
    const ki_recipe_source source = {.text = recipe->text, .sets = list, .n_sets = 3};
    return ki_recipe_read(&source, ret, err);
}

static kith_status run_all(repeat *r, const ki_recipe *recipe, const char *folder, kith_error *err) {
    if (recipe->folds == 1 && recipe->seeds == 1) return run_one(r, recipe, folder, err);
    const bool is_fold = recipe->folds > 1;
    const int64_t n = is_fold ? recipe->folds : recipe->seeds;
    for (int64_t k = 0; k < n; k++) {
        ki_recipe *sub = NULL;
        ki_path path;
        KI_TRY(ki_path_print(&path, err, "%s/%s-%lld", folder, is_fold ? "fold" : "seed", (long long)k + 1));
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
static const char *const part_names[] = {"test", "untrained", "validation", "seen"};
enum { N_PARTS = 4 };

static kith_estimate gather(const repeat *r, int which, score_fn score, int64_t i, double *values) {
    for (int k = 0; k < r->n_done; k++) {
        const ki_scores *s = part(&r->result[k], which);
        values[k] = s->is_there ? score(s, i) : NAN;
    }
    return ki_estimate_mean(values, r->n_done);
}

static kith_estimate gather_clustering(const repeat *r, int which, double *values) {
    for (int k = 0; k < r->n_done; k++) {
        const kith_clustering *c = &r->result[k].clustered.scores;
        const double score[] = {c->nmi, c->ami, c->f1};
        values[k] = r->result[k].clustered.is_there ? score[which] : NAN;
    }
    return ki_estimate_mean(values, r->n_done);
}

static void put_estimate(kith_json *json, const char *key, kith_estimate e) {
    kith_json_key(json, key);
    kith_json_object_begin(json);
    kith_json_key(json, "mean");
    kith_json_real(json, e.mean);
    kith_json_key(json, "low");
    kith_json_real(json, e.low);
    kith_json_key(json, "high");
    kith_json_real(json, e.high);
    kith_json_object_end(json);
}

static kith_status write_together(const repeat *r, double *values, const char *selection, kith_error *err) {
    const ki_recipe *recipe = r->options->recipe;
    kith_status status;
    kith_json *json = NULL;
    const char *text = NULL;
    ki_path path;
    double seconds = 0;
    for (int k = 0; k < r->n_done; k++) seconds += r->result[k].seconds;
    KI_CHECK(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "selection");
    kith_json_string(json, selection);
    kith_json_key(json, "n_runs");
    kith_json_int(json, r->n_done);
    kith_json_key(json, "folds");
    kith_json_int(json, recipe->folds);
    kith_json_key(json, "seeds");
    kith_json_int(json, recipe->seeds);
    for (int p = 0; p < N_PARTS; p++) {
        if (!part(&r->result[0], p)->is_there) continue;
        kith_json_key(json, part_names[p]);
        kith_json_object_begin(json);
        kith_json_key(json, "recall");
        kith_json_object_begin(json);
        for (int64_t i = 0; i < recipe->n_k; i++) {
            char name[32];
            ki_snprintf(name, sizeof name, "%lld", (long long)recipe->k[i]);
            put_estimate(json, name, gather(r, p, recall_at, i, values));
        }
        kith_json_object_end(json);
        put_estimate(json, "map_at_r", gather(r, p, map_at_r, 0, values));
        put_estimate(json, "r_precision", gather(r, p, r_precision, 0, values));
        static const char *const clusterings[] = {"nmi", "ami", "f1"};
        for (int i = 0; p == 0 && r->result[0].clustered.is_there && i < 3; i++)
            put_estimate(json, clusterings[i], gather_clustering(r, i, values));
        kith_json_object_end(json);
    }
    kith_json_key(json, "seconds");
    kith_json_real(json, seconds);
    kith_json_key(json, "kith");
    kith_json_string(json, kith_version());
    kith_json_key(json, "commit");
    kith_json_string(json, kith_commit());
    kith_json_object_end(json);
    KI_CHECK(kith_json_finish(json, &text, err));
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", r->options->folder));
    KI_CHECK(ki_file_write(path.s, text, strlen(text), err));
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
    if (!ki_folder_has(folder, "recipe.yaml"))
        return ki_file_write(path.s, o->recipe->text, strlen(o->recipe->text), err);
    if (!o->resume) {
        ki_fail(err, KITH_EINVAL, "%s already holds a run", o->folder);
        return ki_hint(err, KITH_EINVAL, "--resume goes on with it; another --out begins a new one");
    }
    const ki_recipe_source source = {.path = path.s};
    KI_CHECK(ki_recipe_read(&source, &there, err));
    status = ki_recipe_same(there, o->recipe, o->folder, err);
done:
    ki_recipe_free(there);
    return status;
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
    ki_folder folder = {.lock = -1};
    KI_CHECK(ki_zalloc_or(&r.result, (size_t)r.n_runs, sizeof *r.result, "results", err));
    KI_CHECK(ki_alloc_or(&values, (size_t)r.n_runs, sizeof *values, "results", err));
    if (r.n_runs > 1) KI_CHECK(open_together(options, &folder, err));
    KI_CHECK(run_all(&r, recipe, options->folder, err));
    const char *selection = selections[r.result[0].selection];
    if (r.n_runs > 1) {
        KI_CHECK(write_together(&r, values, selection, err));
        if (options->finished) KI_CHECK(options->finished(options->finished_user, options->folder, err));
    }
    if (ret_result) fill_result(&r, values, selection, ret_result);
done:
    ki_folder_release(&folder);
    ki_free(values);
    ki_free(r.result);
    return status;
}
