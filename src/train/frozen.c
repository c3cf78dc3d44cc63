/* A network that does not learn, its features, and the layer that does (frozen.h). */
#include "train/frozen.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "embed/kept.h"
#include "embed/preprocess.h"
#include "io/yaml.h"
#include "net/model_file.h"

static const char *const layer_names[] = {"embedding.weight", "embedding.bias"};

const ki_net *ki_train_model(const ki_train_state *run) {
    return run->recipe->model.frozen ? &run->whole : &run->net;
}

/* ---- the layer and the whole ---- */

static kith_status copy_layer(const ki_params *from, ki_params *to, kith_error *err) {
    for (size_t i = 0; i < sizeof layer_names / sizeof layer_names[0]; i++) {
        const ki_param *a = ki_params_find(from, layer_names[i]), *b = ki_params_find(to, layer_names[i]);
        ki_real *values = NULL;
        if (!a || !b) continue; /* a layer without a bias */
        KI_TRY(ki_alloc_or(&values, (size_t)a->n, sizeof *values, "the embedding layer", err));
        kith_status status = ki_params_get(from, a, values, err);
        if (status == KITH_OK) status = ki_params_set(to, b, values, err);
        ki_free(values);
        KI_TRY(status);
    }
    return KITH_OK;
}

kith_status ki_train_model_save(ki_train_state *run, const ki_weights_origin *origin,
                                const kith_calibration *calibration, const char *path, kith_error *err) {
    if (!run->recipe->model.frozen)
        return ki_weights_save(&run->test_net, run->params, origin, calibration, path, err);
    KI_TRY(copy_layer(run->params, run->whole_params, err));
    return ki_weights_save(&run->whole_test, run->whole_params, origin, calibration, path, err);
}

kith_status ki_train_model_load(ki_train_state *run, const kith_tensors *tensors, kith_error *err) {
    if (!run->recipe->model.frozen) return ki_weights_import(tensors, &run->test_net, run->params, err);
    KI_TRY(ki_weights_import(tensors, &run->whole_test, run->whole_params, err));
    return copy_layer(run->whole_params, run->params, err);
}

/* ---- opening ---- */

static kith_status fail_weights(const ki_train_state *run, kith_error *err) {
    ki_fail(err, KITH_EIO, "%s is not there, and a frozen network is read from it",
            run->recipe->model.weights);
    return ki_hint(err, KITH_EIO, "put the file back");
}

static kith_status open_layer(ki_train_state *run, const kith_model_options *whole, kith_error *err) {
    int node = 0;
    KI_TRY(ki_graph_find_tap(run->whole.graph, "pooled", &node, err));
    const kith_model_options layer = {
        .size = sizeof layer,
        .backbone = "none",
        .seed = whole->seed,
        .channels = ki_shape_count(&ki_graph_node(run->whole.graph, node)->shape),
        .height = 1,
        .width = 1,
        .embedding = run->whole.embedding,
        .no_embedding_bias = run->whole.no_embedding_bias,
        .classes = KITH_NONE,
        .map_channels = KITH_NONE};
    if (run->from.tensors)
        return ki_model_file_describe(&layer, run->from.tensors, KI_CHECKPOINT_MODEL, run->backend, &run->net,
                                      &run->params, err);
    KI_TRY(ki_model_file_open(&layer, run->backend, &run->net, &run->params, NULL, err));
    return copy_layer(run->whole_params, run->params, err);
}

kith_status ki_frozen_open(ki_train_state *run, const kith_model_options *model, kith_error *err) {
    const ki_recipe *r = run->recipe;
    if (!ki_comm_is_alone(run->comm)) {
        ki_fail(err, KITH_EUNSUPPORTED, "model.frozen trains one layer on features, and there are %d ranks",
                run->comm->size);
        return ki_hint(err, KITH_EUNSUPPORTED, "run it without mpirun: it takes seconds");
    }
    if (*r->model.weights && !model->weights) return fail_weights(run, err);
    KI_TRY(ki_model_file_open(model, run->backend, &run->whole, &run->whole_params, NULL, err));
    if (ki_net_takes_vectors(&run->whole))
        return ki_fail(err, KITH_EINVAL, "model: frozen, and %s takes features already",
                       run->whole.backbone->name);
    run->train_transform = r->train;
    run->test_transform = r->test;
    ki_preprocess_take(&run->whole, &run->train_transform);
    ki_preprocess_take(&run->whole, &run->test_transform);
    ki_preprocess_tell(&r->test, &run->whole);
    const kith_status status = ki_net_of_size(&run->whole, r->test.crop_to, &run->whole_test, err);
    if (status != KITH_OK) return ki_prefix(err, status, "input: test_crop");
    KI_TRY(open_layer(run, model, err));
    return ki_net_of_size(&run->net, 1, &run->test_net, err);
}

void ki_frozen_release(ki_train_state *run) {
    ki_params_free(run->whole_params);
    ki_net_release(&run->whole_test);
    ki_net_release(&run->whole);
}

/* ---- features ---- */

static int tell(void *user, int64_t n_done, int64_t n_all) {
    ki_train_state *run = user;
    return ki_train_notify(
        run, &(kith_train_event){
                 .kind = KITH_TRAIN_BUSY, .text = run->busy_text, .n_done = n_done, .n_all = n_all});
}

kith_status ki_frozen_identity(const ki_recipe *r, const char *weights_hash, char **ret, kith_error *err) {
    kith_status status = KITH_OK;
    char *input = NULL;
    ki_buffer text = {.err = err};
    KI_CHECK(ki_yaml_text(r->input, &input, err));
    ki_buffer_put(&text, "weights %s seed %lld on %s %d %d\n%s", weights_hash,
                  *weights_hash ? -1LL : (long long)r->seed, r->device, r->precision, r->tf32, input);
    ki_buffer_add(&text, "", 1);
    KI_CHECK(text.status);
    *ret = ki_strdup(text.data);
    status = *ret ? KITH_OK : ki_fail_memory(err, text.n, "features");
done:
    ki_free(input);
    ki_buffer_release(&text);
    return status;
}

static kith_status folder_of(const ki_train_state *run, ki_path *ret, kith_error *err) {
    if (*run->recipe->features_folder) return ki_path_absolute(run->recipe->features_folder, ret, err);
    return ki_folder_at(&run->folder, ret, err, "features");
}

static kith_status make(ki_train_state *run, ki_kept *keep, kith_error *err) {
    const int64_t n_views = run->recipe->model.views;
    for (int64_t k = 0; k < n_views; k++) {
        ki_snprintf(run->busy_text, sizeof run->busy_text, "features, view %lld of %lld", (long long)k + 1,
                    (long long)n_views);
        KI_TRY(ki_kept_view(keep, k, err));
    }
    ki_snprintf(run->busy_text, sizeof run->busy_text, "features of test images");
    if (run->test.n > 0) KI_TRY(ki_kept_lone(keep, err));
    return ki_kept_give(keep, n_views, run->test.n > 0, run->set, err);
}

kith_status ki_frozen_features(ki_train_state *run, kith_error *err) {
    const ki_recipe *r = run->recipe;
    kith_status status;
    ki_kept *keep = NULL;
    ki_path folder;
    char *decides = NULL;
    KI_CHECK(folder_of(run, &folder, err));
    KI_CHECK(ki_frozen_identity(r, run->weights_hash, &decides, err));
    const ki_kept_settings settings = {.folder = folder.s,
                                       .set = run->set,
                                       .backend = run->backend,
                                       .net = &run->whole,
                                       .test_net = &run->whole_test,
                                       .params = run->whole_params,
                                       .train = run->train_transform,
                                       .test = run->test_transform,
                                       .identity = decides,
                                       .batch = r->eval.batch ? r->eval.batch : 32,
                                       .n_workers = r->workers,
                                       .most_bad = r->most_bad,
                                       .seed = (uint64_t)r->seed,
                                       .progress = tell,
                                       .user = run};
    KI_CHECK(ki_kept_open(&settings, &keep, err));
    status = make(run, keep, err);
    if (status == KITH_ECANCELED)
        ki_fail(err, status, "stopped on request; the features that were made are kept in %s", folder.s);
done:
    ki_kept_free(keep);
    ki_free(decides);
    return status;
}
