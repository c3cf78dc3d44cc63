/* kith_model: a net, its parameters, and one inference plan that is kept until another tap or batch
 * size is asked for. */
#include "kith/model.h"

#include <math.h>
#include <string.h>

#include "api/device.h"
#include "core/alloc.h"
#include "net/model_file.h"
#include "net/weights.h"
#include "nn/plan.h"

enum { DEFAULT_BATCH = 32 };

struct kith_model {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    int64_t most_batch;

    ki_plan *plan; /* NULL, or for plan_tap and plan_mb */
    const char *plan_tap;
    int64_t plan_mb;
    float *input, *output; /* one batch each, for a last batch that is not full */
};

kith_status kith_model_open(const kith_model_options *options, kith_model **ret_model, kith_error *err) {
    kith_status status;
    kith_model *model = NULL;
    if (options->batch < 0)
        return ki_fail(err, KITH_EINVAL, "batch is %lld; wanted at least 1", (long long)options->batch);
    KI_CHECK(ki_zalloc_or(&model, 1, sizeof *model, "a model", err));
    model->most_batch = options->batch ? options->batch : DEFAULT_BATCH;
    KI_CHECK(ki_device_open(options, &model->backend, err));
    KI_CHECK(ki_model_file_open(options, model->backend, &model->net, &model->params, err));
    *ret_model = model;
    model = NULL;
done:
    kith_model_free(model);
    return status;
}

static void drop_plan(kith_model *model) {
    ki_plan_free(model->plan);
    ki_free(model->input);
    ki_free(model->output);
    model->plan = NULL;
    model->input = model->output = NULL;
}

void kith_model_free(kith_model *model) {
    if (!model) return;
    drop_plan(model);
    ki_params_free(model->params);
    ki_net_release(&model->net);
    ki_backend_close(model->backend);
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
    const ki_net *net = &model->net;
    *ret_info = (kith_model_info){.backbone = net->backbone->name,
                                  .pool = ki_global_pool_names[net->pool],
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

kith_status kith_model_tap_shape(const kith_model *model, const char *tap, int *ret_n_dims, int64_t *ret_dim,
                                 kith_error *err) {
    int node = 0;
    KI_TRY(ki_graph_find_tap(model->net.graph, tap, &node, err));
    const ki_shape *shape = &ki_graph_node(model->net.graph, node)->shape;
    *ret_n_dims = shape->n_dims - 1;
    for (int i = 1; i < shape->n_dims; i++) ret_dim[i - 1] = shape->dim[i];
    return KITH_OK;
}

static kith_status tap_count(const kith_model *model, const char *tap, int64_t *ret_n, kith_error *err) {
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    KI_TRY(kith_model_tap_shape(model, tap, &n_dims, dim, err));
    *ret_n = 1;
    for (int i = 0; i < n_dims; i++) *ret_n *= dim[i];
    return KITH_OK;
}

static kith_status make_plan(kith_model *model, const char *tap, int64_t mb, kith_error *err) {
    int node = 0;
    KI_TRY(ki_graph_find_tap(model->net.graph, tap, &node, err));
    tap = ki_graph_node(model->net.graph, node)->tap; /* lives as long as the graph */
    if (model->plan && model->plan_tap == tap && model->plan_mb == mb) return KITH_OK;
    drop_plan(model);
    kith_status status;
    int64_t n_out = 0;
    const ki_net *net = &model->net;
    const ki_plan_options options = {.mb = mb, .mode = KI_INFER, .taps = {tap}};
    KI_CHECK(tap_count(model, tap, &n_out, err));
    KI_CHECK(ki_zalloc_or(&model->input, (size_t)mb, (size_t)(net->c * net->h * net->w) * sizeof(float),
                          "a batch", err));
    KI_CHECK(ki_alloc_or(&model->output, (size_t)mb, (size_t)n_out * sizeof(float), "a batch's values", err));
    KI_CHECK(ki_plan_new(net->graph, model->params, model->backend, &options, &model->plan, err));
    model->plan_tap = tap;
    model->plan_mb = mb;
done:
    if (status != KITH_OK) drop_plan(model);
    return status;
}

/* `values` are those of the images from number `first` on. */
static kith_status check_finite(const float *values, int64_t first, int64_t n, int64_t per_image,
                                const char *what, kith_error *err) {
    for (int64_t i = 0; i < n * per_image; i++) {
        if (!isfinite(values[i]))
            return ki_fail(err, KITH_ENUMERIC, "%s of image %lld holds %g at %lld; wanted finite numbers",
                           what, (long long)(first + i / per_image), (double)values[i],
                           (long long)(i % per_image));
    }
    return KITH_OK;
}

kith_status kith_model_embed(kith_model *model, const float *images, int64_t n, const char *tap,
                             float *ret_values, kith_error *err) {
    if (n < 0) return ki_fail(err, KITH_EINVAL, "number of images is %lld; wanted at least 0", (long long)n);
    const int64_t n_in = model->net.c * model->net.h * model->net.w;
    int64_t n_out = 0;
    KI_TRY(tap_count(model, tap, &n_out, err));
    KI_TRY(check_finite(images, 0, n, n_in, "input", err));
    if (n == 0) return KITH_OK;
    const int64_t mb = n < model->most_batch ? n : model->most_batch;
    KI_TRY(make_plan(model, tap, mb, err));
    for (int64_t at = 0; at < n; at += mb) {
        const int64_t n_here = n - at < mb ? n - at : mb;
        const float *input = images + at * n_in;
        float *output = ret_values + at * n_out;
        if (n_here < mb) {
            /* Images do not see each other in inference: what the rest of the batch holds is lost. */
            memcpy(model->input, input, (size_t)(n_here * n_in) * sizeof(float));
            memset(model->input + n_here * n_in, 0, (size_t)((mb - n_here) * n_in) * sizeof(float));
            input = model->input;
        }
        KI_TRY(ki_plan_set_input(model->plan, input, err));
        KI_TRY(ki_plan_forward(model->plan, err));
        KI_TRY(ki_plan_read(model->plan, model->plan_tap, n_here < mb ? model->output : output, err));
        if (n_here < mb) memcpy(output, model->output, (size_t)(n_here * n_out) * sizeof(float));
        KI_TRY(check_finite(output, at, n_here, n_out, tap, err));
    }
    return KITH_OK;
}

kith_status kith_model_save(const kith_model *model, const char *path, kith_error *err) {
    return ki_weights_save(&model->net, model->params, path, err);
}

int kith_model_param_count(const kith_model *model) { return ki_params_count(model->params); }

bool kith_model_param_at(const kith_model *model, int i, kith_model_param *ret_param) {
    if (i < 0 || i >= ki_params_count(model->params)) return false;
    const ki_param *param = ki_params_at(model->params, i);
    *ret_param = (kith_model_param){
        .name = param->name, .n_dims = param->shape.n_dims, .n = param->n, .trained = param->trained};
    memcpy(ret_param->dim, param->shape.dim, sizeof ret_param->dim);
    return true;
}

static kith_status check_index(const kith_model *model, int i, kith_error *err) {
    const int n = ki_params_count(model->params);
    if (i >= 0 && i < n) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "parameter number is %d; wanted 0 to %d", i, n - 1);
}

kith_status kith_model_param_get(const kith_model *model, int i, float *ret_values, kith_error *err) {
    KI_TRY(check_index(model, i, err));
    return ki_params_get(model->params, ki_params_at(model->params, i), ret_values, err);
}

kith_status kith_model_param_set(kith_model *model, int i, const float *values, kith_error *err) {
    KI_TRY(check_index(model, i, err));
    return ki_params_set(model->params, ki_params_at(model->params, i), values, err);
}
