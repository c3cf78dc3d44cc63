/* The public interface of src/objective: recipes in, float32 arrays in and out. */
#include "kith/objective.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "io/yaml.h"
#include "objective/check.h"
#include "objective/handle/handle.h"

static const ki_tap taps[KITH_N_TAPS] = {
    [KITH_TAP_MAP] = KI_TAP_MAP,
    [KITH_TAP_POOLED] = KI_TAP_POOLED,
    [KITH_TAP_EMBEDDING] = KI_TAP_EMBEDDING,
    [KITH_TAP_WEIGHT] = KI_TAP_WEIGHT,
    [KITH_TAP_TEACHER] = KI_TAP_TEACHER,
    [KITH_TAP_TEACHER + 1] = KI_TAP_TEACHER + 1,
    [KITH_TAP_TEACHER + 2] = KI_TAP_TEACHER + 2,
    [KITH_TAP_TEACHER + 3] = KI_TAP_TEACHER + 3,
};
_Static_assert((int)KITH_MOST_TEACHERS == (int)KI_MOST_TEACHERS, "a tap for every teacher");

const char *kith_tap_name(kith_tap tap) { return ki_tap_name(taps[tap]); }

static kith_status make(kith_objective *o, const ki_value *root, const kith_objective_sizes *sizes,
                        const ki_saved *saved, uint64_t seed, kith_error *err) {
    const ki_value *section = ki_value_get(root, "objective");
    ki_sizes core_sizes = {.n_classes = sizes->n_classes,
                           .embedding = sizes->embedding,
                           .pooled = sizes->pooled,
                           .map = sizes->map,
                           .heads = sizes->heads,
                           .saved = saved};
    for (int t = 0; t < KI_MOST_TEACHERS; t++) core_sizes.teacher[t] = sizes->teacher[t];
    return ki_objective_new(section ? section : root, &core_sizes, seed, &o->core, err);
}

kith_status kith_objective_new(const char *recipe, const kith_objective_sizes *sizes, uint64_t seed,
                               kith_objective **ret_objective, kith_error *err) {
    KI_NEED(err, recipe, sizes, ret_objective);
    kith_objective *o = NULL;
    ki_value *root = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&o, 1, sizeof *o, "an objective", err));
    KI_CHECK(ki_yaml_parse(recipe, strlen(recipe), "recipe", &o->arena, &root, err));
    KI_CHECK(make(o, root, sizes, NULL, seed, err));
    *ret_objective = o;
    return KITH_OK;
done:
    kith_objective_free(o);
    return status;
}

static kith_status open_file(const char *path, const kith_objective_sizes *sizes, const ki_saved *saved,
                             uint64_t seed, kith_objective **ret_objective, kith_error *err) {
    kith_objective *o = NULL;
    ki_value *root = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&o, 1, sizeof *o, "an objective", err));
    KI_CHECK(ki_yaml_read(path, &o->arena, &root, err));
    status = make(o, root, sizes, saved, seed, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "%s", path);
        goto done;
    }
    *ret_objective = o;
    return KITH_OK;
done:
    kith_objective_free(o);
    return status;
}

kith_status kith_objective_open(const char *path, const kith_objective_sizes *sizes, uint64_t seed,
                                kith_objective **ret_objective, kith_error *err) {
    KI_NEED(err, path, sizes, ret_objective);
    return open_file(path, sizes, NULL, seed, ret_objective, err);
}

static bool shape_in_file(const void *user, const char *name, ki_shape *ret_shape) {
    kith_array view;
    if (kith_tensors_get(user, name, &view, NULL) != KITH_OK) return false;
    ret_shape->n_dims = view.n_dims;
    memcpy(ret_shape->dim, view.dim, sizeof ret_shape->dim);
    return true;
}

kith_status kith_objective_restore(const char *path, const char *state, const kith_objective_sizes *sizes,
                                   uint64_t seed, kith_objective **ret_objective, kith_error *err) {
    KI_NEED(err, path, state, sizes, ret_objective);
    kith_tensors *file = NULL;
    kith_objective *o = NULL;
    kith_status status = KITH_OK;
    KI_TRY(kith_tensors_open(state, &file, err));
    const ki_saved saved = {.shape = shape_in_file, .user = file};
    KI_CHECK(open_file(path, sizes, &saved, seed, &o, err));
    KI_CHECK(kith_objective_load(o, state, err));
    *ret_objective = o;
    o = NULL;
done:
    kith_tensors_free(file);
    kith_objective_free(o);
    return status;
}

kith_status kith_objective_place(kith_objective *objective, const char *device, kith_error *err) {
    KI_NEED(err, objective, device);
    if (strlen(device) >= sizeof objective->device)
        return ki_fail(err, KITH_EINVAL, "no device is called '%.40s'", device);
    ki_placed_free(objective->placed);
    objective->placed = NULL;
    ki_snprintf(objective->device, sizeof objective->device, "%s", strcmp(device, "cpu") == 0 ? "" : device);
    return KITH_OK;
}

void kith_objective_free(kith_objective *objective) {
    if (!objective) return;
    ki_placed_free(objective->placed);
    ki_objective_free(objective->core);
    ki_arena_release(&objective->arena);
    ki_free(objective->label);
    ki_free(objective->whole);
    ki_free(objective->term);
    ki_free(objective);
}

bool kith_objective_reads(const kith_objective *objective, kith_tap tap) {
    if (!objective) return false;
    return (ki_objective_taps(objective->core) & KI_TAP_BIT(taps[tap])) != 0;
}

bool kith_objective_has_loss(const kith_objective *objective) {
    if (!objective) return false;
    return ki_objective_loss(objective->core) != NULL;
}

/* Taps as src/objective has them. */
static kith_status take_taps(const kith_batch_tap *from, ki_batch *ret, kith_error *err) {
    for (int t = 0; t < KITH_N_TAPS; t++, from++) {
        ki_tap_data *to = &ret->tap[taps[t]];
        *to = (ki_tap_data){.data = from->data, .rows = from->rows, .cols = from->cols};
        if (t != KITH_TAP_MAP) continue;
        to->c = from->cols;
        if (__builtin_mul_overflow(from->height, from->width, &to->hw) || to->hw < 0 ||
            __builtin_mul_overflow(from->cols, to->hw, &to->cols) || to->cols < 0)
            return ki_fail(err, KITH_ESHAPE, "map is [%lld, %lld, %lld, %lld]", (long long)from->rows,
                           (long long)from->cols, (long long)from->height, (long long)from->width);
    }
    return KITH_OK;
}

static kith_status to_core(kith_objective *o, const kith_batch *batch, ki_batch *ret, kith_error *err) {
    if (batch->n < 1 || batch->n > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "the batch has %lld items; wanted at least 1", (long long)batch->n);
    KI_TRY(ki_grow(&o->label, &o->label_capacity, (size_t)batch->n, sizeof *o->label, "labels", err));
    for (int64_t i = 0; i < batch->n; i++) {
        if (batch->labels[i] < -1 || batch->labels[i] > INT32_MAX)
            return ki_fail(err, KITH_EINVAL,
                           "labels[%lld] is %lld; wanted a class id from 0 to %d, or -1 for none",
                           (long long)i, (long long)batch->labels[i], INT32_MAX);
        o->label[i] = (int32_t)batch->labels[i];
    }
    *ret = (ki_batch){.m = batch->n, .label = o->label, .step = batch->step};
    return take_taps(batch->tap, ret, err);
}

/* The device's copy, for batches of these sizes. */
static kith_status place(kith_objective *o, const ki_batch *batch, int64_t n_unlabelled, kith_error *err) {
    if (o->placed && !ki_placed_fits(o->placed, batch, n_unlabelled)) {
        ki_placed_free(o->placed);
        o->placed = NULL;
    }
    return o->placed ? KITH_OK : ki_placed_new(o->device, o->core, batch, n_unlabelled, &o->placed, err);
}

static kith_status evaluate(kith_objective *o, const ki_batch *batch, ki_result *ret, kith_error *err) {
    if (!o->device[0]) return ki_objective_evaluate(o->core, batch, ret, err);
    KI_TRY(ki_batch_check(o->core, batch, err));
    KI_TRY(place(o, batch, batch->m - ki_batch_labelled(batch), err));
    return ki_placed_evaluate(o->placed, batch, ret, err);
}

static kith_status take_terms(kith_objective *o, const ki_result *result, kith_objective_result *ret,
                              kith_error *err) {
    KI_TRY(ki_grow(&o->term, &o->term_capacity, ki_objective_term_count(o->core), sizeof *o->term, "terms",
                   err));
    for (size_t i = 0; i < result->n_terms; i++)
        o->term[i] = (kith_term){result->term[i].name, result->term[i].value, result->term[i].weight};
    *ret = (kith_objective_result){.total = result->total,
                                   .n_terms = (int)result->n_terms,
                                   .terms = o->term,
                                   .stopped = result->diff_stopped,
                                   .n_positive = result->n_pos,
                                   .n_negative = result->n_neg,
                                   .n_empty = result->n_empty};
    return KITH_OK;
}

kith_status kith_objective_evaluate(kith_objective *objective, const kith_batch *batch,
                                    kith_objective_result *ret_result, kith_error *err) {
    KI_NEED(err, objective, batch, ret_result);
    kith_objective *o = objective;
    ki_batch core;
    ki_result result;
    KI_TRY(to_core(o, batch, &core, err));
    const size_t n = (size_t)(core.m * core.tap[KI_TAP_EMBEDDING].cols);
    KI_TRY(ki_grow(&o->whole, &o->whole_capacity, n, sizeof *o->whole, "gradients", err));
    KI_TRY(evaluate(o, &core, &result, err));
    KI_TRY(take_terms(o, &result, ret_result, err));
    for (int t = 0; t < KITH_N_TAPS; t++) ret_result->gradient[t] = result.diff[taps[t]];
    if (result.diff_stopped) {
        for (size_t i = 0; i < n; i++)
            o->whole[i] = result.diff[KI_TAP_EMBEDDING][i] + result.diff_stopped[i];
        ret_result->gradient[KITH_TAP_EMBEDDING] = o->whole;
    }
    return KITH_OK;
}

KI_OPTIONS_INIT(kith_device_batch, 0)

kith_status kith_objective_queue(kith_objective *objective, const kith_device_batch *batch, kith_error *err) {
    KI_NEED(err, objective, batch);
    KI_OPTIONS_TAKE(kith_device_batch, given, batch, err);
    KI_NEED(err, given.labels);
    kith_objective *o = objective;
    ki_batch core = {.m = given.n, .label = given.labels, .step = given.step};
    ki_placed_results to = {
        .diff_stopped = given.stopped, .total = given.total, .total_f32 = given.total_f32};
    if (!o->device[0]) {
        ki_fail(err, KITH_EINVAL, "the objective is evaluated on the host");
        return ki_hint(err, KITH_EINVAL, "call kith_objective_place first, or kith_objective_evaluate");
    }
    if (kith_objective_reads(o, KITH_TAP_MAP))
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "a term reads the map; wanted terms of embedding, pooled and weight");
    KI_TRY(take_taps(given.tap, &core, err));
    KI_TRY(ki_batch_check_shapes(o->core, &core, err));
    for (int t = 0; t < KITH_N_TAPS; t++) to.diff[taps[t]] = given.gradient[t];
    KI_TRY(place(o, &core, 0, err));
    return ki_placed_queue(o->placed, &core, &to, given.stream, err);
}

kith_status kith_objective_read(kith_objective *objective, kith_objective_result *ret_result,
                                kith_error *err) {
    KI_NEED(err, objective, ret_result);
    ki_result result;
    if (!objective->placed) return ki_fail(err, KITH_EINVAL, "nothing was queued");
    const kith_status status = ki_placed_read(objective->placed, &result, err);
    if (status != KITH_OK) { /* the device remembers a fault: the next batch begins anew */
        ki_placed_free(objective->placed);
        objective->placed = NULL;
        return status;
    }
    return take_terms(objective, &result, ret_result, err);
}

kith_status kith_objective_weights(kith_objective *objective, const kith_batch *batch, kith_array *ret_weight,
                                   kith_array *ret_similarity, kith_error *err) {
    KI_NEED(err, objective, batch, ret_weight);
    ki_batch core;
    float *weight = NULL, *similarity = NULL;
    int64_t n = 0;
    KI_TRY(to_core(objective, batch, &core, err));
    KI_TRY(
        ki_objective_weights(objective->core, &core, &weight, ret_similarity ? &similarity : NULL, &n, err));
    const int64_t m = ki_batch_labelled(&core);
    *ret_weight = (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {m, n}, .data = weight};
    if (ret_similarity)
        *ret_similarity = (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {m, n}, .data = similarity};
    return KITH_OK;
}

kith_status kith_objective_describe(kith_objective *objective, const kith_batch *batch,
                                    kith_array *ret_descriptor, kith_error *err) {
    KI_NEED(err, objective, batch, ret_descriptor);
    ki_batch core;
    float *descriptor = NULL;
    int64_t dim = 0;
    KI_TRY(to_core(objective, batch, &core, err));
    KI_TRY(ki_objective_describe(objective->core, &core, &descriptor, &dim, err));
    *ret_descriptor = (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {core.m, dim}, .data = descriptor};
    return KITH_OK;
}

bool kith_objective_param_at(kith_objective *objective, int64_t i, kith_objective_param *ret_param) {
    const ki_state *param =
        !objective || !ret_param || i < 0 ? NULL : ki_objective_param(objective->core, (size_t)i);
    if (!param) return false;
    *ret_param = (kith_objective_param){.name = param->name,
                                        .n_dims = param->shape.n_dims,
                                        .n = param->count,
                                        .lr_multiplier = param->lr_multiplier,
                                        .value = param->value,
                                        .gradient = param->diff};
    memcpy(ret_param->dim, param->shape.dim, sizeof ret_param->dim);
    return true;
}

void kith_objective_clear_gradients(kith_objective *objective) {
    if (!objective) return;
    ki_objective_clear_diffs(objective->core);
}

static kith_status load_one(ki_objective *core, const kith_tensors *file, const char *name, kith_error *err) {
    kith_array view, values;
    char found[64], wanted[64];
    ki_state *param = ki_objective_param_named(core, name);
    if (!param) {
        const char *names[64];
        size_t n = 0;
        for (; n < 64 && ki_objective_param(core, n); n++) names[n] = ki_objective_param(core, n)->name;
        if (n == 0)
            return ki_fail(err, KITH_ENOTFOUND, "'%.60s' belongs to no term: the objective learns nothing",
                           name);
        return ki_fail_unknown(err, "parameter", name, names, n);
    }
    KI_TRY(kith_tensors_get(file, name, &view, err));
    ki_shape shape = {.n_dims = view.n_dims};
    memcpy(shape.dim, view.dim, sizeof shape.dim);
    if (!ki_shape_equal(&shape, &param->shape))
        return ki_fail(err, KITH_ESHAPE, "%s is %s; the objective's is %s", name,
                       ki_shape_text(&shape, found, sizeof found),
                       ki_shape_text(&param->shape, wanted, sizeof wanted));
    KI_TRY(kith_array_convert(&view, KITH_F32, &values, err));
    memcpy(param->value, values.data, (size_t)param->count * sizeof *param->value);
    kith_array_release(&values);
    return KITH_OK;
}

kith_status kith_objective_load(kith_objective *objective, const char *path, kith_error *err) {
    KI_NEED(err, objective, path);
    kith_tensors *file = NULL;
    kith_status status = KITH_OK;
    KI_TRY(kith_tensors_open(path, &file, err));
    for (int64_t i = 0; i < kith_tensors_count(file) && status == KITH_OK; i++) {
        const char *name = kith_tensors_name(file, i);
        /* The embedding layer's weights are a tap (KITH_TAP_WEIGHT), and may be in the same file. */
        if (strcmp(name, "embedding.weight") == 0) continue;
        status = load_one(objective->core, file, name, err);
    }
    kith_tensors_free(file);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", path);
}

kith_status kith_objective_save(const kith_objective *objective, const char *path, kith_error *err) {
    KI_NEED(err, objective, path);
    kith_tensors_writer *writer = NULL;
    kith_status status = KITH_OK;
    KI_TRY(kith_tensors_writer_new(&writer, err));
    for (size_t i = 0;; i++) {
        const ki_state *param = ki_objective_param(objective->core, i);
        if (!param) break;
        kith_array array = {.dtype = KITH_F32, .n_dims = param->shape.n_dims, .data = param->value};
        memcpy(array.dim, param->shape.dim, sizeof array.dim);
        KI_CHECK(kith_tensors_writer_add(writer, param->name, &array, err));
    }
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    kith_tensors_writer_free(writer);
    return status;
}

size_t kith_objective_work_bytes(const kith_objective *objective) {
    if (!objective) return 0;
    return ki_objective_work_bytes(objective->core);
}
