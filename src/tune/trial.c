/* One way on the features, with a fold held out: a layer, a learner, and scores of the held-out photos at some numbers of steps. The
 * learner is that of every training; what is missing is the run folder. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "embed/embedder.h"
#include "knn/whiten.h"
#include "net/model_file.h"
#include "tune/tune.h"

enum { MOST_HELD = 4000, MOST_FITTED = 10000 };

typedef struct trial {
    ki_tune *tune;
    const ki_tune_trial *what;
    ki_recipe *recipe;
    ki_items train, held;
    int32_t *class_of, n_classes; /* of the training items */
    ki_net net;
    ki_params *params;
    ki_objective *objective;
    ki_learner *learner;
    ki_embedder *embedder;
    ki_loader *loader;
    int32_t *label;
} trial;

const char *ki_tune_trial_name(const ki_tune_trial *w, char *buf, size_t bytes) {
    ki_snprintf(buf, bytes, "%s; partition %d, fold %d, share %g%s", w->way->name, w->folds->number, w->fold,
                w->part.share, w->part.of_photos ? " of photos" : "");
    return buf;
}

static void release(trial *k) {
    ki_loader_free(k->loader);
    ki_embedder_free(k->embedder);
    ki_learner_free(k->learner);
    ki_objective_free(k->objective);
    ki_params_free(k->params);
    ki_net_release(&k->net);
    ki_recipe_free(k->recipe);
    ki_free(k->train.item);
    ki_free(k->held.item);
    ki_free(k->class_of);
    ki_free(k->label);
}

/* ---- photos ---- */

/* Whole classes, drawn by their names, so that judging takes a moment. */
static void limit_held(const trial *k, ki_items *held) {
    const double share = (double)MOST_HELD / (double)held->n;
    int64_t n = 0;
    if (share >= 1) return;
    for (int64_t i = 0; i < held->n; i++) {
        const int32_t label = k->tune->set->item[held->item[i]].label;
        ki_rng rng = ki_rng_at(0, KI_RNG_SPLIT, 0x4e1d, (uint32_t)label);
        if (ki_rng_double(&rng) < share) held->item[n++] = held->item[i];
    }
    if (n > 0) held->n = n;
}

static kith_status select_photos(trial *k, kith_error *err) {
    const ki_tune_trial *w = k->what;
    const kith_dataset *set = k->tune->set;
    KI_TRY(ki_tune_select(k->tune, w->folds, w->fold, false, &w->part, &k->train, err));
    KI_TRY(ki_tune_select(k->tune, w->folds, w->fold, true, NULL, &k->held, err));
    limit_held(k, &k->held);
    KI_TRY(ki_alloc_or(&k->class_of, set->n_classes, sizeof *k->class_of, "classes", err));
    for (size_t c = 0; c < set->n_classes; c++) k->class_of[c] = -1;
    for (int64_t i = 0; i < k->train.n; i++) {
        int32_t *number = &k->class_of[set->item[k->train.item[i]].label];
        if (*number < 0) *number = k->n_classes++;
    }
    if (k->n_classes >= 2) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%d classes to train on; wanted 2", k->n_classes);
}

/* ---- the layer ---- */

static kith_status rows_of(const trial *k, float **ret, int64_t *ret_n, kith_error *err) {
    const int64_t every = (k->train.n + MOST_FITTED - 1) / MOST_FITTED, dim = k->tune->n_features;
    float *rows = NULL;
    *ret_n = 0;
    KI_TRY(ki_alloc_or(&rows, (size_t)(k->train.n / every + 1), (size_t)dim * sizeof *rows, "features", err));
    for (int64_t i = 0; i < k->train.n; i += every) {
        if (ki_dataset_row(k->tune->set, k->train.item[i], rows + *ret_n * dim, err) == KITH_OK) ++*ret_n;
    }
    *ret = rows;
    return KITH_OK;
}

/* Axes of the photos that train in this fold; made once. */
static kith_status find_axes(trial *k, double **ret, kith_error *err) {
    ki_tune *t = k->tune;
    const ki_tune_trial *w = k->what;
    const bool is_white = w->way->start == KI_TUNE_WHITE, is_cached = w->part.share >= 1;
    double **at = &t->axes[w->folds->number][w->fold + 1][is_white];
    const size_t n = (size_t)k->recipe->model.embedding, dim = (size_t)t->n_features;
    float *rows = NULL;
    int64_t n_rows = 0;
    double *map = NULL;
    if (is_cached && *at) return *ret = *at, KITH_OK;
    kith_status status = rows_of(k, &rows, &n_rows, err);
    if (status == KITH_OK) status = ki_alloc_or(&map, n * dim, sizeof *map, "axes", err);
    if (status == KITH_OK)
        status = ki_whiten_axes(rows, n_rows, (int64_t)dim, (int64_t)n, is_white, map, err);
    ki_free(rows);
    if (status != KITH_OK) {
        ki_free(map);
        return status;
    }
    *ret = map;
    if (is_cached) *at = map;
    return KITH_OK;
}

static kith_status copy_own(trial *k, const char *name, kith_error *err) {
    const ki_param *from = ki_params_find(k->tune->params, name), *to = ki_params_find(k->params, name);
    ki_real *values = NULL;
    if (!from || !to) return KITH_OK;
    KI_TRY(ki_alloc_or(&values, (size_t)from->n, sizeof *values, "the embedding layer", err));
    kith_status status = ki_params_get(k->tune->params, from, values, err);
    if (status == KITH_OK) status = ki_params_set(k->params, to, values, err);
    ki_free(values);
    return status;
}

static kith_status start_layer(trial *k, kith_error *err) {
    kith_status status;
    const ki_param *weight = ki_params_find(k->params, "embedding.weight"),
                   *bias = ki_params_find(k->params, "embedding.bias");
    ki_real *values = NULL;
    double *map = NULL;
    if (k->what->way->start == KI_TUNE_OWN) {
        KI_TRY(copy_own(k, "embedding.weight", err));
        return copy_own(k, "embedding.bias", err);
    }
    KI_CHECK(find_axes(k, &map, err));
    KI_CHECK(ki_zalloc_or(&values, (size_t)weight->n, sizeof *values, "the embedding layer", err));
    if (bias) KI_CHECK(ki_params_set(k->params, bias, values, err));
    for (int64_t i = 0; i < weight->n; i++) values[i] = (ki_real)map[i];
    KI_CHECK(ki_params_set(k->params, weight, values, err));
done:
    ki_free(values);
    if (k->what->part.share < 1) ki_free(map);
    return status;
}

static kith_status make_layer(trial *k, kith_error *err) {
    const ki_tune *t = k->tune;
    const kith_model_options layer = {.size = sizeof layer,
                                      .backbone = "none",
                                      .seed = (uint64_t)t->options->seed,
                                      .channels = t->n_features,
                                      .height = 1,
                                      .width = 1,
                                      .embedding = k->recipe->model.embedding,
                                      .no_embedding_bias = !k->recipe->model.embedding_bias,
                                      .classes = KITH_NONE,
                                      .map_channels = KITH_NONE};
    KI_TRY(ki_model_file_open(&layer, t->backend, &k->net, &k->params, NULL, err));
    const ki_embedder_settings settings = {.backend = t->backend,
                                           .net = &k->net,
                                           .params = k->params,
                                           .transform = t->test_transform,
                                           .batch = 128,
                                           .n_workers = 1};
    KI_TRY(ki_embedder_new(&settings, &k->embedder, err));
    return start_layer(k, err);
}

/* ---- judging ---- */

static kith_status embed(trial *k, const ki_items *items, const char *tap, ki_vectors *ret, kith_error *err) {
    const ki_embed_request request = {.set = k->tune->set,
                                      .items = items->item,
                                      .n = items->n,
                                      .tap = tap,
                                      .on_host = true,
                                      .most_bad = -1};
    return ki_embedder_items(k->embedder, &request, ret, err);
}

/* Nothing found, as of a layer that is no longer a number. */
static const kith_retrieval nothing;

static kith_status judge(trial *k, int64_t mark, ki_vectors *v, kith_error *err) {
    char name[256];
    kith_judgement found = {0};
    ki_judge_options options;
    KI_TRY(ki_judge_options_take(NULL, &options, err));
    options.has_clustering = options.has_intervals = false;
    options.retrieval.n_k = 1;
    options.retrieval.k[0] = 1;
    kith_status status = ki_judge_vectors(v, &options, NULL, &found, err);
    /* Held-out classes of one photo each have nothing to find. */
    if (status == KITH_EINVAL) found.retrieval = nothing;
    if (status == KITH_OK || status == KITH_EINVAL)
        status =
            ki_tune_add(k->tune, ki_tune_trial_name(k->what, name, sizeof name), mark, &found.retrieval, err);
    kith_judgement_release(&found);
    return status;
}

static kith_status look(trial *k, int64_t mark, ki_vectors *ret_held, kith_error *err) {
    char name[256];
    ki_vectors v = {0};
    kith_error why = {0};
    if (!ret_held && ki_tune_find(k->tune, ki_tune_trial_name(k->what, name, sizeof name), mark, NULL))
        return KITH_OK;
    kith_status status = embed(k, &k->held, "embedding", &v, &why);
    if (status == KITH_ENUMERIC)
        return ki_tune_add(k->tune, ki_tune_trial_name(k->what, name, sizeof name), mark, &nothing, err);
    if (status != KITH_OK) {
        if (err) *err = why;
        return status;
    }
    if (!ki_tune_find(k->tune, ki_tune_trial_name(k->what, name, sizeof name), mark, NULL))
        status = judge(k, mark, &v, err);
    if (ret_held && status == KITH_OK)
        *ret_held = v;
    else
        ki_vectors_release(&v);
    return status;
}

/* ---- learning ---- */

static kith_status start_term(trial *k, ki_tap tap, kith_error *err) {
    kith_status status;
    ki_vectors v = {0};
    int32_t *label = NULL;
    KI_CHECK(embed(k, &k->train, ki_tap_name(tap), &v, err));
    KI_CHECK(ki_alloc_or(&label, (size_t)v.n, sizeof *label, "labels", err));
    for (int64_t i = 0; i < v.n; i++) label[i] = k->class_of[v.label[i]];
    const ki_features all = {.x = v.host, .label = label, .n = v.n, .dim = v.dim};
    KI_CHECK(ki_objective_start(k->objective, tap, &all, err));
done:
    ki_vectors_release(&v);
    ki_free(label);
    return status;
}

static kith_status make_learner(trial *k, kith_error *err) {
    const ki_tune *t = k->tune;
    const ki_recipe *r = k->recipe;
    const ki_sizes sizes = {.n_classes = k->n_classes,
                            .embedding = k->net.embedding,
                            .pooled = t->n_features,
                            .no_map = true,
                            .heads = 1};
    KI_TRY(ki_objective_new(r->objective, &sizes, (uint64_t)r->seed, &k->objective, err));
    ki_objective_hush(k->objective); /* of a few classes a batch may have no pair */
    const unsigned taps = ki_objective_start_taps(k->objective);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (taps & KI_TAP_BIT(tap)) KI_TRY(start_term(k, tap, err));
    }
    const ki_learner_settings settings = {.backend = t->backend,
                                          .net = &k->net,
                                          .params = k->params,
                                          .objective = k->objective,
                                          .batch = ki_sampler_batch_size(&r->batch),
                                          .whole = ki_sampler_batch_size(&r->batch),
                                          .n_micro = 1,
                                          .format = KI_BATCH_FLOAT,
                                          .transform = &t->train_transform,
                                          .seed = (uint64_t)r->seed,
                                          .optim = &r->optim};
    return ki_learner_new(&settings, &k->learner, err);
}

/* A fold has fewer classes than all photos. */
static kith_status make_loader(trial *k, kith_error *err) {
    const kith_dataset *set = k->tune->set;
    ki_sampler_settings batch = k->recipe->batch;
    int32_t *label = NULL;
    ki_sampler *sampler = NULL;
    if (batch.classes > k->n_classes) batch.classes = k->n_classes;
    KI_TRY(ki_alloc_or(&label, (size_t)k->train.n, sizeof *label, "labels", err));
    for (int64_t i = 0; i < k->train.n; i++) label[i] = set->item[k->train.item[i]].label;
    const kith_status status =
        ki_sampler_new(&batch, (uint64_t)k->recipe->seed, k->train.item, label, k->train.n, &sampler, err);
    ki_free(label);
    KI_TRY(status);
    const int64_t most = ki_sampler_batch_size(&batch);
    const ki_loader_settings settings = {.format = KI_BATCH_FLOAT,
                                         .memory = ki_feed_memory(k->tune->backend),
                                         .caller_computes = k->tune->backend->type->is_host,
                                         .bad = KI_BAD_REPLACE,
                                         .seed = (uint64_t)k->recipe->seed,
                                         .draws_views = true,
                                         .n_workers = 1,
                                         .most_bad = -1};
    KI_TRY(ki_alloc_or(&k->label, (size_t)most, sizeof *k->label, "labels", err));
    return ki_loader_new(set, sampler, most, &settings, &k->loader, err);
}

static kith_status step(trial *k, int64_t number, kith_error *err) {
    ki_loader_batch batch;
    KI_TRY(ki_loader_next(k->loader, &batch, err));
    for (int64_t i = 0; i < batch.n; i++) k->label[i] = k->class_of[batch.label[i]];
    const ki_learner_batch input = {.n = batch.n, .n_all = batch.n, .data = batch.data, .label = k->label};
    KI_TRY(ki_learner_add(k->learner, &input, (uint64_t)number, err));
    return ki_learner_update(k->learner, k->recipe->optim.schedule.lr, err);
}

/* A way whose numbers are lost has lost; the search goes on. */
static kith_status lose(trial *k, int from, kith_error *err) {
    char name[256];
    for (int m = from; m < k->what->n_marks; m++)
        KI_TRY(ki_tune_add(k->tune, ki_tune_trial_name(k->what, name, sizeof name), k->what->mark[m],
                           &nothing, err));
    return KITH_OK;
}

static kith_status learn(trial *k, ki_vectors *ret_held, kith_error *err) {
    const ki_tune_trial *w = k->what;
    int64_t done = 0;
    for (int m = 0; m < w->n_marks; m++) {
        if (m > 0 && w->until > 0 && ki_tune_seconds(k->tune) > w->until) return KITH_OK;
        for (; done < w->mark[m]; done++) {
            kith_error why = {0};
            const kith_status status = step(k, done, &why);
            if (status == KITH_ENUMERIC) return lose(k, m, err);
            if (status != KITH_OK) {
                if (err) *err = why;
                return status;
            }
            if (done % 16 == 0 && ki_tune_busy(k->tune, done, w->mark[w->n_marks - 1]) != 0)
                return ki_tune_stopped(err);
        }
        KI_TRY(look(k, w->mark[m], m + 1 == w->n_marks ? ret_held : NULL, err));
    }
    return KITH_OK;
}

static bool is_known(const ki_tune *t, const ki_tune_trial *w) {
    char name[256];
    ki_tune_trial_name(w, name, sizeof name);
    for (int m = 0; m < w->n_marks; m++) {
        if (!ki_tune_find(t, name, w->mark[m], NULL)) return false;
    }
    return true;
}

kith_status ki_tune_try(ki_tune *t, const ki_tune_trial *what, ki_vectors *ret_held, kith_error *err) {
    kith_status status = KITH_OK;
    trial k = {.tune = t, .what = what};
    if (!ret_held && is_known(t, what)) return KITH_OK;
    ki_snprintf(t->busy, sizeof t->busy, "trying %s", what->way->name);
    KI_CHECK(ki_tune_recipe(t, what->way, what->mark[what->n_marks - 1], &k.recipe, err));
    KI_CHECK(select_photos(&k, err));
    KI_CHECK(make_layer(&k, err));
    if (!what->way->objective) {
        status = look(&k, what->mark[0], ret_held, err);
        goto done;
    }
    KI_CHECK(make_learner(&k, err));
    KI_CHECK(make_loader(&k, err));
    KI_CHECK(learn(&k, ret_held, err));
done:
    release(&k);
    return status;
}

/* The layer before anything was learnt, of all photos that train. */
kith_status ki_tune_pretrained(ki_tune *t, const ki_items *items, ki_vectors *ret, kith_error *err) {
    kith_status status;
    const ki_tune_trial what = {.way = &t->way[0], .folds = &t->folds[1], .fold = -1, .part = {.share = 1}};
    trial k = {.tune = t, .what = &what};
    KI_CHECK(ki_tune_recipe(t, what.way, 1, &k.recipe, err));
    KI_CHECK(select_photos(&k, err));
    KI_CHECK(make_layer(&k, err));
    KI_CHECK(embed(&k, items, "embedding", ret, err));
done:
    release(&k);
    return status;
}
