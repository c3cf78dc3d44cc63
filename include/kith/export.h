/* Models as files of other programs, and theirs as models: ONNX, and state dicts of PyTorch. */
#ifndef KITH_EXPORT_H
#define KITH_EXPORT_H

#include "kith/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_export_options {
    size_t size;     /* of the struct: set by kith_export_options_init */
    const char *tap; /* what comes out; NULL: "embedding", or "pooled" of a model without */
    bool normalize;  /* divide vectors by their length at the end */
} kith_export_options;

/* All 0 and NULL. */
KITH_API void kith_export_options_init(kith_export_options *options, size_t size);

/* Write the model as an ONNX file (opset 17): input `pixels`, float [batch, channels, height, width], RGB from 0 to 255,
 * or `features`, float [batch, numbers]; one output with the tap's name, whose values are those of kith_model_embed_floats, or
 * their unit vectors. Order, scale, mean and std are a part of the graph; how images are resized before is in the file's
 * metadata (kith.resize, kith.crop). options may be NULL. */
KITH_API kith_status kith_model_export_onnx(const kith_model *model, const char *path,
                                            const kith_export_options *options, kith_error *err);

/* Write the weights as a safetensors file with the names and shapes of PyTorch's own models (torchvision; BN-Inception: Cadene; vision
 * transformers, Swin, ConvNeXt, MobileNetV3 and EfficientNet: timm), which load_state_dict takes: the embedding layer has the name of the
 * classifier, and batch norms have their counters. Only for models that those programs have too: pooled by averaging, or by a vision
 * transformer's class token or attention, without an ensemble's heads or a convolution before the map. */
KITH_API kith_status kith_model_export_torch(const kith_model *model, const char *path, kith_error *err);

/* Write the model file as kith_model_save does, with the weights of its layers as float16: half as large. Biases, norms and running
 * statistics stay float32. Opened again it has the rounded weights. KITH_ENUMERIC names a tensor with a number that float16 does not
 * reach. */
KITH_API kith_status kith_model_export_half(const kith_model *model, const char *path, kith_error *err);

/* Read weights of torchvision, timm or Cadene's models, a safetensors file or a .pth file that torch.save wrote, and
 * write them as a model file of kith. options says which backbone they are for, and may add its settings; its weights are
 * not used. Nothing in a .pth file is executed: it is read as tensors, and anything else in it is refused. */
KITH_API kith_status kith_model_import(const char *weights, const kith_model_options *options,
                                       const char *path, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
