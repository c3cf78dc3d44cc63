/* Weights of other programs as model files: read, rename, check against the backbone, save. */
#include <limits.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/buffer.h"
#include "io/file.h"
#include "io/pth.h"
#include "io/tensors.h"
#include "kith/export.h"
#include "model/device.h"
#include "net/model_file.h"
#include "net/torch_names.h"
#include "net/weights.h"

/* Tensors and the bytes they are views of. */
typedef struct held {
    ki_buffer bytes;
    kith_tensors *tensors;
} held;

static void held_release(held *h) {
    kith_tensors_free(h->tensors);
    ki_buffer_release(&h->bytes);
}

static kith_status hold(const kith_tensors_writer *writer, const char *name, held *ret, kith_error *err) {
    KI_TRY(ki_tensors_writer_bytes(writer, &ret->bytes, err));
    return ki_tensors_parse(ret->bytes.data, ret->bytes.n, name, &ret->tensors, err);
}

/* A .pth file's tensors. */
static kith_status read_pth(const char *bytes, size_t n, const char *path, held *ret, kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(ki_pth_parse(bytes, n, path, writer, err));
    KI_CHECK(hold(writer, path, ret, err));
done:
    kith_tensors_writer_free(writer);
    return status;
}

static kith_status read_weights(const char *name, held *ret, kith_error *err) {
    kith_status status;
    char path[PATH_MAX];
    char *bytes = NULL;
    size_t n = 0;
    KI_CHECK(ki_model_file_find(name, path, sizeof path, err));
    KI_CHECK(ki_file_read(path, SIZE_MAX / 4, &bytes, &n, err));
    if (ki_tensors_is(bytes, n))
        KI_CHECK(kith_tensors_open(path, &ret->tensors, err));
    else
        KI_CHECK(read_pth(bytes, n, path, ret, err));
done:
    ki_free(bytes);
    return status;
}

static kith_status rename_all(const held *from, const ki_backbone *backbone, const char *path, held *ret,
                              kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(ki_torch_rename(from->tensors, backbone, writer, err));
    KI_CHECK(hold(writer, path, ret, err));
done:
    kith_tensors_writer_free(writer);
    return status;
}

kith_status kith_model_import(const char *weights, const kith_model_options *options, const char *path,
                              kith_error *err) {
    KI_NEED(err, weights, path);
    KI_OPTIONS_TAKE(kith_model_options, o, options, err);
    kith_status status;
    const ki_backbone *backbone = NULL;
    ki_backend *backend = NULL;
    ki_net net = {0};
    ki_params *params = NULL;
    held read = {0}, renamed = {0};
    if (!o.backbone)
        return ki_fail(err, KITH_EINVAL, "no backbone is named; wanted the network of the weights");
    KI_TRY(ki_backbone_find(o.backbone, &backbone, err));
    KI_CHECK(read_weights(weights, &read, err));
    KI_CHECK(rename_all(&read, backbone, weights, &renamed, err));
    KI_CHECK(ki_device_open(&o, &backend, err));
    o.weights = weights; /* beside which a config.json may lie */
    status = ki_model_file_of_tensors(&o, renamed.tensors, backend, &net, &params, err);
    if (status != KITH_OK) {
        ki_prefix(err, status, "%s", weights);
        goto done;
    }
    KI_CHECK(ki_weights_save(&net, params, NULL, NULL, path, err));
done:
    ki_params_free(params);
    ki_net_release(&net);
    ki_backend_close(backend);
    held_release(&renamed);
    held_release(&read);
    return status;
}
