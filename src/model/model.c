/* kith_model: a net and its parameters on a backend. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "embed/views.h"
#include "model/device.h"
#include "model/handle.h"
#include "net/weights.h"

enum { HOST_BATCH = 32, DEVICE_BATCH = 128 };

KI_OPTIONS_INIT(kith_model_options, 0)

static kith_status check_sizes(const kith_model_options *o, kith_error *err) {
    const struct {
        const char *name;
        int64_t value, least;
    } sizes[] = {{"batch", o->batch, 0},
                 {"channels", o->channels, 0},
                 {"height", o->height, 0},
                 {"width", o->width, 0},
                 {"embedding", o->embedding, KITH_NONE},
                 {"classes", o->classes, KITH_NONE},
                 {"side", o->side, 0},
                 {"views", o->views, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i].value < sizes[i].least)
            return ki_fail(err, KITH_EINVAL, "%s is %lld; wanted at least %lld", sizes[i].name,
                           (long long)sizes[i].value, (long long)sizes[i].least);
    }
    return KITH_OK;
}

/* Which side it has, and how it resizes, only the file says: it is opened a second time where another side is wanted. */
static kith_status open_scaled(kith_model **model, const kith_model_options *o, kith_error *err) {
    kith_model_options again = *o;
    kith_model *scaled = NULL;
    bool is_same = false;
    if (o->height || o->width)
        return ki_fail(err, KITH_EINVAL, "side and height or width are both given; wanted one");
    KI_TRY(ki_model_scale(*model, o->side, &again, &is_same, err));
    if (is_same) return KITH_OK;
    KI_TRY(kith_model_open(&again, &scaled, err));
    scaled->is_general = (*model)->is_general; /* `again` says the file by its path */
    kith_model_free(*model);
    *model = scaled;
    return KITH_OK;
}

kith_status kith_model_open(const kith_model_options *options, kith_model **ret_model, kith_error *err) {
    KI_NEED(err, ret_model);
    kith_status status;
    kith_model *model = NULL;
    KI_OPTIONS_TAKE(kith_model_options, o, options, err);
    KI_TRY(check_sizes(&o, err));
    if (o.views) KI_TRY(ki_views_check(o.views, NULL, err));
    KI_CHECK(ki_zalloc_or(&model, 1, sizeof *model, "a model", err));
    KI_CHECK(ki_model_keep_options(model, &o, err));
    KI_CHECK(ki_device_open(&o, &model->backend, err));
    model->most_batch = o.batch ? o.batch : model->backend->type->is_host ? HOST_BATCH : DEVICE_BATCH;
    KI_CHECK(ki_model_file_open(&o, model->backend, &model->net, &model->params, &model->curve, err));
    KI_CHECK(ki_model_describe(model, err));
    if (o.side) KI_CHECK(open_scaled(&model, &o, err));
    *ret_model = model;
    model = NULL;
done:
    kith_model_free(model);
    return status;
}

void kith_model_free(kith_model *model) {
    if (!model) return;
    ki_plans_release(&model->plans);
    ki_params_free(model->params);
    ki_net_release(&model->net);
    ki_backend_close(model->backend);
    ki_arena_release(&model->arena);
    ki_free(model);
}

/* Without the padding between parameters of the slab. */
static int64_t count_trained(const ki_params *params) {
    int64_t n = 0;
    for (int i = 0; i < ki_params_count(params); i++) {
        if (ki_params_at(params, i)->trained) n += ki_params_at(params, i)->n;
    }
    return n;
}

void kith_model_info_get(const kith_model *model, kith_model_info *ret_info) {
    if (!model || !ret_info) return;
    const ki_net *net = &model->net;
    *ret_info = (kith_model_info){.backbone = net->backbone->name,
                                  .pool = ki_pooling_names[net->pool],
                                  .device = model->backend->type->name,
                                  .channels = net->c,
                                  .height = net->h,
                                  .width = net->w,
                                  .embedding = net->embedding,
                                  .classes = net->classes,
                                  .n_params = count_trained(model->params),
                                  .flops_per_image = ki_graph_flops(net->graph, NULL),
                                  .preprocess = net->preprocess};
}

bool kith_model_takes_features(const kith_model *model) { return model && ki_net_takes_vectors(&model->net); }

kith_status kith_model_tap_shape(const kith_model *model, const char *tap, int *ret_n_dims, int64_t *ret_dim,
                                 kith_error *err) {
    KI_NEED(err, model, tap, ret_n_dims, ret_dim);
    int node = 0;
    KI_TRY(ki_graph_find_tap(model->net.graph, tap, &node, err));
    const ki_shape *shape = &ki_graph_node(model->net.graph, node)->shape;
    *ret_n_dims = shape->n_dims - 1;
    for (int i = 1; i < shape->n_dims; i++) ret_dim[i - 1] = shape->dim[i];
    return KITH_OK;
}

kith_status kith_model_save(const kith_model *model, const char *path, kith_error *err) {
    KI_NEED(err, model, path);
    return ki_weights_save(&model->net, model->params, NULL, ki_model_own_curve(model), path, err);
}

int64_t kith_model_param_count(const kith_model *model) { return model ? ki_params_count(model->params) : 0; }

bool kith_model_param_at(const kith_model *model, int64_t i, kith_model_param *ret_param) {
    if (!model || !ret_param || i < 0 || i >= ki_params_count(model->params)) return false;
    const ki_param *param = ki_params_at(model->params, (int)i);
    *ret_param = (kith_model_param){
        .name = param->name, .n_dims = param->shape.n_dims, .n = param->n, .trained = param->trained};
    memcpy(ret_param->dim, param->shape.dim, sizeof ret_param->dim);
    return true;
}

static kith_status check_index(const kith_model *model, int64_t i, kith_error *err) {
    const int n = ki_params_count(model->params);
    if (i >= 0 && i < n) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "parameter number is %lld; wanted 0 to %d", (long long)i, n - 1);
}

kith_status kith_model_param_get(const kith_model *model, int64_t i, float *ret_values, kith_error *err) {
    KI_NEED(err, model, ret_values);
    KI_NEED_COUNT(err, i);
    KI_TRY(check_index(model, i, err));
    return ki_params_get(model->params, ki_params_at(model->params, (int)i), ret_values, err);
}

kith_status kith_model_param_set(kith_model *model, int64_t i, const float *values, kith_error *err) {
    KI_NEED(err, model, values);
    KI_NEED_COUNT(err, i);
    KI_TRY(check_index(model, i, err));
    model->curve.calibration.n = 0; /* it was another model's */
    model->is_changed = true;
    return ki_params_set(model->params, ki_params_at(model->params, (int)i), values, err);
}
