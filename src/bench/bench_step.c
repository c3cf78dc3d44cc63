/* The step of a run, timed: batches in the form that a loader delivers, through the learner that training
 * uses or the forward that embedding uses. On a device steps are queued one after the other as in a run, with
 * a mark after each. The time of a step is the time between two marks. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/text.h"
#include "bench/bench_parts.h"
#include "embed/forward.h"
#include "io/npy_rows.h"
#include "io/yaml.h"
#include "kith/log.h"
#include "model/device.h"
#include "net/adapt.h"
#include "net/model_file.h"
#include "objective/usual.h"
#include "train/learner.h"
#include "train/recipe.h"

/* Several batches are used in turn, so that none is still in a cache. The warm-up steps are not timed; on a
 * device there are enough of them for the step to be recorded. */
enum { N_BATCHES = 4, WARM_UPS = 2, DEVICE_WARM_UPS = 8, PROFILED = 5, LEAST_CLASSES = 100 };

typedef struct batch {
    void *data;
    int32_t *label, *window;
} batch;

typedef struct bench {
    const kith_bench_options *options;
    ki_arena arena;
    ki_recipe *recipe;
    kith_model_options model;
    char settings[512];
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_teacher teacher[KI_MOST_TEACHERS]; /* of the recipe */
    ki_objective *objective;
    ki_optim_settings optim;
    kith_transform transform;
    ki_batch_format format;
    int64_t n, images;    /* of a batch, of a class in it */
    ki_device_comm *comm; /* NULL unless KITH_COMM asks for one */
    ki_learner *learner;
    ki_forward *forward;
    batch batch[N_BATCHES];
    float *rows;
    ki_mark *mark[KI_BENCH_MOST_STEPS + 1];
    size_t device_before;
    uint64_t n_steps;
} bench;

bool ki_bench_is_step(const kith_bench_options *o) {
    if (o->objective || o->recipe) return true;
    return o->model->device && strncmp(o->model->device, "cuda", 4) == 0 && !o->tap;
}

/* ---- making ---- */

/* Numbers of a row of the recipe's features. */
static kith_status count_features(const ki_recipe *r, int64_t *ret_n, kith_error *err) {
    ki_npy_rows *rows = NULL;
    const ki_value *features = ki_value_get(r->data, "features"), *root = ki_value_get(r->data, "root");
    KI_TRY(ki_npy_rows_open(features && *features->text ? features->text : root->text, &rows, err));
    *ret_n = ki_npy_rows_dim(rows);
    ki_npy_rows_free(rows);
    return KITH_OK;
}

/* Take from the recipe what the options leave open. */
static kith_status read_recipe(bench *b, kith_error *err) {
    const ki_recipe_source source = {.path = b->options->recipe};
    if (!b->options->recipe) return KITH_OK;
    KI_TRY(ki_recipe_read(&source, &b->recipe, err));
    const ki_recipe *r = b->recipe;
    kith_model_options *m = &b->model;
    size_t used = 0;
    if (!m->backbone && *r->model.backbone) m->backbone = r->model.backbone;
    if (!m->weights && *r->model.weights) m->weights = r->model.weights;
    if (!m->embedding) m->embedding = r->model.embedding;
    if (!m->heads) m->heads = r->model.heads;
    if (!m->map_channels) m->map_channels = r->model.map_channels;
    if (r->is_features && !m->channels) KI_TRY(count_features(r, &m->channels, err));
    if (!r->is_features && !m->height) m->height = m->width = r->train.crop_to;
    if (!r->is_features && !m->channels) m->channels = r->train.channels;
    if (!m->pool) m->pool = ki_pooling_names[r->model.pool];
    if (!m->device) m->device = r->device;
    if (!m->precision) m->precision = r->precision == KI_BF16 ? "bf16" : "float32";
    m->no_embedding_bias = !r->model.embedding_bias;
    m->tf32 |= r->tf32;
    m->deterministic |= r->deterministic;
    for (const ki_value *v = r->model.settings ? r->model.settings->first : NULL; v && !m->settings;
         v = v->next) {
        const int n = ki_snprintf(b->settings + used, sizeof b->settings - used, "%s%s=%s", used ? "," : "",
                                  v->key, v->kind == KI_VALUE_SCALAR ? v->text : "");
        if (n < 0 || (size_t)n >= sizeof b->settings - used)
            return ki_fail(err, KITH_EINVAL, "model.settings is too long");
        used += (size_t)n;
    }
    if (used) m->settings = b->settings;
    b->optim = r->optim;
    b->images = r->batch.images * (r->batch.views > 1 ? r->batch.views : 1);
    if (!b->n) b->n = ki_sampler_batch_size(&r->batch);
    return KITH_OK;
}

static void make_transform(bench *b) {
    kith_transform *t = &b->transform;
    kith_transform_init(t, sizeof *t);
    t->crop = KITH_CROP_RANDOM;
    t->mirror = true;
    if (b->recipe) *t = b->recipe->train;
    if (!b->recipe || t->crop_to != b->net.h) {
        t->crop_to = (int)b->net.h;
        t->resize_to = (int)(b->net.h * 256 / 227);
    }
    t->channels = (int)b->net.c;
    t->bgr = b->net.preprocess.bgr;
    t->pixel_scale = b->net.preprocess.scale;
    for (int64_t c = 0; c < b->net.c && c < 3; c++) {
        t->mean[c] = b->net.preprocess.mean[c];
        t->std[c] = b->net.preprocess.std[c];
    }
    b->format = ki_feed_format(b->backend, &b->net, t);
}

static int64_t tap_channels(const ki_net *net, const char *tap) {
    int node = 0;
    kith_error ignored;
    if (ki_graph_find_tap(net->graph, tap, &node, &ignored) != KITH_OK) return 0;
    return ki_graph_node(net->graph, node)->shape.dim[1];
}

static kith_status make_learner(bench *b, kith_error *err) {
    const char *text = b->options->objective ? b->options->objective : ki_usual_section;
    const ki_value *section = b->recipe && !b->options->objective ? b->recipe->objective : NULL;
    ki_value *parsed = NULL;
    if (!section) {
        KI_TRY(ki_yaml_parse(text, strlen(text), "the objective", &b->arena, &parsed, err));
        section = parsed;
    }
    const int64_t n_classes = (b->n + b->images - 1) / b->images;
    ki_sizes sizes = {.n_classes = (int32_t)(n_classes > LEAST_CLASSES ? n_classes : LEAST_CLASSES),
                      .embedding = b->net.embedding,
                      .pooled = tap_channels(&b->net, "pooled"),
                      .map = tap_channels(&b->net, "map"),
                      .no_map = ki_net_takes_vectors(&b->net),
                      .heads = b->net.heads};
    for (int t = 0; b->recipe && t < b->recipe->n_teachers; t++) {
        KI_TRY(ki_teacher_open(b->recipe, t, b->net.c, b->net.h, b->backend, &b->teacher[t], err));
        sizes.teacher[t] = ki_teacher_width(&b->teacher[t]);
    }
    KI_TRY(ki_objective_new(section, &sizes, b->model.seed, &b->objective, err));
    KI_TRY(ki_device_comm_open(b->backend, NULL, &b->comm, err));
    const ki_learner_settings settings = {.backend = b->backend,
                                          .net = &b->net,
                                          .params = b->params,
                                          .objective = b->objective,
                                          .batch = b->n,
                                          .device_comm = b->comm,
                                          .whole = b->n,
                                          .n_micro = (int)b->optim.accumulate,
                                          .format = b->format,
                                          .transform = &b->transform,
                                          .frozen_bn = b->options->frozen_bn,
                                          .seed = b->model.seed,
                                          .teacher = b->teacher,
                                          .n_teachers = b->recipe ? b->recipe->n_teachers : 0,
                                          .optim = &b->optim};
    return ki_learner_new(&settings, &b->learner, err);
}

static kith_status make_forward(bench *b, kith_error *err) {
    const ki_forward_settings settings = {.backend = b->backend,
                                          .net = &b->net,
                                          .params = b->params,
                                          .tap = b->net.embedding > 0 ? "embedding" : "pooled",
                                          .batch = b->n,
                                          .format = b->format,
                                          .transform = &b->transform};
    KI_TRY(ki_forward_new(&settings, &b->forward, err));
    return ki_alloc_or(&b->rows, (size_t)(N_BATCHES * b->n),
                       (size_t)ki_forward_dim(b->forward) * sizeof *b->rows, "embeddings", err);
}

static kith_status make_batches(bench *b, kith_error *err) {
    const ki_batch_memory memory = ki_feed_memory(b->backend);
    const int64_t side = b->format == KI_BATCH_WHOLE ? ki_transform_window_side(&b->transform) : b->net.h;
    const size_t count = (size_t)(b->n * b->net.c * side * side);
    const size_t bytes = count * (b->format == KI_BATCH_FLOAT ? sizeof(float) : 1);
    for (int k = 0; k < N_BATCHES; k++) {
        batch *to = &b->batch[k];
        ki_rng rng = ki_rng_at(b->model.seed, KI_RNG_TEST, (uint32_t)k, 0);
        to->data = memory.take ? memory.take(memory.user, bytes) : ki_alloc(bytes, 1);
        if (!to->data) return ki_fail_memory(err, bytes, "a batch");
        KI_TRY(ki_alloc_or(&to->label, (size_t)b->n, sizeof *to->label, "labels", err));
        for (int64_t i = 0; i < b->n; i++) to->label[i] = (int32_t)(i / b->images);
        if (b->format == KI_BATCH_FLOAT) {
            for (size_t i = 0; i < count; i++) ((float *)to->data)[i] = 2 * ki_rng_float(&rng) - 1;
            continue;
        }
        for (size_t i = 0; i < bytes; i++) ((uint8_t *)to->data)[i] = (uint8_t)(ki_rng_u32(&rng) >> 24);
        if (b->format != KI_BATCH_WHOLE) continue;
        const uint32_t most = (uint32_t)(side - b->net.h + 1);
        KI_TRY(ki_alloc_or(&to->window, (size_t)b->n, 3 * sizeof *to->window, "windows", err));
        for (int64_t i = 0; i < 3 * b->n; i++)
            to->window[i] = (int32_t)(ki_rng_u32(&rng) % (i % 3 == 2 ? 2 : most));
    }
    return KITH_OK;
}

static kith_status prepare(bench *b, kith_error *err) {
    const kith_bench_options *o = b->options;
    size_t all = 0;
    KI_TRY(ki_optim_parse(NULL, &b->optim, err));
    b->optim.lr = 1e-5; /* so that the network does not memorise the few batches */
    KI_TRY(read_recipe(b, err));
    if (o->images_per_class) b->images = o->images_per_class;
    if (b->images < 1) b->images = 4;
    if (b->n < 1) b->n = KI_BENCH_BATCH;
    if (o->train && !b->model.weights && b->model.embedding == 0) b->model.embedding = KI_BENCH_EMBEDDING;
    KI_TRY(ki_device_open(&b->model, &b->backend, err));
    b->backend->options.plain_plan = o->plain_plan;
    if (!b->backend->type->is_host)
        KI_TRY(b->backend->type->queues->memory(b->backend, &b->device_before, &all, err));
    KI_TRY(ki_model_file_open(&b->model, b->backend, &b->net, &b->params, NULL, err));
    if (b->recipe && o->train)
        KI_TRY(ki_adapt(&b->recipe->adapt, b->model.seed, b->backend, &b->net, &b->params, err));
    make_transform(b);
    if (o->train)
        KI_TRY(make_learner(b, err));
    else
        KI_TRY(make_forward(b, err));
    return make_batches(b, err);
}

static void release(bench *b) {
    const ki_batch_memory memory = b->backend ? ki_feed_memory(b->backend) : (ki_batch_memory){0};
    ki_learner_free(b->learner);
    ki_device_comm_close(b->comm);
    ki_forward_free(b->forward);
    for (int k = 0; k < N_BATCHES; k++) {
        if (b->batch[k].data && memory.give)
            memory.give(memory.user, b->batch[k].data);
        else
            ki_free(b->batch[k].data);
        ki_free(b->batch[k].label);
        ki_free(b->batch[k].window);
    }
    for (int i = 0; b->backend && i <= KI_BENCH_MOST_STEPS; i++)
        b->backend->type->queues->mark_free(b->backend, b->mark[i]);
    ki_objective_free(b->objective);
    for (int t = 0; t < KI_MOST_TEACHERS; t++) ki_teacher_release(&b->teacher[t]);
    ki_params_free(b->params);
    ki_net_release(&b->net);
    ki_backend_close(b->backend);
    ki_recipe_free(b->recipe);
    ki_arena_release(&b->arena);
    ki_free(b->rows);
}

/* ---- measuring ---- */

static kith_status step(bench *b, kith_error *err) {
    if (b->forward) {
        const int k = (int)(b->n_steps++ % N_BATCHES);
        const ki_forward_batch input = {.n = b->n, .data = b->batch[k].data, .window = b->batch[k].window};
        const int64_t dim = ki_forward_dim(b->forward);
        ki_vectors to = {.dim = dim, .n_room = b->n, .host = b->rows + k * b->n * dim};
        return ki_forward_add(b->forward, &input, &to, err);
    }
    for (int64_t m = 0; m < b->optim.accumulate; m++) {
        const batch *from = &b->batch[(b->n_steps + (uint64_t)m) % N_BATCHES];
        const ki_learner_batch input = {
            .n = b->n, .n_all = b->n, .data = from->data, .label = from->label, .window = from->window};
        KI_TRY(ki_learner_add(b->learner, &input, b->n_steps, err));
    }
    b->n_steps++;
    return ki_learner_update(b->learner, b->optim.lr, err);
}

static kith_status finish(bench *b, kith_error *err) {
    if (b->forward) KI_TRY(ki_forward_finish(b->forward, err));
    return b->backend->type->memory.sync(b->backend, err);
}

static kith_status make_marks(bench *b, int64_t n, kith_error *err) {
    const ki_queue_type *queues = b->backend->type->queues;
    for (int64_t i = 0; i <= n; i++) {
        if (!b->mark[i]) KI_TRY(queues->mark_new(b->backend, &b->mark[i], err));
    }
    return KITH_OK;
}

/* n steps one after the other; the seconds of each. */
static kith_status time_steps(bench *b, int64_t n, double *seconds, kith_error *err) {
    const ki_queue_type *queues = b->backend->type->queues;
    KI_TRY(make_marks(b, n, err));
    KI_TRY(queues->mark_set(b->backend, b->mark[0], KI_QUEUE_MAIN, err));
    for (int64_t i = 0; i < n; i++) {
        KI_TRY(step(b, err));
        KI_TRY(queues->mark_set(b->backend, b->mark[i + 1], KI_QUEUE_MAIN, err));
    }
    KI_TRY(finish(b, err));
    for (int64_t i = 0; i < n; i++)
        KI_TRY(queues->mark_seconds(b->backend, b->mark[i], b->mark[i + 1], &seconds[i], err));
    return KITH_OK;
}

static kith_status profile(bench *b, kith_bench_result *result, kith_error *err) {
    ki_bench_profile *p = NULL;
    kith_status status;
    KI_CHECK(ki_bench_profile_new(b->backend, &p, err));
    for (int i = 0; i < WARM_UPS + PROFILED; i++) {
        if (i >= WARM_UPS) KI_CHECK(ki_bench_profile_begin(p, err));
        KI_CHECK(step(b, err));
        if (i >= WARM_UPS) KI_CHECK(ki_bench_profile_end(p, err));
    }
    KI_CHECK(finish(b, err));
    ki_bench_profile_finish(p, PROFILED, result);
    KI_CHECK(ki_bench_copy_rate(b->backend, &result->copy_bytes_second, err));
done:
    ki_bench_profile_free(p);
    return status;
}

static kith_status measure(bench *b, kith_bench_result *result, kith_error *err) {
    const kith_bench_options *o = b->options;
    const bool is_host = b->backend->type->is_host;
    double seconds[KI_BENCH_MOST_STEPS];
    const int64_t n_warm_ups = o->n_warm_ups ? o->n_warm_ups : is_host ? WARM_UPS : DEVICE_WARM_UPS;
    KI_TRY(time_steps(b, n_warm_ups < KI_BENCH_MOST_STEPS ? n_warm_ups : KI_BENCH_MOST_STEPS, seconds, err));
    const int64_t n = ki_bench_n_steps(o, seconds[n_warm_ups - 1]);
    kith_memory_stats before, after;
    KI_TRY(make_marks(b, n, err));
    kith_memory_stats_get(&before);
    const int64_t reorders = b->backend->n_reorders;
    KI_TRY(time_steps(b, n, seconds, err));
    kith_memory_stats_get(&after);
    const ki_plan *plan = b->learner ? ki_learner_plan(b->learner) : ki_forward_plan(b->forward);
    ki_bench_fill(o, plan, b->n, seconds, n, result);
    result->images_per_second *= (double)(b->learner ? b->optim.accumulate : 1);
    result->backbone = b->net.backbone->name;
    result->device = b->backend->type->name;
    result->precision = b->backend->options.precision == KI_BF16 ? "bf16"
                        : b->backend->options.tf32               ? "tf32"
                                                                 : "float32";
    result->batch = b->n;
    result->height = b->net.h;
    result->width = b->net.w;
    result->allocations_per_step = (double)(after.n_allocations - before.n_allocations) / (double)n;
    result->reorders_per_step = (double)(b->backend->n_reorders - reorders) / (double)n;
    if (!is_host) {
        size_t used = 0, all = 0;
        KI_TRY(b->backend->type->queues->memory(b->backend, &used, &all, err));
        result->device_bytes = used > b->device_before ? used - b->device_before : 0;
    }
    if (b->learner) {
        ki_learner_values values;
        KI_TRY(ki_learner_read(b->learner, &values, err));
        result->loss = result->checksum = values.total;
    } else {
        const int64_t count = b->n * ki_forward_dim(b->forward);
        for (int64_t i = 0; i < count; i++) result->checksum += (double)b->rows[i];
    }
    return o->profile ? profile(b, result, err) : KITH_OK;
}

kith_status ki_bench_step_run(const kith_bench_options *options, kith_bench_result *result, kith_error *err) {
    kith_status status;
    bench *b = NULL;
    const double began = ki_seconds_now();
    KI_TRY(ki_zalloc_or(&b, 1, sizeof *b, "a benchmark", err));
    b->options = options;
    b->model = *options->model;
    b->n = options->batch;
    KI_CHECK(prepare(b, err));
    result->plan_seconds = ki_seconds_now() - began;
    KI_CHECK(measure(b, result, err));
done:
    release(b);
    ki_free(b);
    return status;
}
