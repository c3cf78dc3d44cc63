/* The network that is trained, and what it says of every photo: the features all heads are tried on. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "embed/preprocess.h"
#include "kith/eval.h"
#include "net/general.h"
#include "net/model_file.h"
#include "train/frozen.h"
#include "tune/findings.h"
#include "tune/tune.h"

enum { MOST_VIEWS = 8 };
/* Of all the time, for views. */
static const double VIEWS = 0.25;

static kith_status open_network(ki_tune *t, kith_error *err) {
    const char *device = t->options->device ? t->options->device : "cpu";
    char file[PATH_MAX];
    KI_TRY(ki_model_file_find(t->options->model ? t->options->model : KI_GENERAL, file, sizeof file, err));
    const kith_model_options model = {
        .size = sizeof model, .weights = file, .classes = KITH_NONE, .map_channels = KITH_NONE};
    const ki_backend_options backend = {.deterministic = true};
    KI_TRY(ki_backend_open(device, &backend, &t->backend, err));
    KI_TRY(ki_model_file_open(&model, t->backend, &t->net, &t->params, NULL, err));
    if (!ki_net_takes_vectors(&t->net) && t->net.heads <= 1) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%s %s", model.weights,
            t->net.heads > 1 ? "is an ensemble; wanted a plain network"
                             : "takes features; wanted one that takes images");
    return ki_hint(err, KITH_EUNSUPPORTED, "name another with --model, or write a recipe");
}

static kith_status count_features(ki_tune *t, kith_error *err) {
    int node = 0;
    KI_TRY(ki_graph_find_tap(t->net.graph, "pooled", &node, err));
    t->n_features = ki_shape_count(&ki_graph_node(t->net.graph, node)->shape);
    t->own = t->net.embedding;
    return KITH_OK;
}

/* Sizes and transforms are those of the recipe that all ways share, so that runs with it find the features. */
kith_status ki_tune_open(ki_tune *t, kith_error *err) {
    KI_TRY(open_network(t, err));
    KI_TRY(count_features(t, err));
    ki_tune_find_parts(t);
    ki_tune_list(t);
    KI_TRY(ki_tune_recipe(t, &t->way[0], 1, &t->base, err));
    t->train_transform = t->base->train;
    t->test_transform = t->base->test;
    ki_preprocess_take(&t->net, &t->train_transform);
    ki_preprocess_take(&t->net, &t->test_transform);
    return ki_net_of_size(&t->net, t->base->test.crop_to, &t->test_net, err);
}

/* ---- features ---- */

static kith_status open_photos(ki_tune *t, kith_error *err) {
    ki_path path;
    bool *seen = NULL;
    KI_TRY(ki_path_print(&path, err, "%s/photos.csv", t->folder));
    KI_TRY(kith_dataset_open("csv", path.s, &t->set, err));
    const size_t n = t->set->n_items, n_classes = t->set->n_classes;
    KI_TRY(ki_alloc_or(&t->learn.item, n, sizeof *t->learn.item, "photos", err));
    KI_TRY(ki_zalloc_or(&t->is_sound, n, sizeof *t->is_sound, "photos", err));
    KI_TRY(ki_zalloc_or(&seen, 2 * n_classes, sizeof *seen, "classes", err));
    for (size_t i = 0; i < n; i++) {
        const bool tests = t->set->item[i].split == KITH_SPLIT_TEST;
        if (!tests) t->learn.item[t->learn.n++] = (int64_t)i;
        bool *is_seen = &seen[2 * t->set->item[i].label + tests];
        int64_t *count = tests ? &t->n_test_classes : &t->n_train_classes;
        *count += !*is_seen;
        *is_seen = true;
    }
    t->n_classes = (int64_t)n_classes;
    ki_free(seen);
    return KITH_OK;
}

static kith_status open_kept(ki_tune *t, const kith_dataset *set, ki_kept **ret, kith_error *err) {
    kith_status status;
    ki_path folder;
    char hash[65], *identity = NULL;
    KI_CHECK(ki_path_print(&folder, err, "%s/features", t->folder));
    KI_CHECK(kith_file_hash(t->base->model.weights, hash, err));
    KI_CHECK(ki_frozen_identity(t->base, hash, &identity, err));
    const ki_kept_settings settings = {.folder = folder.s,
                                       .set = set,
                                       .backend = t->backend,
                                       .net = &t->net,
                                       .test_net = &t->test_net,
                                       .params = t->params,
                                       .train = t->train_transform,
                                       .test = t->test_transform,
                                       .identity = identity,
                                       .batch = 32,
                                       .most_bad = -1,
                                       .seed = (uint64_t)t->options->seed,
                                       .progress = ki_tune_busy,
                                       .user = t};
    status = ki_kept_open(&settings, ret, err);
done:
    ki_free(identity);
    return status;
}

kith_status ki_tune_carry(ki_tune *t, const kith_dataset *set, const kith_dataset *less, const int64_t *item,
                          kith_error *err) {
    kith_status status;
    ki_path old;
    ki_kept *from = NULL, *to = NULL;
    KI_CHECK(open_kept(t, set, &from, err));
    KI_CHECK(open_kept(t, less, &to, err));
    status = ki_kept_take(to, from, item, err);
    if (status == KITH_OK) status = ki_path_print(&old, err, "%s", ki_kept_folder(from));
    if (status == KITH_OK) ki_tune_remove(old.s);
done:
    ki_kept_free(from);
    ki_kept_free(to);
    return status;
}

static kith_status make_view(ki_tune *t, int64_t view, kith_error *err) {
    if (t->n_views)
        ki_snprintf(t->busy, sizeof t->busy, "embedding, view %lld of %lld", (long long)view + 1,
                    (long long)t->n_views);
    else
        ki_snprintf(t->busy, sizeof t->busy, "embedding the photos");
    const kith_status status = ki_kept_view(t->kept, view, err);
    return status == KITH_ECANCELED ? ki_tune_stopped(err) : status;
}

/* How everything is judged: one view of all photos. */
static kith_status make_first_view(ki_tune *t, kith_error *err) {
    const double began = ki_seconds_now();
    KI_TRY(make_view(t, 0, err));
    KI_TRY(ki_tune_decide(t, "seconds of a view", ki_seconds_now() - began, &t->seconds_of_view, err));
    ki_snprintf(t->busy, sizeof t->busy, "embedding test photos");
    const kith_status status = ki_kept_lone(t->kept, err);
    return status == KITH_ECANCELED ? ki_tune_stopped(err) : status;
}

/* As many views as there is time for. */
static kith_status make_views(ki_tune *t, kith_error *err) {
    double value = 0;
    KI_TRY(make_first_view(t, err));
    double n = 1 + VIEWS * t->seconds_allowed / (t->seconds_of_view > 1e-3 ? t->seconds_of_view : 1e-3);
    const double left = ki_tune_left(t) / 3 / (t->seconds_of_view > 1e-3 ? t->seconds_of_view : 1e-3);
    if (n > 1 + left) n = 1 + left;
    if (n > MOST_VIEWS) n = MOST_VIEWS;
    if (n < 1) n = 1;
    KI_TRY(ki_tune_decide(t, "views", (double)(int64_t)n, &value, err));
    t->n_views = (int64_t)value;
    for (int64_t k = 1; k < t->n_views; k++) KI_TRY(make_view(t, k, err));
    return KITH_OK;
}

/* Photos that could not be read are no part of anything from here on. */
static kith_status note_sound(ki_tune *t, int64_t *ret_n_bad, kith_error *err) {
    float *row = NULL;
    kith_error why;
    *ret_n_bad = 0;
    KI_TRY(ki_alloc_or(&row, (size_t)t->n_features, sizeof *row, "a row", err));
    for (size_t i = 0; i < t->set->n_items; i++) {
        t->is_sound[i] = ki_dataset_row(t->set, (int64_t)i, row, &why) == KITH_OK;
        *ret_n_bad += !t->is_sound[i];
    }
    ki_free(row);
    return KITH_OK;
}

/* The set's items are their features from now on. Runs in the same folder take the lock of the keep. */
static kith_status give(ki_tune *t, int64_t n_views, int64_t *ret_n_bad, kith_error *err) {
    KI_TRY(ki_kept_give(t->kept, n_views, t->n_test_classes > 0, t->set, err));
    ki_kept_free(t->kept);
    t->kept = NULL;
    return note_sound(t, ret_n_bad, err);
}

static void close_photos(ki_tune *t) {
    for (int p = 0; p < 2; p++) {
        ki_free(t->folds[p].fold_of);
        t->folds[p] = (ki_tune_folds){0};
        for (int f = 0; f <= KI_TUNE_MOST_FOLDS; f++) {
            ki_free(t->axes[p][f][0]);
            ki_free(t->axes[p][f][1]);
            t->axes[p][f][0] = t->axes[p][f][1] = NULL;
        }
    }
    ki_free(t->learn.item);
    ki_free(t->is_sound);
    ki_kept_free(t->kept);
    kith_dataset_free(t->set);
    t->learn = (ki_items){0};
    t->is_sound = NULL;
    t->kept = NULL;
    t->set = NULL;
    t->n_classes = t->n_train_classes = t->n_test_classes = 0;
}

/* One view of each photo says which look alike and whose labels look wrong; then the photos are opened anew, without what that leaves out. */
static kith_status compare_photos(ki_tune *t, kith_error *err) {
    int64_t n_bad = 0;
    if (!ki_tune_has_decided(t, "photos compared")) {
        KI_TRY(open_photos(t, err));
        KI_TRY(open_kept(t, t->set, &t->kept, err));
        KI_TRY(make_first_view(t, err));
        KI_TRY(give(t, 1, &n_bad, err));
        KI_TRY(ki_tune_make_folds(t, 1, 4, &t->folds[1], err));
        KI_TRY(ki_tune_suspect(t, err));
        close_photos(t);
    }
    ki_tune_tell_findings(t, KI_TUNE_BY_VECTORS);
    return ki_tune_leave_out(t, err);
}

kith_status ki_tune_embed(ki_tune *t, kith_error *err) {
    int64_t n_bad = 0;
    KI_TRY(compare_photos(t, err));
    KI_TRY(open_photos(t, err));
    KI_TRY(open_kept(t, t->set, &t->kept, err));
    KI_TRY(make_views(t, err));
    KI_TRY(give(t, t->n_views, &n_bad, err));
    t->n_used = (int64_t)t->set->n_items;
    if (n_bad) ki_tune_say(t, "left out: %lld photos that cannot be read", (long long)n_bad);
    ki_tune_say(t, "%lld photos of %lld classes, %lld of them for the test; %lld views, embedded in %.0f s",
                (long long)t->set->n_items, (long long)t->n_classes, (long long)t->n_test_classes,
                (long long)t->n_views, ki_seconds_now() - t->began);
    KI_TRY(ki_tune_make_folds(t, 0, 3, &t->folds[0], err));
    return ki_tune_make_folds(t, 1, 4, &t->folds[1], err);
}

void ki_tune_close(ki_tune *t) {
    close_photos(t);
    ki_recipe_free(t->base);
    ki_params_free(t->params);
    ki_net_release(&t->test_net);
    ki_net_release(&t->net);
    ki_backend_close(t->backend);
}
