/* Everything a run needs before its first step: data, network, objective, learner, standing. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/input.h"
#include "data/section.h"
#include "embed/preprocess.h"
#include "net/adapt.h"
#include "net/model_file.h"
#include "train/frozen.h"

/* ---- data ---- */

static kith_status select_split(ki_train_state *run, kith_split split, ki_items *ret, kith_error *err) {
    return ki_dataset_select(run->set, split, &ret->item, &ret->n, err);
}

/* Number the training classes from 0, in the data set's order. */
static kith_status number_classes(ki_train_state *run, kith_error *err) {
    const size_t n = run->set->n_classes;
    KI_TRY(ki_alloc_or(&run->class_of, n, sizeof *run->class_of, "classes", err));
    for (size_t c = 0; c < n; c++) run->class_of[c] = -1;
    for (int64_t i = 0; i < run->train.n; i++) {
        const int32_t label = run->set->item[run->train.item[i]].label;
        if (!ki_dataset_is_class(run->set, label)) continue;
        run->class_of[label] = 0;
        run->n_labelled++;
    }
    for (size_t c = 0; c < n; c++) {
        if (run->class_of[c] == 0) run->class_of[c] = run->n_classes++;
    }
    if (run->n_classes >= 2 || !run->recipe->reads_classes) return KITH_OK;
    if (run->n_labelled == 0 && run->train.n > 0) {
        ki_fail(err, KITH_EINVAL, "%s has no classes to train on, and %s counts only images that have one",
                run->set->root, run->recipe->reads_classes);
        return ki_hint(err, KITH_EINVAL,
                       "add a data set with classes, or learn from teachers alone (loss: none)");
    }
    ki_fail(err, KITH_EINVAL, "%s has %d classes to train on; wanted at least 2", run->set->root,
            run->n_classes);
    return ki_hint(err, KITH_EINVAL,
                   "`kith data` shows its classes; data.validation takes some of them for validation");
}

/* With one image in every class, seen once in a batch, there is no pair of one class to learn from. */
static kith_status check_pairs(const ki_train_state *run, kith_error *err) {
    if (run->recipe->batch.views >= 2) return KITH_OK;
    if (run->n_classes < run->n_labelled || !ki_objective_needs_pairs(run->recipe->objective)) return KITH_OK;
    ki_fail(err, KITH_EINVAL,
            "%s has %d training classes of 1 image each; a pair loss wants a class with 2 images or more",
            run->set->root, run->n_classes);
    return ki_hint(err, KITH_EINVAL,
                   "look at it with `kith data`; a folder of images is a class; batch.views: 2 makes pairs "
                   "of each image");
}

/* Whole training classes in random order, as many as fit. */
static kith_status select_seen(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    kith_status status;
    int64_t *order = NULL, *count = NULL;
    bool *is_taken = NULL;
    if (!r->eval.seen || run->n_classes >= run->n_labelled) return KITH_OK; /* nobody has one to find */
    const size_t n = run->set->n_classes;
    KI_CHECK(ki_alloc_or(&order, n, sizeof *order, "classes", err));
    KI_CHECK(ki_zalloc_or(&count, n, sizeof *count, "classes", err));
    KI_CHECK(ki_zalloc_or(&is_taken, n, sizeof *is_taken, "classes", err));
    KI_CHECK(ki_alloc_or(&run->seen.item, (size_t)run->train.n, sizeof *run->seen.item, "items", err));
    for (size_t c = 0; c < n; c++) order[c] = (int64_t)c;
    for (int64_t i = 0; i < run->train.n; i++) count[run->set->item[run->train.item[i]].label]++;
    ki_rng rng = ki_rng_at(0, KI_RNG_SPLIT, 0x5ee9, 0);
    ki_rng_shuffle(&rng, order, (int64_t)n);
    int64_t n_taken = 0;
    for (size_t c = 0; c < n; c++) {
        const int64_t here = count[order[c]];
        if (here == 0 || run->class_of[order[c]] < 0 || n_taken + here > r->eval.max_seen) continue;
        is_taken[order[c]] = true;
        n_taken += here;
    }
    for (int64_t i = 0; i < run->train.n; i++) {
        const int64_t item = run->train.item[i];
        if (is_taken[run->set->item[item].label]) run->seen.item[run->seen.n++] = item;
    }
done:
    ki_free(order);
    ki_free(count);
    ki_free(is_taken);
    return status;
}

/* A set that lacks a file somebody named is another set than was meant. */
static kith_status check_whole(const kith_dataset *set, kith_error *err) {
    for (size_t i = 0; i < set->n_parts; i++) KI_TRY(check_whole(set->part[i], err));
    if (!set->unread.absent) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s: there is no such file", set->unread.absent);
    return ki_hint(err, KITH_EIO, "data.root names it; put it back, or name the tar files that are there");
}

static kith_status open_data(ki_train_state *run, kith_error *err) {
    const kith_status status = ki_data_open(run->recipe->data, &run->set, err);
    if (status != KITH_OK && run->has_begun)
        return ki_hint(err, status,
                       run->recipe->is_features
                           ? "if the data was moved, say where it is now with --set data.features=…"
                       : run->recipe->data->kind == KI_VALUE_LIST
                           ? "if the data was moved, say where it is now with --set data.0.root=…"
                           : "if the data was moved, say where it is now with --set data.root=…");
    KI_TRY(status);
    KI_TRY(check_whole(run->set, err));
    KI_TRY(select_split(run, KITH_SPLIT_TRAIN, &run->train, err));
    KI_TRY(select_split(run, KITH_SPLIT_VALIDATION, &run->validation, err));
    if (run->recipe->eval.test) KI_TRY(select_split(run, KITH_SPLIT_TEST, &run->test, err));
    KI_TRY(number_classes(run, err));
    KI_TRY(check_pairs(run, err));
    KI_TRY(select_seen(run, err));
    kith_dataset_hash(run->set, -1, run->data_hash);
    run->selection = (ki_select)run->recipe->eval.select;
    if (run->selection == KI_SELECT_VALIDATION && run->validation.n == 0) run->selection = KI_SELECT_LAST;
    if (run->selection == KI_SELECT_TEST && run->test.n == 0)
        return ki_fail(err, KITH_EINVAL, "eval.select is test, and %s has no test images", run->set->root);
    return KITH_OK;
}

/* ---- network ---- */

static kith_status open_network(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    char settings[512];
    ki_backend_options backend = {
        .precision = (ki_precision)r->precision, .tf32 = r->tf32, .deterministic = r->deterministic};
    KI_TRY(ki_train_choose_device(r, run->comm, &backend.device, err));
    KI_TRY(ki_backend_open(r->device, &backend, &run->backend, err));
    const kith_status written = ki_recipe_settings_text(r->model.settings, settings, sizeof settings, err);
    if (written != KITH_OK) return ki_prefix(err, written, "model");
    bool has_weights = false;
    KI_TRY(ki_train_check_weights(run, &has_weights, err));
    if (has_weights && r->is_from_general)
        ki_log(KITH_LOG_INFO, "no network is named: training starts from the model that came with kith");
    const int64_t map_channels = r->model.map_channels ? r->model.map_channels : KITH_NONE;
    const int64_t n_features = kith_dataset_n_features(run->set);
    const kith_model_options model = {.size = sizeof(kith_model_options),
                                      .backbone = *r->model.backbone ? r->model.backbone : NULL,
                                      .weights = has_weights ? r->model.weights : NULL,
                                      .seed = (uint64_t)r->seed,
                                      .settings = settings,
                                      .channels = n_features ? n_features : r->train.channels,
                                      .height = n_features ? 1 : r->train.crop_to,
                                      .width = n_features ? 1 : r->train.crop_to,
                                      .pool = ki_pooling_names[r->model.pool],
                                      .embedding = r->model.embedding,
                                      .no_embedding_bias = !r->model.embedding_bias,
                                      .embedding_init = r->model.embedding_init < KI_START_OF_AXES
                                                            ? ki_start_names[r->model.embedding_init]
                                                            : "torch",
                                      .classes = KITH_NONE,
                                      .heads = r->model.heads,
                                      .mask_gain = r->model.mask_gain,
                                      .mask_bias = r->model.mask_bias,
                                      .map_channels = map_channels};
    if (r->model.frozen) return ki_frozen_open(run, &model, err);
    /* A checkpoint describes the network. */
    if (run->from.tensors)
        KI_TRY(ki_model_file_describe(&model, run->from.tensors, KI_CHECKPOINT_MODEL, run->backend, &run->net,
                                      &run->params, err));
    else
        KI_TRY(ki_model_file_open(&model, run->backend, &run->net, &run->params, NULL, err));
    KI_TRY(ki_adapt(&r->adapt, (uint64_t)r->seed, run->backend, &run->net, &run->params, err));
    run->train_transform = r->train;
    run->test_transform = r->test;
    ki_preprocess_take(&run->net, &run->train_transform);
    ki_preprocess_take(&run->net, &run->test_transform);
    /* The model's file says how images are prepared for it. */
    ki_preprocess_tell(&r->test, &run->net);
    const kith_status status =
        ki_net_of_size(&run->net, n_features ? 1 : r->test.crop_to, &run->test_net, err);
    return status == KITH_OK ? KITH_OK : ki_prefix(err, status, "input: test_crop");
}

static int64_t tap_channels(const ki_net *net, const char *tap) {
    int node = 0;
    kith_error ignored;
    if (ki_graph_find_tap(net->graph, tap, &node, &ignored) != KITH_OK) return 0;
    return ki_graph_node(net->graph, node)->shape.dim[1];
}

/* They see what the network sees. A run goes on only with the teachers that it began with. */
static kith_status open_teachers(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    for (int t = 0; t < r->n_teachers; t++) {
        KI_TRY(ki_teacher_open(r, t, run->net.c, run->net.h, run->backend, &run->teacher[t], err));
        KI_TRY(ki_train_check_teacher(run, t, err));
    }
    return KITH_OK;
}

static kith_status make_embedder(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    int64_t batch = r->eval.batch ? r->eval.batch : run->batch;
    if (!r->eval.batch && batch > 128) batch = 128;
    const ki_embedder_settings embedder = {.backend = run->backend,
                                           .net = &run->test_net,
                                           .params = run->params,
                                           .transform = run->test_transform,
                                           .batch = batch,
                                           .n_workers = r->workers};
    return ki_embedder_new(&embedder, &run->embedder, err);
}

/* A device can cut a window out of a whole image, but not make it smaller. */
static ki_batch_format batch_format(const ki_train_state *run) {
    const ki_batch_format format = ki_feed_format(run->backend, &run->net, &run->train_transform);
    return format == KI_BATCH_WHOLE && run->recipe->sides.n ? KI_BATCH_BYTES : format;
}

static kith_status make_learner(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    ki_sizes sizes = {.n_classes = run->n_classes,
                      .embedding = run->net.embedding,
                      .pooled = tap_channels(&run->net, "pooled"),
                      .map = tap_channels(&run->net, "map"),
                      .no_map = ki_net_takes_vectors(&run->net),
                      .heads = run->net.heads};
    for (int t = 0; t < r->n_teachers; t++) sizes.teacher[t] = ki_teacher_width(&run->teacher[t]);
    ki_train_share_out(run, &sizes);
    KI_TRY(ki_objective_new(r->objective, &sizes, (uint64_t)r->seed, &run->objective, err));
    ki_objective_nested_text(run->objective, run->net.nested, sizeof run->net.nested);
    memcpy(run->test_net.nested, run->net.nested, sizeof run->net.nested);
    ki_train_choose_variants(run);
    const ki_learner_settings settings = {.backend = run->backend,
                                          .net = &run->net,
                                          .params = run->params,
                                          .objective = run->objective,
                                          .batch = ki_comm_most(run->comm, run->batch),
                                          .comm = run->comm,
                                          .device_comm = run->device_comm,
                                          .whole = run->batch,
                                          .n_micro = (int)r->optim.accumulate,
                                          .chunk = r->batch.cached ? r->batch.chunk : 0,
                                          .format = batch_format(run),
                                          .transform = &run->train_transform,
                                          .frozen_bn = r->model.bn == 1,
                                          .seed = (uint64_t)r->seed,
                                          .teacher = run->teacher,
                                          .n_teachers = r->n_teachers,
                                          .sides = r->sides,
                                          .n_unlabelled = run->n_unlabelled,
                                          .optim = &r->optim};
    KI_TRY(ki_learner_new(&settings, &run->learner, err));
    KI_TRY(ki_train_recent_make(run, err));
    KI_TRY(ki_alloc_or(&run->label, (size_t)run->batch, sizeof *run->label, "labels", err));
    return ki_alloc_or(&run->embedding, (size_t)run->batch, (size_t)run->net.embedding * sizeof(float),
                       "a batch's embeddings", err);
}

/* The starting network's values for the training images that have a class, for terms that need them to begin. */
static kith_status start_from(ki_train_state *run, ki_tap tap, kith_error *err) {
    kith_status status;
    ki_vectors features = {0};
    const float *x = NULL;
    int32_t *label = NULL;
    int64_t *item = NULL, n = 0;
    KI_CHECK(ki_alloc_or(&item, (size_t)run->train.n, sizeof *item, "items", err));
    for (int64_t i = 0; i < run->train.n; i++) {
        if (run->class_of[run->set->item[run->train.item[i]].label] >= 0) item[n++] = run->train.item[i];
    }
    KI_CHECK(ki_train_embed(run, item, n, ki_tap_name(tap), NULL, &features, err));
    KI_CHECK(ki_vectors_host(&features, &x, err));
    KI_CHECK(ki_alloc_or(&label, (size_t)features.n, sizeof *label, "labels", err));
    for (int64_t i = 0; i < features.n; i++) label[i] = run->class_of[features.label[i]];
    const ki_features all = {.x = x, .label = label, .n = features.n, .dim = features.dim};
    KI_CHECK(ki_objective_start(run->objective, tap, &all, err));
done:
    ki_vectors_release(&features);
    ki_free(item);
    ki_free(label);
    return status;
}

static kith_status start_terms(ki_train_state *run, kith_error *err) {
    const unsigned taps = ki_objective_start_taps(run->objective);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (taps & KI_TAP_BIT(tap)) KI_TRY(start_from(run, tap, err));
    }
    return taps ? ki_learner_push(run->learner, err) : KITH_OK;
}

/* ---- the standing ---- */

/* The training images of each set follow each other, as the sets do. */
static kith_status make_mixed(const ki_train_state *run, const int32_t *labels, ki_sampler **ret,
                              kith_error *err) {
    const ki_recipe *r = run->recipe;
    const size_t n_parts = run->set->n_parts;
    ki_sampler_part *parts = NULL;
    int64_t at = 0;
    KI_TRY(ki_zalloc_or(&parts, n_parts, sizeof *parts, "parts", err));
    for (size_t p = 0; p < n_parts; p++) {
        size_t first = 0, n = 0;
        ki_dataset_part(run->set, p, &first, &n);
        parts[p] = (ki_sampler_part){.first = at, .weight = run->set->part[p]->weight};
        while (at < run->train.n && (size_t)run->train.item[at] < first + n) at++;
        parts[p].n = at - parts[p].first;
        parts[p].has_classes = !run->set->part[p]->class_[0].is_none;
    }
    const kith_status status =
        ki_sampler_new_mixed(&r->batch, (uint64_t)r->seed, run->train.item, labels, parts, n_parts, ret, err);
    ki_free(parts);
    return status;
}

kith_status ki_train_make_sampler(ki_train_state *run, ki_sampler **ret, kith_error *err) {
    const ki_recipe *r = run->recipe;
    int32_t *labels = NULL, *supers = NULL;
    kith_status status;
    KI_CHECK(ki_alloc_or(&labels, (size_t)run->train.n + 1, sizeof *labels, "labels", err));
    KI_CHECK(ki_alloc_or(&supers, (size_t)run->train.n + 1, sizeof *supers, "labels", err));
    for (int64_t i = 0; i < run->train.n; i++) labels[i] = run->set->item[run->train.item[i]].label;
    for (int64_t i = 0; i < run->train.n; i++) supers[i] = run->set->class_[labels[i]].super - 1;
    if (run->set->n_parts)
        KI_CHECK(make_mixed(run, labels, ret, err));
    else
        KI_CHECK(ki_sampler_new_of(&r->batch, (uint64_t)r->seed, run->train.item, labels,
                                   run->set->supers ? supers : NULL, run->train.n, ret, err));
    KI_CHECK(ki_sampler_n_batches(*ret, &run->epoch_batches, err));
done:
    ki_free(labels);
    ki_free(supers);
    if (status != KITH_OK) {
        ki_sampler_free(*ret);
        *ret = NULL;
    }
    return status;
}

static void count_steps(ki_train_state *run) {
    const ki_schedule_settings *s = &run->recipe->optim.schedule;
    const int64_t accumulate = run->recipe->optim.accumulate;
    run->n_steps = s->steps ? s->steps : (s->epochs * run->epoch_batches + accumulate - 1) / accumulate;
}

static kith_status start_loader(ki_train_state *run, ki_sampler *sampler, kith_error *err) {
    const ki_recipe *r = run->recipe;
    const ki_loader_settings settings = {
        .transform = run->train_transform,
        .sides = run->recipe->sides,
        .format = batch_format(run),
        .memory = ki_feed_memory(run->backend),
        .caller_computes = run->backend->type->is_host && ki_threads() >= ki_cores_allowed(),
        .bad = KI_BAD_REPLACE,
        .seed = (uint64_t)r->seed,
        .draws_views = true,
        .n_workers = r->workers,
        .n_ahead = (int)r->ahead,
        .cache = run->cache,
        .most_bad = r->most_bad,
        .comm = run->comm};
    return ki_loader_new(run->set, sampler, run->batch, &settings, &run->loader, err);
}

static kith_status write_text(const ki_train_state *run, const char *name, const char *text,
                              kith_error *err) {
    ki_path path;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "%s", name));
    return ki_file_write(path.s, text, strlen(text), err);
}

static kith_status begin(ki_train_state *run, kith_error *err) {
    ki_path path;
    run->started = (int64_t)time(NULL);
    if (!run->writes) return KITH_OK;
    KI_TRY(ki_folder_at(&run->folder, &path, err, "split.csv"));
    KI_TRY(kith_dataset_split_write(run->set, path.s, err));
    KI_TRY(ki_folder_at(&run->folder, &path, err, KI_DATA_LIST));
    KI_TRY(ki_dataset_list_write(run->set, path.s, err));
    KI_TRY(ki_train_write_run(run, err));
    KI_TRY(ki_run_paths_write(run->folder.path, &run->recipe->paths, err));
    return write_text(run, "recipe.yaml", run->recipe->text, err);
}

void ki_train_hash_recipe(const ki_recipe *recipe, char ret[65]) {
    const char *text = ki_recipe_identity(recipe);
    kith_hash hash = {0};
    kith_hash_add(&hash, text, strlen(text));
    kith_hash_finish(&hash, ret);
}

static kith_status begin_fresh(ki_train_state *run, kith_error *err) {
    KI_TRY(ki_train_check_fresh(run, err));
    return begin(run, err);
}

/* Everything that a rank does alone: it reads, and changes nothing in the folder. */
static kith_status prepare(ki_train_state *run, ki_sampler **ret_sampler, kith_error *err) {
    ki_train_hash_recipe(run->recipe, run->recipe_hash);
    KI_TRY(ki_train_check_folder(run, err));
    KI_TRY(ki_train_find_checkpoint(run, &run->from, &run->from_step, err));
    KI_TRY(open_data(run, err));
    KI_TRY(ki_train_check_data(run, err));
    KI_TRY(open_network(run, err));
    KI_TRY(open_teachers(run, err));
    run->batch = ki_sampler_batch_size(&run->recipe->batch);
    KI_TRY(ki_train_make_sampler(run, ret_sampler, err));
    run->n_unlabelled = ki_sampler_n_unlabelled(*ret_sampler);
    count_steps(run);
    return KITH_OK;
}

static kith_status restore_or_begin(ki_train_state *run, ki_sampler *sampler, kith_error *err) {
    if (run->from.tensors) {
        KI_TRY(ki_train_restore(run, err));
        return ki_sampler_restore(sampler, &run->at.sampler, err);
    }
    if (!run->recipe->model.frozen) KI_TRY(begin_fresh(run, err));
    run->at.sampler = ki_sampler_save(sampler);
    return KITH_OK;
}

/* Features take their time, and a run that is stopped meanwhile can be resumed: so it begins before. */
static kith_status make_features(ki_train_state *run, kith_error *err) {
    if (!run->recipe->model.frozen) return KITH_OK;
    if (!run->from.tensors) KI_TRY(begin_fresh(run, err));
    return ki_frozen_features(run, err);
}

static kith_status open_record(ki_train_state *run, kith_error *err) {
    const char *term[KI_MOST_TERMS];
    ki_log_columns columns = {.term = term, .k = run->recipe->k, .n_k = run->recipe->n_k};
    for (size_t i = 0; i < ki_objective_term_count(run->objective) && i < KI_MOST_TERMS; i++)
        term[columns.n_terms++] = ki_objective_term_name(run->objective, i);
    return ki_record_open(run->folder.path, run->at.log_bytes, run->at.step, &columns, &run->record, err);
}

/* The log and the loader. Takes over the sampler. */
static kith_status start(ki_train_state *run, ki_sampler **sampler, kith_error *err) {
    if (run->writes) KI_TRY(open_record(run, err));
    ki_sampler *taken = *sampler;
    *sampler = NULL;
    return start_loader(run, taken, err);
}

kith_status ki_train_setup(ki_train_state *run, kith_error *err) {
    kith_status status;
    ki_sampler *sampler = NULL;
    KI_CHECK(ki_train_agree(run, prepare(run, &sampler, err), err));
    KI_CHECK(ki_device_comm_open(run->backend, run->comm, &run->device_comm, err));
    KI_CHECK(ki_train_agree(run, make_features(run, err), err));
    KI_CHECK(ki_train_agree(run, make_embedder(run, err), err));
    if (!run->from.tensors) KI_CHECK(ki_train_start_layer(run, err));
    KI_CHECK(ki_train_agree(run, make_learner(run, err), err));
    const bool is_new = !run->from.tensors;
    KI_CHECK(ki_train_agree(run, restore_or_begin(run, sampler, err), err));
    if (is_new) KI_CHECK(start_terms(run, err));
    KI_CHECK(ki_cache_new((int64_t)run->set->n_items, (size_t)run->recipe->cache_mib << 20, run->comm,
                          &run->cache, err));
    KI_CHECK(ki_train_agree(run, start(run, &sampler, err), err));
done:
    ki_sampler_free(sampler);
    return status;
}

void ki_train_release(ki_train_state *run) {
    /* A rank that leaves a lost job must not wait for numbers of the others, which its device may still do. */
    if (run->comm && run->comm->is_lost) {
        ki_learner_drop_recordings(run->learner);
        ki_device_comm_close(run->device_comm);
        run->device_comm = NULL;
    }
    ki_checkpoint_release(&run->from);
    ki_loader_free(run->loader);
    ki_cache_free(run->cache);
    ki_record_close(run->record);
    ki_train_variants_end(run);
    ki_embedder_free(run->embedder);
    ki_learner_free(run->learner);
    ki_device_comm_close(run->device_comm);
    ki_objective_free(run->objective);
    for (int t = 0; t < KI_MOST_TEACHERS; t++) ki_teacher_release(&run->teacher[t]);
    ki_frozen_release(run);
    ki_params_free(run->params);
    ki_net_release(&run->test_net);
    ki_net_release(&run->net);
    ki_backend_close(run->backend);
    ki_free(run->train.item);
    ki_free(run->validation.item);
    ki_free(run->test.item);
    ki_free(run->seen.item);
    ki_free(run->class_of);
    ki_free(run->label);
    ki_free(run->embedding);
    ki_train_recent_release(run);
    kith_dataset_free(run->set);
    ki_folder_release(&run->folder);
}

static kith_status write_checkpoint(ki_train_state *run, ki_path *path, kith_error *err) {
    KI_TRY(ki_record_sync(run->record, &run->at.log_bytes, err));
    run->at.wall_seconds = ki_train_wall(run);
    KI_TRY(ki_folder_at(&run->folder, path, err, KI_CHECKPOINT_NAME, (long long)run->at.step));
    return ki_checkpoint_save(path->s, run->learner, &run->net, &run->at, run->recipe_hash, err);
}

kith_status ki_train_save(ki_train_state *run, kith_error *err) {
    ki_path path;
    if (run->saved_step == run->at.step && run->at.last_eval <= run->saved_eval) return KITH_OK;
    KI_TRY(ki_learner_check_ranks(run->learner, err)); /* what one rank saves is everybody's */
    KI_TRY(ki_learner_save_begin(run->learner, err));
    const kith_status status = run->writes ? write_checkpoint(run, &path, err) : KITH_OK;
    ki_learner_save_end(run->learner);
    KI_TRY(status);
    run->saved_step = run->at.step;
    run->saved_eval = run->at.last_eval;
    if (!run->writes) return KITH_OK;
    ki_folder_drop_checkpoints(&run->folder, run->recipe->checkpoint_keep);
    ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_SAVED, .text = path.s});
    return KITH_OK;
}
