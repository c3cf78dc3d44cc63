/* Models as files of other programs, and the reverse. */
#include "kith/export.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "embed/preprocess.h"
#include "model/handle.h"
#include "net/onnx.h"
#include "net/torch_names.h"
#include "net/weights.h"

KI_OPTIONS_INIT(kith_export_options, 0)

kith_status kith_model_export_onnx(const kith_model *model, const char *path,
                                   const kith_export_options *options, kith_error *err) {
    KI_NEED(err, model, path);
    KI_OPTIONS_TAKE(kith_export_options, o, options, err);
    const ki_net *net = &model->net;
    const ki_onnx_options onnx = {.tap = ki_preprocess_tap(net, o.tap),
                                  .normalize = o.normalize,
                                  .resize = ki_preprocess_resize(net, NULL)};
    return ki_onnx_save(net, model->params, &onnx, path, err);
}

kith_status kith_model_export_half(const kith_model *model, const char *path, kith_error *err) {
    KI_NEED(err, model, path);
    return ki_weights_save_half(&model->net, model->params, ki_model_own_curve(model), path, err);
}

kith_status kith_model_export_torch(const kith_model *model, const char *path, kith_error *err) {
    KI_NEED(err, model, path);
    return ki_torch_save(&model->net, model->params, path, err);
}
