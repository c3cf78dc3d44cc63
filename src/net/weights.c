/* Reading and writing weights by name, with their shapes checked. */
#include "net/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "net/adapt.h"
#include "net/calibration.h"
#include "net/model_file.h"
#include "net/recognise.h"

/* Names of tensors with one kind of problem, cut off when there are too many for a line. */
typedef struct name_list {
    int64_t n, n_shown;
    size_t used;
    char text[150];
} name_list;

static void list_add(name_list *list, const char *entry) {
    const size_t length = strlen(entry), comma = list->n_shown ? 2 : 0;
    const bool fits = list->n_shown == list->n && list->used + comma + length < sizeof list->text;
    if (list->n++ > 0 && !fits) return;
    list->used += (size_t)ki_snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s",
                                      comma ? ", " : "", entry);
    if (list->used >= sizeof list->text) list->used = sizeof list->text - 1;
    list->n_shown++;
}

static void list_text(const name_list *list, const char *what, char *buf, size_t buf_bytes) {
    buf[0] = '\0';
    if (list->n == 0) return;
    char more[40] = "";
    if (list->n > list->n_shown)
        ki_snprintf(more, sizeof more, " … and %lld more", (long long)(list->n - list->n_shown));
    ki_snprintf(buf, buf_bytes, "%lld %s (%s%s)", (long long)list->n, what, list->text, more);
}

static bool has_prefix(const char *name, const char *layer) {
    const size_t n = strlen(layer);
    return strncmp(name, layer, n) == 0 && name[n] == '.';
}

static bool has_suffix(const char *name, const char *suffix) {
    const size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* The head a tensor belongs to, or NULL. */
static const char *head_of(const ki_net *net, const char *name) {
    static const char *const heads[] = {"embedding", KI_TOWER, "map", "pool"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        if (has_prefix(name, heads[i])) return heads[i];
    }
    if (has_prefix(name, net->backbone->classifier)) return net->backbone->classifier;
    return NULL;
}

static bool file_has_layer(const ki_named *tensors, const char *layer) {
    for (int i = 0; i < ki_named_count(tensors); i++) {
        if (has_prefix(ki_named_name(tensors, i), layer)) return true;
    }
    return false;
}

/* What the net's graph declares, which takes no memory for values. */
typedef struct decl_list {
    const ki_param_decl **decl; /* trained ones first, then running statistics */
    const ki_param_decl **by_name;
    int n;
} decl_list;

static int compare_decls(const void *left, const void *right) {
    return strcmp((*(const ki_param_decl *const *)left)->name, (*(const ki_param_decl *const *)right)->name);
}

static int compare_to_decl(const void *name, const void *decl) {
    return strcmp(name, (*(const ki_param_decl *const *)decl)->name);
}

static void decls_release(decl_list *list) {
    ki_free(list->decl);
    ki_free(list->by_name);
}

static kith_status decls_init(const ki_graph *graph, decl_list *list, kith_error *err) {
    size_t n = 0;
    for (int i = 0; i < ki_graph_count(graph); i++) n += (size_t)ki_graph_node(graph, i)->n_params;
    KI_TRY(ki_alloc_or(&list->decl, n, sizeof *list->decl, "the net's parameters", err));
    KI_TRY(ki_alloc_or(&list->by_name, n, sizeof *list->by_name, "the net's parameters", err));
    for (int trained = 1; trained >= 0; trained--) {
        for (int i = 0; i < ki_graph_count(graph); i++) {
            const ki_node *node = ki_graph_node(graph, i);
            for (int k = 0; k < node->n_params; k++) {
                if (node->param[k].trained == (trained == 1)) list->decl[list->n++] = &node->param[k];
            }
        }
    }
    memcpy(list->by_name, list->decl, n * sizeof *list->decl);
    qsort(list->by_name, n, sizeof *list->by_name, compare_decls);
    return KITH_OK;
}

static bool decls_have(const decl_list *list, const char *name) {
    return bsearch(name, list->by_name, (size_t)list->n, sizeof *list->by_name, compare_to_decl) != NULL;
}

static bool decls_have_layer(const decl_list *list, const char *layer) {
    for (int i = 0; i < list->n; i++) {
        if (has_prefix(list->decl[i]->name, layer)) return true;
    }
    return false;
}

/* The name of the tensor that a parameter starts from; NULL: there is none. An attention's tower is a copy of layers of the network,
 * and starts as these do in a file that has none. */
static const char *tensor_of(const ki_named *tensors, const char *name, kith_array *ret_shape) {
    if (ki_named_get(tensors, name, ret_shape)) return name;
    if (!has_prefix(name, KI_TOWER) || file_has_layer(tensors, KI_TOWER)) return NULL;
    name += strlen(KI_TOWER ".");
    return ki_named_get(tensors, name, ret_shape) ? name : NULL;
}

/* Is it a part of an embedding layer whose size in the file is another one, and that begins anew? */
static bool begins_anew(const ki_named *tensors, const ki_net *net, const char *name) {
    kith_array view;
    return net->new_embedding && has_prefix(name, "embedding") &&
           ki_named_get(tensors, "embedding.weight", &view) && view.dim[0] * net->heads != net->embedding;
}

/* Equal but for axes of 1 before and behind: a linear layer and a 1x1 convolution fit each other. */
static bool shape_fits(const kith_array *view, const ki_shape *shape) {
    int first = 0, n = view->n_dims, wanted = shape->n_dims;
    while (n > 1 && view->dim[n - 1] == 1) n--;
    while (wanted > 1 && shape->dim[wanted - 1] == 1) wanted--;
    while (n - first > wanted && view->dim[first] == 1) first++;
    if (n - first != wanted) return false;
    return memcmp(view->dim + first, shape->dim, (size_t)wanted * sizeof shape->dim[0]) == 0;
}

static bool is_float(kith_dtype dtype) {
    return dtype == KITH_F32 || dtype == KITH_F64 || dtype == KITH_F16 || dtype == KITH_BF16;
}

static void check_param(const ki_named *tensors, const ki_net *net, const ki_param_decl *param,
                        name_list *missing, name_list *misshapen) {
    kith_array view;
    if (begins_anew(tensors, net, param->name)) return;
    if (!tensor_of(tensors, param->name, &view)) {
        if (ki_adapt_is_added(net, param->name)) return;
        const char *head = head_of(net, param->name);
        if (!head || file_has_layer(tensors, head)) list_add(missing, param->name);
        return;
    }
    if (shape_fits(&view, &param->shape) && is_float(view.dtype)) return;
    ki_shape found = {.n_dims = view.n_dims};
    memcpy(found.dim, view.dim, sizeof found.dim);
    char entry[256], a[80], b[80];
    ki_snprintf(entry, sizeof entry, "%s is %s %s, wanted %s%s", param->name, kith_dtype_name(view.dtype),
                ki_shape_text(&found, a, sizeof a), is_float(view.dtype) ? "" : "floats ",
                ki_shape_text(&param->shape, b, sizeof b));
    list_add(misshapen, entry);
}

static bool is_extra(const ki_net *net, const decl_list *decls, const char *name) {
    if (decls_have(decls, name) || has_suffix(name, ".num_batches_tracked")) return false;
    const char *head = head_of(net, name);
    return !head || decls_have_layer(decls, head);
}

static kith_status check_decls(const ki_named *tensors, const ki_net *net, const decl_list *decls,
                               kith_error *err) {
    name_list missing = {0}, misshapen = {0}, extra = {0};
    for (int i = 0; i < decls->n; i++) check_param(tensors, net, decls->decl[i], &missing, &misshapen);
    for (int i = 0; i < ki_named_count(tensors); i++) {
        if (is_extra(net, decls, ki_named_name(tensors, i))) list_add(&extra, ki_named_theirs(tensors, i));
    }
    if (missing.n + misshapen.n + extra.n == 0) return KITH_OK;
    char a[200], b[200], c[200];
    list_text(&missing, "missing", a, sizeof a);
    list_text(&misshapen, "misshapen", b, sizeof b);
    list_text(&extra, "extra", c, sizeof c);
    ki_fail(err, KITH_ESHAPE, "tensors do not fit %s: %s%s%s%s%s", net->backbone->name, a,
            *a && *b ? ", " : "", b, (*a || *b) && *c ? ", " : "", c);
    const ki_backbone *other = NULL;
    ki_recognised recognised;
    if (ki_backbone_recognise(tensors, NULL, &other, &recognised, NULL) == KITH_OK && other != net->backbone)
        return ki_hint(err, KITH_ESHAPE, "these are the tensors of %s: name that network, or none",
                       other->name);
    return ki_hint(err, KITH_ESHAPE, "the names %s wants are those of docs/model-files.md",
                   net->backbone->name);
}

kith_status ki_weights_check(const ki_named *tensors, const ki_net *net, kith_error *err) {
    decl_list decls = {0};
    kith_status status = decls_init(net->graph, &decls, err);
    if (status == KITH_OK) status = check_decls(tensors, net, &decls, err);
    decls_release(&decls);
    return status;
}

static kith_status import_one(const ki_named *tensors, const char *name, ki_params *params,
                              const ki_param *param, kith_error *err) {
    kith_status status;
    float *values = NULL;
    KI_CHECK(ki_alloc_or(&values, (size_t)param->n, sizeof *values, param->name, err));
    status = ki_named_values(tensors, name, values, param->n, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "tensor %s", param->name);
        goto done;
    }
    for (int64_t i = 0; i < param->n; i++) {
        if (isfinite(values[i])) continue;
        status = ki_fail(err, KITH_ENUMERIC, "tensor %s holds %g at %lld; wanted finite numbers", param->name,
                         (double)values[i], (long long)i);
        goto done;
    }
    KI_CHECK(ki_params_set(params, param, values, err));
done:
    ki_free(values);
    return status;
}

kith_status ki_weights_import_named(const ki_named *tensors, const ki_net *net, ki_params *params,
                                    kith_error *err) {
    KI_TRY(ki_weights_check(tensors, net, err));
    KI_TRY(ki_adapt_clear(net, params, err));
    if (net->embedding && begins_anew(tensors, net, "embedding.weight"))
        ki_log(KITH_LOG_INFO, "the weights' embedding layer has another size; a new one of %lld begins",
               (long long)net->embedding);
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *param = ki_params_at(params, i);
        kith_array view;
        const char *name =
            begins_anew(tensors, net, param->name) ? NULL : tensor_of(tensors, param->name, &view);
        if (name) KI_TRY(import_one(tensors, name, params, param, err));
    }
    return KITH_OK;
}

kith_status ki_weights_import(const kith_tensors *tensors, const ki_net *net, ki_params *params,
                              kith_error *err) {
    ki_named *named = NULL;
    KI_TRY(ki_named_new(tensors, "", &named, err));
    const kith_status status = ki_weights_import_named(named, net, params, err);
    ki_named_free(named);
    return status;
}

static const char recipe_key[] = "kith.recipe_sha256", step_key[] = "kith.step";

static kith_status write_origin(const ki_weights_origin *origin, kith_tensors_writer *writer,
                                kith_error *err) {
    char step[32];
    ki_snprintf(step, sizeof step, "%lld", (long long)origin->step);
    KI_TRY(kith_tensors_writer_metadata(writer, recipe_key, origin->recipe_hash, err));
    return kith_tensors_writer_metadata(writer, step_key, step, err);
}

bool ki_weights_read_origin(const kith_tensors *tensors, ki_weights_origin *ret_origin) {
    const char *hash = kith_tensors_metadata(tensors, recipe_key),
               *step = kith_tensors_metadata(tensors, step_key);
    ki_weights_origin origin = {0};
    if (!hash || strlen(hash) + 1 != sizeof origin.recipe_hash || !step ||
        !ki_parse_int64(step, &origin.step))
        return false;
    memcpy(origin.recipe_hash, hash, sizeof origin.recipe_hash);
    *ret_origin = origin;
    return true;
}

/* Floats become halves in the first half of their memory. */
static kith_status narrow(const char *name, kith_array *array, kith_error *err) {
    const int64_t n = kith_array_count(array);
    const float *values = array->data;
    uint16_t *halves = array->data;
    for (int64_t i = 0; i < n; i++) {
        const float value = values[i];
        const uint16_t half = ki_float_to_f16(value);
        if (!isfinite(ki_f16_to_float(half))) {
            ki_fail(err, KITH_ENUMERIC, "tensor %s holds %g at %lld; float16 reaches 65504", name,
                    (double)value, (long long)i);
            return ki_hint(err, KITH_ENUMERIC, "keep this model in float32");
        }
        halves[i] = half;
    }
    array->dtype = KITH_F16;
    return KITH_OK;
}

static kith_status save(const ki_net *net, const ki_params *params, const ki_weights_origin *origin,
                        const kith_calibration *calibration, bool is_half, const char *path,
                        kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    const int n = ki_params_count(params);
    kith_array *arrays = NULL;
    KI_CHECK(ki_zalloc_or(&arrays, (size_t)n, sizeof *arrays, "the model's tensors", err));
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(ki_model_metadata_write(net, writer, err));
    if (origin) KI_CHECK(write_origin(origin, writer, err));
    if (calibration) KI_CHECK(ki_calibration_write(calibration, writer, err));
    for (int i = 0; i < n; i++) {
        const ki_param *param = ki_params_at(params, i);
        if (ki_adapt_is_added(net, param->name)) continue;
        KI_CHECK(kith_array_init(KITH_F32, param->shape.n_dims, param->shape.dim, &arrays[i], err));
        KI_CHECK(ki_params_get(params, param, arrays[i].data, err));
        KI_CHECK(ki_adapt_merge(net, params, param, arrays[i].data, err));
        if (is_half && param->shape.n_dims > 1) KI_CHECK(narrow(param->name, &arrays[i], err));
        KI_CHECK(kith_tensors_writer_add(writer, param->name, &arrays[i], err));
    }
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    kith_tensors_writer_free(writer);
    for (int i = 0; arrays && i < n; i++) kith_array_release(&arrays[i]);
    ki_free(arrays);
    return status;
}

kith_status ki_weights_save(const ki_net *net, const ki_params *params, const ki_weights_origin *origin,
                            const kith_calibration *calibration, const char *path, kith_error *err) {
    return save(net, params, origin, calibration, false, path, err);
}

kith_status ki_weights_save_half(const ki_net *net, const ki_params *params,
                                 const kith_calibration *calibration, const char *path, kith_error *err) {
    return save(net, params, NULL, calibration, true, path, err);
}
