/* From a net's names to those of state dicts, and back. */
#include "net/torch_names.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "net/adapt.h"
#include "net/model_file.h"

enum { LONGEST = KI_NAMES_LONGEST };

static const char counter[] = ".num_batches_tracked";

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* ---- out ---- */

static const char *library_of(const ki_backbone *backbone) {
    return backbone->torch ? backbone->torch->library : "torchvision";
}

/* timm's vision transformers have a class token and attention, too. */
static const char *unknown_pooling(const ki_net *net) {
    const bool is_known =
        net->pool == KI_POOLING_AVG || net->pool == KI_POOLING_CLASS || net->pool == KI_POOLING_ATTENTION;
    return is_known || ki_net_takes_vectors(net) ? NULL : "other pooling than averages";
}

static kith_status check(const ki_net *net, kith_error *err) {
    const char *what = unknown_pooling(net);
    if (net->heads > 1) what = "an ensemble of heads";
    if (net->map_channels > 0) what = "a convolution before the map";
    if (net->embedding > 0 && net->classes > 0) what = "both an embedding and a classifier";
    if (!what) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "the model has %s, which models of %s do not have", what,
            library_of(net->backbone));
    return ki_hint(err, KITH_EUNSUPPORTED, "export it to ONNX, which holds the whole graph");
}

/* The counter of a batch norm is an int64 without axes. */
static kith_status add_counter(const char *variance, kith_tensors_writer *writer, kith_error *err) {
    static const int64_t none = 0;
    char name[LONGEST];
    const kith_array array = {.dtype = KITH_I64, .n_dims = 0, .data = (void *)(uintptr_t)&none};
    ki_snprintf(name, sizeof name, "%.*s%s", (int)(strlen(variance) - strlen(".running_var")), variance,
                counter);
    return kith_tensors_writer_add(writer, name, &array, err);
}

/* The name and the shape there: of the embedding layer those of the classifier. */
static kith_status rename_param(const ki_net *net, const ki_param *param, char ret_name[LONGEST],
                                kith_array *shape, kith_error *err) {
    static const char embedding[] = "embedding";
    const ki_backbone *b = net->backbone;
    char own[LONGEST];
    const bool is_embedding = begins(param->name, "embedding.");
    ki_snprintf(own, sizeof own, "%s%s", is_embedding ? b->classifier : "",
                param->name + (is_embedding ? strlen(embedding) : 0));
    if (b->torch) return ki_names_write(b->torch, own, ret_name, shape, err);
    memcpy(ret_name, own, sizeof own);
    return KITH_OK;
}

static kith_status add_param(const ki_net *net, const ki_params *params, const ki_param *param,
                             kith_tensors_writer *writer, kith_array *values, kith_error *err) {
    char name[LONGEST];
    if (ki_adapt_is_added(net, param->name)) return KITH_OK;
    KI_TRY(kith_array_init(KITH_F32, param->shape.n_dims, param->shape.dim, values, err));
    KI_TRY(ki_params_get(params, param, values->data, err));
    KI_TRY(ki_adapt_merge(net, params, param, values->data, err));
    KI_TRY(rename_param(net, param, name, values, err));
    KI_TRY(kith_tensors_writer_add(writer, name, values, err));
    return ends(name, ".running_var") ? add_counter(name, writer, err) : KITH_OK;
}

kith_status ki_torch_save(const ki_net *net, const ki_params *params, const char *path, kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    const int n = ki_params_count(params);
    kith_array *arrays = NULL;
    KI_TRY(check(net, err));
    KI_CHECK(ki_zalloc_or(&arrays, (size_t)n, sizeof *arrays, "the model's tensors", err));
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, "format", "pt", err));
    KI_CHECK(ki_model_metadata_write_settings(net, writer, err)); /* for kith; PyTorch does not look */
    for (int i = 0; i < n; i++)
        KI_CHECK(add_param(net, params, ki_params_at(params, i), writer, &arrays[i], err));
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    kith_tensors_writer_free(writer);
    for (int i = 0; arrays && i < n; i++) kith_array_release(&arrays[i]);
    ki_free(arrays);
    return status;
}

/* ---- in ---- */

/* A checkpoint holds the model's tensors beside others, such as the optimizer's: "" or "state_dict.". */
static const char *part_of(const kith_tensors *from) {
    static const char *const parts[] = {"state_dict.", "model_state_dict."};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        for (int64_t i = 0; i < kith_tensors_count(from); i++) {
            if (begins(kith_tensors_name(from, i), parts[p])) return parts[p];
        }
    }
    return "";
}

/* Do all names of the part go on with this? */
static bool all_begin(const kith_tensors *from, const char *part, size_t skip, const char *prefix) {
    int64_t n = 0;
    for (int64_t i = 0; i < kith_tensors_count(from); i++) {
        const char *name = kith_tensors_name(from, i);
        if (!begins(name, part)) continue;
        if (!begins(name + skip, prefix)) return false;
        n++;
    }
    return n > 0;
}

/* The length of what every name of the part begins with, so that it says nothing. */
static size_t shared_prefix(const kith_tensors *from, const char *part) {
    static const char *const prefixes[] = {"module.", "model.", "backbone.", "encoder.", "net."};
    size_t skip = strlen(part);
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0];) {
        if (all_begin(from, part, skip, prefixes[p]))
            skip += strlen(prefixes[p]), p = 0;
        else
            p++;
    }
    return skip;
}

/* The backbone's name for a tensor; false: the name is too long. */
static bool own_name(const ki_backbone *backbone, const char *name, char ret[LONGEST]) {
    static const char *const classifiers[] = {"fc.", "last_linear.", "head.fc.", "classifier."};
    int n = 0;
    for (size_t i = 0; i < sizeof classifiers / sizeof classifiers[0]; i++) {
        if (!begins(name, classifiers[i])) continue;
        n = ki_snprintf(ret, LONGEST, "%s.%s", backbone->classifier, name + strlen(classifiers[i]));
        return n > 0 && n < LONGEST;
    }
    n = ki_snprintf(ret, LONGEST, "%s", name);
    return n > 0 && n < LONGEST;
}

kith_status ki_torch_rename(const kith_tensors *from, const ki_backbone *backbone, kith_tensors_writer *to,
                            kith_error *err) {
    const char *part = part_of(from);
    const size_t skip = shared_prefix(from, part);
    for (int64_t i = 0; i < kith_tensors_count(from); i++) {
        const char *name = kith_tensors_name(from, i);
        char own[LONGEST];
        kith_array view;
        if (!begins(name, part) || ends(name, counter)) continue;
        if (!own_name(backbone, name + skip, own))
            return ki_fail(err, KITH_EFORMAT, "the name of tensor '%.60s…' is longer than %d bytes", name,
                           LONGEST - 1);
        KI_TRY(kith_tensors_get(from, name, &view, err));
        KI_TRY(kith_tensors_writer_add(to, own, &view, err));
    }
    return KITH_OK;
}
