/* Training the network itself, where time is left for it: short runs of kith train, each with a fold held out, compared with the best way
 * on features over the same classes. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/text.h"
#include "data/dataset/table.h"
#include "embed/embedder.h"
#include "net/model_file.h"
#include "tune/tune.h"

enum { LEAST_STEPS = 60, MOST_STEPS = 200, N_FOLDS = 2, BATCH = 32, N_PROBED = 5 };
/* A training step costs at least as much as so many forward passes of its photos. What it does cost is measured (probe). */
static const double STEP = 3;
/* Of the time that is left, for the end of the winner's run: judging, error rates, the report. */
static const double RESERVE = 0.1;

/* ---- a run with a fold held out ---- */

/* photos.csv with the fold's photos for validation; the test photos are left out. */
static kith_status write_list(const ki_tune *t, const ki_tune_folds *f, int fold, const char *path,
                              kith_error *err) {
    ki_buffer text = {.err = err};
    kith_status status = KITH_OK;
    const ki_list_rows m = ki_list_rows_of(t->set);
    ki_list_rows_head(&m, &text);
    for (int64_t i = 0; i < t->learn.n; i++) {
        const int64_t item = t->learn.item[i];
        if (!t->is_sound[item]) continue;
        ki_list_rows_row(&m, t->set, &t->set->item[item], t->set->item[item].path,
                         f->fold_of[item] == fold ? KITH_SPLIT_VALIDATION : KITH_SPLIT_TRAIN, &text);
    }
    status = text.status;
    if (status == KITH_OK) status = ki_file_write(path, text.data, text.n, err);
    ki_buffer_release(&text);
    return status;
}

/* Whoever watches a short run: it is stopped when it has taken the steps that are timed, or when it would take the time of the winner's. */
typedef struct watch {
    ki_tune *tune;
    bool is_probe, is_late;
    double must_end;         /* ki_tune_seconds */
    double first, last;      /* when the first timed step ended, and the last */
    int64_t n_steps, n_seen; /* steps this process has seen */
} watch;

static int on_event(void *user, const kith_train_event *e) {
    watch *w = user;
    ki_tune *t = w->tune;
    if (e->kind != KITH_TRAIN_STEP && e->kind != KITH_TRAIN_BUSY) return t->must_stop;
    ki_snprintf(t->busy, sizeof t->busy, w->is_probe ? "timing a step" : "trying to train all");
    if (e->kind == KITH_TRAIN_STEP) {
        w->last = ki_tune_seconds(t);
        if (w->n_seen++ == 0) w->first = w->last;
        if (!w->is_probe && w->last > w->must_end) w->is_late = true;
    }
    const bool stops = ki_tune_busy(t, e->step, e->n_steps) != 0;
    return stops || w->is_late || (w->is_probe && w->n_seen > N_PROBED);
}

static kith_status run(ki_tune *t, const ki_tune_way *way, const ki_tune_folds *f, int fold, int64_t steps,
                       watch *w, const ki_path *folder, kith_error *err) {
    kith_status status;
    ki_path list;
    ki_recipe *recipe = NULL, *own = NULL;
    ki_train_result result;
    char root[4200], classes[64];
    KI_CHECK(ki_make_folders(folder->s, err));
    KI_CHECK(ki_path_print(&list, err, "%s/photos.csv", folder->s));
    if (!ki_is_file("%s", list.s)) KI_CHECK(write_list(t, f, fold, list.s, err));
    KI_CHECK(ki_tune_recipe(t, way, steps, &recipe, err));
    const int64_t most =
        f->by_photo ? t->n_train_classes : t->n_train_classes - (t->n_train_classes + f->n - 1) / f->n;
    ki_snprintf(root, sizeof root, "data.root=%s", list.s);
    ki_snprintf(classes, sizeof classes, "batch.classes=%lld",
                (long long)(most < recipe->batch.classes ? most : recipe->batch.classes));
    const char *const sets[] = {root, classes, "eval.test=false", "eval.clustering=false",
                                "eval.untrained=false"};
    const ki_recipe_source source = {
        .text = recipe->text, .sets = sets, .n_sets = sizeof sets / sizeof sets[0]};
    KI_CHECK(ki_recipe_read(&source, &own, err));
    const ki_train_options options = {.recipe = own,
                                      .folder = folder->s,
                                      .resume = true,
                                      .command = t->options->command,
                                      .run_number = 1,
                                      .n_runs = 1,
                                      .notify = on_event,
                                      .user = w};
    status = ki_train(&options, &result, err);
    if (status == KITH_ECANCELED && t->must_stop) status = ki_tune_stopped(err);
done:
    ki_recipe_free(recipe);
    ki_recipe_free(own);
    return status;
}

/* ---- its held-out photos ---- */

kith_status ki_tune_embed_run(ki_tune *t, const char *folder, const ki_items *items, ki_vectors *ret,
                              kith_error *err) {
    kith_status status;
    ki_path model;
    ki_net net = {0};
    ki_params *params = NULL;
    ki_embedder *embedder = NULL;
    kith_dataset *set = NULL;
    KI_CHECK(ki_path_print(&model, err, "%s/model.safetensors", folder));
    const kith_model_options options = {.size = sizeof options, .weights = model.s};
    KI_CHECK(ki_model_file_open(&options, t->backend, &net, &params, NULL, err));
    /* The set of the tuning holds features by now: its photos are opened again. */
    KI_CHECK(kith_dataset_open("csv", t->set->root, &set, err));
    const ki_embedder_settings settings = {
        .backend = t->backend, .net = &net, .params = params, .transform = t->test_transform, .batch = 32};
    KI_CHECK(ki_embedder_new(&settings, &embedder, err));
    const ki_embed_request request = {.set = set,
                                      .items = items->item,
                                      .n = items->n,
                                      .tap = "embedding",
                                      .on_host = true,
                                      .most_bad = -1,
                                      .progress = ki_tune_busy,
                                      .user = t};
    ki_snprintf(t->busy, sizeof t->busy, "judging");
    status = ki_embedder_items(embedder, &request, ret, err);
    if (status == KITH_ECANCELED) status = ki_tune_stopped(err);
done:
    ki_embedder_free(embedder);
    ki_params_free(params);
    ki_net_release(&net);
    kith_dataset_free(set);
    return status;
}

static kith_status judge(ki_tune *t, const char *trial, int64_t steps, const char *folder,
                         const ki_items *held, kith_error *err) {
    ki_vectors v = {0};
    kith_judgement found = {0};
    ki_judge_options options;
    KI_TRY(ki_judge_options_take(NULL, &options, err));
    options.has_clustering = options.has_intervals = false;
    options.retrieval.n_k = 1;
    options.retrieval.k[0] = 1;
    kith_status status = ki_tune_embed_run(t, folder, held, &v, err);
    if (status == KITH_OK) status = ki_judge_vectors(&v, &options, NULL, &found, err);
    if (status == KITH_OK) status = ki_tune_add(t, trial, steps, &found.retrieval, err);
    kith_judgement_release(&found);
    ki_vectors_release(&v);
    return status;
}

kith_status ki_tune_run_folder(const ki_tune *t, const ki_tune_way *way, const ki_tune_folds *folds, int fold,
                               ki_path *ret, kith_error *err) {
    return ki_path_print(ret, err, "%s/tried/%d-%s-%d", t->folder, (int)(way - t->way),
                         folds->number ? "fold" : "choice", fold);
}

/* A way whose loss is no longer a number has lost. ret_late: there was no time to end the run. */
static kith_status try_fold(ki_tune *t, const ki_tune_way *way, const ki_tune_folds *folds, int fold,
                            int64_t steps, double must_end, bool *ret_late, kith_error *err) {
    kith_status status;
    char name[256];
    ki_items held = {0};
    ki_path folder;
    kith_error why = {0};
    watch w = {.tune = t, .must_end = must_end};
    *ret_late = false;
    const ki_tune_trial trial = {.way = way, .folds = folds, .fold = fold, .part = {.share = 1}};
    static const kith_retrieval nothing;
    ki_tune_trial_name(&trial, name, sizeof name);
    if (ki_tune_find(t, name, steps, NULL)) return KITH_OK;
    *ret_late = ki_tune_seconds(t) > must_end;
    if (*ret_late) return KITH_OK;
    KI_CHECK(ki_tune_select(t, folds, fold, true, NULL, &held, err));
    KI_CHECK(ki_tune_run_folder(t, way, folds, fold, &folder, err));
    status = run(t, way, folds, fold, steps, &w, &folder, &why);
    if (status == KITH_OK) {
        status = judge(t, name, steps, folder.s, &held, err);
    } else if (status == KITH_ENUMERIC) {
        status = ki_tune_add(t, name, steps, &nothing, err);
    } else if (status == KITH_ECANCELED && w.is_late) {
        *ret_late = true;
        status = KITH_OK;
    } else if (err) {
        *err = why;
    }
done:
    ki_free(held.item);
    return status;
}

/* ---- how much there is time for ---- */

/* Runs if `n` ways are tried: of several each has one that chooses; the one that was chosen has N_FOLDS, and one for all photos. */
static double runs_for(int n) { return (n > 1 ? n : 0) + N_FOLDS + 1; }

static int64_t steps_for(const ki_tune *t, int n, double seconds_of_step) {
    /* Runs judge the photos that they hold out, and the last one the test photos, twice. */
    const double judging = ((runs_for(n) - 1) * 2.0 / t->folds[1].n + 1) * t->seconds_of_view;
    const double left = ki_tune_left(t) * (1 - RESERVE) - judging;
    const double steps = left / (runs_for(n) * (seconds_of_step > 1e-6 ? seconds_of_step : 1e-6));
    return steps < 0 ? 0 : steps > MOST_STEPS ? MOST_STEPS : (int64_t)steps;
}

/* As many ways as can have runs that are not the shortest. */
static int n_for(const ki_tune *t, double seconds_of_step, int64_t *ret_steps) {
    int n = 0;
    for (int i = 0; i < t->n_ways; i++) n += t->way[i].is_fine;
    while (n > 1 && steps_for(t, n, seconds_of_step) < 2 * LEAST_STEPS) n--;
    *ret_steps = steps_for(t, n, seconds_of_step);
    return *ret_steps < LEAST_STEPS || t->folds[1].n < 2 ? 0 : n;
}

/* Seconds of a training step, from a few of them: how it compares with a forward pass depends on the network and the machine. */
static kith_status probe(ki_tune *t, double *ret, kith_error *err) {
    kith_error why = {0};
    ki_path folder;
    const ki_tune_way *way = NULL;
    watch w = {.tune = t, .is_probe = true};
    for (int i = 0; i < t->n_ways && !way; i++) way = t->way[i].is_fine ? &t->way[i] : NULL;
    KI_TRY(ki_path_print(&folder, err, "%s/tried/probe", t->folder));
    const kith_status status = run(t, way, &t->folds[1], 0, LEAST_STEPS, &w, &folder, &why);
    if (status != KITH_OK && (status != KITH_ECANCELED || t->must_stop)) {
        if (err) *err = why;
        return status;
    }
    ki_tune_remove(folder.s);
    *ret = w.n_seen > 1 ? (w.last - w.first) / (double)(w.n_seen - 1) : HUGE_VAL;
    return KITH_OK;
}

static kith_status plan(ki_tune *t, int *ret_n, int64_t *ret_steps, kith_error *err) {
    double value = 0, step = STEP * BATCH * t->seconds_of_view / (double)(t->learn.n > 0 ? t->learn.n : 1);
    *ret_n = 0;
    if (!ki_tune_has_decided(t, "ways to train all")) {
        *ret_n = n_for(t, step, ret_steps);
        if (*ret_n) KI_TRY(probe(t, &step, err));
        if (*ret_n) *ret_n = n_for(t, step, ret_steps);
        /* Not remembered: with more minutes the same command goes on to it. */
        if (*ret_n == 0) return KITH_OK;
    }
    KI_TRY(ki_tune_decide(t, "seconds of a step", step, &t->seconds_of_step, err));
    KI_TRY(ki_tune_decide(t, "steps to train all", (double)*ret_steps, &value, err));
    *ret_steps = (int64_t)value;
    KI_TRY(ki_tune_decide(t, "ways to train all", *ret_n, &value, err));
    *ret_n = (int)value;
    return KITH_OK;
}

/* Against the winner so far, over the classes that both were tried on. */
static kith_status compare(ki_tune *t, int number, unsigned mask, kith_error *err) {
    kith_status status;
    ki_tune_scores before = {0}, after = {0};
    ki_tune_difference by = {0}, over = {0};
    const ki_tune_way *now = &t->way[t->winner], *way = &t->way[number];
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    ki_tune_sum(t, now, &t->folds[1], now->steps, mask, NULL, &before);
    ki_tune_sum(t, way, &t->folds[1], way->steps, mask, NULL, &after);
    over = ki_tune_compare(&before, &after);
    ki_tune_say(t, "%s: R@1 %+.1f, MAP@R %+.1f points against %s", way->name, 100 * over.recall,
                100 * over.precision, t->winner ? "the best layer" : "the pretrained model");
    if (over.n >= 2 && over.mean > over.error && over.recall >= -over.recall_error &&
        ki_tune_is_better(t, number, mask, &by))
        t->winner = number;
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

/* A round that has begun is ended by the clock: the winner's own run has to fit behind it. */
static double must_end(const ki_tune *t, int64_t steps) {
    return t->seconds_allowed - (double)steps * t->seconds_of_step - RESERVE * t->seconds_allowed;
}

/* The best of the first n ways, on one fold of the partition that decides nothing; -1: there was no time for any. */
static kith_status choose(ki_tune *t, int n, int64_t steps, int *ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_tune_scores s = {0};
    double best = 0;
    int n_seen = 0;
    *ret = -1;
    for (int i = 0; i < t->n_ways && n_seen < n; i++) {
        bool is_late = false;
        if (!t->way[i].is_fine) continue;
        n_seen++;
        t->way[i].steps = steps;
        if (n == 1) return *ret = i, KITH_OK;
        /* Two more runs like this one come behind it. */
        const double end = must_end(t, (1 + N_FOLDS) * steps);
        KI_CHECK(try_fold(t, &t->way[i], &t->folds[0], 0, steps, end, &is_late, err));
        if (is_late) break;
        KI_CHECK(ki_tune_scores_init(t, &s, err));
        ki_tune_sum(t, &t->way[i], &t->folds[0], steps, 1u, NULL, &s);
        const double mean = ki_tune_mean(&s);
        if (mean > best) {
            best = mean;
            *ret = i;
        }
        ki_tune_scores_release(&s);
    }
    if (*ret >= 0)
        ki_tune_say(t, "of %d ways to train the network the best is %s", n_seen, t->way[*ret].name);
done:
    ki_tune_scores_release(&s);
    return status;
}

static kith_status try_way(ki_tune *t, int number, int64_t steps, bool *ret_late, kith_error *err) {
    unsigned mask = 0;
    *ret_late = false;
    for (int f = 0; f < N_FOLDS && f < t->folds[1].n && !*ret_late; f++) {
        KI_TRY(try_fold(t, &t->way[number], &t->folds[1], f, steps, must_end(t, steps), ret_late, err));
        mask |= 1u << f;
    }
    return *ret_late ? KITH_OK : compare(t, number, mask, err);
}

kith_status ki_tune_fine(ki_tune *t, kith_error *err) {
    int n = 0, chosen = -1;
    int64_t steps = 0;
    bool is_late = false;
    if (t->is_over) return KITH_OK;
    KI_TRY(plan(t, &n, &steps, err));
    if (n > 0) KI_TRY(choose(t, n, steps, &chosen, err));
    if (chosen >= 0) KI_TRY(try_way(t, chosen, steps, &is_late, err));
    if (chosen < 0 || is_late)
        ki_tune_say(t,
                    "no time is left to train the network itself; with more --minutes the same command goes "
                    "on to it");
    return KITH_OK;
}
